//! Scenarios run on all cores.

use std::num::NonZero;
use std::time::Duration;

use airtcp_sim::{RunResult, Scenario, SimError};
use airtcp_types::Observer;
use airtcp_types::rng::Stream;
use rayon::prelude::*;

use crate::{LabError, Run};

/// Runs `scenario` of every seed. Results are in the order of the seeds.
///
/// # Errors
///
/// Those of the first seed that failed.
pub(crate) fn seeds(
    run: &Run,
    scenario: impl Fn(u64) -> Scenario + Sync,
) -> Result<Vec<RunResult>, LabError> {
    spread(run, |seed| airtcp_sim::run(&Scenario { seed, ..scenario(seed) }, None))
}

/// The same, with an observer for each run.
///
/// # Errors
///
/// Those of the first seed that failed.
pub(crate) fn watched<O: Observer + Send>(
    run: &Run,
    scenario: impl Fn(u64) -> Scenario + Sync,
    observer: impl Fn() -> O + Sync,
) -> Result<Vec<(RunResult, O)>, LabError> {
    spread(run, |seed| {
        let mut observer = observer();
        let result = airtcp_sim::run(&Scenario { seed, ..scenario(seed) }, Some(&mut observer))?;
        Ok((result, observer))
    })
}

fn spread<T: Send>(
    run: &Run,
    one: impl Fn(u64) -> Result<T, SimError> + Sync,
) -> Result<Vec<T>, LabError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(run.threads.map_or(0, NonZero::get))
        .build()
        .map_err(|error| SimError::Threads(error.to_string()))?;
    // Gathered before they are looked through, so that the error is that of the first seed on any machine.
    let results: Vec<_> = pool.install(|| (1..run.seeds + 1).into_par_iter().map(&one).collect());
    results.into_iter().map(|result| result.map_err(LabError::from)).collect()
}

/// Has every flow of a scenario start at a time of its own within the first second.
///
/// Where queues alone drop packets nothing else is random, and flows that start together stay in step.
pub(crate) fn staggered(scenario: &Scenario, seed: u64) -> Scenario {
    let mut random = Stream::new(seed, 0);
    let mut scenario = scenario.clone();
    for flow in &mut scenario.flows {
        flow.start = Duration::from_nanos(random.below(1_000_000_000));
    }
    scenario
}
