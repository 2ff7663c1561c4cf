//! The loss rate while the path is far from full.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use super::departures::Group;
use crate::learned::RandomLosses;

/// The fewest transmissions in a block.
const BLOCK: u32 = 32;
/// The number of independent losses from which the share is known.
const FEWEST: f64 = 8.0;
/// No low load is requested if fewer than one in this many transmissions is lost.
const TRIED: f64 = 256.0;
/// A low load is requested until this many independent losses were measured.
const ENOUGH: f64 = 16.0;
/// All counts are halved when there are more losses than this, ...
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
    /// The most bytes in flight in any counted group.
    load: ByteCount,
    halved_at: Option<Instant>,
    /// Whether some of the counts are of this connection, rather than inherited.
    is_own: bool,
}

impl Baseline {
    /// Starts from the counts of another connection. The load at which they were counted is not
    /// known: the path may now be shared with others.
    pub(super) fn starting_with(known: &RandomLosses) -> Self {
        let RandomLosses { sent, lost, blocks, squares, halved_at } = *known;
        Self { sent, lost, blocks, squares, halved_at, ..Self::default() }
    }

    /// Returns the counts for another connection; `None` if all of them were inherited.
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

    /// Halves all counts when it is time.
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

    /// Discards the counts if the share is known and some were counted with more than `full` in
    /// flight.
    pub(super) fn keep_below(&mut self, full: ByteCount) {
        if self.load > full && self.share().is_some() {
            *self = Self { halved_at: self.halved_at, ..Self::default() };
        }
    }

    /// Returns the share of lost transmissions; `None` until it is known.
    pub(super) fn share(&self) -> Option<f64> {
        let known = self.lost >= FEWEST * self.dispersion();
        known.then(|| self.lost / self.sent.max(1.0))
    }

    /// Counts a loss without a queueing delay, at any load.
    pub(super) fn see_loss(&mut self) {
        self.seen += 1.0;
    }

    /// Returns whether more transmissions at a low load would help to decide whether losses are
    /// random. Many transmissions without a loss show that they are not.
    pub(super) fn is_in_doubt(&self) -> bool {
        let lost = self.lost / self.dispersion();
        self.seen >= 1.0 && lost < ENOUGH && self.sent < TRIED * (lost + 1.0)
    }

    /// Returns the index of dispersion: the variance of the losses per block over their mean. It is
    /// one if losses are independent, and about the length of a burst if they come in bursts.
    pub(super) fn dispersion(&self) -> f64 {
        let mean = self.lost / self.blocks.max(1.0);
        let squares = self.squares / self.lost.max(1.0);
        (squares - mean).max(1.0)
    }
}
