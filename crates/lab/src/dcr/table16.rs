//! Table 16: the effect of flows with and without DCR on a network in which only queues drop
//! packets.

use airtcp_sim::{FlowResult, RunResult};
use airtcp_trace::figure::Point;

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
        let results = match run.recorded {
            None => simulate::seeds(run, |seed| simulate::staggered(&scenario, seed))?,
            Some(_) => Vec::new(),
        };
        for combination in case.kinds {
            let place = fields! {
                scenario: case.scenario,
                combination: *combination,
                profile: case.profile.name,
                setup: case.setup.name,
            };
            let of = |result| fields(combination, result);
            let sample = findings
                .sample(run, 1..=run.seeds, &place, || Ok(results.iter().map(of).collect()))?;
            let row = Row::of(case, combination, &sample);
            row.report(&mut findings);
            rows.push(row);
            if case.setup == RANDOM_WAIT {
                let name = format!("{}: {combination}, {}", case.scenario, case.profile.name);
                series.push(draw::series(name, Style::LineAndMarks, sorted(&sample)));
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
    let title = "Goodput of twelve flows on 10 Mbit/s, random wait";
    findings.plot(
        "table16",
        title,
        (draw::linear("flow, from the least to the most"), draw::goodput()),
        series,
    );
    Ok(findings)
}

/// Returns every flow's goodput in Mbit/s in ascending order, as means over the runs.
fn sorted(sample: &Sample) -> Vec<Point> {
    let mut sums: Vec<f64> = Vec::new();
    for run in sample.runs() {
        let mut goodputs = run.list("goodputs").to_vec();
        goodputs.sort_by(f64::total_cmp);
        sums.resize(goodputs.len(), 0.0);
        sums.iter_mut().zip(&goodputs).for_each(|(sum, goodput)| *sum += goodput / 1e6);
    }
    let (points, runs) = (sums.iter().zip(1..), sample.runs().count() as f64);
    points.map(|(sum, rank)| draw::point(f64::from(rank), sum / runs)).collect()
}

/// Returns the measurements of the flows with a combination. Goodputs are in bit/s, the RTT is in
/// seconds, the queue is that of the bottleneck, and Jain's index is that of all flows. Only queues
/// drop segments, so the necessary retransmissions are the dropped ones.
fn fields(combination: &str, result: &RunResult) -> Fields {
    let flows: Vec<_> = result.flows.iter().filter(|f| f.combination == combination).collect();
    let bottleneck = result.links.iter().find(|l| l.name == "bottleneck" && l.way == "forth");
    let sum = |of: fn(&FlowResult) -> u64| flows.iter().map(|flow| of(flow)).sum::<u64>();
    fields! {
        goodputs: flows.iter().map(|flow| flow.goodput).collect::<Vec<_>>(),
        jain: result.jain,
        segments: sum(|flow| flow.segments_sent),
        dropped: sum(|flow| flow.retransmissions.saturating_sub(flow.spurious)),
        timeouts: sum(|flow| flow.timeouts.unwrap_or(0)),
        queue: bottleneck.map_or(0.0, |link| link.queue_mean),
        rtt: flows.iter().map(|f| f.rtt.mean).sum::<f64>() / flows.len().max(1) as f64,
    }
}
