//! The reports of a foreign agent, and the question of a new station to the old one.

use std::net::IpAddr;
use std::time::Duration;

use airtcp_types::Instant;

use super::{Handoff, HandoffState, Role};
use crate::home::{Change, Visited};

/// The time until the old station is asked again.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How long the items of an old station wait for the question. The home agent delays the reply, by
/// which the new station learns that the mobile is there, by at most 250 ms.
const WAIT_FOR_QUESTION: Duration = Duration::from_millis(500);

impl Handoff {
    /// Asks the old station of a mobile that [arrives](Self::arrive) for what it has, until it
    /// answers or fresh packets no longer wait.
    pub fn ask(&mut self, now: Instant, home: IpAddr) {
        if matches!(self.state(home), Some((_, HandoffState::Arriving))) {
            self.set_question(home, Some(now + ASK_AGAIN), true);
        }
    }

    /// Changes when the question for a mobile is due, and whether it is asked now. Sends what is due.
    pub(super) fn set_question(&mut self, home: IpAddr, at: Option<Instant>, asks: bool) {
        if let Some(mobile) = self.mobiles.get_mut(&home) {
            (mobile.question, mobile.asks) = (at, asks);
            self.ready.insert(home);
            self.schedule(home);
        }
    }

    /// Processes the question of a station where a mobile is: the mobile has left this one.
    pub(super) fn on_question(&mut self, now: Instant, from: IpAddr, home: IpAddr, epoch: u64) {
        let is_there = self.depart(now, home, epoch, from, None).is_ok()
            && match self.mobiles.get(&home).map(|mobile| &mobile.role) {
                Some(Role::Left(Some(export))) => export.to == from,
                // Everything has been sent, or dropped.
                Some(Role::Left(None)) => true,
                _ => false,
            };
        match is_there {
            true => self.set_question(home, None, false),
            false => self.counters.stale += 1,
        }
    }

    /// Drops the flows of a mobile that has left for a place without a station of the settings.
    fn discard(&mut self, now: Instant, home: IpAddr, epoch: u64) {
        if !matches!(self.is_new(home, epoch, None, false), Ok(true)) {
            self.counters.ignored += 1;
            return;
        }
        self.counters.discarded += 1;
        self.forget(home);
        self.station.part_with(now, home);
        self.insert(home, epoch, Role::Left(None));
    }

    /// A mobile has registered through this station. The home agent names the station that it has
    /// left if that is not this one.
    fn on_arrived(&mut self, now: Instant, home: IpAddr, epoch: u64, previous: Option<IpAddr>) {
        let from = previous.filter(|station| self.peers.contains_key(station));
        let state = self.state(home).map(|(_, state)| state);
        let is_here = matches!(state, Some(HandoffState::Arriving | HandoffState::Here));
        if is_here && previous.is_none() {
            return;
        }
        match self.arrive(now, home, epoch, from) {
            Ok(()) => self.ask(now, home),
            Err(_) => self.counters.ignored += 1,
        }
    }
}

impl Visited for Handoff {
    fn on_change(&mut self, now: Instant, home: IpAddr, change: Change) {
        match change {
            Change::Arrived { epoch, previous } => self.on_arrived(now, home, epoch, previous),
            Change::Left { epoch, to } => match to.filter(|to| self.peers.contains_key(to)) {
                Some(to) => {
                    let question = Some(now + WAIT_FOR_QUESTION);
                    let is_known = self.depart(now, home, epoch, to, question).is_ok();
                    self.counters.ignored += u64::from(!is_known);
                }
                None => self.discard(now, home, epoch),
            },
        }
    }

    fn on_station(&mut self, now: Instant, from: IpAddr, message: &[u8]) -> bool {
        let is_station = self.peers.contains_key(&from);
        if is_station {
            self.handle_message(now, from, message);
        }
        is_station
    }

    fn poll_station(&mut self, now: Instant) -> Option<(IpAddr, Vec<u8>)> {
        self.poll_message(now)
    }

    fn sends_after(&self, home: IpAddr) -> bool {
        let role = self.mobiles.get(&home).map(|mobile| &mobile.role);
        matches!(role, Some(Role::Left(Some(_))))
    }
}
