//! The one trait of all devices.

use std::collections::VecDeque;
use std::future::Future;
use std::io;

use airtcp_types::{Checksum, Packet};
use airtcp_wire::Layout;

/// What a device does for its user beyond carrying packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Capabilities {
    /// It completes the checksum of a packet marked [`Checksum::Partial`].
    pub checksum_offload: bool,
    /// It cuts a packet that has a `segment_size` into segments, and takes one whose payload is in
    /// its `tail`.
    pub segmentation_offload: bool,
}

impl Capabilities {
    /// Whether a device of these capabilities and this MTU may be handed `packet`.
    ///
    /// Of a super-segment the MTU is for its segments, and the whole may be as long as an IPv4
    /// packet. What the device is to finish has to be TCP or UDP.
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

/// What went through a device, by the names of `ip -s link`, seen from its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets received.
    pub rx_packets: u64,
    /// Their bytes, IP headers included.
    pub rx_bytes: u64,
    /// Receives that failed.
    pub rx_errors: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Their bytes, IP headers included.
    pub tx_bytes: u64,
    /// Packets dropped because the link was down.
    pub tx_dropped: u64,
    /// Packets dropped because the device refused them: malformed, too long, or the device gone.
    pub tx_errors: u64,
}

/// What went through several devices, or queues of one, together.
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

/// Something that IP packets come from and go to.
///
/// A device has one owner that drives it. `readable` and `writable` are cancel-safe and borrow the
/// device only while they wait, so that a `select!` over them and other things can be followed by
/// batch work:
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
    /// The name people know it by, for messages: the interface's for a TUN device.
    fn name(&self) -> &str;

    /// The longest IP packet it carries now, in bytes, IP header included.
    ///
    /// It may change while the device is open, and asking may cost a system call: ask when a
    /// connection opens, not for each packet.
    fn mtu(&self) -> usize;

    /// What it can do beyond carrying packets.
    fn capabilities(&self) -> Capabilities;

    /// What has gone through it so far.
    fn counters(&self) -> Counters;

    /// Waits until [`try_recv`](Device::try_recv) has something to tell: a packet, or an error.
    ///
    /// It may return without there being anything. Cancel-safe.
    ///
    /// # Errors
    /// The runtime is shutting down.
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits until [`try_send`](Device::try_send) may make progress. Cancel-safe.
    ///
    /// Wait for it only after a `try_send` that left packets over; otherwise it returns at once.
    ///
    /// # Errors
    /// The runtime is shutting down.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Appends up to `max` waiting packets to `into` and gives their number, which may be zero.
    ///
    /// # Errors
    /// The device is gone (its interface deleted, the other end dropped) and no packet will ever
    /// come from it again. What arrived before is given first.
    fn try_recv(&mut self, into: &mut Vec<Packet>, max: usize) -> io::Result<usize>;

    /// Takes received packets back once they were worked: a device may use their memory for the
    /// next ones. Nobody has to give any back.
    fn recycle(&mut self, packets: &mut Vec<Packet>) {
        packets.clear();
    }

    /// Sends packets from the front of `packets` until it is empty or the device is full, and gives
    /// the number taken out.
    ///
    /// A packet that the device refuses is counted and dropped, and is in the number. What is left
    /// over waits for [`writable`](Device::writable).
    fn try_send(&mut self, packets: &mut VecDeque<Packet>) -> usize;

    /// Gives back packets that were sent, emptied: who makes the next ones may use their memory. A
    /// device keeps a bounded number, and nobody has to ask for them.
    fn reclaim(&mut self, _into: &mut Vec<Packet>) {}

    /// Waits for the first packet, then appends up to `max` packets to `into` without waiting
    /// again, and gives their number: at least one, unless `max` is zero. Cancel-safe.
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
    /// Cancel-safe: what was not sent is still in `packets`, except that a runtime which is
    /// shutting down ends the wait too.
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
