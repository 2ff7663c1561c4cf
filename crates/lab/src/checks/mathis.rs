//! One flow over random loss.

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::{FlowSpec, Interval, RunResult, Scenario, Topology, Wire};
use airtcp_trace::figure::{Figure, Style};
use airtcp_types::NodeId;
use serde::Serialize;

use crate::progress::Progress;
use crate::{
    Experiment, Findings, Ground, Kind, LabError, Run, Verdict, draw, feed, simulate, theory,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/mathis",
    what: "One sack/reno flow over random loss, on a link it does not fill, against Mathis' law",
    source: "Mathis, Semke, Mahdavi, Ott 1997: MSS / RTT * sqrt(3 / (2 b p)), b = 1 as bytes are counted",
    kind: Kind::SelfCheck,
    ground: Ground::Simulated,
    seconds: 120,
    seeds: 10,
    body,
};

/// Per cent of packets.
const LOSSES: [f64; 5] = [0.25, 0.5, 1.0, 1.5, 2.0];
const LINK: &str = "rate 100mbit delay 25ms limit 1000";
const SECONDS: u64 = 300;
const WARM_UP: u64 = 20;
/// A packet of 1500 bytes less its IP and TCP headers and timestamps.
const MSS: f64 = 1_448.0;
/// How far from a law the mean may be.
const WITHIN: f64 = 0.1;
/// The left end of a chain.
const SENDER: NodeId = NodeId(0);

const NOTE: &str = "The cycle is the law's with a round without growth after each loss. It is held against what was sent \
     while no time-out held the sender up: RFC 6675 does not see that a repair is lost, and waits for the timer. What \
     the law, the cycle and a flow differ in besides: windows are whole segments, and losses come at random, not at the end \
     of equal cycles.";

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    profile: &'a str,
    loss: f64,
    goodput: f64,
    rtt: f64,
    /// The law's, and the goodput over it.
    law: f64,
    ratio: f64,
    reductions: u64,
    timeouts: u64,
    /// The share of the time that time-outs held the sender up.
    held: f64,
    /// In the rest of it: the goodput, the cycle's, and their ratio.
    free: f64,
    cycle: f64,
    free_ratio: f64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "profile",
        "loss, %",
        "goodput, Mbit/s",
        "law",
        "ratio",
        "cuts a run",
        "time-outs a run",
        "held up, %",
        "in the rest, Mbit/s",
        "cycle",
        "ratio of the rest",
    ]);
    let mut series = Vec::new();
    let (mut laws, mut cycles) = (Vec::new(), Vec::new());
    for profile in [Profile::modern(), Profile::paper()] {
        let mut points = Vec::new();
        (laws, cycles) = (Vec::new(), Vec::new());
        for loss in LOSSES {
            let records = measure(run, loss, &profile)?;
            for record in &records {
                findings.record(record)?;
            }
            let case = Case::of(&records);
            findings.table.row(case.row(profile.name, loss));
            case.judge(&mut findings, &format!("{loss} % loss, {} profile", profile.name));
            points.push(draw::interval(loss, &case.goodput, 1e-6));
            laws.push(draw::point(loss, case.law / 1e6));
            cycles.push(draw::point(loss, case.cycle / 1e6));
        }
        series.push(draw::series(format!("measured, {}", profile.name), Style::Marks, points));
    }
    // Of the last profile: the laws differ by the round-trip time, which delayed ACKs make a few per cent longer.
    series.push(draw::series("Mathis' law", Style::Line, laws));
    series.push(draw::series("with a round of recovery", Style::Line, cycles));
    findings.notes.push(NOTE.to_owned());
    findings.picture(
        "mathis",
        Figure {
            title: "One sack/reno flow over random loss, RTT 50 ms".to_owned(),
            x: draw::log("loss, %"),
            y: draw::log("goodput, Mbit/s"),
            series,
        },
    );
    Ok(findings)
}

/// What all runs of a case say together.
struct Case {
    goodput: Interval,
    law: f64,
    ratio: Interval,
    reductions: f64,
    timeouts: f64,
    held: f64,
    free: Interval,
    cycle: f64,
    free_ratio: Interval,
}

impl Case {
    fn of(records: &[Record<'_>]) -> Self {
        let of = |value: fn(&Record<'_>) -> f64| {
            Interval::of(&records.iter().map(value).collect::<Vec<_>>())
        };
        Self {
            goodput: of(|r| r.goodput),
            law: of(|r| r.law).mean,
            ratio: of(|r| r.ratio),
            reductions: of(|r| r.reductions as f64).mean,
            timeouts: of(|r| r.timeouts as f64).mean,
            held: of(|r| r.held).mean,
            free: of(|r| r.free),
            cycle: of(|r| r.cycle).mean,
            free_ratio: of(|r| r.free_ratio),
        }
    }

    fn row(&self, profile: &str, loss: f64) -> [String; 11] {
        [
            profile.to_owned(),
            loss.to_string(),
            theory::show(&self.goodput, 1e-6, 3),
            format!("{:.3}", self.law / 1e6),
            theory::show(&self.ratio, 1.0, 3),
            format!("{:.1}", self.reductions),
            format!("{:.1}", self.timeouts),
            format!("{:.2}", self.held * 100.0),
            theory::show(&self.free, 1e-6, 3),
            format!("{:.3}", self.cycle / 1e6),
            theory::show(&self.free_ratio, 1.0, 3),
        ]
    }

    fn judge(&self, findings: &mut Findings, case: &str) {
        let off = |ratio: f64| (ratio - 1.0) * 100.0;
        let law = Verdict::of(is_near(&self.ratio), || {
            format!(
                "{:+.1} %, of which the round without growth after each loss is {:+.1} %, time-outs of lost \
                 repairs {:+.1} %, and the rest {:+.1} %",
                off(self.ratio.mean),
                off(self.cycle / self.law),
                off(self.goodput.mean / self.free.mean),
                off(self.free_ratio.mean),
            )
        });
        let show = |ratio| theory::show(ratio, 1.0, 3);
        let range = "0.9 to 1.1";
        findings.claim_beside(
            format!("goodput over the law's, {case}"),
            range,
            show(&self.ratio),
            law,
        );
        let cycle = Verdict::of(is_near(&self.free_ratio), || {
            format!("{:+.1} % while no time-out holds the sender up", off(self.free_ratio.mean))
        });
        let what = format!("without time-outs, over the cycle's, {case}");
        findings.claim(what, range, show(&self.free_ratio), cycle);
    }
}

fn is_near(ratio: &Interval) -> bool {
    (ratio.mean - 1.0).abs() <= WITHIN
}

fn measure<'a>(run: &Run, loss: f64, profile: &'a Profile) -> Result<Vec<Record<'a>>, LabError> {
    let scenario = scenario(loss, profile, run.is_small)?;
    let progress = || Progress::new(SENDER, scenario.warm_up);
    let runs = simulate::watched(run, |_| scenario.clone(), progress)?;
    let counted = (scenario.duration - scenario.warm_up).as_secs_f64();
    let record = |(result, progress): &(RunResult, Progress)| {
        let flow = &result.flows[0];
        let (rtt, share) = (flow.rtt.mean, loss / 100.0);
        let (law, cycle, free) = (mathis(rtt, share), cycle(rtt, share), progress.goodput());
        Record {
            seed: result.seed,
            profile: profile.name,
            loss,
            goodput: flow.goodput,
            rtt,
            law,
            ratio: flow.goodput / law,
            reductions: flow.reductions.unwrap_or(0),
            timeouts: flow.timeouts.unwrap_or(0),
            held: 1.0 - progress.time.as_secs_f64() / counted,
            free,
            cycle,
            free_ratio: free / cycle,
        }
    };
    Ok(runs.iter().map(record).collect())
}

/// Payload in bit/s. The RTT is the measured one, so that serialisation and queues are in it.
fn mathis(rtt: f64, loss: f64) -> f64 {
    MSS * 8.0 / rtt * (1.5 / loss).sqrt()
}

/// The same by the same argument, with the round trip that passes until a repair is acknowledged.
///
/// From w segments on, the window grows for w rounds by one each; then it is halved, and for a round it stays.
/// That is 1.5 w^2 + w segments in w + 1 rounds, one of which is lost.
fn cycle(rtt: f64, loss: f64) -> f64 {
    let window = ((1.0 + 6.0 / loss).sqrt() - 1.0) / 3.0;
    MSS * 8.0 / rtt / (loss * (window + 1.0))
}

fn scenario(loss: f64, profile: &Profile, is_small: bool) -> Result<Scenario, LabError> {
    let (warm_up, end) = if is_small { (2, 12) } else { (WARM_UP, WARM_UP + SECONDS) };
    let wire =
        Wire { forth: feed::spec(&format!("{LINK} loss {loss}%"))?, back: feed::spec(LINK)? };
    let combination = "sack/reno".parse().expect("a name of the registry");
    let flow = FlowSpec { profile: profile.clone(), ..FlowSpec::new(combination) };
    Ok(Scenario {
        warm_up: Duration::from_secs(warm_up),
        duration: Duration::from_secs(end),
        flows: vec![flow],
        ..Scenario::new("mathis", Topology::Chain { wires: vec![wire] })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_of_recovery_costs_the_more_the_smaller_windows_are() {
        for (loss, share) in [(0.005, 0.945), (0.01, 0.924), (0.02, 0.895)] {
            assert!((cycle(0.05, loss) / mathis(0.05, loss) - share).abs() < 1e-3, "{loss}");
        }
        // Windows of 20 to 40: 620 segments in 21 rounds.
        let (cycle, expected) = (cycle(1.0, 1.0 / 620.0), MSS * 8.0 * 620.0 / 21.0);
        assert!((cycle / expected - 1.0).abs() < 1e-9);
    }
}
