//! The estimate under random loss, and where ACKs come in bunches.

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::{FlowSpec, Interval, Scenario, Topology, Way, Wire};
use airtcp_trace::figure::{Figure, Style};
use airtcp_types::{Event, EventKind, NodeId, Observer};
use serde::Serialize;

use crate::{
    Experiment, Findings, Ground, Kind, LabError, Run, Verdict, draw, feed, simulate, theory,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "westwood/compression",
    what: "westwood and westwood-plus: their estimates under random loss, and with ACKs in bunches",
    source: "Grieco and Mascolo 2004, 2 (ACK compression); LE 5.2.1 (random loss)",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 120,
    seeds: 10,
    body,
};

const CONTROLS: [&str; 3] = ["westwood", "westwood-plus", "reno"];
/// Random loss, in thousandths of a per cent.
const LOSSES: [u32; 5] = [10, 100, 1_000, 2_000, 5_000];
const RTT: Duration = Duration::from_millis(50);

/// What ACKs meet on their way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Back {
    /// Nothing.
    Clean,
    /// Delays that vary; in order, so that a late ACK holds up those behind it.
    Jitter,
    /// The data of a flow the other way, in one queue with it.
    SlowQueue,
}

impl Back {
    const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Jitter => "jitter",
            Self::SlowQueue => "flow the other way",
        }
    }

    const fn link(self) -> &'static str {
        match self {
            Self::Clean => "rate 10mbit delay 25ms limit 50",
            Self::Jitter => "rate 10mbit delay 25ms 20ms inorder limit 50",
            Self::SlowQueue => "rate 2mbit delay 25ms limit 50",
        }
    }
}

/// ssthresh of every reduction, which is the estimate times the smallest round trip.
#[derive(Clone, Debug, Default)]
struct Reductions {
    is_due: bool,
    ssthresh: Vec<f64>,
}

impl Observer for Reductions {
    fn on_event(&mut self, node: NodeId, event: &Event) {
        // The left host is the first node of a chain.
        if node != NodeId(0) {
            return;
        }
        match event.kind {
            EventKind::Reduced { .. } => self.is_due = true,
            EventKind::Window { ssthresh: Some(ssthresh), .. } if self.is_due => {
                self.is_due = false;
                self.ssthresh.push(ssthresh.0 as f64);
            }
            _ => {}
        }
    }
}

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    control: &'a str,
    profile: &'a str,
    back: Back,
    /// Thousandths of a per cent.
    loss: u32,
    /// bit/s.
    goodput: f64,
    /// bit/s, the mean over reductions.
    estimate: f64,
    reductions: usize,
    timeouts: u64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "control",
        "profile",
        "ACKs' way",
        "loss, %",
        "goodput, Mbit/s",
        "estimate, Mbit/s",
        "over goodput",
    ]);
    let mut series = Vec::new();
    for profile in [Profile::paper(), Profile::modern()] {
        for back in [Back::Clean, Back::Jitter, Back::SlowQueue] {
            let mut excess = Vec::new();
            for control in CONTROLS {
                let mut points = Vec::new();
                for loss in LOSSES {
                    let ratio = case(run, control, &profile, back, loss, &mut findings)?;
                    points.push(draw::interval(f64::from(loss) / 1e3, &ratio, 1.0));
                    if loss == 1_000 {
                        excess.push(ratio);
                    }
                }
                let name = format!("{control}, {}, {}", profile.name, back.name());
                series.push(draw::series(name, Style::LineAndMarks, points));
            }
            let [per_ack, per_round] = [&excess[0], &excess[1]];
            let shown =
                format!("{}; {}", theory::show(per_ack, 1.0, 2), theory::show(per_round, 1.0, 2));
            let (claimed, holds) = match back {
                Back::Clean => {
                    let apart = (per_ack.mean / per_round.mean - 1.0).abs();
                    ("alike (within a tenth)", apart <= 0.1)
                }
                _ => {
                    ("more per ACK than per round trip", per_ack.bounds().0 > per_round.bounds().1)
                }
            };
            findings.claim(
                format!("estimate over goodput at 1 %, per ACK and per round trip, {}, {}", profile.name, back.name()),
                claimed,
                shown,
                Verdict::of(holds, || {
                    "not traced; perhaps ACKs of one instant are one sample here, and the filter's half second averages bunches shorter than it"
                        .to_owned()
                }),
            );
        }
    }
    findings.notes.push(
        "the estimate is ssthresh after a reduction over the round trip of an empty path, 50 ms; reno has no estimate: \
         the figure is what halving leaves"
            .to_owned(),
    );
    findings.picture(
        "compression",
        Figure {
            title: "Westwood's estimate over its goodput".to_owned(),
            x: draw::log("random loss, %"),
            y: draw::linear("estimate over goodput"),
            series,
        },
    );
    Ok(findings)
}

/// Runs one case; gives the estimate over the goodput.
fn case(
    run: &Run,
    control: &str,
    profile: &Profile,
    back: Back,
    loss: u32,
    findings: &mut Findings,
) -> Result<Interval, LabError> {
    let share = f64::from(loss) / 1e3;
    let forth = format!("rate 10mbit delay 25ms limit 50 loss {share}%");
    let wire = Wire { forth: feed::spec(&forth)?, back: feed::spec(back.link())? };
    let flow = |control: &str, way| FlowSpec {
        way,
        profile: profile.clone(),
        ..FlowSpec::new(format!("sack/{control}").parse().expect("a name of the registry"))
    };
    let mut flows = vec![flow(control, Way::Forth)];
    if back == Back::SlowQueue {
        flows.push(flow("reno", Way::Back));
    }
    let (warm_up, duration) = if run.is_small { (1, 4) } else { (10, 60) };
    let scenario = Scenario {
        warm_up: Duration::from_secs(warm_up),
        duration: Duration::from_secs(duration),
        flows,
        ..Scenario::new("compression", Topology::Chain { wires: vec![wire] })
    };
    let results = simulate::watched(run, |_| scenario.clone(), Reductions::default)?;
    let mut records = Vec::new();
    for (result, seen) in &results {
        let count = seen.ssthresh.len();
        let mean = seen.ssthresh.iter().sum::<f64>() / count.max(1) as f64;
        let record = Record {
            seed: result.seed,
            control,
            profile: profile.name,
            back,
            loss,
            goodput: result.flows[0].goodput,
            estimate: mean * 8.0 / RTT.as_secs_f64(),
            reductions: count,
            timeouts: result.flows[0].timeouts,
        };
        findings.record(&record)?;
        records.push(record);
    }
    // A run without a reduction tells nothing of the estimate.
    let told = || records.iter().filter(|r| r.reductions > 0);
    let goodput = Interval::of(&records.iter().map(|r| r.goodput).collect::<Vec<_>>());
    let estimate = Interval::of(&told().map(|r| r.estimate).collect::<Vec<_>>());
    let ratio = Interval::of(&told().map(|r| r.estimate / r.goodput.max(1.0)).collect::<Vec<_>>());
    findings.table.row([
        control.to_owned(),
        profile.name.to_owned(),
        back.name().to_owned(),
        share.to_string(),
        theory::show(&goodput, 1e-6, 3),
        theory::show(&estimate, 1e-6, 3),
        theory::show(&ratio, 1.0, 2),
    ]);
    Ok(ratio)
}
