//! `airtcp demo --lossy`: this stack and the kernel's congestion controls over the same bad link, with a picture.
//!
//! Each sender has the link to itself, for the same time, and the link is made anew for it with the same
//! seed. Packets are real: host, TUN device, emulated link, TUN device, host, in network namespaces. Where
//! there are none to be had, this stack alone sends, in the simulator.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airtcp_link::{Link, Way};
use airtcp_sim::{FlowSpec, Scenario, Topology, Wire};
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{Bulk, requirements};
use airtcp_trace::{NodeKind, Recorder, Written};
use airtcp_types::Rate;
use anyhow::Context;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::args::DemoArgs;
use crate::output;
use crate::record::{self, Recording};
use crate::serve::host_config;
use crate::value::LinkPair;

/// What the kernel may send with; those it does not have are left out.
const KERNEL: [&str; 3] = ["reno", "cubic", "bbr"];
/// Of the time, what passes before bytes count.
const WARM_UP: f64 = 0.2;

/// Runs every sender, and prints what became of it.
///
/// # Errors
/// A transfer broke; the trace cannot be written.
pub(super) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    // First of all: it fails once threads run.
    let real = airtcp_testbed::enter_user_namespace_if_needed().and_then(|()| requirements());
    let directory = directory(args)?;
    let mut report = Report::new(args);
    match real {
        Ok(()) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            over_packets(args, &directory, &runtime, &mut report)?;
        }
        Err(error) => {
            let reason = error.to_string();
            output::note(format_args!("note: {reason}"));
            output::note(
                "note: no kernel to compare with, so this stack sends alone, in the simulator",
            );
            report.simulated = Some(reason);
            in_simulator(args, &directory, &mut report)?;
        }
    }
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.to_string())?;
    }
    Ok(())
}

/// Where the trace goes.
fn directory(args: &DemoArgs) -> anyhow::Result<PathBuf> {
    match &args.trace {
        Some(directory) => Ok(directory.clone()),
        None => {
            let made = tempfile::Builder::new().prefix("airtcp-demo-").tempdir();
            Ok(made.context("making a directory for the picture")?.keep())
        }
    }
}

fn over_packets(
    args: &DemoArgs,
    directory: &Path,
    runtime: &Runtime,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut config = host_config([], &args.sender)?;
    config.events = true;
    let ours = config.tcp.sender.combination.to_string();
    output::note(format_args!("[1/{}] airtcp {ours}", 1 + KERNEL.len()));
    let nodes =
        [("sender", NodeKind::Host), ("link", NodeKind::Link), ("receiver", NodeKind::Host)];
    let recording = Recording::start(directory, &report.title(&ours), &nodes)?;
    let host = Host::Stack(Box::new(config));
    let row = send(args, runtime, host, None, Some(&recording))?;
    report.rows.push(row);
    report.keep(recording.finish()?);
    for (index, name) in KERNEL.into_iter().enumerate() {
        output::note(format_args!("[{}/{}] kernel {name}", index + 2, 1 + KERNEL.len()));
        match send(args, runtime, Host::Kernel, Some(name), None) {
            Ok(row) => report.rows.push(row),
            Err(error) => output::note(format_args!("note: left out: {}", output::explain(&error))),
        }
    }
    Ok(())
}

/// One sender on a link of its own.
fn send(
    args: &DemoArgs,
    runtime: &Runtime,
    host: Host,
    congestion: Option<&str>,
    recording: Option<&Recording>,
) -> anyhow::Result<Row> {
    let LinkPair { forth, back } = &args.link;
    let mut link = Link::new(forth, back)?;
    link.set_events(recording.is_some());
    let mut plan = Plan::new(host, link, Host::Kernel);
    if let Some(recording) = recording {
        plan.clock = recording.clock();
        plan.observer = Some(recording.observer());
    }
    let dumbbell = Dumbbell::build(plan)?;
    let bulk = Bulk {
        way: Way::Forth,
        is_ipv6: false,
        congestion: congestion.map(str::to_owned),
        warm_up: args.seconds.mul_f64(WARM_UP),
        time: args.seconds.mul_f64(1.0 - WARM_UP),
    };
    let done = runtime.block_on(dumbbell.bulk(&bulk)).context("the transfer broke")?;
    let counters = dumbbell.counters(Way::Forth);
    dumbbell.stop()?;
    let sender =
        if congestion.is_some() { done.sender.clone() } else { format!("airtcp {}", done.sender) };
    Ok(Row {
        sender,
        goodput: done.goodput().bits_per_sec(),
        retransmissions: done.retransmissions,
        lost: counters.channel_lost,
        queue_dropped: counters.queue_dropped,
    })
}

fn in_simulator(args: &DemoArgs, directory: &Path, report: &mut Report) -> anyhow::Result<()> {
    let LinkPair { forth, back } = args.link.clone();
    let flow = FlowSpec {
        profile: args.sender.profile.clone(),
        ..FlowSpec::new(args.sender.combination()?)
    };
    let scenario = Scenario {
        duration: args.seconds,
        warm_up: args.seconds.mul_f64(WARM_UP),
        flows: vec![flow],
        ..Scenario::new("lossy", Topology::Chain { wires: vec![Wire { forth, back }] })
    };
    let nodes = record::nodes(&scenario)?;
    let title = report.title(&scenario.flows[0].name);
    let mut recorder = Recorder::create(directory, &title, &nodes, Duration::ZERO)?;
    let result = airtcp_sim::run(&scenario, Some(&mut recorder))?;
    let (flow, link) = (&result.flows[0], &result.links[0]);
    report.rows.push(Row {
        sender: format!("airtcp {}", flow.combination),
        goodput: flow.goodput as u64,
        retransmissions: flow.retransmissions,
        lost: link.counters.channel_lost,
        queue_dropped: link.counters.queue_dropped,
    });
    report.keep(recorder.finish()?);
    Ok(())
}

/// All results.
#[derive(Debug, Serialize)]
struct Report {
    /// In the sender's direction, and in the other.
    link: [String; 2],
    seconds: f64,
    /// Why there are no packets but simulated ones.
    simulated: Option<String>,
    #[serde(rename = "senders")]
    rows: Vec<Row>,
    /// Of the first sender.
    files: Vec<PathBuf>,
}

/// One sender.
#[derive(Debug, Serialize)]
struct Row {
    sender: String,
    /// Payload, in bit/s, once the warm-up is over.
    goodput: u64,
    /// In segments.
    retransmissions: u64,
    /// Packets of its direction that the link lost.
    lost: u64,
    /// Packets of its direction that its queue dropped.
    queue_dropped: u64,
}

impl Report {
    fn new(args: &DemoArgs) -> Self {
        let LinkPair { forth, back } = &args.link;
        Self {
            link: [forth.to_string(), back.to_string()],
            seconds: args.seconds.as_secs_f64(),
            simulated: None,
            rows: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Of a trace.
    fn title(&self, sender: &str) -> String {
        format!("{sender} over {}", self.link[0])
    }

    fn keep(&mut self, written: Written) {
        self.files = written.files;
    }

    /// The pictures among the files.
    fn pictures(&self) -> impl Iterator<Item = &PathBuf> {
        self.files
            .iter()
            .filter(|file| file.extension().is_some_and(|extension| extension == "svg"))
    }
}

/// As a table.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_header([
            "sender",
            "goodput",
            "retrans",
            "lost on the link",
            "dropped by its queue",
        ]);
        for row in &self.rows {
            table.add_row([
                row.sender.clone(),
                Rate::from_bits_per_sec(row.goodput).to_string(),
                row.retransmissions.to_string(),
                row.lost.to_string(),
                row.queue_dropped.to_string(),
            ]);
        }
        for column in 1..5 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let [forth, back] = &self.link;
        let packets = if self.simulated.is_some() { "simulated packets" } else { "real packets" };
        writeln!(f, "{} s over a link of its own for each sender, {packets}", self.seconds)?;
        writeln!(f, "there: {forth}\nback:  {back}")?;
        write!(f, "{table}")?;
        self.pictures().try_for_each(|picture| write!(f, "\npicture: {}", picture.display()))
    }
}
