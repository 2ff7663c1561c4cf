//! Westwood under random loss.

use super::course::{self, Path};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "westwood/loss",
    what: "westwood, westwood-plus, reno and cubic, random loss 0.01 to 10 %",
    source: "Mascolo et al. 2001, abstract (more than Reno); LE 5.2.1 (the estimate); LE gives no rate: 10 Mbit/s here",
    seconds: 110,
    body,
    ..Experiment::STUDY
};

const CONTROLS: [&str; 6] =
    ["reno", "westwood", "westwood-plus", "cubic", "westwood, pinned", "westwood-plus, pinned"];
/// The loss of data packets, in per cent.
const LOSSES: [f64; 7] = [0.01, 0.05, 0.1, 1.0, 2.0, 5.0, 10.0];
const LINK: &str = "rate 10mbit delay 10ms limit 50";
/// The link's capacity for payload in bit/s: segments of 1448 bytes in packets of 1500.
const CAPACITY: f64 = 10e6 * 1448.0 / 1500.0;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "control | profile | loss, % | goodput, Mbit/s | estimate, Mbit/s | time-outs",
    );
    let losses = if run.is_small { &LOSSES[3..5] } else { &LOSSES[..] };
    let axes = vec![
        Axis::new("profile", ["paper", "modern"]),
        Axis::new("control", CONTROLS),
        Axis::new("loss", losses.iter().copied()),
        Axis::new("way", ["clean"]),
    ];
    let path = |_: &str| Path { forth: LINK, back: LINK, is_shared: false };
    let grid = course::measure(run, &mut findings, axes, path)?;
    for row in grid.all().rows(&["profile", "control", "loss"]) {
        let control = row.text("control");
        let estimate = match control.starts_with("westwood") {
            true => theory::show(&course::estimate(&row), 1e-6, 3),
            false => "-".to_owned(),
        };
        let (goodput, timeouts) = (row.show("goodput", 1e-6, 3), row.show("timeouts", 1.0, 1));
        let (profile, loss) = (row.text("profile"), row.text("loss"));
        findings.table.row([control, profile, loss, goodput, estimate, timeouts]);
    }
    for profile in grid.all().each("profile") {
        for control in ["westwood", "westwood-plus"] {
            let is_ours = profile.text("profile") == "modern";
            findings.beside(is_ours, |findings| claims(findings, &profile, control));
        }
    }
    let note = "the estimate is ssthresh after a reduction over the smallest round trip, the mean over reductions";
    findings.note(note);
    findings.note(
        "pinned: the window stays at 40 segments, more than the path holds, so that the estimate has no effect on what it measures; \
         the detection is LE",
    );
    let lines = grid.all().rows(&["profile", "control"]).into_iter().map(|part| {
        let name = format!("{}, {}", part.text("control"), part.text("profile"));
        part.line(name, "loss", 1e-6, |cell| cell.mean("goodput"))
    });
    let title = "Goodput over random loss, 10 Mbit/s, 20 ms";
    findings.plot("loss", title, (draw::log("random loss, %"), draw::goodput()), lines);
    Ok(findings)
}

fn claims(findings: &mut Findings, profile: &Slice<'_>, control: &str) {
    let name = format!("{control}, {}", profile.text("profile"));
    let at = |control: &str, loss: f64| profile.at("control", control).get("loss", loss);
    for loss in [0.1, 1.0, 5.0] {
        let Some((ours, reno)) = at(control, loss).zip(at("reno", loss)) else { continue };
        let [ours, reno] = [ours, reno].map(|part| part.mean("goodput"));
        let ratio = theory::ratio(&ours, &reno);
        let what = format!("{name}: goodput over reno's at {loss} % loss");
        findings.mean(what, "more (above 1)", (&ratio, 3), Bound::Above(1.0), || {
            let [reno, ours, link] = [reno.mean, ours.mean, CAPACITY].map(|rate| rate / 1e6);
            format!("reno has {reno:.2} of the {link:.2} Mbit/s of the link, and it has {ours:.2}; the cause was not determined")
        });
    }
    for (loss, claimed, bound) in [
        (0.05, "right (within 0.5)", Bound::Within(-0.5, 0.5)),
        (2.0, "about 1 too small (0.5 to 1.5)", Bound::Within(-1.5, -0.5)),
    ] {
        let Some(part) = at(control, loss) else { continue };
        let estimate = course::estimate(&part);
        if estimate.n == 0 {
            continue;
        }
        let off = Interval { mean: estimate.mean - CAPACITY, ..estimate };
        let off = theory::scaled(&off, 1e-6);
        let what = format!("{name}: estimate minus the link's capacity at {loss} % loss, Mbit/s");
        findings.mean(what, claimed, (&off, 2), bound, || {
            let pinned = at(&format!("{control}, pinned"), loss);
            let pinned = pinned.map_or(estimate, |part| course::estimate(&part));
            format!(
                "the estimate is {} of the goodput; with the window pinned at 40 segments, with LE, it is {} of the {:.2} Mbit/s of the link: \
                 guess: the rest is the effect of the estimate on the window",
                theory::show(&course::ratio(&part), 1.0, 2),
                theory::show(&pinned, 1e-6, 2),
                CAPACITY / 1e6
            )
        });
    }
}
