//! Compares the simulator with real packets.

use airtcp_link::Counters;

use crate::prelude::*;
use crate::real::{Course, Flow, Tcp, times};
use crate::study::Value;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/packets",
    what: "Goodput in the simulator, against real packets over the same links",
    source: "the same stack over the same link in simulated and in real time: a ratio of 1",
    ground: Ground::Real,
    seconds: 700,
    seeds: 10,
    body,
    ..Experiment::CHECK
};

const COMBINATION: &str = "sack/reno";
/// The link, with a queue of one bandwidth-delay product.
const LINK: &str = "rate 20mbit delay 10ms limit 34";
const BACK: &str = "rate 20mbit delay 10ms limit 1000";

/// The name of a case, and the additional description of the data direction.
const CASES: [(&str, &str); 5] = [
    ("no loss", ""),
    ("loss 0.5 %", "loss 0.5%"),
    ("loss 2 %", "loss 2%"),
    ("reordering", "delayed 2% 5ms 1ms"),
    ("bursts", "burst 0.2% 4"),
];
const WARM_UP: Duration = Duration::from_secs(1);
const END: Duration = Duration::from_secs(6);
/// The range for the interval of the ratio.
const RATIO: (f64, f64) = (0.9, 1.1);
/// The maximum lateness of 99 % of a run's packets, in seconds: a tenth of the round-trip time, and
/// the tolerance of the ratio. A later link does not match its description.
const LATE: f64 = 0.002;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "link | simulator, Mbit/s | receiver | packets, Mbit/s | ratio | late, ms | runs in time",
    );
    let mut simulated = Vec::new();
    for (case, words) in CASES {
        simulated.push(simulate(&mut findings, run, case, words)?);
    }
    let mut series = Vec::new();
    for (receiver, tcp) in [("ours", ours()), ("Linux", Tcp::Kernel(None))] {
        let mut points = Vec::new();
        for (number, ((case, words), simulator)) in (1u32..).zip(CASES.iter().zip(&simulated)) {
            let runs = transfer(&mut findings, run, case, words, receiver, &tcp)?;
            // Runs are chosen by the link's lateness, not by their goodput.
            let lateness = |one: &Fields| one.number("lateness").unwrap_or_default();
            let is_in_time = |one: &&Fields| lateness(one) <= LATE;
            let in_time = runs.iter().filter(is_in_time).count();
            let is_measured = in_time * 2 > runs.len();
            let counted = runs.iter().filter(|one| !is_measured || is_in_time(one));
            let goodputs: Vec<_> = counted.filter_map(|one| one.number("goodput")).collect();
            let packets = Interval::of(&goodputs);
            let ratio = theory::ratio(&packets, simulator);
            let late = median(runs.iter().map(lateness).collect()) * 1e3;
            findings.table.row([
                (*case).to_owned(),
                theory::show(simulator, 1e-6, 3),
                receiver.to_owned(),
                theory::show(&packets, 1e-6, 3),
                theory::show(&ratio, 1.0, 3),
                format!("{late:.2}"),
                format!("{} of {}", in_time, runs.len()),
            ]);
            let verdict = if is_measured {
                agreement(&ratio)
            } else {
                Verdict::NotComparable(format!(
                    "the link was on time in only {} of {} runs: use an idle machine",
                    in_time,
                    runs.len()
                ))
            };
            let what = format!("packets over simulator, {case}, receiver {receiver}");
            findings.claim(what, "0.9 to 1.1", theory::show(&ratio, 1.0, 3), verdict);
            points.push(draw::interval(f64::from(number), &ratio, 1.0));
        }
        series.push(draw::series(format!("receiver {receiver}"), Style::Marks, points));
    }
    findings.note(format!(
        "Late is the 99th percentile of the lateness of a run's packets against the link's schedule, the median over the \
         runs. A run is on time up to {} ms, a tenth of the RTT; late runs are recorded, but count only if at most \
         half of the runs are on time.",
        LATE * 1e3
    ));
    let names: Vec<_> = CASES.iter().zip(1..).map(|((name, _), n)| format!("{n} {name}")).collect();
    let title = "Goodput of real packets over the simulator's";
    findings.plot(
        "packets",
        title,
        (draw::linear(&names.join(", ")), draw::linear("ratio, 95 %")),
        series,
    );
    Ok(findings)
}

fn agreement(ratio: &Interval) -> Verdict {
    theory::within(ratio, RATIO, || {
        format!(
            "real packets get {:+.1} %, over a link that was on time",
            (ratio.mean - 1.0) * 100.0
        )
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the simulator's goodput in a case, in bit/s.
fn simulate(
    findings: &mut Findings,
    run: &Run,
    case: &str,
    words: &str,
) -> Result<Interval, LabError> {
    let scenario = scenario(run, words)?;
    let place = fields! { case, ground: "simulator" };
    let sample = findings.measure(run, &place, |seed| {
        let result = simulate::once(scenario.clone(), seed)?;
        let sum = |of: fn(&Counters) -> u64| {
            let forth = result.links.iter().filter(|link| link.way == "forth");
            forth.map(|link| of(&link.counters)).sum::<u64>()
        };
        Ok(fields! {
            goodput: result.flows[0].goodput,
            lost: sum(|c| c.channel_lost),
            queue_dropped: sum(|c| c.queue_dropped),
            reordered: sum(|c| c.reordered),
            lateness: Value::Missing,
        })
    })?;
    Ok(sample.mean("goodput"))
}

/// Runs a case with real packets.
fn transfer(
    findings: &mut Findings,
    run: &Run,
    case: &str,
    words: &str,
    receiver: &str,
    tcp: &Tcp,
) -> Result<Vec<Fields>, LabError> {
    let (warm_up, end) = times(run, WARM_UP, END);
    let mut runs = Vec::new();
    for seed in 1..=run.seeds {
        let course = Course {
            flows: vec![Flow::new(ours())],
            receiver: tcp.clone(),
            forth: feed::spec(&format!("{LINK} {words} seed {seed}"))?,
            back: feed::spec(BACK)?,
            warm_up,
            end,
        };
        let place = fields! { case, ground: receiver };
        let one = || {
            let done = course.run(run)?;
            Ok(vec![fields! {
                goodput: done.goodput(),
                lost: done.link.channel_lost,
                queue_dropped: done.link.queue_dropped,
                reordered: done.link.reordered,
                lateness: done.lateness,
            }])
        };
        runs.extend(findings.sample(run, seed..=seed, &place, one)?.0);
    }
    Ok(runs)
}

fn ours() -> Tcp {
    Tcp::Ours(combination(), Profile::modern())
}

fn combination() -> airtcp_recovery::Combination {
    COMBINATION.parse().expect("a name of the registry")
}

fn scenario(run: &Run, words: &str) -> Result<Scenario, LabError> {
    let wire = Wire { forth: feed::spec(&format!("{LINK} {words}"))?, back: feed::spec(BACK)? };
    let (warm_up, duration) = times(run, WARM_UP, END);
    Ok(Scenario {
        warm_up,
        duration,
        flows: vec![FlowSpec::new(combination().into())],
        ..Scenario::new("packets", Topology::Chain { wires: vec![wire] })
    })
}
