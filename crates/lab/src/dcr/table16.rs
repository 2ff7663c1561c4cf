//! Table 16: the effect of flows with and without DCR on a network in which only queues drop
//! packets.

use airtcp_sim::{FlowResult, RunResult};
use airtcp_trace::figure::Point;
use serde::Serialize;

use super::congested::{AS_DESCRIBED, CHANGES, NS2, RANDOM_WAIT, Setup, network};
use super::table16_row::{COLUMNS, PRINTED, Row};
use super::{PAPERS, SHORTER, timed};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/table16",
    what: "Twelve flows, all, half or none with DCR, on a congested bottleneck",
    source: "DCR 5.4, Fig. 16 (\"Table 16\"), with the set-up of 3.1 and 5.2",
    seconds: 180,
    body,
    ..Experiment::STUDY
};

/// The paper's version of ns-2, and one of 2011.
const PROFILES_OF_NS2: [&str; 2] = [PAPERS, "ns-2.35"];

/// One row of the table, or two if there are two kinds of flows.
pub(super) struct Case {
    /// The paper's number of the scenario.
    pub(super) scenario: u32,
    pub(super) kinds: &'static [&'static str],
    pub(super) profile: Profile,
    pub(super) setup: Setup,
}

fn cases() -> Vec<Case> {
    const TIMER: &str = "sack/reno/dcr:timer";
    /// DCR 5.1: "the ack-based implementation".
    const COUNT: &str = "sack/reno/dcr:count";
    const SACK: &str = "sack/reno";
    let mut cases = Vec::new();
    let scenarios: [(u32, &[&str], &[&str]); 3] = [
        (2, &[SACK], &["sack/cubic"]),
        (1, &[COUNT], &[TIMER]),
        (3, &[COUNT, SACK], &[TIMER, SACK]),
    ];
    for (scenario, kinds, others) in scenarios {
        let mut add = |kinds, profile, setup| cases.push(Case { scenario, kinds, profile, setup });
        add(kinds, Profile::paper(), AS_DESCRIBED);
        add(kinds, Profile::paper(), RANDOM_WAIT);
        for name in PROFILES_OF_NS2 {
            add(kinds, name.parse().expect("a profile"), NS2);
        }
        if scenario == 2 {
            CHANGES.into_iter().for_each(|(setup, of)| add(kinds, of(Profile::paper()), setup));
            add(others, Profile::modern(), RANDOM_WAIT);
        } else {
            add(others, Profile::paper(), RANDOM_WAIT);
        }
        add(kinds, Profile::modern(), RANDOM_WAIT);
    }
    cases
}

#[derive(Serialize)]
pub(super) struct Record<'a> {
    seed: u64,
    scenario: u32,
    combination: &'a str,
    profile: &'a str,
    setup: &'a str,
    /// The goodput of each flow with this combination, in bit/s.
    goodputs: Vec<f64>,
    /// Over all flows.
    pub(super) jain: f64,
    segments: u64,
    /// Necessary retransmissions, which are the dropped segments, because only queues drop any.
    dropped: u64,
    timeouts: u64,
    /// At the bottleneck.
    queue: f64,
    /// In seconds.
    pub(super) rtt: f64,
}

impl Record<'_> {
    /// Returns the figures in the order and the units of the table.
    pub(super) fn columns(&self) -> [f64; 4] {
        let share = |part: u64| part as f64 / self.segments.max(1) as f64 * 100.0;
        [
            self.goodputs.iter().sum::<f64>() / self.goodputs.len().max(1) as f64 / 1e6,
            share(self.dropped),
            share(self.timeouts),
            self.queue,
        ]
    }
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "scenario | sender | profile | set-up | goodput of a flow, Mbit/s | dropped, % | time-outs, % | \
         queue | RTT, ms | Jain's index",
    );
    for (scenario, waits, figures) in PRINTED {
        let shown = |column: usize| format!("{:.*}", COLUMNS[column].1, figures[column]);
        let name = if waits { "DCR in the paper" } else { "SACK in the paper" };
        let dash = || "-".to_owned();
        let [a, b, c, d] = std::array::from_fn(shown);
        let (name, profile) = (name.to_owned(), "ns-2".to_owned());
        let scenario = scenario.to_string();
        findings.table.row([scenario, name, profile, dash(), a, b, c, d, dash(), dash()]);
    }
    let mut series = Vec::new();
    let mut rows = Vec::new();
    let cases = cases();
    for case in &cases {
        let scenario = network(case.kinds, &case.profile, case.setup)?;
        let scenario = timed(scenario, run.is_small);
        // DCR 3.1: sources start at time 0 and are staggered to avoid synchronisation. The paper
        // does not say how.
        let results = simulate::seeds(run, |seed| simulate::staggered(&scenario, seed))?;
        for combination in case.kinds {
            let records: Vec<_> =
                results.iter().map(|result| record(combination, case, result)).collect();
            for record in &records {
                findings.record(record)?;
            }
            let row = Row::of(case, combination, &records);
            row.report(&mut findings);
            rows.push(row);
            if case.setup == RANDOM_WAIT {
                let name = format!("{}: {combination}, {}", case.scenario, case.profile.name);
                series.push(draw::series(name, Style::LineAndMarks, sorted(&records)));
            }
        }
    }
    for row in rows.iter().filter(|row| row.is_judged()) {
        // The paper's flows with DCR are the ack-based ones, and its profile is that of ns-2.26.
        let is_beside = row.combination.contains("dcr:timer") || row.case.profile.name != PAPERS;
        findings.beside(is_beside, |findings| row.judge(findings, &rows));
    }
    findings.note(SHORTER);
    findings
        .note("the dropped packets of a flow are its retransmitted segments that had been lost");
    let (x, y) = (
        draw::linear("flow, from the least to the most"),
        draw::linear(&draw::more("goodput, Mbit/s")),
    );
    let title = "Goodput of twelve flows on 10 Mbit/s, random wait";
    findings.picture("table16", draw::figure(title, x, y, series));
    Ok(findings)
}

/// Returns every flow's goodput in Mbit/s in ascending order, as means over the runs.
fn sorted(records: &[Record<'_>]) -> Vec<Point> {
    let mut sums: Vec<f64> = Vec::new();
    for record in records {
        let mut goodputs = record.goodputs.clone();
        goodputs.sort_by(f64::total_cmp);
        sums.resize(goodputs.len(), 0.0);
        sums.iter_mut().zip(&goodputs).for_each(|(sum, goodput)| *sum += goodput / 1e6);
    }
    let points = sums.iter().zip(1..);
    points.map(|(sum, rank)| draw::point(f64::from(rank), sum / records.len() as f64)).collect()
}

fn record<'a>(combination: &'a str, case: &'a Case, result: &RunResult) -> Record<'a> {
    let flows: Vec<_> = result.flows.iter().filter(|f| f.combination == combination).collect();
    let bottleneck = result.links.iter().find(|l| l.name == "bottleneck" && l.way == "forth");
    let sum = |of: fn(&FlowResult) -> u64| flows.iter().map(|flow| of(flow)).sum();
    Record {
        seed: result.seed,
        scenario: case.scenario,
        combination,
        profile: case.profile.name,
        setup: case.setup.name,
        goodputs: flows.iter().map(|flow| flow.goodput).collect(),
        jain: result.jain,
        segments: sum(|flow| flow.segments_sent),
        dropped: sum(|flow| flow.retransmissions.saturating_sub(flow.spurious)),
        timeouts: sum(|flow| flow.timeouts.unwrap_or(0)),
        queue: bottleneck.map_or(0.0, |link| link.queue_mean),
        rtt: flows.iter().map(|flow| flow.rtt.mean).sum::<f64>() / flows.len().max(1) as f64,
    }
}
