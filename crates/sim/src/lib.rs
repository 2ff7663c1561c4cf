//! A discrete-event simulator that runs the stack and the link emulator in virtual time.
//!
//! In flows a [`Scenario`]: a network, applications, and a seed. Out flows a [`RunResult`], the same byte for byte
//! for the same scenario; an [`Observer`](airtcp_types::Observer) may watch, and
//! [`run_with_states`] samples windows and queues. Hosts, links and routers are the very
//! state machines that run in real time, [`Node`](airtcp_types::Node)s in a [`World`] that moves from deadline to
//! deadline. [`toml`] reads scenarios from files, [`run_seeds`] runs one with many seeds, [`Aggregate`] makes means
//! and intervals of that.
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
//! They are told from the events of hosts, and from packets that reach them.
//!
//! - A *retransmission* is a transmission of bytes that were sent before, by either end of a flow.
//! - It was *spurious*, by ground truth, if the receiver already had all its bytes when it left or when it
//!   arrived. Where the original comes behind it, it counts when the original comes. A second copy that the
//!   network made of a retransmission cannot be told from that.
//! - A *recovery* begins with the first loss found, or the first time-out, while there is none. It ends with the
//!   cumulative ACK of everything that had been sent when it began. One that the run cuts off is not counted.
//! - A *round-trip time* is a sample that the retransmission timer was given.
//!
//! An RRTP flow's are what its connection tells at the end: segments are its data packets, what is lost is what the
//! receiver missed, and round-trip times are the smoothed value after each change. A spurious one was sent again, and came
//! although it had come before; a second copy that the network made is known by its transmission's number, and is none.
//! Time-outs, reductions, recoveries and samples are TCP's alone, and so are the events that an observer sees.
//!
//! A UDP flow's segments are its datagrams, and one is lost if it has not arrived and a later one has.
//!
//! Not modelled: IPv6, ICMP from routers, and what an application costs in time.
#![forbid(unsafe_code)]

mod agenda;
mod aggregate;
mod app;
mod base;
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

pub use aggregate::{Aggregate, FlowAggregate, LinkAggregate, RadioAggregate, StationAggregate};
pub use error::SimError;
pub use result::{
    FlowResult, LinkResult, RadioResult, RrtpResult, RunResult, Samples, StationMemory,
    StationResult, Summary, jain,
};
pub use router::{Router, RouterCounters};
pub use run::{NodeKind, nodes, run, run_with_states};
pub use runner::run_seeds;
pub use scenario::{App, Change, FlowDirection, FlowSpec, Radios, Scenario, Topology, Wire};
pub use sender::{Rrtp, Sender, SenderError};
pub use state::{QueueState, SenderState, State};
pub use statistics::Interval;
pub use world::{Stuck, World};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
