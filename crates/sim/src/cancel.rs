//! Cancelling runs from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::SimError;

/// A flag that ends runs before their time. All clones share it.
///
/// ```
/// use airtcp_sim::{Cancel, FlowSpec, Scenario, SimError, Simulation, Topology, Wire};
///
/// let wire = Wire::both("rate 10mbit delay 10ms limit 17".parse()?);
/// let scenario = Scenario {
///     flows: vec![FlowSpec::new("sack/reno".parse()?)],
///     ..Scenario::new("one flow", Topology::Chain { wires: vec![wire] })
/// };
/// let cancel = Cancel::default();
/// // Another thread would do this during the run.
/// cancel.cancel();
/// let result = Simulation::new(&scenario)?.with_cancel(&cancel).run(None);
/// assert_eq!(result, Err(SimError::Cancelled));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends all runs that have this flag before their next event, and those that start later.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns an error if [`cancel`](Self::cancel) was called.
    ///
    /// # Errors
    ///
    /// [`SimError::Cancelled`].
    pub fn check(&self) -> Result<(), SimError> {
        if self.is_cancelled() { Err(SimError::Cancelled) } else { Ok(()) }
    }
}
