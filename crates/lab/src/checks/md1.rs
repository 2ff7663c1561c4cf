//! Checks the number of packets that wait in a link's queue.

use airtcp_link::Way;
use airtcp_types::rng::Stream;
use airtcp_types::{Instant, Node, PortId};

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/md1",
    what: "Mean number of waiting packets at three Poisson loads, against M/D/1",
    source: "Pollaczek and Khinchine: load² / (2 (1 - load))",
    seconds: 4,
    seeds: 20,
    body,
    ..Experiment::CHECK
};

const PACKETS: u64 = 100_000;
const LOADS: [f64; 3] = [0.3, 0.6, 0.9];
/// A packet that takes 1 ms on a link of 8 Mbit/s.
const BYTES: usize = 1_000;

fn body(run: &Run) -> Result<Findings, LabError> {
    let packets = run.scaled(PACKETS);
    let mut findings = Findings::new("load | packets that wait | theory");
    let mut points = Vec::new();
    for load in LOADS {
        let measured = findings.measure(run, &fields! { load, packets }, |seed| {
            Ok(fields! { waiting: waiting(seed, load, packets)? })
        })?;
        let measured = measured.mean("waiting");
        let expected = theory::md1_waiting(load);
        let verdict = theory::mean_is(expected, &measured)?;
        let shown = theory::show(&measured, 1.0, 4);
        let load_shown = format!("{load:.1}");
        findings.table.row([load_shown, shown.clone(), format!("{expected:.4}")]);
        findings.claim(format!("load {load}"), format!("{expected:.4}"), shown, verdict);
        points.push(draw::interval(load, &measured, 1.0));
    }
    let loads = (1..=93).map(|percent| f64::from(percent) / 100.0);
    let curve = loads.map(|load| draw::point(load, theory::md1_waiting(load))).collect();
    let (x, y) = (draw::linear("load"), draw::linear("packets"));
    let title = "Packets that wait before a link";
    let series = [
        draw::series("M/D/1", Style::Line, curve),
        draw::series("measured, 95 %", Style::Marks, points),
    ];
    findings.picture("md1", draw::figure(title, x, y, series));
    Ok(findings)
}

/// Returns the mean number of packets that arrivals of a Poisson process find waiting, which is
/// equal to the mean over time.
fn waiting(seed: u64, load: f64, packets: u64) -> Result<f64, LabError> {
    let mut link = feed::link("rate 8mbit limit 1000000")?;
    let mut random = Stream::new(seed, 0);
    let (mut at, mut sum) = (0.0, 0);
    for number in 0..packets {
        at -= libm::log(1.0 - random.next_f64()) * 1e6 / load;
        let now = Instant::from_nanos(at as u64);
        while link.poll_transmit(now).is_some() {}
        sum += link.queued(Way::Forth).0;
        link.handle_packet(now, PortId(0), feed::numbered(number, BYTES));
    }
    Ok(sum as f64 / packets as f64)
}
