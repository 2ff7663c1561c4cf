//! Fig. 11: flows with and without DCR to mobiles with a radio each, behind one bottleneck.

use airtcp_basestation::StationConfig;
use airtcp_link::Arq;
use airtcp_sim::Radios;

use super::mixed::{Outcome, fields, flows, outside, pairs, queue_for};
use super::radio::towards;
use super::{ACCESS, ACCESS_AT_RANDOM, FAR_MORE, PAPERS, timed};
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
                let outcome = pair.outcome(run, &level, error, &mut findings)?;
                for (drawn, mean) in drawn.iter_mut().zip(&outcome.means) {
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
    findings.plot(
        "fig11",
        title,
        (
            draw::linear("frames hit, %"),
            draw::linear(&draw::more("mean goodput of a flow, Mbit/s")),
        ),
        series,
    );
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

    fn outcome(
        &self,
        run: &Run,
        level: &Level,
        error: u32,
        findings: &mut Findings,
    ) -> Result<Outcome, LabError> {
        let queue = queue_for(run, level.sought, |queue| self.scenario(run, queue, error))?;
        let scenario = self.scenario(run, queue, error)?;
        let [waits, beside] = self.names;
        let place = fields! { waits, beside };
        let place = place.with("profile", self.profile.name).with("level", level.name);
        let place = place.with("error", error);
        let sample = findings.measure(run, &place, |seed| {
            let result = simulate::once(simulate::staggered(&scenario, seed), seed)?;
            let fields = fields(&result, queue);
            let Some(radio) = towards(&result) else { return Ok(fields) };
            let full = radio.counters.queue_dropped as f64;
            Ok(fields
                .with("radio_dropped", full / radio.counters.received.max(1) as f64 * 100.0)
                .with("lost", radio.residual_loss * 100.0)
                .with("reordered", radio.reordered * 100.0))
        })?;
        let outcome = Outcome::of(error, &sample);
        let row = [waits, beside, self.profile.name, level.name].map(str::to_owned).into_iter();
        let row = row.chain([error, queue].map(|number| number.to_string()));
        let [dropped, rest @ ..] = outcome.cells();
        let radio = [("radio_dropped", 1.0, 2), ("lost", 1.0, 3), ("reordered", 1.0, 2)];
        let row = row.chain([dropped]).chain(sample.cells(&radio)).chain(rest);
        findings.table.add(row.collect());
        Ok(outcome)
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
        let flows = flows(self.names, &self.profile, FLOWS);
        Ok(timed(Scenario { flows, ..Scenario::new("fig11", topology) }, run.is_small))
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
        format!("{name}: ratio at {} congestion, {} % hit", low.name, first.x),
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
                last.x, low.name, level.name
            ),
            "narrower with congestion (above 0)",
            theory::show(&by, 1.0, 2),
            verdict,
        );
    }
}
