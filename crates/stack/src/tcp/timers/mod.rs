//! Timers of a connection.

mod keep_alive;

use std::time::Duration;

use airtcp_types::Instant;
use tracing::debug;

use crate::counters::Counters;

use super::close::Ended;
use super::{Connection, State, TcpError};

pub use keep_alive::KeepAlive;
pub(super) use keep_alive::Watch;

/// The number of consecutive time-outs or unanswered probes after which the peer counts as gone
/// (Linux's `tcp_retries2`), and the same for a connection that the application has closed
/// (`tcp_orphan_retries`).
const MAX_SILENCE: u32 = 15;
const MAX_ORPHAN_SILENCE: u32 = 8;
/// The idle time after which a connection frees the memory that it keeps to avoid allocations.
pub(super) const REST: Duration = Duration::from_secs(1);

impl Connection {
    /// Handles all timers that are due at `now`.
    pub fn on_timeout(&mut self, now: Instant, counters: &mut Counters) {
        if self.state == State::Closed {
            return;
        }
        if let Some(wait) = self.closing.on_timeout(now, self.state) {
            match wait {
                Ended::TimeWait => counters.tcp_ext_tw += 1,
                Ended::FinWait2 => {}
                Ended::Overdue => {
                    debug!(remote = %self.flow.remote, "linger time expired: sending RST");
                    counters.tcp_ext_abort_on_linger += 1;
                    self.abort(now);
                    return;
                }
            }
            self.retire(now);
            self.set_state(State::Closed);
            return;
        }
        self.on_handshake_timeout(now, counters);
        if self.acks.on_timeout(now) {
            counters.tcp_ext_delayed_acks += 1;
            self.schedule_ack(None);
        }
        self.on_withholding_timeout(now, counters);
        self.on_sender_timeout(now, counters);
        self.send.on_hold_timeout(now);
        self.send.on_persist_timeout(now);
        self.check_patience(now, counters);
        self.on_keep_alive_timeout(now, counters);
        if self.rest_at().is_some_and(|at| at <= now) {
            self.shrink();
        }
    }

    /// The time at which a connection with nothing outstanding frees the memory that it keeps to
    /// avoid an allocation per segment.
    pub(super) fn rest_at(&self) -> Option<Instant> {
        let can = self.send.can_shrink() || self.receive.can_shrink() || self.acks.can_shrink();
        (can && !self.send.is_outstanding()).then(|| self.send.progress_at() + REST)
    }

    fn shrink(&mut self) {
        self.send.shrink();
        self.receive.shrink();
        self.acks.shrink();
    }

    fn on_sender_timeout(&mut self, now: Instant, counters: &mut Counters) {
        let timed_out = self.send.on_sender_timeout(now);
        self.collect_events();
        if timed_out {
            counters.tcp_ext_timeouts += 1;
            self.check_black_hole(now, counters);
        }
    }

    /// Ends the connection after R2 (RFC 9293 section 3.8.3), or after the user timeout instead.
    fn check_patience(&mut self, now: Instant, counters: &mut Counters) {
        let limit = if self.closing.is_orphan() { MAX_ORPHAN_SILENCE } else { MAX_SILENCE };
        let gone = match self.user_timeout_at() {
            Some(at) => at <= now,
            None => self.send.silence() > limit,
        };
        if gone {
            self.give_up(now, counters);
        } else if self.closing.is_orphan() && self.send.is_shut(limit) {
            // RFC 6429 section 4: no application would end the connection, and the peer alone must
            // not decide how long its memory is held.
            debug!(remote = %self.flow.remote, "orphaned connection aborted: zero window");
            counters.tcp_ext_abort_on_timeout += 1;
            self.reset_peer(now);
            self.closing.on_error(TcpError::TimedOut);
        }
    }

    fn user_timeout_at(&self) -> Option<Instant> {
        let waiting = self.handshake.is_some() || self.send.is_waiting();
        let limit = self.user_timeout.filter(|_| waiting)?;
        Some(self.send.progress_at() + limit)
    }

    /// The next deadline for [`on_timeout`](Self::on_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.state == State::Closed {
            return None;
        }
        [
            self.closing.deadline(),
            self.handshake.as_ref().map(|handshake| handshake.deadline()),
            self.acks.timer(),
            self.withholding.as_ref().and_then(|withholding| withholding.deadline()),
            self.send.deadline(),
            self.user_timeout_at(),
            self.keep_alive_at(),
            self.rest_at(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Enables keep-alive; `None`, the default, disables it.
    pub fn set_keep_alive(&mut self, now: Instant, settings: Option<KeepAlive>) {
        self.keep_alive = settings.map(|settings| Box::new(Watch::new(now, settings)));
    }

    /// The keep-alive settings.
    pub fn keep_alive(&self) -> Option<KeepAlive> {
        self.keep_alive.as_ref().map(|watch| watch.settings())
    }

    /// Records that a segment from the peer has arrived.
    pub(super) fn on_received(&mut self, now: Instant) {
        if let Some(watch) = &mut self.keep_alive {
            watch.on_received(now);
        }
    }

    /// The time of the next keep-alive probe, or of the end of the connection, if the connection is
    /// idle.
    fn keep_alive_at(&self) -> Option<Instant> {
        self.keep_alive.as_ref().filter(|_| self.is_idle()).map(|watch| watch.deadline())
    }

    /// Whether only a probe could show that the peer is gone.
    fn is_idle(&self) -> bool {
        let open = matches!(self.state, State::Established | State::CloseWait | State::FinWait2);
        open && !self.send.is_waiting()
    }

    fn on_keep_alive_timeout(&mut self, now: Instant, counters: &mut Counters) {
        let (idle, limit) = (self.is_idle(), self.user_timeout);
        let watch = self.keep_alive.as_mut().filter(|_| idle);
        if watch.is_some_and(|watch| watch.on_timeout(now, limit)) {
            // As Linux: if the peer still exists after all, the RST informs it.
            self.send_rst();
            self.give_up(now, counters);
        }
    }

    /// Whether a keep-alive probe is due; clears it.
    pub(super) fn take_keep_alive(&mut self) -> bool {
        let idle = self.is_idle();
        self.keep_alive.as_mut().is_some_and(|watch| watch.take_probe()) && idle
    }
}
