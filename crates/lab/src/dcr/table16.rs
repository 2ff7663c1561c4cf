//! Table 16: the effect of flows with and without DCR on a network in which only queues drop
//! packets.

use airtcp_sim::{FlowResult, RunResult};
use airtcp_trace::figure::Point;
use serde::Serialize;

use super::congested::{AS_DESCRIBED, CHANGES, Change, NS2, RANDOM_WAIT, Setup, network};
use super::{SHORTER, timed};
use crate::paper::{Printed, TOLERANCE};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/table16",
    what: "Twelve flows, all, half or none with DCR, on a congested bottleneck",
    source: "DCR 5.4, Fig. 16 (\"Table 16\"), with the set-up of 3.1 and 5.2",
    seconds: 180,
    body,
    ..Experiment::STUDY
};

/// The printed figures for each scenario's kinds of flows: with DCR (`true`) and without.
const PRINTED: [(u32, bool, [f64; 4]); 4] = [
    (1, true, [0.801, 2.72, 0.0, 44.0]),
    (2, false, [0.801, 2.27, 0.009, 44.0]),
    (3, true, [0.748, 2.77, 0.0, 45.0]),
    (3, false, [0.852, 2.13, 0.02, 45.0]),
];
/// The quantities of the printed figures, and their decimals.
const COLUMNS: [(&str, usize); 4] = [
    ("goodput of a flow, Mbit/s", 3),
    ("dropped packets, %", 2),
    ("time-outs per segment, %", 3),
    ("mean queue, packets", 0),
];

/// The paper's version of ns-2, and one of 2011.
const PROFILES_OF_NS2: [&str; 2] = ["ns-2.26", "ns-2.35"];

/// One row of the table, or two if there are two kinds of flows.
struct Case {
    /// The paper's number of the scenario.
    scenario: u32,
    kinds: &'static [&'static str],
    profile: Profile,
    setup: Setup,
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
struct Record<'a> {
    seed: u64,
    scenario: u32,
    combination: &'a str,
    profile: &'a str,
    setup: &'a str,
    /// The goodput of each flow with this combination, in bit/s.
    goodputs: Vec<f64>,
    /// Over all flows.
    jain: f64,
    segments: u64,
    /// Necessary retransmissions, which are the dropped segments, because only queues drop any.
    dropped: u64,
    timeouts: u64,
    /// At the bottleneck.
    queue: f64,
    /// In seconds.
    rtt: f64,
}

impl Record<'_> {
    /// Returns the figures in the order and the units of the table.
    fn columns(&self) -> [f64; 4] {
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
        // The paper's flows with DCR are the ack-based ones.
        let is_beside = row.combination.contains("dcr:timer");
        findings.beside(is_beside, |findings| row.judge(findings, &rows));
    }
    findings.note(SHORTER);
    findings
        .note("the dropped packets of a flow are its retransmitted segments that had been lost");
    let (x, y) =
        (draw::linear("flow, from the least to the most"), draw::linear("goodput, Mbit/s"));
    let title = "Goodput of twelve flows on 10 Mbit/s, random wait";
    findings.picture("table16", draw::figure(title, x, y, series));
    Ok(findings)
}

/// One kind of flows of a case.
struct Row<'a> {
    case: &'a Case,
    combination: &'a str,
    columns: [Interval; 4],
    rtt: Interval,
    jain: Interval,
}

impl<'a> Row<'a> {
    fn of(case: &'a Case, combination: &'a str, records: &[Record<'_>]) -> Self {
        let of = |value: &dyn Fn(&Record<'_>) -> f64| {
            Interval::of(&records.iter().map(value).collect::<Vec<f64>>())
        };
        Self {
            case,
            combination,
            columns: std::array::from_fn(|column| of(&|r| r.columns()[column])),
            rtt: of(&|r| r.rtt),
            jain: of(&|r| r.jain),
        }
    }

    fn show(&self, column: usize) -> String {
        theory::show(&self.columns[column], 1.0, COLUMNS[column].1)
    }

    fn report(&self, findings: &mut Findings) {
        let [a, b, c, d] = std::array::from_fn(|column| self.show(column));
        findings.table.row([
            self.case.scenario.to_string(),
            self.combination.to_owned(),
            self.case.profile.name.to_owned(),
            self.case.setup.name.to_owned(),
            a,
            b,
            c,
            d,
            theory::show(&self.rtt, 1e3, 1),
            theory::show(&self.jain, 1.0, 3),
        ]);
    }

    /// Returns whether the row is compared with the paper: not our profile, and not a change that
    /// exists to isolate its effect.
    fn is_judged(&self) -> bool {
        let is_change = |(setup, _): &Change| *setup == self.case.setup;
        self.case.profile.name != Profile::modern().name && !CHANGES.iter().any(is_change)
    }

    /// Returns the row that has only the random wait in addition to the set-up as described.
    fn at_random<'b>(&self, rows: &'b [Self]) -> Option<&'b Self> {
        let paper = Profile::paper().name;
        rows.iter().find(|other| {
            (other.case.setup, other.case.profile.name) == (RANDOM_WAIT, paper)
                && other.combination == self.combination
                && (other.case.scenario, other.case.kinds) == (self.case.scenario, self.case.kinds)
        })
    }

    /// Adds claims that compare the row's figures with the paper's.
    fn judge(&self, findings: &mut Findings, rows: &[Self]) {
        let Self { case, combination, columns, .. } = self;
        let waits = combination.contains("dcr");
        let printed = PRINTED.iter().find(|(n, w, _)| *n == case.scenario && *w == waits);
        let spoiled = self.spoiled(rows);
        for (column, (what, decimals)) in COLUMNS.into_iter().enumerate() {
            let Some((_, _, figures)) = printed else { continue };
            let (setup, profile) = (case.setup.name, case.profile.name);
            let of = format!("scenario {}, {combination}, {setup}, {profile}", case.scenario);
            let printed = Printed { what, figure: figures[column], decimals };
            let why = || self.why(column, figures[column], rows);
            if let Some(spoiled) = spoiled.clone() {
                let verdict = Verdict::NotComparable(spoiled);
                findings.printed_as(&printed, &of, &columns[column], verdict);
            } else if figures[column] == 0.0 {
                findings.claim(
                    format!("{what}, {of}"),
                    "0.0, with one decimal in print (below 0.05)",
                    self.show(column),
                    theory::below(&columns[column], 0.05, why),
                );
            } else {
                findings.printed(&printed, &of, &columns[column], &why());
            }
        }
    }

    /// Returns the reason why a row without random waits decides nothing, if its flows keep in step
    /// with the queue: the random wait alone makes their shares more even.
    fn spoiled(&self, rows: &[Self]) -> Option<String> {
        let random = self.at_random(rows).filter(|_| self.case.setup == AS_DESCRIBED)?;
        let by = theory::difference(&self.jain, &random.jain);
        let [own, even] = [self, random].map(|row| theory::show(&row.jain, 1.0, 3));
        (by.bounds().1 < 0.0).then(|| {
            format!(
                "flows over access links as fast as the bottleneck keep in step with its queue: Jain's index is {own}, and \
                 {even} with random waits before the bottleneck and everything else equal; the paper does not say how it avoids that"
            )
        })
    }

    fn why(&self, column: usize, printed: f64, rows: &[Self]) -> String {
        match (self.at_random(rows), self.case.scenario) {
            (Some(paper), 2) => paper.isolated(column, printed, rows),
            (Some(paper), _) if self.case.setup == NS2 => format!(
                "with our own sender and a queue longer by one it is {}; for single differences, see scenario 2",
                paper.show(column)
            ),
            _ => "single differences were only tried for flows without DCR: see scenario 2"
                .to_owned(),
        }
    }

    /// Describes the effect of every change of one thing on a figure of this row.
    fn isolated(&self, column: usize, printed: f64, rows: &[Self]) -> String {
        let is_change = |row: &&Self| CHANGES.iter().any(|(setup, _)| *setup == row.case.setup);
        let (mut alike, mut others, mut is_reached) = (Vec::new(), Vec::new(), false);
        for row in rows.iter().filter(is_change) {
            let figure = row.columns[column];
            let by = theory::difference(&figure, &self.columns[column]);
            let shown = format!("{} ({})", row.case.setup.name, row.show(column));
            let differs = by.bounds().0 > 0.0 || by.bounds().1 < 0.0;
            if differs {
                others.push(shown)
            } else {
                alike.push(shown)
            }
            is_reached |= differs && (figure.mean / printed - 1.0).abs() <= TOLERANCE;
        }
        let list = |of: Vec<String>| if of.is_empty() { "none".to_owned() } else { of.join(", ") };
        format!(
            "one change at a time from the profile paper with random waits ({}): no difference by {}; a difference by {}; {}",
            self.show(column),
            list(alike),
            list(others),
            if is_reached { "one of these explains it" } else { "none of these explains it" }
        )
    }
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
