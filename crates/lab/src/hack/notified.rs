//! Window reductions when all headers are intact, so that every corruption is notified.

use airtcp_recovery::Profile;

use super::course::{self, HACK_SACK};
use super::factor::NOT_ISOLATED;
use super::figure::Sweep;
use crate::{Findings, LabError, Verdict};

/// The window reductions of HACK + SACK with one profile, over several sweeps.
#[derive(Debug, Default)]
pub(super) struct Notified {
    reductions: u64,
    corrupted: u64,
    /// The reductions that remain in each variant of the profile, in the sweeps with any.
    of_variants: Vec<(&'static str, u64)>,
}

impl Notified {
    /// Adds the outcomes of a sweep. If there were reductions, repeats the runs with variants of
    /// the profile: without probes, without undo, and with SACK by RFC 6675.
    pub(super) fn add(
        &mut self,
        sweep: &Sweep<'_>,
        findings: &mut Findings,
    ) -> Result<(), LabError> {
        let profile = sweep.profile;
        let reductions = course::reductions(&sweep.both);
        self.reductions += reductions;
        self.corrupted += sweep.both.iter().map(|outcome| outcome.corrupted).sum::<u64>();
        if reductions == 0 {
            return Ok(());
        }
        for variant in [
            Profile { name: "no probes", tail_loss_probe: false, ..profile.clone() },
            Profile { name: "no undo", undo: false, ..profile.clone() },
            Profile { name: "SACK by RFC 6675", sack: None, ..profile.clone() },
        ] {
            if (Profile { name: profile.name, ..variant.clone() }) == *profile {
                continue;
            }
            let outcomes = sweep.beside(&HACK_SACK, &variant, findings, Clone::clone)?;
            count(&mut self.of_variants, variant.name, course::reductions(&outcomes));
        }
        Ok(())
    }

    /// HACK 3.3: if every corruption is notified, no loss counts as congestion.
    pub(super) fn claim(&self, findings: &mut Findings, profile: &Profile) {
        let Self { reductions, corrupted, of_variants } = self;
        findings.claim(
            format!("cuts of the window by HACK + SACK where no header is hit, {}", profile.name),
            "none",
            format!("{reductions} at {corrupted} corrupted packets"),
            Verdict::of(*reductions == 0, || {
                if of_variants.is_empty() {
                    return NOT_ISOLATED.to_owned();
                }
                let show = |(name, cuts): &(&str, u64)| format!("{cuts} with {name}");
                of_variants.iter().map(show).collect::<Vec<_>>().join(", ")
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
