//! The estimate under random loss, and where ACKs come in bunches.

use airtcp_recovery::Profile;
use airtcp_trace::figure::{Figure, Style};

use super::course::Course;
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, draw, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "westwood/compression",
    what: "westwood and westwood-plus: their estimates under random loss, and with ACKs in bunches",
    source: "Grieco and Mascolo 2004, 2 (ACK compression); LE 5.2.1 (random loss)",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 100,
    seeds: 10,
    body,
};

const CONTROLS: [&str; 3] = ["westwood", "westwood-plus", "reno"];
/// Of data, per cent.
const LOSSES: [f64; 5] = [0.01, 0.1, 1.0, 2.0, 5.0];
/// Where the forms are compared.
const COMPARED: f64 = 1.0;
const FORTH: &str = "rate 10mbit delay 25ms limit 50";

/// What ACKs meet on their way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    let losses = if run.is_small { &[COMPARED][..] } else { &LOSSES[..] };
    let mut series = Vec::new();
    for profile in [Profile::paper(), Profile::modern()] {
        for back in [Back::Clean, Back::Jitter, Back::SlowQueue] {
            let mut excess = Vec::new();
            for control in CONTROLS {
                let mut points = Vec::new();
                for loss in losses.iter().copied() {
                    let course = Course {
                        control,
                        profile: &profile,
                        way: back.name(),
                        loss,
                        forth: FORTH,
                        back: back.link(),
                        is_shared: back == Back::SlowQueue,
                    };
                    let outcome = course.run(run, &mut findings)?;
                    findings.table.row([
                        control.to_owned(),
                        profile.name.to_owned(),
                        back.name().to_owned(),
                        loss.to_string(),
                        theory::show(&outcome.goodput, 1e-6, 3),
                        theory::show(&outcome.estimate, 1e-6, 3),
                        theory::show(&outcome.ratio, 1.0, 2),
                    ]);
                    points.push(draw::interval(loss, &outcome.ratio, 1.0));
                    if loss == COMPARED {
                        excess.push(outcome.ratio);
                    }
                }
                // All of them would be too many to see.
                if control != "reno" && profile.name == Profile::paper().name {
                    let name = format!("{control}, {}", back.name());
                    series.push(draw::series(name, Style::LineAndMarks, points));
                }
            }
            let [per_ack, per_round] = [&excess[0], &excess[1]];
            let shown =
                format!("{}; {}", theory::show(per_ack, 1.0, 2), theory::show(per_round, 1.0, 2));
            let over = theory::ratio(per_ack, per_round);
            let (claimed, verdict) = match back {
                Back::Clean => (
                    "alike (within a tenth)",
                    theory::within(&over, (0.9, 1.1), || "not isolated".to_owned()),
                ),
                _ => (
                    "more per ACK than per round trip",
                    theory::above(&over, 1.0, || "not isolated".to_owned()),
                ),
            };
            findings.claim(
                format!(
                    "estimate over goodput at 1 %, per ACK and per round trip, {}, {}",
                    profile.name,
                    back.name()
                ),
                claimed,
                shown,
                verdict,
            );
        }
    }
    findings.notes.push(
        "the estimate is ssthresh after a reduction over the smallest round trip; reno has none: its figure is what \
         halving leaves"
            .to_owned(),
    );
    findings.picture(
        "compression",
        Figure {
            title: "Westwood's estimate over its goodput, paper's profile".to_owned(),
            x: draw::log("random loss, %"),
            y: draw::linear("estimate over goodput"),
            series,
        },
    );
    Ok(findings)
}
