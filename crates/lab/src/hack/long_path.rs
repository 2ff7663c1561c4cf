//! The long path without corrupted headers: every corruption is notified, so no time-out should
//! occur.

use super::course::{Course, HACK, HACK_SACK, PAPERS, PROFILES, SACK};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/long-path",
    what: "Time-outs of HACK although all corruption is notified, 300 ms, 10 %",
    source: "HACK 3.3; 5.2, Table 1",
    seconds: 10,
    seeds: 50,
    body,
    ..Experiment::STUDY
};

/// SACK over the path without errors, which no sender exceeds.
const BOUND: &str = "no errors";
/// The number of packets in a burst of corruption, the factor in the paper's Table 1, and its
/// range.
const BURSTS: [(u32, &str, (f64, f64)); 2] =
    [(1, "5 to 10", (5.0, 10.0)), (5, "100", (100.0, 100.0))];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | packets in a burst | sender | kbit/s | over SACK | time-outs | resent | needlessly | \
         corrupted",
    );
    let axes = vec![
        Axis::new("profile", PROFILES),
        Axis::new("burst", BURSTS.map(|(burst, ..)| burst)),
        Axis::new("sender", [SACK.name, HACK.name, HACK_SACK.name, BOUND]),
    ];
    let names = ["profile", "burst", "sender"];
    let grid = Grid::run(run, axes, |point, seed| {
        let sender = point.text("sender");
        let burst = point.number("burst") as u32;
        let path = Course { share: 10.0, burst, ..Course::LONG };
        let course = if sender == BOUND { path.without_errors() } else { path };
        let sender = [HACK, HACK_SACK].into_iter().find(|of| of.name == sender).unwrap_or(SACK);
        let scenario = course.over(&course.links(), run, &sender, &point.profile())?;
        let result = simulate::once(scenario, seed)?;
        let flow = &result.flows[0];
        Ok(fields! {
            goodput: course.goodput(run, flow),
            timeouts: flow.timeouts.unwrap_or(0),
            resent: flow.retransmissions,
            needless: flow.spurious,
            corrupted: result.links[0].counters.corrupted,
        })
    })?;
    grid.record(&mut findings, &names)?;
    for row in grid.all().rows(&names) {
        let at =
            grid.all().at("profile", row.text("profile")).at("burst", row.value("burst").clone());
        let factor = over_sack(&at, &row.text("sender"));
        let place = names.map(|axis| row.text(axis)).into_iter();
        let figures = [row.show("goodput", 1e-3, 1), theory::show(&factor, 1.0, 2)];
        let counts = ["timeouts", "resent", "needless", "corrupted"];
        let counts = counts.map(|field| row.show(field, 1.0, 2));
        findings.table.add(place.chain(figures).chain(counts).collect());
    }
    for (burst, claimed, between) in BURSTS {
        judge(&mut findings, &grid.all().at("burst", burst), claimed, between);
    }
    let both = grid.all().at("sender", HACK_SACK.name);
    let bars = both.lines("profile", "burst", ("timeouts", 1.0));
    let title = "Time-outs of HACK + SACK although every corruption is notified";
    findings.plot(
        "timeouts",
        title,
        (draw::linear("packets in a burst"), draw::linear(&draw::less("time-outs of a transfer"))),
        bars,
    );
    Ok(findings)
}

/// Returns the goodput of a sender divided by that of SACK, paired by seed.
fn over_sack(at: &Slice<'_>, sender: &str) -> Interval {
    let goodput = |sender| at.at("sender", sender).values("goodput");
    theory::paired(&goodput(sender), &goodput(SACK.name))
}

fn judge(findings: &mut Findings, part: &Slice<'_>, claimed: &str, (low, high): (f64, f64)) {
    for at in part.each("profile") {
        findings.beside(at.text("profile") != PAPERS, |findings| {
            one(findings, part, &at, claimed, (low, high));
        });
    }
}

fn one(
    findings: &mut Findings,
    part: &Slice<'_>,
    at: &Slice<'_>,
    claimed: &str,
    (low, high): (f64, f64),
) {
    let place = format!("bursts of {}, {}", part.text("burst"), at.text("profile"));
    let timeouts = |at: &Slice<'_>| at.at("sender", HACK_SACK.name).mean("timeouts");
    let own = timeouts(at);
    let none = Verdict::of(own.mean == 0.0, || {
        let of = |at: Slice<'_>| format!("{} {:.2}", at.text("profile"), timeouts(&at).mean);
        let all: Vec<_> = part.each("profile").map(of).collect();
        format!("a transfer has {}", all.join(", "))
    });
    let what = format!("time-outs of HACK + SACK, every corruption notified, {place}");
    // The paper does not claim this.
    findings.claim_beside(what, "none", theory::show(&own, 1.0, 2), none);
    for sender in [HACK.name, HACK_SACK.name] {
        let factor = over_sack(at, sender);
        let bound = theory::show(&over_sack(at, BOUND), 1.0, 2);
        let verdict = theory::within(&factor, (low * 0.9, high * 1.1), || {
            format!("without errors the path gives {bound} times SACK")
        });
        let shown = format!("{} times", theory::show(&factor, 1.0, 2));
        findings.claim(format!("{sender} over SACK, {place}"), claimed, shown, verdict);
    }
}
