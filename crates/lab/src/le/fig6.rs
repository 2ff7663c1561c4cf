//! Figure 6: several detections under random loss, each with three controls.

use super::{network, together};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig6",
    what: "Detections with AIMD, a fixed window and Westwood, loss 0 to 10 %",
    source: "LE 3.3, Fig. 6a to d",
    seconds: 900,
    body: |run| {
        let sweep = Sweep {
            panels: &PANELS[..4],
            profiles: &[NS2, "modern"],
            detections: &DETECTIONS,
            losses: &[0.0, 1.0, 2.0, 4.0, 7.0, 10.0],
        };
        panels(run, &sweep)
    },
    ..Experiment::STUDY
};

/// At 5 Mbit/s, ten flows also lose packets in the queue.
pub(crate) const WIDE: Experiment = Experiment {
    name: "le/fig6d",
    what: "The ten Westwood flows of le/fig6 on 30 Mbit/s",
    source: "LE 3.3.3, Fig. 6d",
    seconds: 450,
    body: |run| {
        let sweep = Sweep {
            panels: &PANELS[4..],
            profiles: &[NS2],
            detections: &PAPERS,
            losses: &[1.0, 4.0, 10.0],
        };
        panels(run, &sweep)
    },
    ..Experiment::STUDY
};

/// The profile of the paper's senders, which are those of ns-2: `sack` is its Sack1.
const NS2: &str = "ns-2.35";
/// The paper's five; RACK; LE with the echo of transmission numbers.
const DETECTIONS: [&str; 7] = ["reno", "newreno", "sack", "fack", "le", "rack", "le:echo"];
const PAPERS: [&str; 5] = ["reno", "newreno", "sack", "fack", "le"];
/// The detections that the paper compares LE with.
const OTHERS: [&str; 4] = ["reno", "newreno", "sack", "fack"];

/// A picture: its name, title, control, number of flows, and the rate of the bottleneck in Mbit/s.
type Panel = (&'static str, &'static str, &'static str, usize, u32);

/// The paper's four, and the last one repeated over a faster bottleneck.
const PANELS: [Panel; 5] = [
    ("fig6a", "AIMD", "reno", 1, network::RATE),
    ("fig6b", "fixed window of 32", "fixed:32", 1, network::RATE),
    ("fig6c", "Westwood", "westwood", 1, network::RATE),
    ("fig6d", "ten flows with Westwood", "westwood", 10, network::RATE),
    ("fig6d-wide", "ten flows with Westwood on 30 Mbit/s", "westwood", 10, network::WIDE),
];

/// Returns the title of a panel, its control, its number of flows and its rate.
fn panel(name: &str) -> (&'static str, &'static str, usize, u32) {
    let found = PANELS.iter().find(|panel| panel.0 == name);
    let (_, title, control, flows, rate) = found.expect("one of the panels");
    (title, control, *flows, *rate)
}

/// The axes of an experiment.
struct Sweep<'a> {
    panels: &'a [Panel],
    profiles: &'a [&'static str],
    detections: &'a [&'static str],
    /// The per cent of data packets lost.
    losses: &'a [f64],
}

fn panels(run: &Run, sweep: &Sweep<'_>) -> Result<Findings, LabError> {
    let Sweep { panels, profiles, detections, losses } = *sweep;
    let columns = detections.join(", kbit/s | ");
    let mut findings = Findings::new(&format!(
        "profile | panel | lost, % | {columns}, kbit/s | time-outs of each"
    ));
    // A small run has one loss rate, from the middle.
    let losses = if run.is_small { &losses[losses.len() / 2..][..1] } else { losses };
    let axes = vec![
        Axis::new("profile", profiles.iter().copied()),
        Axis::new("panel", panels.iter().map(|panel| panel.0)),
        Axis::new("detection", detections.iter().copied()),
        Axis::new("loss", losses.iter().copied()),
    ];
    let grid = Grid::run(run, axes, |point, seed| {
        let (_, control, flows, rate) = panel(&point.text("panel"));
        let combination = format!("{}/{control}", point.text("detection"));
        let profile = point.profile();
        let combinations = vec![combination.as_str(); flows];
        let scenario = network::scenario(run, &combinations, &profile, rate, point.number("loss"))?;
        let result = simulate::once(simulate::staggered(&scenario, seed), seed)?;
        let case = fields! { combination, flows };
        Ok(together::with(case.with("loss", point.number("loss")), &result))
    })?;
    grid.record(&mut findings, &["panel", "profile"])?;
    for row in grid.all().rows(&["profile", "panel", "loss"]) {
        let (title, ..) = panel(&row.text("panel"));
        let each = row.each("detection").map(|cell| cell.show("goodput", 1e-3, 0));
        let timeouts = together::counts(&row, "detection", detections, "timeouts");
        let place = [row.text("profile"), title.to_owned(), row.text("loss")];
        findings.table.add(place.into_iter().chain(each).chain([timeouts.join(" / ")]).collect());
    }
    for part in grid.all().rows(&["profile", "panel"]) {
        let (profile, (title, ..)) = (part.text("profile"), panel(&part.text("panel")));
        findings.beside(profile != NS2, |findings| judge(findings, &part));
        let suffix = if profile == NS2 { String::new() } else { format!("-{profile}") };
        let title = format!("{title}, {profile} profile");
        let drawn = together::figure(title, &part, "detection", detections, ("kbit/s", 1e-3));
        findings.picture(format!("{}{suffix}", part.text("panel")), drawn);
    }
    findings.notes.extend(panels.last().map(|panel| network::note(panel.4)));
    Ok(findings)
}

/// The ratio of two detections' goodputs at one loss rate.
struct Over {
    loss: f64,
    ratio: Interval,
}

impl Over {
    fn show(all: &[Self]) -> String {
        let one = |over: &Self| format!("{} at {} %", theory::show(&over.ratio, 1.0, 2), over.loss);
        all.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Combines the verdicts on each ratio.
    fn verdict(all: &[Self], judge: impl Fn(&Interval) -> Verdict) -> Verdict {
        Verdict::all(all.iter().map(|over| judge(&over.ratio)))
    }
}

/// The part of a panel with losses.
struct Lossy<'a>(&'a Slice<'a>);

/// One of the paper's other detections, chosen by goodput.
#[derive(Clone, Copy)]
enum Other {
    Best,
    Slowest,
}

impl Lossy<'_> {
    fn each(&self) -> impl Iterator<Item = Slice<'_>> {
        self.0.each("loss").filter(|at| at.number("loss") > 0.0)
    }

    /// Returns the ratio of `detection` to one of the others, at each loss rate.
    fn over(&self, detection: &str, other: Other) -> Vec<Over> {
        let goodput = |at: &Slice<'_>, name: &str| at.at("detection", name).mean("goodput");
        let over = |at: Slice<'_>| {
            let mut others = OTHERS.map(|name| goodput(&at, name));
            others.sort_by(|a, b| a.mean.total_cmp(&b.mean));
            let [slowest, .., best] = others;
            let other = match other {
                Other::Best => best,
                Other::Slowest => slowest,
            };
            let ratio = theory::ratio(&goodput(&at, detection), &other);
            Over { loss: at.number("loss"), ratio }
        };
        self.each().map(over).collect()
    }

    /// Describes the known causes of a claim that does not hold.
    fn why(&self) -> String {
        let Some(last) = self.0.each("loss").last() else { return String::new() };
        let of = |field| together::counts(&last, "detection", &PAPERS, field).join(", ");
        format!(
            "at {} % {} have {} time-outs and {} cuts of the window; no other cause was determined",
            last.text("loss"),
            PAPERS.join(", "),
            of("timeouts"),
            of("reductions")
        )
    }
}

/// The claims of LE 3.3.1 to 3.3.3.
fn judge(findings: &mut Findings, part: &Slice<'_>) {
    let (title, control, flows, rate) = panel(&part.text("panel"));
    let lossy = Lossy(part);
    let place = format!("{title}, {} profile", part.text("profile"));
    let best = lossy.over("le", Other::Best);
    if control == "reno" {
        let slowest = lossy.over("le", Other::Slowest);
        let nearly = |of: &[Over]| {
            Over::verdict(of, |ratio| theory::within(ratio, (0.9, 1.1), || lossy.why()))
        };
        findings.claim(
            format!("goodput of LE over the slowest of the others, {place}"),
            "very similar (0.9 to 1.1, and over the best as well)",
            Over::show(&slowest),
            Verdict::all([nearly(&slowest), nearly(&best)]),
        );
    }
    findings.claim(
        format!("goodput of LE over the best of Reno, NewReno, SACK and FACK, {place}"),
        match control {
            "reno" => "slightly more, marginal (1 to 1.1)",
            "westwood" => "significantly better (above 1.1)",
            _ => "over 1",
        },
        Over::show(&best),
        Over::verdict(&best, |ratio| match control {
            "reno" => theory::within(ratio, (1.0, 1.1), || lossy.why()),
            "westwood" => theory::above(ratio, 1.1, || lossy.why()),
            _ => theory::above(ratio, 1.0, || lossy.why()),
        }),
    );
    if flows > 1 {
        let share = |at: Slice<'_>| {
            let loss = at.number("loss");
            let carried = network::capacity(rate) * (1.0 - loss / 100.0);
            let goodput = at.at("detection", "le").mean("goodput");
            Over { loss, ratio: theory::scaled(&goodput, 1.0 / carried) }
        };
        let shares: Vec<Over> = lossy.each().map(share).collect();
        findings.claim(
            format!("goodput of LE over what the loss leaves of the link, {place}"),
            "almost full: 0.9 or more",
            Over::show(&shares),
            Over::verdict(&shares, |share| theory::above(share, 0.9, || lossy.why())),
        );
    }
}
