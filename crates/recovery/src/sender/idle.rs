//! The idle time of a sender without outstanding data.

use std::time::Duration;

use airtcp_types::Instant;

/// The time of the last transmission, and since when nothing is outstanding.
#[derive(Debug)]
pub(super) struct Idle {
    last_sent: Instant,
    /// Since when nothing is outstanding; `None` once the control was notified.
    since: Option<Instant>,
}

/// An idle time that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Silence {
    /// The time since the last ACK.
    pub(super) unacked: Duration,
    /// The time since the last transmission.
    pub(super) unsent: Duration,
}

impl Idle {
    pub(super) const fn new(now: Instant) -> Self {
        Self { last_sent: now, since: None }
    }

    pub(super) const fn on_sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    /// Handles an ACK that advances SND.UNA; `is_empty` is whether nothing is outstanding after it.
    pub(super) fn on_advance(&mut self, now: Instant, is_empty: bool) {
        self.since = is_empty.then_some(now);
    }

    pub(super) const fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// Ends the idle time, because new data is about to be sent.
    pub(super) fn end(&mut self, now: Instant) -> Option<Silence> {
        let since = self.since.take()?;
        Some(Silence { unacked: now.since(since), unsent: now.since(self.last_sent) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_period_starts_with_the_last_ack_and_is_reported_once() {
        let at = Instant::from_millis;
        let mut idle = Idle::new(at(0));
        idle.on_sent(at(10));
        idle.on_advance(at(20), false);
        assert_eq!(idle.end(at(25)), None);
        idle.on_advance(at(30), true);
        assert!(idle.is_on());
        let (unacked, unsent) = (Duration::from_millis(70), Duration::from_millis(90));
        assert_eq!(idle.end(at(100)), Some(Silence { unacked, unsent }));
        assert_eq!(idle.end(at(100)), None);
    }
}
