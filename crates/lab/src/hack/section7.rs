//! Section 7, the authors' future work: corrupted ACKs, and congestion together with corruption.

use super::course::{Course, HACK, HACK_SACK, HEADERS, NEWRENO, PAPERS, PROFILES, SACK, SENDERS};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/section7",
    what: "HACK under 5 % corruption of data, with ACK corruption and congestion",
    source: "HACK 7: ACKs \"also susceptible to packet corruption\", and \"congestion occurs along with corruption\"",
    seconds: 15,
    seeds: 50,
    body,
    ..Experiment::STUDY
};

/// The number of packets in a burst of corruption, the per cent of corrupted ACKs, and the queue
/// limits in packets. The file fills the last limit.
const BURSTS: [u32; 2] = [1, 5];
const ACKS: [u32; 3] = [0, 5, 15];
const QUEUES: [u32; 2] = [1_000, 10];

const AXES: [&str; 6] = ["profile", "header", "burst", "queue", "acks", "sender"];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | header hit, % | packets in a burst | queue | ACKs corrupted, % | sender | kbit/s | \
         time-outs | cuts | dropped",
    );
    let axes = |profile, header, sender| {
        let mut axes = vec![profile, header];
        axes.extend([Axis::new("burst", BURSTS), Axis::new("queue", QUEUES)]);
        axes.extend([Axis::new("acks", ACKS), sender]);
        axes
    };
    let senders = Axis::new("sender", SENDERS.map(|sender| sender.name));
    let all = axes(Axis::new("profile", PROFILES), Axis::new("header", HEADERS), senders);
    // HACK without readable headers shows what the few intact ones gain.
    let hack = Axis::new("sender", [HACK.name]);
    let unread = axes(Axis::new("profile", [PAPERS]), Axis::new("header", [100u32]), hack);
    let measure = |point: &Point, seed| measure(run, point, seed);
    let (grid, unread) = (Grid::run(run, all, measure)?, Grid::run(run, unread, measure)?);
    let counts = ["timeouts", "cuts", "dropped"].map(|field| (field, 1.0, 1));
    let fields: Vec<_> = [("goodput", 1e-3, 2)].into_iter().chain(counts).collect();
    for grid in [&grid, &unread] {
        grid.record(&mut findings, &AXES)?;
        findings.rows(grid, &AXES, &fields);
    }
    for part in grid.all().at("profile", PAPERS).rows(&["header", "burst"]) {
        let unread = unread.all().at("burst", part.value("burst").clone());
        // The paper announces these tests, and has no results of them.
        findings.beside(true, |findings| judge(findings, &part, &unread));
        let free = part.at("queue", QUEUES[0]);
        let lines = free.lines("sender", "acks", ("goodput", 1e-3));
        let (header, burst) = (part.text("header"), part.text("burst"));
        let title = format!("Corruption of 5 %, bursts of {burst}, header hit {header} %");
        let name = format!("acks-header-{header}-burst-{burst}");
        findings.plot(
            name,
            title,
            (draw::linear("corrupted ACKs, %"), draw::linear(&draw::more("throughput, kbit/s"))),
            lines,
        );
    }
    findings.note(
        "The paper announces these tests and has no results, so all claims are beside it. ACKs consist of headers only, so any corruption hits a header; at 1 Mbit/s the path holds 50 packets. \
         The claims and the pictures are of the paper's sender, linux-2.2.",
    );
    Ok(findings)
}

fn measure(run: &Run, point: &Point, seed: u64) -> Result<Fields, LabError> {
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
    Ok(fields! {
        goodput: course.goodput(run, flow),
        timeouts: flow.timeouts.unwrap_or(0),
        cuts: flow.reductions.unwrap_or(0),
        dropped: result.links[0].counters.queue_dropped,
    })
}

/// Asks whether HACK is better than SACK under these conditions, too.
fn judge(findings: &mut Findings, part: &Slice<'_>, unread: &Slice<'_>) {
    let [free, short] = QUEUES;
    let most = ACKS[ACKS.len() - 1];
    let place = format!("header hit {} %, bursts of {}", part.text("header"), part.text("burst"));
    for (what, queue, acks) in [
        ("ACKs corrupted", free, most),
        ("congestion", short, ACKS[0]),
        ("ACKs corrupted and congestion", short, most),
    ] {
        let at = part.at("queue", queue).at("acks", acks);
        let unread = unread.at("queue", queue).at("acks", acks);
        let of = |sender: &str, field| at.at("sender", sender).values(field);
        for sender in [HACK.name, HACK_SACK.name] {
            let ratio = theory::paired(&of(sender, "goodput"), &of(SACK.name, "goodput"));
            let what = format!("{sender} over SACK, {what}, {place}");
            let why = || why(&at, &unread);
            findings.mean(what, "above 1", (&ratio, 2), Bound::Above(1.0), why);
        }
        // If headers are corrupted, corruption is not distinguished from congestion.
        if queue == short && part.number("header") == 0.0 {
            let cuts = at.at("sender", HACK_SACK.name).mean("cuts");
            let why = || "guess: time-outs, which are not counted, replaced them".to_owned();
            let what = format!("cuts of the window by HACK + SACK, {what}, {place}");
            let claimed = "above 0: congestion stays congestion";
            findings.mean(what, claimed, (&cuts, 2), Bound::Above(0.0), why);
        }
    }
}

/// Returns what the runs show about a sender with HACK that is slower than SACK.
fn why(at: &Slice<'_>, unread: &Slice<'_>) -> String {
    let of = |sender: &str| at.at("sender", sender);
    if at.number("header") == 0.0 {
        let [hack, both] = [HACK.name, HACK_SACK.name].map(|name| of(name).show("cuts", 1.0, 1));
        return format!(
            "every special ACK is readable; HACK alone, which duplicate ACKs mislead (HACK 5.2), reduces its window {hack} \
             times, HACK + SACK {both} times"
        );
    }
    let over = |one: &Slice<'_>, other: &Slice<'_>| {
        theory::paired(&one.values("goodput"), &other.values("goodput")).mean
    };
    let (newreno, sack, hack) = (of(NEWRENO.name), of(SACK.name), of(HACK.name));
    format!(
        "with all headers corrupted HACK is {:.2} times SACK, and NewReno, which ignores them, {:.2} times; one intact header \
         in twenty makes HACK {:.2} times as fast",
        over(unread, &sack),
        over(&newreno, &sack),
        over(&hack, unread)
    )
}
