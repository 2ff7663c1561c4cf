//! Measures goodput over bursts, named links, RTTs, queues and jitter.

use airtcp_link::named;
use airtcp_types::Instant;

use super::{
    BEST_BEFORE, Case, Measured, REAL, Shown, View, all_senders, back, note, packets, simulated,
    window, words,
};
use crate::prelude::*;
use crate::real::{Course, Done, Flow, Tcp};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/links",
    what: "Goodput by burst loss, named link, RTT, queue size and reordering",
    source: "our own bounds: 0.95 of the better of Linux bbr and our former best sender; 0.9 of the goodput at constant delay",
    seconds: 77_000,
    body,
    ..REAL
};

pub(crate) const SIMULATED: Experiment = Experiment {
    name: "senders/links-sim",
    what: "senders/links in the simulator",
    seconds: 365,
    ..simulated(EXPERIMENT)
};

/// The minimum goodput as a fraction of the better of Linux' bbr and [`BEST_BEFORE`].
const FLOOR: f64 = 0.95;
/// The minimum goodput as a fraction of the goodput over a link of constant delay.
const JITTER_FLOOR: f64 = 0.9;
/// Random loss of data packets only.
const RANDOM: &str = "loss 1% only payload";
/// The number of packets that measure the mean delay of a jittered link.
const PROBES: u64 = 20_000;

/// A name, the link description of the data direction, and that of the ACK direction.
struct Path {
    name: String,
    forth: String,
    back: String,
}

impl Path {
    fn new(name: impl Into<String>, forth: String, rtt: f64) -> Self {
        Self { name: name.into(), forth, back: back(rtt) }
    }
}

/// The name and the description of a jittered delay of 50 ms, on a link of 20 Mbit/s.
const JITTER: [(&str, &str); 2] = [
    ("jitter in order", "50ms 20ms distribution normal inorder"),
    ("reordering", "50ms 5ms distribution normal"),
];
const JITTER_RATE: f64 = 20.0;
const JITTER_RTT: f64 = 100.0;
/// The name and the description of a delay with jitter that keeps the order, and of random loss.
const LOSSY_JITTER: [(&str, &str); 2] = [
    ("2 % lost, jitter of 10 ms", "50ms 10ms inorder loss 2% only payload"),
    ("10 % lost, jitter of 25 ms", "50ms 25ms inorder loss 10% only payload"),
];

/// Returns all paths except the pairs of a jittered and a constant delay.
fn paths() -> Vec<Path> {
    let bursts = [("bursts 1 %", "0.2% 20%"), ("bursts 5 %", "1% 20%")].map(|(name, chain)| {
        let forth = format!("{} loss gemodel {chain} only payload", words(100.0, 20.0, 1.0));
        Path::new(name, forth, 20.0)
    });
    let named = named::LINKS.iter().map(|link| Path {
        name: link.name.to_owned(),
        forth: link.down.to_owned(),
        back: link.up.to_owned(),
    });
    let rtts = [1.0, 10.0, 50.0, 100.0, 300.0, 600.0].map(|rtt| {
        // On a short path, a BDP is less than a burst of any sender.
        let limit = packets(20.0, rtt, 1.0).max(20);
        let forth = format!("rate 20mbit delay {}ms limit {limit} {RANDOM}", rtt / 2.0);
        Path::new(format!("{rtt} ms"), forth, rtt)
    });
    let queues = [0.25, 0.5, 2.0, 8.0].map(|queue| {
        let forth = format!("{} {RANDOM}", words(100.0, 20.0, queue));
        Path::new(format!("{queue} BDP"), forth, 20.0)
    });
    let lossy_jitter =
        LOSSY_JITTER.map(|(name, delay)| Path::new(name, jitter_link(delay), JITTER_RTT));
    bursts.into_iter().chain(named).chain(rtts).chain(queues).chain(lossy_jitter).collect()
}

/// Returns a jittered link, and one with the mean of its delays.
fn jittered(name: &str, delay: &str) -> Result<[Path; 2], LabError> {
    let constant = jitter_link(&format!("{}us", mean_delay(delay)?.as_micros()));
    Ok([
        Path::new(name, jitter_link(delay), JITTER_RTT),
        Path::new(format!("{name}, constant"), constant, JITTER_RTT),
    ])
}

fn jitter_link(delay: &str) -> String {
    let limit = packets(JITTER_RATE, JITTER_RTT, 1.0);
    format!("rate {JITTER_RATE}mbit limit {limit} delay {delay}")
}

/// Returns the mean delay of packets that are sent at the rate of the jittered links.
fn mean_delay(delay: &str) -> Result<Duration, LabError> {
    let mut link = feed::link(&format!("delay {delay}"))?;
    let gap = Duration::from_secs_f64(12_000.0 / (JITTER_RATE * 1e6));
    let sent = |number: u64| Instant::ZERO + gap * number as u32;
    let packets = (0..PROBES).map(|number| (sent(number), feed::numbered(number, 1_500)));
    let mut sum = Duration::ZERO;
    feed::send(&mut link, packets, |now, packet| sum += now.since(sent(feed::number_of(packet))));
    Ok(sum / PROBES as u32)
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("case");
    let times = window(run, 10);
    // A small run has one link.
    let mut paths = paths();
    paths.truncate(if run.is_small { 1 } else { paths.len() });
    let common = paths.len();
    if !run.is_small {
        for (name, delay) in JITTER {
            paths.extend(jittered(name, delay)?);
        }
    }
    let cases = paths.into_iter().map(|path| {
        Case::new(path.name.clone(), move |tcp, seed| {
            let [forth, back] = [&path.forth, &path.back].map(|way| format!("{way} seed {seed}"));
            Ok(Course {
                flows: vec![Flow::new(tcp.clone())],
                receiver: Tcp::Kernel(None),
                forth: feed::spec(&forth)?,
                back: feed::spec(&back)?,
                warm_up: times.0,
                end: times.1,
            })
        })
    });
    let cases = cases.collect();
    let measured = Measured::new(&mut findings, run, all_senders(run)?, cases)?;
    let shown = Shown {
        name: "links",
        title: "Goodput over links of many kinds",
        view: View::Rows(draw::column(draw::log("goodput, Mbit/s"), draw::MORE)),
        unit: "Mbit/s",
        decimals: 2,
        is_by_case: true,
    };
    let goodput = |sender, case| measured.values(sender, case, Done::goodput);
    measured.show(&mut findings, shown, |sender, case| {
        theory::scaled(&Interval::of(&goodput(sender, case)), 1e-6)
    });
    let before = BEST_BEFORE.iter().filter_map(|name| measured.sender(name));
    let others: Vec<_> = before.chain(measured.kernel("bbr")).collect();
    for (case, name) in measured.case_names() {
        let mean = |sender: &usize| Interval::of(&goodput(*sender, case)).mean;
        let best = others.iter().copied().max_by(|a, b| mean(a).total_cmp(&mean(b)));
        let Some(best) = best else { continue };
        let ratio = theory::paired(&goodput(0, case), &goodput(best, case));
        findings.claim(
            format!("goodput over that of the better of Linux' bbr and our best before: {name}"),
            format!("above {FLOOR}"),
            format!("{} of {}", theory::show(&ratio, 1.0, 3), measured.sender_name(best)),
            measured.unless_late(&[(0, case), (best, case)], || {
                theory::above(&ratio, FLOOR, theory::unknown)
            }),
        );
    }
    // Pairs of a jittered link and its constant one.
    let pairs: Vec<_> = measured.case_names().skip(common).map(|(case, _)| case).collect();
    for pair in pairs.chunks_exact(2) {
        let ratio = theory::paired(&goodput(0, pair[0]), &goodput(0, pair[1]));
        let name = measured.case_name(pair[0]);
        let what = format!("goodput over that at the mean delay: {name}");
        let claimed = format!("above {JITTER_FLOOR}");
        let bound = (Bound::Above(JITTER_FLOOR), theory::unknown);
        let runs = [(0, pair[0]), (0, pair[1])];
        measured.claim(&mut findings, &runs, what, claimed, (&ratio, 3), bound);
    }
    findings.note(note(run, times));
    findings.note(
        "Bursts of 5 packets on average and queues: 100 Mbit/s, 20 ms. RTTs: 20 Mbit/s, a queue of one \
         BDP and at least 20 packets. RTTs and queues: 1 % lost at random. Jitter: 20 Mbit/s, 100 ms, \
         in the direction of the data. The \
         constant delay is the mean delay of packets that come to the jittered link at its rate.",
    );
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_a_link() {
        for path in paths() {
            for way in [&path.forth, &path.back] {
                feed::spec(&format!("{way} seed 1")).unwrap();
            }
        }
    }

    #[test]
    fn jitter_that_keeps_the_order_delays_by_more_than_its_mean() {
        let means = JITTER.map(|(_, delay)| mean_delay(delay).unwrap().as_secs_f64());
        assert!(means[0] > 0.07, "{means:?}");
        assert!((0.0495..0.0505).contains(&means[1]), "{means:?}");
    }
}
