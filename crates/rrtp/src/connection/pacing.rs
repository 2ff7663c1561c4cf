//! The pacing of data packets.

use std::time::Duration;

use airtcp_types::Instant;

/// The time for which a late sender may catch up; if it slept until its wake-up, the number of
/// packets, if that is more.
const SLACK: Duration = Duration::from_millis(2);
const OWED: u32 = 4;

#[derive(Clone, Debug)]
pub(super) struct Pacing {
    next: Instant,
    /// The paced time for which the sender last waited with a packet to send.
    awaited: Instant,
    /// There was nothing to send, or sending was not allowed.
    idle: bool,
}

impl Pacing {
    pub(super) const fn new(now: Instant) -> Self {
        Self { next: now, awaited: Instant::ZERO, idle: true }
    }

    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// Records that no data packet can leave before `at`; `None` if there is none.
    pub(super) fn on_wait(&mut self, now: Instant, at: Option<Instant>) {
        if at == Some(self.next) {
            self.awaited = self.next;
        }
        self.idle |= self.next <= now;
    }

    /// Whether a packet that leaves now follows a pause; `gap` is the time that a full packet
    /// takes.
    pub(super) fn is_pause(&self, now: Instant, gap: Duration) -> bool {
        let slept = self.awaited == self.next;
        let slack = if slept { SLACK.max(gap * OWED) } else { SLACK };
        self.idle || now.since(self.next) > slack
    }

    /// Records a sent packet that takes `gap` at the current rate.
    pub(super) fn on_data_sent(&mut self, now: Instant, gap: Duration, pause: bool) {
        let base = if pause { now.max(self.next) } else { self.next };
        (self.next, self.idle) = (base + gap, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_delays_are_caught_up_and_long_ones_count_as_pauses() {
        let at = Instant::from_millis;
        let gap = Duration::from_millis(10);
        let mut pacing = Pacing::new(at(0));
        assert!(pacing.is_pause(at(0), gap), "nothing has left yet");
        pacing.on_data_sent(at(0), gap, true);
        assert_eq!(pacing.next(), at(10));
        assert!(!pacing.is_pause(at(12), gap) && pacing.is_pause(at(13), gap));
        // A packet waited for its time: the sender slept.
        pacing.on_wait(at(1), Some(at(10)));
        assert!(!pacing.is_pause(at(50), gap) && pacing.is_pause(at(51), gap));
        pacing.on_data_sent(at(13), gap, false);
        assert_eq!(pacing.next(), at(20));
        pacing.on_wait(at(19), None);
        assert!(!pacing.is_pause(at(20), gap));
        pacing.on_wait(at(20), None);
        assert!(pacing.is_pause(at(20), gap), "there was nothing to send");
        pacing.on_data_sent(at(70), gap, true);
        assert_eq!(pacing.next(), at(80));
    }
}
