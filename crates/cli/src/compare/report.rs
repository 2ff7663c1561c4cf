//! What the comparison shows: a table, or JSON.

use std::fmt;
use std::time::Duration;

use airtcp_link::spec::RateSpec;
use airtcp_link::{Counters, LinkSpec};
use airtcp_sim::{FlowResult, Interval, RunResult};
use airtcp_types::ByteCount;
use serde::Serialize;

use super::args::{self, CompareArgs};
use crate::table::{link_lines, rate_unit, shown, table, wrapped};
use crate::value::LinkPair;

/// All results.
#[derive(Serialize)]
pub(super) struct Report {
    /// In the direction of the data, and in the other.
    pub(super) link: [String; 2],
    seconds: f64,
    pub(super) seeds: u32,
    flows: u32,
    /// What the link alone takes.
    base_rtt_seconds: Option<f64>,
    /// What a flow of each combination shared the link with, if one did.
    beside: Option<String>,
    /// The best goodput first.
    #[serde(rename = "combinations")]
    pub(super) rows: Vec<Row>,
    /// How many combinations `--with all` runs, if these are the usual ones.
    #[serde(skip)]
    all: Option<usize>,
}

/// A combination: means over the seeds, with their intervals.
#[derive(Clone, Serialize)]
pub(super) struct Row {
    pub(super) combination: String,
    /// Of all flows together.
    #[serde(rename = "goodput_bits_per_second")]
    pub(super) goodput: Interval,
    /// The best goodput less this, seed by seed.
    #[serde(rename = "behind_best_bits_per_second")]
    behind_best: Interval,
    /// Whether the interval of that holds zero.
    as_good: bool,
    /// What a flow gets of what it and one of the default combination get together.
    #[serde(rename = "share_beside_default")]
    share: Option<Interval>,
    /// What the flow of the default combination gets then.
    #[serde(rename = "default_beside_bits_per_second")]
    default_beside: Option<Interval>,
    /// Of the data segments sent, the share that was sent again.
    #[serde(rename = "sent_again_share")]
    retransmitted: Interval,
    /// The share that was sent again without need.
    #[serde(rename = "spurious_share")]
    spurious: Interval,
    /// Of the packets that came to the link, the share that its queue dropped.
    #[serde(rename = "queue_dropped_share")]
    queue_dropped: Interval,
    /// The share that the link lost or damaged.
    #[serde(rename = "link_harmed_share")]
    link_harmed: Interval,
    /// Of all flows together.
    timeouts: Interval,
    /// The mean of all samples.
    rtt_seconds: Interval,
    /// That over the link's own.
    pub(super) rtt_inflation: Interval,
    /// Jain's index of the flows.
    jain: Interval,
    /// Connections of all runs that ended otherwise than they should.
    broken_connections: u64,
    /// The goodput with each seed.
    #[serde(skip)]
    by_seed: Vec<f64>,
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
    /// `beside`: runs in which a flow of the combination comes first, and one of the default second.
    pub(super) fn new(
        combination: String,
        runs: &[RunResult],
        beside: &[RunResult],
        base_rtt: Option<f64>,
    ) -> Self {
        let over = |value: &dyn Fn(&RunResult) -> Option<f64>| {
            Interval::of(&runs.iter().filter_map(value).collect::<Vec<_>>())
        };
        let sum = |run: &RunResult, of: fn(&FlowResult) -> u64| {
            run.flows.iter().map(of).sum::<u64>() as f64
        };
        let of_segments = |of: fn(&FlowResult) -> u64| {
            over(&move |run| {
                let sent = sum(run, |flow| flow.segments_sent);
                (sent > 0.0).then(|| sum(run, of) / sent)
            })
        };
        let of_packets = |of: fn(&Counters) -> u64| {
            over(&move |run| {
                let counters = &run.links.first()?.counters;
                (counters.received > 0).then(|| of(counters) as f64 / counters.received as f64)
            })
        };
        let rtt = |run: &RunResult| {
            let samples = sum(run, |flow| flow.rtt.count);
            let total: f64 = run.flows.iter().map(|f| f.rtt.mean * f.rtt.count as f64).sum();
            (samples > 0.0).then(|| total / samples)
        };
        let share = |run: &RunResult| {
            let [own, other] = &run.flows[..] else { return None };
            let both = own.goodput + other.goodput;
            (both > 0.0).then(|| own.goodput / both)
        };
        let other = |run: &RunResult| run.flows.get(1).map(|flow| flow.goodput);
        let goodput = |run: &RunResult| run.flows.iter().map(|flow| flow.goodput).sum::<f64>();
        let by_seed: Vec<f64> = runs.iter().map(goodput).collect();
        let all_flows = runs.iter().chain(beside).flat_map(|run| &run.flows);
        Self {
            combination,
            goodput: Interval::of(&by_seed),
            behind_best: Interval::default(),
            as_good: false,
            share: (!beside.is_empty())
                .then(|| Interval::of(&beside.iter().filter_map(share).collect::<Vec<_>>())),
            default_beside: (!beside.is_empty())
                .then(|| Interval::of(&beside.iter().filter_map(other).collect::<Vec<_>>())),
            retransmitted: of_segments(|flow| flow.retransmissions),
            spurious: of_segments(|flow| flow.spurious),
            queue_dropped: of_packets(|link| link.queue_dropped),
            link_harmed: of_packets(|link| {
                link.channel_lost + link.disconnected + link.overflowed + link.corrupted
            }),
            timeouts: over(&|run| Some(sum(run, |flow| flow.timeouts))),
            rtt_seconds: over(&rtt),
            rtt_inflation: over(&|run| Some(rtt(run)? / base_rtt?)),
            jain: over(&|run| Some(run.jain)),
            broken_connections: all_flows.map(|flow| flow.broken).sum(),
            by_seed,
        }
    }
}

impl Report {
    pub(super) fn new(args: &CompareArgs, beside: Option<String>, rows: Vec<Row>) -> Self {
        Self {
            link: [args.link.forth.to_string(), args.link.back.to_string()],
            seconds: args.seconds.as_secs_f64(),
            seeds: args.seeds,
            flows: args.flows,
            base_rtt_seconds: base_rtt(&args.link),
            beside,
            rows: ranked(rows),
            all: (args.with.0 == args::usual()).then(|| args::all().len()),
        }
    }
}

/// The best goodput first; those that are as good as that are marked. All ran with the same seeds, and what a seed
/// does to the link it does to all: so their differences with each seed are looked at.
fn ranked(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| b.goodput.mean.total_cmp(&a.goodput.mean));
    if let Some(best) = rows.first().map(|row| row.by_seed.clone()) {
        for row in &mut rows {
            let behind = best.iter().zip(&row.by_seed).map(|(best, own)| best - own);
            row.behind_best = Interval::of(&behind.collect::<Vec<_>>());
            row.as_good = row.behind_best.bounds().0 <= 0.0;
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
            seeds => format!("seeds 1 to {seeds}: means, ± 95 % intervals"),
        };
        writeln!(f, "{} s of virtual time, {flows}, {spread}", self.seconds)?;
        writeln!(f, "{}", link_lines(&self.link))?;
        let (factor, unit) = rate_unit(self.rows.first().map_or(0.0, |row| row.goodput.mean));
        let goodput = format!("goodput\n{unit}");
        let mut header = vec!["strategies", &goodput];
        header.extend(self.beside.as_ref().map(|_| "share\n%"));
        header.extend(["queue\n%", "link\n%", "spur.\n%", "time-\nouts", "RTT\nx"]);
        let has_jain = self.flows > 1;
        header.extend(has_jain.then_some("Jain"));
        let rows = self.rows.iter().map(|row| row.cells(factor, has_jain));
        writeln!(f, "{}", table(header, 1, rows))?;
        let mut notes = vec![
            "*: the best goodput, or one whose difference to it, seed by seed, may be chance (95 %)"
                .to_owned(),
        ];
        let shared = self.rows.first().and_then(|row| row.share).map_or(0, |share| share.n);
        notes.extend(self.beside.as_ref().map(|beside| {
            format!(
                "share beside {beside}: its part of what it and one flow of {beside} get together, seeds 1 to \
                 {shared}; above 50 it takes what the other leaves, or takes from it (--json: \
                 default_beside_bits_per_second)"
            )
        }));
        notes.push("queue, link: of the packets sent, those that the queue dropped, and those that the link lost or \
             damaged".to_owned());
        let base = self.base_rtt_seconds.map(|rtt| {
            format!("; RTT x: the mean over {:.2} ms, what the link alone takes", rtt * 1e3)
        });
        notes.push(format!(
            "spur.: of the segments with data, those sent again without need{}",
            base.unwrap_or_default()
        ));
        let broken: u64 = self.rows.iter().map(|row| row.broken_connections).sum();
        if broken > 0 {
            notes.push(format!("BROKEN: {broken} connections were reset or given up before the end; --json says whose"));
        }
        notes.extend(self.all.map(|all| {
            format!(
                "These are the usual {}; --with all runs {all}, --with usual,A,B others, too, of the parts that \
                 `airtcp names` lists. --json has all intervals.",
                self.rows.len()
            )
        }));
        let notes: Vec<_> = notes.iter().map(|note| wrapped(note, 2)).collect();
        f.write_str(&notes.join("\n"))
    }
}

impl Row {
    /// `factor`: from bit/s to the unit of all.
    fn cells(&self, factor: f64, has_jain: bool) -> Vec<String> {
        let mean = |of: &Interval, factor: f64, decimals: usize| match of.n {
            0 => "-".to_owned(),
            _ if of.mean == 0.0 => "0".to_owned(),
            _ => format!("{:.decimals$}", of.mean * factor),
        };
        let broken = if self.broken_connections > 0 { " BROKEN" } else { "" };
        let mut cells = vec![
            format!("{} {}{broken}", if self.as_good { "*" } else { " " }, self.combination),
            shown(&self.goodput, factor, 3),
        ];
        cells.extend(self.share.as_ref().map(|share| shown(share, 100.0, 0)));
        cells.extend([
            mean(&self.queue_dropped, 100.0, 2),
            mean(&self.link_harmed, 100.0, 2),
            mean(&self.spurious, 100.0, 2),
            mean(&self.timeouts, 1.0, 1),
            mean(&self.rtt_inflation, 1.0, 2),
        ]);
        if has_jain {
            cells.push(mean(&self.jain, 1.0, 3));
        }
        cells
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn row(combination: &str, goodput: &[f64]) -> Row {
        let mut row = Row::new(combination.to_owned(), &[], &[], None);
        row.goodput = Interval::of(goodput);
        row.by_seed = goodput.to_vec();
        row.rtt_inflation = Interval::of(&[1.0 + goodput.len() as f64]);
        row
    }

    fn marked(rows: &[Row]) -> Vec<(String, bool)> {
        let ranked = ranked(rows.to_vec());
        ranked.into_iter().map(|row| (row.combination, row.as_good)).collect()
    }

    fn expected(rows: &[(&str, bool)]) -> Vec<(String, bool)> {
        rows.iter().map(|(name, as_good)| ((*name).to_owned(), *as_good)).collect()
    }

    #[test]
    fn differences_count_seed_by_seed_and_not_the_intervals() {
        // Seeds differ widely, and `behind` loses a little with each of them: their intervals overlap.
        let rows = [
            row("behind", &[0.9, 4.88, 8.91]),
            row("best", &[1.0, 5.0, 9.0]),
            row("level", &[1.5, 4.4, 9.0]),
        ];
        assert!(rows[0].goodput.bounds().1 > rows[1].goodput.bounds().0);
        let expected = expected(&[("best", true), ("level", true), ("behind", false)]);
        assert_eq!(marked(&rows), expected);
    }

    #[test]
    fn with_one_seed_only_the_best_is_marked_and_ties_keep_their_order() {
        let rows = [row("a", &[2.0]), row("b", &[3.0]), row("c", &[3.0])];
        assert_eq!(marked(&rows), expected(&[("b", true), ("c", true), ("a", false)]));
    }
}
