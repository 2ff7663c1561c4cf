//! Fig. 11: flows with and without DCR to mobiles with a radio each, behind one bottleneck.

use airtcp_basestation::StationConfig;
use airtcp_link::Arq;
use airtcp_sim::Radios;
use serde::Serialize;

use super::mixed::{dropped, outside, pairs, queue_for, sides};
use super::radio::towards;
use super::{ACCESS, ACCESS_AT_RANDOM, FAR_MORE, PAPERS, flow, timed};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig11",
    what: "12 flows with DCR and 12 without to mobiles, frame error 0 to 20 %",
    source: "DCR 4.1, Fig. 11",
    seconds: 620,
    body,
    ..Experiment::STUDY
};

/// The number of flows of each kind.
const FLOWS: u32 = 12;
/// The error rates, in per cent. The paper's text has no figures.
const ERRORS: [u32; 3] = [0, 5, 20];
const BACK: &str = "rate 10mbit delay 5ms limit 1000";

/// A level of congestion, by the per cent that the bottleneck's queue drops: the target, and the
/// range that the paper gives the level.
#[derive(Clone, Copy)]
struct Level {
    name: &'static str,
    sought: f64,
    band: (f64, f64),
}

const LEVELS: [Level; 3] = [
    Level { name: "low", sought: 0.5, band: (0.0, 1.0) },
    Level { name: "moderate", sought: 3.0, band: (2.5, 3.5) },
    Level { name: "high", sought: 5.0, band: (3.5, 100.0) },
];

/// The results of one pair at one level and error rate.
struct Outcome {
    error: u32,
    /// The queue of the bottleneck, in packets.
    queue: u32,
    /// The mean goodput of a flow with DCR divided by that of one without.
    ratio: Interval,
    /// The difference of these two divided by the mean of all flows.
    difference: Interval,
    /// Drops at the bottleneck, in per cent.
    dropped: Interval,
}

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    waits: &'a str,
    beside: &'a str,
    profile: &'a str,
    level: &'a str,
    error: u32,
    /// The bottleneck's queue, in packets.
    queue: u32,
    /// In bit/s, the flows with DCR first.
    goodputs: Vec<f64>,
    means: [f64; 2],
    timeouts: [u64; 2],
    /// Drops at the bottleneck, in per cent.
    dropped: f64,
    /// Drops in the radios' queues, in per cent.
    radio_dropped: f64,
    /// Losses on the radios after all tries, in per cent.
    lost: f64,
    reordered: f64,
}

/// The two kinds of flows that share the bottleneck.
struct Pair {
    names: [&'static str; 2],
    profile: Profile,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "waits | beside | profile | congestion | frames hit, % | queue | dropped, % | by the radios, % | \
         lost on the radios, % | reordered on the radios, % | waits: Mbit/s | beside: Mbit/s | ratio",
    );
    let mut series = Vec::new();
    let small = if run.is_small { 1 } else { usize::MAX };
    for (names, profile) in pairs().into_iter().take(small) {
        let pair = Pair { names, profile };
        let is_beside = pair.profile.name != PAPERS;
        // The claims are about the highest error rate; the others are for the picture.
        let errors = if is_beside { vec![ERRORS[ERRORS.len() - 1]] } else { run.points(&ERRORS) };
        let mut levels = Vec::new();
        for level in run.points(&LEVELS) {
            let (mut outcomes, mut drawn) = (Vec::new(), [Vec::new(), Vec::new()]);
            for error in errors.iter().copied() {
                let (outcome, means) = pair.outcome(run, &level, error, &mut findings)?;
                for (drawn, mean) in drawn.iter_mut().zip(&means) {
                    drawn.push(draw::interval(error.into(), mean, 1e-6));
                }
                outcomes.push(outcome);
            }
            // As many series as the paper has; the others are only in the table.
            if series.len() < 2 * LEVELS.len() {
                for (name, points) in pair.names.iter().zip(drawn) {
                    let name = format!("{name}, {} congestion", level.name);
                    series.push(draw::series(name, Style::LineAndMarks, points));
                }
            }
            levels.push((level, outcomes));
        }
        findings.beside(is_beside, |findings| claims(findings, &pair, &levels));
    }
    let title = "Twelve flows with DCR and twelve without on 10 Mbit/s, a radio of 1 Mbit/s each";
    let (x, y) = (
        draw::linear("frames hit, %"),
        draw::linear(&draw::more("mean goodput of a flow, Mbit/s")),
    );
    findings.picture("fig11", Figure { title: title.to_owned(), x, y, series });
    findings.note(super::SHORTER);
    findings.note(
        "every receiver has a plain radio to itself, 1 Mbit/s and 20 ms each way, with a queue of 50; frames of either way \
         are hit, and sent again one round trip of the radio later at the head of its queue. Together they carry 24 Mbit/s: \
         the bottleneck is the wire",
    );
    findings.note(
        "of each pair, level and error rate the bottleneck's queue is that whose share of drops in one run is \
         nearest to 0.5, 3 and 5 %; where the share then is out of the paper's range, nothing is claimed",
    );
    findings.note(
        "packets wait at random for up to 0.8 ms before the bottleneck, which is not in the paper; without, flows keep in \
         step with the queue",
    );
    Ok(findings)
}

impl Pair {
    fn name(&self) -> String {
        format!("{} beside {}, {}", self.names[0], self.names[1], self.profile.name)
    }

    /// Returns the outcome, and the mean goodput of each kind.
    fn outcome(
        &self,
        run: &Run,
        level: &Level,
        error: u32,
        findings: &mut Findings,
    ) -> Result<(Outcome, [Interval; 2]), LabError> {
        let queue = queue_for(run, level.sought, |queue| self.scenario(run, queue, error))?;
        let scenario = self.scenario(run, queue, error)?;
        let results = simulate::seeds(run, |seed| simulate::staggered(&scenario, seed))?;
        let records: Vec<_> = results
            .iter()
            .filter_map(|result| {
                let radio = towards(result)?;
                let (means, timeouts) = sides(result, FLOWS as usize);
                let full = radio.counters.queue_dropped as f64;
                Some(Record {
                    seed: result.seed,
                    waits: self.names[0],
                    beside: self.names[1],
                    profile: self.profile.name,
                    level: level.name,
                    error,
                    queue,
                    goodputs: result.flows.iter().map(|flow| flow.goodput).collect(),
                    means,
                    timeouts,
                    dropped: dropped(result),
                    radio_dropped: full / radio.counters.received.max(1) as f64 * 100.0,
                    lost: radio.residual_loss * 100.0,
                    reordered: radio.reordered * 100.0,
                })
            })
            .collect();
        for record in &records {
            findings.record(record)?;
        }
        let of = |value: &dyn Fn(&Record<'_>) -> f64| {
            Interval::of(&records.iter().map(value).collect::<Vec<_>>())
        };
        let means = [of(&|r| r.means[0]), of(&|r| r.means[1])];
        let outcome = Outcome {
            error,
            queue,
            ratio: of(&|r| r.means[0] / r.means[1].max(1.0)),
            difference: of(&|r| {
                2.0 * (r.means[0] - r.means[1]) / (r.means[0] + r.means[1]).max(1.0)
            }),
            dropped: of(&|r| r.dropped),
        };
        findings.table.row([
            self.names[0].to_owned(),
            self.names[1].to_owned(),
            self.profile.name.to_owned(),
            level.name.to_owned(),
            error.to_string(),
            queue.to_string(),
            theory::show(&outcome.dropped, 1.0, 2),
            theory::show(&of(&|r| r.radio_dropped), 1.0, 2),
            theory::show(&of(&|r| r.lost), 1.0, 3),
            theory::show(&of(&|r| r.reordered), 1.0, 2),
            theory::show(&means[0], 1e-6, 3),
            theory::show(&means[1], 1e-6, 3),
            theory::show(&outcome.ratio, 1.0, 2),
        ]);
        Ok((outcome, means))
    }

    fn scenario(&self, run: &Run, queue: u32, error: u32) -> Result<Scenario, LabError> {
        let bottleneck = Wire {
            forth: feed::spec(&format!("rate 10mbit delay 5ms limit {queue}"))?,
            back: feed::spec(BACK)?,
        };
        let access = feed::wire(ACCESS_AT_RANDOM, ACCESS)?;
        let radio = format!("plain rate 1mbit delay 20ms error {error}% queue 50");
        let radio = radio.parse().map_err(|source| LabError::Spec { text: radio, source })?;
        let station = StationConfig { radio, arq: Arq::Head, ..StationConfig::default() };
        let topology = Topology::Wireless { access, bottleneck, station, radios: Radios::Own };
        let numbered = |(side, number): (usize, u32)| FlowSpec {
            name: format!("{} {number}", self.names[side]),
            ..flow(self.names[side], &self.profile)
        };
        let both = (0..2).flat_map(|side| (1..=FLOWS).map(move |number| (side, number)));
        let scenario =
            Scenario { flows: both.map(numbered).collect(), ..Scenario::new("fig11", topology) };
        Ok(timed(scenario, run.is_small))
    }
}

/// DCR 4.1, at the highest error rate: far above SACK at low congestion, and nearer to SACK with
/// more congestion.
fn claims(findings: &mut Findings, pair: &Pair, levels: &[(Level, Vec<Outcome>)]) {
    let name = pair.name();
    let Some((low, first)) = levels.first().and_then(|(low, of)| Some((low, of.last()?))) else {
        return;
    };
    let reached = |level: &Level, outcome: &Outcome| {
        let paper = format!("{} to {} %", level.band.0, level.band.1);
        outside(&paper, level.band, &outcome.dropped, outcome.queue)
    };
    let verdict =
        reached(low, first).unwrap_or_else(|| FAR_MORE.verdict(&first.ratio, theory::unknown));
    findings.claim(
        format!("{name}: ratio at {} congestion, {} % hit", low.name, first.error),
        FAR_MORE.claimed(),
        theory::show(&first.ratio, 1.0, 2),
        verdict,
    );
    for (level, outcomes) in &levels[1..] {
        let Some(last) = outcomes.last() else { continue };
        let by = theory::difference(&first.difference, &last.difference);
        let verdict = reached(low, first)
            .or_else(|| reached(level, last))
            .unwrap_or_else(|| theory::above(&by, 0.0, theory::unknown));
        findings.claim(
            format!(
                "{name}: difference over the mean, {} % hit, {} congestion less {}",
                last.error, low.name, level.name
            ),
            "narrower with congestion (above 0)",
            theory::show(&by, 1.0, 2),
            verdict,
        );
    }
}
