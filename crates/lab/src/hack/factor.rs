//! Ratios of two senders' goodputs.

use airtcp_sim::Interval;

use super::course::Outcome;
use crate::{Findings, Verdict, theory};

/// The reason of a failed claim whose cause no run isolates.
pub(super) const NOT_ISOLATED: &str = "the cause was not determined";

/// The ratio of two senders' goodputs at several points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    /// The geometric mean over the points, with its interval over the seeds.
    pub(super) mean: Interval,
    /// The minimum and the maximum over the points.
    pub(super) least: f64,
    pub(super) most: f64,
    /// The number of points with a ratio above one, with a whole interval below one, and in total.
    above: usize,
    surely_below: usize,
    points: usize,
}

impl Factor {
    /// Compares two senders at the same points and with the same seeds.
    pub(super) fn of(above: &[Outcome], below: &[Outcome]) -> Self {
        let is_surely_below =
            |ratio: &&Interval| theory::below(ratio, 1.0, String::new) == Verdict::Holds;
        let ratios: Vec<Interval> =
            above.iter().zip(below).map(|(a, b)| theory::ratio(&a.goodput, &b.goodput)).collect();
        Self {
            mean: geometric(above, below),
            least: ratios.iter().map(|ratio| ratio.mean).fold(f64::INFINITY, f64::min),
            most: ratios.iter().map(|ratio| ratio.mean).fold(0.0, f64::max),
            above: ratios.iter().filter(|ratio| ratio.mean > 1.0).count(),
            surely_below: ratios.iter().filter(is_surely_below).count(),
            points: ratios.len(),
        }
    }

    /// Formats the ratio for tables.
    pub(super) fn show(&self) -> String {
        let mean = theory::show(&self.mean, 1.0, 2);
        format!("{mean} ({:.2} to {:.2})", self.least, self.most)
    }

    /// Claims that the first sender is faster: on average, and at no point significantly slower.
    pub(super) fn claim_above(&self, findings: &mut Findings, what: String, why: &str) {
        let Self { above, surely_below, points, mean, .. } = self;
        let reason = || {
            let (below, points) = (points - above, points);
            format!("below at {below} of {points} points, surely at {surely_below}: {why}")
        };
        let verdict = if *surely_below > 0 {
            Verdict::DoesNotHold(reason())
        } else {
            theory::above(mean, 1.0, reason)
        };
        let measured = format!("{} times, above at {above} of {points} points", self.show());
        findings.claim(what, "above 1 time", measured, verdict);
    }

    /// Claims that the mean is between two figures, with the same tolerance of a tenth as for
    /// printed figures.
    pub(super) fn claim_within(
        &self,
        findings: &mut Findings,
        what: String,
        claimed: &str,
        (low, high): (f64, f64),
        why: &str,
    ) {
        let verdict = theory::within(&self.mean, (low * 0.9, high * 1.1), || why.to_owned());
        findings.claim(what, claimed, format!("{} times", self.show()), verdict);
    }
}

/// Returns the geometric mean over the points of the ratio of means. The points share seeds and
/// link errors, so the interval is calculated with the jackknife over the seeds, in logarithms.
fn geometric(above: &[Outcome], below: &[Outcome]) -> Interval {
    let without = |left_out: Option<usize>| {
        let sum = |outcome: &Outcome| {
            let kept =
                outcome.goodputs.iter().enumerate().filter(|(seed, _)| Some(*seed) != left_out);
            kept.map(|(_, goodput)| goodput).sum::<f64>()
        };
        let logs = above.iter().zip(below).map(|(a, b)| libm::log(sum(a) / sum(b)));
        logs.sum::<f64>() / above.len() as f64
    };
    let seeds = above.first().map_or(0, |outcome| outcome.goodputs.len());
    let logs = theory::jackknife(seeds, without);
    let mean = libm::exp(logs.mean);
    Interval {
        mean,
        half_width: logs.half_width.map(|half| half * mean),
        sd: logs.sd * mean,
        ..logs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(goodputs: [f64; 2]) -> Outcome {
        Outcome {
            goodputs: goodputs.to_vec(),
            goodput: Interval::of(&goodputs),
            seconds: Interval::default(),
            timeouts: Interval::default(),
            timeouts_each: Vec::new(),
            of_repairs: 0.0,
            of_holes: 0.0,
            reductions: 0,
            corrupted: 0,
            unfinished: 0,
        }
    }

    #[test]
    fn a_factor_is_the_geometric_mean_over_the_points() {
        let above = [outcome([8.0, 8.0]), outcome([2.0, 2.0])];
        let below = [outcome([1.0, 1.0]), outcome([1.0, 1.0])];
        let factor = Factor::of(&above, &below);
        assert!((factor.mean.mean - 4.0).abs() < 1e-9);
        assert_eq!(factor.show(), "4.00 ± 0.00 (2.00 to 8.00)");
        let mut findings = Findings::new("a");
        factor.claim_above(&mut findings, "a moon".to_owned(), "night");
        Factor::of(&below, &above).claim_above(&mut findings, "a sun".to_owned(), "day");
        factor.claim_within(&mut findings, "a star".to_owned(), "3.7", (3.7, 3.7), "far");
        factor.claim_within(&mut findings, "a planet".to_owned(), "5 to 10", (5.0, 10.0), "far");
        let verdicts: Vec<_> = findings.claims.iter().map(|claim| claim.verdict.reason()).collect();
        let below = "below at 2 of 2 points, surely at 2: day";
        assert_eq!(verdicts, [None, Some(below), None, Some("far")]);
    }
}
