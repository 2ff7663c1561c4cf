//! One flow over random loss.

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::{FlowSpec, Interval, Scenario, Topology, Wire};
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use crate::{
    Experiment, Findings, Ground, Kind, LabError, Run, Verdict, draw, feed, simulate, theory,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/mathis",
    what: "One sack/reno flow over random loss, on a link it does not fill, against Mathis' law",
    source: "Mathis, Semke, Mahdavi, Ott 1997: MSS / RTT * sqrt(3 / (2 b p)), b = 1 as bytes are counted",
    kind: Kind::SelfCheck,
    ground: Ground::Simulated,
    seconds: 60,
    seeds: 10,
    body,
};

const LOSSES: [f64; 3] = [0.5, 1.0, 2.0];
const LINK: &str = "rate 100mbit delay 25ms limit 1000";
const SECONDS: u64 = 300;
const WARM_UP: u64 = 20;
/// A packet of 1500 bytes less its IP and TCP headers and timestamps.
const MSS: f64 = 1_448.0;
/// How far from the law the mean may be.
const WITHIN: f64 = 0.1;

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    profile: &'a str,
    loss: f64,
    goodput: f64,
    rtt: f64,
    law: f64,
    ratio: f64,
    timeouts: u64,
    reductions: u64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "profile",
        "loss, %",
        "goodput, Mbit/s",
        "RTT, ms",
        "law, Mbit/s",
        "ratio",
        "time-outs",
    ]);
    let mut series = Vec::new();
    for profile in [Profile::modern(), Profile::paper()] {
        let (mut measured, mut laws) = (Vec::new(), Vec::new());
        for loss in LOSSES {
            let scenario = scenario(loss, &profile, run.is_small)?;
            let (mut goodputs, mut rtts, mut law, mut ratios, mut timeouts) =
                (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
            for result in simulate::seeds(run, |_| scenario.clone())? {
                let flow = &result.flows[0];
                let expected = mathis(flow.rtt.mean, loss / 100.0);
                let ratio = flow.goodput / expected;
                findings.record(&Record {
                    seed: result.seed,
                    profile: profile.name,
                    loss,
                    goodput: flow.goodput,
                    rtt: flow.rtt.mean,
                    law: expected,
                    ratio,
                    timeouts: flow.timeouts,
                    reductions: flow.reductions,
                })?;
                goodputs.push(flow.goodput);
                rtts.push(flow.rtt.mean);
                law.push(expected);
                ratios.push(ratio);
                timeouts += flow.timeouts;
            }
            let (goodput, ratio) = (Interval::of(&goodputs), Interval::of(&ratios));
            let law = Interval::of(&law).mean;
            findings.table.row([
                profile.name.to_owned(),
                loss.to_string(),
                theory::show(&goodput, 1e-6, 3),
                theory::show(&Interval::of(&rtts), 1e3, 2),
                format!("{:.3}", law / 1e6),
                theory::show(&ratio, 1.0, 3),
                timeouts.to_string(),
            ]);
            let verdict = Verdict::of((ratio.mean - 1.0).abs() <= WITHIN, || {
                format!(
                    "off by {:+.1} %; the law knows no time-outs and no round trip spent on a recovery, which \
                     weigh where windows are small; Padhye's, which has time-outs, gives {:.3} Mbit/s",
                    (ratio.mean - 1.0) * 100.0,
                    padhye(Interval::of(&rtts).mean, loss / 100.0) / 1e6
                )
            });
            let what = format!("goodput over the law's, {loss} % loss, {} profile", profile.name);
            findings.claim(what, "0.9 to 1.1", theory::show(&ratio, 1.0, 3), verdict);
            measured.push(draw::interval(loss, &goodput, 1e-6));
            laws.push(draw::point(loss, law / 1e6));
        }
        series.push(draw::series(format!("law, {}", profile.name), Style::Line, laws));
        series.push(draw::series(format!("measured, {}", profile.name), Style::Marks, measured));
    }
    findings.picture(
        "mathis",
        Figure {
            title: "One sack/reno flow over random loss".to_owned(),
            x: draw::log("loss, %"),
            y: draw::log("goodput, Mbit/s"),
            series,
        },
    );
    Ok(findings)
}

/// Payload in bit/s. The RTT is the measured one, so that serialisation and queues are in it.
fn mathis(rtt: f64, loss: f64) -> f64 {
    MSS * 8.0 / rtt * (1.5 / loss).sqrt()
}

/// Payload in bit/s by Padhye, Firoiu, Towsley, Kurose 1998, equation 30, with b = 1 and a time-out of the RTT and
/// 200 ms.
fn padhye(rtt: f64, loss: f64) -> f64 {
    let timeouts = (3.0 * (0.375 * loss).sqrt()).min(1.0) * loss * (1.0 + 32.0 * loss * loss);
    MSS * 8.0 / (rtt * (2.0 * loss / 3.0).sqrt() + (rtt + 0.2) * timeouts)
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
