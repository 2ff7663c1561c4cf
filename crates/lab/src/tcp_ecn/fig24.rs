//! Fig. 24: the most memory that a base station takes.

use airtcp_basestation::Policy;
use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Style};

use super::course::{Course, Outcome};
use super::policies::{NOTES, PAPER, REORDERING};
use super::senders::SENDERS;
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, draw, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig24",
    what: "The most memory of a base station over the share of frames hit, radio queue counted: snoop, tcp-ecn",
    source: "TCP-ECN 7.5, Fig. 24",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 100,
    seeds: 10,
    body,
};

const POLICIES: [Policy; 2] = [Policy::Snoop, Policy::TcpEcn];
/// Tries, and frames hit, %.
const SWEEPS: [((u32, u32), &[u32]); 2] = [(PAPER, &[0, 10, 20, 30]), (REORDERING, &[30])];
/// KiB of bytes.
const KIB: f64 = 1.0 / 1024.0;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "sender",
        "tries x passes",
        "frames hit, %",
        "policy",
        "goodput, Mbit/s",
        "flows, KiB",
        "copies, KiB",
        "radio queue, KiB",
        "all at one time, KiB",
    ]);
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
                    claim(&mut findings, &course, sender.name, snoop, ecn);
                }
            }
        }
        for (policy, points) in POLICIES.iter().zip(curves) {
            let name = format!("{}, {}", policy.name(), sender.name);
            series.push(draw::series(name, Style::LineAndMarks, points));
        }
    }
    findings.picture(
        "fig24",
        Figure {
            title: "The most memory, 7 x 3 tries".to_owned(),
            x: draw::linear("frames hit, %"),
            y: draw::log("KiB, radio queue counted"),
            series,
        },
    );
    findings.notes.extend(NOTES.map(str::to_owned));
    findings.notes.push(
        "A base station holds at most what its sender has in flight, so goodput stands beside: one that is told of a loss \
         has less of it"
            .to_owned(),
    );
    Ok(findings)
}

/// TCP-ECN 7.5: Snoop's is large, TCP-ECN's very small.
fn claim(findings: &mut Findings, course: &Course, sender: &str, snoop: &Outcome, ecn: &Outcome) {
    let all = |outcome: &Outcome| -> Interval { outcome.memory[4] };
    let ratio = theory::ratio(&all(snoop), &all(ecn));
    let verdict = theory::above(&ratio, 1.0, || {
        let [snoop, ecn] = [snoop, ecn].map(|outcome| theory::show(&outcome.memory[2], KIB, 1));
        format!("{snoop} and {ecn} KiB of it are the radio's queue; why is not isolated")
    });
    findings.claim(
        format!("snoop over tcp-ecn, {} % hit, {} tries, {sender}", course.error, course.radio()),
        "more (above 1)",
        theory::show(&ratio, 1.0, 2),
        verdict,
    );
}
