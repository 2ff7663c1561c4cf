//! Measures goodput over random loss.

use super::{Case, Measured, REAL, Shown, View, course, lossy, note, senders, simulated, window};
use crate::prelude::*;
use crate::real::{Done, Flow};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/goodput",
    what: "Goodput under random loss of 0 to 10 %, with Linux senders, 100 Mbit/s",
    source: "our own bounds: the goodput of Linux bbr up to 2 % loss, the payload limit above",
    seconds: 9_200,
    body,
    ..REAL
};

pub(crate) const SIMULATED: Experiment = Experiment {
    name: "senders/goodput-sim",
    what: "senders/goodput in the simulator",
    seconds: 100,
    ..simulated(EXPERIMENT)
};

/// The per cent of data packets lost, and the floor of the goodput.
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

#[derive(Clone, Copy)]
enum Floor {
    /// A fraction of the goodput of Linux' bbr.
    OfBbr(f64),
    /// A fraction of the payload that the link delivers.
    OfLimit(f64),
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("sender");
    let times = window(run, 10);
    // A small run has one case of each kind of floor.
    let losses = if run.is_small { vec![LOSSES[0], LOSSES[4]] } else { LOSSES.to_vec() };
    let cases = losses.iter().map(|(loss, _)| {
        let loss = *loss;
        Case::new(format!("{loss} %"), move |tcp, seed| {
            course(vec![Flow::new(tcp.clone())], &lossy(1.0, loss, seed), times)
        })
    });
    let cases = cases.collect();
    let measured = Measured::new(&mut findings, run, senders(run)?, cases)?;
    let shown = Shown {
        name: "goodput",
        title: "Goodput over random loss, 100 Mbit/s, 20 ms",
        view: View::Lines {
            x: draw::losses(),
            y: draw::goodput(),
            at: losses.iter().map(|(loss, _)| loss.max(draw::ZERO)).collect(),
        },
        unit: "Mbit/s",
        decimals: 2,
        is_by_case: false,
    };
    measured.show(&mut findings, shown, |sender, case| {
        theory::scaled(&measured.mean(sender, case, Done::goodput), 1e-6)
    });
    for (case, (loss, floor)) in losses.into_iter().enumerate() {
        claim(&mut findings, &measured, case, loss, floor);
    }
    findings.note(note(run, times));
    Ok(findings)
}

fn claim(findings: &mut Findings, measured: &Measured, case: usize, loss: f64, floor: Floor) {
    let Some(bbr) = measured.kernel("bbr") else { return };
    let own = measured.values(0, case, Done::goodput);
    let (of, floor, ratio, runs) = match floor {
        Floor::OfBbr(floor) => {
            let name = format!("that of {}", measured.sender_name(bbr));
            let other = measured.values(bbr, case, Done::goodput);
            (name, floor, theory::paired(&own, &other), vec![(0, case), (bbr, case)])
        }
        Floor::OfLimit(floor) => {
            let limit = LIMIT * (1.0 - loss / 100.0);
            let ratio = theory::scaled(&Interval::of(&own), 1.0 / limit);
            ("the payload limit".to_owned(), floor, ratio, vec![(0, case)])
        }
    };
    let what = format!("goodput over {of}, {loss} % lost");
    let (claimed, bound) = (format!("above {floor}"), (Bound::Above(floor), theory::unknown));
    measured.claim(findings, &runs, what, claimed, (&ratio, 3), bound);
}
