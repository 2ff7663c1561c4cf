//! Figs. 27 to 31 of TCP-ECN with real packets: ten seconds from Linux without SACK and timestamps,
//! with low and high wireless error.

use std::sync::{Arc, Mutex, PoisonError};

use airtcp_basestation::Policy;
use airtcp_link::Arq;
use airtcp_testbed::dumbbell::Dumbbell;
use airtcp_types::Observer;

use super::real::{BARE_WARM_UP, Case, POLICIES, Point, ROUGH, SMALL};
use super::real_path::{Mobile, in_time, lateness, measure, side_by_side, timely};
use super::sequence::Sequence;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig31",
    what: "Real packets from Linux cubic without SACK, with and without TCP-ECN",
    source: "TCP-ECN 8.3.3, Fig. 27 to 31",
    ground: Ground::Real,
    seconds: 540,
    seeds: 12,
    body,
    ..Experiment::STUDY
};

/// The measurement: as long as the paper's runs, from the first byte on.
const TIMES: (Duration, Duration) = (Duration::ZERO, Duration::from_secs(10));
const SENDER: &str = "cubic";
/// TCP-ECN's throughput divided by that of plain TCP at high error.
const PAPER: f64 = 2.19;
/// The range of the paper's "very little difference".
const ALIKE: (f64, f64) = (0.9, 1.1);
/// The share of the bound below which plain TCP has little of it.
const LITTLE: f64 = 0.7;
/// The share of the bound that TCP-ECN has if plain TCP has at most [`LITTLE`].
const MOST: f64 = 0.9;
/// The time-sequence graphs, of the first seed, on the radios without errors and with many.
const LOW: (&str, Arq) = ("error 0%", Arq::MacLink);
const HIGH: (&str, Arq) = ROUGH[0];
const GRAPHS: [(&str, (&str, Arq), Policy); 4] = [
    ("fig27", LOW, Policy::Plain),
    ("fig28", LOW, Policy::TcpEcn),
    ("fig29", HIGH, Policy::Plain),
    ("fig30", HIGH, Policy::TcpEcn),
];

fn body(run: &Run) -> Result<Findings, LabError> {
    // The paper only says low and high.
    let radios = std::iter::once(LOW).chain(ROUGH);
    let radios: Vec<_> = radios.take(if run.is_small { 1 } else { 1 + ROUGH.len() }).collect();
    let mut findings = Findings::new(
        "radio | arq | policy | counted from | goodput, Mbit/s | over the bound | sent again | time-outs | \
         lost, % | overtaken, %",
    );
    let begin = if run.is_small { SMALL } else { TIMES };
    let first = watched(run, &radios, begin, &mut findings)?;
    // The same measurement after slow start.
    let later = cases(if run.is_small { &[][..] } else { &ROUGH });
    let later = measure(run, &mut findings, &later, Case::place, |case, seed| {
        case.run(seed, (BARE_WARM_UP, TIMES.1), None)
    })?;
    let mut series = POLICIES.map(|policy| (policy, Vec::new()));
    for (number, of_radio) in (1u32..).zip(first.chunks(POLICIES.len())) {
        for (of, (policy, points)) in of_radio.iter().zip(&mut series) {
            row(&mut findings, of, *policy, begin.0);
            let goodput = timely(of).mean("goodput");
            if goodput.n > 0 {
                points.push(draw::interval(f64::from(number), &goodput, 1e-6));
            }
        }
        let [plain, _, ours] = of_radio else { continue };
        // The paper's sender is Linux 2.6.12, and its radio is not described.
        findings.beside(true, |findings| claim(findings, number == 1, plain, ours));
    }
    for of_radio in later.chunks(POLICIES.len()) {
        for (of, policy) in of_radio.iter().zip(POLICIES) {
            row(&mut findings, of, policy, BARE_WARM_UP);
        }
        let [plain, _, ours] = of_radio else { continue };
        findings.beside(true, |findings| {
            claim_most(findings, "once slow start is over", plain, ours);
        });
    }
    let names: Vec<_> = radios.iter().map(|(radio, arq)| format!("{radio}, {arq}")).collect();
    let series =
        series.map(|(policy, points)| draw::series(policy.name(), Style::LineAndMarks, points));
    let title = "Linux without SACK and time stamps (TCP-ECN Fig. 31)";
    findings.plot("fig31", title, (draw::linear(&names.join("; ")), draw::goodput()), series);
    let late = |of: &Sample| of.runs().count() - timely(of).runs().count();
    let late: usize = first.iter().chain(&later).map(late).sum();
    findings.note(format!(
        "10 s from the first byte, slow start included, as the paper's iperf, and once more from 10 s on; 20 ms of wire each way. Our mobile withholds \
         duplicate ACKs with tcp-ecn. Lost and overtaken: packets on the radio, after all tries. Fig. 27 to 30 are of the first \
         seed, from the sender's SYN on. {late} runs were late, and their goodput does not count."
    ));
    Ok(findings)
}

fn cases(radios: &[(&str, Arq)]) -> Vec<Case> {
    let case = |(radio, arq): &(&str, Arq), policy| {
        let point = Point { radio: (*radio).to_owned(), arq: *arq, is_bare: true };
        Case { point, sender: SENDER, mobile: Mobile::Ours, policy }
    };
    radios.iter().flat_map(|radio| POLICIES.map(|policy| case(radio, policy))).collect()
}

/// Runs the cases of these radios, and draws the graphs of those in [`GRAPHS`].
fn watched(
    run: &Run,
    radios: &[(&str, Arq)],
    times: (Duration, Duration),
    findings: &mut Findings,
) -> Result<Vec<Sample>, LabError> {
    let graph = |case: &Case, seed| {
        let Case { point, policy, .. } = case;
        GRAPHS.iter().find(|(_, radio, of)| {
            *radio == (point.radio.as_str(), point.arq) && of == policy && seed == 1
        })
    };
    let cases = cases(radios);
    let jobs = cases.iter().flat_map(|case| (1..=run.seeds).map(move |seed| (case, seed)));
    let jobs: Vec<(&Case, u64)> = jobs.collect();
    let runs = side_by_side(run, &jobs, |(case, seed)| {
        let one = || {
            let watcher =
                graph(case, *seed).map(|_| Arc::new(Mutex::new(Sequence::new(Dumbbell::LEFT))));
            let observer =
                watcher.clone().map(|watcher| watcher as Arc<Mutex<dyn Observer + Send>>);
            let fields = case.run(*seed, times, observer)?;
            let seen = |watcher: Arc<Mutex<Sequence>>| {
                watcher.lock().unwrap_or_else(PoisonError::into_inner).clone()
            };
            Ok((fields, watcher.map(seen)))
        };
        in_time(one, |(fields, _)| lateness(fields))
    })?;
    let (runs, sequences): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    for ((case, seed), sequence) in jobs.iter().zip(sequences) {
        if let (Some((name, ..)), Some(sequence)) = (graph(case, *seed), sequence) {
            let (policy, point) = (case.policy.name(), &case.point);
            let title = format!("{policy}, {}, {}", point.radio, point.arq.name());
            findings.picture(*name, sequence.graph(title, TIMES.1.as_secs_f64()));
        }
    }
    let mut runs = runs.chunks(run.seeds as usize);
    let mut of = |case: &Case| {
        let runs = || Ok(runs.next().unwrap_or_default().to_vec());
        findings.sample(run, 1..=run.seeds, &case.place(), runs)
    };
    cases.iter().map(&mut of).collect()
}

fn share(of: &Sample) -> Interval {
    let share = |run: &Fields| Some(run.number("goodput")? / run.number("bound")?);
    Interval::of(&timely(of).of(share))
}

/// Returns not comparable if all runs of one of the two were late.
fn all_late(plain: &Sample, ours: &Sample) -> Option<Verdict> {
    let late = [plain, ours].into_iter().find(|of| timely(of).runs().next().is_none())?;
    let runs = late.runs().count() as u64;
    Some(crate::real::late(runs, runs))
}

/// Returns the radio and its ARQ.
fn radio(of: &Sample) -> Option<[String; 2]> {
    let first = of.runs().next()?;
    Some(["radio", "arq"].map(|field| first.value(field).to_string()))
}

/// Formats a figure with two decimals, or a dash without a run that was on time.
fn shown(of: &Interval, unit: f64) -> String {
    if of.n == 0 { "-".to_owned() } else { theory::show(of, unit, 2) }
}

fn row(findings: &mut Findings, of: &Sample, policy: Policy, from: Duration) {
    let Some([radio, arq]) = radio(of) else { return };
    let per_cent = |field| format!("{:.2}", 100.0 * of.sum(field) / of.sum("received").max(1.0));
    findings.table.row([
        radio,
        arq,
        policy.name().to_owned(),
        format!("{} s", from.as_secs_f64()),
        shown(&timely(of).mean("goodput"), 1e-6),
        shown(&share(of), 1.0),
        of.show("retransmissions", 1.0, 0),
        of.show("timeouts", 1.0, 1),
        per_cent("lost"),
        per_cent("reordered"),
    ]);
}

fn claim(findings: &mut Findings, is_low: bool, plain: &Sample, ours: &Sample) {
    let Some([radio, arq]) = radio(plain) else { return };
    let ratio = theory::ratio(&timely(ours).mean("goodput"), &timely(plain).mean("goodput"));
    let shown = shown(&ratio, 1.0);
    let late = all_late(plain, ours);
    if is_low {
        let verdict = late.unwrap_or_else(|| theory::within(&ratio, ALIKE, theory::unknown));
        let what = format!("tcp-ecn over plain in low error (Fig. 27, 28), {radio}");
        findings.claim(what, "very little difference: 0.9 to 1.1", shown, verdict);
        return;
    }
    let more = late.unwrap_or_else(|| theory::above(&ratio, 1.0, theory::unknown));
    findings.claim(
        format!("tcp-ecn has more than plain in high error (Fig. 29 to 31), {radio}, {arq}"),
        format!("{PAPER} times as much, in an error that is not given"),
        shown,
        more,
    );
    claim_most(findings, "first 10 s", plain, ours);
}

/// If plain TCP has little of the bound, TCP-ECN has most of it.
fn claim_most(findings: &mut Findings, when: &str, plain: &Sample, ours: &Sample) {
    let Some([radio, arq]) = radio(plain) else { return };
    let late = all_late(plain, ours);
    let (plain, share) = (share(plain), share(ours));
    if plain.mean > LITTLE {
        return;
    }
    let [lost, dropped, timeouts] =
        ["lost", "queue_dropped", "timeouts"].map(|field| ours.sum(field));
    findings.claim(
        format!("tcp-ecn where plain has 0.7 of the bound at most, {radio}, {arq}, {when}"),
        "0.9 of the bound at least",
        format!("{}, plain {}", shown(&share, 1.0), shown(&plain, 1.0)),
        late.unwrap_or_else(|| {
            theory::above(&share, MOST, || {
                format!(
                    "in {} runs {lost} packets were lost after all tries and {dropped} by the radio's queue, with {timeouts} \
                     time-outs; which of it is the cause was not determined",
                    ours.runs().count()
                )
            })
        }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(goodput: f64, lateness: f64) -> Sample {
        let run = fields! {
            radio: "",
            arq: "",
            goodput,
            bound: 1e6,
            lost: 0u64,
            queue_dropped: 0u64,
            timeouts: 0u64,
            lateness,
        };
        Sample(vec![run; 2])
    }

    #[test]
    fn claims_without_a_run_on_time_say_that_the_link_was_late() {
        let reasons = |plain: Sample, ours: Sample| -> Vec<_> {
            let mut findings = Findings::new("");
            for is_low in [true, false] {
                claim(&mut findings, is_low, &plain, &ours);
            }
            findings.claims.iter().map(|c| c.verdict.reason().map(str::to_owned)).collect()
        };
        let late = "the link was late in 2 of 2 runs: use an idle machine";
        let late = || Some(late.to_owned());
        let (timely, delayed) = (|| sample(0.5e6, 0.0), || sample(0.5e6, 1.0));
        assert_eq!(reasons(delayed(), timely()), [late(), late(), late()]);
        assert_eq!(reasons(timely(), delayed()), [late(), late(), late()]);
        assert_eq!(reasons(sample(0.5e6, 0.0), sample(1e6, 0.0))[1..], [None, None]);
    }
}
