//! Compares our stack as receiver with the kernel's, with the kernel's senders.

use super::{Case, Measured, REAL, Sender, candidate, course, lossy, note, window};
use crate::Table;
use crate::prelude::*;
use crate::real::{Course, Done, Flow, Tcp};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/receiver",
    what: "Linux bbr and cubic to our receiver and to Linux, loss 0 to 10 %",
    source: "our own bound: 0.95 of the goodput to Linux",
    seconds: 7_400,
    body,
    ..REAL
};

const SENDERS: [&str; 2] = ["bbr", "cubic"];
/// The per cent of data packets lost.
const LOSSES: [f64; 6] = [0.0, 0.1, 1.0, 2.0, 5.0, 10.0];
/// The minimum goodput as a fraction of the goodput into Linux.
const FLOOR: f64 = 0.95;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("sender");
    let times = window(run, 10);
    // A small run has one loss rate.
    let losses = if run.is_small { &LOSSES[..1] } else { &LOSSES[..] };
    let receivers =
        [("Linux", Tcp::Kernel(None)), ("ours", Tcp::Ours(candidate(run)?, Profile::modern()))];
    let mut cases = Vec::new();
    for loss in losses.iter().copied() {
        for (name, receiver) in receivers.clone() {
            let name = format!("{loss} %, {name}");
            cases.push(Case::new(name, move |tcp, seed| {
                let flows = vec![Flow::new(tcp.clone())];
                let course = course(flows, &lossy(1.0, loss, seed), times)?;
                Ok(Course { receiver: receiver.clone(), ..course })
            }));
        }
    }
    let senders = SENDERS.map(|name| Sender::kernel(name, Ground::Real)).to_vec();
    let measured = Measured::new(&mut findings, run, senders, cases)?;
    show(&mut findings, &measured, losses);
    for (loss, case) in losses.iter().zip((0..).step_by(receivers.len())) {
        for sender in 0..SENDERS.len() {
            let ratio = ratio(&measured, sender, case);
            let name = measured.sender_name(sender);
            let what = format!("goodput into ours over that into Linux, {name}, {loss} % lost");
            let claimed = format!("above {FLOOR}");
            let bound = (Bound::Above(FLOOR), theory::unknown);
            let runs = [(sender, case), (sender, case + 1)];
            measured.claim(&mut findings, &runs, what, claimed, (&ratio, 3), bound);
        }
    }
    findings.note(note(run, times));
    findings.note("Our receiver runs the candidate, which sends nothing but ACKs.");
    Ok(findings)
}

/// Returns the goodput into our receiver divided by that into Linux. The case of Linux is directly
/// before ours.
fn ratio(measured: &Measured, sender: usize, case: usize) -> Interval {
    let goodput = |case| measured.values(sender, case, Done::goodput);
    theory::paired(&goodput(case + 1), &goodput(case))
}

/// Adds the table and the pictures: the goodput into each receiver, and the ratio.
fn show(findings: &mut Findings, measured: &Measured, losses: &[f64]) {
    let names = losses.iter().map(|loss| format!("{loss} %"));
    let columns = std::iter::once("sender, Mbit/s".to_owned()).chain(names);
    findings.table = Table::of(columns.collect());
    let (mut series, mut ratios) = (Vec::new(), Vec::new());
    let cases = || losses.iter().zip((0..).step_by(2));
    let line = |name: String, of: &dyn Fn(usize) -> Interval, unit| {
        let point = |(loss, case): (&f64, _)| draw::interval(loss.max(draw::ZERO), &of(case), unit);
        draw::series(name, Style::LineAndMarks, cases().map(point).collect())
    };
    for sender in 0..SENDERS.len() {
        let name = measured.sender_name(sender);
        for (receiver, into) in ["Linux", "ours"].into_iter().enumerate() {
            let goodput = |case: usize| measured.mean(sender, case + receiver, Done::goodput);
            let cells = cases().map(|(_, case)| theory::show(&goodput(case), 1e-6, 2));
            let row = format!("{name} into {into}");
            findings.table.add(std::iter::once(row.clone()).chain(cells).collect());
            series.push(line(row, &goodput, 1e-6));
        }
        let ratio = |case| ratio(measured, sender, case);
        let cells = cases().map(|(_, case)| theory::show(&ratio(case), 1.0, 3));
        findings.table.add(std::iter::once(format!("{name}: ours / Linux")).chain(cells).collect());
        ratios.push(line(name.to_owned(), &ratio, 1.0));
    }
    let title = "Linux' senders into our receiver and into Linux', 100 Mbit/s, 20 ms";
    let y = draw::log(&draw::more("goodput, Mbit/s"));
    findings.picture("receiver", draw::figure(title, draw::losses(), y, series));
    let (title, y) = (
        "Goodput into our receiver over that into Linux'",
        draw::linear(&draw::more("ratio of goodputs")),
    );
    findings.picture("ratio", draw::figure(title, draw::losses(), y, ratios));
}
