//! A scenario, run.

use airtcp_types::Observer;

use crate::{RunResult, Scenario, SimError};

/// What a node of a scenario is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// It has addresses, and knows flows.
    Host,
    /// It carries packets.
    Link,
    /// It forwards packets.
    Router,
}

/// Runs a scenario to its end. An observer is shown everything, and changes nothing.
///
/// # Errors
///
/// What is senseless about the scenario.
pub fn run(
    _scenario: &Scenario,
    _observer: Option<&mut dyn Observer>,
) -> Result<RunResult, SimError> {
    Err(SimError::Senseless { place: "scenario".to_owned(), what: "not yet".to_owned() })
}

/// The nodes of a scenario, each at the place of its [`NodeId`](airtcp_types::NodeId).
///
/// # Errors
///
/// What is senseless about the scenario.
pub fn nodes(_scenario: &Scenario) -> Result<Vec<(String, NodeKind)>, SimError> {
    Ok(Vec::new())
}
