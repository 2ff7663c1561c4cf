//! HACK with every header corrupted, which leaves NewReno's behaviour.

use super::course::Outcome;
use super::factor::Factor;

/// Compares HACK with every header corrupted. The comparison isolates why one intact header in
/// twenty does not put HACK above SACK. Even then a few headers are readable: a flipped bit in the
/// TCP checksum leaves the header intact.
pub(super) struct Unread {
    over_sack: f64,
    newreno_over_sack: f64,
    /// The ratio that the intact headers of the courses gain.
    gain: f64,
}

impl Unread {
    /// Compares `unread`, HACK over the same courses and corrupted packets with every header
    /// corrupted, with the other senders.
    pub(super) fn of(unread: &[Outcome], [newreno, sack, hack]: [&[Outcome]; 3]) -> Self {
        Self {
            over_sack: Factor::of(unread, sack).mean.mean,
            newreno_over_sack: Factor::of(newreno, sack).mean.mean,
            gain: Factor::of(hack, unread).mean.mean,
        }
    }

    /// Formats the comparison in a line.
    pub(super) fn why(&self) -> String {
        let Self { over_sack, newreno_over_sack, gain } = self;
        format!(
            "with all headers corrupted HACK is {over_sack:.2} times SACK, and NewReno, which ignores them, {newreno_over_sack:.2} times; \
             one intact header in twenty makes HACK {gain:.2} times as fast"
        )
    }
}
