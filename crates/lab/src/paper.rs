//! Figures that papers print, and senders that papers measured.

use airtcp_recovery::Profile;
use airtcp_sim::Interval;

use crate::{Findings, Verdict, theory};

/// Profiles that only the lab has.
pub(crate) const NS_2_29: &str = "ns-2.29";
pub(crate) const LINUX_2_4: &str = "linux-2.4";
pub(crate) const LINUX_2_6: &str = "linux-2.6";

/// Returns the profile of this name: one of [`Profile::all`], or one that only the lab has.
///
/// Linux 2.4.20 (2002), 2.6.17 (2006) and 2.6.21 (2007) are the same here: an initial window of
/// three segments, windows in whole segments, one segment for each ACK in slow start, undo without
/// F-RTO, and Linux's time-out. Rate halving is not modelled.
///
/// # Panics
///
/// Panics if there is none.
pub(crate) fn profile(name: &str) -> Profile {
    let linux = Profile {
        summary: "Linux of 2002 to 2007",
        initial_window: 3,
        byte_counting_limit: 1,
        hystart: false,
        proportional_rate_reduction: false,
        tail_loss_probe: false,
        f_rto: false,
        window_validation: false,
        whole_segments: true,
        ..Profile::modern()
    };
    match name {
        LINUX_2_4 => Profile { name: LINUX_2_4, ..linux },
        LINUX_2_6 => Profile { name: LINUX_2_6, ..linux },
        // ns-2's precisionReduce_ was false until 2006.
        NS_2_29 => Profile { name: NS_2_29, whole_segments: true, ..profile("ns-2.35") },
        _ => name.parse().expect("a profile"),
    }
}

/// The relative difference from a paper's figure that still counts as the same result. It allows
/// for another stack, another simulator, other random numbers, and few printed digits. It is the
/// same for all papers and figures.
pub(crate) const TOLERANCE: f64 = 0.1;

/// A figure that a paper prints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printed {
    /// The quantity with its unit.
    pub(crate) what: &'static str,
    /// The figure.
    pub(crate) figure: f64,
    /// The number of printed decimals.
    pub(crate) decimals: usize,
}

impl Printed {
    /// Judges whether our figure is within a tenth of the printed one.
    pub(crate) fn verdict(&self, ours: &Interval, why: &str) -> Verdict {
        let figure = self.figure;
        let band = (figure * (1.0 - TOLERANCE), figure * (1.0 + TOLERANCE));
        theory::within(ours, band, || {
            format!("ours is {:.2} times the paper's: {why}", ours.mean / figure)
        })
    }
}

impl Findings {
    /// Adds a claim that compares our figure in `setup` with the printed one. It holds if the whole
    /// 95 % interval is within a tenth of the printed figure; `why` gives the reason if it is
    /// outside.
    pub(crate) fn printed(&mut self, printed: &Printed, setup: &str, ours: &Interval, why: &str) {
        let verdict = printed.verdict(ours, why);
        self.has_printed = true;
        self.printed_as(printed, setup, ours, verdict);
    }

    /// Adds a claim that shows our figure in `setup` beside the printed one, with this verdict.
    pub(crate) fn printed_as(
        &mut self,
        printed: &Printed,
        setup: &str,
        ours: &Interval,
        verdict: Verdict,
    ) {
        let Printed { what, figure, decimals } = *printed;
        let shown = theory::show(ours, 1.0, decimals);
        self.claim(format!("{what}, {setup}"), format!("{figure:.decimals$}"), shown, verdict);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Heading;
    use crate::{EXPERIMENTS, Report};

    #[test]
    fn a_profile_has_its_name_whether_it_is_the_labs_or_not() {
        for name in [NS_2_29, LINUX_2_4, LINUX_2_6, "ns-2.26", "modern"] {
            assert_eq!(profile(name).name, name);
        }
        let (linux, ns2) = (profile(LINUX_2_6), profile(NS_2_29));
        assert!(linux.undo && linux.delayed_acks && linux.sack.is_none());
        assert!(ns2.sack.is_some() && ns2.whole_segments && !profile("ns-2.35").whole_segments);
    }

    #[test]
    fn a_printed_figure_holds_within_a_tenth() {
        let printed = Printed { what: "goodput", figure: 2.0, decimals: 1 };
        let mut findings = Findings::new("a");
        for values in [[2.1, 2.101], [2.25, 2.25], [1.5, 1.6]] {
            findings.printed(&printed, "at night", &Interval::of(&values), "of the moon");
        }
        let verdicts: Vec<_> = findings.claims.iter().map(|claim| claim.verdict.clone()).collect();
        assert_eq!(verdicts[0], Verdict::Holds);
        assert_eq!(verdicts[1].reason(), Some("ours is 1.12 times the paper's: of the moon"));
        assert_eq!(verdicts[2].name(), "not comparable", "the interval of two is wide");
        assert_eq!(findings.claims[1].measured, "2.2 ± 0.0");
        let text = |findings| {
            let experiment = Heading::from(&EXPERIMENTS[0]);
            Report { experiment, command: String::new(), seeds: 2, findings }.to_text(None)
        };
        let rule = "if the whole 95 % interval is within 10 % of it";
        assert!(text(findings).contains(rule));
        assert!(!text(Findings::new("a")).contains(rule), "nothing is printed");
    }
}
