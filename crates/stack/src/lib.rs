//! A TCP/IP stack as one state machine: IPv4, IPv6, ICMP, UDP and TCP.
//!
//! [`host::Host`] is a [`Node`](airtcp_types::Node): packets and the time go in; packets, events and
//! a next deadline come out. Applications hold [`host::SocketId`]s and ask the host which of them are
//! ready. Nothing there reads a clock, draws a random number or waits: keys and time are handed in.
//!
//! The crate `airtcp-net` drives a host on a device in real time and has sockets for tokio.
#![forbid(unsafe_code)]

pub mod counters;
pub mod host;
mod io_error;
pub mod tcp;

#[cfg(test)]
mod logged;

pub use counters::Counters;
pub use host::{Host, HostConfig, HostError, SocketId};
pub use tcp::Chunk;
