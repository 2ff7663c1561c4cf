//! The output of `airtcp sim run --json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::command::quoted;
use crate::distribution::Distribution;
use crate::figures::{Interval, micros, shown};
use crate::page::{Axis, Block, Chart, Table, color};

#[derive(Debug, Deserialize)]
pub(crate) struct Simulation {
    scenario: String,
    seeds: Vec<u64>,
    runs: Vec<Run>,
    aggregate: Aggregate,
}

#[derive(Debug, Deserialize)]
struct Aggregate {
    flows: Vec<Flow>,
    links: Vec<Link>,
}

#[derive(Debug, Deserialize)]
struct Flow {
    name: String,
    combination: String,
    copies: u64,
    goodput: Interval,
    retransmissions: Option<Interval>,
    spurious: Option<Interval>,
    timeouts: Option<Interval>,
    rtt: Option<Interval>,
    recovery: Option<Interval>,
    exchange: Option<Interval>,
    finished: Option<Interval>,
    broken: Option<Interval>,
}

#[derive(Debug, Deserialize)]
struct Link {
    name: String,
    way: String,
    utilisation: Option<Interval>,
    forwarded: Option<Interval>,
    queue_dropped: Option<Interval>,
    policed: Option<Interval>,
    channel_lost: Option<Interval>,
    marked: Option<Interval>,
    queue_mean: Option<Interval>,
}

#[derive(Debug, Deserialize)]
struct Run {
    seed: u64,
    flows: Vec<FlowRun>,
}

#[derive(Debug, Deserialize)]
struct FlowRun {
    name: String,
    copy: u64,
    combination: String,
    goodput: f64,
    bytes: u64,
    retransmissions: Option<u64>,
    timeouts: Option<u64>,
    lost: Option<u64>,
    rtt: Option<Spread>,
    finished: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Spread {
    count: u64,
    mean: f64,
    min: f64,
    max: f64,
}

impl Simulation {
    pub(crate) fn title(&self) -> String {
        format!("Simulation: {}", self.scenario)
    }

    /// Returns the results. `scenario` is the scenario file for the command that repeats the run.
    pub(crate) fn blocks(&self, scenario: &str) -> Vec<Block> {
        let text = match self.seeds.as_slice() {
            [first, .., last] => format!("Seeds {first} to {last}: means with 95 % intervals."),
            [one] => format!("Seed {one}."),
            [] => String::new(),
        };
        let seed = self.seeds.first().copied().unwrap_or_default();
        let (scenario, seeds) = (quoted(scenario), self.seeds.len().max(1));
        let command = format!("airtcp sim run {scenario} --seed {seed} --seeds {seeds}");
        let rows: usize = self.runs.iter().map(|run| run.flows.len()).sum();
        let mut blocks = vec![
            Block::Text(text),
            Block::Code(command),
            Block::Table(self.flows()),
            Block::Table(self.links()),
            Block::Fold {
                title: format!("Every run ({rows} flows)"),
                is_open: false,
                blocks: vec![Block::Table(self.runs())],
            },
        ];
        blocks.extend(self.completion().map(Block::Chart));
        blocks
    }

    fn flows(&self) -> Table {
        let mut table = Table::new([
            "flow",
            "strategies",
            "copies",
            "goodput, Mbit/s",
            "RTT, ms",
            "retransmissions",
            "spurious",
            "time-outs",
            "recovery, ms",
            "exchange, ms",
            "finished, s",
            "broken",
        ]);
        for flow in &self.aggregate.flows {
            let of = |interval: &Option<Interval>, factor, decimals| {
                shown(interval.as_ref(), factor, decimals)
            };
            table.rows.push(vec![
                flow.name.clone(),
                flow.combination.clone(),
                flow.copies.to_string(),
                flow.goodput.shown(1e-6, 3),
                of(&flow.rtt, 1e3, 1),
                of(&flow.retransmissions, 1.0, 1),
                of(&flow.spurious, 1.0, 1),
                of(&flow.timeouts, 1.0, 1),
                of(&flow.recovery, 1e3, 1),
                of(&flow.exchange, 1e3, 1),
                of(&flow.finished, 1.0, 3),
                flow.broken
                    .as_ref()
                    .filter(|broken| broken.mean > 0.0)
                    .map_or(String::new(), |broken| broken.shown(1.0, 1)),
            ]);
        }
        table.without_empty_columns()
    }

    fn links(&self) -> Table {
        let mut table = Table::new([
            "link",
            "direction",
            "utilisation, %",
            "mean queue, packets",
            "forwarded",
            "dropped by the queue",
            "policed",
            "lost",
            "marked",
        ]);
        for link in &self.aggregate.links {
            table.rows.push(vec![
                link.name.clone(),
                link.way.clone(),
                shown(link.utilisation.as_ref(), 100.0, 1),
                shown(link.queue_mean.as_ref(), 1.0, 2),
                shown(link.forwarded.as_ref(), 1.0, 0),
                shown(link.queue_dropped.as_ref(), 1.0, 1),
                shown(link.policed.as_ref(), 1.0, 1),
                shown(link.channel_lost.as_ref(), 1.0, 1),
                shown(link.marked.as_ref(), 1.0, 1),
            ]);
        }
        table.without_empty_columns()
    }

    fn runs(&self) -> Table {
        let mut table = Table::new([
            "seed",
            "flow",
            "copy",
            "strategies",
            "goodput, Mbit/s",
            "bytes",
            "lost",
            "retransmissions",
            "time-outs",
            "mean RTT, ms",
            "RTT from, ms",
            "to, ms",
            "finished, s",
        ]);
        for run in &self.runs {
            for flow in &run.flows {
                let count = |of: Option<u64>| of.map_or(String::new(), |count| count.to_string());
                let rtt = |of: fn(&Spread) -> f64| {
                    let rtt = flow.rtt.as_ref().filter(|rtt| rtt.count > 0);
                    rtt.map_or(String::new(), |rtt| format!("{:.1}", of(rtt) * 1e3))
                };
                table.rows.push(vec![
                    run.seed.to_string(),
                    flow.name.clone(),
                    flow.copy.saturating_add(1).to_string(),
                    flow.combination.clone(),
                    format!("{:.3}", flow.goodput * 1e-6),
                    flow.bytes.to_string(),
                    count(flow.lost),
                    count(flow.retransmissions),
                    count(flow.timeouts),
                    rtt(|rtt| rtt.mean),
                    rtt(|rtt| rtt.min),
                    rtt(|rtt| rtt.max),
                    flow.finished.map_or(String::new(), |at| format!("{at:.3}")),
                ]);
            }
        }
        table.without_empty_columns()
    }

    /// Returns the distribution of the completion times of finished flows, over copies and seeds.
    fn completion(&self) -> Option<Chart> {
        let mut times: BTreeMap<&str, Distribution> = BTreeMap::new();
        for flow in self.runs.iter().flat_map(|run| &run.flows) {
            if let Some(at) = flow.finished {
                times.entry(&flow.name).or_default().add(micros(at));
            }
        }
        let series = times.iter().enumerate();
        let series: Vec<_> = series
            .map(|(index, (name, times))| times.series().named(*name, color(index)))
            .collect();
        (!series.is_empty()).then(|| Chart {
            title: "Distribution of completion times".to_owned(),
            group: String::new(),
            x: Axis { label: "finished after", unit: "s", scale: 1e-6, zero: false },
            y: Axis { label: "share of flows", ..Axis::SHARE },
            height: 260,
            series,
        })
    }
}
