//! The trait of all devices.

use std::collections::VecDeque;
use std::future::Future;
use std::io;

use airtcp_types::{Checksum, Packet};
use airtcp_wire::Layout;

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

/// The counters of a device, with the names of `ip -s link`, from its user's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received, IP headers included.
    pub rx_bytes: u64,
    /// Failed receive calls, and received packets that were dropped as malformed.
    pub rx_errors: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent, IP headers included.
    pub tx_bytes: u64,
    /// Packets dropped because the link was down.
    pub tx_dropped: u64,
    /// Packets dropped because the device refused them: malformed, too long, or the device is gone.
    pub tx_errors: u64,
}

/// Sums the counters of several devices, or of the queues of one.
impl std::iter::Sum for Counters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            rx_packets: sum.rx_packets + one.rx_packets,
            rx_bytes: sum.rx_bytes + one.rx_bytes,
            rx_errors: sum.rx_errors + one.rx_errors,
            tx_packets: sum.tx_packets + one.tx_packets,
            tx_bytes: sum.tx_bytes + one.tx_bytes,
            tx_dropped: sum.tx_dropped + one.tx_dropped,
            tx_errors: sum.tx_errors + one.tx_errors,
        })
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
pub trait Device: Send + Sync + 'static {
    /// The name of the device for messages; for a TUN device, the interface name.
    fn name(&self) -> &str;

    /// The current MTU: the length in bytes of the longest IP packet that the device carries, IP
    /// header included.
    ///
    /// It may change while the device is open, and reading it may cost a system call: call this
    /// when a connection opens, not for each packet.
    fn mtu(&self) -> usize;

    /// The offloads of the device.
    fn capabilities(&self) -> Capabilities;

    /// The counters since the device was opened.
    fn counters(&self) -> Counters;

    /// Waits until [`try_recv`](Device::try_recv) has a packet or an error to return.
    ///
    /// May complete without either. Cancel-safe.
    ///
    /// # Errors
    /// The runtime is shutting down.
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits until [`try_send`](Device::try_send) may make progress. Cancel-safe.
    ///
    /// Call it only after a `try_send` that left packets over; otherwise it returns at once.
    ///
    /// # Errors
    /// The runtime is shutting down.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Appends up to `max` received packets to `into` and returns their number, which may be zero.
    ///
    /// # Errors
    /// The device is gone (its interface was deleted, or the other end dropped), and no further
    /// packet will be received. Packets that arrived before are returned first.
    fn try_recv(&mut self, into: &mut Vec<Packet>, max: usize) -> io::Result<usize>;

    /// Takes back received packets after processing: a device may reuse their memory. Calling it is
    /// optional.
    fn recycle(&mut self, packets: &mut Vec<Packet>) {
        packets.clear();
    }

    /// Sends packets from the front of `packets` until it is empty or the device is full; returns
    /// the number of packets removed.
    ///
    /// A packet that the device refuses is counted, dropped, and included in the number. To send
    /// the rest, wait for [`writable`](Device::writable).
    fn try_send(&mut self, packets: &mut VecDeque<Packet>) -> usize;

    /// Moves sent packets, emptied, to `into`, so that their memory can be reused. A device keeps a
    /// bounded number of them; calling it is optional.
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

    /// Sends all of `packets`, waiting while the device is full.
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
