//! `airtcp compare`: simulates combinations over one link with the same seeds.

mod args;
mod picture;
mod recommend;
mod report;
mod round_trip;
mod text;

use std::fs;
use std::path::Path;

use airtcp_link::spec::RateSpec;
use airtcp_recovery::Combination;
use airtcp_sim::{
    FlowSpec, Interval, RunResult, Scenario, Sender, Topology, Wire, run_seeds_with_cancel,
};
use airtcp_stack::tcp::TcpConfig;
use airtcp_types::ByteCount;
use anyhow::Context;

use crate::call::Call;
use crate::file::{self, Folder};
use crate::output::{self, Mistake};
use crate::value::LinkPair;
use report::{Report, Row};
use round_trip::capacity;

pub(crate) use args::CompareArgs;
pub(crate) use round_trip::{RoundTrip, length};

/// The name of the results in the directory of `--out`.
const RESULTS: &str = "compare.json";

/// The share of a run that is not measured.
const WARM_UP: f64 = 0.2;

/// The buffers, in multiples of the link's capacity: slow start ends with twice the capacity in
/// flight, and the sender keeps the data until all losses are repaired.
const ROOM: u64 = 4;
/// The maximum size of a buffer: one run per core must fit into the machine's memory.
const LARGEST: ByteCount = ByteCount::from_mib(128);

/// Runs every combination, and prints the results.
///
/// # Errors
/// The link's trace cannot be read, a scenario is invalid, or the picture cannot be written.
pub(crate) fn run(args: &CompareArgs, call: &Call) -> anyhow::Result<()> {
    if let Some(path) = &args.picture {
        // Before all runs. An existing picture is replaced only after them.
        file::check_writable(path).with_context(|| format!("--picture {}", path.display()))?;
    }
    let plan = Plan::new(args)?;
    let folder = args.out.as_deref().map(|out| Folder::new(out, RESULTS)).transpose()?;
    let (rows, beside_itself) = plan.run(args, call)?;
    let report = Report::new(args, &plan, rows, beside_itself);
    if args.json {
        call.print_json(&report)?;
    } else {
        call.print(&report.to_string())?;
    }
    if let Some(folder) = &folder {
        folder.write("compare.svg", &picture::of(&report).to_svg())?;
        folder.write(RESULTS, &serde_json::to_string_pretty(&report)?)?;
    }
    if let Some(path) = &args.picture {
        let written = fs::write(path, picture::of(&report).to_svg());
        written.with_context(|| format!("--picture {}", path.display()))?;
        output::note(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

/// The scenario and its parameters, for all combinations.
struct Plan {
    /// The scenario; the sender of its flow is replaced for each run.
    scenario: Scenario,
    is_random: bool,
    round_trip: RoundTrip,
    /// The capacity of the link.
    capacity: ByteCount,
    seeds: u64,
    /// The competitor of a flow of each combination.
    beside: Option<Sender>,
    shared_seeds: u64,
}

impl Plan {
    fn new(args: &CompareArgs) -> anyhow::Result<Self> {
        // Without a rate, only random losses could limit the growth of a flow, and possibly nothing
        // would.
        let link = args.link();
        if link.forth.rate == RateSpec::Unlimited && link.forth.police.is_none() {
            let what = "the link has no rate, so its capacity is unlimited: add one, for example \
                        \"rate 1gbit delay 20ms\"";
            return Err(Mistake::new(what.to_owned()).into());
        }
        let round_trip = RoundTrip::of(&link);
        let scenario = scenario(args, link.clone())?;
        let capacity = capacity(&link, &scenario.traces);
        let is_random = scenario.is_random() || args.with.0.iter().any(Sender::uses_seed);
        let seeds = if is_random { u64::from(args.seeds) } else { 1 };
        let beside = (args.flows == 1).then(|| cubic().into());
        // Shared runs take longest and do not decide the ranking: half the seeds are enough, but at
        // least five.
        let shared_seeds = if beside.is_some() { seeds.div_ceil(2).max(seeds.min(5)) } else { 0 };
        Ok(Self { scenario, is_random, round_trip, capacity, seeds, beside, shared_seeds })
    }

    /// Returns the size of buffers that do not limit a flow of `sender`, at most [`LARGEST`];
    /// `None` if the default ones do not limit it: `compare` compares senders, not buffers.
    fn buffer(&self, sender: &Sender) -> Option<ByteCount> {
        // `quickserve` and `quickget` have no option for the buffers of RRTP.
        let Sender::Tcp(_) = sender else { return None };
        let tcp = TcpConfig::default();
        let usual = tcp.send_buffer.min(tcp.receive_buffer);
        let needed = (self.capacity * ROOM).min(LARGEST);
        (needed > usual).then_some(needed)
    }

    /// Returns the rows, and the goodput of a flow of cubic that competes with another flow of
    /// cubic, in bit/s.
    fn run(&self, args: &CompareArgs, call: &Call) -> anyhow::Result<(Vec<Row>, Option<f64>)> {
        let senders = &args.with.0;
        let is_listed = self.beside.as_ref().is_some_and(|beside| senders.contains(beside));
        let of_each = (self.seeds + self.shared_seeds) * senders.len() as u64;
        let count = call.count(of_each + if is_listed { 0 } else { self.shared_seeds });
        let run = |senders: &[&Sender], seeds: u64| {
            let flow = |sender: &&Sender| {
                let buffer = self.buffer(sender);
                FlowSpec {
                    sender: (*sender).clone(),
                    receive_buffer: buffer,
                    send_buffer: buffer,
                    ..self.scenario.flows[0].clone()
                }
            };
            let flows = senders.iter().map(flow).collect();
            let scenario = Scenario { flows, ..self.scenario.clone() };
            // Without random elements, all seeds give the same result.
            let drawn = if scenario.is_random() { seeds } else { seeds.min(1) };
            let done = |_: &RunResult| count.advance_by(1);
            let (range, flag) = (1..1 + drawn, call.flag());
            let mut runs = run_seeds_with_cancel(&scenario, range, args.threads, flag, done)?;
            if let Some(only) = runs.first().filter(|_| drawn < seeds).cloned() {
                count.advance_by(seeds - drawn);
                runs.resize(seeds as usize, only);
            }
            anyhow::Ok(runs)
        };
        let idle = self.round_trip.idle;
        let base_rtt = (!idle.is_zero()).then_some(idle.as_secs_f64());
        let mut rows = Vec::new();
        let mut beside_itself = None;
        for sender in senders {
            let alone = run(&[sender], self.seeds)?;
            let shared = match &self.beside {
                Some(beside) => run(&[sender, beside], self.shared_seeds)?,
                None => Vec::new(),
            };
            if self.beside.as_ref() == Some(sender) {
                beside_itself = Some(goodput_beside(&shared));
            }
            rows.push(Row::new(sender.to_string(), &alone, &shared, base_rtt));
        }
        if let (Some(beside), false) = (&self.beside, is_listed) {
            beside_itself = Some(goodput_beside(&run(&[beside, beside], self.shared_seeds)?));
        }
        Ok((rows, beside_itself.map(|goodput| goodput.mean)))
    }
}

/// Returns the goodput of the second flow of each run, in bit/s.
fn goodput_beside(runs: &[RunResult]) -> Interval {
    let second = runs.iter().filter_map(|run| Some(run.flows.get(1)?.goodput));
    Interval::of(&second.collect::<Vec<_>>())
}

/// The competitor of every combination: Linux's default.
fn cubic() -> Combination {
    "rack/cubic".parse().expect("both are in the registry")
}

fn scenario(args: &CompareArgs, link: LinkPair) -> anyhow::Result<Scenario> {
    let duration = args.seconds.unwrap_or_else(|| length(&link));
    let wire = Wire { forth: link.forth, back: link.back };
    let mut traces = std::collections::BTreeMap::new();
    for spec in [&wire.forth, &wire.back] {
        if let RateSpec::Trace(file) = &spec.rate {
            let trace = file::link_trace(Path::new(file))
                .map_err(|why| anyhow::anyhow!("trace {file}: {why}"))?;
            traces.insert(file.clone(), trace);
        }
    }
    let warm_up = duration.mul_f64(WARM_UP);
    let flow = FlowSpec {
        count: args.flows,
        // All flows start during the warm-up, at different times.
        stagger: warm_up / args.flows,
        pacing: args.pacing,
        ..FlowSpec::new(cubic().into())
    };
    Ok(Scenario {
        duration,
        warm_up,
        flows: vec![flow],
        traces,
        ..Scenario::new("compare", Topology::Chain { wires: vec![wire] })
    })
}
