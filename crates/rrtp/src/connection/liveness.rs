//! Ends connections without progress, so that no application waits forever.

use std::time::Duration;

use airtcp_types::Instant;

use crate::config::Config;
use crate::error::ConnectionError;
use crate::send::Awaits;

/// The longest interval between PINGs of a sender that waits for reports, unless the probe time-out
/// is longer.
const MAX_PING_INTERVAL: Duration = Duration::from_secs(2);
/// The interval of PINGs to a peer with a closed window.
const PERSIST: Duration = Duration::from_secs(1);
/// The maximum lifetime of a released connection, in progress time-outs: at its release it holds at
/// most a few round trips' worth of data.
const ORPHAN_LIMIT: u32 = 10;
/// The probability with which a working path leaves all PINGs unanswered before the path counts as
/// dead.
const FALSE_STALL: f64 = 1e-3;

/// The inputs of the time-outs.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) awaits: Awaits,
    /// The probe time-out (RFC 9002 section 6.2): a sender that receives nothing for this long
    /// sends a PING.
    pub(super) pto: Duration,
    /// The loss rate.
    pub(super) loss_rate: f64,
}

/// The liveness of the peer and the path.
#[derive(Clone, Debug)]
pub(super) struct Liveness {
    keepalive: Duration,
    idle_timeout: Duration,
    progress_timeout: Duration,
    /// The times at which any packet, and a report, last arrived.
    last_received: Instant,
    last_report: Instant,
    last_sent: Instant,
    /// The time since when packets are in flight, and the last time at which one was acknowledged.
    in_flight_since: Instant,
    last_progress: Instant,
    last_ping: Instant,
    /// The number of PINGs without an answer.
    unanswered_pings: u32,
    ping_owed: bool,
    stalled: bool,
    /// The time at which the application released the connection.
    orphaned: Option<Instant>,
}

impl Liveness {
    pub(super) const fn new(now: Instant, config: &Config) -> Self {
        Self {
            keepalive: config.keepalive,
            idle_timeout: config.idle_timeout,
            progress_timeout: config.progress_timeout,
            last_received: now,
            last_report: now,
            last_sent: now,
            in_flight_since: now,
            last_progress: now,
            last_ping: now,
            unanswered_pings: 0,
            ping_owed: false,
            stalled: false,
            orphaned: None,
        }
    }

    pub(super) const fn on_established(&mut self, now: Instant) {
        (self.last_received, self.last_report, self.last_sent) = (now, now, now);
    }

    /// Handles a packet of an established connection.
    pub(super) const fn on_packet(&mut self, now: Instant) {
        self.last_received = now;
    }

    /// Handles a report; returns whether it ends a stall. `progress`: it acknowledges new packets.
    pub(super) const fn on_report(&mut self, now: Instant, progress: bool) -> bool {
        self.last_report = now;
        if progress {
            self.last_progress = now;
        }
        self.unanswered_pings = 0;
        std::mem::replace(&mut self.stalled, false)
    }

    /// Handles a sent packet; `alone`: it is a data packet, and no other is in flight or lost.
    pub(super) const fn on_sent(&mut self, now: Instant, alone: bool) {
        self.last_sent = now;
        if alone {
            self.in_flight_since = now;
        }
    }

    /// Handles the release by the application.
    pub(super) const fn on_release(&mut self, now: Instant) {
        self.orphaned = Some(now);
    }

    pub(super) const fn is_orphaned(&self) -> bool {
        self.orphaned.is_some()
    }

    /// Whether the path seems dead: data waits until a PING is answered.
    pub(super) const fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Whether a PING has to be sent now.
    pub(super) const fn poll_ping(&mut self, now: Instant) -> bool {
        if self.ping_owed {
            (self.ping_owed, self.last_ping) = (false, now);
            return true;
        }
        false
    }

    pub(super) const fn is_ping_owed(&self) -> bool {
        self.ping_owed
    }

    /// Runs the timers; returns the error that ends the connection, if any.
    pub(super) fn handle_timeout(&mut self, now: Instant, view: View) -> Option<ConnectionError> {
        if now >= self.last_received + self.idle_timeout {
            return Some(ConnectionError::TimedOut);
        }
        if self.given_up_at(view).is_some_and(|at| now >= at) {
            return Some(ConnectionError::Stalled);
        }
        if !self.ping_owed && now >= self.ping_at(view) {
            self.ping_owed = true;
            if view.awaits == Awaits::Reports {
                self.stalled |= self.unanswered_pings >= pings_until_stall(view.loss_rate);
                self.unanswered_pings += 1;
            }
        }
        None
    }

    pub(super) fn poll_timeout(&self, view: View) -> Instant {
        let ends = (self.last_received + self.idle_timeout).min(self.ping_at(view));
        self.given_up_at(view).map_or(ends, |at| at.min(ends))
    }

    /// Returns when the next PING is due.
    fn ping_at(&self, view: View) -> Instant {
        let last = self.last_received.max(self.last_sent);
        match view.awaits {
            Awaits::Reports => {
                let interval = view.pto * (1 << self.unanswered_pings.min(6));
                let longest = MAX_PING_INTERVAL.max(view.pto);
                self.last_report.max(self.in_flight_since).max(self.last_ping)
                    + interval.min(longest)
            }
            Awaits::Room => last + PERSIST.max(view.pto),
            Awaits::Data | Awaits::Nothing => last + self.keepalive,
        }
    }

    /// Returns when a connection without progress, or a released one, has to end.
    fn given_up_at(&self, view: View) -> Option<Instant> {
        let progress = self.last_progress.max(self.in_flight_since);
        let stuck = (view.awaits == Awaits::Reports).then(|| progress + self.progress_timeout);
        let orphan = self.orphaned.map(|since| {
            let done = view.awaits == Awaits::Nothing;
            let wait = if done { self.idle_timeout } else { self.progress_timeout };
            // Otherwise a peer that accepts a packet now and then would hold the connection for
            // hours.
            let last = since + self.progress_timeout.saturating_mul(ORPHAN_LIMIT);
            last.min(since.max(self.last_progress) + wait)
        });
        stuck.into_iter().chain(orphan).min()
    }
}

/// Returns the number of unanswered PINGs that mean a dead path: more at a higher loss rate.
fn pings_until_stall(loss_rate: f64) -> u32 {
    let answered = (1.0 - loss_rate.clamp(0.0, 0.9)).powi(2);
    let unanswered = (1.0 - answered).max(1e-6);
    (FALSE_STALL.ln() / unanswered.ln()).ceil().clamp(2.0, 12.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    const fn view(awaits: Awaits) -> View {
        View { awaits, pto: Duration::from_millis(300), loss_rate: 0.0 }
    }

    fn liveness() -> Liveness {
        Liveness::new(at(0), &Config::default())
    }

    /// Runs the next deadline and sends its PING.
    fn ping(liveness: &mut Liveness, view: View) -> Instant {
        let now = liveness.poll_timeout(view);
        assert_eq!(liveness.handle_timeout(now, view), None);
        assert!(liveness.is_ping_owed() && liveness.poll_ping(now) && !liveness.is_ping_owed());
        now
    }

    #[test]
    fn unanswered_pings_are_further_and_further_apart_and_then_a_stall() {
        let mut live = liveness();
        live.on_sent(at(0), true);
        live.on_sent(at(100), false);
        let view = view(Awaits::Reports);
        assert_eq!(live.handle_timeout(at(299), view), None);
        assert!(!live.is_ping_owed());
        let pings: Vec<_> = (0..3).map(|_| ping(&mut live, view)).collect();
        assert_eq!(pings, [at(300), at(900), at(2_100)]);
        assert!(live.is_stalled());
        assert!(live.on_report(at(2_200), false), "the stall is over");
        assert!(!live.is_stalled() && !live.on_report(at(2_300), false));
        assert_eq!(live.poll_timeout(view), at(2_600));
    }

    #[test]
    fn where_much_is_lost_more_pings_are_a_stall() {
        let pings = |loss_rate| {
            let mut live = liveness();
            let view = View { loss_rate, ..view(Awaits::Reports) };
            let count = |live: &mut Liveness| {
                let now = ping(live, view);
                live.on_packet(now);
                live.is_stalled()
            };
            (1..).find(|_| count(&mut live)).unwrap()
        };
        assert!(pings(0.0) < pings(0.1) && pings(0.1) < pings(0.5));
    }

    #[test]
    fn an_idle_peer_is_asked_and_a_silent_one_is_gone() {
        let mut live = liveness();
        live.on_sent(at(5_000), false);
        assert_eq!(live.poll_timeout(view(Awaits::Room)), at(5_000) + PERSIST);
        let idle = view(Awaits::Data);
        assert_eq!(ping(&mut live, idle), at(15_000));
        assert_eq!(live.handle_timeout(at(29_999), idle), None);
        assert_eq!(live.handle_timeout(at(30_000), idle), Some(ConnectionError::TimedOut));
        live.on_packet(at(29_000));
        assert_eq!(live.handle_timeout(at(30_000), idle), None);
    }

    #[test]
    fn data_that_does_not_get_through_is_given_up() {
        let mut live = liveness();
        let view = view(Awaits::Reports);
        live.on_packet(at(119_000));
        live.on_report(at(119_000), false);
        assert_eq!(live.handle_timeout(at(119_999), view), None);
        assert_eq!(live.handle_timeout(at(120_000), view), Some(ConnectionError::Stalled));
        live.on_report(at(119_999), true);
        assert_eq!(live.handle_timeout(at(120_000), view), None);
    }

    #[test]
    fn a_released_connection_ends_after_its_data_or_its_time_limit() {
        let mut live = liveness();
        live.on_release(at(0));
        live.on_packet(at(29_000));
        assert!(live.is_orphaned());
        let ended = Some(ConnectionError::Stalled);
        assert_eq!(live.handle_timeout(at(30_000), view(Awaits::Data)), None);
        assert_eq!(live.handle_timeout(at(30_000), view(Awaits::Nothing)), ended);
        live.on_packet(at(1_199_000));
        live.on_report(at(1_199_000), true);
        assert_eq!(live.handle_timeout(at(1_199_999), view(Awaits::Reports)), None);
        assert_eq!(live.handle_timeout(at(1_200_000), view(Awaits::Reports)), ended);
    }
}
