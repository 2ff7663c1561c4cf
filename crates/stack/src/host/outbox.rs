//! Queue of packets without a connection: RSTs, SYN cookies, ICMP and UDP.

use std::collections::VecDeque;

use airtcp_types::Packet;
use tracing::debug;

use super::is_v6;
use crate::counters::Counters;

/// How many may wait to leave.
pub(super) const MAX_WAITING: usize = 256;

/// Those that wait to leave, in turns with the connections': answers to a flood must not keep
/// connections from sending.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    packets: VecDeque<Packet>,
    /// One of them left last: a connection's turn is next.
    left_last: bool,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.packets.len() >= MAX_WAITING
    }

    /// Whether one more may wait; counts that it cannot.
    pub(super) fn has_room(&self, v4: bool, counters: &mut Counters) -> bool {
        let is_full = self.is_full();
        if is_full {
            debug!("a packet of the host's own is not sent: too many wait to leave");
            match v4 {
                true => counters.ip_out_discards += 1,
                false => counters.ip6_out_discards += 1,
            }
        }
        !is_full
    }

    /// Has a packet wait; false if too many do, and it is dropped.
    pub(super) fn push(&mut self, packet: Packet, counters: &mut Counters) -> bool {
        let room = self.has_room(!is_v6(&packet), counters);
        if room {
            self.packets.push_back(packet);
        }
        room
    }

    /// The next packet, if none left last.
    pub(super) fn pop_in_turn(&mut self) -> Option<Packet> {
        let packet = if self.left_last { None } else { self.packets.pop_front() };
        self.left_last = packet.is_some();
        packet
    }

    /// The next packet, as no connection has one.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        self.left_last = true;
        self.packets.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_turns_and_drops_what_is_too_much() {
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
