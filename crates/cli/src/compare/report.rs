//! What the comparison shows: a table, or JSON.

use std::fmt;
use std::time::Duration;

use airtcp_link::LinkSpec;
use airtcp_link::spec::RateSpec;
use airtcp_sim::{FlowResult, Interval, RunResult};
use airtcp_types::ByteCount;
use serde::Serialize;

use super::args::CompareArgs;
use crate::table::{rate_beside, shown, table};
use crate::value::LinkPair;

/// All results.
#[derive(Serialize)]
pub(super) struct Report {
    /// In the direction of the data, and in the other.
    pub(super) link: [String; 2],
    pub(super) seconds: f64,
    pub(super) seeds: u32,
    pub(super) flows: u32,
    /// What the link alone takes, in seconds.
    base_rtt: Option<f64>,
    /// The best goodput first.
    #[serde(rename = "combinations")]
    pub(super) rows: Vec<Row>,
}

/// A combination: means over the seeds, with their intervals.
#[derive(Clone, Serialize)]
pub(super) struct Row {
    pub(super) combination: String,
    /// Of all flows together, in bit/s.
    pub(super) goodput: Interval,
    /// Whether the interval of its goodput overlaps the best one's, or it is the best.
    pub(super) as_good: bool,
    /// Of the data segments sent, the share that was sent again.
    retransmitted: Interval,
    /// The share that was sent again without need.
    spurious: Interval,
    /// Of all flows together.
    timeouts: Interval,
    /// The mean of all samples, in seconds.
    rtt: Interval,
    /// That over the link's own.
    pub(super) rtt_inflation: Interval,
    /// Jain's index of the flows.
    jain: Interval,
}

/// A full packet, and an ACK with time stamps, in bytes.
const PACKET: ByteCount = ByteCount(1500);
const ACK: ByteCount = ByteCount(52);

/// What the delay and the rate of an idle link take for a full packet and its ACK, in seconds; `None` if that is
/// no time. What is drawn at random is not in it, nor what a trace keeps packets waiting.
pub(super) fn base_rtt(link: &LinkPair) -> Option<f64> {
    let one_way = |spec: &LinkSpec, bytes: ByteCount| {
        let serialised = match spec.rate {
            RateSpec::Constant { rate, overhead } => rate.time_for(bytes + overhead),
            RateSpec::Unlimited | RateSpec::Trace(_) => Duration::ZERO,
        };
        let path = spec.paths.map_or(Duration::ZERO, |(one, other)| one.min(other));
        serialised + spec.half.unwrap_or_default() + spec.delay.base + path
    };
    let rtt = one_way(&link.forth, PACKET) + one_way(&link.back, ACK);
    (!rtt.is_zero()).then_some(rtt.as_secs_f64())
}

impl Row {
    pub(super) fn new(combination: String, runs: &[RunResult], base_rtt: Option<f64>) -> Self {
        let over = |value: &dyn Fn(&RunResult) -> Option<f64>| {
            Interval::of(&runs.iter().filter_map(value).collect::<Vec<_>>())
        };
        let sum = |run: &RunResult, of: fn(&FlowResult) -> u64| {
            run.flows.iter().map(of).sum::<u64>() as f64
        };
        let share = |of: fn(&FlowResult) -> u64| {
            over(&move |run| {
                let sent = sum(run, |flow| flow.segments_sent);
                (sent > 0.0).then(|| sum(run, of) / sent)
            })
        };
        let rtt = |run: &RunResult| {
            let samples = sum(run, |flow| flow.rtt.count);
            let total: f64 = run.flows.iter().map(|f| f.rtt.mean * f.rtt.count as f64).sum();
            (samples > 0.0).then(|| total / samples)
        };
        Self {
            combination,
            goodput: over(&|run| Some(run.flows.iter().map(|flow| flow.goodput).sum())),
            as_good: false,
            retransmitted: share(|flow| flow.retransmissions),
            spurious: share(|flow| flow.spurious),
            timeouts: over(&|run| Some(sum(run, |flow| flow.timeouts))),
            rtt: over(&rtt),
            rtt_inflation: over(&|run| Some(rtt(run)? / base_rtt?)),
            jain: over(&|run| Some(run.jain)),
        }
    }
}

impl Report {
    pub(super) fn new(args: &CompareArgs, base_rtt: Option<f64>, rows: Vec<Row>) -> Self {
        Self {
            link: [args.link.forth.to_string(), args.link.back.to_string()],
            seconds: args.seconds.as_secs_f64(),
            seeds: args.seeds,
            flows: args.flows,
            base_rtt,
            rows: ranked(rows),
        }
    }
}

/// The best goodput first; those that are as good as that are marked.
fn ranked(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| b.goodput.mean.total_cmp(&a.goodput.mean));
    if let Some(best) = rows.first().map(|row| row.goodput.bounds().0) {
        for row in &mut rows {
            row.as_good = row.goodput.bounds().1 >= best;
        }
    }
    rows
}

/// As a table.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows = match self.flows {
            1 => "one flow alone".to_owned(),
            flows => format!("{flows} flows together"),
        };
        let spread = match self.seeds {
            1 => "seed 1: one run says nothing of the spread".to_owned(),
            seeds => format!("seeds 1 to {seeds}: means with their 95 % intervals"),
        };
        let [forth, back] = &self.link;
        writeln!(f, "{} s of virtual time, {flows}, {spread}", self.seconds)?;
        writeln!(f, "there: {forth}\nback:  {back}")?;
        let header =
            ["", "strategies", "goodput", "sent again", "spurious", "timeouts", "RTT ms", "RTT x"];
        let mut header = Vec::from(header);
        if self.flows > 1 {
            header.push("Jain");
        }
        let best = self.rows.first().map_or(0.0, |row| row.goodput.mean);
        let rows = self.rows.iter().map(|row| row.cells(best, self.flows > 1));
        writeln!(f, "{}", table(header, 2, rows))?;
        writeln!(f, "*: the best goodput, or one whose interval overlaps the best one's")?;
        write!(f, "sent again, spurious: in % of the segments with data")?;
        if let Some(rtt) = self.base_rtt {
            let rtt = rtt * 1e3;
            write!(f, "; RTT x: over {rtt:.2} ms, what the link alone takes")?;
        }
        Ok(())
    }
}

impl Row {
    /// `best`: the best goodput.
    fn cells(&self, best: f64, has_jain: bool) -> Vec<String> {
        let mut cells = vec![
            if self.as_good { "*" } else { "" }.to_owned(),
            self.combination.clone(),
            rate_beside(&self.goodput, best),
            shown(&self.retransmitted, 100.0, 2),
            shown(&self.spurious, 100.0, 2),
            shown(&self.timeouts, 1.0, 1),
            shown(&self.rtt, 1e3, 2),
            shown(&self.rtt_inflation, 1.0, 2),
        ];
        if has_jain {
            cells.push(shown(&self.jain, 1.0, 4));
        }
        cells
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn row(combination: &str, goodput: &[f64]) -> Row {
        let mut row = Row::new(combination.to_owned(), &[], None);
        row.goodput = Interval::of(goodput);
        row.rtt_inflation = Interval::of(&[1.0 + goodput.len() as f64]);
        row
    }

    #[test]
    fn the_best_is_first_and_what_overlaps_it_is_marked() {
        let rows = [
            row("worst", &[1.0, 1.1, 1.0]),
            row("level", &[9.0, 9.5, 10.4]),
            row("best", &[9.9, 10.0, 10.1]),
            row("wide", &[1.0, 5.0, 9.0]),
        ];
        let ranked = ranked(rows.to_vec());
        let shown: Vec<_> = ranked.iter().map(|row| (&*row.combination, row.as_good)).collect();
        assert_eq!(shown, [("best", true), ("level", true), ("wide", true), ("worst", false)]);
    }

    #[test]
    fn without_intervals_only_the_best_is_marked_and_ties_keep_their_order() {
        let rows = [row("a", &[2.0]), row("b", &[3.0]), row("c", &[3.0])];
        let ranked = ranked(rows.to_vec());
        let shown: Vec<_> = ranked.iter().map(|row| (&*row.combination, row.as_good)).collect();
        assert_eq!(shown, [("b", true), ("c", true), ("a", false)]);
    }
}
