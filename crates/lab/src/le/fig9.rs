//! Figure 9: LE and FACK with Westwood and with RR on the testbed's path, simulated.

use std::time::Duration;

use airtcp_sim::{FlowSpec, Interval, Scenario, Topology, Wire};
use airtcp_trace::figure::Figure;

use super::together;
use crate::study::{Axis, Fields, Grid, Point, Slice};
use crate::{Experiment, Findings, LabError, Run, Verdict, draw, feed, simulate, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig9",
    what: "SACK, FACK and LE with Westwood and RR, random loss 0 to 10 %",
    source: "LE 5.1 and 5.2, Fig. 9",
    seconds: 140,
    body,
    ..Experiment::STUDY
};

/// Mbit/s: the paper has the round trip, and no rate. It prints 6 Mbit/s at 10 % loss, and 0.8 of a
/// fixed window of ten.
const RATES: [u32; 4] = [6, 7, 8, 10];
/// Per cent of data packets.
const LOSSES: [f64; 5] = [0.0, 1.0, 2.0, 5.0, 10.0];

const BOUND: &str = "le/fixed:10";
const COMBINATIONS: [&str; 6] =
    ["sack/westwood", "fack/westwood", "le/westwood", BOUND, "fack/reno/rr", "le/reno/rr"];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "profile",
        "rate, Mbit/s",
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
    let axes = vec![
        Axis::new("profile", ["paper", "modern"]),
        Axis::new("rate", run.points(&RATES)),
        Axis::new("combination", COMBINATIONS),
        Axis::new("loss", losses.iter().copied()),
    ];
    let grid = Grid::run(run, axes, |point, seed| {
        let result = simulate::once(scenario(point, run.is_small)?, seed)?;
        Ok(together::with(Fields::default(), &result))
    })?;
    grid.record(&mut findings, &["profile", "rate", "combination", "loss"])?;
    for row in grid.all().rows(&["profile", "rate", "loss"]) {
        let each = row.each("combination").map(|cell| cell.show("goodput", 1e-6, 2));
        let timeouts = together::counts(&row, "combination", &COMBINATIONS, "timeouts");
        let place = ["profile", "rate", "loss"].map(|axis| row.text(axis));
        findings.table.add(place.into_iter().chain(each).chain([timeouts.join(" / ")]).collect());
    }
    for part in grid.all().rows(&["profile", "rate"]) {
        judge(&mut findings, &part);
        // The paper's two pictures.
        let profile = if part.text("profile") == "paper" { "" } else { "-modern" };
        let suffix = format!("{profile}-{}mbit", part.text("rate"));
        let (left, right) = COMBINATIONS.split_at(4);
        findings.picture(format!("fig9-westwood{suffix}"), figure("Westwood", &part, left));
        findings.picture(format!("fig9-rr{suffix}"), figure("RR", &part, right));
    }
    findings.note(
        "The paper has real packets between Linux 2.6.17 hosts over a path of 20 ms, and states no rate; here it is 6 \
         to 10 Mbit/s. A transfer takes 20 s.",
    );
    Ok(findings)
}

fn scenario(point: &Point, is_small: bool) -> Result<Scenario, LabError> {
    let link = format!("rate {}mbit delay 10ms limit 100", point.text("rate"));
    let lossy = format!("{link} loss {}% only payload", point.text("loss"));
    let forth = feed::spec(if point.number("loss") > 0.0 { &lossy } else { &link })?;
    let wire = Wire { forth, back: feed::spec(&link)? };
    let flow = FlowSpec {
        profile: point.text("profile").parse().expect("a profile"),
        ..FlowSpec::new(point.text("combination").parse().expect("a name of the registry"))
    };
    Ok(Scenario {
        duration: Duration::from_secs(if is_small { 2 } else { 20 }),
        flows: vec![flow],
        ..Scenario::new("fig9", Topology::Chain { wires: vec![wire] })
    })
}

/// LE 5.2.1 and 5.2.2: what they say of 10 %.
fn judge(findings: &mut Findings, part: &Slice<'_>) {
    let of = |combination: &str| part.at("combination", combination);
    let at_ten = |combination: &str| of(combination).at("loss", 10.0).mean("goodput");
    let [_, fack, le, bound, fack_rr, le_rr] = &COMBINATIONS.map(at_ten);
    let place = format!("10 % lost, {} Mbit/s, {}", part.text("rate"), part.text("profile"));
    let not_isolated =
        "the paper does not state rate and window of its testbed, and the cause was not determined";
    let show = |of: &Interval| theory::show(of, 1e-6, 2);
    let tenth = |of: f64| (of * 0.9, of * 1.1);
    let why = || {
        format!("the window after a reduction is Westwood's estimate of the path; {not_isolated}")
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
    let without_loss = |combination: &str| {
        of(combination).each("loss").next().map_or(0.0, |first| first.mean("goodput").mean / 1e6)
    };
    let no_bound = || {
        format!(
            "a fixed window of 10 is not a bound here: at the lowest loss it has {:.2} Mbit/s, LE with Westwood {:.2}; \
             the paper does not state whether the testbed was slower",
            without_loss(BOUND),
            without_loss("le/westwood")
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
                "with RR only time-outs reduce the window, so that LE's goodput is the capacity of the link; {not_isolated}"
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

fn figure(what: &str, part: &Slice<'_>, shown: &[&str]) -> Figure {
    let lines = shown.iter().map(|combination| {
        let of = part.at("combination", *combination);
        of.line(*combination, "loss", 1e-6, |cell| cell.mean("goodput"))
    });
    Figure {
        title: format!(
            "{what}, {} Mbit/s, round trip of 20 ms, {} profile",
            part.text("rate"),
            part.text("profile")
        ),
        x: draw::linear("lost packets, %"),
        y: draw::linear("goodput, Mbit/s"),
        series: lines.collect(),
    }
}
