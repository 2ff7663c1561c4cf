//! Watches one window with losses, from the first loss to the ACK of the last lost segment.

use std::collections::BTreeSet;
use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_types::{Event, EventKind, ExtSeq, Fate, Instant, NodeId, Observer, Packet, SeqNumber};

/// Returns `count` random segments of a window of `size`.
pub(super) fn draw(seed: u64, count: u64, size: u64) -> BTreeSet<u64> {
    let mut random = Stream::new(seed, count);
    let mut lost = BTreeSet::new();
    while (lost.len() as u64) < count.min(size) {
        lost.insert(random.below(size));
    }
    lost
}

/// Watches the only flow of a chain, whose left end sends, and its recovery from the packets that
/// the link drops.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    sender: NodeId,
    highest: ExtSeq,
    /// The first byte of each dropped segment.
    dropped: BTreeSet<ExtSeq>,
    /// The number of dropped packets: greater than the number of segments if a retransmission was
    /// dropped.
    packets: u64,
    began: Option<Instant>,
    first_back: Option<Instant>,
    last_repair: Option<Instant>,
    /// The time from the first loss to the ACK of the last lost segment.
    pub(super) time: Option<Duration>,
    /// Time-outs during the recovery.
    pub(super) timeouts: u64,
    /// Reductions during the recovery.
    pub(super) reductions: u64,
    /// Retransmissions before the first time-out.
    pub(super) repairs: u64,
}

impl Recovery {
    pub(super) const fn new(sender: NodeId) -> Self {
        Self {
            sender,
            highest: ExtSeq(0),
            dropped: BTreeSet::new(),
            packets: 0,
            began: None,
            first_back: None,
            last_repair: None,
            time: None,
            timeouts: 0,
            reductions: 0,
            repairs: 0,
        }
    }

    /// Returns whether `count` segments of `length` bytes were dropped within one window of
    /// `window` segments, and no retransmission.
    pub(super) fn is_as_drawn(&self, count: u64, window: u64, length: u64) -> bool {
        let (Some(first), Some(last)) = (self.dropped.first(), self.dropped.last()) else {
            return count == 0;
        };
        let are_originals = self.packets == self.dropped.len() as u64;
        are_originals && self.packets == count && last.since(*first).0 < window * length
    }

    /// Returns whether every retransmission left before the ACK of the first one arrived.
    pub(super) fn is_single(&self) -> bool {
        self.timeouts == 0 && self.last_repair < self.first_back
    }

    fn on_dropped(&mut self, at: Instant, packet: &Packet) {
        // The sequence number of a TCP segment in IPv4 without options.
        let Some(seq) = packet.data.get(24..).and_then(|tcp| tcp.first_chunk()) else { return };
        self.began.get_or_insert(at);
        self.packets += 1;
        self.dropped.insert(self.highest.nearest(SeqNumber(u32::from_be_bytes(*seq))));
    }

    fn on_ack(&mut self, at: Instant, ack: ExtSeq) {
        let (Some(began), Some(first), Some(last)) =
            (self.began, self.dropped.first(), self.dropped.last())
        else {
            return;
        };
        if ack > *first {
            self.first_back.get_or_insert(at);
        }
        if ack > *last {
            self.time = Some(at.since(began));
        }
    }
}

impl Observer for Recovery {
    fn on_event(&mut self, node: NodeId, event: &Event) {
        match &event.kind {
            EventKind::Packet { fate: Fate::Dropped { .. }, packet } if node != self.sender => {
                self.on_dropped(event.at, packet);
            }
            _ if node != self.sender || self.time.is_some() => {}
            EventKind::Sent { range, rule, .. } => {
                self.highest = self.highest.max(range.end);
                if rule.is_retransmission() && self.began.is_some() {
                    self.last_repair = Some(event.at);
                    self.repairs += u64::from(self.timeouts == 0);
                }
            }
            EventKind::Received { ack, .. } => self.on_ack(event.at, *ack),
            EventKind::Timeout { .. } if self.began.is_some() => self.timeouts += 1,
            EventKind::Reduced { .. } if self.began.is_some() => self.reductions += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_drawn_as_asked_for() {
        for count in [1, 16, 32] {
            let lost = draw(7, count, 32);
            assert_eq!(lost.len() as u64, count);
            assert!(lost.iter().all(|segment| *segment < 32));
        }
        assert_ne!(draw(7, 16, 32), draw(8, 16, 32));
    }
}
