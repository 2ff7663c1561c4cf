//! The variation of the RTT without a queue.

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
    /// largest than the smallest, in microseconds. The newest group replaces the oldest.
    groups: Option<Box<[[u32; 2]; MOST]>>,
    /// The number of groups, up to [`MOST`]; then it counts on to the next round of replacements.
    seen: u8,
    /// In microseconds.
    value: u32,
}

impl Jitter {
    pub(super) fn add(&mut self, delay: Duration, spread: Duration) {
        let micros = |time: Duration| time.as_micros().try_into().unwrap_or(u32::MAX);
        let groups = self.groups.get_or_insert_with(|| Box::new([[0; 2]; MOST]));
        let seen = usize::from(self.seen);
        groups[seen % MOST] = [micros(delay), micros(spread)];
        self.seen = if seen + 1 < 2 * MOST { self.seen + 1 } else { MOST as u8 };
        let groups = &groups[..MOST.min(seen + 1)];
        if groups.len() >= FEWEST {
            let delay = quantile(groups, 0, 2).saturating_mul(2);
            let spread = quantile(groups, 1, 4).saturating_mul(3);
            self.value = delay.min(spread);
        }
    }

    /// Returns how much longer than the smallest an RTT can be without a queue; zero until it is
    /// known.
    pub(super) fn get(&self) -> Duration {
        Duration::from_micros(self.value.into())
    }

    /// Frees the memory; the value remains.
    pub(super) fn shrink(&mut self) {
        (self.groups, self.seen) = (None, 0);
    }
}

/// Returns the value that one in `parts` of the groups is below.
fn quantile(groups: &[[u32; 2]], which: usize, parts: usize) -> u32 {
    let mut values = [0; MOST];
    let values = &mut values[..groups.len()];
    for (value, group) in values.iter_mut().zip(groups) {
        *value = group[which];
    }
    *values.select_nth_unstable(groups.len() / parts).1
}
