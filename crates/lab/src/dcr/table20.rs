//! Table 20: a file of 33 MB over 10 ms, in virtual time.

use super::transfer::{self, BACK, Outcome, POINTS, Sender};
use crate::paper::LINUX_2_4;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/table20",
    what: "33 MB over 10 Mbit/s, standard deviation of the delay 0 to 3 ms",
    source: "DCR 6, Fig. 20 (\"Table 20\")",
    seconds: 60,
    body,
    ..Experiment::STUDY
};

const COMBINATIONS: [&str; 5] = [
    "sack/reno",
    transfer::AS_THE_PAPER,
    "sack/reno/dcr:timer",
    "rack/reno",
    "rack/reno/dcr:timer",
];

fn body(run: &Run) -> Result<Findings, LabError> {
    let axes = vec![
        Axis::new("profile", [LINUX_2_4, "paper", "modern"]),
        Axis::new("combination", COMBINATIONS),
        Axis::new("deviation", POINTS.map(|(deviation, ..)| deviation)),
    ];
    let grid = Grid::run(run, axes, |point, seed| one(run, point, seed))?;
    let senders = grid.all().rows(&["profile", "combination"]);
    let mut findings = transfer::table();
    grid.record(&mut findings, &["combination", "profile", "deviation"])?;
    transfer::show(&mut findings, &senders.iter().map(sender).collect::<Vec<_>>(), "table20");
    Ok(findings)
}

fn sender(part: &Slice<'_>) -> Sender {
    let outcome = |cell: Slice<'_>| Outcome {
        deviation: cell.number("deviation") as u32,
        goodput: cell.mean("goodput"),
        disordered: cell.mean("disordered"),
        unfit: None,
    };
    let combination = part.text("combination");
    let name = format!("{combination}, {}", part.text("profile"));
    Sender { name, combination, outcomes: part.each("deviation").map(outcome).collect() }
}

/// Returns the goodput in bit/s, and the per cent of packets that the link delivered after later
/// ones.
fn one(run: &Run, point: &Point, seed: u64) -> Result<Fields, LabError> {
    let forth = transfer::forth(point.number("deviation") as u32);
    let flow = simulate::flow(&point.text("combination"), point.profile());
    let scenario = simulate::over("table20", feed::wire(&forth, BACK)?, flow);
    let result = simulate::once(Scenario { duration: transfer::time(run), ..scenario }, seed)?;
    let flow = &result.flows[0];
    let forth = result.links.iter().find(|link| link.way == "forth");
    let counters = forth.map(|link| link.counters).unwrap_or_default();
    let disordered = counters.reordered as f64 / counters.forwarded.max(1) as f64 * 100.0;
    Ok(fields! {
        goodput: flow.goodput,
        retransmissions: flow.retransmissions,
        spurious: flow.spurious,
        reductions: flow.reductions.unwrap_or(0),
        timeouts: flow.timeouts.unwrap_or(0),
        disordered,
        dropped: counters.queue_dropped,
    })
}
