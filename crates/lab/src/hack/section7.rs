//! Section 7, the authors' future work: corrupted ACKs, and congestion together with corruption.

use super::course::{Course, HEADERS, SENDERS};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/section7",
    what: "HACK under 5 % corruption of data, with ACK corruption and congestion",
    source: "HACK 7: ACKs \"also susceptible to packet corruption\", and \"congestion occurs along with corruption\"",
    seconds: 10,
    seeds: 50,
    body,
    ..Experiment::STUDY
};

/// The number of packets in a burst of corruption, the per cent of corrupted ACKs, and the queue
/// limits in packets, of which the file fills the last.
const BURSTS: [u32; 2] = [1, 5];
const ACKS: [u32; 3] = [0, 5, 15];
const QUEUES: [u32; 2] = [1_000, 10];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | header hit, % | packets in a burst | queue | ACKs corrupted, % | sender | kbit/s | \
         time-outs | cuts | dropped",
    );
    let axes = vec![
        Axis::new("profile", ["paper", "modern"]),
        Axis::new("header", HEADERS),
        Axis::new("burst", BURSTS),
        Axis::new("queue", QUEUES),
        Axis::new("acks", ACKS),
        Axis::new("sender", SENDERS.map(|sender| sender.name)),
    ];
    let names = ["profile", "header", "burst", "queue", "acks", "sender"];
    let grid = Grid::run(run, axes, |point, seed| {
        let sender = SENDERS.iter().find(|sender| sender.name == point.text("sender"));
        let [header, burst] = ["header", "burst"].map(|axis| point.number(axis) as u32);
        let course = Course { share: 5.0, header, burst, ..Course::LONG };
        let [queue, acks] = ["queue", "acks"].map(|axis| point.text(axis));
        let [forth, back] = course.links().map(|link| link.replace("rate 10mbit", "rate 1mbit"));
        let forth = forth.replace("limit 1000", &format!("limit {queue}"));
        let links = [forth, format!("{back} corrupt {acks}%")];
        let sender = sender.expect("one of the senders");
        let scenario = course.over(&links, run, sender, &point.profile())?;
        let result = simulate::once(scenario, seed)?;
        let flow = &result.flows[0];
        Ok(Fields::default()
            .with("goodput", course.goodput(run, flow))
            .with("timeouts", flow.timeouts.unwrap_or(0))
            .with("cuts", flow.reductions.unwrap_or(0))
            .with("dropped", result.links[0].counters.queue_dropped))
    })?;
    grid.record(&mut findings, &names)?;
    let counts = ["timeouts", "cuts", "dropped"].map(|field| (field, 1.0, 1));
    let fields: Vec<_> = [("goodput", 1e-3, 2)].into_iter().chain(counts).collect();
    findings.rows(&grid, &names, &fields);
    for part in grid.all().at("profile", "paper").rows(&["header", "burst"]) {
        judge(&mut findings, &part);
        let free = part.at("queue", QUEUES[0]);
        let lines = free.lines("sender", "acks", ("goodput", 1e-3));
        let (header, burst) = (part.text("header"), part.text("burst"));
        let title = format!("Corruption of 5 %, bursts of {burst}, header hit {header} %");
        let (x, y) = (draw::linear("corrupted ACKs, %"), draw::linear("throughput, kbit/s"));
        let name = format!("acks-header-{header}-burst-{burst}");
        findings.picture(name, draw::figure(title, x, y, lines));
    }
    findings.note(
        "The paper has no figures for this. ACKs consist of headers only, so any corruption hits a header; at 1 Mbit/s the path holds 50 packets",
    );
    Ok(findings)
}

/// HACK 7: HACK performs substantially better than SACK with bursts, and no worse without.
fn judge(findings: &mut Findings, part: &Slice<'_>) {
    let [free, short] = QUEUES;
    let most = ACKS[ACKS.len() - 1];
    let place = format!("header hit {} %, bursts of {}", part.text("header"), part.text("burst"));
    for (what, queue, acks) in [
        ("ACKs corrupted", free, most),
        ("congestion", short, ACKS[0]),
        ("ACKs corrupted and congestion", short, most),
    ] {
        let at = part.at("queue", queue).at("acks", acks);
        let of = |sender: &str, field| at.at("sender", sender).values(field);
        for sender in ["HACK", "HACK + SACK"] {
            let ratio = theory::paired(&of(sender, "goodput"), &of("SACK", "goodput"));
            let what = format!("{sender} over SACK, {what}, {place}");
            findings.mean(what, "above 1", (&ratio, 2), Bound::Above(1.0), theory::unknown);
        }
        // If headers are corrupted, corruption is not distinguished from congestion.
        if queue == short && part.number("header") == 0.0 {
            let cuts = at.at("sender", "HACK + SACK").mean("cuts");
            let why = || "time-outs, which are not counted, replaced them".to_owned();
            let what = format!("cuts of the window by HACK + SACK, {what}, {place}");
            let claimed = "above 0: congestion stays congestion";
            findings.mean(what, claimed, (&cuts, 2), Bound::Above(0.0), why);
        }
    }
}
