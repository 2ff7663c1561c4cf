//! Table 16: the effect of flows with and without DCR on a network in which only queues drop
//! packets.

use airtcp_sim::{FlowResult, RunResult};
use airtcp_trace::figure::Point;
use serde::Serialize;

use super::{ACCESS, ACCESS_AT_RANDOM, SHORTER, flow, timed};
use crate::paper::Printed;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/table16",
    what: "Twelve flows, all, half or none with DCR, on a congested bottleneck",
    source: "DCR 5.4, Fig. 16 (\"Table 16\"), with the set-up of 3.1 and 5.2",
    seconds: 125,
    body,
    ..Experiment::STUDY
};

const FLOWS: u32 = 12;
// DCR 3.1 and 5.2: the queue at the bottleneck holds 60 packets, all others 50.
const BOTTLENECK: &str = "rate 10mbit delay 10ms limit 60";

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

/// In ns-2 a queue is full when one more packet would reach its limit.
const BOTTLENECK_OF_NS2: &str = "rate 10mbit delay 10ms limit 59";
/// The paper's version of ns-2, and one of 2011.
const NS2: [&str; 2] = ["ns-2.26", "ns-2.35"];

/// The additions to the set-up that the paper describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Setup {
    /// None.
    AsDescribed,
    /// Packets wait for a random time on their way to the bottleneck.
    RandomWait,
    /// The random wait, and the defaults of ns-2.
    Ns2,
}

impl Setup {
    const fn name(self) -> &'static str {
        match self {
            Self::AsDescribed => "as described",
            Self::RandomWait => "random wait",
            Self::Ns2 => "random wait, ns-2's sender and queue",
        }
    }

    /// Returns the known reason why the figures differ from the paper's.
    const fn why(self) -> &'static str {
        match self {
            Self::AsDescribed => "the paper does not say how it staggers flows",
            Self::RandomWait => {
                "hypothesis: without lock-out, our flows keep the queue fuller at the same goodput, and so drop more"
            }
            Self::Ns2 => "other differences of ns-2's sender are not isolated",
        }
    }
}

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
        add(kinds, Profile::paper(), Setup::AsDescribed);
        add(kinds, Profile::paper(), Setup::RandomWait);
        for name in NS2 {
            add(kinds, name.parse().expect("a profile"), Setup::Ns2);
        }
        if scenario != 2 {
            add(others, Profile::paper(), Setup::RandomWait);
        }
        add(kinds, Profile::modern(), Setup::RandomWait);
        if scenario == 2 {
            add(others, Profile::modern(), Setup::RandomWait);
        }
    }
    cases
}

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    scenario: u32,
    combination: &'a str,
    profile: &'a str,
    setup: Setup,
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
            if case.setup == Setup::RandomWait {
                let name = format!("{}: {combination}, {}", case.scenario, case.profile.name);
                series.push(draw::series(name, Style::LineAndMarks, sorted(&records)));
            }
        }
    }
    for row in rows.iter().filter(|row| row.case.profile.name != Profile::modern().name) {
        row.judge(&mut findings, rows.iter().find(|other| row.is_isolated_by(other)));
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
            self.case.setup.name().to_owned(),
            a,
            b,
            c,
            d,
            theory::show(&self.rtt, 1e3, 1),
            theory::show(&self.jain, 1.0, 3),
        ]);
    }

    /// Returns whether `other` differs only by the random wait, or by ns-2's sender and queue, and
    /// so isolates that effect.
    fn is_isolated_by(&self, other: &Self) -> bool {
        let same = |row: &Self| (row.case.scenario, row.case.kinds);
        let [own, others] = [self, other].map(|row| row.case.profile.name);
        let of_paper = others == Profile::paper().name;
        other.case.setup == Setup::RandomWait
            && self.combination == other.combination
            && same(self) == same(other)
            && match self.case.setup {
                Setup::AsDescribed => own == others,
                Setup::RandomWait => false,
                Setup::Ns2 => of_paper,
            }
    }

    /// Adds claims that compare the row's figures with the paper's.
    fn judge(&self, findings: &mut Findings, random: Option<&Self>) {
        let Self { case, combination, columns, .. } = self;
        let waits = combination.contains("dcr");
        let printed = PRINTED.iter().find(|(n, w, _)| *n == case.scenario && *w == waits);
        for (column, (what, decimals)) in COLUMNS.into_iter().enumerate() {
            let Some((_, _, figures)) = printed else { continue };
            let (setup, profile) = (case.setup.name(), case.profile.name);
            let of = format!("scenario {}, {combination}, {setup}, {profile}", case.scenario);
            let why = self.why(column, random);
            if figures[column] == 0.0 {
                findings.claim(
                    format!("{what}, {of}"),
                    "0.0, with one decimal in print (below 0.05)",
                    self.show(column),
                    theory::below(&columns[column], 0.05, || why),
                );
                continue;
            }
            let printed = Printed { what, figure: figures[column], decimals };
            findings.printed(&printed, &of, &columns[column], &why);
        }
    }

    fn why(&self, column: usize, random: Option<&Self>) -> String {
        let known = self.case.setup.why();
        if let (Setup::Ns2, Some(paper)) = (self.case.setup, random) {
            return format!(
                "with our own sender and a queue longer by one it is {}; {known}",
                paper.show(column)
            );
        }
        if let Some(random) = random {
            let [jain, even] = [self, random].map(|row| theory::show(&row.jain, 1.0, 3));
            return format!(
                "with random waits before the bottleneck, and everything else equal, it is {}, and Jain's index {even} instead of \
                 {jain}: flows over access links as fast as the bottleneck synchronize with its queue; {known}",
                random.show(column)
            );
        }
        // The cause of a difference was only isolated without DCR.
        match self.case.scenario {
            2 => known.to_owned(),
            _ => "the cause was not determined for flows with DCR; for flows without DCR, see scenario 2"
                .to_owned(),
        }
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
        setup: case.setup,
        goodputs: flows.iter().map(|flow| flow.goodput).collect(),
        jain: result.jain,
        segments: sum(|flow| flow.segments_sent),
        dropped: sum(|flow| flow.retransmissions.saturating_sub(flow.spurious)),
        timeouts: sum(|flow| flow.timeouts.unwrap_or(0)),
        queue: bottleneck.map_or(0.0, |link| link.queue_mean),
        rtt: flows.iter().map(|flow| flow.rtt.mean).sum::<f64>() / flows.len().max(1) as f64,
    }
}

/// Returns twelve flows of these kinds, the same number of each, in their order.
pub(super) fn network(
    kinds: &[&str],
    profile: &Profile,
    setup: Setup,
) -> Result<Scenario, LabError> {
    let (access, bottleneck) = match setup {
        Setup::AsDescribed => (ACCESS, BOTTLENECK),
        Setup::RandomWait => (ACCESS_AT_RANDOM, BOTTLENECK),
        Setup::Ns2 => (ACCESS_AT_RANDOM, BOTTLENECK_OF_NS2),
    };
    let access = feed::wire(access, ACCESS)?;
    let bottleneck = Wire::both(feed::spec(bottleneck)?);
    let each = FLOWS / kinds.len() as u32;
    let flow = |(combination, number): (&str, u32)| FlowSpec {
        name: format!("{combination} {number}"),
        ..flow(combination, profile)
    };
    let flows = kinds.iter().flat_map(|kind| (1..=each).map(move |number| (*kind, number)));
    Ok(Scenario {
        flows: flows.map(flow).collect(),
        ..Scenario::new("table16", Topology::Dumbbell { access, bottleneck })
    })
}
