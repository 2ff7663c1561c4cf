//! The one clock.

use std::time::Duration;

use airtcp_types::Instant;

/// Where a stack's time begins.
///
/// It is tokio's clock, so that a test that pauses tokio's time pauses the stack's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch(tokio::time::Instant);

impl Epoch {
    /// Time begins now.
    #[expect(clippy::disallowed_methods, reason = "this is where the stack's time comes from")]
    pub(super) fn start() -> Self {
        Self(tokio::time::Instant::now())
    }

    /// The time since the epoch.
    pub(super) fn now(self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }

    /// The moment tokio knows as `instant`; one that it cannot express is a year away.
    pub(super) fn moment(self, instant: Instant) -> tokio::time::Instant {
        let offset = Duration::from_nanos(instant.as_nanos());
        self.0.checked_add(offset).unwrap_or_else(|| self.0 + YEAR)
    }
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let epoch = Epoch::start();
        let later = epoch.moment(Instant::from_millis(1_500));
        assert_eq!(later - epoch.0, Duration::from_millis(1_500));
        // The latest instant there is must not panic.
        let _ = epoch.moment(Instant::MAX);
    }
}
