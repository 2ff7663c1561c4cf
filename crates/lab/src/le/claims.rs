//! The claims of LE 3.1 on its Fig. 4.

use airtcp_sim::Interval;

use super::curve::{Curve, Point};
use super::fig4::SACK1;
use crate::{Findings, Verdict, theory};

/// The names of the set-ups that claims distinguish. The first is the paper's, as far as the paper
/// states it.
pub(super) const PAPERS: &str = "ns-2.35, RTO 200 ms";
pub(super) const FOUR_TRIPS: &str = "ns-2.35, RTO 200 ms, RTT 50 ms";
pub(super) const MODERN: &str = "modern";

pub(super) const NOTES: [&str; 7] = [
    "RTO, behind a time: the mean number of time-outs in a run.",
    "cwnd is AIMD with a maximum of 32 segments, as ns-2's maxcwnd_; the receiver's window is not the limit, because the proof of LE 2.2 \
     sends two new segments while the first loss is outstanding. A loss halves 32 to 16. The paper has the senders of ns-2, \
     whose minimum time-out is 200 ms (1 s until 2004), and states no delay: the time-out is 5 or 25 round trips of 40 ms, or 4 of \
     50 ms. Note a, 5 segments before NewReno's time-out, implies four round trips, and is judged there.",
    "Repairs in a single RTT: all were sent before the ACK of the first one arrived, in most of the runs.",
    "`sack1 of ns-2` is our sender with the pipe of ns-2's tcp-sack1.cc, which counts lost segments as in flight: after all \
     duplicate ACKs it counts k segments, against a window of 16. It is the `sack` of the profile ns-2.35, and the paper's. `sack` is \
     RFC 6675, whose pipe excludes lost segments: its claims are beside the paper.",
    "`le, own timer` is LE whose first repair does not restart the timer, as in LE 2.2.4. It makes no difference here, because the \
     time-out is four round trips or more.",
    "If only segments of the first half of the window arrive, fack and sack have a time-out: they have halved the window, more than \
     16 segments are outstanding, and nothing more is sent that could trigger ACKs. LE waits for three duplicate ACKs, and so \
     sends two new segments before.",
    "rack (RFC 8985) is not in the paper. The paper orders its senders overall: that LE is faster than FACK after each number of losses \
     is beside it.",
];

/// Returns whether a measured figure is close enough to the paper's to hold.
fn is_near(measured: u64, claimed: u64) -> bool {
    measured.abs_diff(claimed) * 10 <= claimed
}

pub(super) fn named<'a>(curves: &'a [Curve], name: &str) -> Option<&'a Curve> {
    curves.iter().find(|curve| curve.name == name)
}

/// Adds the claims of one set-up.
pub(super) fn state(findings: &mut Findings, setup: &str, curves: &[Curve]) {
    findings.beside(setup != PAPERS, |findings| {
        judge(findings, setup, curves);
    });
    // The paper states no delay. The 5 repairs of its note a imply a time-out of four round trips.
    if let (FOUR_TRIPS, Some(newreno)) = (setup, named(curves, "newreno")) {
        before_time_out(findings, setup, newreno);
    }
}

fn judge(findings: &mut Findings, setup: &str, curves: &[Curve]) {
    as_drawn(findings, setup, curves);
    let named = |name: &str| named(curves, name);
    let (Some(reno), Some(newreno), Some(sack), Some(fack), Some(le), Some(ns2)) =
        (named("reno"), named("newreno"), named("sack"), named("fack"), named("le"), named(SACK1))
    else {
        return;
    };
    findings.beside(true, |findings| each(findings, setup, le, fack));
    if setup == MODERN {
        return;
    }
    // The paper's SACK is that of ns-2.
    for (curve, is_beside) in [(ns2, false), (sack, true)] {
        findings.beside(is_beside, |findings| {
            order(findings, setup, [le, fack, curve, newreno, reno]);
            sack_claims(findings, setup, curve, newreno);
        });
    }
    let why = "guess: repairs in the first round trip are as many as half of the window";
    most(
        findings,
        format!("fack: losses up to which repairs go in a single RTT, {setup}"),
        15,
        fack.single(),
        why,
    );
    le_claims(findings, setup, le, fack);
}

fn as_drawn(findings: &mut Findings, setup: &str, curves: &[Curve]) {
    let of = |value: fn(&super::curve::Point) -> u64| -> u64 {
        curves.iter().flat_map(|curve| &curve.points).map(value).sum()
    };
    let (good, runs) = (of(|p| p.as_drawn), of(|p| p.runs));
    // Of our set-up, which loses what the paper's does.
    findings.claim_beside(
        format!("runs that lost k segments of one window and no repair, {setup}"),
        "all",
        format!("{good} of {runs}"),
        Verdict::of(good == runs, theory::unknown),
    );
}

/// The numbers of losses from which ns-2's SACK recovers without a time-out, and those from which
/// it does not.
const FEW: fn(u64) -> bool = |lost| lost <= 18;
const MANY: fn(u64) -> bool = |lost| lost > 18;

fn order(findings: &mut Findings, setup: &str, claimed: [&Curve; 5]) {
    let all = |_: u64| true;
    let mean = |curve: &Curve, counts: fn(u64) -> bool| Interval::of(&curve.times(counts));
    let verdicts = claimed.windows(2).map(|of| {
        theory::less(&of[0].times(all), &of[1].times(all), || {
            let show = |curve: &Curve, counts| theory::show(&mean(curve, counts), 1.0, 1);
            let each = |curve: &&Curve| {
                format!("{} has {}, then {}", curve.name, show(curve, FEW), show(curve, MANY))
            };
            let [one, other] = [&of[0], &of[1]].map(each);
            format!("up to 18 losses, then from 19 on: {one} ms; {other} ms")
        })
    });
    let verdict = Verdict::all(verdicts);
    let mut sorted = claimed.map(|curve| (curve.name, mean(curve, all)));
    sorted.sort_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
    let shown = sorted.map(|(name, mean)| format!("{name} {}", theory::show(&mean, 1.0, 1)));
    let what = format!("mean over all numbers of losses, ms, with {}, {setup}", claimed[2].name);
    findings.claim(what, "LE < FACK < SACK < NewReno < Reno", shown.join(" < "), verdict);
}

/// Compares LE with FACK after each number of losses; LE 3.1.1 compares them overall.
fn each(findings: &mut Findings, setup: &str, le: &Curve, fack: &Curve) {
    let by = |(le, fack): (&Point, &Point)| (le.lost, theory::scaled(&le.less(fack), 1e3));
    let all: Vec<_> = le.points.iter().zip(&fack.points).map(by).collect();
    let list = |what: &str, counts: fn(f64, f64) -> bool| {
        let of = all.iter().filter(|(_, by)| counts(by.bounds().0, by.bounds().1));
        let (lost, ms): (Vec<_>, Vec<_>) = of.map(|(lost, by)| (*lost, by.mean)).unzip();
        let least = ms.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let by =
            if ms.is_empty() { String::new() } else { format!(" by {least:+.1} to {most:+.1}") };
        format!("{what} at {} numbers of losses ({}){by}", lost.len(), spans(&lost))
    };
    let shown = [
        list("faster", |_, high| high < 0.0),
        list("undecided", |low, high| low <= 0.0 && high >= 0.0),
        list("slower", |low, _| low > 0.0),
    ];
    let verdicts = all.iter().map(|(_, by)| {
        theory::below(by, 0.0, || {
            "guess: fack finds a loss by the distance of the highest SACK block, where le waits for three later transmissions"
                .to_owned()
        })
    });
    let verdict = Verdict::all(verdicts);
    let what = format!("time of le less that of fack for each number of losses, ms, {setup}");
    findings.claim(what, "below 0 for each", shown.join("; "), verdict);
}

/// Formats ascending numbers as spans, such as `1 to 3, 7`.
fn spans(numbers: &[u64]) -> String {
    let follows = |a: &u64, b: &u64| a + 1 == *b;
    let span = |of: &[u64]| match of {
        [first, .., last] => format!("{first} to {last}"),
        [one] => one.to_string(),
        [] => String::new(),
    };
    numbers.chunk_by(follows).map(span).collect::<Vec<_>>().join(", ")
}

fn sack_claims(findings: &mut Findings, setup: &str, sack: &Curve, newreno: &Curve) {
    let why = if sack.name == SACK1 {
        "the first repair's ACK takes two out of its count, to k - 2, which has to be under 16"
    } else {
        "RFC 6675 excludes lost segments from its pipe, so that half of the window stays open: the paper's limit results from ns-2's count"
    };
    let name = sack.name;
    let what = format!("{name}: losses up to which no run has an RTO, {setup}");
    most(findings, what, 18, sack.free(), why);
    let what = format!("{name}: losses up to which repairs go in a single RTT, {setup}");
    most(findings, what, 8, sack.single(), why);
    let means = |counts: fn(u64) -> bool| {
        [sack, newreno]
            .map(|curve| theory::show(&Interval::of(&curve.times(counts)), 1.0, 0))
            .join(" and ")
    };
    findings.claim(
        format!("{name} and newreno up to 18 losses, and from 19 on, ms, {setup}"),
        "sack faster, then slower",
        format!("{}, then {}", means(FEW), means(MANY)),
        Verdict::all([
            theory::less(&sack.times(FEW), &newreno.times(FEW), || why.to_owned()),
            theory::less(&newreno.times(MANY), &sack.times(MANY), || why.to_owned()),
        ]),
    );
}

fn le_claims(findings: &mut Findings, setup: &str, le: &Curve, fack: &Curve) {
    let free = le.free();
    findings.claim(
        format!("le: losses up to which no run has an RTO, {setup}"),
        "29",
        free.to_string(),
        Verdict::of(free >= 29, || {
            "guess: more were lost than three duplicate ACKs reveal".to_owned()
        }),
    );
    let line = |of: &dyn Fn(Option<usize>) -> f64| theory::jackknife(le.seeds(), of);
    let [straight, bent] = [le, fack].map(|curve| line(&|left_out| curve.linearity(29, left_out)));
    let over = line(&|left_out| le.linearity(29, left_out) - fack.linearity(29, left_out));
    let shown = [straight, bent, over].map(|of| theory::show(&of, 1.0, 3));
    let stairs = || "guess: the means of le rise in steps of a round trip".to_owned();
    // "Almost linear", where FACK's duration increases exponentially. The paper has no figure.
    findings.claim(
        format!("R² of a line through the means of le up to 29 losses, {setup}"),
        "almost linear (above 0.9), fack not (above that of fack)",
        format!("{}, fack {}, difference {}", shown[0], shown[1], shown[2]),
        Verdict::all([theory::above(&straight, 0.9, stairs), theory::above(&over, 0.0, stairs)]),
    );
    let cuts = le.reductions(29);
    findings.claim(
        format!("le: cuts of the window in a recovery from up to 29 losses, {setup}"),
        "1",
        theory::show(&cuts, 1.0, 2),
        theory::within(&cuts, (0.9, 1.1), theory::unknown),
    );
}

/// Judges note a, in the set-up whose time-out is four round trips.
fn before_time_out(findings: &mut Findings, setup: &str, newreno: &Curve) {
    let repairs = newreno.repairs();
    let shown = theory::show(&Interval::of(&repairs), 1.0, 2);
    let (shown, verdict) = match repairs.is_empty() {
        true => ("no RTO".to_owned(), Verdict::DoesNotHold("no run had an RTO".to_owned())),
        false => (shown, theory::within(&Interval::of(&repairs), (4.5, 5.5), theory::unknown)),
    };
    findings.claim(
        format!("newreno: segments sent again before its RTO, {setup}"),
        "5",
        shown,
        verdict,
    );
}

fn most(findings: &mut Findings, what: String, claimed: u64, measured: u64, why: &str) {
    let verdict = Verdict::of(is_near(measured, claimed), || why.to_owned());
    findings.claim(what, claimed.to_string(), measured.to_string(), verdict);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Sample, fields};

    fn newreno(repairs: &[u64]) -> Curve {
        let run = |repairs: &u64| {
            fields! {
                as_drawn: true,
                time: 1.0,
                timeouts: u64::from(*repairs > 0),
                reductions: 1u64,
                repairs: *repairs,
                single: false,
            }
        };
        let sample = Sample(repairs.iter().map(run).collect());
        Curve { name: "newreno", points: vec![Point::of(20, &sample)] }
    }

    #[test]
    fn the_repairs_before_a_time_out_are_judged_where_it_is_four_round_trips() {
        let verdicts = |setup: &str, repairs: &[u64]| -> Vec<_> {
            let mut findings = Findings::new("");
            state(&mut findings, setup, &[newreno(repairs)]);
            let judged = findings.claims.iter().filter(|claim| claim.claimed == "5");
            judged.map(|claim| (claim.verdict.name(), claim.is_beside)).collect()
        };
        assert_eq!(verdicts(FOUR_TRIPS, &[5, 5, 5]), [("holds", false)]);
        assert_eq!(verdicts(FOUR_TRIPS, &[6, 6, 6]), [("does not hold", false)]);
        assert_eq!(verdicts(FOUR_TRIPS, &[0, 0, 0]), [("does not hold", false)]);
        assert_eq!(verdicts(FOUR_TRIPS, &[5]), [("not comparable", false)]);
        assert_eq!(verdicts(PAPERS, &[6, 6, 6]), []);
    }
}
