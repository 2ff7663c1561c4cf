//! Our stack as receiver beside the kernel's, with the kernel's senders.

use airtcp_recovery::Profile;
use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Style};

use super::goodput::ZERO;
use super::{Case, Measured, Sender, candidate, course, note, window, words};
use crate::real::{Done, Flow, Tcp};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, Table, draw, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/receiver",
    what: "Linux bbr and cubic to our receiver and to Linux, loss 0 to 10 %",
    source: "our own bound: 0.95 of the goodput to Linux",
    kind: Kind::Candidate,
    ground: Ground::Real,
    seconds: 7_400,
    seeds: super::SEEDS[0],
    body,
};

const SENDERS: [&str; 2] = ["bbr", "cubic"];
/// Per cent of data packets.
const LOSSES: [f64; 6] = [0.0, 0.1, 1.0, 2.0, 5.0, 10.0];
/// Of the goodput into Linux.
const FLOOR: f64 = 0.95;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(["sender"]);
    let times = window(run, 10);
    // A small form has one of them.
    let losses = if run.is_small { &LOSSES[..1] } else { &LOSSES[..] };
    let receivers =
        [("Linux", Tcp::Kernel(None)), ("ours", Tcp::Ours(candidate(run)?, Profile::modern()))];
    let mut cases = Vec::new();
    for loss in losses.iter().copied() {
        for (name, receiver) in receivers.clone() {
            cases.push(Case::new(format!("{loss} %, {name}"), loss.max(ZERO), move |tcp, seed| {
                let forth =
                    format!("{} loss {loss}% only payload seed {seed}", words(100.0, 20.0, 1.0));
                let mut course = course(vec![Flow::new(tcp.clone())], &forth, times)?;
                course.receiver = receiver.clone();
                Ok(course)
            }));
        }
    }
    let senders = SENDERS.map(|name| Sender::kernel(name, Ground::Real)).to_vec();
    let measured = Measured::new(&mut findings, run, Ground::Real, senders, cases)?;
    show(&mut findings, &measured, losses);
    for (loss, case) in losses.iter().zip((0..).step_by(receivers.len())) {
        for sender in 0..SENDERS.len() {
            let ratio = ratio(&measured, sender, case);
            findings.claim(
                format!(
                    "goodput into ours over that into Linux, {}, {loss} % lost",
                    measured.sender_name(sender)
                ),
                format!("above {FLOOR}"),
                theory::show(&ratio, 1.0, 3),
                measured.unless_late(&[sender], case, || {
                    measured.unless_late(&[sender], case + 1, || {
                        theory::above(&ratio, FLOOR, || super::UNKNOWN.to_owned())
                    })
                }),
            );
        }
    }
    findings.notes.push(note(run, Ground::Real, times));
    findings
        .notes
        .push("Our receiver runs the candidate, which sends nothing but ACKs.".to_owned());
    Ok(findings)
}

/// Of our receiver over Linux', whose case stands before ours.
fn ratio(measured: &Measured, sender: usize, case: usize) -> Interval {
    let goodput = |case| measured.values(sender, case, Done::goodput);
    theory::paired(&goodput(case + 1), &goodput(case))
}

/// Adds the table and the pictures: the goodput into each receiver, and the ratio.
fn show(findings: &mut Findings, measured: &Measured, losses: &[f64]) {
    let names = losses.iter().map(|loss| format!("{loss} %"));
    let columns = std::iter::once("sender, Mbit/s".to_owned()).chain(names);
    let mut table = Table::of(columns.collect());
    let (mut series, mut ratios) = (Vec::new(), Vec::new());
    let cases = || losses.iter().zip((0..).step_by(2));
    for sender in 0..SENDERS.len() {
        let name = measured.sender_name(sender);
        for (receiver, into) in ["Linux", "ours"].into_iter().enumerate() {
            let goodput = |case: usize| {
                Interval::of(&measured.values(sender, case + receiver, Done::goodput))
            };
            let cells = cases().map(|(_, case)| theory::show(&goodput(case), 1e-6, 2));
            let row = format!("{name} into {into}");
            table.add(std::iter::once(row.clone()).chain(cells).collect());
            let points = cases()
                .map(|(loss, case)| draw::interval(loss.max(ZERO), &goodput(case), 1e-6))
                .collect();
            series.push(draw::series(row, Style::LineAndMarks, points));
        }
        let ratio = |case| ratio(measured, sender, case);
        let cells = cases().map(|(_, case)| theory::show(&ratio(case), 1.0, 3));
        table.add(std::iter::once(format!("{name}: ours / Linux")).chain(cells).collect());
        let points =
            cases().map(|(loss, case)| draw::interval(loss.max(ZERO), &ratio(case), 1.0)).collect();
        ratios.push(draw::series(name, Style::LineAndMarks, points));
    }
    findings.table = table;
    let x = || draw::log(&format!("loss, % ({ZERO} stands for 0)"));
    let title = "Linux' senders into our receiver and into Linux', 100 Mbit/s, 20 ms".to_owned();
    let figure = Figure { title, x: x(), y: draw::log("Mbit/s"), series };
    findings.picture("receiver", figure);
    let title = "Goodput into our receiver over that into Linux'".to_owned();
    let figure = Figure { title, x: x(), y: draw::linear("ratio, 95 %"), series: ratios };
    findings.picture("ratio", figure);
}
