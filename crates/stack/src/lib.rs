//! The stack: IPv4, IPv6, ICMP, UDP and TCP as one state machine, and sockets on top.
//!
//! [`host::Host`] is a [`Node`](airtcp_types::Node): packets and the time go in; packets, events and
//! a next deadline come out. Applications hold [`host::SocketId`]s and ask the host which of them are
//! ready. Nothing there reads a clock, draws a random number or waits: keys and time are handed in.
//!
//! [`sockets`] is the shell round it for tokio: a [`Stack`] drives a host on a device in real time.
#![forbid(unsafe_code)]

pub mod counters;
pub mod host;
pub mod sockets;
pub mod tcp;
pub mod wire;

#[cfg(test)]
mod logged;

pub use counters::Counters;
pub use host::{Host, HostConfig, HostError, SocketId};
pub use sockets::{
    OwnedReadHalf, OwnedWriteHalf, Sibling, Stack, TcpListener, TcpSocket, TcpStream, UdpSocket,
};
pub use tcp::Chunk;
