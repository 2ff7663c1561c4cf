//! RRTP, Figs. 4.1 and 4.2: throughput over the loss rate, CDMA and satellite.

use std::time::Duration;

use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use super::network::{
    CDMA, Environment, PAYLOAD, QUEUES, RENO, SATELLITE, SETUP, VEGAS, WESTWOOD, delivered, header,
    named,
};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, draw, simulate, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/fig4.1",
    what: "CDMA and satellite for 60 s over the loss rate: Reno, Vegas, Westwood, RRTP (Figs. 4.1 and 4.2)",
    source: "RRTP (Wang 2009) 4.2.1, Figs. 4.1 and 4.2; the figures' values are not in the text",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 60,
    seeds: 10,
    body,
};

/// Per cent; the thesis' own are in its pictures alone.
const LOSSES: [f64; 7] = [0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0];
const TCP: [&str; 3] = [RENO, VEGAS, WESTWOOD];

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    environment: &'a str,
    sender: &'a str,
    /// Per cent.
    loss: f64,
    /// bit/s of payload.
    throughput: f64,
    delivered: f64,
    timeouts: Option<u64>,
}

/// A sender over the loss rates: each run's throughput, bit/s.
struct Curve {
    sender: String,
    points: Vec<Vec<f64>>,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "environment",
        "loss, %",
        "sender",
        "throughput, kbit/s",
        "of what arrives at most",
    ]);
    let losses = if run.is_small { &LOSSES[3..=4] } else { &LOSSES[..] };
    let time = Duration::from_secs(60);
    for (environment, picture) in [(CDMA, "fig4.1"), (SATELLITE, "fig4.2")] {
        let mut curves = Vec::new();
        let rrtp = [environment.native(), SEEDED];
        for sender in TCP.into_iter().chain(rrtp) {
            curves.push(curve(run, &environment, sender, losses, time, &mut findings)?);
        }
        claims(&mut findings, &environment, losses, &curves);
        let series = curves.iter().map(|curve| {
            let points = losses.iter().zip(&curve.points);
            let points =
                points.map(|(loss, runs)| draw::interval(*loss, &Interval::of(runs), 1e-3));
            draw::series(named(&curve.sender), Style::LineAndMarks, points.collect())
        });
        findings.picture(
            picture,
            Figure {
                title: format!("Throughput over the loss rate, {}", environment.name),
                x: draw::linear("loss, %"),
                y: draw::linear("throughput, kbit/s"),
                series: series.collect(),
            },
        );
    }
    findings.notes.extend([SETUP.to_owned(), QUEUES.to_owned()]);
    Ok(findings)
}

/// Stands for [`Environment::seeded`] of each loss rate.
const SEEDED: &str = "rrtp+";

fn curve(
    run: &Run,
    environment: &Environment,
    sender: &str,
    losses: &[f64],
    time: Duration,
    findings: &mut Findings,
) -> Result<Curve, LabError> {
    let mut points = Vec::new();
    for loss in losses {
        let environment = Environment { loss: *loss, ..*environment };
        let told = if sender == SEEDED { environment.seeded() } else { sender.to_owned() };
        let scenario = environment.scenario("fig4.1", &told, time)?;
        let mut throughputs = Vec::new();
        for result in simulate::seeds(run, |_| scenario.clone())? {
            let flow = &result.flows[0];
            throughputs.push(flow.goodput);
            findings.record(&Record {
                seed: result.seed,
                environment: environment.name,
                sender: &told,
                loss: *loss,
                throughput: flow.goodput,
                delivered: delivered(flow, time),
                timeouts: flow.timeouts,
            })?;
        }
        let most = environment.rate as f64 * PAYLOAD / (PAYLOAD + f64::from(header(sender)))
            * (1.0 - loss / 100.0);
        let throughput = Interval::of(&throughputs);
        findings.table.row([
            environment.name.to_owned(),
            loss.to_string(),
            named(sender).to_owned(),
            theory::show(&throughput, 1e-3, 2),
            format!("{:.3}", throughput.mean / most),
        ]);
        points.push(throughputs);
    }
    Ok(Curve { sender: sender.to_owned(), points })
}

/// RRTP has more than each TCP, without losses too, and the more so the more is lost.
fn claims(findings: &mut Findings, environment: &Environment, losses: &[f64], curves: &[Curve]) {
    let place = environment.name;
    let (tcp, rrtp): (Vec<_>, Vec<_>) =
        curves.iter().partition(|curve| !curve.sender.starts_with("rrtp"));
    for own in rrtp {
        for other in &tcp {
            let ratios: Vec<_> = own
                .points
                .iter()
                .zip(&other.points)
                .map(|(own, other)| theory::paired(own, other))
                .collect();
            let [Some(first), Some(last)] = [ratios.first(), ratios.last()] else { continue };
            let [least, most] = [losses[0], losses[losses.len() - 1]];
            let (own, other) = (named(&own.sender), named(&other.sender));
            findings.claim(
                format!("{place}: {own} over {other} at {least} % loss"),
                "above 1",
                theory::show(first, 1.0, 3),
                theory::above(first, 1.0, || {
                    "it has 16 bytes more of headers, which is 1 % of the link, and begins after two round trips; \
                     the queue of 50 packets keeps TCP's link busy"
                        .to_owned()
                }),
            );
            let growth = theory::difference(last, first);
            findings.claim(
                format!("{place}: {own} over {other}, what it gains from {least} to {most} %"),
                "above 0",
                theory::show(&growth, 1.0, 3),
                theory::above(&growth, 0.0, || {
                    format!(
                        "the advantage goes from {} to {}",
                        theory::show(first, 1.0, 3),
                        theory::show(last, 1.0, 3)
                    )
                }),
            );
        }
    }
}
