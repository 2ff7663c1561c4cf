//! HACK where every header is hit: what is left of it is NewReno.

use airtcp_recovery::Profile;

use super::course::{Course, HACK, Outcome};
use super::factor::Factor;
use crate::{Findings, LabError, Run};

/// How HACK compares where every header is hit. It isolates why one whole in twenty is not enough
/// to be above SACK. A few are read even so: a flip in the TCP checksum leaves the header's good.
pub(super) struct Unread {
    over_sack: f64,
    newreno_over_sack: f64,
    /// What the headers that the courses leave whole gain.
    gain: f64,
}

impl Unread {
    /// Runs HACK over the same courses with every header hit. The same packets are corrupted.
    pub(super) fn measure(
        run: &Run,
        courses: &[Course],
        profile: &Profile,
        findings: &mut Findings,
        [newreno, sack, hack]: [&[Outcome]; 3],
    ) -> Result<Self, LabError> {
        let one = |course: &Course| {
            Course { header: 100, ..*course }.measure(run, &HACK, profile, findings)
        };
        let unread: Vec<_> = courses.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Self {
            over_sack: Factor::of(&unread, sack).mean.mean,
            newreno_over_sack: Factor::of(newreno, sack).mean.mean,
            gain: Factor::of(hack, &unread).mean.mean,
        })
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
