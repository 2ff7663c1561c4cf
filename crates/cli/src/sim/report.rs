//! What came of a scenario: tables, or JSON.

use std::fmt;

use airtcp_sim::{Aggregate, FlowAggregate, Interval, LinkAggregate, RunResult, Scenario};
use comfy_table::{CellAlignment, ColumnConstraint, Table, presets};
use serde::Serialize;

/// All runs, and what they say together.
#[derive(Serialize)]
pub(super) struct Report {
    scenario: String,
    seeds: Vec<u64>,
    #[serde(skip)]
    seconds: f64,
    runs: Vec<RunResult>,
    aggregate: Aggregate,
}

impl Report {
    pub(super) fn new(scenario: &Scenario, runs: Vec<RunResult>) -> Self {
        Self {
            scenario: scenario.name.clone(),
            seeds: runs.iter().map(|run| run.seed).collect(),
            seconds: scenario.duration.as_secs_f64(),
            aggregate: Aggregate::of(&runs),
            runs,
        }
    }
}

/// As tables.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} s of virtual time, ", self.scenario, self.seconds)?;
        match self.seeds.as_slice() {
            [first, .., last] => {
                writeln!(f, "seeds {first} to {last}: means with their 95 % intervals")?;
            }
            seeds => writeln!(f, "seed {}", seeds.first().copied().unwrap_or_default())?,
        }
        writeln!(f, "{}", flows(&self.aggregate.flows))?;
        let all = &self.aggregate.links;
        let shown_links: Vec<_> = all.iter().filter(|link| !is_quiet(link)).collect();
        if !shown_links.is_empty() {
            writeln!(f, "{}", links(&shown_links))?;
        }
        match all.len() - shown_links.len() {
            0 => {}
            quiet => writeln!(
                f,
                "{quiet} directions of links dropped nothing and were under {} % in use; --json has all",
                QUIET * 100.0
            )?,
        }
        write!(f, "Jain's index {}", shown(&self.aggregate.jain, 1.0, 4))
    }
}

/// What carried little and harmed nothing has nothing to tell: the access links of a dumbbell are many.
fn is_quiet(link: &LinkAggregate) -> bool {
    let lost = [&link.queue_dropped, &link.channel_lost, &link.disconnected, &link.overflowed];
    let harmed = lost.into_iter().chain([&link.corrupted, &link.marked]);
    harmed.into_iter().all(|count| count.mean == 0.0)
        && link.utilisation.mean < QUIET
        && link.queue_mean.mean < 1.0
}

/// The share of its rate below which a link is quiet.
const QUIET: f64 = 0.05;

fn flows(flows: &[FlowAggregate]) -> Table {
    let header =
        ["flow", "strategies", "copies", "goodput", "retrans", "spurious", "timeouts", "RTT ms"];
    table(
        header,
        2,
        flows.iter().map(|flow| {
            [
                flow.name.clone(),
                flow.combination.clone(),
                flow.copies.to_string(),
                rate(&flow.goodput),
                shown(&flow.retransmissions, 1.0, 1),
                shown(&flow.spurious, 1.0, 1),
                shown(&flow.timeouts, 1.0, 1),
                shown(&flow.rtt, 1e3, 2),
            ]
        }),
    )
}

fn links(links: &[&LinkAggregate]) -> Table {
    let header = [
        "link",
        "way",
        "forwarded",
        "queue full",
        "lost",
        "down",
        "overflow",
        "corrupted",
        "marked",
        "queued",
        "at most",
        "in use",
    ];
    let row = |link: &&LinkAggregate| {
        [
            link.name.clone(),
            link.way.to_owned(),
            shown(&link.forwarded, 1.0, 0),
            shown(&link.queue_dropped, 1.0, 1),
            shown(&link.channel_lost, 1.0, 1),
            shown(&link.disconnected, 1.0, 1),
            shown(&link.overflowed, 1.0, 1),
            shown(&link.corrupted, 1.0, 1),
            shown(&link.marked, 1.0, 1),
            shown(&link.queue_mean, 1.0, 1),
            shown(&link.queue_max, 1.0, 0),
            shown(&link.utilisation, 100.0, 1) + if link.utilisation.n > 0 { " %" } else { "" },
        ]
    };
    let mut table = table(header, 2, links.iter().map(row));
    let rare: [fn(&LinkAggregate) -> f64; 4] = [
        |link| link.disconnected.mean,
        |link| link.overflowed.mean,
        |link| link.corrupted.mean,
        |link| link.marked.mean,
    ];
    for (column, mean) in (5..).zip(rare) {
        if links.iter().all(|link| mean(link) == 0.0)
            && let Some(column) = table.column_mut(column)
        {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    table
}

/// A table whose columns from `numbers` on stand right.
fn table<const N: usize>(
    header: [&str; N],
    numbers: usize,
    rows: impl Iterator<Item = [String; N]>,
) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in numbers..N {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// `9.41 ±0.05`, without the interval if there is none; `-` of no values.
fn shown(interval: &Interval, factor: f64, decimals: usize) -> String {
    let mean = interval.mean * factor;
    match interval.half_width {
        _ if interval.n == 0 => "-".to_owned(),
        Some(0.0) if mean == 0.0 => "0".to_owned(),
        // A whole number of one run needs no point.
        None if mean.fract() == 0.0 && factor == 1.0 => format!("{mean}"),
        None => format!("{mean:.decimals$}"),
        Some(half) => format!("{mean:.decimals$} ±{:.decimals$}", half * factor),
    }
}

fn rate(goodput: &Interval) -> String {
    let (factor, unit) = match goodput.mean {
        1e9.. => (1e-9, "Gbit/s"),
        1e6.. => (1e-6, "Mbit/s"),
        _ => (1e-3, "kbit/s"),
    };
    format!("{} {unit}", shown(goodput, factor, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_shown_if_there_is_one() {
        let many = Interval { mean: 9.413, half_width: Some(0.052), sd: 0.1, n: 10 };
        assert_eq!(shown(&many, 1.0, 2), "9.41 ±0.05");
        assert_eq!(shown(&many, 1e3, 0), "9413 ±52");
        assert_eq!(shown(&Interval::of(&[3.0]), 1.0, 1), "3");
        assert_eq!(shown(&Interval::of(&[0.025]), 1e3, 2), "25.00");
        assert_eq!(shown(&Interval::of(&[0.0, 0.0]), 1.0, 1), "0");
        assert_eq!(shown(&Interval::default(), 1.0, 1), "-");
    }

    #[test]
    fn a_rate_has_the_unit_that_fits() {
        assert_eq!(rate(&Interval::of(&[9.4e6, 9.6e6])), "9.500 ±1.271 Mbit/s");
        assert_eq!(rate(&Interval::of(&[0.0])), "0.000 kbit/s");
        assert_eq!(rate(&Interval::of(&[2e9])), "2.000 Gbit/s");
    }
}
