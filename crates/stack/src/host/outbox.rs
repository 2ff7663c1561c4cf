//! The queue of packets without a connection: RSTs, SYN cookies, ICMP and UDP.

use std::collections::VecDeque;

use airtcp_types::Packet;
use tracing::debug;

use super::is_v6;
use crate::counters::Counters;

/// The maximum number of queued packets.
pub(super) const MAX_WAITING: usize = 256;

/// Queued packets of the host itself. They take turns with those of connections: answers to a flood
/// must not prevent connections from sending.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    packets: VecDeque<Packet>,
    /// Whether the last packet sent came from this queue, so that a connection is next.
    left_last: bool,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.packets.len() >= MAX_WAITING
    }

    /// Whether there is room for another packet. If not, counts the discard.
    pub(super) fn has_room(&self, v4: bool, counters: &mut Counters) -> bool {
        let is_full = self.is_full();
        if is_full {
            debug!("outgoing packet dropped: transmit queue full");
            match v4 {
                true => counters.ip_out_discards += 1,
                false => counters.ip6_out_discards += 1,
            }
        }
        !is_full
    }

    /// Queues a packet. Returns false and drops it if the queue is full.
    pub(super) fn push(&mut self, packet: Packet, counters: &mut Counters) -> bool {
        let room = self.has_room(!is_v6(&packet), counters);
        if room {
            self.packets.push_back(packet);
        }
        room
    }

    /// Takes the next packet, unless the last packet sent came from this queue.
    pub(super) fn pop_in_turn(&mut self) -> Option<Packet> {
        let packet = if self.left_last { None } else { self.packets.pop_front() };
        self.left_last = packet.is_some();
        packet
    }

    /// Takes the next packet when no connection has one.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        self.left_last = true;
        self.packets.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outbox_alternates_and_drops_the_excess() {
        let (mut outbox, mut counters) = (Outbox::default(), Counters::default());
        for first in [0x45, 0x60] {
            while outbox.push(Packet::new(vec![first; 40]), &mut counters) {}
        }
        assert!(outbox.is_full());
        assert_eq!((counters.ip_out_discards, counters.ip6_out_discards), (1, 1));
        assert!(outbox.pop_in_turn().is_some() && outbox.pop_in_turn().is_none());
        assert!(outbox.pop_in_turn().is_some() && outbox.pop().is_some());
        assert!(outbox.pop_in_turn().is_none());
    }
}
