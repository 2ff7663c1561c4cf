//! `airtcp demo --lossy`: runs combinations of this stack and the kernel's congestion controls over
//! the same lossy link, draws all of them, and records a trace of the first.
//!
//! Each sender has the link to itself for the same time; the link is created again with the same
//! seed. Packets are real: host, TUN device, emulated link, TUN device, host, in network
//! namespaces. If namespaces are unavailable, only this stack's combinations run, in the simulator.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use airtcp_link::{Link, Way};
use airtcp_recovery::Combination;
use airtcp_sim::{FlowSpec, RunResult, Scenario, Simulation, Topology, Wire};
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{Bulk, requirements};
use airtcp_trace::figure::{Axis, Figure, Point, Scale, Series, Style};
use airtcp_trace::{NodeKind, Recorder, Written};
use airtcp_types::{Instant, Observer};
use anyhow::Context;
use comfy_table::ColumnConstraint;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::directory;
use super::meter::Meter;
use crate::args::DemoArgs;
use crate::attach::host_config;
use crate::compare::{RoundTrip, length};
use crate::output;
use crate::record::{self, Recording};
use crate::table::{fitting, link_lines, rate_unit, table, wrapped};
use crate::value::LinkPair;

/// The kernel's congestion controls; those that the kernel lacks are skipped.
const KERNEL: [&str; 3] = ["reno", "cubic", "bbr"];
/// The share of a transfer that is not measured.
const WARM_UP: f64 = 0.2;
/// A transfer of fewer round trips shows little beyond slow start.
const FEW: f64 = 30.0;
/// A link that delivers packets later than this share of its round trip, and than this time, does
/// not match its description.
const LATE: f64 = 0.1;
const LEAST_LATE: Duration = Duration::from_millis(1);

/// Runs every sender, and prints the results.
///
/// # Errors
/// A transfer fails; the trace cannot be written.
pub(super) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    // Before anything else: a process with several threads cannot enter a user namespace.
    let real = airtcp_testbed::enter_user_namespace_if_needed().and_then(|()| requirements());
    let directory = directory(args)?;
    let mut report = Report::new(args);
    if let Some(note) = too_short(args.phase(), &args.link()) {
        output::note(format_args!("note: {note}"));
    }
    match real {
        Ok(()) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            over_packets(args, &directory, &runtime, &mut report)?;
        }
        Err(error) => {
            let reason = error.to_string();
            output::note(format_args!("note: {reason}"));
            output::note("note: no comparison with the kernel: only this stack, in the simulator");
            report.simulated = Some(reason);
            in_simulator(args, &directory, &mut report)?;
        }
    }
    if let Some(note) = report.lateness(&args.link()) {
        output::note(format_args!("note: {note}"));
    }
    let picture = directory.join("senders.svg");
    fs::write(&picture, report.figure().to_svg()).with_context(|| picture.display().to_string())?;
    report.files.push(picture);
    output::print_result(&report, args.json)
}

/// Returns a warning if the time is short for the link.
fn too_short(time: Duration, link: &LinkPair) -> Option<String> {
    let trips = time.as_secs_f64() / RoundTrip::of(link).idle.as_secs_f64();
    (trips < FEW).then(|| {
        format!(
            "{} s are {trips:.0} round trips of this link; airtcp compare takes {} s for it: add --seconds {1}",
            time.as_secs_f64(),
            length(link).as_secs()
        )
    })
}

fn over_packets(
    args: &DemoArgs,
    directory: &Path,
    runtime: &Runtime,
    report: &mut Report,
) -> anyhow::Result<()> {
    let senders = combinations(args)?;
    let count = senders.len() + KERNEL.len();
    let mut number = 0;
    let mut announce = |name: String| {
        number += 1;
        output::note(format_args!("[{number}/{count}] {name}"));
    };
    for (index, combination) in senders.into_iter().enumerate() {
        announce(format!("airtcp {combination}"));
        let mut config = host_config([], &args.sender)?;
        config.tcp.sender.combination = combination.clone();
        config.events = index == 0;
        let recording = match index {
            0 => {
                let nodes = [
                    ("sender", NodeKind::Host),
                    ("link", NodeKind::Link),
                    ("receiver", NodeKind::Host),
                ];
                let title = report.title(&combination.to_string());
                Some(Recording::start(directory, &title, &nodes)?)
            }
            _ => None,
        };
        let host = Host::Stack(Box::new(config));
        let row = send(args, runtime, host, None, recording.as_ref())?;
        if row.sender != format!("airtcp {combination}") {
            let granted = &row.sender;
            output::note(format_args!(
                "note: the kernel does not support all options of {combination}: it runs as {granted}"
            ));
        }
        report.rows.push(row);
        if let Some(recording) = recording {
            report.keep(recording.finish()?);
        }
    }
    for name in KERNEL {
        announce(format!("kernel {name}"));
        match send(args, runtime, Host::Kernel, Some(name), None) {
            Ok(row) => report.rows.push(row),
            Err(error) => output::note(format_args!("note: left out: {}", output::explain(&error))),
        }
    }
    Ok(())
}

/// Returns this stack's combinations: the one of the flags, which is traced, and those of `--with`.
fn combinations(args: &DemoArgs) -> anyhow::Result<Vec<Combination>> {
    let first = args.sender.combination()?;
    let others = args.with.0.iter().filter(|other| **other != first).cloned();
    Ok(std::iter::once(first.clone()).chain(others.collect::<Vec<_>>()).collect())
}

/// Runs one sender on a new link.
fn send(
    args: &DemoArgs,
    runtime: &Runtime,
    host: Host,
    congestion: Option<&str>,
    recording: Option<&Recording>,
) -> anyhow::Result<Row> {
    let LinkPair { forth, back } = args.link();
    let link = Link::new(&forth, &back)?;
    let mut plan = Plan::new(host, link, Host::Kernel);
    if let Some(recording) = recording {
        plan.clock = recording.clock();
    }
    let meter = Arc::new(Mutex::new(Meter::new(recording.map(Recording::observer))));
    plan.observer = Some(meter.clone());
    let dumbbell = Dumbbell::build(plan)?;
    let bulk = Bulk {
        way: Way::Forth,
        is_ipv6: false,
        congestion: congestion.map(str::to_owned),
        warm_up: args.phase().mul_f64(WARM_UP),
        time: args.phase().mul_f64(1.0 - WARM_UP),
    };
    let done = runtime.block_on(dumbbell.bulk(&bulk)).context("the transfer failed")?;
    let counters = dumbbell.counters(Way::Forth);
    let lateness = dumbbell.lateness().percentile(99.0).as_secs_f64();
    let timeouts = match dumbbell.left().stack() {
        Some(stack) => stack.counters().tcp_ext_timeouts,
        None => dumbbell.left().namespace().timeouts()?,
    };
    dumbbell.stop()?;
    let meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
    let sender =
        if congestion.is_some() { done.sender.clone() } else { format!("airtcp {}", done.sender) };
    Ok(Row {
        sender,
        goodput: done.goodput().bits_per_sec(),
        segments: meter.data_segments(),
        retransmissions: done.retransmissions,
        timeouts,
        rtt: meter.rtt().map(|(mean, _)| mean.as_secs_f64()),
        smallest_rtt: meter.rtt().map(|(_, smallest)| smallest.as_secs_f64()),
        lost: counters.channel_lost,
        policed: counters.policed,
        queue_dropped: counters.queue_dropped,
        lateness: Some(lateness),
        progress: meter.progress().to_vec(),
    })
}

/// Runs this stack's combinations in the simulator, each on a new link.
fn in_simulator(args: &DemoArgs, directory: &Path, report: &mut Report) -> anyhow::Result<()> {
    for (index, combination) in combinations(args)?.into_iter().enumerate() {
        let LinkPair { forth, back } = args.link();
        let flow = FlowSpec {
            profile: args.sender.profile.clone(),
            pacing: args.sender.pacing,
            ..FlowSpec::new(combination.into())
        };
        let scenario = Scenario {
            duration: args.phase(),
            warm_up: args.phase().mul_f64(WARM_UP),
            flows: vec![flow],
            ..Scenario::new("lossy", Topology::Chain { wires: vec![Wire { forth, back }] })
        };
        let simulation = Simulation::new(&scenario)?;
        let recorder = match index {
            0 => {
                let nodes = record::nodes(&simulation);
                let title = report.title(&scenario.flows[0].name);
                let recorder = Recorder::create(directory, &title, &nodes, Duration::ZERO)?;
                Some(Arc::new(Mutex::new(recorder)))
            }
            _ => None,
        };
        let other = recorder.clone().map(|recorder| recorder as Arc<Mutex<dyn Observer + Send>>);
        let mut meter = Meter::new(other);
        let result = simulation.run(Some(&mut meter))?;
        report.rows.push(Row::simulated(&result, &meter));
        drop(meter);
        if let Some(recorder) = recorder.and_then(Arc::into_inner) {
            let recorder = recorder.into_inner().unwrap_or_else(PoisonError::into_inner);
            report.keep(recorder.finish()?);
        }
    }
    Ok(())
}

/// The report.
#[derive(Debug, Serialize)]
struct Report {
    /// In the sender's direction, and in the other.
    link: [String; 2],
    seconds: f64,
    /// The reason why packets are only simulated.
    simulated: Option<String>,
    #[serde(rename = "senders")]
    rows: Vec<Row>,
    /// The trace of the first sender, and the picture of all.
    files: Vec<PathBuf>,
}

/// The results of a sender.
#[derive(Clone, Debug, Serialize)]
struct Row {
    sender: String,
    /// Payload in bit/s, after the warm-up.
    goodput: u64,
    /// Data segments, including retransmissions.
    segments: u64,
    /// In segments.
    retransmissions: u64,
    timeouts: u64,
    /// The mean, in seconds.
    rtt: Option<f64>,
    smallest_rtt: Option<f64>,
    /// Packets in its direction that the link lost.
    lost: u64,
    /// Packets in its direction that the policer dropped.
    policed: u64,
    /// Packets in its direction that the queue dropped.
    queue_dropped: u64,
    /// 99 % of the packets left the link at most this late, in seconds; only with real packets.
    lateness: Option<f64>,
    /// Times, and the bytes acknowledged by then.
    #[serde(skip)]
    progress: Vec<(Instant, u64)>,
}

impl Row {
    fn simulated(result: &RunResult, meter: &Meter) -> Self {
        let (flow, link) = (&result.flows[0], &result.links[0]);
        let has_rtt = flow.rtt.count > 0;
        Self {
            sender: format!("airtcp {}", flow.combination),
            goodput: flow.goodput as u64,
            segments: flow.segments_sent,
            retransmissions: flow.retransmissions,
            timeouts: flow.timeouts.unwrap_or(0),
            rtt: has_rtt.then_some(flow.rtt.mean),
            smallest_rtt: has_rtt.then_some(flow.rtt.min),
            lost: link.counters.channel_lost,
            policed: link.counters.policed,
            queue_dropped: link.counters.queue_dropped,
            lateness: None,
            progress: meter.progress().to_vec(),
        }
    }

    /// Returns the cells of the row. `factor` converts bit/s to the unit of rates; `smallest_rtt`
    /// is that of all senders.
    fn cells(&self, factor: f64, smallest_rtt: f64) -> [String; 9] {
        let again = 100.0 * self.retransmissions as f64 / self.segments.max(1) as f64;
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        [
            self.sender.clone(),
            format!("{:.2}", self.goodput as f64 * factor),
            format!("{again:.2}"),
            self.timeouts.to_string(),
            or_none(self.rtt.map(|rtt| format!("{:.1}", rtt * 1e3))),
            or_none(self.rtt.map(|rtt| format!("{:.2}", rtt / smallest_rtt))),
            self.queue_dropped.to_string(),
            self.lost.to_string(),
            self.policed.to_string(),
        ]
    }
}

impl Report {
    fn new(args: &DemoArgs) -> Self {
        let LinkPair { forth, back } = args.link();
        Self {
            link: [forth.to_string(), back.to_string()],
            seconds: args.phase().as_secs_f64(),
            simulated: None,
            rows: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Returns a warning about senders whose link was late.
    fn lateness(&self, link: &LinkPair) -> Option<String> {
        let most = RoundTrip::of(link).idle.mul_f64(LATE).max(LEAST_LATE).as_secs_f64();
        let late = self.rows.iter().filter(|row| row.lateness.is_some_and(|late| late > most));
        let late: Vec<_> = late
            .map(|row| format!("{} ({:.1} ms)", row.sender, row.lateness.unwrap_or_default() * 1e3))
            .collect();
        (!late.is_empty()).then(|| {
            format!(
                "the link delivered 1 % of the packets late by more than {:.1} ms with {}: this machine is busy, and \
                 these figures are those of a slower link",
                most * 1e3,
                late.join(", ")
            )
        })
    }

    /// Returns the title of a trace.
    fn title(&self, sender: &str) -> String {
        format!("{sender} over {}", self.link[0])
    }

    fn keep(&mut self, written: Written) {
        self.files = written.files;
    }

    /// Draws the acknowledged bytes of each sender over time.
    fn figure(&self) -> Figure {
        let axis =
            |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear, range: None };
        let series = |row: &Row| {
            let begin = row.progress.first().map_or(Instant::ZERO, |(begin, _)| *begin);
            let point = |&(at, bytes): &(Instant, u64)| Point {
                x: at.since(begin).as_secs_f64(),
                y: bytes as f64 / 1e6,
                low: None,
                high: None,
            };
            Series {
                name: row.sender.clone(),
                points: row.progress.iter().map(point).collect(),
                style: Style::Line,
            }
        };
        Figure {
            title: format!("{} s over {}, each sender alone", self.seconds, self.link[0]),
            x: axis("time since the first ACK, s"),
            y: axis("acknowledged data, MB (more is better)"),
            series: self.rows.iter().map(series).collect(),
        }
    }

    /// Returns the command that compares senders over this link.
    fn compare(&self) -> String {
        let [forth, back] = &self.link;
        let back = if forth == back { String::new() } else { format!(" --back \"{back}\"") };
        format!("airtcp compare \"{forth}\"{back}")
    }

    /// Returns the pictures among the files.
    fn pictures(&self) -> impl Iterator<Item = &PathBuf> {
        self.files
            .iter()
            .filter(|file| file.extension().is_some_and(|extension| extension == "svg"))
    }
}

/// A table in the order of the runs: one run is not enough to rank senders.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = &self.rows;
        let smallest_rtt = rows.iter().filter_map(|row| row.smallest_rtt).fold(f64::MAX, f64::min);
        let (factor, unit) =
            rate_unit(rows.iter().map(|row| row.goodput as f64).fold(0.0, f64::max));
        let goodput = format!("goodput\n{unit}");
        let header = [
            "sender",
            &goodput,
            "sent\nagain %",
            "time-\nouts",
            "RTT\nms",
            "RTT\nx",
            "queue",
            "link",
            "pol-\niced",
        ];
        let is_policed = rows.iter().any(|row| row.policed > 0);
        let (table, ()) = fitting((), &[], |()| {
            let cells = rows.iter().map(|row| row.cells(factor, smallest_rtt));
            let mut table = table(header, 1, cells);
            if let Some(policed) = table.column_mut(header.len() - 1).filter(|_| !is_policed) {
                policed.set_constraint(ColumnConstraint::Hidden);
            }
            table
        });
        let packets = if self.simulated.is_some() { "simulated packets" } else { "real packets" };
        writeln!(f, "{} s per sender, each alone on the link, {packets}", self.seconds)?;
        writeln!(f, "{}\n{table}", link_lines(&self.link))?;
        writeln!(f, "RTT x: relative to the smallest RTT of all senders")?;
        writeln!(f, "queue, link: packets dropped by the queue, and lost on the link")?;
        if is_policed {
            writeln!(f, "policed: packets dropped by the policer")?;
        }
        let advice =
            "one short run each: no ranking; for means with intervals and a recommendation, type:";
        write!(f, "{}\n  {}", wrapped(advice, 0), self.compare())?;
        self.pictures().try_for_each(|picture| write!(f, "\npicture: {}", picture.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, parse};

    #[test]
    fn the_command_at_the_end_is_understood() {
        let Command::Demo(args) = parse(["airtcp", "demo", "--lossy"]).unwrap().command else {
            panic!("that is demo");
        };
        let report = Report::new(&args);
        let text = report.to_string();
        let command = text.lines().find(|line| line.starts_with("  airtcp compare ")).unwrap();
        let [forth, back] = &report.link;
        assert_eq!(
            command,
            format!("  airtcp compare \"{forth}\""),
            "both ways are one description"
        );
        assert_eq!(forth, back);
        assert!(parse(["airtcp", "compare", forth]).is_ok());
        let slow = "rate 1mbit".to_owned();
        let other = Report { link: [forth.clone(), slow], ..Report::new(&args) };
        assert_eq!(other.compare(), format!("airtcp compare \"{forth}\" --back \"rate 1mbit\""));
    }

    #[test]
    fn senders_stand_in_the_order_they_were_given_in() {
        let row = |sender: &str, goodput, policed| Row {
            sender: sender.to_owned(),
            goodput,
            segments: 1_000,
            retransmissions: 12,
            timeouts: 0,
            rtt: Some(0.045),
            smallest_rtt: Some(0.041),
            lost: 12,
            policed,
            queue_dropped: 0,
            lateness: Some(if policed > 0 { 0.0042 } else { 0.000_1 }),
            progress: Vec::new(),
        };
        let report = |policed| Report {
            link: ["loss 1%".to_owned(), "loss 1%".to_owned()],
            seconds: 2.5,
            simulated: None,
            rows: vec![
                row("airtcp rack/cubic/dcr:timer", 900_000, 0),
                row("kernel bbr", 18_000_000, policed),
            ],
            files: Vec::new(),
        };
        let text = report(0).to_string();
        assert!(text.find("airtcp rack/cubic/dcr:timer ") < text.find("kernel bbr"), "{text}");
        // The unit is that of the fastest.
        assert!(text.contains("Mbit/s") && text.contains(" 0.90"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains("policed"), "{text}");
        let policed = report(123_456).to_string();
        assert!(policed.contains("123456") && policed.contains("policed: "), "{policed}");
        assert!(policed.lines().all(|line| line.chars().count() <= 80), "{policed}");
        let link = |text: &str| crate::value::link(text).unwrap();
        assert_eq!(report(0).lateness(&link("rate 20mbit delay 5ms")), None);
        let late = report(1).lateness(&link("rate 20mbit delay 5ms")).unwrap();
        assert!(late.contains("with kernel bbr (4.2 ms): this machine is busy"), "{late}");
        assert_eq!(report(1).lateness(&link("rate 20mbit delay 50ms")), None);
    }

    #[test]
    fn a_duration_of_few_round_trips_is_reported_as_short() {
        let link = |text: &str| crate::value::link(text).unwrap();
        let time = Duration::from_millis(2_500);
        assert_eq!(too_short(time, &link("rate 20mbit delay 20ms")), None);
        assert_eq!(too_short(time, &link("loss 1%")), None);
        assert_eq!(
            too_short(time, &link("geo-satellite")).unwrap(),
            "2.5 s are 4 round trips of this link; airtcp compare takes 90 s for it: add --seconds 90"
        );
    }
}
