//! A limit of answers to packets that anyone can send.

use std::time::Duration;

use airtcp_types::Instant;

/// Allows 100 answers at once, and one every 10 ms.
#[derive(Debug, Default)]
pub(super) struct Limit {
    /// When all answers are available again.
    full_at: Instant,
}

impl Limit {
    const EACH: Duration = Duration::from_millis(10);
    const BURST: Duration = Duration::from_secs(1);

    /// Takes an answer, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + Self::EACH;
        let is_left = full_at.since(now) <= Self::BURST;
        if is_left {
            self.full_at = full_at;
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_at_once_and_a_hundred_a_second() {
        let mut limit = Limit::default();
        let mut take = |millis, count: usize| {
            (0..count).filter(|_| limit.take(Instant::from_millis(millis))).count()
        };
        assert_eq!([take(0, 200), take(9, 9), take(10, 9), take(1_010, 999)], [100, 0, 1, 100]);
    }
}
