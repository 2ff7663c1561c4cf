//! Measures senders on a link that changes, on one that holds less than a packet, and with late
//! ACKs and late hosts.

use airtcp_sim::jain;
use airtcp_trace::figure::{Axis, Point};

use super::delay::lost;
use super::{Case, Measured, REAL, course, modern, packets, simulated, staggered, window, words};
use crate::prelude::*;
use crate::real::{Course, Done, Flow, FlowDone, Tcp};
use crate::timeline::{BIN, Timeline};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/changes",
    what: "Throughput and RTT over time: rate changes, BDP < 1 packet, ACK bursts",
    source: "our own bounds: 0.95 of the better of rack/bbr3 and rack/cubic; 0.9 of the same link without bursts",
    seconds: 3_700,
    body,
    ..REAL
};

pub(crate) const SIMULATED: Experiment = Experiment {
    name: "senders/changes-sim",
    what: "senders/changes in the simulator, also with hosts that wake 2 ms late",
    source: "our own bounds: 0.95 of the better of rack/bbr3 and rack/cubic; 0.9 of the same link without bursts or late hosts",
    seconds: 40,
    ..simulated(EXPERIMENT)
};

/// The senders that the candidate is compared with.
const BESIDE: [&str; 2] = ["rack/bbr3", "rack/cubic"];
/// The minimum goodput as a fraction of the better one's.
const FLOOR: f64 = 0.95;
/// The minimum goodput as a fraction of the goodput over the plain link.
const PLAIN_FLOOR: f64 = 0.9;
/// The number of rate changes, down to a tenth and up again; a twelfth of a run passes between two.
const CHANGES: u32 = 10;
/// The number of flows that share a BDP of 625 bytes.
const FLOWS: usize = 4;
/// The name of the link whose rate changes.
const CHANGING: &str = "rate changes";
/// The time after an increase of the rate in which a sender may lack data, in seconds.
const SOON: f64 = 1.6;
/// The time by which ACKs are aggregated.
const BURST: Duration = Duration::from_millis(10);
/// The name of the link that other cases are compared with.
const PLAIN: &str = "plain";
/// The wake-up delay of late hosts.
const LATE: Duration = Duration::from_millis(2);

/// A case with the names and the title of its pictures, and the standard of its claim.
struct Situation {
    name: &'static str,
    pictures: [&'static str; 2],
    title: &'static str,
    floor: Floor,
    course: MakeCourse,
}

type MakeCourse = fn(&Tcp, u64, (Duration, Duration)) -> Result<Course, LabError>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Floor {
    /// The better of the senders that the candidate is compared with.
    Best,
    /// The candidate's own goodput over the plain link.
    Plain,
    /// No claim: this is the plain link.
    None,
}

const SITUATIONS: [Situation; 5] = [
    Situation {
        name: PLAIN,
        pictures: ["plain-throughput", "plain-rtt"],
        title: "100 Mbit/s, 20 ms",
        floor: Floor::None,
        course: |tcp, seed, times| plain(Flow::new(tcp.clone()), seed, times),
    },
    Situation {
        name: CHANGING,
        pictures: ["changes-throughput", "changes-rtt"],
        title: "alternating 100 and 10 Mbit/s, 20 ms",
        floor: Floor::Best,
        course: |tcp, seed, times| {
            let flows = staggered(vec![Flow::new(tcp.clone())], seed);
            course(
                flows,
                &format!("{} seed {seed} {}", words(100.0, 20.0, 1.0), changes(times.1)),
                times,
            )
        },
    },
    Situation {
        name: "BDP below a packet",
        pictures: ["tiny-throughput", "tiny-rtt"],
        title: "Four flows, 1 Mbit/s, 5 ms",
        floor: Floor::Best,
        course: |tcp, seed, times| {
            let flows = staggered(vec![Flow::new(tcp.clone()); FLOWS], seed);
            // As in `links`: the BDP is less than a burst of any sender.
            let limit = packets(1.0, 5.0, 1.0).max(20);
            let forth = format!("rate 1mbit delay 2500us limit {limit} seed {seed}");
            let mut course = course(flows, &forth, times)?;
            course.back = feed::spec(&super::back(5.0))?;
            Ok(course)
        },
    },
    Situation {
        name: "ACKs in bursts",
        pictures: ["aggregated-throughput", "aggregated-rtt"],
        title: "100 Mbit/s, 20 ms, ACKs in bursts of 10 ms",
        floor: Floor::Plain,
        course: |tcp, seed, times| {
            let mut course = plain(Flow::new(tcp.clone()), seed, times)?;
            let back = format!("{} aggregate {}ms", super::back(20.0), BURST.as_millis());
            course.back = feed::spec(&back)?;
            Ok(course)
        },
    },
    Situation {
        name: "hosts 2 ms late",
        pictures: ["late-throughput", "late-rtt"],
        title: "100 Mbit/s, 20 ms, hosts that wake 2 ms late",
        floor: Floor::Plain,
        course: |tcp, seed, times| {
            plain(Flow { wake_up_delay: LATE, ..Flow::new(tcp.clone()) }, seed, times)
        },
    },
];

/// Returns the course of one flow over 100 Mbit/s, 20 ms and a queue of one BDP.
fn plain(flow: Flow, seed: u64, times: (Duration, Duration)) -> Result<Course, LabError> {
    course(staggered(vec![flow], seed), &format!("{} seed {seed}", words(100.0, 20.0, 1.0)), times)
}

/// Returns the link description of a rate that changes during a run of this length.
fn changes(end: Duration) -> String {
    let change = |number: u32| {
        let rate = if number % 2 == 1 { 10 } else { 100 };
        format!("at {}us rate {rate}mbit", (end * number / (CHANGES + 2)).as_micros())
    };
    (1..=CHANGES).map(change).collect::<Vec<_>>().join(" ")
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new("case | sender | Mbit/s | RTT, ms | RTT p95, ms | dropped, % | Jain");
    // The records have no timelines.
    run.may_run()?;
    let times = window(run, 10);
    let situations = match run.ground {
        // The kernel has no setting that delays a host's wake-up.
        Ground::Real => &SITUATIONS[..SITUATIONS.len() - 1],
        Ground::Simulated => &SITUATIONS[..],
    };
    let cases = situations.iter().map(|of| {
        let make = of.course;
        Case::new(of.name, move |tcp, seed| make(tcp, seed, times))
    });
    let cases = cases.collect();
    let mut senders = vec![modern(super::candidate(run)?, run)];
    for text in BESIDE {
        let sender = modern(text.parse()?, run);
        if sender.name != senders[0].name {
            senders.push(sender);
        }
    }
    let count = senders.len();
    let measured = Measured::new(&mut findings, run, senders, cases)?;
    for (case, of) in situations.iter().enumerate() {
        for sender in 0..count {
            row(&mut findings, &measured, case, sender, times.0);
        }
        pictures(&mut findings, &measured, case, of, count);
        claim(&mut findings, &measured, case, of.floor, (count, times));
    }
    findings.note(super::counted(run, times));
    findings.note(format!(
        "Goodput is that of all flows together. RTT is the mean over time; its p95 is that of a flow's samples, as the \
         mean over the flows. Flows begin at random within the first second. The rate changes {CHANGES} times, every \
         twelfth of a run. Pictures show the first seed. A point is the mean over {BIN} s; throughput is payload that \
         leaves the link, retransmissions included."
    ));
    Ok(findings)
}

/// Adds a row to the table; RTTs count from `from` on.
fn row(findings: &mut Findings, measured: &Measured, case: usize, sender: usize, from: Duration) {
    let show = |value: &dyn Fn(&Done) -> f64, unit, decimals| {
        theory::show(&measured.mean(sender, case, value), unit, decimals)
    };
    findings.table.row([
        measured.case_name(case).to_owned(),
        measured.sender_name(sender).to_owned(),
        show(&goodput, 1e-6, 3),
        show(&|done| done.timeline.mean_rtt(from), 1.0, 1),
        show(&|done| mean(done, |flow| flow.rtt.p95), 1e3, 1),
        show(&lost, 1.0, 2),
        show(&index, 1.0, 3),
    ]);
}

/// Adds the pictures of a case.
fn pictures(
    findings: &mut Findings,
    measured: &Measured,
    case: usize,
    of: &Situation,
    count: usize,
) {
    type Points = fn(&Timeline) -> Vec<Point>;
    let quantities: [(_, _, Points); 2] = [
        ("Throughput", draw::more("throughput, Mbit/s"), Timeline::throughput),
        ("RTT", draw::less("RTT, ms"), Timeline::rtt),
    ];
    for (picture, (quantity, label, points)) in of.pictures.into_iter().zip(quantities) {
        let series = (0..count).map(|sender| {
            let points = measured.first_run(sender, case).map(|done| points(&done.timeline));
            let name = measured.sender_name(sender);
            draw::series(name, Style::Line, points.unwrap_or_default())
        });
        let series: Vec<_> = series.collect();
        let values = series.iter().flat_map(|series| &series.points).map(|point| point.y);
        let top = values.fold(0.0, f64::max) * 1.05;
        let figure = Figure {
            title: format!("{quantity}: {}", of.title),
            x: draw::linear("time, s"),
            y: Axis { range: (top > 0.0).then_some((0.0, top)), ..draw::linear(&label) },
            series,
        };
        findings.picture(picture, figure);
    }
}

fn claim(
    findings: &mut Findings,
    measured: &Measured,
    case: usize,
    floor: Floor,
    (count, times): (usize, (Duration, Duration)),
) {
    let values = |sender, case| measured.values(sender, case, goodput);
    let mean = |sender: &usize| Interval::of(&values(*sender, case)).mean;
    let best = (1..count).max_by(|a, b| mean(a).total_cmp(&mean(b)));
    let (of, floor, other) = match (floor, best) {
        (Floor::Best, Some(best)) => {
            (format!("that of {}", measured.sender_name(best)), FLOOR, (best, case))
        }
        (Floor::Plain, _) => {
            let Some(plain) = measured.case(PLAIN) else { return };
            ("its own over the plain link".to_owned(), PLAIN_FLOOR, (0, plain))
        }
        (Floor::None, _) | (_, None) => return,
    };
    let ratio = theory::paired(&values(0, case), &values(other.0, other.1));
    let what = format!("goodput over {of}: {}", measured.case_name(case));
    let why = || match measured.case_name(case) {
        CHANGING => slow_increases(measured, [(0, case), other], times),
        _ => theory::unknown(),
    };
    let (of, claimed) = ([(0, case), other], format!("above {floor}"));
    measured.claim(findings, &of, what, claimed, (&ratio, 3), (Bound::Above(floor), why));
}

/// Returns how much of the data that the first sender lacks beside the other one it lacks soon
/// after an increase of the rate, in the first run.
fn slow_increases(
    measured: &Measured,
    of: [(usize, usize); 2],
    (from, end): (Duration, Duration),
) -> String {
    let throughput = |(sender, case): (usize, usize)| {
        let run = measured.first_run(sender, case);
        run.map(|done| done.timeline.throughput()).unwrap_or_default()
    };
    let [own, other] = of.map(throughput);
    let step = end.as_secs_f64() / f64::from(CHANGES + 2);
    let share = share_soon(&own, &other, from.as_secs_f64(), step);
    share.map_or_else(theory::unknown, |share| {
        format!("{share:.2} of the missing data are missing in the {SOON} s after an increase")
    })
}

/// Returns the share of what `own` lacks from `from` on that it lacks soon after an increase. The
/// rate decreases at odd multiples of `step`, and increases at even ones. `None` if most of the
/// time is soon after an increase, or if nothing is lacking.
fn share_soon(own: &[Point], other: &[Point], from: f64, step: f64) -> Option<f64> {
    let (mut all, mut soon) = (0.0, 0.0);
    for (own, other) in own.iter().zip(other).filter(|(own, _)| own.x >= from) {
        all += other.y - own.y;
        soon += if own.x % (2.0 * step) < SOON { other.y - own.y } else { 0.0 };
    }
    (step > SOON && all > 0.0).then(|| soon / all)
}

/// Returns the goodput of all flows together, in bit/s.
fn goodput(done: &Done) -> f64 {
    done.flows.iter().map(|flow| flow.goodput).sum()
}

/// Returns the mean of a figure over the flows.
fn mean(done: &Done, of: impl Fn(&FlowDone) -> f64) -> f64 {
    done.flows.iter().map(of).sum::<f64>() / done.flows.len().max(1) as f64
}

fn index(done: &Done) -> f64 {
    jain(&done.flows.iter().map(|flow| flow.goodput).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_goes_down_and_up_again_within_a_run() {
        let end = Duration::from_secs(60);
        let forth = feed::spec(&format!("rate 100mbit delay 10ms {}", changes(end))).unwrap();
        let times: Vec<_> = forth.changes.iter().map(|change| change.at.as_secs()).collect();
        assert_eq!(times, (1..=10).map(|number| 5 * number).collect::<Vec<_>>());
        assert!(changes(end).ends_with("at 45000000us rate 10mbit at 50000000us rate 100mbit"));
    }

    #[test]
    fn what_is_missing_after_an_increase_is_a_share_of_all_that_is_missing() {
        let points = |values: [f64; 5]| {
            let at = [1.0, 11.0, 14.0, 16.0, 21.0].into_iter().zip(values);
            at.map(|(x, y)| draw::point(x, y)).collect::<Vec<_>>()
        };
        let (own, other) =
            (points([0.0, 70.0, 95.0, 5.0, 40.0]), points([90.0, 90.0, 95.0, 10.0, 95.0]));
        // 20 and 55 of 80 are missing at 11 and 21 s; what is missing before 10 s does not count.
        assert_eq!(share_soon(&own, &other, 10.0, 5.0), Some(75.0 / 80.0));
        assert_eq!(share_soon(&own, &other, 10.0, 1.5), None);
        assert_eq!(share_soon(&own, &own, 10.0, 5.0), None);
    }

    #[test]
    fn a_run_of_a_second_has_all_changes() {
        let forth = format!("rate 100mbit delay 10ms {}", changes(Duration::from_secs(1)));
        assert_eq!(feed::spec(&forth).unwrap().changes.len(), 10);
    }
}
