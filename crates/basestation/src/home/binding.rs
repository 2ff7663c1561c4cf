//! The state of one home address.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airtcp_types::Instant;
use serde::{Deserialize, Serialize};

use super::limit::Limit;

/// Intervals after which a revocation is sent again.
const AGAIN: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];

/// The maximum number of stations that a mobile has left and that may still have to be asked.
const MOST_LEFT: usize = 8;

/// A home address.
#[derive(Debug, Default)]
pub(super) struct Mobile {
    /// The identification of the last accepted request.
    pub(super) last: Option<u64>,
    pub(super) binding: Option<Binding>,
    /// The accepted request that is not in durable storage yet.
    pub(super) pending: Option<Pending>,
    /// The reply that waits for the flow lists of the old station, until this time.
    pub(super) reply: Option<(Instant, Answer)>,
    pub(super) left: Vec<Left>,
    /// Refusals of authentic requests, and replies to repeated ones.
    pub(super) answers: Limit,
}

/// A registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Binding {
    pub(super) care_of: IpAddr,
    /// The station with that address.
    pub(super) station: Option<usize>,
    /// The port from which the request came.
    pub(super) port: u16,
    /// The granted lifetime in seconds.
    pub(super) lifetime: u16,
    pub(super) until: Instant,
    /// The MTU of the path to the care-of address, as far as known. Each request resets it.
    pub(super) mtu: usize,
}

/// An accepted request that is being stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// The number of the snapshot that contains it.
    pub(super) number: u64,
    /// `None` if the mobile ended its registration; that of before if it ended another one.
    pub(super) binding: Option<Binding>,
    pub(super) answer: Answer,
}

/// A reply to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) to: SocketAddr,
    pub(super) code: u8,
    pub(super) lifetime: u16,
    pub(super) identification: u64,
    /// The station that relayed the request, and authenticates the reply.
    pub(super) station: Option<usize>,
}

/// A station that the mobile has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) station: usize,
    /// The request by which the mobile left, or moved on.
    pub(super) identification: u64,
    /// The new care-of address; `None` if there is none.
    pub(super) forward: Option<IpAddr>,
    sent: usize,
    /// When the revocation is sent next; `None` after the last time, or if it is acknowledged.
    pub(super) next: Option<Instant>,
    /// The parts of the flow list that came.
    seen: u128,
}

impl Left {
    /// The number of the revocation (RFC 3543 section 3.3): the seconds of the request's time.
    pub(super) const fn identifier(&self) -> u32 {
        (self.identification >> 32) as u32
    }

    /// Counts a transmission.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.next = AGAIN.get(self.sent).map(|interval| now + *interval);
        self.sent += 1;
    }

    /// Notes a part of the flow list; returns whether it is new. Parts are numbered from 0, and there
    /// are at most 128.
    pub(super) fn on_part(&mut self, part: u8, parts: u8) -> bool {
        if part >= parts || parts > 128 {
            return false;
        }
        let is_new = self.seen & 1 << part == 0;
        self.seen |= 1 << part;
        if self.seen.count_ones() >= parts.into() {
            self.next = None;
        }
        is_new
    }

    /// Asks the station again from the start.
    fn restart(&mut self, now: Instant) {
        (self.sent, self.seen, self.next) = (0, 0, Some(now));
    }
}

impl Mobile {
    /// The registration as stored: with the accepted request.
    pub(super) fn latest(&self) -> Option<&Binding> {
        match &self.pending {
            Some(pending) => pending.binding.as_ref(),
            None => self.binding.as_ref(),
        }
    }

    /// Makes the pending request the registration. Returns the reply and whether a station that the
    /// mobile left may have flow lists.
    pub(super) fn commit(&mut self, now: Instant) -> Option<(Answer, bool)> {
        let Pending { binding, answer, .. } = self.pending.take()?;
        let old = std::mem::replace(&mut self.binding, binding);
        let (forward, station) =
            (binding.map(|new| new.care_of), binding.and_then(|new| new.station));
        self.left.retain(|left| Some(left.station) != station);
        // A station that the mobile left earlier now forwards to the new address.
        for left in &mut self.left {
            if left.forward != forward {
                (left.forward, left.identification) = (forward, answer.identification);
                left.restart(now);
            }
        }
        // A station that relays the request learns by the reply that the mobile ends its registration.
        let knows = |old: &usize| [station, answer.station].contains(&Some(*old));
        let has_left = old.and_then(|old| old.station).filter(|old| !knows(old));
        if let Some(station) = has_left {
            let identification = answer.identification;
            let next = Some(now);
            self.left.retain(|left| left.station != station);
            self.left.push(Left { station, identification, forward, sent: 0, next, seen: 0 });
            if self.left.len() > MOST_LEFT {
                self.left.remove(0);
            }
        }
        Some((answer, has_left.is_some()))
    }

    /// Asks the stations of the current registration's change again, for a repeated request. Those
    /// that are still being asked are not asked more often, however many copies of the request come.
    pub(super) fn ask_again(&mut self, now: Instant) {
        let last = self.last;
        let is_due = |left: &&mut Left| Some(left.identification) == last && left.next.is_none();
        self.left.iter_mut().filter(is_due).for_each(|left| left.restart(now));
    }

    /// The next deadline.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let until = self.binding.as_ref().map(|binding| binding.until);
        let reply = self.reply.as_ref().map(|(at, _)| *at);
        let left = self.left.iter().filter_map(|left| left.next).min();
        [until, reply, left].into_iter().flatten().min()
    }
}

/// What a home agent has to remember over a restart.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The home addresses from which a request was accepted.
    pub mobiles: Vec<Stored>,
}

/// A home address in a [`Snapshot`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// The home address.
    pub address: IpAddr,
    /// The identification of the last accepted request: earlier ones stay refused.
    pub identification: u64,
    /// The registration; `None` if it has ended.
    pub registration: Option<StoredRegistration>,
}

/// A registration in a [`Snapshot`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredRegistration {
    /// The care-of address.
    pub care_of: IpAddr,
    /// The port to which replies go.
    pub port: u16,
    /// The granted lifetime in seconds.
    pub lifetime: u16,
    /// The end, as a [`timestamp`](airtcp_wire::mobility::timestamp).
    pub until: u64,
}
