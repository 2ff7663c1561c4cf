//! Measures the round-trip time of a flow by the jitter of its path.

use super::delay::BASE;
use super::measured::first;
use super::{Case, Measured, REAL, candidate, counted, course, modern, packets, simulated, window};
use crate::prelude::*;
use crate::real::{Done, Flow};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/jitter-sim",
    what: "RTT at a queue of 4 BDP by jitter without reordering, in the simulator",
    source: "our own question: whether jitter alone lengthens the queue of senders/delay",
    seconds: 30,
    body,
    ..simulated(REAL)
};

/// The sender beside the candidate.
const BBR: &str = "rack/bbr";
/// The jitter in ms, uniform in either direction. A late packet delays those behind it.
const JITTERS: [f64; 4] = [0.0, 0.1, 0.2, 0.5];

/// Returns the path of `senders/delay` with a queue of 4 BDP, with this jitter in ms.
fn link(jitter: f64) -> String {
    let queue = packets(100.0, 20.0, 4.0);
    let varies = if jitter > 0.0 { format!(" {}us inorder", jitter * 1e3) } else { String::new() };
    format!("rate 100mbit delay 10ms{varies} limit {queue}")
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "sender | jitter, ms | mean RTT, ms | RTT p95, ms | mean / base | p95 / base | Mbit/s",
    );
    let times = window(run, 10);
    let jitters = run.points(&JITTERS);
    let cases = jitters.iter().map(|jitter| {
        let forth = link(*jitter);
        Case::new(format!("{jitter} ms"), move |tcp, seed| {
            course(vec![Flow::new(tcp.clone())], &format!("{forth} seed {seed}"), times)
        })
    });
    let cases = cases.collect();
    let mut senders = vec![modern(candidate(run)?, run)];
    let bbr = modern(BBR.parse()?, run);
    if bbr.name != senders[0].name {
        senders.push(bbr);
    }
    let count = senders.len();
    let measured = Measured::new(&mut findings, run, senders, cases)?;
    let mut series = Vec::new();
    for sender in 0..count {
        let name = measured.sender_name(sender);
        for (case, jitter) in jitters.iter().enumerate() {
            let mean = |value: fn(&Done) -> f64| measured.mean(sender, case, value);
            let rtt = mean(|done| first(done).rtt.mean);
            let p95 = mean(|done| first(done).rtt.p95);
            findings.table.row([
                name.to_owned(),
                jitter.to_string(),
                theory::show(&rtt, 1e3, 1),
                theory::show(&p95, 1e3, 1),
                theory::show(&rtt, 1.0 / BASE, 2),
                theory::show(&p95, 1.0 / BASE, 2),
                theory::show(&mean(Done::goodput), 1e-6, 2),
            ]);
        }
        let p95s = |case| measured.values(sender, case, |done| first(done).rtt.p95);
        let points = jitters
            .iter()
            .enumerate()
            .map(|(case, jitter)| draw::interval(*jitter, &Interval::of(&p95s(case)), 1.0 / BASE));
        series.push(draw::series(name, Style::LineAndMarks, points.collect()));
        let last = jitters.len() - 1;
        let ratio = theory::paired(&p95s(last), &p95s(0));
        let what =
            format!("RTT p95 of {name} with {} ms of jitter over that without", jitters[last]);
        findings.beside(sender > 0, |findings| {
            let (runs, bound) =
                ([(sender, last), (sender, 0)], (Bound::Above(1.0), theory::unknown));
            measured.claim(findings, &runs, what, "more (above 1)", (&ratio, 2), bound);
        });
    }
    let title = "RTT by jitter, 100 Mbit/s, 20 ms, queue of 4 BDP";
    findings.plot(
        "jitter",
        title,
        (draw::linear("jitter, ms"), draw::linear(&draw::less("RTT p95 / base"))),
        series,
    );
    findings.note(counted(run, times));
    findings.note(
        "Jitter is uniform in either direction, and a late packet delays those behind it, so that the order stays. The base is the \
         RTT without jitter and queue; the means are over samples.",
    );
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_the_only_difference_of_the_paths() {
        let plain = feed::spec(&link(0.0)).unwrap();
        let base = Duration::from_millis(10);
        assert_eq!((plain.delay.base, plain.delay.jitter), (base, Duration::ZERO));
        for jitter in &JITTERS[1..] {
            let varied = feed::spec(&link(*jitter)).unwrap();
            assert_eq!(varied.delay.base, base);
            assert_eq!(varied.delay.jitter, Duration::from_secs_f64(jitter / 1e3));
            assert!(varied.delay.in_order);
            let bare = airtcp_link::LinkSpec { delay: plain.delay, ..varied };
            assert_eq!(bare, plain);
        }
    }
}
