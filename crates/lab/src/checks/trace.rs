//! Checks the replay of a packet-delivery trace.

use std::fmt::Write as _;

use airtcp_link::{Link, Trace};
use airtcp_types::Instant;
use airtcp_types::rng::Stream;

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/trace",
    what: "Delivery times of packets, against the trace that a link replays",
    source: "mahimahi's format: one timestamp in milliseconds per packet of 1500 bytes",
    seconds: 1,
    body,
    ..Experiment::CHECK
};

const STAMPS: u64 = 5_000;
/// The number of times that the trace is replayed.
const ROUNDS: u64 = 3;

fn body(run: &Run) -> Result<Findings, LabError> {
    let count = run.scaled(STAMPS);
    let mut findings = Findings::new("seed | timestamps | packets | not at their timestamp");
    let mut wrong = 0;
    for seed in 1..=run.seeds {
        let stamps = stamps(seed, count);
        let period = stamps.last().copied().unwrap_or(1);
        let times = replay(&stamps, count * ROUNDS)?;
        let expected = (0..ROUNDS).flat_map(|round| {
            stamps.iter().map(move |stamp| Instant::from_millis(round * period + stamp))
        });
        let off = expected.zip(&times).filter(|(expected, at)| expected != *at).count() as u64;
        let off = off + (count * ROUNDS).abs_diff(times.len() as u64);
        let packets = count * ROUNDS;
        // Packets that arrived at another millisecond than their timestamp are late or early.
        let fields = fields! { stamps: count, period_ms: period, packets, late_or_early: off };
        findings.record_fields(seed, &fields)?;
        findings.table.row([seed, count, packets, off].map(|n| n.to_string()));
        wrong += off;
        if seed == 1 {
            let steps = |times: &mut dyn Iterator<Item = f64>| {
                times.zip(1..).take(100).map(|(at, n)| draw::point(at, f64::from(n))).collect()
            };
            let stamped = steps(&mut stamps.iter().map(|stamp| *stamp as f64));
            let arrived = steps(&mut times.iter().map(|at| at.as_secs_f64() * 1e3));
            let (x, y) = (draw::linear("time, ms"), draw::linear("packets delivered"));
            let trace = draw::series("trace", Style::Steps, stamped);
            let link = draw::series("link", Style::Marks, arrived);
            let title = "The first packets of a trace";
            findings.picture("trace", draw::figure(title, x, y, [trace, link]));
        }
    }
    let verdict = Verdict::of(wrong == 0, || format!("{wrong} packets are early or late"));
    findings.claim("packets not at their timestamp", "0", wrong.to_string(), verdict);
    Ok(findings)
}

/// Returns timestamps with gaps of 0 to 7 ms: some opportunities share a millisecond.
fn stamps(seed: u64, count: u64) -> Vec<u64> {
    let mut random = Stream::new(seed, 0);
    let mut at = 1;
    let next = |_| {
        at += random.below(8);
        at
    };
    (0..count).map(next).collect()
}

/// Returns the arrival times of packets that are sent at once over a link with these timestamps.
fn replay(stamps: &[u64], packets: u64) -> Result<Vec<Instant>, LabError> {
    let text = stamps.iter().fold(String::new(), |mut text, stamp| {
        let _ = writeln!(text, "{stamp}");
        text
    });
    let spec = feed::spec("trace stamps limit 1000000")?;
    let mut link = Link::with_traces(&spec, &spec, |_| {
        Trace::parse(&text).map_err(|error| error.to_string())
    })?;
    let mut times = Vec::new();
    let all = (0..packets).map(|number| (Instant::ZERO, feed::numbered(number, 1_500)));
    feed::send(&mut link, all, |at, _| times.push(at));
    Ok(times)
}
