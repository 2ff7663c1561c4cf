//! Theoretical values, and tests whether chance explains a deviation from them.

use airtcp_sim::Interval;
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

use crate::{LabError, Verdict};

/// The probability that a self-check fails by chance, for one seed. Seeds are fixed, so a check
/// that holds always holds.
pub(crate) const LEVEL: f64 = 0.001;

/// The normal distribution's two-sided 95 % point.
const NORMAL_95: f64 = 1.959_964;

/// Formats a figure and its 95 % interval with this number of decimals, multiplied by `unit`.
pub(crate) fn show(interval: &Interval, unit: f64, decimals: usize) -> String {
    let mean = interval.mean * unit;
    match interval.half_width {
        Some(half) => format!("{mean:.decimals$} ± {:.decimals$}", half * unit),
        None => format!("{mean:.decimals$}"),
    }
}

/// Returns the ratio of two independent means. The spread is a first-order approximation for small
/// deviations.
pub(crate) fn ratio(above: &Interval, below: &Interval) -> Interval {
    let mean = above.mean / below.mean;
    let part = |of: &Interval| (of.sd / of.mean).powi(2) / of.n as f64;
    of_two(mean, mean * (part(above) + part(below)).sqrt(), above.n.min(below.n))
}

/// Returns the difference of two independent means.
pub(crate) fn difference(one: &Interval, other: &Interval) -> Interval {
    let part = |of: &Interval| of.sd.powi(2) / of.n as f64;
    of_two(one.mean - other.mean, (part(one) + part(other)).sqrt(), one.n.min(other.n))
}

/// Returns a figure calculated from two means, with its standard error. The interval is Student's
/// with the degrees of freedom of the smaller sample.
fn of_two(mean: f64, error: f64, n: u64) -> Interval {
    let student = StudentsT::new(0.0, 1.0, n.saturating_sub(1) as f64).ok();
    let half_width = student.map(|t| t.inverse_cdf(0.975) * error);
    Interval { mean, half_width, sd: error * (n as f64).sqrt(), n }
}

/// Returns the ratio of two means whose seeds form pairs, for example because their losses are the
/// same.
pub(crate) fn paired(above: &[f64], below: &[f64]) -> Interval {
    jackknife(above.len().min(below.len()), |left_out| {
        let sum = |of: &[f64]| {
            let kept = of.iter().enumerate().filter(|(seed, _)| Some(*seed) != left_out);
            kept.map(|(_, value)| value).sum::<f64>()
        };
        sum(above) / sum(below)
    })
}

/// Returns the figure that `without` calculates from all seeds, with the jackknife interval: the
/// variation when one seed is left out.
pub(crate) fn jackknife(seeds: usize, without: impl Fn(Option<usize>) -> f64) -> Interval {
    let mean = without(None);
    if seeds < 2 {
        return Interval { mean, half_width: None, sd: 0.0, n: seeds as u64 };
    }
    let n = seeds as f64;
    let pseudo = |seed| n * mean - (n - 1.0) * without(Some(seed));
    Interval { mean, ..Interval::of(&(0..seeds).map(pseudo).collect::<Vec<_>>()) }
}

/// Tests whether the true mean can be `theory`, at the [`LEVEL`].
pub(crate) fn mean_is(theory: f64, measured: &Interval) -> Result<Verdict, LabError> {
    let student = StudentsT::new(0.0, 1.0, measured.n.saturating_sub(1) as f64).map_err(|_| {
        LabError::Distribution("a mean needs at least two runs: use --seeds 2".to_owned())
    })?;
    let bound = student.inverse_cdf(1.0 - LEVEL / 2.0);
    let off = (measured.mean - theory) / (measured.sd / (measured.n as f64).sqrt());
    Ok(Verdict::of(off.abs() <= bound, || {
        format!("{off:+.1} standard errors from theory; the limit is {bound:.1}")
    }))
}

/// Judges whether a mean is in `band`. The claim holds if the whole interval is inside, and does
/// not hold if the whole interval is outside. An interval that crosses an edge, or a single run, is
/// not comparable.
pub(crate) fn within(
    measured: &Interval,
    band: (f64, f64),
    why: impl FnOnce() -> String,
) -> Verdict {
    let Some((low, high)) = interval(measured) else { return one_run() };
    if low > band.1 || high < band.0 {
        Verdict::DoesNotHold(why())
    } else if low >= band.0 && high <= band.1 {
        Verdict::Holds
    } else {
        let shown = show(measured, 1.0, 2);
        let (low, high) = band;
        Verdict::NotComparable(format!(
            "the 95 % interval of {shown} crosses an edge of {low:.2} to {high:.2}"
        ))
    }
}

/// Multiplies a mean by `by`, for example to change the unit.
pub(crate) fn scaled(of: &Interval, by: f64) -> Interval {
    Interval {
        mean: of.mean * by,
        half_width: of.half_width.map(|half| half * by),
        sd: of.sd * by,
        n: of.n,
    }
}

/// Judges whether a mean is above `least`. If the interval contains `least`, the result may be
/// chance.
pub(crate) fn above(measured: &Interval, least: f64, why: impl FnOnce() -> String) -> Verdict {
    let Some((low, high)) = interval(measured) else { return one_run() };
    if low > least {
        Verdict::Holds
    } else if high <= least {
        Verdict::DoesNotHold(why())
    } else {
        Verdict::NotComparable(may_be_chance(measured, least))
    }
}

/// Judges whether a mean is below `most`, like [`above`].
pub(crate) fn below(measured: &Interval, most: f64, why: impl FnOnce() -> String) -> Verdict {
    let Some((low, high)) = interval(measured) else { return one_run() };
    if high < most {
        Verdict::Holds
    } else if low >= most {
        Verdict::DoesNotHold(why())
    } else {
        Verdict::NotComparable(may_be_chance(measured, most))
    }
}

/// Judges whether `own` is less than `other`, seed by seed over the same losses.
pub(crate) fn less(own: &[f64], other: &[f64], why: impl FnOnce() -> String) -> Verdict {
    let differences: Vec<f64> = own.iter().zip(other).map(|(own, other)| own - other).collect();
    let difference = Interval::of(&differences);
    let shown = show(&difference, 1.0, 2);
    below(&difference, 0.0, || format!("{shown} more: {}", why()))
}

/// A source's statement about a mean.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    Above(f64),
    Below(f64),
    /// From the first to the second value.
    Within(f64, f64),
}

impl Bound {
    /// Judges the statement; `why` gives the reason if it does not hold.
    pub(crate) fn verdict(self, measured: &Interval, why: impl FnOnce() -> String) -> Verdict {
        match self {
            Self::Above(least) => above(measured, least, why),
            Self::Below(most) => below(measured, most, why),
            Self::Within(low, high) => within(measured, (low, high), why),
        }
    }

    /// Formats the statement for the table of claims.
    pub(crate) fn claimed(self) -> String {
        match self {
            Self::Above(least) => format!("above {least}"),
            Self::Below(most) => format!("below {most}"),
            Self::Within(low, high) => format!("{low} to {high}"),
        }
    }
}

/// A source's word without a figure, such as "far more" or "a little".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) word: &'static str,
    /// The figures that every reading of the word includes.
    pub(crate) holds: Bound,
    /// The figures that none does.
    pub(crate) fails: Bound,
}

impl Word {
    /// Judges the word: between the two bounds, it depends on the reading.
    pub(crate) fn verdict(self, measured: &Interval, why: impl FnOnce() -> String) -> Verdict {
        let Self { word, holds, fails } = self;
        if measured.half_width.is_none() {
            return one_run();
        }
        let is = |bound: Bound| bound.verdict(measured, String::new) == Verdict::Holds;
        if is(holds) {
            Verdict::Holds
        } else if is(fails) {
            Verdict::DoesNotHold(why())
        } else {
            Verdict::NotComparable(format!(
                "the source gives no figure for \"{word}\", and neither \"{}\" nor \"{}\" is certain: {}",
                holds.claimed(),
                fails.claimed(),
                why()
            ))
        }
    }

    /// Formats the word for the table of claims.
    pub(crate) fn claimed(self) -> String {
        format!("{} ({}, not {})", self.word, self.holds.claimed(), self.fails.claimed())
    }
}

/// Combines the verdicts at several points, where the source does not say which ones it means. If
/// only some points fail, the claim depends on that. The reason is that of the first point that
/// fails; if none fails, that of the first that is not comparable.
pub(crate) fn agreed(verdicts: &[Verdict]) -> Verdict {
    let fails = |verdict: &Verdict| matches!(verdict, Verdict::DoesNotHold(_));
    match Verdict::all(verdicts.iter().cloned()) {
        Verdict::DoesNotHold(why) if !verdicts.iter().all(fails) => {
            Verdict::NotComparable(format!("it fails in some cases only: {why}"))
        }
        all => all,
    }
}

/// Combines the verdicts like [`agreed`], where every reading of the source includes the point
/// `extreme`: if that one fails, the claim fails.
pub(crate) fn agreed_beyond(extreme: &Verdict, verdicts: &[Verdict]) -> Verdict {
    match extreme {
        Verdict::DoesNotHold(_) => extreme.clone(),
        _ => agreed(verdicts),
    }
}

/// The reason of a claim that does not hold, if the cause was not determined.
pub(crate) fn unknown() -> String {
    "the cause was not determined".to_owned()
}

/// Returns the ends of an interval. A single run has none, because its variation is unknown.
fn interval(measured: &Interval) -> Option<(f64, f64)> {
    measured.half_width.map(|half| (measured.mean - half, measured.mean + half))
}

fn one_run() -> Verdict {
    Verdict::NotComparable("one run has no confidence interval: use --seeds 2 or more".into())
}

fn may_be_chance(measured: &Interval, bound: f64) -> String {
    let shown = show(measured, 1.0, 2);
    format!("the 95 % interval of {shown} includes {bound}")
}

/// A figure measured in many independent trials, to be compared with the theory of one trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trials {
    /// The measured sum over all trials.
    pub(crate) sum: f64,
    /// The number of trials.
    pub(crate) count: f64,
    /// The theoretical mean of one trial.
    pub(crate) mean: f64,
    /// The theoretical variance of one trial.
    pub(crate) variance: f64,
}

impl Trials {
    /// Trials that succeed or fail.
    pub(crate) fn share(hits: u64, of: u64, share: f64) -> Self {
        let variance = share * (1.0 - share);
        Self { sum: hits as f64, count: of as f64, mean: share, variance }
    }

    /// Returns the measured mean of one trial; the interval uses the theoretical variance.
    pub(crate) fn estimate(&self) -> Interval {
        let half_width = Some(NORMAL_95 * (self.variance / self.count).sqrt());
        let (mean, sd) = (self.sum / self.count, self.variance.sqrt());
        Interval { mean, half_width, sd, n: self.count as u64 }
    }

    /// Tests whether the measured mean is the theoretical one, at the [`LEVEL`].
    pub(crate) fn verdict(&self) -> Verdict {
        let deviation = (self.count * self.variance).sqrt();
        let off = (self.sum - self.count * self.mean) / deviation;
        let bound = Normal::standard().inverse_cdf(1.0 - LEVEL / 2.0);
        Verdict::of(off.abs() <= bound, || {
            format!("{off:+.1} standard deviations from theory; the limit is {bound:.1}")
        })
    }
}

/// Pearson's test of counts against expected shares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct ChiSquare {
    pub(crate) statistic: f64,
    pub(crate) freedom: usize,
    /// The probability of a statistic at least this large by chance.
    pub(crate) p: f64,
}

impl ChiSquare {
    /// Tests `counts` against `shares`, which add up to 1. A bin with less than 5 expected counts
    /// is merged with the one before it.
    ///
    /// # Errors
    ///
    /// The counts are too few for two bins.
    pub(crate) fn test(counts: &[u64], shares: &[f64]) -> Result<Self, LabError> {
        let total = counts.iter().sum::<u64>() as f64;
        let mut bins: Vec<(f64, f64)> = Vec::new();
        for (count, share) in counts.iter().zip(shares) {
            let (count, expected) = (*count as f64, share * total);
            match bins.last_mut() {
                Some(last) if last.1 < 5.0 || expected < 5.0 => {
                    *last = (last.0 + count, last.1 + expected);
                }
                _ => bins.push((count, expected)),
            }
        }
        let freedom = bins.len().saturating_sub(1);
        let distribution = ChiSquared::new(freedom as f64).map_err(|_| {
            LabError::Distribution(format!("{total} counts are too few for the test"))
        })?;
        let statistic = bins.iter().map(|(o, e)| (o - e).powi(2) / e).sum();
        Ok(Self { statistic, freedom, p: distribution.sf(statistic) })
    }

    /// Returns whether the counts have the expected distribution, at the [`LEVEL`].
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::of(self.p > LEVEL, || {
            format!("p = {:.1e} for the theoretical distribution", self.p)
        })
    }

    /// Formats the result.
    pub(crate) fn show(&self) -> String {
        format!("chi² {:.1} of {}, p = {:.3}", self.statistic, self.freedom, self.p)
    }
}

/// Returns the shares of the lengths 1, 2, ... of runs that end after each element with probability
/// `stop`. The last of `bins` bins contains its length and all longer ones.
pub(crate) fn geometric(stop: f64, bins: usize) -> Vec<f64> {
    let go = 1.0 - stop;
    let mut shares: Vec<f64> = (0..bins as i32 - 1).map(|k| stop * go.powi(k)).collect();
    shares.push(go.powi(bins as i32 - 1));
    shares
}

/// Returns the mean number of customers that wait for a server with constant service time, for
/// Poisson arrivals at this load (Pollaczek-Khinchine formula).
pub(crate) fn md1_waiting(load: f64) -> f64 {
    load * load / (2.0 * (1.0 - load))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chi_square_has_the_points_of_the_tables() {
        // 10 degrees of freedom: the 5 % point is 18.31.
        let shares = [1.0 / 11.0; 11];
        let mut counts = [1_000; 11];
        (counts[0], counts[1]) = (1_096, 904);
        let test = ChiSquare::test(&counts, &shares).unwrap();
        assert_eq!(test.freedom, 10);
        assert!((test.statistic - 18.43).abs() < 0.01 && (test.p - 0.048).abs() < 0.001);
        assert_eq!(test.verdict(), Verdict::Holds);
        (counts[0], counts[1]) = (1_150, 850);
        let reason = ChiSquare::test(&counts, &shares).unwrap().verdict();
        assert!(matches!(reason, Verdict::DoesNotHold(why) if why.contains("p = ")));
    }

    #[test]
    fn bins_that_expect_little_are_joined_and_too_little_is_an_error() {
        let test = ChiSquare::test(&[60, 30, 5, 4, 1], &[0.6, 0.3, 0.06, 0.03, 0.01]).unwrap();
        assert_eq!(test.freedom, 2);
        assert!(ChiSquare::test(&[3, 0], &[0.5, 0.5]).is_err());
    }

    #[test]
    fn a_share_is_held_against_its_deviation() {
        let verdict = |hits| Trials::share(hits, 10_000, 0.1).verdict();
        assert_eq!(verdict(1_090), Verdict::Holds);
        assert!(verdict(1_120).reason().unwrap().starts_with("+4.0 standard deviations"));
        let estimate = Trials::share(1_090, 10_000, 0.1).estimate();
        assert_eq!(show(&estimate, 100.0, 2), "10.90 ± 0.59");
    }

    #[test]
    fn a_mean_is_held_against_its_standard_error() {
        let measured = Interval::of(&[9.0, 10.0, 11.0, 10.0]);
        assert_eq!(mean_is(10.5, &measured).unwrap(), Verdict::Holds);
        assert!(mean_is(20.0, &measured).unwrap().reason().unwrap().starts_with("-24.5 "));
        assert!(mean_is(1.0, &Interval::of(&[1.0])).is_err());
        assert_eq!(show(&Interval::of(&[1.0]), 2.0, 1), "2.0");
    }

    #[test]
    fn an_interval_that_is_too_wide_or_has_the_bound_in_it_is_no_answer() {
        let why = || "night".to_owned();
        let verdict = |values: &[f64]| within(&Interval::of(values), (0.9, 1.1), why).name();
        assert_eq!(verdict(&[0.99, 1.0, 1.01]), "holds");
        assert_eq!(verdict(&[0.8, 1.0, 1.2]), "not comparable");
        assert_eq!(verdict(&[1.08, 1.09, 1.10]), "not comparable");
        assert_eq!(verdict(&[1.09, 1.11, 1.13]), "not comparable");
        assert_eq!(verdict(&[4.0, 5.0, 6.0]), "does not hold");
        assert_eq!([verdict(&[1.0]), verdict(&[4.0])], ["not comparable"; 2]);
        let sides = |values: &[f64]| {
            let measured = Interval::of(values);
            [above(&measured, 1.0, why).name(), below(&measured, 1.0, why).name()]
        };
        assert_eq!(sides(&[1.1, 1.2, 1.3]), ["not comparable"; 2]);
        assert_eq!(sides(&[1.2]), ["not comparable"; 2]);
        assert_eq!(sides(&[1.19, 1.2, 1.21]), ["holds", "does not hold"]);
        assert_eq!(sides(&[0.79, 0.8, 0.81]), ["does not hold", "holds"]);
        let undecided = above(&Interval::of(&[1.1, 1.2, 1.3]), 1.0, why);
        let all = |of: &[&Verdict]| Verdict::all(of.iter().copied().cloned());
        assert_eq!(all(&[&Verdict::Holds, &undecided]), undecided);
        let refuted = Verdict::DoesNotHold(why());
        assert_eq!(all(&[&undecided, &refuted, &undecided]), refuted);
        assert_eq!(all(&[]), Verdict::Holds);
    }

    #[test]
    fn a_word_is_judged_where_every_reading_agrees() {
        let word = Word { word: "a little", holds: Bound::Above(0.9), fails: Bound::Below(0.5) };
        let verdict = |values: &[f64]| word.verdict(&Interval::of(values), || "of rain".into());
        assert_eq!(verdict(&[0.95, 0.95]), Verdict::Holds);
        assert_eq!(verdict(&[0.1, 0.11]).reason(), Some("of rain"));
        assert_eq!(
            verdict(&[0.7, 0.71]).reason(),
            Some(
                "the source gives no figure for \"a little\", and neither \"above 0.9\" nor \"below 0.5\" is certain: of rain"
            )
        );
        assert_eq!([verdict(&[0.1]).name(), verdict(&[0.1, 0.6]).name()], ["not comparable"; 2]);
        assert_eq!(word.claimed(), "a little (above 0.9, not below 0.5)");
    }

    #[test]
    fn points_that_differ_decide_nothing() {
        let [rain, wind] = ["rain", "wind"].map(|why| Verdict::DoesNotHold(why.into()));
        let [fog, snow] = ["fog", "snow"].map(|why| Verdict::NotComparable(why.into()));
        let holds = Verdict::Holds;
        let agreed = |of: &[&Verdict]| agreed(&of.iter().copied().cloned().collect::<Vec<_>>());
        assert_eq!(agreed(&[&holds, &holds]), holds);
        assert_eq!(agreed(&[&rain, &wind]), rain);
        // No point fails: the reason is that of the point that is not decided.
        assert_eq!(agreed(&[&fog, &snow]), fog);
        assert_eq!(agreed(&[&holds, &fog, &snow]), fog);
        let some = Verdict::NotComparable("it fails in some cases only: rain".into());
        for of in [[&holds, &rain, &wind], [&rain, &wind, &holds], [&fog, &rain, &wind]] {
            assert_eq!(agreed(&of), some);
        }
    }

    #[test]
    fn the_extreme_point_can_refute_and_cannot_confirm() {
        let no = Verdict::DoesNotHold("of rain".into());
        let of = [Verdict::Holds, no.clone()];
        assert_eq!(agreed_beyond(&no, &of), no);
        assert_eq!(agreed_beyond(&Verdict::Holds, &of), agreed(&of));
        assert_eq!(agreed_beyond(&Verdict::Holds, &of).name(), "not comparable");
    }

    #[test]
    fn a_ratio_has_the_spread_of_both() {
        let (above, below) = (Interval::of(&[9.0, 10.0, 11.0]), Interval::of(&[5.0; 4]));
        let measured = ratio(&above, &below);
        assert_eq!((measured.mean, measured.n), (2.0, 3));
        // The denominator is exact, so the interval is a fifth of the numerator's.
        let wide = above.half_width.unwrap() / 5.0;
        assert!((measured.half_width.unwrap() - wide).abs() < 1e-9);
        assert_eq!(ratio(&Interval::of(&[1.0]), &below).half_width, None);
        let apart = difference(&above, &below);
        assert_eq!((apart.mean, apart.n), (5.0, 3));
        assert!((apart.half_width.unwrap() - above.half_width.unwrap()).abs() < 1e-9);
    }

    #[test]
    fn less_is_judged_seed_by_seed() {
        let why = || "of the wind".to_owned();
        let verdict = |own: [f64; 3]| less(&own, &[10.0, 20.0, 30.0], why);
        assert_eq!(verdict([8.0, 18.5, 27.5]), Verdict::Holds);
        let reason = verdict([12.0, 21.5, 32.5]).reason().map(str::to_owned);
        assert_eq!(reason.as_deref(), Some("2.00 ± 1.24 more: of the wind"));
        assert_eq!(verdict([8.0, 23.0, 29.0]).name(), "not comparable");
    }

    #[test]
    fn pairs_that_move_together_have_a_sure_ratio() {
        let (above, below) = ([2.0, 4.2, 5.8], [1.0, 2.0, 3.0]);
        let measured = paired(&above, &below);
        assert_eq!((measured.mean, measured.n), (2.0, 3));
        let apart = ratio(&Interval::of(&above), &Interval::of(&below));
        let [together, apart] = [measured, apart].map(|of| of.half_width.unwrap());
        assert!(together < 0.3 && apart > 3.0, "{together} {apart}");
    }

    #[test]
    fn the_jackknife_of_a_mean_is_its_interval() {
        let values = [1.0, 2.0, 4.0, 9.0];
        let mean = |left_out: Option<usize>| {
            let kept = (0..4).filter(|seed| Some(*seed) != left_out).map(|seed| values[seed]);
            kept.clone().sum::<f64>() / kept.count() as f64
        };
        let (found, plain) = (jackknife(4, mean), Interval::of(&values));
        assert_eq!((found.mean, found.n), (plain.mean, plain.n));
        assert!((found.half_width.unwrap() - plain.half_width.unwrap()).abs() < 1e-9);
        assert_eq!(jackknife(1, mean).half_width, None);
    }

    #[test]
    fn shares_of_runs_add_up() {
        let shares = geometric(0.25, 5);
        assert_eq!(shares[..2], [0.25, 0.1875]);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(md1_waiting(0.5), 0.25);
    }
}
