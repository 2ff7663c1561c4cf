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
    /// largest than the smallest, in microseconds.
    groups: VecDeque<[u32; 2]>,
    value: Duration,
}

impl Jitter {
    pub(super) fn add(&mut self, delay: Duration, spread: Duration) {
        if self.groups.len() == MOST {
            self.groups.pop_front();
        }
        let micros = |time: Duration| time.as_micros().try_into().unwrap_or(u32::MAX);
        self.groups.push_back([micros(delay), micros(spread)]);
        if self.groups.len() >= FEWEST {
            let delay = u64::from(self.quantile(0, 2)) * 2;
            let spread = u64::from(self.quantile(1, 4)) * 3;
            self.value = Duration::from_micros(delay.min(spread));
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

    /// Returns the value of the groups that one in `parts` is below.
    fn quantile(&self, which: usize, parts: usize) -> u32 {
        let mut values = [0; MOST];
        let values = &mut values[..self.groups.len()];
        for (value, group) in values.iter_mut().zip(&self.groups) {
            *value = group[which];
        }
        *values.select_nth_unstable(values.len() / parts).1
    }
}
