//! A discrete-event simulator that runs the stack and the link emulator in virtual time.
//!
//! The input of [`run`] is a [`Scenario`]: a network, flows with their applications, a duration and
//! a seed. The output is a [`RunResult`], the same byte for byte for the same scenario. An
//! [`Observer`](airtcp_types::Observer) can watch the packets and events, and [`run_with_states`]
//! samples windows and queues. A [`Simulation`] names its nodes before it runs.
//!
//! Hosts and links are the state machines that also run in real time; routers exist only here. All
//! are [`Node`](airtcp_types::Node)s in a [`World`] that advances from deadline to deadline. The
//! applications are those of [`App`]: the simulator runs no async tasks.
//!
//! [`toml`] reads scenarios from files. [`run_seeds`] runs one scenario with many seeds, and
//! [`Aggregate`] calculates means and confidence intervals over the results.
//!
//! ```
//! use airtcp_sim::{FlowSpec, Scenario, Topology, Wire, run};
//!
//! let wire = Wire::both("rate 10mbit delay 10ms limit 17".parse()?);
//! let scenario = Scenario {
//!     flows: vec![FlowSpec::new("sack/reno".parse()?)],
//!     ..Scenario::new("one flow", Topology::Chain { wires: vec![wire] })
//! };
//! let result = run(&scenario, None)?;
//! // Ten seconds; 1448 bytes of each 1500 are payload.
//! assert!(result.flows[0].goodput > 0.95 * 10e6 * 1448.0 / 1500.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Figures
//!
//! The figures of a TCP flow come from the events of its hosts and from the packets that arrive at
//! them.
//!
//! - A *retransmission* is a transmission of bytes that were sent before, by either end of a flow.
//! - A retransmission is *spurious* if the receiver had all its bytes when it left or arrived, or
//!   if the original arrives later. A retransmission that the network duplicates also counts as
//!   spurious.
//! - A *recovery* starts with the first loss or time-out outside of a recovery. It ends with the
//!   cumulative ACK of everything that had been sent when it started. A recovery that the end of
//!   the run interrupts is not counted.
//! - A *round-trip time* is a sample for the retransmission timer.
//!
//! The figures of an RRTP flow come from the counters of its connection at the end. Segments are
//! its data packets, losses are the packets that the receiver missed, and round-trip times are the
//! smoothed value after each change. A retransmission is spurious if it arrives after another
//! transmission of the same data; packets that the network duplicates do not count, because each
//! transmission has a number. Time-outs, reductions, recoveries, samples and events for an observer
//! exist only for TCP.
//!
//! The segments of a UDP flow are its datagrams. A datagram counts as lost if it has not arrived
//! and a later one has.
//!
//! IPv6, ICMP from routers, and the computing time of applications are not modelled.
#![forbid(unsafe_code)]

mod agenda;
mod aggregate;
mod app;
mod base;
mod cancel;
mod check;
mod error;
mod measure;
mod network;
mod result;
mod router;
mod run;
mod runner;
mod scenario;
mod sender;
mod state;
mod statistics;
mod summary;
#[cfg(test)]
mod tests;
pub mod toml;
mod world;

pub use airtcp_basestation::{Policy, StationConfig};

pub use aggregate::{Aggregate, FlowAggregate, LinkAggregate, RadioAggregate, StationAggregate};
pub use cancel::Cancel;
pub use error::SimError;
pub use result::{
    FlowResult, LinkResult, RadioResult, RrtpResult, RunResult, Samples, StationMemory,
    StationResult, Summary, jain,
};
pub use router::{Router, RouterCounters};
pub use run::{NodeKind, Simulation, run, run_with_states};
pub use runner::{run_seeds, run_seeds_with_cancel};
pub use scenario::{App, Change, FlowDirection, FlowSpec, Radios, Scenario, Topology, Wire};
pub use sender::{Rrtp, Sender, SenderError};
pub use state::{QueueState, SenderState, State};
pub use statistics::Interval;
pub use world::{Stuck, World};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
