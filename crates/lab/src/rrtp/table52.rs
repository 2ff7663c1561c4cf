//! RRTP, Table 5.2: five protocols on one link of 54 Mbit/s.

use super::network::{NEW_RENO, RENO, SETUP, VEGAS, WESTWOOD, flow, shared, short};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/table5.2",
    what: "Shares of Reno, NewReno, Vegas, Westwood and RRTP, error 0 to 5 %",
    source: "RRTP (Wang 2009) 5.2, Table 5.2; delay, queue and time are not stated",
    seconds: 120,
    body,
    ..Experiment::STUDY
};

/// The error rate in per cent, and the printed rates in hundredths of Mbit/s.
const TABLE: [(f64, [u32; 5]); 5] = [
    (0.0, [896, 896, 896, 896, 896]),
    (0.1, [628, 633, 837, 738, 882]),
    (0.5, [408, 422, 509, 721, 789]),
    (1.0, [298, 302, 306, 586, 697]),
    (5.0, [116, 116, 97, 223, 245]),
];
const SENDERS: [&str; 5] = [RENO, NEW_RENO, VEGAS, WESTWOOD, "rrtp"];
/// The senders that fill a queue until it drops.
const LOSS_BASED: [&str; 3] = [RENO, NEW_RENO, WESTWOOD];
/// The queues in packets: one BDP (54 Mbit/s x 20 ms / 8 / 1440), a quarter of it, and four times
/// it.
const QUEUES: [u64; 3] = [94, 24, 376];
const RATE: f64 = 54e6;
/// A queue, and a row of the table.
type Case = (u64, (f64, [u32; 5]));
const BUSY: &str = "five flows that fill a queue keep the link busy: the rest is headers, 3 to 4 %";

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "error, % | queue, packets | sender | Mbit/s | of the fair share | thesis, Mbit/s",
    );
    // Random losses hide the effect of the queue's size, so other queues only run with the first
    // row.
    let others = QUEUES[1..].iter().map(|queue| (*queue, TABLE[0]));
    let cases: Vec<_> = TABLE.into_iter().map(|row| (QUEUES[0], row)).chain(others).collect();
    let cases = if run.is_small { &cases[..1] } else { &cases[..] };
    let times = if run.is_small { [2, 6] } else { [20, 80] }.map(Duration::from_secs);
    let grid = Grid::run(run, vec![Axis::new("case", 0..cases.len())], |point, seed| {
        let (queue, (error, _)) = cases[point.number("case") as usize];
        let link = format!("rate 54mbit delay 10ms limit {queue}");
        let flows = SENDERS.map(flow).to_vec();
        let scenario = shared("table5.2", &link, &error.to_string(), flows, times)?;
        let result = simulate::once(simulate::staggered(&scenario, seed), seed)?;
        let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
        let dropped: u64 = result.links.iter().map(|link| link.counters.queue_dropped).sum();
        let fields = Fields::default().with("error", error).with("queue", queue);
        Ok(fields.with("goodputs", goodputs).with("queue_dropped", dropped))
    })?;
    grid.record(&mut findings, &[])?;
    let cells: Vec<_> = grid.all().each("case").zip(cases).collect();
    cells.iter().for_each(|(cell, case)| report(&mut findings, cell, case));
    let sum = |printed: [u32; 5]| f64::from(printed.iter().sum::<u32>()) / 100.0;
    let sums = TABLE.map(|(error, printed)| format!("{error} %: {:.1}", sum(printed)));
    findings.note(SETUP);
    findings.note(format!(
        "the thesis' rows add up to (Mbit/s of 54) {}: from 0.5 % on the link is half empty, so that each flow is limited \
         by its losses and not by the others; and its first row shows Vegas equal to Reno, which contradicts its text",
        sums.join(", ")
    ));
    let series = SENDERS.iter().enumerate().map(|(flow, sender)| {
        let own = cells.iter().filter(|(_, (queue, _))| *queue == QUEUES[0]);
        let points = own.map(|(cell, (_, (x, _)))| draw::interval(*x, &goodput(cell, flow), 1e-6));
        draw::series(short(sender), Style::LineAndMarks, points.collect())
    });
    let (x, y) = (draw::linear("error, %"), draw::linear("goodput, Mbit/s"));
    findings.picture("table5.2", draw::figure("Five protocols on 54 Mbit/s", x, y, series));
    Ok(findings)
}

/// Returns the goodput of the flow with this index in the table, in bit/s.
fn goodput(cell: &Slice<'_>, flow: usize) -> Interval {
    Interval::of(&cell.of(|run| run.list("goodputs").get(flow).copied()))
}

fn report(findings: &mut Findings, cell: &Slice<'_>, (queue, (error, printed)): &Case) {
    let case = format!("error {error} %, queue {queue}");
    let mut sum = 0.0;
    for (flow, (sender, thesis)) in SENDERS.iter().zip(printed).enumerate() {
        let goodput = goodput(cell, flow);
        sum += goodput.mean;
        let share = theory::scaled(&goodput, 1.0 / (RATE / SENDERS.len() as f64));
        let shown = [theory::show(&goodput, 1e-6, 2), theory::show(&share, 1.0, 2)].into_iter();
        let place = [error.to_string(), queue.to_string(), short(sender).to_owned()];
        let thesis = format!("{:.2}", f64::from(*thesis) / 100.0);
        findings.table.add(place.into_iter().chain(shown).chain([thesis]).collect());
        if *error == 0.0 {
            let why = match LOSS_BASED.contains(sender) {
                true => "the others take it: see the table",
                false => "it is delay-based, and yields while others fill the queue",
            };
            let what = format!("{case}: {}, of its fair share of 10.8 Mbit/s", short(sender));
            findings.mean(what, "0.4 or more", (&share, 2), Bound::Above(0.4), || why.to_owned());
        }
    }
    if *error == 0.0 {
        let share = sum / RATE;
        let verdict = Verdict::of((share / (44.8 / 54.0) - 1.0).abs() < 0.1, || BUSY.to_owned());
        let what = format!("{case}: all together, of the link");
        findings.claim(what, "0.83 (44.8 of 54 Mbit/s)", format!("{share:.3}"), verdict);
    }
}
