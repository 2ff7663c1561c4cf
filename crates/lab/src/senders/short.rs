//! Measures short transfers over slow links.

use airtcp_link::named;

use super::measured::first;
use super::{Case, Measured, REAL, Shown, View, all_senders, note, simulated, why};
use crate::prelude::*;
use crate::real::{Course, Done, Flow, Tcp};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/short",
    what: "Time for 100 kB over slow-4g, weak-4g, edge and geo-satellite",
    source: "our own bound: 1.05 times the time of the fastest sender on the link",
    seconds: 950,
    seeds: 10,
    body,
    ..REAL
};

pub(crate) const SIMULATED: Experiment = Experiment {
    name: "senders/short-sim",
    what: "senders/short in the simulator",
    seconds: 5,
    seeds: 30,
    ..simulated(EXPERIMENT)
};

const LINKS: [&str; 4] = ["slow-4g", "weak-4g", "edge", "geo-satellite"];
const SIZE: ByteCount = ByteCount(100_000);
/// The link on which pacing may cause the default candidate's deficit.
const FAR: &str = LINKS[3];
const PACED: &str = "guess: pacing, which the fastest does without";
/// The maximum time as a multiple of the fastest sender's.
const MOST: f64 = 1.05;
/// The time that counts for a transfer that did not finish.
const END: Duration = Duration::from_secs(60);

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("sender");
    let links = if run.is_small { &LINKS[..1] } else { &LINKS[..] };
    let cases = links.iter().filter_map(|name| {
        let link = named::find(name)?;
        Some(Case::new(*name, move |tcp, seed| {
            let [forth, back] = [link.down, link.up].map(|way| format!("{way} seed {seed}"));
            let flow = Flow { size: Some(SIZE), ..Flow::new(tcp.clone()) };
            Ok(Course {
                flows: vec![flow],
                receiver: Tcp::Kernel(None),
                forth: feed::spec(&forth)?,
                back: feed::spec(&back)?,
                warm_up: Duration::ZERO,
                end: END,
            })
        }))
    });
    let cases = cases.collect();
    let senders = all_senders(run)?;
    let count = senders.len();
    let measured = Measured::new(&mut findings, run, senders, cases)?;
    let figure = |sender, case| measured.mean(sender, case, time);
    let shown = Shown {
        name: "short",
        title: "Time for 100 kB",
        view: View::Rows(draw::column(draw::log("time for 100 kB, s"), draw::LESS)),
        unit: "seconds",
        decimals: 2,
        is_by_case: false,
    };
    measured.show(&mut findings, shown, figure);
    for (case, name) in measured.case_names() {
        let mean = |sender: &usize| figure(*sender, case).mean;
        let best = (0..count).min_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or(0);
        let values = |sender| measured.values(sender, case, time);
        let ratio = theory::paired(&values(0), &values(best));
        findings.claim(
            format!("time for 100 kB over {name}: {} over the quickest", measured.sender_name(0)),
            format!("below {MOST}"),
            format!("{} of {}", theory::show(&ratio, 1.0, 3), measured.sender_name(best)),
            measured.unless_late(&[(0, case), (best, case)], || {
                theory::below(&ratio, MOST, || why(run, (name == FAR).then_some(PACED)))
            }),
        );
    }
    findings.note(note(run, (Duration::ZERO, END)));
    findings.note(format!(
        "From the first SYN until the receiver has all data; {} s if the transfer did not finish.",
        END.as_secs()
    ));
    Ok(findings)
}

fn time(done: &Done) -> f64 {
    first(done).finished.unwrap_or(END.as_secs_f64())
}
