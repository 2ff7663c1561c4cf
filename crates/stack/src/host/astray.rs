//! Packets that reached the wrong one of several hosts with the same addresses.
//!
//! A device that distributes packets over such hosts, as the queues of a TUN device do, looks at
//! the ports of both ends. Fragments have no ports, ICMP errors do not belong to the flow that they
//! report, and the distribution of a connection that was silent may change. A packet that matches
//! nothing here is therefore passed to the next host, and from there on, until a host knows it. The
//! last host answers as if it were the only one, for example with a RST.

use std::collections::VecDeque;

use airtcp_types::{FlowId, Instant, Packet};
use airtcp_wire::icmp::{self, Message};
use airtcp_wire::ip;
use airtcp_wire::tcp::Segment;
use tracing::debug;

use super::outbox::MAX_WAITING;
use super::{Host, SocketId, is_v6};

/// The position of a host among siblings with the same addresses and the same secret.
///
/// Each sibling has connections, listeners and limits of its own, and chooses ports that no other
/// sibling chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The index of this host, from 0.
    pub index: u16,
    /// The number of hosts that share the addresses, including this one.
    pub of: u16,
}

impl Default for Share {
    /// A single host without siblings.
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

impl Share {
    /// The number of other hosts.
    pub(super) const fn siblings(self) -> u16 {
        self.of.saturating_sub(1)
    }

    /// Whether this host may choose this port.
    pub(super) const fn has_port(self, port: u16) -> bool {
        self.of < 2 || port % self.of == self.index
    }
}

/// A packet for the next sibling.
#[derive(Clone, Debug)]
pub struct Astray {
    packet: Packet,
    /// The number of siblings that will not have seen it then.
    left: u16,
}

impl Astray {
    /// Passes the packet on to the sibling after next, to skip a sibling that has ended; `None` if
    /// there is none.
    pub fn passed(self) -> Option<Self> {
        Some(Self { left: self.left.checked_sub(1)?, ..self })
    }
}

/// The other hosts with the same addresses.
#[derive(Debug)]
pub(super) struct Siblings {
    share: Share,
    /// Packets for the next sibling.
    astray: VecDeque<Astray>,
    /// The number of siblings that have not seen the current packet.
    unasked: u16,
}

impl Siblings {
    pub(super) const fn new(share: Share) -> Self {
        Self { share, astray: VecDeque::new(), unasked: share.siblings() }
    }

    /// Passes a packet to the next sibling. `None` if all siblings have seen it; otherwise whether
    /// the queue had room.
    fn pass_on(&mut self, packet: &Packet) -> Option<bool> {
        let left = self.unasked.checked_sub(1)?;
        let has_room = self.astray.len() < MAX_WAITING;
        if has_room {
            self.astray.push_back(Astray { packet: packet.clone(), left });
        }
        Some(has_room)
    }
}

impl Host {
    /// Returns the next packet for the sibling after this one.
    pub fn poll_astray(&mut self) -> Option<Astray> {
        self.siblings.astray.pop_front()
    }

    /// Handles a packet that matched no socket at the previous sibling.
    pub fn on_astray(&mut self, now: Instant, Astray { packet, left }: Astray) {
        let tail = packet.len() - packet.data.len();
        // The previous sibling has already parsed it.
        let Ok(datagram) = ip::parse_head(&packet.data, tail) else { return };
        self.siblings.unasked = left;
        self.on_datagram(now, &datagram, &packet);
        self.siblings.unasked = self.siblings.share.siblings();
    }

    /// Counts packets that could not be handed over.
    pub fn on_astray_lost(&mut self, packets: u64) {
        debug!(packets, "packets for the next sibling dropped: queue full, or sibling ended");
        self.counters.ip_ext_hand_over_drops += packets;
    }

    /// Passes a packet that was delivered to the next sibling; returns false if all have seen it.
    pub(super) fn pass_on(&mut self, packet: &Packet) -> bool {
        let Some(has_room) = self.siblings.pass_on(packet) else { return false };
        // The sibling that takes the packet counts it.
        match is_v6(packet) {
            true => self.counters.ip6_in_delivers -= 1,
            false => self.counters.ip_in_delivers -= 1,
        }
        match has_room {
            true => self.counters.ip_ext_handed_over += 1,
            false => self.on_astray_lost(1),
        }
        true
    }

    /// Whether a segment without a connection may belong to a sibling: it does not open a
    /// connection at this host's listener.
    pub(super) fn is_astray(
        &mut self,
        now: Instant,
        listener: Option<SocketId>,
        flow: &FlowId,
        segment: &Segment<'_>,
    ) -> bool {
        let flags = segment.flags;
        match listener {
            _ if self.siblings.unasked == 0 => false,
            None => true,
            Some(_) if flags.syn && !flags.ack && !flags.rst => false,
            Some(id) if flags.ack && !flags.syn && !flags.rst && self.sends_cookies(now, id) => {
                // A sibling would answer with a RST a segment that may follow a cookie whose
                // connection was refused.
                self.read_cookie(now, flow, segment).is_none()
                    && !self.would_turn_away(id, flow.remote.ip())
            }
            Some(_) => true,
        }
    }

    /// Whether a message is an ICMP error about a packet that no socket of this host can have sent.
    pub(super) fn matches_no_socket(&self, message: Message<'_>) -> bool {
        let Message::Error { quoted, .. } = message else { return false };
        icmp::parse_quote(quoted).is_some_and(|quote| match quote.protocol {
            ip::UDP => self.udp_at(quote.flow.local).is_none(),
            _ => !self.flows.contains_key(&quote.flow),
        })
    }
}
