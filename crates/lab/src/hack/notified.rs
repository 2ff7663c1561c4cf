//! Window reductions when all headers are intact, so that every corruption is notified.

use airtcp_recovery::Profile;

use super::course::{self, HACK_SACK};
use super::figure::Sweep;
use crate::{Findings, LabError, Verdict};

/// The window reductions of HACK + SACK, over several sweeps.
#[derive(Debug, Default)]
pub(super) struct Notified {
    reductions: u64,
    corrupted: u64,
    /// The reductions in each profile, and those that remain in each variant of the profile.
    of_profiles: Vec<(&'static str, u64)>,
    of_variants: Vec<(&'static str, u64)>,
}

impl Notified {
    /// Adds the outcomes of a sweep. If there were reductions, repeats the runs with variants of
    /// the profile, without probes and without undo.
    pub(super) fn add(
        &mut self,
        sweep: &Sweep<'_>,
        findings: &mut Findings,
    ) -> Result<(), LabError> {
        let profile = sweep.profile;
        let reductions = course::reductions(&sweep.both);
        self.reductions += reductions;
        self.corrupted += sweep.both.iter().map(|outcome| outcome.corrupted).sum::<u64>();
        count(&mut self.of_profiles, profile.name, reductions);
        if reductions == 0 {
            return Ok(());
        }
        for variant in [
            Profile { name: "no probes", tail_loss_probe: false, ..profile.clone() },
            Profile { name: "no undo", undo: false, ..profile.clone() },
        ] {
            let outcomes = sweep.beside(&HACK_SACK, &variant, findings, Clone::clone)?;
            count(&mut self.of_variants, variant.name, course::reductions(&outcomes));
        }
        Ok(())
    }

    /// HACK 3.3: if every corruption is notified, no loss counts as congestion.
    pub(super) fn claim(&self, findings: &mut Findings) {
        let Self { reductions, corrupted, .. } = self;
        let show = |of: &[(&str, u64)]| -> String {
            of.iter().map(|(name, cuts)| format!("{name} {cuts}")).collect::<Vec<_>>().join(", ")
        };
        findings.claim(
            "cuts of the window by HACK + SACK where no header is hit",
            "none",
            format!("{reductions} at {corrupted} corrupted packets"),
            Verdict::of(*reductions == 0, || {
                format!(
                    "{}; where there are any, {}",
                    show(&self.of_profiles),
                    show(&self.of_variants)
                )
            }),
        );
    }
}

fn count(of: &mut Vec<(&'static str, u64)>, name: &'static str, cuts: u64) {
    match of.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => *sum += cuts,
        None => of.push((name, cuts)),
    }
}
