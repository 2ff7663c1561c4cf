//! Figure 9: LE and FACK with Westwood and with RR on the testbed's path, simulated.

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::{FlowSpec, Interval, Scenario, Topology, Wire};
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use super::point::Point;
use crate::{
    Experiment, Findings, Ground, Kind, LabError, Run, Verdict, draw, feed, simulate, theory,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig9",
    what: "Random loss of 0 to 10 % and 20 ms: SACK, FACK and LE with Westwood and with RR, and a fixed window of 10",
    source: "LE 5.1 and 5.2, Fig. 9",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 36,
    seeds: 10,
    body,
};

/// The paper has the round trip, and no rate.
const LINK: &str = "rate 10mbit delay 10ms limit 100";
/// Per cent of data packets.
const LOSSES: [f64; 5] = [0.0, 1.0, 2.0, 5.0, 10.0];

const SACK: usize = 0;
const FACK: usize = 1;
const LE: usize = 2;
const BOUND: usize = 3;
const FACK_RR: usize = 4;
const LE_RR: usize = 5;
const COMBINATIONS: [&str; 6] =
    ["sack/westwood", "fack/westwood", "le/westwood", "le/fixed:10", "fack/reno/rr", "le/reno/rr"];
/// The paper's two pictures.
const LEFT: [usize; 4] = [SACK, FACK, LE, BOUND];
const RIGHT: [usize; 2] = [FACK_RR, LE_RR];

/// What the runs of a point have in common.
#[derive(Serialize)]
struct Case<'a> {
    profile: &'a str,
    combination: &'a str,
    /// Per cent.
    loss: f64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "profile",
        "lost, %",
        "sack/westwood, Mbit/s",
        "fack/westwood",
        "le/westwood",
        "le/fixed:10",
        "fack/reno/rr",
        "le/reno/rr",
        "time-outs of each",
    ]);
    let losses = if run.is_small { &LOSSES[4..] } else { &LOSSES[..] };
    for profile in [Profile::paper(), Profile::modern()] {
        let mut curves: Vec<Vec<Point>> = Vec::new();
        for combination in COMBINATIONS {
            let points =
                losses.iter().map(|loss| point(run, &mut findings, combination, &profile, *loss));
            curves.push(points.collect::<Result<_, _>>()?);
        }
        for (index, loss) in losses.iter().enumerate() {
            let at = |curve: usize| theory::show(&curves[curve][index].goodput, 1e-6, 2);
            let timeouts: Vec<String> =
                curves.iter().map(|curve| format!("{:.0}", curve[index].timeouts)).collect();
            let profile = profile.name.to_owned();
            let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(at);
            findings.table.row([profile, loss.to_string(), a, b, c, d, e, f, timeouts.join(" / ")]);
        }
        judge(&mut findings, profile.name, &curves);
        let is_paper = profile.name == Profile::paper().name;
        let [left, right] = if is_paper {
            ["fig9-westwood", "fig9-rr"]
        } else {
            ["fig9-westwood-modern", "fig9-rr-modern"]
        };
        findings.picture(left, figure("Westwood", &profile, losses, &curves, &LEFT));
        findings.picture(right, figure("RR", &profile, losses, &curves, &RIGHT));
    }
    findings.notes.push(
        "The paper's are real packets between Linux 2.6.17 hosts, over a path of 20 ms; it has no rate, and here it is \
         10 Mbit/s. A transfer is 20 s."
            .to_owned(),
    );
    Ok(findings)
}

fn point(
    run: &Run,
    findings: &mut Findings,
    combination: &str,
    profile: &Profile,
    loss: f64,
) -> Result<Point, LabError> {
    let lossy = format!("{LINK} loss {loss}% only payload");
    let forth = feed::spec(if loss > 0.0 { &lossy } else { LINK })?;
    let wire = Wire { forth, back: feed::spec(LINK)? };
    let flow = FlowSpec {
        profile: profile.clone(),
        ..FlowSpec::new(combination.parse().expect("a name of the registry"))
    };
    let scenario = Scenario {
        duration: Duration::from_secs(if run.is_small { 2 } else { 20 }),
        flows: vec![flow],
        ..Scenario::new("fig9", Topology::Chain { wires: vec![wire] })
    };
    let case = Case { profile: profile.name, combination, loss };
    Point::of(findings, &case, &simulate::seeds(run, |_| scenario.clone())?)
}

/// LE 5.2.1 and 5.2.2: what they say of 10 %.
fn judge(findings: &mut Findings, profile: &str, curves: &[Vec<Point>]) {
    let at_ten = |curve: usize| curves[curve].last().map(|point| &point.goodput);
    let (Some(fack), Some(le), Some(bound), Some(fack_rr), Some(le_rr)) =
        (at_ten(FACK), at_ten(LE), at_ten(BOUND), at_ten(FACK_RR), at_ten(LE_RR))
    else {
        return;
    };
    let place = format!("10 % lost, {profile}");
    let not_isolated =
        "what the testbed's rate and window were is not in the paper, and no reason is isolated";
    let show = |of: &Interval| theory::show(of, 1e-6, 2);
    let tenth = |of: f64| (of * 0.9, of * 1.1);
    let why = || {
        format!("the window after a cut is what Westwood takes the path to carry; {not_isolated}")
    };
    findings.claim(
        format!("LE and FACK with Westwood, Mbit/s, {place}"),
        "over 4 and about 3.5",
        format!("{} and {}", show(le), show(fack)),
        Verdict::all([
            theory::above(&mbit(le), 4.0, why),
            theory::within(&mbit(fack), tenth(3.5), why),
        ]),
    );
    let over = theory::ratio(le, fack);
    findings.claim(
        format!("LE over FACK with Westwood, {place}"),
        "over 1",
        theory::show(&over, 1.0, 2),
        theory::above(&over, 1.0, || not_isolated.to_owned()),
    );
    let share = theory::ratio(le, bound);
    let without_loss = |curve: usize| curves[curve].first().map_or(0.0, |p| p.goodput.mean / 1e6);
    let no_bound = || {
        format!(
            "a fixed window of 10 is no bound here: where least is lost it gives {:.2} Mbit/s, LE with Westwood {:.2}; \
             whether the testbed was slower is not in the paper",
            without_loss(BOUND),
            without_loss(LE)
        )
    };
    findings.claim(
        format!("LE with Westwood over LE with a fixed window of 10, {place}"),
        "almost 0.8",
        theory::show(&share, 1.0, 2),
        theory::within(&share, tenth(0.8), no_bound),
    );
    findings.claim(
        format!("LE with RR, Mbit/s, {place}"),
        "6",
        show(le_rr),
        theory::within(&mbit(le_rr), tenth(6.0), || {
            format!(
                "with RR the window falls by time-outs only, so that LE's is what the link takes; {not_isolated}"
            )
        }),
    );
    let over = theory::ratio(le_rr, fack_rr);
    findings.claim(
        format!("LE over FACK with RR, {place}"),
        "1.5",
        theory::show(&over, 1.0, 2),
        theory::within(&over, tenth(1.5), || not_isolated.to_owned()),
    );
}

fn mbit(of: &Interval) -> Interval {
    theory::scaled(of, 1e-6)
}

fn figure(
    what: &str,
    profile: &Profile,
    losses: &[f64],
    curves: &[Vec<Point>],
    shown: &[usize],
) -> Figure {
    let series = shown.iter().map(|curve| {
        let points = losses.iter().zip(&curves[*curve]);
        let points = points.map(|(loss, point)| draw::interval(*loss, &point.goodput, 1e-6));
        draw::series(COMBINATIONS[*curve], Style::LineAndMarks, points.collect())
    });
    Figure {
        title: format!("{what}, round trip of 20 ms, {} profile", profile.name),
        x: draw::linear("lost packets, %"),
        y: draw::linear("goodput, Mbit/s"),
        series: series.collect(),
    }
}
