//! RRTP, Table 5.1: Jain's index of thirty flows on 11 Mbit/s.

use super::network::{NEW_RENO, RENO, SETUP, flow, shared, short};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/table5.1",
    what: "Jain's index of 30 flows of RRTP, Reno or NewReno, error 0 to 5 %",
    source: "RRTP (Wang 2009) 5.1, Table 5.1; delay, queue and time are not stated",
    seconds: 220,
    body,
    ..Experiment::STUDY
};

/// The error rate in per cent, and the printed indices of RRTP and Reno.
const TABLE: [(f64, f64, f64); 5] =
    [(0.0, 1.0, 0.98), (0.1, 1.0, 0.99), (0.5, 0.99, 0.98), (1.0, 0.99, 0.97), (5.0, 0.98, 0.97)];
const SENDERS: [&str; 3] = ["rrtp", RENO, NEW_RENO];
const COUNT: u32 = 30;
/// The wireless LAN of Table 4.3.
const LINK: &str = "rate 11mbit delay 5ms limit 50";
/// A longer path, which the thesis does not have, with a queue of one BDP.
const LONG: &str = "rate 11mbit delay 300ms limit 573";
/// The links and the durations in seconds.
const CASES: [(&str, u64); 3] = [(LINK, 60), (LINK, 240), (LONG, 240)];
const LEAST: f64 = 0.97;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new("link | sender | error, % | seconds | Jain's index | thesis | sum, Mbit/s");
    let table = if run.is_small { &TABLE[..1] } else { &TABLE[..] };
    let cases = if run.is_small { &[(LINK, 6), (LONG, 6)][..] } else { &CASES[..] };
    let axes = vec![
        Axis::new("sender", SENDERS),
        Axis::new("case", 0..cases.len()),
        Axis::new("error", table.iter().map(|(error, ..)| *error)),
    ];
    let grid = Grid::run(run, axes, |point, seed| {
        let (link, seconds) = cases[point.number("case") as usize];
        let scenario = scenario(point, link, seconds)?;
        let result = simulate::once(simulate::staggered(&scenario, seed), seed)?;
        let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
        let fields = fields! { link, seconds };
        Ok(fields.with("jain", result.jain).with("goodputs", goodputs))
    })?;
    grid.record(&mut findings, &["sender", "error"])?;
    for row in grid.all().rows(&["sender", "case", "error"]) {
        let (link, seconds) = cases[row.number("case") as usize];
        let (name, index) = (short(&row.text("sender")), row.show("jain", 1.0, 4));
        let printed = TABLE.iter().find(|(error, ..)| *error == row.number("error"));
        let printed = printed.and_then(|(_, rrtp, reno)| match row.text("sender").as_str() {
            RENO => Some(*reno),
            NEW_RENO => None,
            _ => Some(*rrtp),
        });
        let error = row.text("error");
        if let Some(figure) = printed {
            let least = row.values("jain").into_iter().fold(1.0, f64::min);
            let delay = if link == LINK { "5 ms" } else { "300 ms" };
            let place = format!("error {error} %, {delay}, the second half of {seconds} s");
            findings.beside(link != LINK, |findings| {
                findings.mean(
                    format!("{COUNT} flows of {name}, {place}"),
                    format!("0.97 or more ({figure} in the thesis)"),
                    (&row.mean("jain"), 4),
                    Bound::Above(LEAST),
                    || reason(&row.text("sender"), least),
                );
            });
        }
        let printed = printed.map_or("-".to_owned(), |figure| figure.to_string());
        let sum = row.show("goodputs", 1e-6, 3);
        let (link, name) = (link.to_owned(), name.to_owned());
        findings.table.row([link, name, error, seconds.to_string(), index, printed, sum]);
    }
    let lines = grid.all().rows(&["sender", "case"]).into_iter().map(|part| {
        let (link, seconds) = cases[part.number("case") as usize];
        let path = if link == LINK { "" } else { " at 300 ms" };
        let name = format!("{}, {seconds} s{path}", short(&part.text("sender")));
        part.line(name, "error", 1.0, |cell| cell.mean("jain"))
    });
    findings.note(SETUP);
    findings.note(format!(
        "the link is \"{LINK}\", Table 4.3's wireless LAN, and for comparison \"{LONG}\"; each flow begins at a time of its own in the first second"
    ));
    findings.plot(
        "table5.1",
        "Thirty flows on 11 Mbit/s",
        (draw::linear("error, %"), draw::linear(&draw::more("Jain's index"))),
        lines,
    );
    Ok(findings)
}

fn reason(sender: &str, least: f64) -> String {
    match sender {
        RENO => format!(
            "the minimum of the runs is {least:.4}. Guess: a window is three segments on average, so that most losses are \
             time-outs"
        ),
        _ => format!("the minimum of the runs is {least:.4}"),
    }
}

fn scenario(point: &Point, link: &str, seconds: u64) -> Result<Scenario, LabError> {
    let sender = point.text("sender");
    let flow = |number| FlowSpec { name: format!("flow {number}"), ..flow(&sender) };
    let times = [seconds as f64 / 2.0, seconds as f64].map(Duration::from_secs_f64);
    shared("table5.1", link, &point.text("error"), (1..=COUNT).map(flow).collect(), times)
}
