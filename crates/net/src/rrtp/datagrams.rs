//! The trait for UDP sockets, and batches of datagrams.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

/// The maximum number of datagrams received or sent at a time.
pub(super) const BATCH: usize = 64;
/// The size of a slot in bytes: room for a datagram of any length.
const SLOT: usize = 1 << 16;

/// A UDP socket: the kernel's ([`tokio::net::UdpSocket`]), a stack's ([`crate::UdpSocket`]), or any
/// other with the same behaviour.
///
/// Sockets override the batch methods if batches are faster, or to report when datagrams arrived.
pub trait DatagramSocket: Send + Sync + 'static {
    /// The local address of the socket.
    ///
    /// # Errors
    /// The socket is gone.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Waits until a datagram may be available. Cancel-safe.
    ///
    /// # Errors
    /// The socket is gone: the driver ends.
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits until a datagram can be sent. Cancel-safe.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Receives a datagram; returns its length in bytes and its source.
    ///
    /// # Errors
    /// `WouldBlock`: no datagram is available.
    fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends a datagram.
    ///
    /// # Errors
    /// `WouldBlock`: the socket is full. Any other error: this datagram cannot be sent, and is
    /// dropped.
    fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize>;

    /// Receives the available datagrams, at most as many as fit into `inbox`.
    ///
    /// # Errors
    /// As [`try_recv_from`](Self::try_recv_from), for the first datagram.
    fn try_recv_batch(&self, inbox: &mut Inbox) -> io::Result<()> {
        while !inbox.is_full() {
            let received = inbox.slots().next().map(|slot| self.try_recv_from(slot));
            match received.unwrap_or_else(|| Err(ErrorKind::WouldBlock.into())) {
                Ok((length, from)) => inbox.push(length, from, Duration::ZERO),
                Err(error) if inbox.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Sends one or more datagrams from the start of `outbox`; returns their number.
    ///
    /// # Errors
    /// As [`try_send_to`](Self::try_send_to), for the first datagram.
    fn try_send_batch(&self, outbox: &Outbox) -> io::Result<usize> {
        match outbox.first() {
            Some((to, data)) => self.try_send_to(data, to).map(|_| 1),
            None => Ok(0),
        }
    }
}

/// A batch of received datagrams.
#[derive(Debug)]
pub struct Inbox {
    slots: Vec<u8>,
    came: Vec<Came>,
}

/// A received datagram: the length of its slot's content, its source and its age.
#[derive(Clone, Copy, Debug)]
struct Came {
    length: usize,
    from: SocketAddr,
    age: Duration,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self { slots: vec![0; BATCH * SLOT], came: Vec::with_capacity(BATCH) }
    }

    /// Returns the free slots, for further datagrams.
    pub fn slots(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.slots.chunks_exact_mut(SLOT).skip(self.came.len())
    }

    /// Records that the next free slot holds a datagram of `length` bytes, which arrived `age` ago.
    ///
    /// # Panics
    /// If no slot is free, or if `length` exceeds the size of a slot.
    pub fn push(&mut self, length: usize, from: SocketAddr, age: Duration) {
        assert!(self.came.len() < BATCH && length <= SLOT);
        self.came.push(Came { length, from, age });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.came.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.came.len() == BATCH
    }

    pub(super) fn clear(&mut self) {
        self.came.clear();
    }

    /// Returns the source, the bytes and the age of each datagram.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8], Duration)> {
        let slots = self.slots.chunks_exact(SLOT);
        self.came.iter().zip(slots).map(|(came, slot)| (came.from, &slot[..came.length], came.age))
    }
}

/// A batch of datagrams to send, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// The destination of each datagram, and the offset of its end in `bytes`.
    going: Vec<(SocketAddr, usize)>,
    /// The number of datagrams that have been sent.
    left: usize,
}

impl Outbox {
    /// Returns the next datagram to send: its destination and its bytes.
    pub fn first(&self) -> Option<(SocketAddr, &[u8])> {
        let (to, end) = self.going.get(self.left)?;
        Some((*to, &self.bytes[self.begin()..*end]))
    }

    /// Returns the run of next datagrams that segmentation offload can send in one call: number,
    /// length in bytes of each, and bytes. They have the same destination and the same length,
    /// except that the last one may be shorter, and none of them is a probe that measures the path.
    pub fn alike(&self) -> (usize, usize, &[u8]) {
        let Some((to, first)) = self.first() else { return (0, 0, &[]) };
        let (begin, length) = (self.begin(), first.len());
        let (mut count, mut end) = (0, begin);
        for (other, its_end) in &self.going[self.left..] {
            let datagram = &self.bytes[end..*its_end];
            let fits = datagram.len() <= length && *its_end - begin <= LONGEST;
            if *other != to || !fits || airtcp_rrtp::is_probe(datagram) {
                break;
            }
            (count, end) = (count + 1, *its_end);
            if datagram.len() < length {
                break;
            }
        }
        (count, length, &self.bytes[begin..end])
    }

    fn begin(&self) -> usize {
        self.left.checked_sub(1).map_or(0, |before| self.going[before].1)
    }

    pub(super) fn is_full(&self) -> bool {
        self.going.len() >= BATCH
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left == self.going.len()
    }

    /// Adds the datagram that `write` appends; returns whether it appended one.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Option<SocketAddr>) -> bool {
        let Some(to) = write(&mut self.bytes) else { return false };
        self.going.push((to, self.bytes.len()));
        true
    }

    /// Sends datagrams until the socket is full; returns the number that could not be sent.
    pub(super) fn send<S: DatagramSocket>(&mut self, socket: &S) -> u64 {
        let mut refused = 0;
        while !self.is_empty() {
            match socket.try_send_batch(self) {
                // The socket is full.
                Ok(0) => return refused,
                Ok(count) => self.left = self.left.saturating_add(count).min(self.going.len()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return refused,
                Err(error) => {
                    tracing::debug!(
                        %error,
                        to = ?self.first().map(|(to, _)| to),
                        "datagram not sent"
                    );
                    (self.left, refused) = (self.left + 1, refused + 1);
                }
            }
        }
        self.bytes.clear();
        self.going.clear();
        self.left = 0;
        refused
    }
}

/// The maximum payload of a UDP datagram over IPv4, in bytes: the segments are cut from one such
/// datagram.
const LONGEST: usize = 65_507;

impl DatagramSocket for crate::UdpSocket {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    async fn readable(&self) -> io::Result<()> {
        self.readable().await
    }

    async fn writable(&self) -> io::Result<()> {
        self.writable().await
    }

    fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.try_recv_from(buf)
    }

    fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.try_send_to(data, to)
    }
}
