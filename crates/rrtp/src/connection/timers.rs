//! What happens when nothing does: nobody waits for ever.

use std::time::Duration;

use airtcp_types::Instant;

use super::{Connection, State};
use crate::error::ConnectionError;

/// The longest time between two PINGs of a sender that waits.
const MOST_PATIENCE: Duration = Duration::from_secs(2);
/// A peer with a closed window is asked this often.
const PERSIST: Duration = Duration::from_secs(1);
/// Whoever has everything answers for at least this, and at most ten times as long.
const LEAST_LINGER: Duration = Duration::from_secs(1);
/// So many progress time-outs a connection that nobody holds has in all: what was left of it when it was let go of is some
/// round trips' worth.
const ORPHAN_LIMIT: u32 = 10;
/// PINGs that a dead path alone leaves unanswered, with a probability of 999 in 1000.
const CERTAINTY: f64 = 1e-3;

impl Connection {
    /// So many unanswered PINGs are a dead path: more where much is lost anyway.
    fn stall_after(&self) -> u32 {
        let answered = (1.0 - self.loss_rate.clamp(0.0, 0.9)).powi(2);
        let unanswered = (1.0 - answered).max(1e-6);
        (CERTAINTY.ln() / unanswered.ln()).ceil().clamp(2.0, 12.0) as u32
    }

    pub(super) fn linger(&self) -> Duration {
        (self.rtt.patience() * 3).clamp(LEAST_LINGER, LEAST_LINGER * 10)
    }

    /// When the peer is asked what it has, or whether it is there.
    fn ping_at(&self) -> Instant {
        if self.send.outstanding() > 0 {
            let patience = self.rtt.patience() * (1 << self.pings.min(6));
            let longest = MOST_PATIENCE.max(self.rtt.patience());
            return self.reported.max(self.busy).max(self.pinged) + patience.min(longest);
        }
        let last = self.heard.max(self.spoke);
        if self.send.is_blocked() {
            last + PERSIST.max(self.rtt.patience())
        } else {
            last + self.config.keepalive
        }
    }

    /// When packets that do not get through, or a connection that nobody holds, are given up.
    fn given_up_at(&self) -> Option<Instant> {
        let progress = self.progress.max(self.busy);
        let stuck = (self.send.outstanding() > 0).then(|| progress + self.config.progress_timeout);
        let orphan = self.orphaned.map(|since| {
            let wait = if self.send.is_done() {
                self.config.idle_timeout
            } else {
                self.config.progress_timeout
            };
            // A peer that takes a packet now and then would hold it for hours.
            let last = since + self.config.progress_timeout.saturating_mul(ORPHAN_LIMIT);
            last.min(since.max(self.progress) + wait)
        });
        stuck.into_iter().chain(orphan).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Connecting(handshake) if handshake.is_timed_out(now) => {
                self.close(Some(ConnectionError::HandshakeTimeout));
            }
            State::Lingering(until) if now >= until => self.close(None),
            State::Established if now >= self.heard + self.config.idle_timeout => {
                self.give_up(ConnectionError::TimedOut);
            }
            State::Established if self.given_up_at().is_some_and(|at| now >= at) => {
                self.give_up(ConnectionError::Stalled);
            }
            State::Established if !self.owe_ping && now >= self.ping_at() => {
                self.owe_ping = true;
                if self.send.outstanding() > 0 {
                    self.stalled |= self.pings >= self.stall_after();
                    self.pings += 1;
                }
            }
            _ => {}
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.owe_close.is_some() {
            return Some(Instant::ZERO);
        }
        match self.state {
            State::Connecting(handshake) => Some(handshake.poll_timeout()),
            State::Closed(_) => None,
            State::Established | State::Lingering(_) if self.owe_start_echo || self.owe_ping => {
                Some(Instant::ZERO)
            }
            State::Lingering(until) => {
                Some(self.receive.poll_timeout().map_or(until, |report| report.min(until)))
            }
            State::Established => {
                let report = self.receive.poll_timeout();
                let dead = self.heard + self.config.idle_timeout;
                let rest = [report, self.data_at(), self.given_up_at()].into_iter().flatten();
                rest.chain([dead, self.ping_at()]).min()
            }
        }
    }
}
