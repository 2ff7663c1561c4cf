//! Figure 5: SACK flows beside others.

use airtcp_recovery::Profile;
use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use super::network;
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, Verdict, draw, simulate, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig5",
    what: "Ten flows, some SACK and the others FACK or LE, without random loss: what each kind gets",
    source: "LE 3.2, Fig. 5",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 10,
    seeds: 10,
    body,
};

const FLOWS: usize = 10;
/// How many of them are SACK.
const SHARES: [usize; 5] = [1, 3, 5, 7, 9];
const SACK: &str = "sack/reno";
/// The paper's two, and LE with its time stamp echoed.
const OTHERS: [&str; 3] = ["fack/reno", "le/reno", "le:echo/reno"];

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    profile: &'a str,
    other: &'a str,
    sack_flows: usize,
    /// bit/s of each flow, SACK's first.
    goodputs: Vec<f64>,
    jain: f64,
}

/// What both kinds got in one mix: the means of each seed, bit/s.
struct Mix {
    sack_flows: usize,
    sack: Interval,
    other: Interval,
    jain: Interval,
    /// Of each seed, the other's over SACK's.
    ratios: Vec<f64>,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "profile",
        "beside SACK",
        "SACK flows",
        "a SACK flow, kbit/s",
        "another, kbit/s",
        "other / SACK",
        "Jain's index",
    ]);
    let shares = if run.is_small { &SHARES[2..3] } else { &SHARES[..] };
    for profile in [Profile::paper(), Profile::modern()] {
        let mut all = Vec::new();
        for other in OTHERS {
            let mixes: Vec<Mix> = shares
                .iter()
                .map(|&sack_flows| mix(run, &mut findings, &profile, other, sack_flows))
                .collect::<Result<_, _>>()?;
            for mix in &mixes {
                findings.table.row([
                    profile.name.to_owned(),
                    other.to_owned(),
                    mix.sack_flows.to_string(),
                    theory::show(&mix.sack, 1e-3, 0),
                    theory::show(&mix.other, 1e-3, 0),
                    theory::show(&Interval::of(&mix.ratios), 1.0, 3),
                    theory::show(&mix.jain, 1.0, 3),
                ]);
            }
            all.push((other, mixes));
        }
        judge(&mut findings, profile.name, &all);
        let is_paper = profile.name == Profile::paper().name;
        let name = if is_paper { "fig5" } else { "fig5-modern" };
        findings.picture(name, figure(profile.name, &all));
    }
    findings.notes.push(network::NOTE.to_owned());
    Ok(findings)
}

fn mix(
    run: &Run,
    findings: &mut Findings,
    profile: &Profile,
    other: &str,
    sack_flows: usize,
) -> Result<Mix, LabError> {
    let mut combinations = vec![SACK; sack_flows];
    combinations.resize(FLOWS, other);
    let scenario = network::scenario(run, &combinations, profile, 0.0)?;
    let (mut sack, mut others, mut jain) = (Vec::new(), Vec::new(), Vec::new());
    for result in simulate::seeds(run, |seed| simulate::staggered(&scenario, seed))? {
        let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let (of_sack, of_other) = goodputs.split_at(sack_flows);
        sack.push(mean(of_sack));
        others.push(mean(of_other));
        jain.push(result.jain);
        findings.record(&Record {
            seed: result.seed,
            profile: profile.name,
            other,
            sack_flows,
            goodputs,
            jain: result.jain,
        })?;
    }
    Ok(Mix {
        sack_flows,
        ratios: others.iter().zip(&sack).map(|(other, sack)| other / sack).collect(),
        sack: Interval::of(&sack),
        other: Interval::of(&others),
        jain: Interval::of(&jain),
    })
}

/// LE 3.2.1: LE's share beside SACK is as fair as FACK's.
fn judge(findings: &mut Findings, profile: &str, all: &[(&str, Vec<Mix>)]) {
    for (other, mixes) in all {
        let ratios: Vec<f64> = mixes.iter().flat_map(|mix| mix.ratios.iter().copied()).collect();
        let ratio = Interval::of(&ratios);
        findings.claim(
            format!("a flow of {other} over one of {SACK}, all mixes, {profile}"),
            "1, within a tenth",
            theory::show(&ratio, 1.0, 3),
            Verdict::of((ratio.mean - 1.0).abs() <= 0.1, || {
                let each = mixes.iter().map(|mix| format!("{:.2}", Interval::of(&mix.ratios).mean));
                let each: Vec<String> = each.collect();
                format!("by number of SACK flows: {}; no reason is isolated", each.join(", "))
            }),
        );
    }
}

fn figure(profile: &str, all: &[(&str, Vec<Mix>)]) -> Figure {
    let mut series = Vec::new();
    for (other, mixes) in all {
        let points = |of: fn(&Mix) -> &Interval| {
            mixes.iter().map(|mix| draw::interval(mix.sack_flows as f64, of(mix), 1e-3)).collect()
        };
        let marks = Style::LineAndMarks;
        series.push(draw::series(format!("{SACK} beside {other}"), marks, points(|mix| &mix.sack)));
        series.push(draw::series(*other, marks, points(|mix| &mix.other)));
    }
    Figure {
        title: format!("Ten flows on 5 Mbit/s, {profile} profile"),
        x: draw::linear("SACK flows of ten"),
        y: draw::linear("goodput of a flow, kbit/s"),
        series,
    }
}
