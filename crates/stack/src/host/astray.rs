//! Packets that reached the wrong one of several hosts with the same addresses.
//!
//! Who spreads packets over such hosts, as the queues of a TUN device do, looks at both ends'
//! ports. Fragments have none, ICMP errors are about a flow and not of it, and a connection that
//! was opened here may be looked for elsewhere once it has been silent. So what is nobody's here is
//! handed to the next host, and from there on, until one knows it. The last one answers for all:
//! with a RST, or as it would if it were alone.

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
/// Each has connections, listeners and limits of its own, and chooses ports that no other one does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Its number, from 0.
    pub index: u16,
    /// The number of siblings.
    pub of: u16,
}

impl Default for Share {
    /// There is no other.
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

impl Share {
    /// How many others there are.
    pub(super) const fn siblings(self) -> u16 {
        self.of.saturating_sub(1)
    }

    /// Whether it may choose this port.
    pub(super) const fn has_port(self, port: u16) -> bool {
        self.of < 2 || port % self.of == self.index
    }
}

/// A packet for the next sibling.
#[derive(Clone, Debug)]
pub struct Astray {
    packet: Packet,
    /// How many siblings will not have seen it then.
    left: u16,
}

impl Astray {
    /// The packet for the sibling after next, to skip a sibling that has ended; `None` if there is
    /// none.
    pub fn passed(self) -> Option<Self> {
        Some(Self { left: self.left.checked_sub(1)?, ..self })
    }
}

/// The other hosts with the same addresses.
#[derive(Debug)]
pub(super) struct Siblings {
    share: Share,
    /// Packets for the next one.
    astray: VecDeque<Astray>,
    /// How many have not seen the packet that is being worked.
    unasked: u16,
}

impl Siblings {
    pub(super) const fn new(share: Share) -> Self {
        Self { share, astray: VecDeque::new(), unasked: share.siblings() }
    }

    /// Hands a packet to the next one; `None` if all of them have seen it, else whether there was
    /// room.
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
    /// The next packet for the sibling after this one, if there is one.
    pub fn poll_astray(&mut self) -> Option<Astray> {
        self.siblings.astray.pop_front()
    }

    /// Handles a packet that matched no socket at the previous sibling.
    pub fn on_astray(&mut self, now: Instant, Astray { packet, left }: Astray) {
        let tail = packet.len() - packet.data.len();
        // It was read before.
        let Ok(datagram) = ip::parse_head(&packet.data, tail) else { return };
        self.siblings.unasked = left;
        self.on_datagram(now, &datagram, &packet);
        self.siblings.unasked = self.siblings.share.siblings();
    }

    /// Counts packets that could not be handed over.
    pub fn on_astray_lost(&mut self, packets: u64) {
        debug!(packets, "packets for a sibling are dropped: too many wait there, or it has ended");
        self.counters.ip_ext_hand_over_drops += packets;
    }

    /// Hands a packet that was delivered to the next sibling; false if all of them have seen it.
    pub(super) fn pass_on(&mut self, packet: &Packet) -> bool {
        let Some(has_room) = self.siblings.pass_on(packet) else { return false };
        // Whoever takes it counts it.
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

    /// Whether a segment without a connection may be a sibling's: it opens none here, at the
    /// listener of its port.
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
                // What may follow a cookie that was turned away is not to reach one who would send
                // a RST.
                self.read_cookie(now, flow, segment).is_none()
                    && !self.would_turn_away(id, flow.remote.ip())
            }
            Some(_) => true,
        }
    }

    /// Whether a message is an error about what nobody here can have sent.
    pub(super) fn is_about_nobody(&self, message: Message<'_>) -> bool {
        let Message::Error { quoted, .. } = message else { return false };
        icmp::parse_quote(quoted).is_some_and(|quote| match quote.protocol {
            ip::UDP => self.udp_at(quote.flow.local).is_none(),
            _ => !self.flows.contains_key(&quote.flow),
        })
    }
}
