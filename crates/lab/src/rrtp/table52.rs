//! RRTP, Table 5.2: five protocols on one link of 54 Mbit/s.

use std::time::Duration;

use airtcp_sim::{Interval, Scenario};

use super::network::{NEW_RENO, RENO, SETUP, VEGAS, WESTWOOD, flow, shared, short};
use crate::study::{Axis, Fields, Grid, Point, Slice, Value};
use crate::{Experiment, Findings, LabError, Run, Verdict, draw, simulate, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/table5.2",
    what: "Shares of Reno, NewReno, Vegas, Westwood and RRTP, error 0 to 5 %",
    source: "RRTP (Wang 2009) 5.2, Table 5.2; delay, queue and time are not stated",
    seconds: 120,
    body,
    ..Experiment::STUDY
};

/// Per cent, and hundredths of Mbit/s, which is what the thesis prints.
const TABLE: [(f64, [u32; 5]); 5] = [
    (0.0, [896, 896, 896, 896, 896]),
    (0.1, [628, 633, 837, 738, 882]),
    (0.5, [408, 422, 509, 721, 789]),
    (1.0, [298, 302, 306, 586, 697]),
    (5.0, [116, 116, 97, 223, 245]),
];
const SENDERS: [&str; 5] = [RENO, NEW_RENO, VEGAS, WESTWOOD, "rrtp"];
/// Those that fill a queue until it drops.
const LOSS_BASED: [&str; 3] = [RENO, NEW_RENO, WESTWOOD];
/// The queues: as many packets as the path holds both ways (54 Mbit/s x 20 ms / 8 / 1440), a
/// quarter, and four times that.
const QUEUES: [u64; 3] = [94, 24, 376];
const RATE: f64 = 54e6;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "error, %",
        "queue, packets",
        "sender",
        "Mbit/s",
        "of the fair share",
        "thesis, Mbit/s",
    ]);
    let (table, queues) =
        if run.is_small { (&TABLE[..1], &QUEUES[..1]) } else { (&TABLE[..], &QUEUES[..]) };
    let own = measure(run, &mut findings, &queues[..1], table)?;
    // What is lost at random hides the queue's size, and its own is the thesis' first row.
    measure(run, &mut findings, &queues[1..], &table[..1])?;
    let sums = TABLE.map(|(error, printed)| {
        format!("{error} %: {:.1}", f64::from(printed.iter().sum::<u32>()) / 100.0)
    });
    findings.note(SETUP);
    findings.note(format!(
        "the thesis' rows add up to (Mbit/s of 54) {}: from 0.5 % on the link is half empty, so that each flow is limited \
         by its losses and not by the others; and its first row shows Vegas equal to Reno, which contradicts its text",
        sums.join(", ")
    ));
    let series = SENDERS.iter().enumerate().map(|(flow, sender)| {
        own.all().line(short(sender), "error", 1e-6, |cell| goodput(cell, flow))
    });
    let (x, y) = (draw::linear("error, %"), draw::linear("goodput, Mbit/s"));
    findings.picture("table5.2", draw::figure("Five protocols on 54 Mbit/s", x, y, series));
    Ok(findings)
}

/// bit/s of payload of the flow with this place in the table.
fn goodput(cell: &Slice<'_>, flow: usize) -> Interval {
    let of = |run: &Fields| match run.value("goodputs") {
        Value::List(goodputs) => goodputs.get(flow).copied(),
        _ => None,
    };
    Interval::of(&cell.of(of))
}

fn measure(
    run: &Run,
    findings: &mut Findings,
    queues: &[u64],
    table: &[(f64, [u32; 5])],
) -> Result<Grid, LabError> {
    let errors = table.iter().map(|(error, _)| *error);
    let axes = vec![Axis::new("queue", queues.iter().copied()), Axis::new("error", errors)];
    let grid = Grid::run(run, axes, |point, seed| {
        let scenario = scenario(point, run.is_small)?;
        let result = simulate::once(simulate::staggered(&scenario, seed), seed)?;
        let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
        let dropped: u64 = result.links.iter().map(|link| link.counters.queue_dropped).sum();
        Ok(Fields::default().with("goodputs", goodputs).with("queue_dropped", dropped))
    })?;
    grid.record(findings, &["error", "queue"])?;
    for (cell, (_, printed)) in
        grid.all().rows(&["queue", "error"]).iter().zip(table.iter().cycle())
    {
        report(findings, cell, printed);
    }
    Ok(grid)
}

fn report(findings: &mut Findings, cell: &Slice<'_>, printed: &[u32; 5]) {
    let [error, queue] = ["error", "queue"].map(|axis| cell.text(axis));
    let case = format!("error {error} %, queue {queue}");
    let has_errors = cell.number("error") > 0.0;
    let fair = RATE / SENDERS.len() as f64;
    let mut sum = 0.0;
    for (flow, (sender, thesis)) in SENDERS.iter().zip(printed).enumerate() {
        let goodput = goodput(cell, flow);
        sum += goodput.mean;
        let share = theory::scaled(&goodput, 1.0 / fair);
        let shown = theory::show(&share, 1.0, 2);
        findings.table.row([
            error.clone(),
            queue.clone(),
            short(sender).to_owned(),
            theory::show(&goodput, 1e-6, 2),
            shown.clone(),
            format!("{:.2}", f64::from(*thesis) / 100.0),
        ]);
        if has_errors {
            continue;
        }
        let why = match LOSS_BASED.contains(sender) {
            true => "the others take it: see the table",
            false => "it is delay-based, and yields while others fill the queue",
        };
        findings.claim(
            format!("{case}: {}, of its fair share of 10.8 Mbit/s", short(sender)),
            "0.4 or more",
            shown,
            theory::above(&share, 0.4, || why.to_owned()),
        );
    }
    if !has_errors {
        let share = sum / RATE;
        findings.claim(
            format!("{case}: all together, of the link"),
            "0.83 (44.8 of 54 Mbit/s)",
            format!("{share:.3}"),
            Verdict::of((share / (44.8 / 54.0) - 1.0).abs() < 0.1, || {
                "five flows that fill a queue keep the link busy: the rest is headers, 3 to 4 %"
                    .to_owned()
            }),
        );
    }
}

fn scenario(point: &Point, is_small: bool) -> Result<Scenario, LabError> {
    let times = if is_small { [2, 6] } else { [20, 80] }.map(Duration::from_secs);
    let link = format!("rate 54mbit delay 10ms limit {}", point.text("queue"));
    let flows = SENDERS.iter().map(|sender| flow(sender)).collect();
    shared("table5.2", &link, &point.text("error"), flows, times)
}
