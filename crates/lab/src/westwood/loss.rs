//! Westwood where packets are lost at random.

use airtcp_recovery::Profile;
use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Style};

use super::course::{Course, Outcome};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, draw, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "westwood/loss",
    what: "westwood, westwood-plus, reno and cubic on 10 Mbit/s and 20 ms, random loss 0.01 to 10 %",
    source: "Mascolo et al. 2001, abstract (more than Reno); LE 5.2.1 (the estimate); LE gives no rate: 10 Mbit/s here",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 70,
    seeds: 10,
    body,
};

const CONTROLS: [&str; 4] = ["reno", "westwood", "westwood-plus", "cubic"];
/// Per cent, of data.
const LOSSES: [f64; 7] = [0.01, 0.05, 0.1, 1.0, 2.0, 5.0, 10.0];
const LINK: &str = "rate 10mbit delay 10ms limit 50";
/// What the link carries of payload, in bit/s: segments of 1448 bytes in packets of 1500.
const CAPACITY: f64 = 10e6 * 1448.0 / 1500.0;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "control",
        "profile",
        "loss, %",
        "goodput, Mbit/s",
        "estimate, Mbit/s",
        "time-outs",
    ]);
    let losses = if run.is_small { &LOSSES[3..5] } else { &LOSSES[..] };
    let mut series = Vec::new();
    for profile in [Profile::paper(), Profile::modern()] {
        let mut reno = Vec::new();
        for control in CONTROLS {
            let mut outcomes = Vec::new();
            for loss in losses {
                let course = Course {
                    control,
                    profile: &profile,
                    way: "clean",
                    loss: *loss,
                    forth: LINK,
                    back: LINK,
                    is_shared: false,
                };
                let outcome = course.run(run, &mut findings)?;
                let estimates = control.starts_with("westwood");
                findings.table.row([
                    control.to_owned(),
                    profile.name.to_owned(),
                    loss.to_string(),
                    theory::show(&outcome.goodput, 1e-6, 3),
                    if estimates {
                        theory::show(&outcome.estimate, 1e-6, 3)
                    } else {
                        "-".to_owned()
                    },
                    theory::show(&outcome.timeouts, 1.0, 1),
                ]);
                outcomes.push(outcome);
            }
            let points = losses.iter().zip(&outcomes);
            let points = points.map(|(loss, o)| draw::interval(*loss, &o.goodput, 1e-6)).collect();
            let name = format!("{control}, {}", profile.name);
            series.push(draw::series(name.clone(), Style::LineAndMarks, points));
            match control {
                "reno" => reno = outcomes,
                "westwood" | "westwood-plus" => {
                    claims(&mut findings, &name, losses, &outcomes, &reno);
                }
                _ => {}
            }
        }
    }
    findings.notes.push(
        "the estimate is ssthresh after a reduction over the smallest round trip, the mean over reductions".to_owned(),
    );
    findings.picture(
        "loss",
        Figure {
            title: "Goodput over random loss, 10 Mbit/s, 20 ms".to_owned(),
            x: draw::log("random loss, %"),
            y: draw::linear("goodput, Mbit/s"),
            series,
        },
    );
    Ok(findings)
}

fn claims(
    findings: &mut Findings,
    name: &str,
    losses: &[f64],
    outcomes: &[Outcome],
    reno: &[Outcome],
) {
    let at = |share: f64, of: fn(&Outcome) -> Interval, outcomes: &[Outcome]| {
        losses.iter().zip(outcomes).find(|(loss, _)| **loss == share).map(|(_, o)| of(o))
    };
    for loss in [0.1, 1.0, 5.0] {
        let ours = at(loss, |o| o.goodput, outcomes);
        let Some((ours, reno)) = ours.zip(at(loss, |o| o.goodput, reno)) else { continue };
        let ratio = theory::ratio(&ours, &reno);
        findings.claim(
            format!("{name}: goodput over reno's at {loss} % loss"),
            "more (above 1)",
            theory::show(&ratio, 1.0, 3),
            theory::above(&ratio, 1.0, || {
                let [reno, ours, link] = [reno.mean, ours.mean, CAPACITY].map(|rate| rate / 1e6);
                format!("reno gets {reno:.2} of the {link:.2} Mbit/s that the link carries, and it {ours:.2}; why is not isolated")
            }),
        );
    }
    for (loss, claimed, band) in [
        (0.05, "right (within 0.5)", (-0.5, 0.5)),
        (2.0, "about 1 too small (0.5 to 1.5)", (-1.5, -0.5)),
    ] {
        let Some(estimate) = at(loss, |o| o.estimate, outcomes) else { continue };
        if estimate.n == 0 {
            continue;
        }
        let off = Interval {
            mean: (estimate.mean - CAPACITY) / 1e6,
            half_width: estimate.half_width.map(|half| half / 1e6),
            sd: estimate.sd / 1e6,
            n: estimate.n,
        };
        let ratio = at(loss, |o| o.ratio, outcomes).unwrap_or_default();
        findings.claim(
            format!("{name}: estimate less what the link carries at {loss} % loss, Mbit/s"),
            claimed,
            theory::show(&off, 1.0, 2),
            theory::within(&off, band, || {
                format!(
                    "the estimate is {} of the goodput. Hypothesis: it tells what was delivered, and as the window falls \
                     to it with each loss, the next is lower, the more so the more often that happens",
                    theory::show(&ratio, 1.0, 2)
                )
            }),
        );
    }
}
