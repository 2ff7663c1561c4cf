//! Fig. 24: the maximum memory of a base station.

use airtcp_basestation::Policy;

use super::course::{Course, Outcome};
use super::policies::NOTES;
use super::senders::{self, SENDERS};
use super::tries::{NS_2, PAPER, REORDERING, Tries};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig24",
    what: "Peak memory of a base station by frame error rate: snoop, tcp-ecn",
    source: "TCP-ECN 7.5, Fig. 24",
    seconds: 280,
    body,
    ..Experiment::STUDY
};

const POLICIES: [Policy; 2] = [Policy::Snoop, Policy::TcpEcn];
/// The tries, and the per cent of frames with errors.
const SWEEPS: [(Tries, &[u32]); 3] =
    [(PAPER, &[0, 10, 20, 30]), (REORDERING, &[30]), (NS_2, &[30])];
/// The sizes of Snoop's cache in KiB; the last is never full.
const CACHES: [u64; 5] = [4, 16, 64, 256, 4_096];
/// The per cent of frames with errors for the comparison of caches: the paper blames the cache at
/// high error rates.
const MANY: u32 = 30;
/// KiB per byte.
const KIB: f64 = 1.0 / 1024.0;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "sender | tries x passes | frames hit, % | policy | goodput, Mbit/s | flows, KiB | copies, KiB | \
         radio queue, KiB | all at one time, KiB",
    );
    let mut series = Vec::new();
    for sender in &SENDERS {
        let mut curves = POLICIES.map(|_| Vec::new());
        for (tries, errors) in SWEEPS {
            for error in run.points(errors) {
                let course = Course { error, ..Course::PAPER.with_tries(tries) };
                let mut all = Vec::new();
                for (policy, curve) in POLICIES.iter().zip(&mut curves) {
                    let outcome = course.run(run, sender, *policy, &mut findings)?;
                    let [flows, cached, queued, _, together] = &outcome.memory;
                    findings.table.row([
                        sender.name.to_owned(),
                        course.radio(),
                        error.to_string(),
                        policy.name().to_owned(),
                        theory::show(&outcome.goodput, 1e-6, 3),
                        theory::show(flows, KIB, 1),
                        theory::show(cached, KIB, 1),
                        theory::show(queued, KIB, 1),
                        theory::show(together, KIB, 1),
                    ]);
                    if tries == PAPER {
                        curve.push(draw::interval(error.into(), together, KIB));
                    }
                    all.push(outcome);
                }
                if let [snoop, ecn] = all.as_slice() {
                    let is_beside = !sender.is_papers() || !tries.is_papers();
                    findings.beside(is_beside, |findings| {
                        claim(findings, &course, sender.name, snoop, ecn);
                    });
                }
            }
        }
        for (policy, points) in POLICIES.iter().zip(curves) {
            let name = format!("{}, {}", policy.name(), sender.name);
            series.push(draw::series(name, Style::LineAndMarks, points));
        }
    }
    findings.plot(
        "fig24",
        "The most memory, 7 x 3 tries",
        (draw::linear("frames hit, %"), draw::log(&draw::less("memory with the radio queue, KiB"))),
        series,
    );
    caches(run, &mut findings)?;
    findings.notes.extend(NOTES.map(str::to_owned));
    findings.note(
        "A base station holds at most the data that its sender has in flight, so the table also has goodput: a sender that \
         learns of a loss has less in flight",
    );
    Ok(findings)
}

/// TCP-ECN 7.2.1.2: at high error rates "base station's buffering capacity becomes a bottleneck for
/// Snoop".
fn caches(run: &Run, findings: &mut Findings) -> Result<(), LabError> {
    let courses =
        SWEEPS.map(|(tries, _)| Course { error: MANY, ..Course::PAPER.with_tries(tries) });
    let caches = run.points(&CACHES);
    let [least, most] = [caches[0], caches[caches.len() - 1]];
    let axes = vec![
        Axis::new("sender", SENDERS.map(|sender| sender.name)),
        Axis::new("radio", courses.map(|course| course.radio())),
        Axis::new("cache", caches),
    ];
    let grid = Grid::run(run, axes, |point, seed| {
        let course = courses.iter().find(|course| course.radio() == point.text("radio"));
        let sender = senders::named(&point.text("sender"));
        let course = course.expect("one of the courses");
        let mut scenario = course.scenario(run, sender, Policy::Snoop)?;
        if let Topology::Wireless { station, .. } = &mut scenario.topology {
            station.cache = ByteCount::from_kib(point.number("cache") as u64);
        }
        let result = simulate::once(scenario, seed)?;
        let station = result.station.as_ref();
        Ok(fields! {
            goodput: result.flows[0].goodput,
            cached: station.map_or(0, |station| station.memory.cached),
            sent_again: station.map_or(0, |station| station.counters.sent_again),
        })
    })?;
    grid.record(findings, &["sender", "radio", "cache"])?;
    let mut series = Vec::new();
    for part in grid.all().rows(&["sender", "radio"]) {
        let place = format!("{MANY} % hit, {} tries, {}", part.text("radio"), part.text("sender"));
        let [small, large] = [least, most].map(|cache| part.at("cache", cache));
        let ratio = theory::paired(&small.values("goodput"), &large.values("goodput"));
        let course = courses.iter().find(|course| course.radio() == part.text("radio"));
        let is_papers = course.is_some_and(|course| course.tries.is_papers())
            && senders::named(&part.text("sender")).is_papers();
        findings.beside(!is_papers, |findings| {
            let what = format!("snoop with a cache of {least} KiB over one of {most} KiB, {place}");
            findings.mean(what, "less (below 1)", (&ratio, 2), Bound::Below(1.0), || {
                let [small, large] = [small, large].map(|part| part.show("sent_again", 1.0, 0));
                format!(
                    "{small} and {large} segments are sent again from it; guess: what the link gives up, or what overtakes it, is all that \
                     a cache is for"
                )
            });
        });
        let name = format!("{} tries, {}", part.text("radio"), part.text("sender"));
        series.push(part.line(name, "cache", 1e-6, |cell| cell.mean("goodput")));
    }
    let title = format!("Snoop over the size of its cache, {MANY} % of frames hit");
    findings.plot("cache", title, (draw::log("cache, KiB"), draw::goodput()), series);
    Ok(())
}

/// TCP-ECN 7.5: Snoop's memory is large, TCP-ECN's is very small.
fn claim(findings: &mut Findings, course: &Course, sender: &str, snoop: &Outcome, ecn: &Outcome) {
    let all = |outcome: &Outcome| -> Interval { outcome.memory[4] };
    let ratio = theory::ratio(&all(snoop), &all(ecn));
    let verdict = theory::above(&ratio, 1.0, || {
        let [snoop, ecn] = [snoop, ecn].map(|outcome| theory::show(&outcome.memory[2], KIB, 1));
        format!("{snoop} and {ecn} KiB of it are the radio's queue; the cause was not determined")
    });
    findings.claim(
        format!("snoop over tcp-ecn, {} % hit, {} tries, {sender}", course.error, course.radio()),
        "more (above 1)",
        theory::show(&ratio, 1.0, 2),
        verdict,
    );
}
