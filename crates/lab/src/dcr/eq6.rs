//! Equation (6): the throughput according to the paper's analysis.

use super::{flow, timed};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/eq6",
    what: "One flow with and without DCR under random loss, against equation (6)",
    source: "DCR 2.4, equation (6) with alpha 1 and gamma 1/2: sqrt(1.5) / (RTT sqrt(p)) packets a second",
    seconds: 60,
    seeds: 30,
    body,
    ..Experiment::STUDY
};

const SACK: &str = "sack/reno";
const SENDERS: [&str; 3] = ["sack/reno/dcr:timer", "sack/reno/dcr:count", SACK];
/// The per cent of data packets lost.
const LOSSES: [f64; 5] = [0.1, 0.25, 0.5, 1.0, 2.0];
const LINK: &str = "rate 100mbit delay 25ms limit 1000";
const SIMILAR: Bound = Bound::Within(0.9, 1.1);
/// The payload of a packet, in bits.
const BITS: f64 = 8_000.0;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new("sender | lost, % | goodput, Mbit/s | equation | ratio | cuts | time-outs");
    let losses = run.points(&LOSSES);
    let axes = vec![Axis::new("sender", SENDERS), Axis::new("loss", losses)];
    let grid = Grid::run(run, axes, |point, seed| {
        let result = simulate::once(scenario(point, run.is_small)?, seed)?;
        let flow = &result.flows[0];
        let share = point.number("loss") / 100.0;
        // Uses the measured RTT. DCR waits another SRTT before it reduces the window.
        let law = BITS * (1.5 / share).sqrt() / flow.rtt.mean;
        Ok(fields! {
            goodput: flow.goodput,
            law,
            ratio: flow.goodput / law,
            cuts: flow.reductions.unwrap_or(0),
            repairs: flow.retransmissions,
            timeouts: flow.timeouts.unwrap_or(0),
        })
    })?;
    grid.record(&mut findings, &["sender", "loss"])?;
    let rates = [("goodput", 1e-6, 3), ("law", 1e-6, 3), ("ratio", 1.0, 3)];
    let counts = [("cuts", 1.0, 1), ("timeouts", 1.0, 1)];
    findings.rows(&grid, &["sender", "loss"], &[&rates[..], &counts].concat());
    for row in grid.all().rows(&["sender", "loss"]) {
        let place = format!("{}, {} % lost", row.text("sender"), row.text("loss"));
        let why = || why(&row);
        let what = format!("goodput over the equation's, {place}");
        findings.mean(what, "1 (0.9 to 1.1)", (&row.mean("ratio"), 3), SIMILAR, why);
        if row.text("sender") != SACK {
            let sack = grid.all().at("sender", SACK).at("loss", row.number("loss"));
            let over = theory::paired(&row.values("goodput"), &sack.values("goodput"));
            let what = format!("goodput over that of {SACK}, {place}");
            findings.mean(what, "similar (0.9 to 1.1)", (&over, 3), SIMILAR, why);
        }
    }
    let line =
        |part: Slice<'_>| part.line(part.text("sender"), "loss", 1e-6, |cell| cell.mean("goodput"));
    let mut series: Vec<_> = grid.all().each("sender").map(line).collect();
    let laws =
        grid.all().at("sender", SACK).line("equation (6)", "loss", 1e-6, |cell| cell.mean("law"));
    series.push(draw::series("equation (6)", Style::Line, laws.points));
    let title = "One flow over random loss, RTT 50 ms, paper profile";
    findings.plot(
        "eq6",
        title,
        (draw::log("lost packets, %"), draw::log(&draw::more("goodput, Mbit/s"))),
        series,
    );
    Ok(findings)
}

fn why(row: &Slice<'_>) -> String {
    let [cuts, repairs] = ["cuts", "repairs"].map(|field| row.mean(field).mean);
    format!(
        "the equation has a cut for each loss and no time without growth; here are {:.2} cuts for each segment sent again, and {} \
         time-outs",
        cuts / repairs.max(1.0),
        row.show("timeouts", 1.0, 1)
    )
}

fn scenario(point: &Point, is_small: bool) -> Result<Scenario, LabError> {
    let wire = feed::lossy(LINK, point.number("loss"))?;
    let flow = flow(&point.text("sender"), &Profile::paper());
    Ok(timed(simulate::over("eq6", wire, flow), is_small))
}
