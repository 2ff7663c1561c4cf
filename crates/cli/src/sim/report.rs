//! Reports the results of a scenario, as tables or as JSON.

use std::fmt;
use std::iter;

use airtcp_sim::{
    Aggregate, App, FlowAggregate, FlowDirection, FlowSpec, Interval, LinkAggregate,
    RadioAggregate, RunResult, Scenario, Sender, StationAggregate, jain,
};
use comfy_table::{ColumnConstraint, Table};
use serde::Serialize;

use crate::table::{fitting, mean, rate_unit, shown, table, wrapped};

/// All runs and their aggregate.
#[derive(Serialize)]
pub(super) struct Report {
    scenario: String,
    seeds: Vec<u64>,
    #[serde(skip)]
    seconds: f64,
    #[serde(skip)]
    warm_up_seconds: f64,
    #[serde(skip)]
    is_random: bool,
    #[serde(skip)]
    fairness: Vec<Fairness>,
    runs: Vec<RunResult>,
    aggregate: Aggregate,
}

/// Jain's index of competing flows: bulk transfers without an end, in one direction.
struct Fairness {
    flows: String,
    jain: Interval,
}

impl Fairness {
    /// Returns `None` if fewer than two flows compete.
    fn of(scenario: &Scenario, runs: &[RunResult], way: FlowDirection) -> Option<Self> {
        let competes = |flow: &&FlowSpec| {
            flow.way == way
                && flow.stop.is_none()
                && matches!(flow.app, App::Bulk { size: None })
                && !matches!(flow.sender, Sender::Udp(_))
        };
        let shown = |flow: &FlowSpec| match flow.count {
            1 => flow.name.clone(),
            count => format!("{} ({count} copies)", flow.name),
        };
        let flows = scenario.flows.iter();
        let names: Vec<_> = flows.clone().filter(competes).map(shown).collect();
        // One entry per copy, in the order of the results.
        let copies = flows.flat_map(|flow| iter::repeat_n(competes(&flow), flow.count as usize));
        let copies: Vec<bool> = copies.collect();
        let index = |run: &RunResult| {
            let flows = run.flows.iter().zip(&copies).filter(|(_, competes)| **competes);
            jain(&flows.map(|(flow, _)| flow.goodput).collect::<Vec<_>>())
        };
        (copies.iter().filter(|competes| **competes).count() > 1).then(|| Self {
            flows: names.join(", "),
            jain: Interval::of(&runs.iter().map(index).collect::<Vec<_>>()),
        })
    }
}

impl Report {
    pub(super) fn new(scenario: &Scenario, runs: Vec<RunResult>) -> Self {
        Self {
            scenario: scenario.name.clone(),
            seeds: runs.iter().map(|run| run.seed).collect(),
            seconds: scenario.duration.as_secs_f64(),
            warm_up_seconds: scenario.warm_up.as_secs_f64(),
            is_random: scenario.is_random(),
            fairness: [FlowDirection::LeftToRight, FlowDirection::RightToLeft]
                .into_iter()
                .filter_map(|way| Fairness::of(scenario, &runs, way))
                .collect(),
            aggregate: Aggregate::of(&runs),
            runs,
        }
    }
}

/// The report as tables.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} s of simulated time, ", self.scenario, self.seconds)?;
        match self.seeds.as_slice() {
            [first, .., last] => {
                writeln!(f, "seeds {first} to {last}: means with their 95 % intervals")?;
            }
            _ if !self.is_random => writeln!(f, "one run: nothing is random")?,
            seeds => writeln!(f, "seed {}", seeds.first().copied().unwrap_or_default())?,
        }
        let all_flows = &self.aggregate.flows;
        let (table, room) =
            fitting(Room::All, &[Room::Main, Room::Means], |room| flows(all_flows, room));
        writeln!(f, "{table}")?;
        let mut is_whole = room == Room::All;
        let all = &self.aggregate.links;
        let shown_links: Vec<_> = all.iter().filter(|link| !is_quiet(link)).collect();
        if !shown_links.is_empty() {
            let (table, links_room) =
                fitting(Room::All, &[Room::Means], |room| links(&shown_links, room));
            writeln!(f, "\n{table}")?;
            is_whole &= links_room == Room::All;
        }
        if let Some(station) = &self.aggregate.station {
            let (table, radio_room) =
                fitting(Room::All, &[Room::Means], |room| radio(station, room));
            writeln!(f, "\n{table}")?;
            is_whole &= radio_room == Room::All;
        }
        if !is_whole && self.seeds.len() > 1 {
            writeln!(f, "Intervals that did not fit are omitted: --json has all")?;
        }
        match all.len() - shown_links.len() {
            0 => {}
            quiet => writeln!(
                f,
                "{quiet} link directions without drops and below {} % utilization are left out: --json",
                QUIET * 100.0
            )?,
        }
        if let Some((station, first)) = self.aggregate.station.as_ref().zip(self.runs.first())
            && let Some(settings) = &first.station
        {
            let what = format!("Station ({}, arq {})", settings.policy.name(), settings.arq);
            writeln!(f, "{}", wrapped(&describe(&what, station), 2))?;
        }
        for flow in self.aggregate.flows.iter().filter(|flow| flow.broken.mean > 0.0) {
            let broken = shown(&flow.broken, 1.0, 1);
            writeln!(
                f,
                "BROKEN: connections of {} that were reset or timed out, per copy: {broken}",
                flow.name
            )?;
        }
        for Fairness { flows, jain } in &self.fairness {
            let line = format!("Jain's index of {flows}: {}", shown(jain, 1.0, 4));
            writeln!(f, "{}", wrapped(&line, 2))?;
        }
        let counted = match self.warm_up_seconds {
            0.0 => String::new(),
            warm_up => format!("; goodput from {warm_up} s on, all else from 0 s"),
        };
        f.write_str(&wrapped(
            &format!("each row is the mean of a flow's copies; sent again: retransmitted segments; spur.: spurious ones{counted}"),
            2,
        ))
    }
}

/// Returns whether a link has little traffic and no drops, so that it is not listed; a dumbbell has
/// many such access links.
fn is_quiet(link: &LinkAggregate) -> bool {
    let lost = [
        &link.policed,
        &link.queue_dropped,
        &link.channel_lost,
        &link.disconnected,
        &link.overflowed,
    ];
    let harmed = lost.into_iter().chain([&link.corrupted, &link.marked]);
    harmed.into_iter().all(|count| count.mean == 0.0)
        && link.utilisation.mean < QUIET
        && link.queue_mean.mean < 1.0
}

/// A link whose utilisation is below this share is quiet.
const QUIET: f64 = 0.05;

/// The intervals that fit the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    All,
    /// Only those of goodput and round-trip times.
    Main,
    Means,
}

fn flows(flows: &[FlowAggregate], room: Room) -> Table {
    let (factor, unit) = rate_unit(flows.iter().map(|flow| flow.goodput.mean).fold(0.0, f64::max));
    let goodput = format!("goodput\n{unit}");
    let header = [
        "flow",
        "strategies",
        "copies",
        &goodput,
        "sent\nagain",
        "spur.",
        "time-\nouts",
        "RTT\nms",
    ];
    let count = if room == Room::All { shown } else { mean };
    let measure = if room == Room::Means { mean } else { shown };
    let mut table = table(
        header,
        2,
        flows.iter().map(|flow| {
            [
                flow.name.clone(),
                flow.combination.clone(),
                flow.copies.to_string(),
                measure(&flow.goodput, factor, 3),
                count(&flow.retransmissions, 1.0, 1),
                count(&flow.spurious, 1.0, 1),
                count(&flow.timeouts, 1.0, 1),
                measure(&flow.rtt, 1e3, 2),
            ]
        }),
    );
    if flows.iter().all(|flow| flow.name == flow.combination)
        && let Some(column) = table.column_mut(1)
    {
        column.set_constraint(ColumnConstraint::Hidden);
    }
    table
}

fn links(links: &[&LinkAggregate], room: Room) -> Table {
    let header = [
        "link",
        "way",
        "forwarded",
        "queue\ndrops",
        "lost",
        "pol-\niced",
        "down",
        "over-\nflow",
        "cor-\nrupted",
        "marked",
        "queued",
        "at\nmost",
        "in use\n%",
    ];
    let shown = if room == Room::All { shown } else { mean };
    let row = |link: &&LinkAggregate| {
        [
            link.name.clone(),
            link.way.to_owned(),
            shown(&link.forwarded, 1.0, 0),
            shown(&link.queue_dropped, 1.0, 1),
            shown(&link.channel_lost, 1.0, 1),
            shown(&link.policed, 1.0, 1),
            shown(&link.disconnected, 1.0, 1),
            shown(&link.overflowed, 1.0, 1),
            shown(&link.corrupted, 1.0, 1),
            shown(&link.marked, 1.0, 1),
            shown(&link.queue_mean, 1.0, 1),
            shown(&link.queue_max, 1.0, 0),
            shown(&link.utilisation, 100.0, 1),
        ]
    };
    let mut table = table(header, 2, links.iter().map(row));
    let rare: [fn(&LinkAggregate) -> f64; 5] = [
        |link| link.policed.mean,
        |link| link.disconnected.mean,
        |link| link.overflowed.mean,
        |link| link.corrupted.mean,
        |link| link.marked.mean,
    ];
    hide_zeros(&mut table, 5, links.iter().copied(), rare);
    table
}

/// Hides the columns from `first` on whose means are zero in all rows.
fn hide_zeros<'a, T: 'a, const N: usize>(
    table: &mut Table,
    first: usize,
    rows: impl Iterator<Item = &'a T> + Clone,
    means: [fn(&T) -> f64; N],
) {
    for (column, mean) in (first..).zip(means) {
        if rows.clone().all(|row| mean(row) == 0.0)
            && let Some(column) = table.column_mut(column)
        {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
}

/// Formats the radio of a station. Columns about outages and marks are left out if there were none.
fn radio(station: &StationAggregate, room: Room) -> Table {
    let header = [
        "radio",
        "forwarded",
        "queue\ndrops",
        "down",
        "marked",
        "tries\neach",
        "lost after\nall tries %",
        "re-\nordered %",
    ];
    let shown = if room == Room::All { shown } else { mean };
    let row = |way: &RadioAggregate| {
        [
            way.way.to_owned(),
            shown(&way.forwarded, 1.0, 0),
            shown(&way.queue_dropped, 1.0, 1),
            shown(&way.disconnected, 1.0, 1),
            shown(&way.marked, 1.0, 1),
            shown(&way.tries, 1.0, 2),
            shown(&way.residual_loss, 100.0, 3),
            shown(&way.reordered, 100.0, 3),
        ]
    };
    let mut table = table(header, 1, station.radio.iter().map(row));
    let rare: [fn(&RadioAggregate) -> f64; 2] =
        [|way| way.disconnected.mean, |way| way.marked.mean];
    hide_zeros(&mut table, 3, station.radio.iter(), rare);
    table
}

/// Describes the actions of a station and its memory in words.
fn describe(what: &str, station: &StationAggregate) -> String {
    let counts = [
        (&station.marked, "marked"),
        (&station.hidden, "duplicate ACKs hidden"),
        (&station.delayed, "duplicate ACKs delayed"),
        (&station.sent_again, "sent again"),
        (&station.frozen, "windows closed"),
        (&station.made, "ACKs made"),
        (&station.held, "held"),
        (&station.held_dropped, "dropped while the mobile was gone"),
    ];
    let memory = [
        (&station.memory_flows, "flows"),
        (&station.memory_cached, "copies"),
        (&station.memory_queued, "radio queue"),
        (&station.memory_held, "held"),
    ];
    let list = |of: &[(&Interval, &str)], unit| {
        let some = of.iter().filter(|(count, _)| count.mean > 0.0);
        let words = some.map(|(count, name)| format!("{} {name}", shown(count, unit, 1)));
        words.collect::<Vec<_>>().join(", ")
    };
    const KIB: f64 = 1.0 / 1024.0;
    let counts = match list(&counts, 1.0) {
        none if none.is_empty() => "nothing done to flows".to_owned(),
        some => some,
    };
    format!(
        "{what}: {counts}; memory at most {} KiB ({})",
        shown(&station.memory, KIB, 1),
        list(&memory, KIB)
    )
}

#[cfg(test)]
mod tests {
    use airtcp_sim::toml::Source;

    use super::*;

    /// Returns the output for a scenario with these flows.
    fn printed(flows: &str) -> String {
        let text = format!(
            "duration = \"1s\"\nwarm_up = \"200ms\"\n[bottleneck]\nforth = \"rate 10mbit delay 5ms limit 50\"\n{flows}"
        );
        let source = Source { name: "s.toml", text: &text, settings: &[] };
        let scenario = source.read(|_| Err("no traces here".to_owned())).unwrap();
        let run = airtcp_sim::run(&scenario, None).unwrap();
        Report::new(&scenario, vec![run]).to_string()
    }

    #[test]
    fn jains_index_is_of_flows_that_compete_and_names_them() {
        let others = "\
            [[flow]]\nname = \"one\"\n\
            [[flow]]\nname = \"short\"\nbulk = { size = \"20kB\" }\n\
            [[flow]]\nname = \"up\"\nway = \"back\"\n\
            [[flow]]\nname = \"steady\"\nstrategies = \"udp+rate=100kbit\"\n\
            [[flow]]\nname = \"web\"\nrequest_response = { request = \"300B\", response = \"2kB\", think = \"50ms\" }\n";
        assert!(!printed(others).contains("Jain"), "{}", printed(others));
        let two = format!("{others}[[flow]]\nname = \"two\"\ncount = 2\n");
        let text = printed(&two);
        assert_eq!(text.matches("Jain").count(), 1, "{text}");
        assert!(text.contains("\nJain's index of one, two (2 copies): "), "{text}");
    }

    #[test]
    fn the_table_names_the_warm_up() {
        let text = printed("[[flow]]\n");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.ends_with("goodput from 0.2 s on, all else from 0 s"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
