//! Figure 5: SACK flows beside other flows.

use super::network;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig5",
    what: "Shares of ten flows, some SACK and the others FACK or LE",
    source: "LE 3.2, Fig. 5",
    seconds: 10,
    body,
    ..Experiment::STUDY
};

const FLOWS: usize = 10;
/// The number of SACK flows.
const SHARES: [usize; 5] = [1, 3, 5, 7, 9];
const SACK: &str = "sack/reno";
/// The paper's two, and LE with the echo of transmission numbers.
const OTHERS: [&str; 3] = ["fack/reno", "le/reno", "le:echo/reno"];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | beside SACK | SACK flows | a SACK flow, kbit/s | another, kbit/s | other / SACK | \
         Jain's index",
    );
    let shares = if run.is_small { &SHARES[2..3] } else { &SHARES[..] };
    let axes = vec![
        Axis::new("profile", ["paper", "modern"]),
        Axis::new("other", OTHERS),
        Axis::new("sack_flows", shares.iter().copied()),
    ];
    let grid = Grid::run(run, axes, |point, seed| {
        let other = point.text("other");
        let mut combinations = vec![SACK; point.number("sack_flows") as usize];
        combinations.resize(FLOWS, &other);
        let profile = point.profile();
        let scenario = network::scenario(run, &combinations, &profile, network::RATE, 0.0)?;
        let result = simulate::once(simulate::staggered(&scenario, seed), seed)?;
        let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
        Ok(Fields::default().with("goodputs", goodputs).with("jain", result.jain))
    })?;
    grid.record(&mut findings, &["profile", "other", "sack_flows"])?;
    for mix in grid.all().rows(&["profile", "other", "sack_flows"]) {
        let place = ["profile", "other", "sack_flows"].map(|axis| mix.text(axis));
        let show = |of: &[f64], unit, decimals| theory::show(&Interval::of(of), unit, decimals);
        let goodputs = [&sack(&mix), &other(&mix)].map(|of| show(of, 1e-3, 0));
        let rest = [show(&ratios(&mix), 1.0, 3), mix.show("jain", 1.0, 3)];
        findings.table.add(place.into_iter().chain(goodputs).chain(rest).collect());
    }
    for part in grid.all().each("profile") {
        for beside in part.each("other") {
            judge(&mut findings, &beside);
        }
        let lines = part.each("other").flat_map(|beside| {
            let name = beside.text("other");
            let line = |name: String, of: fn(&Slice<'_>) -> Vec<f64>| {
                beside.line(name, "sack_flows", 1e-3, |mix| Interval::of(&of(mix)))
            };
            [line(format!("{SACK} beside {name}"), sack), line(name, other)]
        });
        let suffix = if part.text("profile") == "paper" { "" } else { "-modern" };
        let title = format!("Ten flows on 5 Mbit/s, {} profile", part.text("profile"));
        let (x, y) = (draw::linear("SACK flows of ten"), draw::linear("goodput of a flow, kbit/s"));
        findings.picture(format!("fig5{suffix}"), draw::figure(title, x, y, lines));
    }
    findings.note(network::note(network::RATE));
    Ok(findings)
}

/// Returns the mean goodput of a SACK flow in each run of one mix, in bit/s; the SACK flows come
/// first.
fn sack(mix: &Slice<'_>) -> Vec<f64> {
    means(mix, |goodputs, sack_flows| &goodputs[..sack_flows])
}

/// Returns the mean goodput of another flow in each run of one mix, in bit/s.
fn other(mix: &Slice<'_>) -> Vec<f64> {
    means(mix, |goodputs, sack_flows| &goodputs[sack_flows..])
}

fn means(mix: &Slice<'_>, part: fn(&[f64], usize) -> &[f64]) -> Vec<f64> {
    let sack_flows = mix.number("sack_flows") as usize;
    mix.of(|run| Some(Interval::of(part(run.list("goodputs"), sack_flows)).mean))
}

/// Returns the ratio of [`other`] to [`sack`] in each run.
fn ratios(mix: &Slice<'_>) -> Vec<f64> {
    other(mix).iter().zip(sack(mix)).map(|(other, sack)| other / sack).collect()
}

/// LE 3.2.1: beside SACK, LE's share is as fair as FACK's.
fn judge(findings: &mut Findings, beside: &Slice<'_>) {
    let mixes: Vec<Vec<f64>> = beside.each("sack_flows").map(|mix| ratios(&mix)).collect();
    let ratio = Interval::of(&mixes.concat());
    let (other, profile) = (beside.text("other"), beside.text("profile"));
    findings.claim(
        format!("a flow of {other} over one of {SACK}, all mixes, {profile}"),
        "1, within a tenth",
        theory::show(&ratio, 1.0, 3),
        Verdict::of((ratio.mean - 1.0).abs() <= 0.1, || {
            let each = mixes.iter().map(|mix| format!("{:.2}", Interval::of(mix).mean));
            let each: Vec<_> = each.collect();
            format!("by number of SACK flows: {}; the cause was not determined", each.join(", "))
        }),
    );
}
