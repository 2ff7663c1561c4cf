//! One sender's recoveries from every number of losses, and their figures.

use crate::prelude::*;

/// All runs of one sender, for each number of losses.
pub(super) struct Curve {
    pub(super) name: &'static str,
    pub(super) points: Vec<Point>,
}

/// All runs of one sender with one number of losses.
pub(super) struct Point {
    pub(super) lost: u64,
    pub(super) time: Interval,
    /// The recovery time in seconds, and the window reductions, with each seed.
    times: Vec<f64>,
    reductions: Vec<f64>,
    pub(super) timeouts: f64,
    /// The retransmissions before the first time-out, of the runs with one.
    pub(super) repairs: Vec<f64>,
    /// The number of runs, and of those in which exactly the drawn losses occurred.
    pub(super) runs: u64,
    pub(super) as_drawn: u64,
    /// Whether no run had a time-out, and whether most runs recovered within a single RTT.
    pub(super) is_free: bool,
    pub(super) is_single: bool,
}

impl Point {
    pub(super) fn of(lost: u64, sample: &Sample) -> Self {
        let count = |is: &dyn Fn(&&Fields) -> bool| sample.runs().filter(is).count() as u64;
        let runs = sample.runs().count() as u64;
        Self {
            lost,
            time: sample.mean("time"),
            times: sample.values("time"),
            reductions: sample.values("reductions"),
            timeouts: sample.mean("timeouts").mean,
            repairs: sample.of(|run| run.number("repairs").filter(|_| !run.is("timeouts", 0u64))),
            runs,
            as_drawn: count(&|run| run.is("as_drawn", true)),
            is_free: count(&|run| !run.is("timeouts", 0u64)) == 0,
            is_single: count(&|run| run.is("single", true)) * 2 > runs,
        }
    }

    /// Returns the recovery time less that of `other` in seconds, seed by seed over the same
    /// losses.
    pub(super) fn less(&self, other: &Self) -> Interval {
        let pairs = self.times.iter().zip(&other.times);
        Interval::of(&pairs.map(|(own, other)| own - other).collect::<Vec<_>>())
    }
}

impl Curve {
    /// Returns the largest number of losses up to which `is_so` holds for every number.
    fn up_to(&self, is_so: fn(&Point) -> bool) -> u64 {
        self.points.iter().take_while(|p| is_so(p)).last().map_or(0, |p| p.lost)
    }

    /// Returns the largest number of losses up to which no run has a time-out.
    pub(super) fn free(&self) -> u64 {
        self.up_to(|p| p.is_free)
    }

    /// Returns the largest number of losses up to which most runs recover within a single RTT.
    pub(super) fn single(&self) -> u64 {
        self.up_to(|p| p.is_single)
    }

    /// Returns for each seed the mean recovery time in ms over the numbers of losses that `counts`
    /// picks.
    pub(super) fn times(&self, counts: impl Fn(u64) -> bool) -> Vec<f64> {
        self.of_seeds(counts, |point, seed| point.times[seed] * 1e3)
    }

    /// Returns the mean number of reductions in a recovery from up to `most` losses, over the
    /// seeds.
    pub(super) fn reductions(&self, most: u64) -> Interval {
        Interval::of(&self.of_seeds(|lost| lost <= most, |point, seed| point.reductions[seed]))
    }

    fn of_seeds(
        &self,
        counts: impl Fn(u64) -> bool,
        value: impl Fn(&Point, usize) -> f64,
    ) -> Vec<f64> {
        let counted: Vec<_> = self.points.iter().filter(|point| counts(point.lost)).collect();
        let mean = |seed| {
            counted.iter().map(|point| value(point, seed)).sum::<f64>() / counted.len() as f64
        };
        (0..self.seeds()).map(mean).collect()
    }

    pub(super) fn seeds(&self) -> usize {
        self.points.first().map_or(0, |point| point.times.len())
    }

    /// Returns the retransmissions before the first time-out, of all runs with one.
    pub(super) fn repairs(&self) -> Vec<f64> {
        self.points.iter().flat_map(|p| p.repairs.iter().copied()).collect()
    }

    /// Returns the coefficient of determination of a line through the means up to `most` losses,
    /// over all seeds except `left_out`.
    pub(super) fn linearity(&self, most: u64, left_out: Option<usize>) -> f64 {
        let mean = |point: &Point| {
            let each = point.times.iter().enumerate();
            let kept = each.filter(|(seed, _)| Some(*seed) != left_out).map(|(_, time)| *time);
            Interval::of(&kept.collect::<Vec<_>>()).mean
        };
        let points = self.points.iter().filter(|point| point.lost <= most);
        let xy: Vec<(f64, f64)> = points.map(|point| (point.lost as f64, mean(point))).collect();
        let n = xy.len() as f64;
        let (mx, my) =
            (xy.iter().map(|p| p.0).sum::<f64>() / n, xy.iter().map(|p| p.1).sum::<f64>() / n);
        let sum =
            |f: &dyn Fn(f64, f64) -> f64| xy.iter().map(|(x, y)| f(x - mx, y - my)).sum::<f64>();
        sum(&|x, y| x * y).powi(2) / (sum(&|x, _| x * x) * sum(&|_, y| y * y))
    }
}
