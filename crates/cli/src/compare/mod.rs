//! `airtcp compare`: many combinations over one link, in virtual time, with the same seeds.

mod args;
mod picture;
mod report;

use std::fs::{self, OpenOptions};
use std::path::Path;

use airtcp_link::spec::RateSpec;
use airtcp_recovery::Combination;
use airtcp_sim::{FlowSpec, RunResult, Scenario, Topology, Wire};
use anyhow::Context;

use crate::progress::Progress;
use crate::{file, output};
use report::{Report, Row};

pub(crate) use args::CompareArgs;

/// Of the time, what passes before bytes count.
const WARM_UP: f64 = 0.2;

/// Runs every combination, and prints what came of it.
///
/// # Errors
/// The link cannot be had, a run makes no sense, the picture cannot be written.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let picture = |path: &Path| format!("--picture {}", path.display());
    if let Some(path) = &args.picture {
        // Before all runs, and what is there already stays as it is until they are done.
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        file.with_context(|| picture(path))?;
    }
    let scenario = scenario(args)?;
    let beside = (args.flows == 1).then(Combination::default);
    let seeds = u64::from(args.seeds);
    // Sharing takes longest, and is not what is ranked: half the seeds do, but a few.
    let shared_seeds = if beside.is_some() { seeds.div_ceil(2).max(seeds.min(5)) } else { 0 };
    let progress = Progress::start((seeds + shared_seeds) * args.with.0.len() as u64);
    let run = |combinations: &[&Combination], seeds: u64| {
        let flow = |combination: &&Combination| FlowSpec {
            combination: (*combination).clone(),
            ..scenario.flows[0].clone()
        };
        let flows = combinations.iter().map(flow).collect();
        let scenario = Scenario { flows, ..scenario.clone() };
        let done = |_: &RunResult| progress.advance();
        airtcp_sim::run_seeds(&scenario, 1..1 + seeds, args.threads, done)
    };
    let base_rtt = report::base_rtt(&args.link);
    let mut rows = Vec::new();
    for combination in &args.with.0 {
        let alone = run(&[combination], seeds)?;
        let shared = match &beside {
            Some(beside) => run(&[combination, beside], shared_seeds)?,
            None => Vec::new(),
        };
        rows.push(Row::new(combination.to_string(), &alone, &shared, base_rtt));
    }
    drop(progress);
    let report = Report::new(args, beside.map(|beside| beside.to_string()), rows);
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.to_string())?;
    }
    if let Some(path) = &args.picture {
        fs::write(path, picture::of(&report).to_svg()).with_context(|| picture(path))?;
        output::note(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

/// What all runs have in common; its flow is still to be given a combination.
fn scenario(args: &CompareArgs) -> anyhow::Result<Scenario> {
    let wire = Wire { forth: args.link.forth.clone(), back: args.link.back.clone() };
    let mut traces = std::collections::BTreeMap::new();
    for spec in [&wire.forth, &wire.back] {
        if let RateSpec::Trace(file) = &spec.rate {
            let trace = file::link_trace(Path::new(file))
                .map_err(|why| anyhow::anyhow!("{file}: {why}"))?;
            traces.insert(file.clone(), trace);
        }
    }
    let warm_up = args.seconds.mul_f64(WARM_UP);
    let flow = FlowSpec {
        count: args.flows,
        // All have begun when bytes begin to count, and not at the same moment.
        stagger: warm_up / args.flows,
        ..FlowSpec::new(args.with.0.first().cloned().unwrap_or_default())
    };
    Ok(Scenario {
        duration: args.seconds,
        warm_up,
        flows: vec![flow],
        traces,
        ..Scenario::new("compare", Topology::Chain { wires: vec![wire] })
    })
}
