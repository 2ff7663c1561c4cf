//! Fig. 17: six flows run, and six more join them.

use airtcp_sim::Simulation;

use super::congested::{RANDOM_WAIT, network};
use super::delivery::Arrivals;
use crate::paper::Printed;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig17",
    what: "Time until six flows, with or without DCR, yield to six new ones",
    source: "DCR 5.5, Fig. 17",
    seconds: 40,
    seeds: 30,
    body,
    ..Experiment::STUDY
};

const SACK: &str = "sack/reno";
const DCR: &str = "sack/reno/dcr:count";
/// The kind of the first flows, and the time that the paper prints, in seconds.
const FIRST: [(&str, Option<f64>); 3] =
    [(SACK, Some(3.1)), (DCR, Some(3.67)), ("sack/reno/dcr:timer", None)];
/// A rate is the mean over this many intervals of this length.
const STRETCHES: usize = 5;
const STRETCH: Duration = Duration::from_millis(100);

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("profile | running before | time until they have 55 %, s");
    let firsts = FIRST.map(|(first, _)| first);
    let axes = vec![Axis::new("profile", ["paper", "modern"]), Axis::new("first", firsts)];
    let joined = joined(run).as_secs_f64();
    let grid = Grid::run(run, axes, |point, seed| {
        let arrivals = one(run, &point.text("profile"), &point.text("first"), seed)?;
        let mut late = arrivals.rates(STRETCHES).filter(|(end, _)| *end > joined);
        let shared = late.find(|(_, [first, others])| *first <= 0.55 * (first + others));
        Ok(Fields::default().with("seconds", shared.map(|(end, _)| end - joined)))
    })?;
    grid.record(&mut findings, &["profile", "first"])?;
    for row in grid.all().rows(&["profile", "first"]) {
        let shown = row.show("seconds", 1.0, 2);
        findings.table.row([row.text("profile"), row.text("first"), shown]);
    }
    let paper = grid.all().at("profile", "paper");
    let seconds = |first: &str| paper.at("first", first).mean("seconds");
    for (first, figure) in FIRST {
        let Some(figure) = figure else { continue };
        let printed = Printed { what: "time until the first have 55 %, s", figure, decimals: 2 };
        let why = "the paper has one run and no averaging time (here 0.5 s); the cause was not determined";
        findings.printed(&printed, first, &seconds(first), why);
    }
    let ratio = theory::ratio(&seconds(DCR), &seconds(SACK));
    let what = "time until DCR's flows have 55 %, over that of flows without DCR";
    let claimed = "not worse: 3.67 of 3.1 (at most 1.3)";
    findings.mean(what, claimed, (&ratio, 2), Bound::Below(1.3), theory::unknown);
    let mut series = Vec::new();
    for first in [SACK, DCR] {
        let arrivals = one(run, "paper", first, 1)?;
        let names = ["running before", "joined, sack/reno"].map(|name| format!("{first}: {name}"));
        series.extend(arrivals.lines(STRETCHES, names));
    }
    let title = "Six flows are joined by six on 10 Mbit/s, paper profile";
    let (x, y) = (draw::linear("s"), draw::linear("Mbit/s"));
    findings.picture("fig17", draw::figure(title, x, y, series));
    findings.note("A run lasts 20 s after the flows join; flows start within a second.");
    Ok(findings)
}

/// Returns the time when the other flows join.
fn joined(run: &Run) -> Duration {
    Duration::from_secs(if run.is_small { 2 } else { 50 })
}

fn one(run: &Run, profile: &str, first: &str, seed: u64) -> Result<Arrivals, LabError> {
    let profile = profile.parse().expect("a profile");
    let mut scenario = network(&[first, SACK], &profile, RANDOM_WAIT)?;
    let half = scenario.flows.len() / 2;
    scenario.flows[half..].iter_mut().for_each(|flow| flow.start = joined(run));
    scenario.duration = joined(run) + Duration::from_secs(if run.is_small { 4 } else { 20 });
    let scenario: Scenario = simulate::staggered(&scenario, seed);
    let arrivals = |dumbbell: &Simulation<'_>| Arrivals::new(dumbbell, half, STRETCH);
    Ok(simulate::once_watched(scenario, seed, arrivals)?.1)
}
