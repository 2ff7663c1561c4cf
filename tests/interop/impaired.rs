//! A device that loses, duplicates and reorders packets, with a seed.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use airtcp_device::{Capabilities, Counters, Device};
use airtcp_types::Packet;
use airtcp_types::rng::Stream;

/// The probabilities of impairments, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Impairment {
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    /// The packet is held back until three later packets have passed.
    pub(crate) reorder: f64,
    pub(crate) seed: u64,
}

/// Counts the impairments.
#[derive(Default)]
pub(crate) struct Harm {
    lost: AtomicU64,
    duplicated: AtomicU64,
    overtaken: AtomicU64,
}

pub(crate) struct HarmDone {
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    pub(crate) overtaken: u64,
}

impl Harm {
    pub(crate) fn done(&self) -> HarmDone {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HarmDone {
            lost: load(&self.lost),
            duplicated: load(&self.duplicated),
            overtaken: load(&self.overtaken),
        }
    }
}

/// One direction.
struct Way {
    impairment: Impairment,
    stream: Stream,
    /// A packet that is held back, and the number of packets that must still overtake it.
    held: Option<(Packet, u8)>,
    harm: Arc<Harm>,
}

impl Way {
    fn pass(&mut self, packet: Packet, mut out: impl FnMut(Packet)) {
        let Impairment { loss, duplicate, reorder, .. } = self.impairment;
        if self.stream.chance(loss) {
            self.harm.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if self.held.is_none() && self.stream.chance(reorder) {
            self.held = Some((packet, 3));
            return;
        }
        if self.stream.chance(duplicate) {
            self.harm.duplicated.fetch_add(1, Ordering::Relaxed);
            out(packet.clone());
        }
        out(packet);
        if let Some((held, left)) = self.held.take() {
            if left > 1 {
                self.held = Some((held, left - 1));
            } else {
                self.harm.overtaken.fetch_add(1, Ordering::Relaxed);
                out(held);
            }
        }
    }
}

/// A device with impairments.
pub(crate) struct Impaired<D> {
    device: D,
    inward: Way,
    outward: Way,
    received: Vec<Packet>,
    /// Impaired packets that the device has not taken yet.
    outbox: VecDeque<Packet>,
}

impl<D: Device> Impaired<D> {
    pub(crate) fn new(device: D, impairment: Impairment, harm: Arc<Harm>) -> Self {
        let way = |cause| Way {
            impairment,
            stream: Stream::new(impairment.seed, cause),
            held: None,
            harm: Arc::clone(&harm),
        };
        Self {
            device,
            inward: way(0),
            outward: way(1),
            received: Vec::new(),
            outbox: VecDeque::new(),
        }
    }
}

impl<D: Device> Device for Impaired<D> {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn mtu(&self) -> usize {
        self.device.mtu()
    }

    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    fn counters(&self) -> Counters {
        self.device.counters()
    }

    async fn readable(&self) -> io::Result<()> {
        self.device.readable().await
    }

    async fn writable(&self) -> io::Result<()> {
        self.device.writable().await
    }

    fn try_recv(&mut self, into: &mut Vec<Packet>, max: usize) -> io::Result<usize> {
        let before = into.len();
        self.device.try_recv(&mut self.received, max)?;
        for packet in self.received.drain(..) {
            self.inward.pass(packet, |packet| into.push(packet));
        }
        Ok(into.len() - before)
    }

    fn try_send(&mut self, packets: &mut VecDeque<Packet>) -> usize {
        let taken = packets.len();
        for packet in packets.drain(..) {
            self.outward.pass(packet, |packet| self.outbox.push_back(packet));
        }
        self.device.try_send(&mut self.outbox);
        taken
    }
}
