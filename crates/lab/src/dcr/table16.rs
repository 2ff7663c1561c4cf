//! Table 16: what flows of one kind do to a network whose only losses are its own.

use std::time::Duration;

use airtcp_recovery::{Profile, RtoForm};
use airtcp_sim::{FlowSpec, Interval, RunResult, Scenario, Topology, Wire};
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use crate::paper::Printed;
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, draw, feed, simulate, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/table16",
    what: "Twelve SACK flows share a bottleneck that loses nothing but by its queue (scenario 2)",
    source: "DCR 5.4, Fig. 16 (\"Table 16\"), with the set-up of 3.1 and 5.2",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 60,
    seeds: 10,
    body,
};

const FLOWS: u32 = 12;
// DCR 3.1 and 5.2: the queue at the bottleneck is 60 packets long, all others are 50.
const BOTTLENECK: &str = "rate 10mbit delay 10ms limit 60";
const ACCESS: &str = "rate 10mbit delay 1ms limit 50";
/// 1000 bytes of payload and a header of 40: ns-2's flows have no timestamps.
const MTU: u16 = 1_040;
const SECONDS: u64 = 200;

/// The paper's, in the order of the table.
const PRINTED: [Printed; 4] = [
    Printed { what: "goodput of a flow, Mbit/s", figure: 0.801, decimals: 3 },
    Printed { what: "dropped packets, %", figure: 2.27, decimals: 2 },
    Printed { what: "time-outs per segment, %", figure: 0.009, decimals: 3 },
    Printed { what: "mean queue, packets", figure: 44.0, decimals: 0 },
];

/// Packets wait at random before they leave, up to the bottleneck's time for one of them: what Floyd and Jacobson
/// (1992) have against flows that keep in step with the queue.
const ACCESS_AT_RANDOM: &str = "rate 10mbit delay 1ms 416us inorder limit 50";
/// In ns-2 a queue is full when a packet more would be its limit.
const BOTTLENECK_OF_NS2: &str = "rate 10mbit delay 10ms limit 59";
/// The least time-out in ns-2 until October 2004; the paper's version, 2.26, is of 2003.
const RTO_OF_NS2: RtoForm = RtoForm::Rfc { floor: Duration::from_secs(1) };

/// What is between and within the hosts beside what the paper says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Setup {
    /// Nothing.
    AsDescribed,
    /// Packets wait at random on their way to the bottleneck.
    RandomWait,
    /// And what ns-2 does unless it is told.
    Ns2,
}

impl Setup {
    const fn name(self) -> &'static str {
        match self {
            Self::AsDescribed => "as described",
            Self::RandomWait => "random wait",
            Self::Ns2 => "random wait, ns-2's defaults",
        }
    }

    /// Why its figures differ from the paper's where they do.
    const fn why(self) -> &'static str {
        match self {
            Self::AsDescribed => {
                "flows over access links as fast as the bottleneck keep in step with its queue, and some are locked \
                 out (Jain's index tells); the random wait takes that away, and the paper does not say how it \
                 staggers flows"
            }
            Self::RandomWait => {
                "with no flow locked out, ours keep the queue fuller at the same goodput, and so drop more"
            }
            Self::Ns2 => {
                "its longer time-out, and its queue that is shorter by one, do not explain it; at the paper's drops and \
                 queue its flows have windows of 0.95 / sqrt(p) segments, ours of 1.1 / sqrt(p) and Mathis' law of \
                 1.22 / sqrt(p): its sender holds back more than halving and a segment a round trip do, and the \
                 paper does not say by what"
            }
        }
    }
}

/// What sends, the paper's first, and where.
fn senders() -> [(&'static str, Profile, Setup); 5] {
    let ns2 = Profile { rto: RTO_OF_NS2, ..Profile::paper() };
    [
        ("sack/reno", Profile::paper(), Setup::AsDescribed),
        ("sack/reno", Profile::paper(), Setup::RandomWait),
        ("sack/reno", ns2, Setup::Ns2),
        ("sack/reno", Profile::modern(), Setup::RandomWait),
        ("sack/cubic", Profile::modern(), Setup::RandomWait),
    ]
}

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    combination: &'a str,
    profile: &'a str,
    setup: Setup,
    /// bit/s, each flow's.
    goodputs: Vec<f64>,
    jain: f64,
    segments: u64,
    timeouts: u64,
    /// At the bottleneck.
    packets: u64,
    dropped: u64,
    queue: f64,
    /// Seconds.
    rtt: f64,
}

impl Record<'_> {
    /// In the units of the table.
    fn columns(&self) -> [f64; 4] {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64 * 100.0;
        [
            self.goodputs.iter().sum::<f64>() / f64::from(FLOWS) / 1e6,
            share(self.dropped, self.packets),
            share(self.timeouts, self.segments),
            self.queue,
        ]
    }
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "sender",
        "profile",
        "set-up",
        "goodput of a flow, Mbit/s",
        "dropped, %",
        "time-outs, %",
        "queue",
        "RTT, ms",
        "Jain's index",
    ]);
    let paper = PRINTED.map(|printed| format!("{:.*}", printed.decimals, printed.figure));
    let [goodput, dropped, timeouts, queue] = paper;
    let dash = || "-".to_owned();
    let name = ["SACK in the paper", "ns-2"].map(str::to_owned);
    let [name, profile] = name;
    findings.table.row([name, profile, dash(), goodput, dropped, timeouts, queue, dash(), dash()]);
    let mut series = Vec::new();
    for (combination, profile, setup) in senders() {
        let scenario = scenario(combination, &profile, setup, run.is_small)?;
        // DCR 3.1: sources start at time 0 and are staggered to avoid synchronisation. It does not say how.
        let results = simulate::seeds(run, |seed| simulate::staggered(&scenario, seed))?;
        let record = |result| record(combination, &profile, setup, result);
        let records: Vec<_> = results.iter().map(record).collect();
        for record in &records {
            findings.record(record)?;
        }
        let of = |value: &dyn Fn(&Record<'_>) -> f64| {
            Interval::of(&records.iter().map(value).collect::<Vec<f64>>())
        };
        let columns: [Interval; 4] = std::array::from_fn(|column| of(&|r| r.columns()[column]));
        let shown = |column: usize| theory::show(&columns[column], 1.0, PRINTED[column].decimals);
        findings.table.row([
            combination.to_owned(),
            profile.name.to_owned(),
            setup.name().to_owned(),
            shown(0),
            shown(1),
            shown(2),
            shown(3),
            theory::show(&of(&|r| r.rtt), 1e3, 1),
            theory::show(&of(&|r| r.jain), 1.0, 3),
        ]);
        if profile.name == Profile::paper().name {
            for (printed, measured) in PRINTED.iter().zip(&columns) {
                findings.printed(printed, setup.name(), measured, setup.why());
            }
        }
        // Every flow's goodput, from the least to the most.
        let mut sorted: Vec<f64> = Vec::new();
        for record in &records {
            let mut goodputs = record.goodputs.clone();
            goodputs.sort_by(f64::total_cmp);
            sorted.resize(goodputs.len(), 0.0);
            sorted.iter_mut().zip(&goodputs).for_each(|(sum, goodput)| *sum += goodput / 1e6);
        }
        let points = sorted
            .iter()
            .zip(1..)
            .map(|(sum, rank)| draw::point(f64::from(rank), sum / records.len() as f64));
        let name = format!("{combination}, {}, {}", profile.name, setup.name());
        series.push(draw::series(name, Style::LineAndMarks, points.collect()));
    }
    let printed = [1.0, f64::from(FLOWS)].map(|rank| draw::point(rank, PRINTED[0].figure));
    series.push(draw::series("mean in the paper", Style::Line, printed.to_vec()));
    findings.picture(
        "table16",
        Figure {
            title: "Goodput of twelve flows on 10 Mbit/s".to_owned(),
            x: draw::linear("flow, from the least to the most"),
            y: draw::linear("goodput, Mbit/s"),
            series,
        },
    );
    Ok(findings)
}

fn record<'a>(
    combination: &'a str,
    profile: &Profile,
    setup: Setup,
    result: &RunResult,
) -> Record<'a> {
    let flows = &result.flows;
    let bottleneck = result.links.iter().find(|l| l.name == "bottleneck" && l.way == "forth");
    let (packets, dropped, queue) = bottleneck.map_or((0, 0, 0.0), |link| {
        (link.counters.received, link.counters.queue_dropped, link.queue_mean)
    });
    Record {
        seed: result.seed,
        combination,
        profile: profile.name,
        setup,
        goodputs: flows.iter().map(|flow| flow.goodput).collect(),
        jain: result.jain,
        segments: flows.iter().map(|flow| flow.segments_sent).sum(),
        timeouts: flows.iter().map(|flow| flow.timeouts).sum(),
        packets,
        dropped,
        queue,
        rtt: flows.iter().map(|flow| flow.rtt.mean).sum::<f64>() / flows.len() as f64,
    }
}

fn scenario(
    combination: &str,
    profile: &Profile,
    setup: Setup,
    is_small: bool,
) -> Result<Scenario, LabError> {
    let (access, bottleneck) = match setup {
        Setup::AsDescribed => (ACCESS, BOTTLENECK),
        Setup::RandomWait => (ACCESS_AT_RANDOM, BOTTLENECK),
        Setup::Ns2 => (ACCESS_AT_RANDOM, BOTTLENECK_OF_NS2),
    };
    let access = Wire { forth: feed::spec(access)?, back: feed::spec(ACCESS)? };
    let bottleneck = Wire::both(feed::spec(bottleneck)?);
    let flow = |number| FlowSpec {
        name: format!("flow {number}"),
        profile: profile.clone(),
        mtu: MTU,
        timestamps: false,
        ..FlowSpec::new(combination.parse().expect("a name of the registry"))
    };
    Ok(Scenario {
        duration: Duration::from_secs(if is_small { 10 } else { SECONDS }),
        flows: (1..=FLOWS).map(flow).collect(),
        ..Scenario::new("table16", Topology::Dumbbell { access, bottleneck })
    })
}
