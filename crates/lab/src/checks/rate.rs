//! Checks the rate of a saturated link.

use airtcp_types::{Instant, Rate};

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/rate",
    what: "Throughput of a busy link, against its description",
    source: "arithmetic: each packet takes its size divided by the rate, to the nanosecond",
    seconds: 1,
    seeds: 1,
    body,
    ..Experiment::CHECK
};

const PACKETS: u64 = 2_000;

/// A link description, its rate, and the overhead of a packet in bytes.
const LINKS: [(&str, u64, usize); 5] = [
    ("rate 64kbit", 64_000, 0),
    ("rate 1mbit", 1_000_000, 0),
    ("rate 10mbit 14", 10_000_000, 14),
    ("rate 100mbit", 100_000_000, 0),
    ("rate 10gbit", 10_000_000_000, 0),
];

fn body(run: &Run) -> Result<Findings, LabError> {
    let packets = run.scaled(PACKETS);
    let mut findings =
        Findings::new("link | packet, bytes | measured, bit/s | described | error, ppm");
    for seed in 1..=run.seeds {
        for (link, described, overhead) in LINKS {
            for bytes in [40, 576, 1_500] {
                let (first, last) =
                    times(&format!("{link} limit 100000 delay 3ms"), packets, bytes)?;
                let elapsed = last.since(first);
                let sent = airtcp_types::ByteCount::from(bytes + overhead) * (packets - 1);
                let measured = Rate::from_bytes_over(sent, elapsed).bits_per_sec();
                let nanoseconds = elapsed.as_nanos() as u64;
                let fields = fields! { link, bytes, packets };
                let fields = fields.and(fields! { nanoseconds, bits_per_second: measured });
                findings.record_fields(seed, &fields)?;
                if seed > 1 {
                    continue;
                }
                let off = (measured as f64 / described as f64 - 1.0) * 1e6;
                findings.table.row([
                    link.to_owned(),
                    bytes.to_string(),
                    measured.to_string(),
                    described.to_string(),
                    format!("{off:+.1}"),
                ]);
                let count = (packets - 1) as f64;
                let exact = count * (bytes + overhead) as f64 * 8e9 / described as f64;
                // Each packet takes a whole number of nanoseconds.
                let verdict = Verdict::of((nanoseconds as f64 - exact).abs() <= count, || {
                    format!("{packets} packets take {nanoseconds} ns and not {exact:.0}")
                });
                let what = format!("{link}, {bytes} bytes");
                findings.claim(
                    what,
                    format!("{described} bit/s"),
                    format!("{measured} bit/s"),
                    verdict,
                );
            }
        }
    }
    Ok(findings)
}

/// Returns the arrival times of the first and the last of `packets` packets that are sent at once.
fn times(text: &str, packets: u64, bytes: usize) -> Result<(Instant, Instant), LabError> {
    let mut times: Option<(Instant, Instant)> = None;
    let all = (0..packets).map(|number| (Instant::ZERO, feed::numbered(number, bytes)));
    feed::send(&mut feed::link(text)?, all, |at, _| {
        times = Some((times.map_or(at, |(first, _)| first), at));
    });
    Ok(times.unwrap_or_default())
}
