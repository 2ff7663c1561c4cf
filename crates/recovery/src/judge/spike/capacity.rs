//! The recent delivery rate of the path.

use std::time::Duration;

use airtcp_types::{Instant, Rate};

/// Half of the window of the maximum filter: this many smoothed RTTs, but at least [`LEAST`].
const ROUNDS: u32 = 32;
const LEAST: Duration = Duration::from_secs(1);

/// The largest delivery rate of the current and the previous half of the window.
#[derive(Debug, Default)]
pub(super) struct Capacity {
    this_half: Rate,
    last_half: Rate,
    half_ends: Instant,
}

impl Capacity {
    pub(super) fn on_sample(&mut self, now: Instant, rate: Rate, srtt: Duration) {
        if now >= self.half_ends {
            self.half_ends = now + (srtt * ROUNDS).max(LEAST);
            self.last_half = std::mem::take(&mut self.this_half);
        }
        self.this_half = self.this_half.max(rate);
    }

    /// Returns the largest recent delivery rate; zero before the first sample.
    pub(super) fn get(&self) -> Rate {
        self.this_half.max(self.last_half)
    }
}
