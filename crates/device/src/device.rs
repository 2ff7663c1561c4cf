//! The trait of all devices, and their offloads.

use std::collections::VecDeque;
use std::future::Future;
use std::io;

use airtcp_types::{Checksum, Packet};
use airtcp_wire::Layout;

use crate::Counters;

/// The offloads of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Capabilities {
    /// The device completes the checksum of a packet marked [`Checksum::Partial`].
    pub checksum_offload: bool,
    /// The device splits a packet that has a `segment_size` into segments, and accepts packets with
    /// payload in `tail`.
    pub segmentation_offload: bool,
}

impl Capabilities {
    /// Whether a device with these capabilities and this MTU accepts `packet`.
    ///
    /// For a super-segment the MTU limits its segments; the whole may be as long as an IPv4 packet.
    /// Only TCP and UDP packets can be offloaded.
    pub(crate) fn allow(self, packet: &Packet, mtu: usize) -> bool {
        let is_partial = packet.checksum == Checksum::Partial;
        let layout = match packet.segment_size {
            None if !is_partial => None,
            _ => Layout::of(&packet.data),
        };
        let fits = match packet.segment_size {
            None => packet.len() <= mtu,
            Some(size) => {
                let longest = layout.map(|layout| layout.payload + usize::from(size));
                size > 0
                    && packet.len() <= usize::from(u16::MAX)
                    && longest.is_some_and(|longest| longest <= mtu)
            }
        };
        let is_plain = packet.segment_size.is_none() && packet.tail.is_empty();
        fits && (is_plain || self.segmentation_offload)
            && (!is_partial || self.checksum_offload && layout.is_some())
    }
}

/// A network device that carries IP packets.
///
/// One owner drives a device. `readable` and `writable` are cancel-safe and borrow the device only
/// while they wait, so batch calls can follow a `select!` over them:
///
/// ```no_run
/// # use airtcp_device::Device;
/// # use airtcp_types::Packet;
/// # use std::collections::VecDeque;
/// async fn reflect<D: Device>(mut device: D) -> std::io::Result<()> {
///     let (mut batch, mut outbox) = (Vec::new(), VecDeque::<Packet>::new());
///     loop {
///         tokio::select! {
///             ready = device.readable() => ready?,
///             // Waited for only while the last `try_send` left something over.
///             ready = device.writable(), if !outbox.is_empty() => ready?,
///         }
///         device.try_recv(&mut batch, 64)?;
///         outbox.extend(batch.drain(..));
///         device.try_send(&mut outbox);
///     }
/// }
/// ```
///
/// # Implement a device
///
/// A device implements the methods without a default body. A stack relies on these rules:
///
/// - **Batches.** `try_recv` and `try_send` never block, and each call handles as many packets as
///   it can, in order. `try_recv` looks at no more than `max` packets, so that a flood does not
///   delay the connections. A malformed packet is counted in `rx_errors` and dropped.
/// - **Wake-ups.** `readable` completes at once while packets wait, even if it completed for them
///   before: the caller may take only some. If it completes without a packet or an error, this
///   costs one turn of the loop; a `readable` that always does so occupies a core. The futures are
///   dropped and created again for every wait, so a wake-up between two waits must end the next
///   one, as with [`tokio::sync::Notify::notify_one`]. One task waits for both.
/// - **Errors.** An error from `readable`, `writable` or `try_recv` ends the stack, and its sockets
///   return that error. Return one only if no further packet will be received. Count a transient
///   error in `rx_errors`, and return `Ok`. Errors while sending are not returned: the packet is
///   counted in `tx_errors` and dropped, and TCP retransmits its data. A device that is gone drops
///   every packet, so that [`send`](Device::send) ends.
/// - **Packets.** A received packet begins with its IP header. Without offload it has
///   [`Checksum::Full`] and an empty `tail`. `try_send` refuses packets that
///   need an offload which [`capabilities`](Device::capabilities) lacks, and may refuse packets
///   longer than the MTU (`Tun` leaves this to the kernel).
/// - **Wrappers.** A device that wraps another also forwards [`recycle`](Device::recycle) and
///   [`reclaim`](Device::reclaim): the defaults free the memory that the inner device would reuse.
///
/// This device sends one packet per datagram over a Unix socket, for example to another process:
///
/// ```
/// use std::collections::VecDeque;
/// use std::io::{self, ErrorKind};
///
/// use airtcp_device::{Capabilities, Counters, Device};
/// use airtcp_types::{Checksum, Packet};
/// use tokio::net::UnixDatagram;
///
/// const MTU: usize = 1500;
///
/// struct Pipe {
///     socket: UnixDatagram,
///     counters: Counters,
/// }
///
/// impl Pipe {
///     fn send_one(&self, packet: &Packet) -> io::Result<usize> {
///         let is_plain = packet.segment_size.is_none()
///             && packet.tail.is_empty()
///             && packet.checksum != Checksum::Partial;
///         if !is_plain || packet.len() > MTU {
///             return Err(ErrorKind::InvalidInput.into());
///         }
///         self.socket.try_send(&packet.data)
///     }
/// }
///
/// impl Device for Pipe {
///     fn name(&self) -> &str {
///         "pipe"
///     }
///     fn mtu(&self) -> usize {
///         MTU
///     }
///     fn capabilities(&self) -> Capabilities {
///         Capabilities::default()
///     }
///     fn counters(&self) -> Counters {
///         self.counters
///     }
///     async fn readable(&self) -> io::Result<()> {
///         self.socket.readable().await
///     }
///     async fn writable(&self) -> io::Result<()> {
///         self.socket.writable().await
///     }
///     fn try_recv(&mut self, into: &mut Vec<Packet>, max: usize) -> io::Result<usize> {
///         let mut buffer = [0; MTU + 1];
///         let before = into.len();
///         for _ in 0..max {
///             match self.socket.try_recv(&mut buffer) {
///                 Ok(length @ 1..=MTU) => {
///                     self.counters.rx_packets += 1;
///                     self.counters.rx_bytes += length as u64;
///                     into.push(Packet::new(buffer[..length].to_vec()));
///                 }
///                 Err(error) if error.kind() == ErrorKind::WouldBlock => break,
///                 // Empty, longer than the MTU, or a transient error.
///                 Ok(_) | Err(_) => self.counters.rx_errors += 1,
///             }
///         }
///         Ok(into.len() - before)
///     }
///     fn try_send(&mut self, packets: &mut VecDeque<Packet>) -> usize {
///         let before = packets.len();
///         while let Some(packet) = packets.front() {
///             match self.send_one(packet) {
///                 Err(error) if error.kind() == ErrorKind::WouldBlock => break,
///                 Err(_) => self.counters.tx_errors += 1,
///                 Ok(length) => {
///                     self.counters.tx_packets += 1;
///                     self.counters.tx_bytes += length as u64;
///                 }
///             }
///             packets.pop_front();
///         }
///         before - packets.len()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> io::Result<()> {
/// let (left, right) = UnixDatagram::pair()?;
/// let [mut left, mut right] =
///     [left, right].map(|socket| Pipe { socket, counters: Counters::default() });
/// let packets = [40, 1501].map(|length| Packet::new(vec![0x45; length]));
/// left.send(&mut packets.into()).await;
/// assert_eq!((left.counters().tx_packets, left.counters().tx_errors), (1, 1));
///
/// let mut batch = Vec::new();
/// assert_eq!(right.recv(&mut batch, 32).await?, 1);
/// assert_eq!(batch[0].len(), 40);
/// # Ok(())
/// # }
/// ```
///
/// With `airtcp`, `Stack::new(left, config)` then runs a stack on it.
pub trait Device: Send + Sync + 'static {
    /// The name of the device for messages; for a TUN device, the interface name.
    fn name(&self) -> &str;

    /// The current MTU: the length in bytes of the longest IP packet that the device carries, IP
    /// header included.
    ///
    /// Reading it may cost a system call. It may change while the device is open; a stack reads it
    /// once, when it starts.
    fn mtu(&self) -> usize;

    /// The offloads of the device, which do not change. `Capabilities::default()` is none.
    fn capabilities(&self) -> Capabilities;

    /// The counters since the device was opened.
    fn counters(&self) -> Counters;

    /// Waits until [`try_recv`](Device::try_recv) has a packet or an error to return.
    ///
    /// Completes at once while packets wait, and may complete without any. Cancel-safe.
    ///
    /// # Errors
    /// The runtime is shutting down, or the device is gone.
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits until [`try_send`](Device::try_send) may make progress. Cancel-safe.
    ///
    /// Call it only after a `try_send` that left packets over; otherwise it returns at once.
    ///
    /// # Errors
    /// The runtime is shutting down, or the device is gone.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Appends up to `max` received packets to `into` and returns their number, which may be zero.
    ///
    /// # Errors
    /// The device is gone (its interface was deleted, or the other end dropped), and no further
    /// packet will be received. Packets that arrived before are returned first.
    fn try_recv(&mut self, into: &mut Vec<Packet>, max: usize) -> io::Result<usize>;

    /// Takes back received packets after processing, and leaves `packets` empty: a device may reuse
    /// their memory. Calling it is optional. The default frees them.
    fn recycle(&mut self, packets: &mut Vec<Packet>) {
        packets.clear();
    }

    /// Sends packets from the front of `packets` until it is empty or the device is full; returns
    /// the number of packets removed.
    ///
    /// A packet that the device refuses, or cannot send because its link is down or it is gone, is
    /// counted, dropped, and included in the number. To send the rest, wait for
    /// [`writable`](Device::writable).
    fn try_send(&mut self, packets: &mut VecDeque<Packet>) -> usize;

    /// Moves sent packets, emptied, to `into`, so that their memory can be reused. A device keeps a
    /// bounded number of them; calling it is optional. The default moves none.
    fn reclaim(&mut self, _into: &mut Vec<Packet>) {}

    /// Waits for the first packet, then appends up to `max` packets to `into` without waiting
    /// again; returns their number: at least one, unless `max` is zero. Cancel-safe.
    ///
    /// # Errors
    /// As [`try_recv`](Device::try_recv).
    fn recv(
        &mut self,
        into: &mut Vec<Packet>,
        max: usize,
    ) -> impl Future<Output = io::Result<usize>> + Send {
        async move {
            loop {
                let received = self.try_recv(into, max)?;
                if received > 0 || max == 0 {
                    return Ok(received);
                }
                self.readable().await?;
            }
        }
    }

    /// Sends all of `packets`, waiting while the device is full. Packets that the device refuses
    /// are dropped, as by [`try_send`](Device::try_send).
    ///
    /// Cancel-safe: unsent packets remain in `packets`. They also remain there if the runtime shuts
    /// down, which ends the wait.
    fn send(&mut self, packets: &mut VecDeque<Packet>) -> impl Future<Output = ()> + Send {
        async move {
            loop {
                self.try_send(packets);
                if packets.is_empty() || self.writable().await.is_err() {
                    return;
                }
            }
        }
    }
}
