//! Figs. 17 and 18: goodput of the first and of the second of two mobiles, over the radio's error
//! rate.

use airtcp_basestation::Policy;
use airtcp_sim::RadioResult;

use super::course::Course;
use super::policies::{self, NOTES, NOTHING_LEFT, POLICIES};
use super::senders::{self, SENDERS};
use super::tries::{NS_2, PAPER, REORDERING, Tries};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig17",
    what: "Two pairs by frame error rate, 500 ms, a figure for each mobile",
    source: "TCP-ECN 7.2, Fig. 17 and 18",
    seconds: 375,
    body,
    ..Experiment::STUDY
};

const MOBILES: [&str; 2] = ["mobile 1", "mobile 2"];
/// The per cent of data frames with errors; the paper calls the last one high.
const ERRORS: [u32; 4] = [0, 10, 20, 30];
const HIGH: u32 = 30;
const TRIES: [Tries; 3] = [PAPER, REORDERING, NS_2];
const PICTURES: [(&str, &str, Tries); 4] = [
    ("fig17", MOBILES[0], PAPER),
    ("fig18", MOBILES[1], PAPER),
    ("fig17-ns-2", MOBILES[0], NS_2),
    ("fig18-ns-2", MOBILES[1], NS_2),
];

/// Returns the tries of this name.
fn tries(radio: &str) -> Tries {
    let tries = TRIES.into_iter().find(|tries| Course::PAPER.with_tries(*tries).radio() == radio);
    tries.expect("one of the radios")
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "sender | tries x passes | frames hit, % | policy | mobile 1, Mbit/s | mobile 2 | \
         lost after all tries, % | reordered, % | time-outs of both",
    );
    let axes = vec![
        Axis::new("sender", SENDERS.map(|sender| sender.name)),
        Axis::new("radio", TRIES.map(|tries| Course::PAPER.with_tries(tries).radio())),
        Axis::new("error", run.points(&ERRORS)),
        Axis::new("policy", POLICIES.map(Policy::name)),
    ];
    let names = ["sender", "radio", "error", "policy"];
    let grid = Grid::run(run, axes, |point, seed| {
        let error = point.number("error") as u32;
        let tries = tries(&point.text("radio"));
        let course = Course { pairs: 2, error, ..Course::PAPER.with_tries(tries) };
        let policy = policies::named(&point.text("policy"));
        let sender = senders::named(&point.text("sender"));
        let result = simulate::once(course.scenario(run, sender, policy)?, seed)?;
        let radio = result.station.as_ref().map(|station| &station.radio[0]);
        let per_cent = |of: fn(&RadioResult) -> f64| radio.map_or(0.0, of) * 100.0;
        let fields = fields! {
            lost: per_cent(|radio| radio.residual_loss),
            reordered: per_cent(|radio| radio.reordered),
            timeouts: result.flows.iter().filter_map(|flow| flow.timeouts).sum::<u64>(),
        };
        let flows = MOBILES.iter().zip(&result.flows);
        Ok(flows.fold(fields, |fields, (name, flow)| fields.with(*name, flow.goodput)))
    })?;
    grid.record(&mut findings, &names)?;
    for row in grid.all().rows(&names) {
        let place = names.map(|axis| row.text(axis)).into_iter();
        let goodputs = MOBILES.map(|mobile| row.show(mobile, 1e-6, 3));
        let counts = [("lost", 3), ("reordered", 2), ("timeouts", 1)];
        let counts = counts.map(|(field, decimals)| row.show(field, 1.0, decimals));
        findings.table.add(place.chain(goodputs).chain(counts).collect());
    }
    for row in grid.all().rows(&["sender", "radio", "error"]) {
        let is_papers = senders::named(&row.text("sender")).is_papers();
        let is_beside = !is_papers || !tries(&row.text("radio")).is_papers();
        findings.beside(is_beside, |findings| {
            MOBILES.iter().for_each(|mobile| judge(findings, &row, mobile));
        });
    }
    for (name, mobile, tries) in PICTURES {
        let radio = Course::PAPER.with_tries(tries).radio();
        let own = grid.all().at("radio", radio.clone());
        let lines = own.rows(&["sender", "policy"]).into_iter().map(|part| {
            let name = format!("{}, {}", part.text("policy"), part.text("sender"));
            part.line(name, "error", 1e-6, |cell| cell.mean(mobile))
        });
        let title = format!("Goodput of {mobile} of two, {radio} tries");
        let (x, y) = (draw::linear("frames hit, %"), draw::goodput());
        findings.picture(name, Figure { title, x, y, series: lines.collect() });
    }
    findings.notes.extend(NOTES.map(str::to_owned));
    Ok(findings)
}

/// TCP-ECN 7.2.1.2: both policies are above Reno at all error rates, and Snoop falls off at high
/// ones.
fn judge(findings: &mut Findings, row: &Slice<'_>, mobile: &str) {
    let error = row.number("error") as u32;
    let [plain, snoop, ecn] = POLICIES;
    for (above, below) in [(ecn, plain), (snoop, plain), (ecn, snoop)] {
        if error == 0 || (below == snoop && error < HIGH) {
            continue;
        }
        let of = |policy: Policy| row.at("policy", policy.name());
        let ratio = theory::paired(&of(above).values(mobile), &of(below).values(mobile));
        let place = format!("{error} % hit, {} tries, {}", row.text("radio"), row.text("sender"));
        findings.mean(
            format!("{} over {}, {mobile}, {place}", above.name(), below.name()),
            "more (above 1)",
            (&ratio, 2),
            Bound::Above(1.0),
            || why(&of(plain), [&of(above), &of(below)]),
        );
    }
}

/// Returns the known reasons why the first policy is not above the second.
fn why(plain: &Slice<'_>, policies: [&Slice<'_>; 2]) -> String {
    let (lost, reordered) = (plain.mean("lost"), plain.mean("reordered"));
    let radio = policies::with_plain(&lost, &reordered);
    if policies::is_clean(&lost, &reordered) {
        return format!("{radio}: {NOTHING_LEFT}");
    }
    let [one, other] = policies.map(|policy| policy.show("timeouts", 1.0, 1));
    format!("{radio}; {one} and {other} time-outs; the cause was not determined")
}
