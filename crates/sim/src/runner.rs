//! Running a scenario with many seeds.

use std::num::NonZero;
use std::ops::Range;

use rayon::prelude::*;

use crate::{Cancel, RunResult, Scenario, SimError, Simulation};

/// Runs a scenario with many seeds, and returns the results in the order of the seeds.
///
/// The runs use `threads` threads; `None` is one for each core. The results do not depend on the
/// number of threads. `done` is called after each run, in any order.
///
/// ```
/// use airtcp_sim::{FlowSpec, Scenario, Topology, Wire, run_seeds};
///
/// let link = "rate 20mbit delay 20ms limit 70 loss 1% only forth".parse()?;
/// let topology = Topology::Chain { wires: vec![Wire::both(link)] };
/// let goodput = |sender: &str| -> Result<Vec<f64>, Box<dyn std::error::Error>> {
///     let flows = vec![FlowSpec::new(sender.parse()?)];
///     let scenario = Scenario { flows, ..Scenario::new("test", topology.clone()) };
///     let runs = run_seeds(&scenario, 1..4, None, |_| ())?;
///     Ok(runs.iter().map(|run| run.flows[0].goodput).collect())
/// };
/// let (default, cubic) = (goodput("rack/bbr3/spike")?, goodput("rack/cubic")?);
/// assert!(default.iter().zip(&cubic).all(|(default, cubic)| *default > 2.0 * cubic));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The error of the first seed whose run failed; [`SimError::Threads`] if threads cannot be
/// started.
pub fn run_seeds(
    scenario: &Scenario,
    seeds: Range<u64>,
    threads: Option<NonZero<usize>>,
    done: impl Fn(&RunResult) + Sync,
) -> Result<Vec<RunResult>, SimError> {
    run_seeds_with_cancel(scenario, seeds, threads, &Cancel::default(), done)
}

/// Runs a scenario with many seeds, as [`run_seeds`] does, until `cancel` is set.
///
/// # Errors
///
/// Those of [`run_seeds`]; [`SimError::Cancelled`].
pub fn run_seeds_with_cancel(
    scenario: &Scenario,
    seeds: Range<u64>,
    threads: Option<NonZero<usize>>,
    cancel: &Cancel,
    done: impl Fn(&RunResult) + Sync,
) -> Result<Vec<RunResult>, SimError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, NonZero::get))
        .build()
        .map_err(|error| SimError::Threads(error.to_string()))?;
    let seeds: Vec<u64> = seeds.collect();
    let one = |seed: &u64| {
        cancel.check()?;
        let scenario = Scenario { seed: *seed, ..scenario.clone() };
        let result = Simulation::new(&scenario)?.with_cancel(cancel).run(None);
        result.inspect(&done)
    };
    // Collected before errors are returned, so that the error is always that of the first failing
    // seed.
    let results: Vec<_> = pool.install(|| seeds.par_iter().map(one).collect());
    results.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{FlowSpec, Topology, Wire};

    fn scenario() -> Scenario {
        let spec = "rate 2mbit delay 5ms 1ms limit 20 loss 2%".parse().unwrap();
        Scenario {
            duration: std::time::Duration::from_secs(1),
            flows: vec![FlowSpec::new("sack/cubic".parse().unwrap())],
            ..Scenario::new("one", Topology::Chain { wires: vec![Wire::both(spec)] })
        }
    }

    #[test]
    fn threads_change_nothing_but_the_time_it_takes() {
        let done = AtomicUsize::new(0);
        let on = |threads| {
            let count = |_: &RunResult| _ = done.fetch_add(1, Ordering::Relaxed);
            let runs = run_seeds(&scenario(), 1..9, NonZero::new(threads), count).unwrap();
            serde_json::to_string(&runs).unwrap()
        };
        let one = on(1);
        assert_eq!(one, on(4));
        assert_eq!(one, on(0), "on all cores");
        assert_eq!(done.into_inner(), 24);
    }

    #[test]
    fn no_run_starts_once_it_is_cancelled() {
        let (cancel, done) = (Cancel::default(), AtomicUsize::new(0));
        let cancelled =
            run_seeds_with_cancel(&scenario(), 1..100, NonZero::new(1), &cancel, |_| {
                done.fetch_add(1, Ordering::Relaxed);
                cancel.cancel();
            });
        assert_eq!((cancelled, done.into_inner()), (Err(SimError::Cancelled), 1));
    }

    #[test]
    fn a_run_ends_once_it_is_cancelled() {
        let second = std::time::Duration::from_secs(1);
        // Without the flag, this would take days.
        let long = Scenario { duration: second * 100_000_000, ..scenario() };
        let cancel = Cancel::default();
        let mut states = 0;
        let simulation = Simulation::new(&long).unwrap().with_cancel(&cancel);
        let cancelled = simulation.run_with_states(None, second, &mut |_| {
            states += 1;
            cancel.cancel();
        });
        // Those of the first second: a sender and both directions of its link.
        assert_eq!((cancelled, states), (Err(SimError::Cancelled), 3));
    }

    #[test]
    fn no_seeds_are_no_runs_and_an_error_is_an_error() {
        assert_eq!(run_seeds(&scenario(), 5..5, None, |_| ()), Ok(Vec::new()));
        let empty = Scenario { flows: Vec::new(), ..scenario() };
        let senseless = run_seeds(&empty, 1..3, None, |_| ());
        assert!(matches!(senseless, Err(SimError::Senseless { .. })));
    }
}
