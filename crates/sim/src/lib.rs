//! A discrete-event world in virtual time, in which the stack and the link emulator run.
#![forbid(unsafe_code)]

mod agenda;
mod aggregate;
mod app;
mod check;
mod error;
mod measure;
mod network;
mod result;
mod router;
mod run;
mod runner;
mod scenario;
mod statistics;
mod summary;
#[cfg(test)]
mod tests;
pub mod toml;
mod world;

pub use aggregate::{Aggregate, FlowAggregate, LinkAggregate};
pub use error::SimError;
pub use result::{FlowResult, LinkResult, RunResult, Samples, Summary, jain};
pub use router::{Router, RouterCounters};
pub use run::{NodeKind, nodes, run};
pub use runner::run_seeds;
pub use scenario::{App, FlowSpec, Scenario, Topology, Way, Wire};
pub use statistics::Interval;
pub use world::{Stuck, World};
