//! Figure 9: LE and FACK with Westwood and with RR on the testbed's path, simulated.

use super::together;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig9",
    what: "SACK, FACK and LE with Westwood and RR, random loss 0 to 10 %",
    source: "LE 5.1 and 5.2, Fig. 9",
    seconds: 140,
    body,
    ..Experiment::STUDY
};

/// The rates in Mbit/s: the paper states the round-trip time, but no rate. It prints 6 Mbit/s at 10
/// % loss, and 0.8 of a fixed window of ten.
const RATES: [u32; 4] = [6, 7, 8, 10];
/// The per cent of data packets lost.
const LOSSES: [f64; 5] = [0.0, 1.0, 2.0, 5.0, 10.0];

const COMBINATIONS: [&str; 6] =
    ["sack/westwood", "fack/westwood", "le/westwood", "le/fixed:10", "fack/reno/rr", "le/reno/rr"];

const CAUSE: &str =
    "the paper does not state rate and window of its testbed, and the cause was not determined";

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | rate, Mbit/s | lost, % | sack/westwood, Mbit/s | fack/westwood | le/westwood | \
         le/fixed:10 | fack/reno/rr | le/reno/rr | time-outs of each",
    );
    let axes = vec![
        Axis::new("profile", ["paper", "modern"]),
        Axis::new("rate", run.points(&RATES)),
        Axis::new("combination", COMBINATIONS),
        Axis::new("loss", LOSSES.into_iter().skip(if run.is_small { 4 } else { 0 })),
    ];
    let duration = Duration::from_secs(if run.is_small { 2 } else { 20 });
    let grid = Grid::run(run, axes, |point, seed| {
        let link = format!("rate {}mbit delay 10ms limit 100", point.text("rate"));
        let wire = feed::lossy(&link, point.number("loss"))?;
        let flow = simulate::flow(&point.text("combination"), point.profile());
        let scenario = Scenario { duration, ..simulate::over("fig9", wire, flow) };
        Ok(together::with(Fields::default(), &simulate::once(scenario, seed)?))
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
        let (rate, profile) = (part.text("rate"), part.text("profile"));
        let suffix = if profile == "paper" { "" } else { "-modern" };
        for (what, shown) in [("Westwood", &COMBINATIONS[..4]), ("RR", &COMBINATIONS[4..])] {
            let title = format!("{what}, {rate} Mbit/s, round trip of 20 ms, {profile} profile");
            let drawn = together::figure(title, &part, "combination", shown, ("Mbit/s", 1e-6));
            findings.picture(format!("fig9-{}{suffix}-{rate}mbit", what.to_lowercase()), drawn);
        }
    }
    findings.note(
        "The paper has real packets between Linux 2.6.17 hosts over a path of 20 ms, and states no rate; here it is 6 \
         to 10 Mbit/s. A transfer takes 20 s.",
    );
    Ok(findings)
}

/// The claims of LE 5.2.1 and 5.2.2 about 10 % loss.
fn judge(findings: &mut Findings, part: &Slice<'_>) {
    let of = |combination: &str| part.at("combination", combination);
    let at_ten = |combination: &str| of(combination).at("loss", 10.0).mean("goodput");
    let [_, fack, le, bound, fack_rr, le_rr] = &COMBINATIONS.map(at_ten);
    let place = format!("10 % lost, {} Mbit/s, {}", part.text("rate"), part.text("profile"));
    let [fack_mbit, le_mbit, le_rr_mbit] = [fack, le, le_rr].map(|of| theory::scaled(of, 1e-6));
    let cause = || CAUSE.to_owned();
    let tenth = |of: f64| Bound::Within(of * 0.9, of * 1.1);
    let why =
        || format!("the window after a reduction is Westwood's estimate of the path; {CAUSE}");
    let verdicts = [Bound::Above(4.0).verdict(&le_mbit, why), tenth(3.5).verdict(&fack_mbit, why)];
    let shown = [le_mbit, fack_mbit].map(|of| theory::show(&of, 1.0, 2)).join(" and ");
    let what = format!("LE and FACK with Westwood, Mbit/s, {place}");
    findings.claim(what, "over 4 and about 3.5", shown, Verdict::all(verdicts));
    let what = format!("LE over FACK with Westwood, {place}");
    findings.mean(what, "over 1", (&theory::ratio(le, fack), 2), Bound::Above(1.0), cause);
    let without_loss = |combination: &str| {
        of(combination).each("loss").next().map_or(0.0, |first| first.mean("goodput").mean / 1e6)
    };
    let what = format!("LE with Westwood over LE with a fixed window of 10, {place}");
    findings.mean(what, "almost 0.8", (&theory::ratio(le, bound), 2), tenth(0.8), || {
        format!(
            "a fixed window of 10 is not a bound here: at the lowest loss it has {:.2} Mbit/s, LE with Westwood {:.2}; \
             the paper does not state whether the testbed was slower",
            without_loss("le/fixed:10"),
            without_loss("le/westwood")
        )
    });
    let what = format!("LE with RR, Mbit/s, {place}");
    findings.mean(what, "6", (&le_rr_mbit, 2), tenth(6.0), || {
        format!(
            "with RR only time-outs reduce the window, so that LE's goodput is the capacity of the link; {CAUSE}"
        )
    });
    let (what, over) = (format!("LE over FACK with RR, {place}"), theory::ratio(le_rr, fack_rr));
    findings.mean(what, "1.5", (&over, 2), tenth(1.5), cause);
}
