//! Ranks the results of the comparison, and writes them as JSON.

use airtcp_link::Counters;
use airtcp_sim::{FlowResult, Interval, RunResult};
use airtcp_types::ByteCount;
use serde::{Serialize, Serializer};

use super::args::{self, CompareArgs};
use super::recommend::Recommendation;
use super::round_trip::{RoundTrip, last_change};
use super::{Plan, cubic, goodput_beside};

/// The report.
#[derive(Serialize)]
pub(super) struct Report {
    /// In the direction of the data, and in the other.
    pub(super) link: [String; 2],
    pub(super) seconds: f64,
    /// Whether that is the default length for this link.
    #[serde(skip)]
    pub(super) is_usual_length: bool,
    /// The time at the start that is not measured.
    pub(super) warm_up_seconds: f64,
    /// Whether the runs have random elements. Without any, one seed is enough.
    pub(super) is_random: bool,
    pub(super) seeds: u64,
    pub(super) flows: u32,
    /// The round-trip time of the idle link.
    pub(super) base_rtt_seconds: Option<f64>,
    /// The round-trip time with a full queue.
    #[serde(skip)]
    pub(super) full_rtt_seconds: f64,
    /// The capacity of the link: bandwidth-delay product plus queue.
    #[serde(skip)]
    pub(super) capacity: ByteCount,
    /// The size of TCP's buffers, if it is not the default.
    pub(super) buffer_bytes: Option<ByteCount>,
    /// The time of the link's last change; zero without changes.
    #[serde(skip)]
    pub(super) last_change_seconds: f64,
    /// The competitor in the shared runs, if there were any.
    pub(super) beside: Option<String>,
    /// The number of seeds of the shared runs.
    #[serde(skip)]
    pub(super) shared_seeds: u64,
    /// Sorted by goodput, best first.
    #[serde(rename = "combinations")]
    pub(super) rows: Vec<Row>,
    pub(super) recommendation: Option<Recommendation>,
    /// The number of combinations of `--with all`, if these are the usual ones.
    #[serde(skip)]
    pub(super) all: Option<usize>,
}

/// The results of a combination: means over the seeds, with their intervals; `null` if no run
/// measured a value.
#[derive(Clone, Serialize)]
pub(super) struct Row {
    pub(super) combination: String,
    /// Of all flows together.
    #[serde(rename = "goodput_bits_per_second")]
    pub(super) goodput: Interval,
    /// The best goodput minus this one, seed by seed; `None` if no data arrived.
    #[serde(rename = "behind_best_bits_per_second")]
    behind_best: Option<Interval>,
    /// Whether the interval of that difference includes zero. `None` if no data arrived, or if the
    /// link is random and there is only one seed.
    pub(super) as_good: Option<bool>,
    /// The share of a flow in the goodput of itself and a competing flow of `rack/cubic`.
    #[serde(rename = "share_beside_cubic", serialize_with = "or_null")]
    pub(super) share: Interval,
    /// The goodput of that flow of `rack/cubic`.
    #[serde(rename = "cubic_beside_bits_per_second", serialize_with = "or_null")]
    pub(super) cubic_beside: Interval,
    /// Retransmissions, as a share of the data segments sent.
    #[serde(rename = "sent_again_share", serialize_with = "or_null")]
    retransmitted: Interval,
    /// Spurious retransmissions, as a share of the data segments sent.
    #[serde(rename = "spurious_share", serialize_with = "or_null")]
    pub(super) spurious: Interval,
    /// Packets that the policer dropped, as a share of those that arrived at the link.
    #[serde(rename = "policed_share", serialize_with = "or_null")]
    pub(super) policed: Interval,
    /// Packets that the queue dropped, as a share of those that arrived at the link.
    #[serde(rename = "queue_dropped_share", serialize_with = "or_null")]
    pub(super) queue_dropped: Interval,
    /// Packets that the link lost or corrupted, as a share of those that arrived.
    #[serde(rename = "link_harmed_share", serialize_with = "or_null")]
    pub(super) link_harmed: Interval,
    /// Of all flows together; RRTP does not count them.
    #[serde(serialize_with = "or_null")]
    pub(super) timeouts: Interval,
    /// The mean of all samples.
    #[serde(serialize_with = "or_null")]
    rtt_seconds: Interval,
    /// The mean round-trip time relative to that of the idle link.
    #[serde(serialize_with = "or_null")]
    pub(super) rtt_inflation: Interval,
    /// Jain's index of the flows.
    #[serde(serialize_with = "or_null")]
    pub(super) jain: Interval,
    /// Connections of all runs that did not end as they should.
    pub(super) broken_connections: u64,
    /// The goodput with each seed.
    #[serde(skip)]
    by_seed: Vec<f64>,
}

fn or_null<S: Serializer>(interval: &Interval, serializer: S) -> Result<S::Ok, S::Error> {
    (interval.n > 0).then_some(interval).serialize(serializer)
}

/// The share of packets dropped at the queue or by the policer above which a row is marked. A sender
/// that probes for bandwidth loses a few per cent at a queue, but more than a fifth at a policer with
/// a small bucket.
pub(super) const FLOOD: f64 = 0.2;
/// Drops of the policer count if they are at least this many times those of the row with the least.
const POLICED_FACTOR: f64 = 2.0;

impl Row {
    /// Evaluates the runs of a combination. `beside` has the shared runs: the first flow is of the
    /// combination, the second of `rack/cubic`. `base_rtt` is in seconds.
    pub(super) fn new(
        combination: String,
        runs: &[RunResult],
        beside: &[RunResult],
        base_rtt: Option<f64>,
    ) -> Self {
        let interval = |runs: &[RunResult], value: &dyn Fn(&RunResult) -> Option<f64>| {
            Interval::of(&runs.iter().filter_map(value).collect::<Vec<_>>())
        };
        let over = |value: &dyn Fn(&RunResult) -> Option<f64>| interval(runs, value);
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
        let goodput = |run: &RunResult| run.flows.iter().map(|flow| flow.goodput).sum::<f64>();
        let by_seed: Vec<f64> = runs.iter().map(goodput).collect();
        let all_flows = runs.iter().chain(beside).flat_map(|run| &run.flows);
        Self {
            combination,
            goodput: Interval::of(&by_seed),
            behind_best: None,
            as_good: None,
            share: interval(beside, &share),
            cubic_beside: goodput_beside(beside),
            retransmitted: of_segments(|flow| flow.retransmissions),
            spurious: of_segments(|flow| flow.spurious),
            policed: of_packets(|link| link.policed),
            queue_dropped: of_packets(|link| link.queue_dropped),
            link_harmed: of_packets(|link| {
                link.channel_lost + link.disconnected + link.overflowed + link.corrupted
            }),
            timeouts: over(&|run| {
                run.flows
                    .iter()
                    .map(|flow| flow.timeouts)
                    .sum::<Option<u64>>()
                    .map(|sum| sum as f64)
            }),
            rtt_seconds: over(&rtt),
            rtt_inflation: over(&|run| Some(rtt(run)? / base_rtt?)),
            jain: over(&|run| (goodput(run) > 0.0).then_some(run.jain)),
            broken_connections: all_flows.map(|flow| flow.broken).sum(),
            by_seed,
        }
    }

    /// Returns whether any data arrived after the warm-up.
    pub(super) fn carried(&self) -> bool {
        self.goodput.mean > 0.0
    }

    /// Returns whether its goodput is not significantly below that of `best`. Both must have run
    /// with the same seeds.
    pub(super) fn may_match(&self, best: &Self) -> bool {
        self.behind(best).bounds().0 <= 0.0
    }

    /// Returns the goodput of `best` minus its own, seed by seed.
    fn behind(&self, best: &Self) -> Interval {
        let behind = best.by_seed.iter().zip(&self.by_seed).map(|(best, own)| best - own);
        Interval::of(&behind.collect::<Vec<_>>())
    }

    /// Returns whether it overfills the queue, or the bucket of the policer far more than the best of
    /// `rows`, its table: every sender may lose a fifth at a policer.
    pub(super) fn floods(&self, rows: &[Self]) -> bool {
        let policed = |row: &Self| row.policed.mean;
        let least = rows.iter().filter(|row| row.carried()).map(policed).reduce(f64::min);
        self.queue_dropped.mean > FLOOD
            || self.policed.mean > FLOOD
                && least.is_none_or(|least| self.policed.mean >= least * POLICED_FACTOR)
    }
}

impl Report {
    /// Ranks the rows, and recommends a combination. `beside_itself` is the goodput of a flow of
    /// cubic beside another one in bit/s, if it was measured.
    pub(super) fn new(
        args: &CompareArgs,
        plan: &Plan,
        rows: Vec<Row>,
        beside_itself: Option<f64>,
    ) -> Self {
        let RoundTrip { idle, full } = plan.round_trip;
        let rows = ranked(rows, plan.is_random);
        let link = args.link();
        Self {
            link: [link.forth.to_string(), link.back.to_string()],
            seconds: plan.scenario.duration.as_secs_f64(),
            is_usual_length: args.seconds.is_none(),
            warm_up_seconds: plan.scenario.warm_up.as_secs_f64(),
            is_random: plan.is_random,
            seeds: plan.seeds,
            flows: args.flows,
            base_rtt_seconds: (!idle.is_zero()).then_some(idle.as_secs_f64()),
            full_rtt_seconds: full.as_secs_f64(),
            capacity: plan.capacity,
            buffer_bytes: plan.buffer(&cubic().into()),
            last_change_seconds: last_change(&link).as_secs_f64(),
            beside: plan.beside.as_ref().map(ToString::to_string),
            shared_seeds: plan.shared_seeds,
            recommendation: Recommendation::of(&rows, beside_itself),
            rows,
            all: (args.with.0 == args::usual()).then(|| args::all().len()),
        }
    }
}

/// Sorts the rows by goodput, best first, and marks those not significantly worse than the best.
/// All ran with the same seeds, and a seed affects all of them in the same way, so that the
/// differences are compared seed by seed. On a random link, one seed gives no significance.
fn ranked(mut rows: Vec<Row>, is_random: bool) -> Vec<Row> {
    rows.sort_by(|a, b| b.goodput.mean.total_cmp(&a.goodput.mean));
    if let Some(best) = rows.first().cloned() {
        for row in rows.iter_mut().filter(|row| row.carried()) {
            let behind = row.behind(&best);
            let is_known = behind.n > 1 || !is_random;
            row.as_good = is_known.then(|| behind.bounds().0 <= 0.0);
            row.behind_best = Some(behind);
        }
    }
    rows
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

    fn marked(rows: &[Row], is_random: bool) -> Vec<(String, Option<bool>)> {
        let ranked = ranked(rows.to_vec(), is_random);
        ranked.into_iter().map(|row| (row.combination, row.as_good)).collect()
    }

    fn expected(rows: &[(&str, Option<bool>)]) -> Vec<(String, Option<bool>)> {
        rows.iter().map(|(name, as_good)| ((*name).to_owned(), *as_good)).collect()
    }

    #[test]
    fn differences_count_seed_by_seed_and_not_the_intervals() {
        // Seeds differ widely, so that the intervals overlap, but `behind` has a little less
        // goodput with each seed.
        let rows = [
            row("behind", &[0.9, 4.88, 8.91]),
            row("best", &[1.0, 5.0, 9.0]),
            row("level", &[1.5, 4.4, 9.0]),
        ];
        assert!(rows[0].goodput.bounds().1 > rows[1].goodput.bounds().0);
        let expected =
            expected(&[("best", Some(true)), ("level", Some(true)), ("behind", Some(false))]);
        assert_eq!(marked(&rows, true), expected);
    }

    #[test]
    fn one_seed_gives_ranks_only_without_randomness_and_ties_keep_their_order() {
        let rows = [row("a", &[2.0]), row("b", &[3.0]), row("c", &[3.0])];
        assert_eq!(marked(&rows, true), expected(&[("b", None), ("c", None), ("a", None)]));
        let known = [("b", Some(true)), ("c", Some(true)), ("a", Some(false))];
        assert_eq!(marked(&rows, false), expected(&known));
    }

    #[test]
    fn a_combination_without_goodput_has_no_rank() {
        let rows = [row("none", &[0.0, 0.0]), row("some", &[0.0, 1.0])];
        assert_eq!(marked(&rows, true), expected(&[("some", Some(true)), ("none", None)]));
        let json = serde_json::to_value(&marked_rows(&rows)[1]).unwrap();
        assert_eq!(json["goodput_bits_per_second"]["mean"], 0.0);
        for field in ["behind_best_bits_per_second", "as_good", "rtt_seconds", "share_beside_cubic"]
        {
            assert!(json[field].is_null(), "{field}: {json}");
        }
    }

    fn marked_rows(rows: &[Row]) -> Vec<Row> {
        ranked(rows.to_vec(), true)
    }
}
