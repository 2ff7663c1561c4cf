//! Runs jobs on all cores and returns their results in the order of the jobs.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use airtcp_sim::SimError;

use crate::LabError;

/// The number of jobs per thread that may be started before the result of the oldest is taken.
const AHEAD: usize = 4;

/// Calls `work` on every job with this number of threads, and passes the results to `take` in the
/// order of the jobs. Memory use depends on the number of threads, not on the number of jobs.
///
/// # Errors
///
/// The first error in the order of the jobs. Later jobs that have not started do not run.
pub(super) fn in_order<J: Send, T: Send>(
    threads: Option<NonZero<usize>>,
    mut jobs: impl Iterator<Item = Result<J, LabError>>,
    work: impl Fn(J) -> Result<T, LabError> + Sync,
    mut take: impl FnMut(T) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, NonZero::get))
        .build()
        .map_err(|error| SimError::Threads(error.to_string()))?;
    let window = AHEAD * pool.current_num_threads();
    let (work, is_over) = (&work, &AtomicBool::new(false));
    pool.in_place_scope_fifo(|scope| {
        let (done, results) = mpsc::channel();
        let (mut begun, mut taken) = (0_usize, 0_usize);
        let mut early = BTreeMap::new();
        let mut all = || loop {
            while begun < taken + window
                && let Some(job) = jobs.next()
            {
                let (job, number, done) = (job?, begun, done.clone());
                scope.spawn_fifo(move |_| {
                    if !is_over.load(Ordering::Relaxed) {
                        // Without sending the panic, the receiver would wait for this result
                        // forever.
                        let result = catch_unwind(AssertUnwindSafe(|| work(job)));
                        let _ = done.send((number, result));
                    }
                });
                begun += 1;
            }
            if taken == begun {
                return Ok(());
            }
            early.extend(results.recv());
            while let Some(result) = early.remove(&taken) {
                take(result.unwrap_or_else(|panic| resume_unwind(panic))?)?;
                taken += 1;
            }
        };
        let result = all();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn results_come_in_order_and_few_jobs_are_begun_early() {
        let threads = NonZero::new(4);
        let (begun, mut taken) = (AtomicUsize::new(0), Vec::new());
        let jobs = (0..200_u64).map(|job| {
            begun.fetch_add(1, Ordering::Relaxed);
            Ok(job)
        });
        let work = |job: u64| {
            // Earlier jobs take longer.
            sleep(Duration::from_micros(50 * (7 - job % 8)));
            Ok(job)
        };
        in_order(threads, jobs, work, |job| {
            assert!(begun.load(Ordering::Relaxed) <= taken.len() + 4 * AHEAD + 1);
            taken.push(job);
            Ok(())
        })
        .unwrap();
        assert_eq!(taken, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn the_error_is_that_of_the_first_job() {
        let refuse = |job: u64| Err::<(), _>(LabError::Distribution(job.to_string()));
        let work = |job| if job < 20 { Ok(()) } else { refuse(job) };
        let mut count = 0;
        let error = in_order(NonZero::new(3), (0..1_000).map(Ok), work, |()| {
            count += 1;
            Ok(())
        });
        assert_eq!((error.unwrap_err().to_string().as_str(), count), ("no distribution: 20", 20));
    }

    #[test]
    #[should_panic(expected = "a bug")]
    fn a_panic_comes_through() {
        let work = |job: u64| if job == 5 { panic!("a bug") } else { Ok(()) };
        let _ = in_order(NonZero::new(2), (0..100).map(Ok), work, |()| Ok(()));
    }
}
