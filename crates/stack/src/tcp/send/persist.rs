//! Probing of a closed window with the persist timer (RFC 9293 section 3.8.6.1), and the use of a
//! window that stays too small (section 3.8.6.2.1).

use std::time::Duration;

use airtcp_types::Instant;

/// The maximum interval between window probes.
const MAX_PROBE: Duration = Duration::from_secs(120);

/// The persist timer, and the state of probing.
#[derive(Debug)]
pub(super) struct Persist {
    /// Boxed, because most connections never meet a closed window.
    timer: Option<Box<Timer>>,
    /// Time-outs that the peer answered with a zero window; they count as probes.
    forgiven: u32,
    /// Whether to send data into a window that silly-window avoidance would not use.
    override_silly: bool,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    at: Instant,
    pause: Duration,
    unanswered: u32,
    /// Whether a window probe is due.
    due: bool,
}

impl Persist {
    pub(super) const OFF: Self = Self { timer: None, forgiven: 0, override_silly: false };

    pub(super) const fn is_running(&self) -> bool {
        self.timer.is_some()
    }

    /// Starts the timer unless it is running; the first probe is sent after `rto`.
    pub(super) fn start(&mut self, now: Instant, rto: Duration) {
        let pause = rto.min(MAX_PROBE);
        self.timer.get_or_insert_with(|| {
            Box::new(Timer { at: now + pause, pause, unanswered: 0, due: false })
        });
    }

    pub(super) fn stop(&mut self) {
        self.timer = None;
    }

    /// Records an answer of the peer.
    pub(super) fn on_ack(&mut self) {
        if let Some(timer) = &mut self.timer {
            timer.unanswered = 0;
        }
    }

    /// Records the number of consecutive time-outs, `timeouts`, after an ACK. With a closed window
    /// they count as probes, even after the window opens.
    pub(super) fn forgive(&mut self, is_closed: bool, timeouts: u32) {
        self.forgiven = if is_closed { timeouts } else { self.forgiven.min(timeouts) };
    }

    /// The number of time-outs that count as probes.
    pub(super) const fn forgiven(&self) -> u32 {
        self.forgiven
    }

    /// Handles the timer: makes a window probe due and doubles the interval. If the window
    /// `is_silly`, small but not closed, data is sent into it instead of a probe.
    pub(super) fn on_timeout(&mut self, now: Instant, is_silly: bool) {
        let Some(timer) = self.timer.as_mut().filter(|timer| timer.at <= now) else { return };
        timer.pause = (timer.pause * 2).min(MAX_PROBE);
        timer.at = now + timer.pause;
        timer.unanswered += 1;
        timer.due |= !is_silly;
        self.override_silly = is_silly;
    }

    /// Whether to use a small window now; clears it.
    pub(super) fn take_override(&mut self) -> bool {
        std::mem::take(&mut self.override_silly)
    }

    /// Whether to use a small window.
    pub(super) const fn overrides(&self) -> bool {
        self.override_silly
    }

    /// Whether a probe is due; clears it.
    pub(super) fn take_probe(&mut self) -> bool {
        self.timer.as_mut().is_some_and(|timer| std::mem::take(&mut timer.due))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer.as_ref().map(|timer| timer.at)
    }

    /// The number of consecutive unanswered probes.
    pub(super) fn unanswered(&self) -> u32 {
        self.timer.as_ref().map_or(0, |timer| timer.unanswered)
    }

    /// Whether the interval between probes has reached its maximum.
    pub(super) fn is_slowest(&self) -> bool {
        self.timer.as_ref().is_some_and(|timer| timer.pause >= MAX_PROBE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_two_minutes() {
        let mut persist = Persist::OFF;
        persist.start(Instant::ZERO, Duration::from_secs(1));
        let mut now = Instant::ZERO;
        let pauses: Vec<u64> = (0..9)
            .map(|_| {
                let at = persist.deadline().unwrap();
                let pause = at.since(now);
                now = at;
                persist.on_timeout(now, false);
                assert!(persist.take_probe() && !persist.take_probe());
                pause.as_secs()
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 120, 120]);
        assert_eq!((persist.unanswered(), persist.is_slowest()), (9, true));
        persist.on_ack();
        assert_eq!(persist.unanswered(), 0);
    }

    #[test]
    fn a_window_too_small_is_used_once_in_place_of_a_probe() {
        let mut persist = Persist::OFF;
        persist.start(Instant::ZERO, Duration::from_secs(1));
        persist.on_timeout(Instant::from_millis(999), true);
        assert!(!persist.overrides());
        persist.on_timeout(Instant::from_millis(1_000), true);
        assert!(!persist.take_probe() && persist.take_override() && !persist.overrides());
    }

    #[test]
    fn time_outs_into_a_closed_window_stay_forgiven_until_there_are_fewer() {
        let mut persist = Persist::OFF;
        persist.forgive(true, 3);
        persist.forgive(false, 5);
        assert_eq!(persist.forgiven(), 3);
        persist.forgive(false, 0);
        assert_eq!(persist.forgiven(), 0);
    }
}
