//! RRTP, Table 5.1: Jain's index of thirty flows on 11 Mbit/s.

use super::network::{NEW_RENO, RENO, SETUP, flow, shared, short};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/table5.1",
    what: "Jain's index of 30 flows of RRTP, Reno or NewReno, error 0 to 5 %",
    source: "RRTP (Wang 2009) 5.1, Table 5.1; delay, queue and time are not stated",
    seconds: 120,
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
const SECONDS: [u64; 2] = [60, 240];
const LEAST: f64 = 0.97;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new("sender | error, % | seconds | Jain's index | thesis | sum, Mbit/s");
    let table = if run.is_small { &TABLE[..1] } else { &TABLE[..] };
    let seconds = if run.is_small { &[6][..] } else { &SECONDS[..] };
    let axes = vec![
        Axis::new("sender", SENDERS),
        Axis::new("seconds", seconds.iter().copied()),
        Axis::new("error", table.iter().map(|(error, ..)| *error)),
    ];
    let grid = Grid::run(run, axes, |point, seed| {
        let result = simulate::once(simulate::staggered(&scenario(point)?, seed), seed)?;
        let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
        Ok(Fields::default().with("jain", result.jain).with("goodputs", goodputs))
    })?;
    grid.record(&mut findings, &["sender", "error", "seconds"])?;
    for row in grid.all().rows(&["sender", "seconds", "error"]) {
        let (name, index) = (short(&row.text("sender")), row.show("jain", 1.0, 4));
        let printed = TABLE.iter().find(|(error, ..)| *error == row.number("error"));
        let printed = printed.and_then(|(_, rrtp, reno)| match row.text("sender").as_str() {
            RENO => Some(*reno),
            NEW_RENO => None,
            _ => Some(*rrtp),
        });
        let [error, seconds] = ["error", "seconds"].map(|axis| row.text(axis));
        if let Some(figure) = printed {
            let least = row.values("jain").into_iter().fold(1.0, f64::min);
            findings.mean(
                format!("{COUNT} flows of {name}, error {error} %, the second half of {seconds} s"),
                format!("0.97 or more ({figure} in the thesis)"),
                (&row.mean("jain"), 4),
                Bound::Above(LEAST),
                || reason(&row.text("sender"), least),
            );
        }
        let printed = printed.map_or("-".to_owned(), |figure| figure.to_string());
        let sum = row.show("goodputs", 1e-6, 3);
        findings.table.row([name.to_owned(), error, seconds, index, printed, sum]);
    }
    let lines = grid.all().rows(&["sender", "seconds"]).into_iter().map(|part| {
        let name = format!("{}, {} s", short(&part.text("sender")), part.text("seconds"));
        part.line(name, "error", 1.0, |cell| cell.mean("jain"))
    });
    findings.note(SETUP);
    findings.note(format!(
        "the link is \"{LINK}\", Table 4.3's wireless LAN; each flow begins at a time of its own in the first second"
    ));
    let (x, y) = (draw::linear("error, %"), draw::linear("Jain's index"));
    findings.picture("table5.1", draw::figure("Thirty flows on 11 Mbit/s", x, y, lines));
    Ok(findings)
}

fn reason(sender: &str, least: f64) -> String {
    match sender {
        RENO => format!(
            "the minimum of the runs is {least:.4}. Hypothesis: a window is three segments on average, so that most losses are \
             time-outs"
        ),
        _ => format!("the minimum of the runs is {least:.4}"),
    }
}

fn scenario(point: &Point) -> Result<Scenario, LabError> {
    let sender = point.text("sender");
    let flow = |number| FlowSpec { name: format!("flow {number}"), ..flow(&sender) };
    let seconds = point.number("seconds");
    let times = [seconds / 2.0, seconds].map(Duration::from_secs_f64);
    shared("table5.1", LINK, &point.text("error"), (1..=COUNT).map(flow).collect(), times)
}
