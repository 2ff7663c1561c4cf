//! `airtcp compare`: many combinations over one link, in virtual time, with the same seeds.

mod args;
mod picture;
mod report;

use std::fs;
use std::path::Path;

use airtcp_link::spec::RateSpec;
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
    let scenario = scenario(args)?;
    let progress = Progress::start(u64::from(args.seeds) * args.with.0.len() as u64);
    let mut results: Vec<Vec<RunResult>> = Vec::new();
    for combination in &args.with.0 {
        let flow = FlowSpec { combination: combination.clone(), ..scenario.flows[0].clone() };
        let scenario = Scenario { flows: vec![flow], ..scenario.clone() };
        let seeds = 1..1 + u64::from(args.seeds);
        let done = |_: &RunResult| progress.advance();
        results.push(airtcp_sim::run_seeds(&scenario, seeds, args.threads, done)?);
    }
    drop(progress);
    let base_rtt = report::base_rtt(&args.link);
    let rows = args.with.0.iter().zip(&results);
    let rows = rows.map(|(combination, runs)| Row::new(combination.to_string(), runs, base_rtt));
    let report = Report::new(args, base_rtt, rows.collect());
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.to_string())?;
    }
    if let Some(path) = &args.picture {
        fs::write(path, picture::of(&report).to_svg())
            .with_context(|| format!("--picture {}", path.display()))?;
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
