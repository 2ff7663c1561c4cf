//! Runs scenarios on all cores.

use std::num::NonZero;
use std::time::Duration;

use airtcp_recovery::{Combination, Profile};
use airtcp_sim::{FlowSpec, RunResult, Scenario, SimError, Simulation, Topology, Wire};
use airtcp_types::Observer;
use airtcp_types::rng::Stream;
use rayon::prelude::*;

use crate::{LabError, Run};

/// Runs `scenario` with every seed. The results are in the order of the seeds.
///
/// # Errors
///
/// The error of the first seed that failed.
pub(crate) fn seeds(
    run: &Run,
    scenario: impl Fn(u64) -> Scenario + Sync,
) -> Result<Vec<RunResult>, LabError> {
    spread(run, run.seeds as usize, |job| once(scenario(job as u64 + 1), job as u64 + 1))
}

/// Runs `scenario` with every seed and watches each run with an observer that `observer` creates
/// for the nodes of that run.
///
/// # Errors
///
/// The error of the first seed that failed.
pub(crate) fn watched<O: Observer + Send>(
    run: &Run,
    scenario: impl Fn(u64) -> Scenario + Sync,
    observer: impl Fn(&Simulation<'_>) -> O + Sync,
) -> Result<Vec<(RunResult, O)>, LabError> {
    spread(run, run.seeds as usize, |job| {
        once_watched(scenario(job as u64 + 1), job as u64 + 1, &observer)
    })
}

/// Runs jobs, numbered from 0, on the threads of `run`, and counts each completed job as a run. The
/// results are in the order of the jobs.
///
/// # Errors
///
/// The error of the first job that failed; [`LabError::Records`] if the experiment is judged from
/// records.
pub(crate) fn spread<T: Send>(
    run: &Run,
    jobs: usize,
    one: impl Fn(usize) -> Result<T, LabError> + Sync,
) -> Result<Vec<T>, LabError> {
    run.may_run()?;
    let threads = run.threads.map_or(0, NonZero::get);
    on_threads(threads, jobs, |job| one(job).inspect(|_| run.done.add()))
}

/// Runs jobs on this number of threads; on all cores if it is 0. The results are in the order of
/// the jobs.
///
/// # Errors
///
/// The error of the first job that failed.
pub(crate) fn on_threads<T: Send>(
    threads: usize,
    jobs: usize,
    one: impl Fn(usize) -> Result<T, LabError> + Sync,
) -> Result<Vec<T>, LabError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| SimError::Threads(error.to_string()))?;
    // All jobs finish before their results are examined, so that the reported error is that of the
    // first failed job on any machine.
    let jobs = (0..jobs).into_par_iter().with_max_len(1);
    let results: Vec<_> = pool.install(|| jobs.map(&one).collect());
    results.into_iter().collect()
}

/// Runs `scenario` once with this seed.
///
/// # Errors
///
/// The scenario is invalid.
pub(crate) fn once(scenario: Scenario, seed: u64) -> Result<RunResult, LabError> {
    Ok(airtcp_sim::run(&Scenario { seed, ..scenario }, None)?)
}

/// Runs `scenario` once with this seed and an observer that `observer` creates for its nodes.
///
/// # Errors
///
/// The scenario is invalid.
pub(crate) fn once_watched<O: Observer>(
    scenario: Scenario,
    seed: u64,
    observer: impl FnOnce(&Simulation<'_>) -> O,
) -> Result<(RunResult, O), LabError> {
    let scenario = Scenario { seed, ..scenario };
    let simulation = Simulation::new(&scenario)?;
    let mut observer = observer(&simulation);
    let result = simulation.run(Some(&mut observer))?;
    Ok((result, observer))
}

/// Returns a flow with a combination of the registry.
///
/// # Panics
///
/// Panics if the registry has no such combination.
pub(crate) fn flow(combination: &str, profile: Profile) -> FlowSpec {
    let combination: Combination = combination.parse().expect("a name of the registry");
    FlowSpec { profile, ..FlowSpec::new(combination.into()) }
}

/// Returns a scenario of one flow over one wire.
pub(crate) fn over(name: &str, wire: Wire, flow: FlowSpec) -> Scenario {
    Scenario { flows: vec![flow], ..Scenario::new(name, Topology::Chain { wires: vec![wire] }) }
}

/// Delays the start of every flow of a scenario by a random time of up to a second.
///
/// Where drops occur only at full queues, nothing else is random, and flows that start together
/// stay synchronised.
pub(crate) fn staggered(scenario: &Scenario, seed: u64) -> Scenario {
    let mut random = Stream::new(seed, 0);
    let mut scenario = scenario.clone();
    for flow in &mut scenario.flows {
        flow.start += Duration::from_nanos(random.below(1_000_000_000));
    }
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_start_up_to_a_second_after_their_own_time() {
        let late = |start| FlowSpec {
            start: Duration::from_secs(start),
            ..flow("sack/reno", Profile::modern())
        };
        let topology = Topology::Chain { wires: vec![Wire::default()] };
        let flows = [0, 50, 50].map(late).to_vec();
        let scenario = Scenario { flows, ..Scenario::new("late", topology) };
        let starts = |seed| {
            let flows = staggered(&scenario, seed).flows;
            flows.iter().map(|flow| flow.start.as_secs_f64()).collect::<Vec<_>>()
        };
        let [first, second, third] = starts(1)[..] else { panic!("three flows") };
        assert!((0.0..1.0).contains(&first), "{first}");
        assert!((50.0..51.0).contains(&second) && (50.0..51.0).contains(&third));
        assert!(second != third && starts(1) != starts(2));
    }
}
