//! Figs. 27 to 31 of TCP-ECN with real packets: ten seconds from Linux without SACK and timestamps,
//! with low and high wireless error.

use std::sync::{Arc, Mutex, PoisonError};

use airtcp_basestation::Policy;
use airtcp_link::Arq;
use airtcp_testbed::dumbbell::Dumbbell;
use airtcp_types::Observer;

use super::real::{BARE_WARM_UP, Case, POLICIES, Point, ROUGH, Record, SMALL};
use super::real_path::{Mobile, in_time, is_in_time, side_by_side};
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
    let records = watched(run, &radios, begin, &mut findings)?;
    // The same measurement after slow start.
    let later = if run.is_small { &[][..] } else { &ROUGH };
    let later = cases(run, later);
    let later = side_by_side(run, &later, |case| {
        in_time(|| case.run((BARE_WARM_UP, TIMES.1), None), |record| record.lateness)
    })?;
    for record in records.iter().chain(&later) {
        findings.record(record)?;
    }
    let each = run.seeds as usize;
    let mut series = POLICIES.map(|policy| (policy, Vec::new()));
    for (number, of_radio) in (1u32..).zip(records.chunks(each * POLICIES.len())) {
        for (of, (policy, points)) in of_radio.chunks(each).zip(&mut series) {
            row(&mut findings, of, *policy, begin.0);
            let goodput = Interval::of(&goodputs(of));
            if goodput.n > 0 {
                points.push(draw::interval(f64::from(number), &goodput, 1e-6));
            }
        }
        let [plain, _, ours] = [0, 1, 2].map(|at| &of_radio[at * each..(at + 1) * each]);
        // The paper's sender is Linux 2.6.12, and its radio is not described.
        findings.beside(true, |findings| claim(findings, number == 1, plain, ours));
    }
    for of_radio in later.chunks(each * POLICIES.len()) {
        for (of, policy) in of_radio.chunks(each).zip(POLICIES) {
            row(&mut findings, of, policy, BARE_WARM_UP);
        }
        let [plain, _, ours] = [0, 1, 2].map(|at| &of_radio[at * each..(at + 1) * each]);
        findings.beside(true, |findings| {
            claim_most(findings, "once slow start is over", plain, ours);
        });
    }
    let names: Vec<_> = radios.iter().map(|(radio, arq)| format!("{radio}, {arq}")).collect();
    let series =
        series.map(|(policy, points)| draw::series(policy.name(), Style::LineAndMarks, points));
    let (x, y) = (draw::linear(&names.join("; ")), draw::linear(&draw::more("goodput, Mbit/s")));
    let title = "Linux without SACK and time stamps (TCP-ECN Fig. 31)";
    findings.picture("fig31", draw::figure(title, x, y, series));
    let late = records.iter().chain(&later).filter(|record| !is_in_time(record.lateness)).count();
    findings.note(format!(
        "10 s from the first byte, slow start included, as the paper's iperf, and once more from 10 s on; 20 ms of wire each way. Our mobile withholds \
         duplicate ACKs with tcp-ecn. Lost and overtaken: packets on the radio, after all tries. Fig. 27 to 30 are of the first \
         seed, from the sender's SYN on. {late} runs were late, and their goodput does not count."
    ));
    Ok(findings)
}

fn cases(run: &Run, radios: &[(&str, Arq)]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (radio, arq) in radios {
        let point = Point { radio: (*radio).to_owned(), arq: *arq, is_bare: true };
        for policy in POLICIES {
            cases.extend((1..=run.seeds).map(|seed| {
                let point = point.clone();
                Case { point, sender: SENDER, mobile: Mobile::Ours, policy, seed }
            }));
        }
    }
    cases
}

/// Runs the cases of these radios, and draws the graphs of those in [`GRAPHS`].
fn watched(
    run: &Run,
    radios: &[(&str, Arq)],
    times: (Duration, Duration),
    findings: &mut Findings,
) -> Result<Vec<Record>, LabError> {
    let graph = |case: &Case| {
        let Case { point, policy, seed, .. } = case;
        GRAPHS.iter().find(|(_, radio, of)| {
            *radio == (point.radio.as_str(), point.arq) && of == policy && *seed == 1
        })
    };
    let cases = cases(run, radios);
    let runs = side_by_side(run, &cases, |case| {
        let one = || {
            let watcher = graph(case).map(|_| Arc::new(Mutex::new(Sequence::new(Dumbbell::LEFT))));
            let observer =
                watcher.clone().map(|watcher| watcher as Arc<Mutex<dyn Observer + Send>>);
            let record = case.run(times, observer)?;
            let seen = |watcher: Arc<Mutex<Sequence>>| {
                watcher.lock().unwrap_or_else(PoisonError::into_inner).clone()
            };
            Ok((record, watcher.map(seen)))
        };
        in_time(one, |(record, _)| record.lateness)
    })?;
    let mut records = Vec::new();
    for (case, (record, sequence)) in cases.iter().zip(runs) {
        if let (Some((name, ..)), Some(sequence)) = (graph(case), sequence) {
            let title = format!("{}, {}, {}", record.policy, record.radio, record.arq);
            findings.picture(*name, sequence.graph(title, TIMES.1.as_secs_f64()));
        }
        records.push(record);
    }
    Ok(records)
}

/// Returns the runs that were on time: a late path differs from its description.
fn timely(of: &[Record]) -> impl Iterator<Item = &Record> {
    of.iter().filter(|record| is_in_time(record.lateness))
}

fn goodputs(of: &[Record]) -> Vec<f64> {
    timely(of).map(|record| record.goodput).collect()
}

fn share(of: &[Record]) -> Interval {
    Interval::of(&timely(of).map(|record| record.goodput / record.bound).collect::<Vec<_>>())
}

/// Returns not comparable if all runs of one of the two were late.
fn all_late(plain: &[Record], ours: &[Record]) -> Option<Verdict> {
    let late = [plain, ours].into_iter().find(|of| timely(of).next().is_none())?;
    let runs = late.len() as u64;
    Some(crate::real::late(runs, runs))
}

/// Formats a figure with two decimals, or a dash without a run that was on time.
fn shown(of: &Interval, unit: f64) -> String {
    if of.n == 0 { "-".to_owned() } else { theory::show(of, unit, 2) }
}

fn row(findings: &mut Findings, of: &[Record], policy: Policy, from: Duration) {
    let Some(first) = of.first() else { return };
    let mean = |value: fn(&Record) -> u64| {
        let values: Vec<f64> = of.iter().map(|record| value(record) as f64).collect();
        Interval::of(&values)
    };
    let received: u64 = of.iter().map(|record| record.received).sum();
    let per_cent = |value: fn(&Record) -> u64| {
        let count: u64 = of.iter().map(value).sum();
        format!("{:.2}", 100.0 * count as f64 / received.max(1) as f64)
    };
    findings.table.row([
        first.radio.clone(),
        first.arq.to_owned(),
        policy.name().to_owned(),
        format!("{} s", from.as_secs_f64()),
        shown(&Interval::of(&goodputs(of)), 1e-6),
        shown(&share(of), 1.0),
        theory::show(&mean(|r| r.retransmissions), 1.0, 0),
        theory::show(&mean(|r| r.timeouts), 1.0, 1),
        per_cent(|r| r.lost),
        per_cent(|r| r.reordered),
    ]);
}

fn claim(findings: &mut Findings, is_low: bool, plain: &[Record], ours: &[Record]) {
    let Some(Record { radio, arq, .. }) = plain.first() else { return };
    let ratio = theory::ratio(&Interval::of(&goodputs(ours)), &Interval::of(&goodputs(plain)));
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
fn claim_most(findings: &mut Findings, when: &str, plain: &[Record], ours: &[Record]) {
    let Some(Record { radio, arq, .. }) = plain.first() else { return };
    let late = all_late(plain, ours);
    let (plain, share) = (share(plain), share(ours));
    if plain.mean > LITTLE {
        return;
    }
    let count = |value: fn(&Record) -> u64| ours.iter().map(value).sum::<u64>();
    let (lost, dropped) = (count(|r| r.lost), count(|r| r.queue_dropped));
    let timeouts = count(|r| r.timeouts);
    findings.claim(
        format!("tcp-ecn where plain has 0.7 of the bound at most, {radio}, {arq}, {when}"),
        "0.9 of the bound at least",
        format!("{}, plain {}", shown(&share, 1.0), shown(&plain, 1.0)),
        late.unwrap_or_else(|| {
            theory::above(&share, MOST, || {
                format!(
                    "in {} runs {lost} packets were lost after all tries and {dropped} by the radio's queue, with {timeouts} \
                     time-outs; which of it is the cause was not determined",
                    ours.len()
                )
            })
        }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(goodput: f64, lateness: f64) -> [Record; 2] {
        [1, 2].map(|seed| Record {
            seed,
            radio: String::new(),
            arq: "",
            bare: true,
            sender: SENDER,
            mobile: "",
            policy: "",
            goodput,
            bound: 1e6,
            retransmissions: 0,
            timeouts: 0,
            loss_probes: 0,
            received: 0,
            lost: 0,
            reordered: 0,
            queue_dropped: 0,
            marked: 0,
            hidden: 0,
            lateness,
        })
    }

    #[test]
    fn claims_without_a_run_on_time_say_that_the_link_was_late() {
        let reasons = |plain: [Record; 2], ours: [Record; 2]| -> Vec<_> {
            let mut findings = Findings::new("");
            for is_low in [true, false] {
                claim(&mut findings, is_low, &plain, &ours);
            }
            findings.claims.iter().map(|c| c.verdict.reason().map(str::to_owned)).collect()
        };
        let late = "the link was late in 2 of 2 runs: use an idle machine";
        let late = || Some(late.to_owned());
        let (timely, delayed) = (|| records(0.5e6, 0.0), || records(0.5e6, 1.0));
        assert_eq!(reasons(delayed(), timely()), [late(), late(), late()]);
        assert_eq!(reasons(timely(), delayed()), [late(), late(), late()]);
        assert_eq!(reasons(records(0.5e6, 0.0), records(1e6, 0.0))[1..], [None, None]);
    }
}
