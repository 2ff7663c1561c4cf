//! The interface of a UDP socket, and batches of datagrams.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

/// Datagrams that are taken, or sent, at a time.
pub(super) const BATCH: usize = 64;
/// Room for a datagram of any length.
const SLOT: usize = 1 << 16;

/// A UDP socket: the kernel's ([`tokio::net::UdpSocket`]), the stack's ([`crate::UdpSocket`]), or
/// what else behaves like one.
///
/// The two batches are for sockets that are faster so, or know when a datagram came.
pub trait DatagramSocket: Send + Sync + 'static {
    /// The address that it is bound to.
    ///
    /// # Errors
    /// The socket is gone.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Waits until there may be a datagram. Cancel-safe.
    ///
    /// # Errors
    /// The socket is gone: whoever waits gives up.
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits until a datagram may be sent. Cancel-safe.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Takes a datagram: how long it is, and where it came from.
    ///
    /// # Errors
    /// `WouldBlock`: there is none.
    fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends a datagram.
    ///
    /// # Errors
    /// `WouldBlock`: not now. Any other: this one cannot be sent, and is given up.
    fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize>;

    /// Takes what is there, as far as there is room in `inbox`.
    ///
    /// # Errors
    /// As [`try_recv_from`](Self::try_recv_from), of the first one.
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

    /// Sends the first of `outbox`, one or more, and says how many; or why the first cannot be.
    ///
    /// # Errors
    /// As [`try_send_to`](Self::try_send_to), of the first one.
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

/// What is in a slot.
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

    /// Slots for further datagrams.
    pub fn slots(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.slots.chunks_exact_mut(SLOT).skip(self.came.len())
    }

    /// The next slot has a datagram of `length` bytes, which came so long ago.
    ///
    /// # Panics
    /// There is no slot left, or none so long.
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

    /// Where each came from, its bytes, and how long ago that was.
    pub(super) fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8], Duration)> {
        let slots = self.slots.chunks_exact(SLOT);
        self.came.iter().zip(slots).map(|(came, slot)| (came.from, &slot[..came.length], came.age))
    }
}

/// A batch of datagrams to send, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// Where each goes, and where it ends.
    going: Vec<(SocketAddr, usize)>,
    /// So many have left.
    left: usize,
}

impl Outbox {
    /// The next datagram: its destination and its bytes.
    pub fn first(&self) -> Option<(SocketAddr, &[u8])> {
        let (to, end) = self.going.get(self.left)?;
        Some((*to, &self.bytes[self.begin()..*end]))
    }

    /// The first ones that go to the same place, are of the same length, but for a shorter last
    /// one, and are not there to measure the path: how many they are, how long, and their bytes.
    /// Segmentation offload is for these.
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

    /// Adds what `write` appends, if it appends a datagram.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Option<SocketAddr>) -> bool {
        let Some(to) = write(&mut self.bytes) else { return false };
        self.going.push((to, self.bytes.len()));
        true
    }

    /// Sends as many as the socket takes; gives how many it refused.
    pub(super) fn send<S: DatagramSocket>(&mut self, socket: &S) -> u64 {
        let mut refused = 0;
        while !self.is_empty() {
            match socket.try_send_batch(self) {
                // None, and no reason: not now.
                Ok(0) => return refused,
                Ok(count) => self.left = self.left.saturating_add(count).min(self.going.len()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return refused,
                Err(error) => {
                    tracing::debug!(%error, to = ?self.first().map(|(to, _)| to), "not sent");
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

/// What a datagram can hold over IPv4: segments are cut out of one.
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
