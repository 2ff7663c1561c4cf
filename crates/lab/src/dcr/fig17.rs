//! Fig. 17: six flows run, and six more join them.

use airtcp_sim::Simulation;

use super::PAPERS;
use super::congested::{RANDOM_WAIT, Setup, network};
use super::delivery::Arrivals;
use crate::paper::Printed;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig17",
    what: "Time until six flows, with or without DCR, yield to six new ones",
    source: "DCR 5.5, Fig. 17",
    seconds: 60,
    seeds: 30,
    body,
    ..Experiment::STUDY
};

const SACK: &str = "sack/reno";
const DCR: &str = "sack/reno/dcr:count";
/// The kind of the first flows, and the time that the paper prints, in seconds.
const FIRST: [(&str, Option<f64>); 3] =
    [(SACK, Some(3.1)), (DCR, Some(3.67)), ("sack/reno/dcr:timer", None)];
/// A rate is the mean over one of these numbers of intervals of this length: the paper has no
/// averaging time.
const STRETCHES: [usize; 3] = [5, 10, 20];
const STRETCH: Duration = Duration::from_millis(100);
/// The profiles and the bottleneck's queues; the paper's set-up is first.
const CASES: [(&str, u32); 4] = [(PAPERS, 60), ("paper", 60), (PAPERS, 50), ("modern", 60)];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | queue | running before | time until they have 55 %, s | over 1 s | over 2 s",
    );
    let firsts = FIRST.map(|(first, _)| first);
    let axes = vec![Axis::new("case", 0..CASES.len()), Axis::new("first", firsts)];
    let joined = joined(run).as_secs_f64();
    let grid = Grid::run(run, axes, |point, seed| {
        let case = CASES[point.number("case") as usize];
        let arrivals = one(run, case, &point.text("first"), seed)?;
        let (profile, queue) = case;
        let fields = fields! { profile, queue };
        Ok(STRETCHES.into_iter().fold(fields, |fields, count| {
            let mut late = arrivals.rates(count).filter(|(end, _)| *end > joined);
            let shared = late.find(|(_, [first, others])| *first <= 0.55 * (first + others));
            fields.with(seconds(count), shared.map(|(end, _)| end - joined))
        }))
    })?;
    grid.record(&mut findings, &["first"])?;
    for (case, (profile, queue)) in grid.all().each("case").zip(CASES) {
        for row in case.each("first") {
            let place = [profile.to_owned(), queue.to_string(), row.text("first")].into_iter();
            let shown = STRETCHES.map(|count| row.show(&seconds(count), 1.0, 2));
            findings.table.add(place.chain(shown).collect());
        }
    }
    judge(&mut findings, &grid.all());
    let mut series = Vec::new();
    for first in [SACK, DCR] {
        let arrivals = one(run, CASES[0], first, 1)?;
        let names = ["running before", "joined, sack/reno"].map(|name| format!("{first}: {name}"));
        series.extend(arrivals.lines(STRETCHES[0], names));
    }
    let title = format!("Six flows are joined by six on 10 Mbit/s, {PAPERS} profile");
    findings.plot("fig17", title, (draw::linear("time, s"), draw::goodput()), series);
    findings.note(
        "A run lasts 20 s after the flows join; flows start within a second. Rates are means over 0.5 s, and for comparison \
         over 1 and 2 s: the paper has one run and states no averaging time.",
    );
    Ok(findings)
}

/// The field with the time until the flows share, by rates over this many intervals.
fn seconds(count: usize) -> String {
    format!("seconds over {count}")
}

fn judge(findings: &mut Findings, all: &Slice<'_>) {
    let time = |case: usize, first: &str, stretches: usize| {
        all.at("case", case).at("first", first).mean(&seconds(STRETCHES[stretches]))
    };
    for (first, figure) in FIRST {
        let Some(figure) = figure else { continue };
        let show = |case, stretches| theory::show(&time(case, first, stretches), 1.0, 2);
        let why = format!(
            "with rates over 1 s it is {}, over 2 s {}, with a queue of 50 {}, with the profile paper {}; the paper has one run, and \
             states no averaging time",
            show(0, 1),
            show(0, 2),
            show(2, 0),
            show(1, 0)
        );
        let printed = Printed { what: "time until the first have 55 %, s", figure, decimals: 2 };
        findings.printed(&printed, first, &time(0, first, 0), &why);
    }
    let ratio = theory::ratio(&time(0, DCR, 0), &time(0, SACK, 0));
    let what = "time until DCR's flows have 55 %, over that of flows without DCR";
    let claimed = "not worse: 3.67 of 3.1 (at most 1.3)";
    findings.mean(what, claimed, (&ratio, 2), Bound::Below(1.3), theory::unknown);
}

/// Returns the time when the other flows join.
fn joined(run: &Run) -> Duration {
    Duration::from_secs(if run.is_small { 2 } else { 50 })
}

fn one(
    run: &Run,
    (profile, queue): (&str, u32),
    first: &str,
    seed: u64,
) -> Result<Arrivals, LabError> {
    let profile = profile.parse().expect("a profile");
    let mut scenario = network(&[first, SACK], &profile, Setup { queue, ..RANDOM_WAIT })?;
    let half = scenario.flows.len() / 2;
    scenario.flows[half..].iter_mut().for_each(|flow| flow.start = joined(run));
    scenario.duration = joined(run) + Duration::from_secs(if run.is_small { 4 } else { 20 });
    let scenario: Scenario = simulate::staggered(&scenario, seed);
    let arrivals = |dumbbell: &Simulation<'_>| Arrivals::new(dumbbell, half, STRETCH);
    Ok(simulate::once_watched(scenario, seed, arrivals)?.1)
}
