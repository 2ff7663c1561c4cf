//! One sender's recoveries from every number of losses, and what is asked of them.

use airtcp_sim::Interval;
use serde::Serialize;

/// One recovery.
#[derive(Serialize)]
pub(super) struct Record<'a> {
    pub(super) seed: u64,
    pub(super) setup: &'a str,
    pub(super) sender: &'a str,
    pub(super) lost: u64,
    /// Whether so many segments of one window were dropped, and no repair.
    pub(super) as_drawn: bool,
    /// Seconds.
    pub(super) time: f64,
    pub(super) timeouts: u64,
    pub(super) reductions: u64,
    /// Before the first time-out.
    pub(super) repairs: u64,
    pub(super) single: bool,
}

/// All runs of one sender, for each number of losses.
pub(super) struct Curve {
    pub(super) name: &'static str,
    pub(super) points: Vec<Point>,
}

/// All runs of one sender with one number of losses.
pub(super) struct Point {
    pub(super) lost: u64,
    pub(super) time: Interval,
    pub(super) timeouts: f64,
    /// Reductions of the window.
    pub(super) reductions: f64,
    /// Of runs with a time-out, repairs before it.
    pub(super) repairs: Vec<f64>,
    /// Runs, and those with the losses that were asked for.
    pub(super) runs: u64,
    pub(super) as_drawn: u64,
    /// Whether all runs went without a time-out, and most of them within a single RTT.
    pub(super) is_free: bool,
    pub(super) is_single: bool,
}

impl Point {
    pub(super) fn of(lost: u64, records: &[Record<'_>]) -> Self {
        let of = |value: fn(&Record<'_>) -> f64| {
            Interval::of(&records.iter().map(value).collect::<Vec<_>>())
        };
        let late = records.iter().filter(|r| r.timeouts > 0);
        Self {
            lost,
            time: of(|r| r.time),
            timeouts: of(|r| r.timeouts as f64).mean,
            reductions: of(|r| r.reductions as f64).mean,
            repairs: late.map(|r| r.repairs as f64).collect(),
            runs: records.len() as u64,
            as_drawn: records.iter().filter(|r| r.as_drawn).count() as u64,
            is_free: records.iter().all(|r| r.timeouts == 0),
            is_single: records.iter().filter(|r| r.single).count() * 2 > records.len(),
        }
    }
}

impl Curve {
    /// The most losses up to which `is_so` of every number.
    fn up_to(&self, is_so: fn(&Point) -> bool) -> u64 {
        self.points.iter().take_while(|p| is_so(p)).last().map_or(0, |p| p.lost)
    }

    /// Without a time-out in any run.
    pub(super) fn free(&self) -> u64 {
        self.up_to(|p| p.is_free)
    }

    /// In a single RTT in most runs.
    pub(super) fn single(&self) -> u64 {
        self.up_to(|p| p.is_single)
    }

    /// The mean of the means over numbers of losses for which `counts`, in seconds.
    pub(super) fn mean(&self, counts: impl Fn(u64) -> bool) -> f64 {
        let of: Vec<f64> =
            self.points.iter().filter(|p| counts(p.lost)).map(|p| p.time.mean).collect();
        of.iter().sum::<f64>() / of.len() as f64
    }

    /// The mean number of reductions in a recovery from up to `most` losses.
    pub(super) fn reductions(&self, most: u64) -> f64 {
        let counted: Vec<_> = self.points.iter().filter(|p| p.lost <= most).collect();
        counted.iter().map(|p| p.reductions).sum::<f64>() / counted.len() as f64
    }

    /// Repairs before the first time-out, of all runs that have one.
    pub(super) fn repairs(&self) -> Vec<f64> {
        self.points.iter().flat_map(|p| p.repairs.iter().copied()).collect()
    }

    /// The coefficient of determination of a line through the means up to `most` losses.
    pub(super) fn linearity(&self, most: u64) -> f64 {
        let xy: Vec<(f64, f64)> = self
            .points
            .iter()
            .filter(|p| p.lost <= most)
            .map(|p| (p.lost as f64, p.time.mean))
            .collect();
        let n = xy.len() as f64;
        let (mx, my) =
            (xy.iter().map(|p| p.0).sum::<f64>() / n, xy.iter().map(|p| p.1).sum::<f64>() / n);
        let sum =
            |f: &dyn Fn(f64, f64) -> f64| xy.iter().map(|(x, y)| f(x - mx, y - my)).sum::<f64>();
        sum(&|x, y| x * y).powi(2) / (sum(&|x, _| x * x) * sum(&|_, y| y * y))
    }
}
