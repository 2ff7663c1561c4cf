//! Table 20 with real packets, to Linux' receiver, and Linux' senders beside ours.

use airtcp_recovery::Profile;
use airtcp_sim::Interval;
use serde::Serialize;

use super::transfer::{self, BACK, Outcome, POINTS, Sender};
use crate::real::{Course, Tcp};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, feed};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/table20-real",
    what: "dcr/table20 with real packets to Linux' receiver; Linux' reno and cubic beside ours",
    source: "DCR 6, Fig. 20 (\"Table 20\")",
    kind: Kind::Study,
    ground: Ground::Real,
    seconds: 2_900,
    seeds: 3,
    body,
};

/// A link later than the least deviation, for more than one packet in a hundred, is another link. In seconds.
const LATE: f64 = 0.001;

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    sender: &'a str,
    /// ms.
    deviation: u32,
    /// bit/s.
    goodput: f64,
    /// Per cent.
    disordered: f64,
    dropped: u64,
    /// Seconds that 99 % of the packets were not exceeding.
    lateness: f64,
}

fn senders() -> [(&'static str, Tcp); 8] {
    let ours =
        |text: &str, profile| Tcp::Ours(text.parse().expect("a name of the registry"), profile);
    [
        ("Linux reno", Tcp::Kernel(Some("reno"))),
        ("Linux cubic", Tcp::Kernel(Some("cubic"))),
        ("sack/reno, paper", ours("sack/reno", Profile::paper())),
        ("sack/reno/dcr:count, paper", ours("sack/reno/dcr:count", Profile::paper())),
        ("sack/reno, modern", ours("sack/reno", Profile::modern())),
        ("sack/reno/dcr:count, modern", ours("sack/reno/dcr:count", Profile::modern())),
        ("sack/reno/dcr:timer, modern", ours("sack/reno/dcr:timer", Profile::modern())),
        ("rack/reno, modern", ours("rack/reno", Profile::modern())),
    ]
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let (mut done, mut records) = (Vec::new(), Vec::new());
    for (name, tcp) in senders() {
        let mut outcomes = Vec::new();
        // A small form only has the first.
        for (deviation, ..) in POINTS.into_iter().take(if run.is_small { 1 } else { POINTS.len() })
        {
            let runs = runs(run, name, &tcp, deviation)?;
            let of = |value: fn(&Record<'_>) -> f64| {
                Interval::of(&runs.iter().map(value).collect::<Vec<_>>())
            };
            let late = of(|r| r.lateness).mean;
            let unfit = (late > LATE).then(|| {
                format!("the link was {:.1} ms late: run it on an idle machine", late * 1e3)
            });
            let (goodput, disordered) = (of(|r| r.goodput), of(|r| r.disordered));
            outcomes.push(Outcome { goodput, disordered, unfit });
            records.extend(runs);
        }
        let combination = name.split(',').next().unwrap_or(name).to_owned();
        done.push(Sender { name: name.to_owned(), combination, outcomes });
    }
    let keep = |findings: &mut Findings| records.iter().try_for_each(|r| findings.record(r));
    transfer::findings(
        done,
        keep,
        "table20-real",
        "hypothesis: more packets are late by more than a smoothed round trip",
    )
}

fn runs<'a>(
    run: &Run,
    sender: &'a str,
    tcp: &Tcp,
    deviation: u32,
) -> Result<Vec<Record<'a>>, LabError> {
    let end = transfer::time(run);
    let mut records = Vec::new();
    for seed in 1..=run.seeds {
        let course = Course {
            sender: tcp.clone(),
            receiver: Tcp::Kernel(None),
            beside: None,
            forth: feed::spec(&format!("{} seed {seed}", transfer::forth(deviation)))?,
            back: feed::spec(BACK)?,
            warm_up: std::time::Duration::ZERO,
            end,
        };
        let done = course.run()?;
        let share = done.link.reordered as f64 / done.link.forwarded.max(1) as f64;
        records.push(Record {
            seed,
            sender,
            deviation,
            goodput: done.goodput,
            disordered: share * 100.0,
            dropped: done.link.queue_dropped,
            lateness: done.lateness,
        });
    }
    Ok(records)
}
