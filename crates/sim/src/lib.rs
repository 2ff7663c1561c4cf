//! A discrete-event world in virtual time, in which the stack and the link emulator run.
#![forbid(unsafe_code)]

mod error;
mod result;
mod run;
mod scenario;

pub use error::SimError;
pub use result::{FlowResult, LinkResult, RunResult, Samples, Summary, jain};
pub use run::{NodeKind, nodes, run};
pub use scenario::{App, FlowSpec, Scenario, Topology, Way, Wire};
