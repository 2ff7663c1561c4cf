//! The loss rate of transmissions while the path is far from full.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use super::departures::Group;
use crate::learned::RandomLosses;

/// The fewest transmissions of a block.
const BLOCK: u32 = 32;
/// The share is known from this many independent losses on.
const FEWEST: f64 = 8.0;
/// A low load is not wanted where fewer than one of this many transmissions is lost.
const TRIED: f64 = 256.0;
/// A low load is wanted until this many independent losses are measured.
const ENOUGH: f64 = 16.0;
/// Half of all counts is forgotten when there are more losses than this ...
const MEMORY: f64 = 256.0;
/// ... and after this time.
const HALF_LIFE: Duration = Duration::from_secs(30);

/// Counts of transmissions and losses.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    sent: f64,
    lost: f64,
    /// The sum of the squares of the losses of each block.
    squares: f64,
    /// Losses without a queueing delay, at any load.
    seen: f64,
    blocks: f64,
    block_sent: u32,
    block_lost: u32,
    /// The most that was in flight in any group that was counted.
    load: ByteCount,
    halved_at: Option<Instant>,
    /// Some of it was counted here, and not only by another connection.
    is_own: bool,
}

impl Baseline {
    /// What another connection has counted. At which loads it did so is not known: the path may be
    /// shared by others now.
    pub(super) fn starting_with(known: &RandomLosses) -> Self {
        let RandomLosses { sent, lost, blocks, squares, halved_at } = *known;
        Self { sent, lost, blocks, squares, halved_at, ..Self::default() }
    }

    /// What was counted, for another connection; `None` if all of it came from another one.
    pub(super) fn counts(&self) -> Option<RandomLosses> {
        let Self { sent, lost, blocks, squares, halved_at, is_own, .. } = *self;
        is_own.then_some(RandomLosses { sent, lost, blocks, squares, halved_at })
    }

    pub(super) fn add(&mut self, group: &Group) {
        self.load = self.load.max(group.load);
        self.block_sent = self.block_sent.saturating_add(group.sent);
        self.block_lost = self.block_lost.saturating_add(group.lost);
        if self.block_sent >= BLOCK {
            let lost = f64::from(std::mem::take(&mut self.block_lost));
            self.sent += f64::from(std::mem::take(&mut self.block_sent));
            self.lost += lost;
            self.squares += lost * lost;
            self.blocks += 1.0;
            self.is_own = true;
        }
    }

    /// Forgets half of all counts if it is time to.
    pub(super) fn age(&mut self, now: Instant) {
        let halved_at = *self.halved_at.get_or_insert(now);
        if self.lost > MEMORY || now.since(halved_at) > HALF_LIFE {
            self.halved_at = Some(now);
            let Self { sent, lost, squares, blocks, seen, .. } = self;
            for count in [sent, lost, squares, blocks, seen] {
                *count /= 2.0;
            }
        }
    }

    /// Forgets a known share if some of it was counted with more than `full` in flight.
    pub(super) fn keep_below(&mut self, full: ByteCount) {
        if self.load > full && self.share().is_some() {
            *self = Self { halved_at: self.halved_at, ..Self::default() };
        }
    }

    /// The share that is lost; `None` until it is known.
    pub(super) fn share(&self) -> Option<f64> {
        let known = self.lost >= FEWEST * self.dispersion();
        known.then(|| self.lost / self.sent.max(1.0))
    }

    /// A loss without a queueing delay, at any load.
    pub(super) fn see_loss(&mut self) {
        self.seen += 1.0;
    }

    /// Whether more transmissions at a low load would tell whether the losses at any load are
    /// random. Many without a loss tell that they are not.
    pub(super) fn is_in_doubt(&self) -> bool {
        let lost = self.lost / self.dispersion();
        self.seen >= 1.0 && lost < ENOUGH && self.sent < TRIED * (lost + 1.0)
    }

    /// The index of dispersion: variance over mean of the losses in a block. It is one if losses
    /// are independent, and about the length of a burst if they come in bursts.
    pub(super) fn dispersion(&self) -> f64 {
        let mean = self.lost / self.blocks.max(1.0);
        let squares = self.squares / self.lost.max(1.0);
        (squares - mean).max(1.0)
    }
}
