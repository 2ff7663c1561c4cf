//! RRTP, Figs. 4.6 to 4.8: what it is worth to be told the rate, the round-trip time, the loss rate.

use std::time::Duration;

use airtcp_sim::{App, FlowSpec, Interval, Scenario};
use airtcp_trace::figure::{Figure, Style};
use airtcp_types::ByteCount;
use serde::Serialize;

use super::network::{CDMA, PAYLOAD, QUEUES, RRTP_HEADER, SETUP};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, draw, simulate, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/fig4.6",
    what: "Files over CDMA: RRTP told the rate, the round trip, the loss rate, right, 20 % low or not (Figs. 4.6 to 4.8)",
    source: "RRTP (Wang 2009) 4.5, Figs. 4.6 to 4.8, on a real network and without values in the text",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 60,
    seeds: 10,
    body,
};

const KINDS: [&str; 2] = ["rrtp:wireless-last-hop", "rrtp"];
/// kB; the thesis' file is the last.
const SIZES: [u64; 3] = [100, 1_000, 10_000];
/// What is told, right and 20 % low.
const SEEDS: [&str; 3] = ["rate", "rtt", "loss"];
const TOLD: [(&str, f64); 2] = [("right", 1.0), ("20 % low", 0.8)];

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    sender: &'a str,
    kilobytes: u64,
    /// Of the whole file, handshake included; nothing if it did not finish.
    finished: Option<f64>,
    /// bit/s.
    throughput: f64,
}

/// What is true of [`CDMA`]: the round trip is that of a full packet and no queue.
fn told(what: &str, share: f64) -> String {
    match what {
        "rate" => format!("+rate={}bit", (CDMA.rate as f64 * share) as u64),
        "rtt" => {
            let packet = (PAYLOAD + f64::from(RRTP_HEADER)) * 8.0 / CDMA.rate as f64;
            let trip = 2.0 * CDMA.delay as f64 / 1e3 + packet;
            format!("+rtt={}us", (trip * share * 1e6) as u64)
        }
        _ => format!("+loss={}%", CDMA.loss * share),
    }
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new(["kind", "file, kB", "told", "throughput, kbit/s", "over told nothing"]);
    let sizes = if run.is_small { &SIZES[..1] } else { &SIZES[..] };
    for kind in KINDS {
        let mut lines = vec![Vec::new(); 1 + SEEDS.len() * TOLD.len()];
        for size in sizes {
            let native = measure(run, kind, *size, &mut findings)?;
            let mut all = vec![("nothing".to_owned(), native.clone())];
            for what in SEEDS {
                for (how, share) in TOLD {
                    let sender = format!("{kind}{}", told(what, share));
                    let runs = measure(run, &sender, *size, &mut findings)?;
                    all.push((format!("{what}, {how}"), runs));
                }
            }
            for (told, runs) in &all {
                findings.table.row([
                    kind.to_owned(),
                    size.to_string(),
                    told.clone(),
                    theory::show(&Interval::of(runs), 1e-3, 2),
                    theory::show(&theory::paired(runs, &native), 1.0, 4),
                ]);
            }
            for (line, (_, runs)) in lines.iter_mut().zip(&all) {
                line.push(draw::interval(*size as f64, &Interval::of(runs), 1e-3));
            }
            claims(&mut findings, kind, *size, &all);
        }
        let names = std::iter::once("told nothing".to_owned())
            .chain(SEEDS.iter().flat_map(|what| TOLD.map(|(how, _)| format!("{what}, {how}"))));
        let series =
            names.zip(lines).map(|(name, line)| draw::series(name, Style::LineAndMarks, line));
        findings.picture(
            if kind == KINDS[0] { "wireless-last-hop" } else { "general" },
            Figure {
                title: format!("Files over CDMA 1X, {kind}"),
                x: draw::log("file, kB"),
                y: draw::linear("throughput, kbit/s"),
                series: series.collect(),
            },
        );
    }
    findings.notes.extend([SETUP.to_owned(), QUEUES.to_owned()]);
    findings.notes.push("the link is Table 4.3's CDMA 1X, 1 % loss; throughput is the file over the time from the first SYN".to_owned());
    Ok(findings)
}

/// Every run's throughput, bit/s; of nothing where the file did not arrive.
fn measure(
    run: &Run,
    sender: &str,
    kilobytes: u64,
    findings: &mut Findings,
) -> Result<Vec<f64>, LabError> {
    let bits = kilobytes as f64 * 8e3;
    let flow = FlowSpec {
        app: App::Bulk { size: Some(ByteCount(kilobytes * 1_000)) },
        ..CDMA.flow(sender)
    };
    // Three times as long as the link needs.
    let time = Duration::from_secs_f64(20.0 + 3.0 * bits / CDMA.rate as f64);
    let scenario = Scenario { flows: vec![flow], ..CDMA.scenario("fig4.6", sender, time)? };
    let mut runs = Vec::new();
    for result in simulate::seeds(run, |_| scenario.clone())? {
        let finished = result.flows[0].finished;
        let throughput = finished.map_or(0.0, |finished| bits / finished);
        runs.push(throughput);
        findings.record(&Record { seed: result.seed, sender, kilobytes, finished, throughput })?;
    }
    Ok(runs)
}

/// Right is best, 20 % low is better than nothing.
fn claims(findings: &mut Findings, kind: &str, size: u64, all: &[(String, Vec<f64>)]) {
    let Some(((_, native), seeded)) = all.split_first() else { return };
    for pair in seeded.chunks_exact(2) {
        let [(name, right), (_, low)] = pair else { continue };
        let what = name.split(',').next().unwrap_or_default();
        for (over, own, other, than) in [
            ("right over nothing", right, native, "told nothing"),
            ("20 % low over nothing", low, native, "told nothing"),
            ("right over 20 % low", right, low, "20 % low"),
        ] {
            let ratio = theory::paired(own, other);
            let reason = reason(what);
            findings.claim(
                format!("{kind}, {size} kB, {what}: {over}"),
                "above 1",
                theory::show(&ratio, 1.0, 4),
                theory::above(&ratio, 1.0, || {
                    let [own, other] =
                        [own, other].map(|of| theory::show(&Interval::of(of), 1e-3, 2));
                    format!("{own} kbit/s, and {other} {than}: {reason}")
                }),
            );
        }
    }
}

fn reason(what: &str) -> &'static str {
    match what {
        "rate" => {
            "the first pair of packets measures the link's rate, so that the seed spares a round trip at most; a low one costs \
                   until three trains have shown more"
        }
        "rtt" => {
            "the handshake is a sample of the round trip, so that the seed is refined before data flows"
        }
        _ => {
            "it changes how long questions go unanswered before the path counts as dead, and what counts as congestion before a loss \
              is measured: neither comes up on this link"
        }
    }
}
