//! One end of a flow of UDP datagrams at a constant rate.

use airtcp_stack::HostError;
use airtcp_stack::host::SocketId;
use airtcp_types::{ByteCount, ExtSeq, Instant, RangeSet, Rate, SeqRange};

use super::end_host::Desk;
use super::{Meter, Role, pattern};

/// The length of the number at the start of every datagram.
const NUMBER: usize = 4;

/// One end.
#[derive(Debug)]
pub(crate) struct UdpEnd {
    role: Role,
    /// The rate of IP packets, and the length of a packet.
    rate: Rate,
    packet: u16,
    /// The length of a datagram in bytes.
    len: usize,
    socket: Option<SocketId>,
    /// The number of datagrams sent.
    pub(crate) sent: u64,
    /// The numbers of received datagrams, to ignore copies that the network made.
    came: RangeSet,
    /// One more than the highest number received.
    highest: ExtSeq,
    buffer: Vec<u8>,
    pub(crate) meter: Meter,
}

impl UdpEnd {
    /// Creates an end with packets of `packet` bytes, including `headers` bytes of IP and UDP
    /// headers.
    pub(crate) fn new(role: Role, rate: Rate, packet: u16, headers: u16, meter: Meter) -> Self {
        let len = usize::from(packet - headers);
        let (came, highest) = (RangeSet::default(), ExtSeq(0));
        let buffer = vec![0; len];
        Self { role, rate, packet, len, socket: None, sent: 0, came, highest, buffer, meter }
    }

    /// Binds the socket.
    pub(super) fn bind(&mut self, desk: &mut Desk<'_>) {
        match self.role.bind(desk) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => self.meter.refused = Some(error),
        }
    }

    /// When the next datagram is due. Times are calculated from the start, so that rounding errors
    /// do not accumulate.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let Role::Sends { start, stop, size, .. } = self.role else { return None };
        let is_all = size.is_some_and(|size| self.sent * self.payload() >= size);
        let at = start + self.rate.time_for(ByteCount(self.sent * u64::from(self.packet)));
        (!is_all && stop.is_none_or(|stop| at < stop)).then_some(at)
    }

    pub(super) fn on_timeout(&mut self, desk: &mut Desk<'_>) {
        let (Role::Sends { remote, .. }, Some(socket)) = (&self.role, self.socket) else { return };
        let remote = *remote;
        while self.poll_timeout().is_some_and(|at| at <= desk.now) {
            self.buffer[..NUMBER].copy_from_slice(&(self.sent as u32).to_be_bytes());
            let mut offset = self.sent * self.payload();
            for part in self.buffer[NUMBER..].chunks_mut(pattern::PIECE) {
                part.copy_from_slice(pattern::piece(offset, part.len() as u64));
                offset += part.len() as u64;
            }
            self.sent += 1;
            match desk.host.udp_send_to(socket, &self.buffer, remote) {
                // The socket buffer is full: the datagram is lost.
                Ok(()) | Err(HostError::WouldBlock) => {}
                Err(error) => self.meter.refused = Some(error),
            }
        }
    }

    /// Processes received datagrams.
    pub(super) fn on_ready(&mut self, desk: &mut Desk<'_>) {
        let Some(socket) = self.socket else { return };
        let payload = self.payload();
        while let Ok(Some((len, _))) = desk.host.udp_recv_from(socket, &mut self.buffer) {
            let Some((number, content)) = self.buffer[..len].split_first_chunk::<NUMBER>() else {
                continue;
            };
            let number = u64::from(u32::from_be_bytes(*number));
            let one = SeqRange::new(ExtSeq(number), ExtSeq(number) + 1);
            if !self.came.covers(one) {
                self.meter.on_read(desk.now, number * payload, content);
                self.came.insert(one);
                self.highest = self.highest.max(one.end);
            }
        }
        if matches!(self.role, Role::Takes { expected: Some(size), .. } if self.meter.bytes >= size)
        {
            self.meter.finished.get_or_insert(desk.now);
        }
    }

    /// The number of datagrams that did not arrive although a later one did.
    pub(crate) fn missed(&self) -> u64 {
        self.highest.0 - self.came.bytes().0
    }

    const fn payload(&self) -> u64 {
        (self.len - NUMBER) as u64
    }
}
