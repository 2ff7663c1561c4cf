//! Figure 9: LE and FACK with Westwood and with RR on the testbed's path, simulated.

use super::controls::{self, LINUX};
use super::testbed::{self, Stated};
use super::together;
use crate::paper::LINUX_2_6;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig9",
    what: "SACK, FACK and LE with Westwood and RR, random loss 0 to 10 %",
    source: "LE 5.1 and 5.2, Fig. 9",
    seconds: 210,
    body,
    ..Experiment::STUDY
};

/// The rates in Mbit/s: the paper states the round-trip time, but no rate. It prints 6 Mbit/s at 10
/// % loss, and 0.8 of a fixed window of ten.
const RATES: [u32; 3] = [6, 7, 8];
/// The per cent of data packets lost.
const LOSSES: [f64; 5] = [0.0, 1.0, 2.0, 5.0, 10.0];

/// The forms of Westwood; the first is what the testbed's Linux names Westwood.
fn forms() -> [String; 3] {
    ["westwood-plus".to_owned(), format!("westwood-plus{LINUX}"), "westwood".to_owned()]
}

fn combinations() -> Vec<String> {
    let of = |form: String| ["sack", "fack", "le"].map(|detection| format!("{detection}/{form}"));
    let others = [testbed::FIXED, testbed::FACK_RR, testbed::LE_RR].map(str::to_owned);
    forms().into_iter().flat_map(of).chain(others).collect()
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new("profile | rate, Mbit/s | sender | lost, % | goodput, Mbit/s | time-outs");
    let combinations = combinations();
    let names = ["profile", "rate", "combination", "loss"];
    let axes = vec![
        Axis::new("profile", [LINUX_2_6, "modern"]),
        Axis::new("rate", run.points(&RATES)),
        Axis::new("combination", combinations.iter().map(String::as_str)),
        Axis::new("loss", LOSSES.into_iter().skip(if run.is_small { 4 } else { 0 })),
    ];
    let duration = Duration::from_secs(if run.is_small { 2 } else { 20 });
    let grid = Grid::run(run, axes, |point, seed| {
        let wire = feed::lossy(&testbed::link(&point.text("rate")), point.number("loss"))?;
        let sender = controls::combine(&point.text("combination")).into();
        let flow = FlowSpec { profile: point.profile(), ..FlowSpec::new(sender) };
        let scenario = Scenario { duration, ..simulate::over("fig9", wire, flow) };
        Ok(together::with(Fields::default(), &simulate::once(scenario, seed)?))
    })?;
    grid.record(&mut findings, &names)?;
    findings.rows(&grid, &names, &[("goodput", 1e-6, 2), ("timeouts", 1.0, 0)]);
    for part in grid.all().each("profile") {
        let is_paper = part.text("profile") == LINUX_2_6;
        findings.beside(!is_paper, |findings| judge(findings, &part));
        let rates = if is_paper { part.each("rate").collect() } else { Vec::new() };
        for (rate, (what, shown)) in rates.iter().flat_map(|rate| {
            [("westwood", &combinations[..10]), ("rr", &combinations[10..])].map(|of| (rate, of))
        }) {
            let mbit = rate.text("rate");
            let title =
                format!("Fig. 9, {what}: {mbit} Mbit/s, round trip of 20 ms, {LINUX_2_6} profile");
            let shown: Vec<_> = shown.iter().map(String::as_str).collect();
            let drawn = together::figure(title, rate, "combination", &shown, ("Mbit/s", 1e-6));
            findings.picture(format!("fig9-{what}-{mbit}mbit"), drawn);
        }
    }
    findings.note(
        "The paper has real packets between Linux 2.6.17 hosts over a path of 20 ms, and states no rate. The profile linux-2.6 is that \
         kernel, without its rate halving. Of 6, 7 and 8 Mbit/s the one is judged at which LE with RR comes closest to the paper's 6 Mbit/s at 10 % loss, so that figure is no claim. A \
         transfer takes 20 s.",
    );
    findings.note(
        "`westwood-plus of Linux` differs from westwood-plus in when the window is set: it is halved when recovery begins, and set to \
         the estimate when recovery ends, as in Linux's module. Ours set it to the estimate at once, as both papers on Westwood do. \
         Other differences of the module are not in this form.",
    );
    Ok(findings)
}

/// The claims of LE 5.2 about 10 % loss, at the rate at which LE with RR is closest to the paper's.
fn judge(findings: &mut Findings, part: &Slice<'_>) {
    let at_ten = |rate: &Slice<'_>, combination: &str| {
        let of = rate.at("combination", combination).at("loss", 10.0);
        theory::scaled(&of.mean("goodput"), 1e-6)
    };
    let rates: Vec<_> = part.each("rate").collect();
    let off = |rate: &Slice<'_>| (at_ten(rate, testbed::LE_RR).mean - 6.0).abs();
    let Some(best) = rates.iter().min_by(|a, b| off(a).total_cmp(&off(b))) else { return };
    let place = format!("10 % lost, {} Mbit/s, {}", best.text("rate"), part.text("profile"));
    let state = |findings: &mut Findings, stated: &Stated| {
        let figure = |rate: &Slice<'_>| {
            stated.figure(|combination| Some(at_ten(rate, combination))).unwrap_or_default()
        };
        let why = || {
            let shown = |rate: &Slice<'_>| {
                format!("{} at {} Mbit/s", theory::show(&figure(rate), 1.0, 2), rate.text("rate"))
            };
            let shown: Vec<_> = rates.iter().map(shown).collect();
            format!(
                "{}; the paper states neither rate nor window of its testbed, and the cause was not determined",
                shown.join(", ")
            )
        };
        let what = format!("{}, {place}", stated.what());
        findings.mean(what, stated.claimed, (&figure(best), 2), stated.bound, why);
    };
    for (form, is_beside) in forms().into_iter().zip([false, true, true]) {
        findings.beside(is_beside, |findings| {
            testbed::with_westwood(&form).iter().for_each(|stated| state(findings, stated));
        });
    }
    state(findings, &testbed::with_rr());
}
