//! Westwood's estimate under random loss, and with ACK compression.

use super::course::{self, Path};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "westwood/compression",
    what: "Westwood's bandwidth estimates under random loss and ACK compression",
    source: "Grieco and Mascolo 2004, 2 (ACK compression); LE 5.2.1 (random loss)",
    seconds: 100,
    body,
    ..Experiment::STUDY
};

const CONTROLS: [&str; 3] = ["westwood", "westwood-plus", "reno"];
/// The loss of data packets, in per cent.
const LOSSES: [f64; 5] = [0.01, 0.1, 1.0, 2.0, 5.0];
/// The loss rate at which the forms are compared.
const COMPARED: f64 = 1.0;
const FORTH: &str = "rate 10mbit delay 25ms limit 50";

/// The paths of the ACKs: undisturbed; delays that vary without reordering, so that a late ACK
/// delays those behind it; the data of a flow in the other direction, in the same queue.
const WAYS: [&str; 3] = [CLEAN, "jitter", "flow the other way"];
const CLEAN: &str = "clean";

fn path(way: &str) -> Path {
    let back = match way {
        CLEAN => "rate 10mbit delay 25ms limit 50",
        "jitter" => "rate 10mbit delay 25ms 20ms inorder limit 50",
        _ => "rate 2mbit delay 25ms limit 50",
    };
    Path { forth: FORTH, back, is_shared: way == WAYS[2] }
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "control | profile | ACKs' way | loss, % | goodput, Mbit/s | estimate, Mbit/s | over goodput",
    );
    let losses = if run.is_small { &[COMPARED][..] } else { &LOSSES[..] };
    let axes = vec![
        Axis::new("profile", ["paper", "modern"]),
        Axis::new("way", WAYS),
        Axis::new("control", CONTROLS),
        Axis::new("loss", losses.iter().copied()),
    ];
    let grid = course::measure(run, &mut findings, axes, path)?;
    for row in grid.all().rows(&["profile", "way", "control", "loss"]) {
        let [control, profile, way, loss] =
            ["control", "profile", "way", "loss"].map(|axis| row.text(axis));
        let estimate = theory::show(&course::estimate(&row), 1e-6, 3);
        let ratio = theory::show(&course::ratio(&row), 1.0, 2);
        let goodput = row.show("goodput", 1e-6, 3);
        findings.table.row([control, profile, way, loss, goodput, estimate, ratio]);
    }
    for part in grid.all().rows(&["profile", "way"]) {
        let is_ours = part.text("profile") == "modern";
        findings.beside(is_ours, |findings| claim(findings, &part));
    }
    findings.note(
        "the estimate is ssthresh after a reduction over the smallest round trip; reno has none: its figure is what \
         halving leaves",
    );
    // The picture shows only a part of the curves, to stay readable.
    let shown = grid.all().at("profile", "paper").rows(&["way", "control"]);
    let shown = shown.into_iter().filter(|part| part.text("control") != "reno");
    let lines = shown.map(|part| {
        let name = format!("{}, {}", part.text("control"), part.text("way"));
        part.line(name, "loss", 1.0, course::ratio)
    });
    let title = "Westwood's estimate over its goodput, paper's profile";
    findings.plot(
        "compression",
        title,
        (draw::log("random loss, %"), draw::linear("estimate over goodput")),
        lines,
    );
    Ok(findings)
}

fn claim(findings: &mut Findings, part: &Slice<'_>) {
    let [per_ack, per_round] = ["westwood", "westwood-plus"]
        .map(|control| course::ratio(&part.at("control", control).at("loss", COMPARED)));
    let [profile, way] = ["profile", "way"].map(|axis| part.text(axis));
    let over = theory::ratio(&per_ack, &per_round);
    let (claimed, bound) = match way.as_str() {
        CLEAN => ("equal (within a tenth)", Bound::Within(0.9, 1.1)),
        _ => ("more per ACK than per round trip", Bound::Above(1.0)),
    };
    findings.claim(
        format!("estimate over goodput at 1 %, per ACK and per round trip, {profile}, {way}"),
        claimed,
        format!("{}; {}", theory::show(&per_ack, 1.0, 2), theory::show(&per_round, 1.0, 2)),
        bound.verdict(&over, theory::unknown),
    );
}
