//! Runs of this process.

use std::sync::atomic::{AtomicU64, Ordering};

static RUNS: AtomicU64 = AtomicU64::new(0);

/// Runs that the experiments of this process have finished, simulated and real: shows how far a long one is.
pub fn runs() -> u64 {
    RUNS.load(Ordering::Relaxed)
}

/// One more is done.
pub(crate) fn count() {
    RUNS.fetch_add(1, Ordering::Relaxed);
}
