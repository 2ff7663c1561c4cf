//! The clock of everything that runs in real time.

use std::time::{self, Duration, SystemTime, UNIX_EPOCH};

use airtcp_types::Instant;

/// Where time begins, and how late it is.
///
/// It is the machine's monotonic clock. Stamps of those who share one clock can be compared: a copy
/// is the same clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: time::Instant,
    origin: Duration,
}

impl Clock {
    /// Time begins now.
    pub fn start() -> Self {
        let origin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: time::Instant::now(), origin }
    }

    /// The time since the beginning.
    pub fn now(self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    /// When time began by the wall clock, since the Unix epoch.
    pub const fn origin(self) -> Duration {
        self.origin
    }
}
