//! What LE 3.1 says of its Fig. 4.

use airtcp_sim::Interval;

use super::curve::Curve;
use super::fig4::SACK1;
use super::network::ONE_CUT;
use crate::{Findings, Verdict, theory};

pub(super) const NOTES: [&str; 6] = [
    "cwnd is AIMD with a maximum of 32 segments, as ns-2's maxcwnd_; the receiver's window does not limit, because the proof of LE 2.2 \
     has two new segments leave while the first loss is open. A loss halves 32 to 16. The RTT is 40 ms; the paper has no \
     delay and no time-out, so that both 5 and 25 round trips are tried.",
    "In a single RTT: every repair left before the first one's ACK was back, in most of the runs.",
    "`sack1 of ns-2` is ours with the pipe of ns-2's tcp-sack1.cc, which lost segments never leave: when all duplicate ACKs \
     are in it holds k to be in flight, against a window of 16. That, not SACK, is the paper's curve. `sack` is RFC 6675, whose pipe has no \
     lost segments in it.",
    "`le, one cut` is LE with 1.25 SRTT between cuts instead of one: the proof of LE 2.2 has a single cut, and the ACK that decides \
     comes one SRTT after it to within microseconds.",
    "Where all that arrives of a window was in its first half, fack and sack have a time-out: they have halved, more than 16 \
     segments are still to be heard of, and nothing more is sent that could tell. LE waits for three duplicate ACKs, and so sends \
     two new segments before.",
    "rack (RFC 8985) and le:echo are not in the paper. The claims are for the paper profile.",
];

/// As far as a figure of the paper's may be off to hold.
fn is_near(measured: u64, claimed: u64) -> bool {
    measured.abs_diff(claimed) * 10 <= claimed
}

fn is_about(measured: f64, claimed: f64) -> bool {
    (measured / claimed - 1.0).abs() <= 0.1
}

/// What of it holds in one set-up.
pub(super) fn state(findings: &mut Findings, setup: &str, curves: &[Curve]) {
    as_drawn(findings, setup, curves);
    if setup == "modern" {
        return;
    }
    let named = |name: &str| curves.iter().find(|curve| curve.name == name);
    let (Some(reno), Some(newreno), Some(sack), Some(fack), Some(le), Some(ns2), Some(one_cut)) = (
        named("reno"),
        named("newreno"),
        named("sack"),
        named("fack"),
        named("le"),
        named(SACK1),
        named(ONE_CUT),
    ) else {
        return;
    };
    order(findings, setup, [le, fack, sack, newreno, reno], one_cut);
    for curve in [sack, ns2] {
        sack_claims(findings, setup, curve, newreno);
    }
    let why = "repairs in the first round trip are as many as half of the window";
    most(
        findings,
        format!("fack: losses up to which repairs go in a single RTT, {setup}"),
        15,
        fack.single(),
        why,
    );
    for curve in [le, one_cut] {
        le_claims(findings, setup, curve, [fack, one_cut]);
    }
    before_time_out(findings, setup, newreno);
}

fn as_drawn(findings: &mut Findings, setup: &str, curves: &[Curve]) {
    let of = |value: fn(&super::curve::Point) -> u64| -> u64 {
        curves.iter().flat_map(|curve| &curve.points).map(value).sum()
    };
    let (good, runs) = (of(|p| p.as_drawn), of(|p| p.runs));
    findings.claim(
        format!("runs that lost k segments of one window and no repair, {setup}"),
        "all",
        format!("{good} of {runs}"),
        Verdict::of(good == runs, || {
            "a repair left while the window's last packets did".to_owned()
        }),
    );
}

fn order(findings: &mut Findings, setup: &str, claimed: [&Curve; 5], one_cut: &Curve) {
    let all = |_: u64| true;
    let [le, fack, sack, newreno, reno] = claimed;
    let mut state = |what: String, claimed: [&Curve; 5]| {
        let mut sorted = claimed;
        sorted.sort_by(|a, b| a.mean(all).total_cmp(&b.mean(all)));
        let shown = sorted.map(|curve| format!("{} {:.1}", curve.name, curve.mean(all) * 1e3));
        let verdict = Verdict::of(sorted.map(|c| c.name) == claimed.map(|c| c.name), || {
            format!(
                "le cuts a second time when the first repair's ACK is a hair later than SRTT and tells of the rest ({:.1} ms from 19 \
                 losses on, {:.1} with one cut, fack {:.1}), and a time-out of five round trips hardly punishes fack",
                le.mean(|k| k > 18) * 1e3,
                one_cut.mean(|k| k > 18) * 1e3,
                fack.mean(|k| k > 18) * 1e3,
            )
        });
        findings.claim(what, "LE < FACK < SACK < NewReno < Reno", shown.join(" < "), verdict);
    };
    let what = format!("mean over all numbers of losses, ms, {setup}");
    state(what.clone(), claimed);
    state(format!("{what}, LE with one cut"), [one_cut, fack, sack, newreno, reno]);
}

fn sack_claims(findings: &mut Findings, setup: &str, sack: &Curve, newreno: &Curve) {
    let why = if sack.name == SACK1 {
        "the first repair's ACK takes two out of its count, to k - 2, which has to be under 16"
    } else {
        "RFC 6675 takes lost segments out of its pipe, so that half of the window stays open: the paper's limit is that of ns-2's count"
    };
    let name = sack.name;
    let what = format!("{name}: losses up to which no run has an RTO, {setup}");
    most(findings, what, 18, sack.free(), why);
    let what = format!("{name}: losses up to which repairs go in a single RTT, {setup}");
    most(findings, what, 8, sack.single(), why);
    let means = |curve: &Curve| (curve.mean(|k| k <= 18) * 1e3, curve.mean(|k| k > 18) * 1e3);
    let ((few, many), (few_newreno, many_newreno)) = (means(sack), means(newreno));
    findings.claim(
        format!("{name} and newreno up to 18 losses, and from 19 on, ms, {setup}"),
        "sack faster, then slower",
        format!("{few:.0} and {few_newreno:.0}, then {many:.0} and {many_newreno:.0}"),
        Verdict::of(few < few_newreno && many > many_newreno, || why.to_owned()),
    );
}

fn le_claims(findings: &mut Findings, setup: &str, le: &Curve, [fack, one_cut]: [&Curve; 2]) {
    let name = le.name;
    let free = le.free();
    findings.claim(
        format!("{name}: losses up to which no run has an RTO, {setup}"),
        "29",
        free.to_string(),
        Verdict::of(free >= 29, || "more were lost than three duplicate ACKs tell of".to_owned()),
    );
    let (straight, bent) = (le.linearity(29), fack.linearity(29));
    findings.claim(
        format!("a line through the means of {name} up to 29 losses, R², {setup}"),
        "almost linear, fack not",
        format!("{straight:.3}, fack {bent:.3}"),
        Verdict::of(straight >= 0.9 && straight > bent, || {
            let once = one_cut.linearity(29);
            format!("the means rise in steps of a round trip; with one cut it is {once:.3}")
        }),
    );
    let (cuts, once) = (le.reductions(29), one_cut.reductions(29));
    findings.claim(
        format!("{name}: cuts of the window in a recovery from up to 29 losses, {setup}"),
        "1",
        format!("{cuts:.2}"),
        Verdict::of(is_about(cuts, 1.0), || {
            format!(
                "the first repair's ACK comes a hair later than SRTT and tells of the rest; with a quarter more between cuts they are \
                 {once:.2}"
            )
        }),
    );
}

/// Note a.
fn before_time_out(findings: &mut Findings, setup: &str, newreno: &Curve) {
    let repairs = Interval::of(&newreno.repairs());
    let verdict = Verdict::of((repairs.mean - 5.0).abs() < 0.5, || {
        "the timer is restarted by the first partial ACK only, and repairs go one a round trip: their number is that of the round \
         trips in the time-out and one more, as the two set-ups show; 5 would be a time-out of four"
            .to_owned()
    });
    let what = format!("newreno: segments sent again before its RTO, {setup}");
    findings.claim(what, "5", theory::show(&repairs, 1.0, 2), verdict);
}

fn most(findings: &mut Findings, what: String, claimed: u64, measured: u64, why: &str) {
    let verdict = Verdict::of(is_near(measured, claimed), || why.to_owned());
    findings.claim(what, claimed.to_string(), measured.to_string(), verdict);
}
