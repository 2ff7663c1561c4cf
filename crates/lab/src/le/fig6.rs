//! Figure 6: five detections under random loss, each with three controls.

use airtcp_recovery::Profile;
use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use super::network;
use super::point::Point;
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, Verdict, draw, simulate, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig6",
    what: "Random loss of 0 to 10 %: each detection with AIMD, a fixed window of 32, and Westwood, one flow and ten",
    source: "LE 3.3, Fig. 6a to d",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 900,
    seeds: 10,
    body,
};

/// The paper's five; RACK; LE with its time stamp echoed, and with one cut for one loss.
const DETECTIONS: [&str; 8] =
    ["reno", "newreno", "sack", "fack", "le", "rack", "le:echo", network::ONE_CUT];
const LE: usize = 4;
const ONE_CUT: usize = 7;
/// Per cent of data packets.
const LOSSES: [f64; 6] = [0.0, 1.0, 2.0, 4.0, 7.0, 10.0];

/// One of the paper's four pictures.
#[derive(Clone, Copy)]
struct Panel {
    name: &'static str,
    modern: &'static str,
    title: &'static str,
    control: &'static str,
    flows: usize,
}

const PANELS: [Panel; 4] = [
    Panel { name: "fig6a", modern: "fig6a-modern", title: "AIMD", control: "reno", flows: 1 },
    Panel {
        name: "fig6b",
        modern: "fig6b-modern",
        title: "fixed window of 32",
        control: "fixed:32",
        flows: 1,
    },
    Panel {
        name: "fig6c",
        modern: "fig6c-modern",
        title: "Westwood",
        control: "westwood",
        flows: 1,
    },
    Panel {
        name: "fig6d",
        modern: "fig6d-modern",
        title: "ten flows with Westwood",
        control: "westwood",
        flows: 10,
    },
];

/// What the runs of a point have in common.
#[derive(Serialize)]
struct Case<'a> {
    panel: &'a str,
    profile: &'a str,
    combination: &'a str,
    flows: usize,
    /// Per cent.
    loss: f64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "profile",
        "panel",
        "lost, %",
        "reno, kbit/s",
        "newreno",
        "sack",
        "fack",
        "le",
        "rack",
        "le:echo",
        "le, one cut",
        "time-outs of each",
    ]);
    for profile in [Profile::paper(), Profile::modern()] {
        for panel in PANELS {
            let losses = if run.is_small { &LOSSES[3..4] } else { &LOSSES[..] };
            let mut curves: Vec<Vec<Point>> = Vec::new();
            for detection in DETECTIONS {
                let combination = format!("{detection}/{}", panel.control);
                let points = losses
                    .iter()
                    .map(|loss| point(run, &mut findings, &panel, &combination, &profile, *loss));
                curves.push(points.collect::<Result<_, _>>()?);
            }
            rows(&mut findings, &profile, &panel, losses, &curves);
            judge(&mut findings, &profile, &panel, losses, &curves);
            let is_paper = profile.name == Profile::paper().name;
            let name = if is_paper { panel.name } else { panel.modern };
            findings.picture(name, figure(&profile, &panel, losses, &curves));
        }
    }
    findings.notes.push(network::NOTE.to_owned());
    Ok(findings)
}

fn point(
    run: &Run,
    findings: &mut Findings,
    panel: &Panel,
    combination: &str,
    profile: &Profile,
    loss: f64,
) -> Result<Point, LabError> {
    let combinations = vec![combination; panel.flows];
    let scenario = network::scenario(run, &combinations, profile, loss)?;
    let (panel, profile, flows) = (panel.name, profile.name, panel.flows);
    let results = simulate::seeds(run, |seed| simulate::staggered(&scenario, seed))?;
    Point::of(findings, &Case { panel, profile, combination, flows, loss }, &results)
}

fn rows(
    findings: &mut Findings,
    profile: &Profile,
    panel: &Panel,
    losses: &[f64],
    curves: &[Vec<Point>],
) {
    for (index, loss) in losses.iter().enumerate() {
        let at = |detection: usize| theory::show(&curves[detection][index].goodput, 1e-3, 0);
        let timeouts = curves.iter().map(|curve| format!("{:.0}", curve[index].timeouts));
        let timeouts: Vec<String> = timeouts.collect();
        findings.table.row([
            profile.name.to_owned(),
            panel.title.to_owned(),
            loss.to_string(),
            at(0),
            at(1),
            at(2),
            at(3),
            at(4),
            at(5),
            at(6),
            at(7),
            timeouts.join(" / "),
        ]);
    }
}

/// One detection's goodput over another's at one loss rate.
struct Over {
    loss: f64,
    ratio: Interval,
}

impl Over {
    fn show(all: &[Self]) -> String {
        let one = |over: &Self| format!("{} at {} %", theory::show(&over.ratio, 1.0, 2), over.loss);
        all.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// That of all of them, each judged by itself.
    fn verdict(all: &[Self], judge: impl Fn(&Interval) -> Verdict) -> Verdict {
        Verdict::all(all.iter().map(|over| judge(&over.ratio)))
    }
}

/// All curves of a panel where packets are lost.
struct Lossy<'a> {
    losses: &'a [f64],
    curves: &'a [Vec<Point>],
}

impl Lossy<'_> {
    fn indices(&self) -> impl Iterator<Item = usize> {
        (0..self.losses.len()).filter(|index| self.losses[*index] > 0.0)
    }

    fn rate(&self, detection: usize, index: usize) -> f64 {
        self.curves[detection][index].goodput.mean
    }

    /// The paper's others, the slowest first.
    fn others(&self, index: usize) -> [usize; LE] {
        let mut others: [usize; LE] = std::array::from_fn(|other| other);
        others.sort_by(|a, b| self.rate(*a, index).total_cmp(&self.rate(*b, index)));
        others
    }

    /// `detection` over the other that `pick` takes of them.
    fn over(&self, detection: usize, pick: fn([usize; LE]) -> usize) -> Vec<Over> {
        let over = |index: usize| {
            let [own, other] =
                [detection, pick(self.others(index))].map(|d| &self.curves[d][index].goodput);
            Over { loss: self.losses[index], ratio: theory::ratio(own, other) }
        };
        self.indices().map(over).collect()
    }

    /// What is known of why a claim does not hold.
    fn why(&self) -> String {
        let Some(last) = self.losses.len().checked_sub(1) else { return String::new() };
        let of = |value: fn(&Point) -> f64| {
            let cells =
                self.curves[..=LE].iter().map(|curve| format!("{:.0}", value(&curve[last])));
            cells.collect::<Vec<_>>().join(", ")
        };
        format!(
            "with one cut for one loss LE is over the best {}; at {} % {} have {} time-outs and {} cuts of the window; no other reason \
             is isolated",
            Over::show(&self.over(ONE_CUT, BEST)),
            self.losses[last],
            DETECTIONS[..=LE].join(", "),
            of(|point| point.timeouts),
            of(|point| point.reductions)
        )
    }
}

const BEST: fn([usize; LE]) -> usize = |others| others[LE - 1];
const SLOWEST: fn([usize; LE]) -> usize = |others| others[0];

/// LE 3.3.1 to 3.3.3.
fn judge(
    findings: &mut Findings,
    profile: &Profile,
    panel: &Panel,
    losses: &[f64],
    curves: &[Vec<Point>],
) {
    let lossy = Lossy { losses, curves };
    let place = format!("{}, {} profile", panel.title, profile.name);
    let best = lossy.over(LE, BEST);
    if panel.control == "reno" {
        let slowest = lossy.over(LE, SLOWEST);
        let nearly = |of: &[Over]| {
            Over::verdict(of, |ratio| theory::within(ratio, (0.9, 1.2), || lossy.why()))
        };
        findings.claim(
            format!("goodput of LE over the slowest of the others, {place}"),
            "nearly 1 (0.9 to 1.2, and over the best as well)",
            Over::show(&slowest),
            Verdict::all([nearly(&slowest), nearly(&best)]),
        );
    }
    findings.claim(
        format!("goodput of LE over the best of Reno, NewReno, SACK and FACK, {place}"),
        if panel.control == "reno" { "1 or a little more (1 to 1.2)" } else { "over 1" },
        Over::show(&best),
        Over::verdict(&best, |ratio| match panel.control {
            "reno" => theory::within(ratio, (1.0, 1.2), || lossy.why()),
            _ => theory::above(ratio, 1.0, || lossy.why()),
        }),
    );
    if panel.flows > 1 {
        let share = |index: usize| {
            let carried = network::CAPACITY * (1.0 - losses[index] / 100.0);
            theory::scaled(&curves[LE][index].goodput, 1.0 / carried)
        };
        let shown: Vec<String> = lossy
            .indices()
            .map(|index| format!("{} at {} %", theory::show(&share(index), 1.0, 2), losses[index]))
            .collect();
        findings.claim(
            format!("goodput of LE over what the loss leaves of the link, {place}"),
            "almost full: 0.9 or more",
            shown.join(", "),
            Verdict::all(lossy.indices().map(|i| theory::above(&share(i), 0.9, || lossy.why()))),
        );
    }
}

fn figure(profile: &Profile, panel: &Panel, losses: &[f64], curves: &[Vec<Point>]) -> Figure {
    let series = DETECTIONS.iter().zip(curves).map(|(detection, points)| {
        let points = losses.iter().zip(points);
        let points = points.map(|(loss, point)| draw::interval(*loss, &point.goodput, 1e-3));
        draw::series(*detection, Style::LineAndMarks, points.collect())
    });
    Figure {
        title: format!("{}, {} profile", panel.title, profile.name),
        x: draw::linear("lost packets, %"),
        y: draw::linear("goodput, kbit/s"),
        series: series.collect(),
    }
}
