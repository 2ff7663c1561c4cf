//! The variation of the RTT without a queue.

use std::collections::VecDeque;
use std::time::Duration;

/// The number of groups that are kept, ...
const MOST: usize = 64;
/// ... and the fewest from which the jitter is known.
const FEWEST: usize = 8;

/// The RTTs near the latest groups at a low load.
///
/// Jitter makes RTTs longer than the smallest of the connection, and RTTs of transmissions that
/// follow each other closely differ by it. A queue that others fill makes RTTs longer, too, but it
/// changes slowly: RTTs close to each other are alike, at least for a part of the time. Therefore
/// the jitter is the smaller of twice the median delay and three times the lower quartile of the
/// differences.
#[derive(Debug, Default)]
pub(super) struct Jitter {
    /// How much longer the smallest RTT near a group is than that of the connection, and the
    /// largest than the smallest.
    groups: VecDeque<(Duration, Duration)>,
    value: Duration,
}

impl Jitter {
    pub(super) fn add(&mut self, delay: Duration, spread: Duration) {
        if self.groups.len() == MOST {
            self.groups.pop_front();
        }
        self.groups.push_back((delay, spread));
        if self.groups.len() >= FEWEST {
            let (mut delays, mut spreads): (Vec<_>, Vec<_>) = self.groups.iter().copied().unzip();
            let (half, quarter) = (delays.len() / 2, spreads.len() / 4);
            let delay = *delays.select_nth_unstable(half).1 * 2;
            let spread = *spreads.select_nth_unstable(quarter).1 * 3;
            self.value = delay.min(spread);
        }
    }

    /// Returns how much longer than the smallest an RTT can be without a queue; zero until it is
    /// known.
    pub(super) const fn get(&self) -> Duration {
        self.value
    }

    /// Frees the memory; the value remains.
    pub(super) fn shrink(&mut self) {
        self.groups = VecDeque::new();
    }
}
