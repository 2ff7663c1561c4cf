//! The variation of the RTT without a queue.

use std::collections::VecDeque;
use std::time::Duration;

/// The number of groups whose spread is kept, ...
const MOST: usize = 64;
/// ... and the fewest from which the jitter is known.
const FEWEST: usize = 8;
/// The jitter is this many times the lower quartile of the spreads. In a simulation, RTTs over a
/// path of 100 ms with ± 25 ms in order exceeded their minimum by up to that.
const SPREADS: u32 = 3;

/// The differences between the smallest and the largest RTT near the latest groups at a low load.
///
/// The RTTs of transmissions that follow each other closely differ by the jitter of the path. A
/// queue that others fill changes more slowly; when it changes fast, it does so for a part of the
/// time, and the lower quartile of the differences stays small.
#[derive(Debug, Default)]
pub(super) struct Jitter {
    spreads: VecDeque<Duration>,
    value: Duration,
}

impl Jitter {
    pub(super) fn add(&mut self, spread: Duration) {
        if self.spreads.len() == MOST {
            self.spreads.pop_front();
        }
        self.spreads.push_back(spread);
        if self.spreads.len() >= FEWEST {
            let mut sorted: Vec<_> = self.spreads.iter().copied().collect();
            let quartile = sorted.len() / 4;
            self.value = *sorted.select_nth_unstable(quartile).1 * SPREADS;
        }
    }

    /// Returns how much longer than its minimum an RTT can be without a queue; zero until it is
    /// known.
    pub(super) const fn get(&self) -> Duration {
        self.value
    }

    /// Frees the memory; the value remains.
    pub(super) fn shrink(&mut self) {
        self.spreads = VecDeque::new();
    }
}
