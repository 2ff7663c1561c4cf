//! HACK where no header can be read: what is left of it is NewReno.

use airtcp_recovery::Profile;

use super::course::{Course, HACK, Outcome};
use super::factor::Factor;
use crate::{Findings, LabError, Run};

/// How HACK with no readable header compares. It isolates why one in twenty is not enough to be above SACK.
pub(super) struct Unread {
    over_sack: f64,
    newreno_over_sack: f64,
    /// What reading as many headers as the courses leave whole gains.
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
            "with no header readable HACK is {over_sack:.2} times SACK, as NewReno is ({newreno_over_sack:.2}); to read \
             one in twenty makes it {gain:.2} times faster than that"
        )
    }
}
