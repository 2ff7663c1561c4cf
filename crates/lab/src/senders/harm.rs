//! Measures the goodput of a kernel flow beside each sender.

use super::{Case, Measured, REAL, Shown, View, course, lossy, note, senders, simulated, window};
use crate::prelude::*;
use crate::real::{Done, Flow, Tcp};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/harm",
    what: "Goodput that each sender leaves to a Linux cubic or reno flow",
    source: "our own bounds: 0.4 of the goodput beside a flow of its own kind; at 0.5 BDP at least that beside Linux bbr",
    seconds: 18_400,
    body,
    ..REAL
};

pub(crate) const SIMULATED: Experiment = Experiment {
    name: "senders/harm-sim",
    what: "senders/harm in the simulator",
    seconds: 195,
    ..simulated(EXPERIMENT)
};

const VICTIMS: [&str; 2] = ["cubic", "reno"];
/// The queues, in bandwidth-delay products.
const QUEUES: [f64; 3] = [0.5, 1.0, 4.0];
/// The per cent of data packets lost.
const LOSSES: [f64; 2] = [0.0, 1.0];
/// The minimum goodput of the kernel flow, as a fraction of its goodput beside a flow of its own
/// kind.
const FLOOR: f64 = 0.4;
/// The queue at which the floor is the goodput beside Linux' bbr.
const SHALLOW: f64 = 0.5;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("sender");
    let times = window(run, 10);
    let mut points = Vec::new();
    for victim in VICTIMS {
        for loss in LOSSES {
            points.extend(QUEUES.map(|queue| (victim, loss, queue)));
        }
    }
    // A small run has two queues.
    points.truncate(if run.is_small { 2 } else { points.len() });
    let cases = points.iter().map(|&(victim, loss, queue)| {
        let name = format!("{victim}, {loss} %, {queue} BDP");
        Case::new(name, move |tcp, seed| {
            let forth = lossy(queue, loss, seed);
            let flows = vec![Flow::new(tcp.clone()), Flow::new(Tcp::Kernel(Some(victim)))];
            course(super::staggered(flows, seed), &forth, times)
        })
    });
    let cases = cases.collect();
    let measured = Measured::new(&mut findings, run, senders(run)?, cases)?;
    let left = |sender, case| measured.values(sender, case, left);
    let share = |sender, case: usize| {
        let own = measured.kernel(points[case].0).map(|own| left(own, case));
        own.map_or(Interval::default(), |own| theory::paired(&left(sender, case), &own))
    };
    let shown = Shown {
        name: "harm",
        title: "Goodput of a flow beside each sender over that beside its own kind",
        view: View::Rows(draw::column(
            draw::linear("goodput of the cubic or reno flow, relative to that beside its own kind"),
            draw::MORE,
        )),
        unit: "ratio",
        decimals: 2,
        is_by_case: true,
    };
    measured.show(&mut findings, shown, share);
    for (case, name) in measured.case_names() {
        let (victim, _, queue) = points[case];
        let Some((bbr, own)) = measured.kernel("bbr").zip(measured.kernel(victim)) else {
            continue;
        };
        let (claimed, floor, ratio, other) = if queue == SHALLOW {
            let ratio = theory::paired(&left(0, case), &left(bbr, case));
            (format!("no less than beside {}", measured.sender_name(bbr)), 1.0, ratio, bbr)
        } else {
            (format!("above {FLOOR} of that beside its own kind"), FLOOR, share(0, case), own)
        };
        let what = format!("goodput beside {}: {name}", measured.sender_name(0));
        let runs = [(0, case), (other, case)];
        let bound = (Bound::Above(floor), theory::unknown);
        measured.claim(&mut findings, &runs, what, claimed, (&ratio, 2), bound);
    }
    findings.note(note(run, times));
    findings.note(
        "Both flows begin at random within the first second. At a ratio of 1 the sender does no more \
         harm than a second flow of the same kind.",
    );
    Ok(findings)
}

/// Returns the goodput of the kernel flow.
fn left(done: &Done) -> f64 {
    done.flows.get(1).map_or(0.0, |flow| flow.goodput)
}
