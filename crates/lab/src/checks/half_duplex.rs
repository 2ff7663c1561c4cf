//! Checks two directions that share one medium.

use airtcp_link::Way;
use airtcp_types::{Instant, Node, PortId};

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/half-duplex",
    what: "Frames delivered by half-duplex links, against theory",
    source: "arithmetic: frames of both directions alternate, each takes its size divided by the rate, plus the overhead",
    seconds: 1,
    seeds: 1,
    body,
    ..Experiment::CHECK
};

/// A frame that takes 1 ms on a link of 10 Mbit/s.
const BYTES: usize = 1_250;
const SECONDS: u64 = 10;

/// A link description, the ports that always have frames to send, and the theoretical frames per
/// second.
const CASES: [(&str, &[u16], [u64; 2]); 5] = [
    ("rate 10mbit half 250us", &[0, 1], [400, 400]),
    ("rate 10mbit half 250us", &[0], [800, 0]),
    ("rate 10mbit half 250us", &[1], [0, 800]),
    ("rate 10mbit half 0us", &[0, 1], [500, 500]),
    ("rate 10mbit", &[0, 1], [1_000, 1_000]),
];

fn body(run: &Run) -> Result<Findings, LabError> {
    let seconds = run.scaled(SECONDS);
    let mut findings = Findings::new("link | busy | frames/s forth | back | theory");
    for seed in 1..=run.seeds {
        for (text, ports, theory) in CASES {
            let mut link = feed::link(&format!("{text} limit 1000000"))?;
            for number in 0..1_100 * seconds {
                for port in ports {
                    link.handle_packet(Instant::ZERO, PortId(*port), feed::numbered(number, BYTES));
                }
            }
            let end = Instant::ZERO + Duration::from_secs(seconds);
            link.handle_timeout(end);
            while link.poll_transmit(end).is_some() {}
            let frames = Way::BOTH.map(|way| link.counters(way).forwarded);
            let busy_ports: Vec<_> = ports.iter().copied().map(u64::from).collect();
            let fields = fields! { link: text, busy_ports, seconds, frames: frames.to_vec() };
            findings.record_fields(seed, &fields)?;
            if seed > 1 {
                continue;
            }
            let busy = match ports {
                [0] => "forth",
                [1] => "back",
                _ => "both",
            };
            let [forth, back] = frames.map(|frames| (frames / seconds).to_string());
            let claimed = format!("{} and {}", theory[0], theory[1]);
            let measured = format!("{forth} and {back}");
            findings.table.row([text.to_owned(), busy.to_owned(), forth, back, claimed.clone()]);
            let verdict = Verdict::of(frames == theory.map(|rate| rate * seconds), || {
                format!("{frames:?} frames in {seconds} s")
            });
            findings.claim(format!("{text}, {busy} busy"), claimed, measured, verdict);
        }
    }
    Ok(findings)
}
