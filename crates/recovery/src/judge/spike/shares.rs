//! The share of losses by load.

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use super::Group;

/// Classes of load in a factor of two.
const PER_OCTAVE: f64 = 12.0;
/// A lower load is lower by so many classes, 6 % at least.
const APART: u16 = 2;
/// A class forgets half of what it has when it has more losses.
const MEMORY: f64 = 256.0;
/// All classes forget half of what they have after this time.
const HALF_LIFE: Duration = Duration::from_secs(60);
/// The bound of the share lies so many standard deviations below its estimate.
const Z: f64 = 1.0;
/// No larger share is taken for random: Linux's bbr takes 20 % for the sign of a policer.
const MOST: f64 = 0.2;

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    sent: f64,
    lost: f64,
}

impl Count {
    fn halve(&mut self) {
        self.sent /= 2.0;
        self.lost /= 2.0;
    }
}

#[derive(Debug, Default)]
pub(super) struct Shares {
    by_load: BTreeMap<u16, Count>,
    usual: f64,
    halved: Instant,
    block_ends: Instant,
    block: f64,
    blocks: f64,
    lost: f64,
    squares: f64,
}

fn class(load: ByteCount) -> u16 {
    ((load.0.max(1) as f64).log2() * PER_OCTAVE) as u16
}

impl Shares {
    pub(super) fn add(&mut self, now: Instant, srtt: Duration, group: &Group) {
        let class = class(group.load);
        if self.by_load.is_empty() {
            (self.usual, self.halved, self.block_ends) = (class.into(), now, now + srtt);
        }
        self.usual += (f64::from(class) - self.usual) / 512.0;
        let (sent, lost) = (f64::from(group.sent), f64::from(group.lost));
        let count = self.by_load.entry(class).or_default();
        count.sent += sent;
        count.lost += lost;
        if count.lost > MEMORY {
            count.halve();
        }
        if now >= self.block_ends {
            self.block_ends = now + srtt;
            self.blocks += 1.0;
            self.lost += self.block;
            self.squares += self.block * self.block;
            self.block = 0.0;
            if self.lost > MEMORY {
                self.halve_blocks();
            }
        }
        self.block += lost;
        if now.since(self.halved) > HALF_LIFE {
            self.halved = now;
            self.halve_blocks();
            self.by_load.retain(|_, count| {
                count.halve();
                count.sent >= 1.0
            });
        }
    }

    fn halve_blocks(&mut self) {
        self.blocks /= 2.0;
        self.lost /= 2.0;
        self.squares /= 2.0;
    }

    /// Index of dispersion: variance over mean of losses per round; one if they are independent.
    pub(super) fn dispersion(&self) -> f64 {
        if self.lost > 0.0 {
            (self.squares / self.lost - self.lost / self.blocks).max(1.0)
        } else {
            1.0
        }
    }

    fn reference(&self, load: ByteCount) -> Count {
        let class = class(load);
        let top = if f64::from(class + APART) > self.usual {
            class.saturating_sub(APART)
        } else {
            class
        };
        let mut sum = Count::default();
        for count in self.by_load.range(..=top).map(|(_, count)| count) {
            sum.sent += count.sent;
            sum.lost += count.lost;
        }
        sum
    }

    pub(super) fn share(&self, load: ByteCount) -> f64 {
        let Count { sent, lost } = self.reference(load);
        if sent > 0.0 { (lost / sent).min(MOST) } else { 0.0 }
    }

    /// The lower bound of the reference's share over its estimate, from 0 to 1.
    pub(super) fn confidence(&self, load: ByteCount) -> f64 {
        let Count { lost, .. } = self.reference(load);
        if lost <= 0.0 {
            return 0.0;
        }
        (1.0 - Z * (self.dispersion() / lost).sqrt()).max(0.0)
    }

    pub(super) fn allowed(&self, load: ByteCount) -> f64 {
        (self.share(load) * self.confidence(load) * std::f64::consts::LOG2_E).min(MOST)
    }
}
