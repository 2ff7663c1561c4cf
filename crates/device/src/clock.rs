//! The clock of everything that runs in real time.

use std::time::{self, Duration, SystemTime, UNIX_EPOCH};

use airtcp_types::Instant;

/// The machine's monotonic clock with an origin.
///
/// Timestamps of the same clock can be compared; a copy is the same clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: time::Instant,
    origin: Duration,
}

impl Clock {
    /// Starts a clock at the current time.
    pub fn start() -> Self {
        let origin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: time::Instant::now(), origin }
    }

    /// The time since the origin.
    pub fn now(self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    /// The origin in wall-clock time since the Unix epoch.
    pub const fn origin(self) -> Duration {
        self.origin
    }
}
