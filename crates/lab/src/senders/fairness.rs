//! Measures fairness between flows of one sender that share a bottleneck.

use airtcp_sim::jain;
use airtcp_trace::figure::Column;

use super::{
    Case, Measured, REAL, Shown, View, course, note, senders, simulated, staggered, window, words,
};
use crate::prelude::*;
use crate::real::{Done, Flow};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/fairness",
    what: "Jain's index of 2 and 6 flows of a sender, and of RTTs 10 and 100 ms",
    source: "our own bound: Jain's index above 0.95",
    seconds: 4_700,
    body,
    ..REAL
};

pub(crate) const SIMULATED: Experiment = Experiment {
    name: "senders/fairness-sim",
    what: "senders/fairness in the simulator",
    seconds: 50,
    ..simulated(EXPERIMENT)
};

const COUNTS: [usize; 2] = [2, 6];
const FLOOR: f64 = 0.95;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("sender");
    let times = window(run, 20);
    let mut cases: Vec<_> = COUNTS
        .into_iter()
        .map(|count| {
            Case::new(format!("Jain, {count} flows"), move |tcp, seed| {
                let flows = staggered(vec![Flow::new(tcp.clone()); count], seed);
                course(flows, &format!("{} seed {seed}", words(100.0, 20.0, 1.0)), times)
            })
        })
        .collect();
    cases.push(Case::new("100 ms / 10 ms", move |tcp, seed| {
        let long = Flow { delay: Duration::from_millis(90), ..Flow::new(tcp.clone()) };
        let flows = staggered(vec![Flow::new(tcp.clone()), long], seed);
        // The queue holds one BDP of the longer path.
        let link = format!("rate 100mbit delay 5ms limit {}", super::packets(100.0, 100.0, 1.0));
        let mut course = course(flows, &format!("{link} seed {seed}"), times)?;
        course.back.delay.base = Duration::from_millis(5);
        Ok(course)
    }));
    let measured = Measured::new(&mut findings, run, senders(run)?, cases)?;
    let figure = |sender, case: usize| {
        let value = if case < COUNTS.len() { index } else { ratio };
        measured.mean(sender, case, value)
    };
    let shown = Shown {
        name: "fairness",
        title: "How flows of one sender share 100 Mbit/s",
        view: View::Columns(columns()),
        unit: "figure of the case",
        decimals: 3,
        is_by_case: false,
    };
    measured.show(&mut findings, shown, figure);
    for (case, name) in measured.case_names().take(COUNTS.len()) {
        let index = figure(0, case);
        let what = format!("{name} of {}", measured.sender_name(0));
        let (claimed, bound) = (format!("above {FLOOR}"), (Bound::Above(FLOOR), theory::unknown));
        measured.claim(&mut findings, &[(0, case)], what, claimed, (&index, 3), bound);
    }
    findings.note(note(run, times));
    findings.note(
        "Flows begin at random within the first second. The last column is the goodput of a flow \
         with a base RTT of 100 ms over that of one with 10 ms; nothing is claimed of it.",
    );
    Ok(findings)
}

fn columns() -> Vec<Column> {
    let jain = |count| draw::linear(&format!("Jain's index of {count} flows"));
    let mut columns = COUNTS.map(|count| draw::column(jain(count), draw::MORE)).to_vec();
    let label = "goodput of a flow with 100 ms, relative to one with 10 ms";
    columns.push(draw::column(draw::log(label), "at 1 both have the same"));
    columns
}

fn index(done: &Done) -> f64 {
    jain(&done.flows.iter().map(|flow| flow.goodput).collect::<Vec<_>>())
}

fn ratio(done: &Done) -> f64 {
    let long = done.flows.get(1).map_or(0.0, |flow| flow.goodput);
    // Avoids a division by zero.
    long / done.goodput().max(1.0)
}
