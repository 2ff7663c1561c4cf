//! Checks the bit errors of a link.

use airtcp_link::Way;
use airtcp_types::{Instant, Packet};

use crate::prelude::*;
use crate::theory::Trials;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/bit-errors",
    what: "Flipped bits and corrupted packets, against the bit error rate",
    source: "binomial distribution: a packet of n bits is corrupted with probability 1 - (1 - BER)^n",
    seconds: 3,
    body,
    ..Experiment::CHECK
};

const BYTES: usize = 1_000;
const BITS: u64 = BYTES as u64 * 8;
const PACKETS: u64 = 50_000;
const RATES: [f64; 4] = [1e-6, 1e-5, 1e-4, 1e-3];

fn body(run: &Run) -> Result<Findings, LabError> {
    let packets = run.scaled(PACKETS);
    let mut findings =
        Findings::new("BER | bits flipped, of 10^6 | packets hit, % | theory, % | counted");
    let (mut measured, mut curve) = (Vec::new(), Vec::new());
    let axes = vec![Axis::new("ber", RATES)];
    let grid = Grid::run(run, axes, |point, seed| one(seed, point.number("ber"), packets))?;
    grid.record(&mut findings, &["ber"])?;
    for row in grid.all().each("ber") {
        let ber = row.number("ber");
        let sum = |field| row.values(field).iter().sum::<f64>() as u64;
        let [flipped, hit, counted] = ["flipped", "hit", "counted"].map(sum);
        let all = packets * run.seeds;
        let bits = Trials::share(flipped, all * BITS, ber);
        let whole = 1.0 - (1.0 - ber).powi(BITS as i32);
        let hits = Trials::share(hit, all, whole);
        let (bits_shown, hits_shown) =
            (theory::show(&bits.estimate(), 1e6, 2), theory::show(&hits.estimate(), 100.0, 3));
        findings.table.row([
            format!("{ber:e}"),
            bits_shown.clone(),
            hits_shown.clone(),
            format!("{:.3}", whole * 100.0),
            counted.to_string(),
        ]);
        let million = format!("{} of 10^6", ber * 1e6);
        findings.claim(format!("BER {ber:e}, bits"), million, bits_shown, bits.verdict());
        let claimed = format!("{:.3} %", whole * 100.0);
        let verdict = if counted == hit {
            hits.verdict()
        } else {
            crate::Verdict::DoesNotHold(format!(
                "{hit} packets are corrupted, and the link counts {counted}"
            ))
        };
        findings.claim(
            format!("BER {ber:e}, packets"),
            claimed,
            format!("{hits_shown} %"),
            verdict,
        );
        measured.push(draw::interval(ber, &hits.estimate(), 100.0));
    }
    for step in 0..=30 {
        let ber = libm::pow(10.0, -6.0 + f64::from(step) / 10.0);
        curve.push(draw::point(ber, (1.0 - (1.0 - ber).powi(BITS as i32)) * 100.0));
    }
    let (x, y) = (draw::log("bit error rate"), draw::linear("packets hit, %"));
    let title = format!("Packets of {BYTES} bytes with a bit flipped");
    let theory = draw::series("theory", Style::Line, curve);
    let measured = draw::series("measured, 95 %", Style::Marks, measured);
    findings.picture("bit-errors", draw::figure(title, x, y, [theory, measured]));
    Ok(findings)
}

/// Returns the number of flipped bits, of packets that arrived with a flipped bit, and of packets
/// that the link counts as corrupted.
fn one(seed: u64, ber: f64, packets: u64) -> Result<Fields, LabError> {
    let mut link = feed::link(&format!("biterror {ber} seed {seed}"))?;
    let zeros = Packet::new(vec![0; BYTES]);
    let stream = (0..packets).map(|n| (Instant::from_nanos(n * 1_000), zeros.clone()));
    let (mut flipped, mut hit) = (0, 0);
    feed::send(&mut link, stream, |_, packet| {
        let ones: u64 = packet.data.iter().map(|byte| u64::from(byte.count_ones())).sum();
        flipped += ones;
        hit += u64::from(ones > 0);
    });
    let counted = link.counters(Way::Forth).corrupted;
    let fields = fields! { bits: packets * BITS, flipped };
    Ok(fields.with("packets", packets).with("hit", hit).with("counted", counted))
}
