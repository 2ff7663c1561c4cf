//! HACK where every header is hit: what is left of it is NewReno.

use super::course::Outcome;
use super::factor::Factor;

/// How HACK compares where every header is hit. It isolates why one whole in twenty is not enough
/// to be above SACK. A few are read even so: a flip in the TCP checksum leaves the header's good.
pub(super) struct Unread {
    over_sack: f64,
    newreno_over_sack: f64,
    /// What the headers that the courses leave whole gain.
    gain: f64,
}

impl Unread {
    /// Of HACK over the same courses with every header hit, the same packets corrupted, and of the
    /// others.
    pub(super) fn of(unread: &[Outcome], [newreno, sack, hack]: [&[Outcome]; 3]) -> Self {
        Self {
            over_sack: Factor::of(unread, sack).mean.mean,
            newreno_over_sack: Factor::of(newreno, sack).mean.mean,
            gain: Factor::of(hack, unread).mean.mean,
        }
    }

    /// In a line.
    pub(super) fn why(&self) -> String {
        let Self { over_sack, newreno_over_sack, gain } = self;
        format!(
            "with all headers corrupted HACK is {over_sack:.2} times SACK, and NewReno, which ignores them, {newreno_over_sack:.2} times; \
             one intact header in twenty makes HACK {gain:.2} times faster"
        )
    }
}
