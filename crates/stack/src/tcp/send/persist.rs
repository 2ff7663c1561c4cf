//! Probing of a closed window: the persist timer (RFC 9293 section 3.8.6.1),
//! and the use of a window that stays too small (section 3.8.6.2.1).

use std::time::Duration;

use airtcp_types::Instant;

/// The longest pause between window probes.
const MAX_PROBE: Duration = Duration::from_secs(120);

/// The persist timer, and what probes have shown.
#[derive(Debug)]
pub(super) struct Persist {
    /// Seldom there: most connections never meet a closed window.
    timer: Option<Box<Timer>>,
    /// Time-outs that the peer answered with a window of zero: they count as probes.
    forgiven: u32,
    /// A window too small to be worth it is used all the same.
    override_silly: bool,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    at: Instant,
    pause: Duration,
    unanswered: u32,
    /// A window probe is to leave.
    due: bool,
}

impl Persist {
    pub(super) const OFF: Self = Self { timer: None, forgiven: 0, override_silly: false };

    pub(super) const fn is_running(&self) -> bool {
        self.timer.is_some()
    }

    /// Starts the timer, unless it runs: the first probe leaves after `rto`.
    pub(super) fn start(&mut self, now: Instant, rto: Duration) {
        let pause = rto.min(MAX_PROBE);
        self.timer.get_or_insert_with(|| {
            Box::new(Timer { at: now + pause, pause, unanswered: 0, due: false })
        });
    }

    pub(super) fn stop(&mut self) {
        self.timer = None;
    }

    /// The peer has answered.
    pub(super) fn on_ack(&mut self) {
        if let Some(timer) = &mut self.timer {
            timer.unanswered = 0;
        }
    }

    /// An ACK was worked that leaves so many time-outs in a row. With a window that is closed they
    /// count as probes, also once it opens again.
    pub(super) fn forgive(&mut self, is_closed: bool, timeouts: u32) {
        self.forgiven = if is_closed { timeouts } else { self.forgiven.min(timeouts) };
    }

    /// Time-outs that count as probes.
    pub(super) const fn forgiven(&self) -> u32 {
        self.forgiven
    }

    /// Works the timer: a window probe is to leave, if it is time, and the next one waits twice as
    /// long. Where the window `is_silly`, small and not closed, that is used in place of a probe.
    pub(super) fn on_timeout(&mut self, now: Instant, is_silly: bool) {
        let Some(timer) = self.timer.as_mut().filter(|timer| timer.at <= now) else { return };
        timer.pause = (timer.pause * 2).min(MAX_PROBE);
        timer.at = now + timer.pause;
        timer.unanswered += 1;
        timer.due |= !is_silly;
        self.override_silly = is_silly;
    }

    /// Whether a small window is to be used, which it is once.
    pub(super) fn take_override(&mut self) -> bool {
        std::mem::take(&mut self.override_silly)
    }

    /// Whether a small window is to be used.
    pub(super) const fn overrides(&self) -> bool {
        self.override_silly
    }

    /// Whether a probe is to leave, which it is once.
    pub(super) fn take_probe(&mut self) -> bool {
        self.timer.as_mut().is_some_and(|timer| std::mem::take(&mut timer.due))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer.as_ref().map(|timer| timer.at)
    }

    /// How many probes in a row the peer has not answered.
    pub(super) fn unanswered(&self) -> u32 {
        self.timer.as_ref().map_or(0, |timer| timer.unanswered)
    }

    /// Whether probes leave as seldom as they ever do.
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
