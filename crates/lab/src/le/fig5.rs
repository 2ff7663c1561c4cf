//! Figure 5: SACK flows beside other flows.

use airtcp_sim::FlowResult;

use super::controls::{LETTER, NO_GROWTH};
use super::network;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig5",
    what: "Shares of ten flows, some SACK and the others FACK or LE",
    source: "LE 3.2, Fig. 5",
    seconds: 25,
    body,
    ..Experiment::STUDY
};

const FLOWS: usize = 10;
/// The profile of the paper's senders, which are those of ns-2.
const PAPERS_PROFILE: &str = "ns-2.35";
/// The number of SACK flows.
const SHARES: [usize; 5] = [1, 3, 5, 7, 9];
const SACK: &str = "sack/reno";
/// The paper's two.
const PAPERS: [&str; 2] = ["fack/reno", LE];
const LE: &str = "le/reno";

/// Returns the paper's two, LE with the echo of transmission numbers, and LE with one rule changed,
/// to isolate the effect of that rule.
fn others() -> Vec<String> {
    let changed = [NO_GROWTH, LETTER].map(|end| format!("{LE}{end}"));
    let named = PAPERS.into_iter().chain(["le:echo/reno"]).map(str::to_owned);
    named.chain(changed).collect()
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | beside SACK | SACK flows | a SACK flow, kbit/s | another, kbit/s | other / SACK | \
         Jain's index | cuts of a SACK flow | of another | time-outs of a SACK flow | of another",
    );
    let shares = if run.is_small { &SHARES[2..3] } else { &SHARES[..] };
    let axes = vec![
        Axis::new("profile", [PAPERS_PROFILE, "paper", "modern"]),
        Axis::new("other", others()),
        Axis::new("sack_flows", shares.iter().copied()),
    ];
    let grid = Grid::run(run, axes, |point, seed| {
        let other = point.text("other");
        let mut combinations = vec![SACK; point.number("sack_flows") as usize];
        combinations.resize(FLOWS, &other);
        let profile = point.profile();
        let scenario = network::scenario(run, &combinations, &profile, network::RATE, 0.0)?;
        let result = simulate::once(simulate::staggered(&scenario, seed), seed)?;
        let each = |of: fn(&FlowResult) -> f64| result.flows.iter().map(of).collect::<Vec<f64>>();
        Ok(fields! {
            goodputs: each(|flow| flow.goodput),
            reductions: each(|flow| flow.reductions.unwrap_or(0) as f64),
            timeouts: each(|flow| flow.timeouts.unwrap_or(0) as f64),
            jain: result.jain,
        })
    })?;
    grid.record(&mut findings, &["profile", "other", "sack_flows"])?;
    for mix in grid.all().rows(&["profile", "other", "sack_flows"]) {
        let place = ["profile", "other", "sack_flows"].map(|axis| mix.text(axis));
        let show = |of: &[f64], unit, decimals| theory::show(&Interval::of(of), unit, decimals);
        let kinds = |field| [sack(&mix, field), other(&mix, field)];
        let goodputs = kinds("goodputs").map(|of| show(&of, 1e-3, 0));
        let rest = [show(&ratios(&mix), 1.0, 3), mix.show("jain", 1.0, 3)];
        let counts =
            ["reductions", "timeouts"].map(|field| kinds(field).map(|of| show(&of, 1.0, 1)));
        let cells = place.into_iter().chain(goodputs).chain(rest);
        findings.table.add(cells.chain(counts.concat()).collect());
    }
    for part in grid.all().each("profile") {
        let profile = part.text("profile");
        for beside in part.each("other") {
            let is_papers = PAPERS.contains(&beside.text("other").as_str());
            findings.beside(profile != PAPERS_PROFILE || !is_papers, |findings| {
                judge(findings, &beside, &grid.all());
            });
        }
        let shown = PAPERS.into_iter().filter_map(|other| part.get("other", other));
        let lines = shown.flat_map(|beside| {
            let name = beside.text("other");
            let line = |name: String, of: fn(&Slice<'_>, &str) -> Vec<f64>| {
                beside.line(name, "sack_flows", 1e-3, |mix| Interval::of(&of(mix, "goodputs")))
            };
            [line(format!("{SACK} beside {name}"), sack), line(name, other)]
        });
        let is_papers = profile == PAPERS_PROFILE;
        let suffix = if is_papers { String::new() } else { format!("-{profile}") };
        let title = format!("Ten flows on 5 Mbit/s, {profile} profile");
        findings.plot(
            format!("fig5{suffix}"),
            title,
            (
                draw::linear("SACK flows of ten"),
                draw::linear(&draw::more("goodput of a flow, kbit/s")),
            ),
            lines,
        );
    }
    findings.note(network::note(network::RATE));
    Ok(findings)
}

/// Returns the mean of a field over the SACK flows in each run of one mix; they come first.
fn sack(mix: &Slice<'_>, field: &str) -> Vec<f64> {
    means(mix, field, |flows, sack_flows| &flows[..sack_flows])
}

/// Returns the mean of a field over the other flows in each run of one mix.
fn other(mix: &Slice<'_>, field: &str) -> Vec<f64> {
    means(mix, field, |flows, sack_flows| &flows[sack_flows..])
}

fn means(mix: &Slice<'_>, field: &str, part: fn(&[f64], usize) -> &[f64]) -> Vec<f64> {
    let sack_flows = mix.number("sack_flows") as usize;
    mix.of(|run| Some(Interval::of(part(run.list(field), sack_flows)).mean))
}

/// Returns the ratio of the goodput of another flow to that of a SACK flow in each run.
fn ratios(mix: &Slice<'_>) -> Vec<f64> {
    let [other, sack] = [other, sack].map(|of| of(mix, "goodputs"));
    other.iter().zip(sack).map(|(other, sack)| other / sack).collect()
}

/// Returns the ratio over all mixes.
fn ratio(beside: &Slice<'_>) -> Interval {
    let mixes = beside.each("sack_flows").map(|mix| ratios(&mix));
    Interval::of(&mixes.collect::<Vec<_>>().concat())
}

/// LE 3.2.1: beside SACK, LE's share is as fair as FACK's.
fn judge(findings: &mut Findings, beside: &Slice<'_>, all: &Slice<'_>) {
    let (other, profile) = (beside.text("other"), beside.text("profile"));
    let what = format!("a flow of {other} over one of {SACK}, all mixes, {profile}");
    let bound = Bound::Within(0.9, 1.1);
    findings.mean(what, "1, within a tenth", (&ratio(beside), 3), bound, || {
        let each = beside.each("sack_flows");
        let each: Vec<_> =
            each.map(|mix| format!("{:.2}", Interval::of(&ratios(&mix)).mean)).collect();
        let sum = |of: fn(&Slice<'_>, &str) -> Vec<f64>| {
            let mixes = beside.each("sack_flows").map(|mix| of(&mix, "reductions"));
            theory::show(&Interval::of(&mixes.collect::<Vec<_>>().concat()), 1.0, 1)
        };
        let cuts = [self::other, sack].map(sum).join(" and ");
        let variants = if other == LE { variants(all, &profile) } else { String::new() };
        format!("by number of SACK flows: {}; cuts of each flow: {cuts}{variants}", each.join(", "))
    });
}

/// Describes the effect of each change of one thing on LE's ratio.
fn variants(all: &Slice<'_>, profile: &str) -> String {
    let part = all.at("profile", profile);
    let changed = [NO_GROWTH, LETTER].map(|end| {
        let beside = part.at("other", format!("{LE}{end}"));
        format!("{}{end}", theory::show(&ratio(&beside), 1.0, 3))
    });
    let rows = all.each("profile").filter(|row| row.text("profile") != profile);
    let others = rows.map(|row| {
        let shown = theory::show(&ratio(&row.at("other", LE)), 1.0, 3);
        format!("{shown} in {}", row.text("profile"))
    });
    format!("; LE has {}", changed.into_iter().chain(others).collect::<Vec<_>>().join(", "))
}
