//! Goodput over random loss.

use airtcp_sim::Interval;

use super::{Case, Measured, Shown, course, note, senders, window, words};
use crate::real::{Done, Flow};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, draw, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/goodput",
    what: "Goodput under random loss of 0 to 10 %, with Linux senders, 100 Mbit/s",
    source: "our own bounds: the goodput of Linux bbr up to 2 % loss, the payload limit above",
    kind: Kind::Candidate,
    ground: Ground::Real,
    seconds: 9_200,
    seeds: super::SEEDS[0],
    body: |run| body(run, Ground::Real),
};

pub(crate) const SIMULATED: Experiment = Experiment {
    name: "senders/goodput-sim",
    what: "senders/goodput in the simulator",
    ground: Ground::Simulated,
    seconds: 100,
    seeds: super::SEEDS[1],
    body: |run| body(run, Ground::Simulated),
    ..EXPERIMENT
};

/// Per cent of data packets, and the floor.
const LOSSES: [(f64, Floor); 6] = [
    (0.0, Floor::OfBbr(0.97)),
    (0.1, Floor::OfBbr(0.97)),
    (1.0, Floor::OfBbr(0.98)),
    (2.0, Floor::OfBbr(0.98)),
    (5.0, Floor::OfLimit(0.94)),
    (10.0, Floor::OfLimit(0.93)),
];
/// The payload that the link carries, in bit/s: segments of 1448 bytes in packets of 1500.
const LIMIT: f64 = 100e6 * 1448.0 / 1500.0;
/// Where logarithmic axes have no zero, it is drawn here.
pub(super) const ZERO: f64 = 0.05;

#[derive(Clone, Copy)]
enum Floor {
    /// Of the goodput of Linux' bbr.
    OfBbr(f64),
    /// Of the payload that the link delivers.
    OfLimit(f64),
}

fn body(run: &Run, ground: Ground) -> Result<Findings, LabError> {
    let mut findings = Findings::new(["sender"]);
    let times = window(run, 10);
    // A small form has one of each floor.
    let losses = if run.is_small { vec![LOSSES[0], LOSSES[4]] } else { LOSSES.to_vec() };
    let cases = losses.iter().map(|(loss, _)| {
        let loss = *loss;
        Case::new(format!("{loss} %"), loss.max(ZERO), move |tcp, seed| {
            let forth =
                format!("{} loss {loss}% only payload seed {seed}", words(100.0, 20.0, 1.0));
            course(vec![Flow::new(tcp.clone())], &forth, times)
        })
    });
    let cases = cases.collect();
    let measured = Measured::new(&mut findings, run, ground, senders(run, ground)?, cases)?;
    let shown = Shown {
        name: "goodput",
        title: "Goodput over random loss, 100 Mbit/s, 20 ms",
        x: draw::log(&format!("loss, % ({ZERO} stands for 0)")),
        y: draw::log("Mbit/s"),
        decimals: 2,
        is_by_case: false,
    };
    measured.show(&mut findings, shown, |sender, case| {
        theory::scaled(&Interval::of(&measured.values(sender, case, Done::goodput)), 1e-6)
    });
    for (case, (loss, floor)) in losses.into_iter().enumerate() {
        claim(&mut findings, &measured, case, loss, floor);
    }
    findings.notes.push(note(run, ground, times));
    Ok(findings)
}

fn claim(findings: &mut Findings, measured: &Measured, case: usize, loss: f64, floor: Floor) {
    let Some(bbr) = measured.kernel("bbr") else { return };
    let own = measured.values(0, case, Done::goodput);
    let (of, floor, ratio, senders) = match floor {
        Floor::OfBbr(floor) => {
            let name = format!("that of {}", measured.sender_name(bbr));
            let other = measured.values(bbr, case, Done::goodput);
            (name, floor, theory::paired(&own, &other), vec![0, bbr])
        }
        Floor::OfLimit(floor) => {
            let limit = LIMIT * (1.0 - loss / 100.0);
            let ratio = theory::scaled(&Interval::of(&own), 1.0 / limit);
            ("the payload limit".to_owned(), floor, ratio, vec![0])
        }
    };
    findings.claim(
        format!("goodput over {of}, {loss} % lost"),
        format!("above {floor}"),
        theory::show(&ratio, 1.0, 3),
        measured.unless_late(&senders, case, || {
            theory::above(&ratio, floor, || super::UNKNOWN.to_owned())
        }),
    );
}
