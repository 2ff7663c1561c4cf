//! Applications and their hosts.
//!
//! ```text
//! end_host.rs  a host and its applications, as one Node
//! caller.rs    opens a connection: bulk, requests, a message back and forth
//! crowd.rs     users who open one short connection after another
//! answerer.rs  takes connections: reads everything, and answers requests
//! rrtp.rs      either end of a bulk transfer by RRTP
//! udp.rs       either end of a constant-rate flow of datagrams
//! pattern.rs   what is sent, and verified on arrival
//! meter.rs     what arrived, and when
//! ```

mod answerer;
mod caller;
mod crowd;
mod end_host;
mod meter;
mod pattern;
mod rrtp;
mod udp;

pub(crate) use answerer::Answerer;
pub(crate) use caller::{Caller, Script};
pub(crate) use crowd::{Crowd, Habits};
pub(crate) use end_host::{Application, EndHost};
pub(crate) use meter::Meter;
pub(crate) use rrtp::{Role, RrtpEnd};
pub(crate) use udp::UdpEnd;
