//! A TCP/IP stack as one state machine: IPv4, IPv6, ICMP, UDP and TCP.
//!
//! [`host::Host`] is a [`Node`](airtcp_types::Node): its inputs are packets and the current time;
//! its outputs are packets, events and the next deadline. Applications hold [`host::SocketId`]s and
//! ask the host which sockets are ready. The crate never reads a clock, draws a random number or
//! blocks: the caller supplies the time and the secret from which random values are derived.
//!
//! Two hosts in one process exchange packets:
//!
//! ```
//! use airtcp_stack::{Host, HostConfig};
//! use airtcp_types::{Instant, Node, PortId};
//!
//! /// Carries packets both ways until none is left.
//! fn exchange(now: Instant, one: &mut Host, other: &mut Host) {
//!     loop {
//!         if let Some((_, packet)) = one.poll_transmit(now) {
//!             other.handle_packet(now, PortId(0), packet);
//!         } else if let Some((_, packet)) = other.poll_transmit(now) {
//!             one.handle_packet(now, PortId(0), packet);
//!         } else {
//!             return;
//!         }
//!     }
//! }
//!
//! let now = Instant::ZERO;
//! let mut server = Host::new(HostConfig::new(["10.0.0.1/24".parse()?]));
//! let mut client = Host::new(HostConfig::new(["10.0.0.2/24".parse()?]));
//! let listener = server.tcp_listen("10.0.0.1:80".parse()?, 8)?;
//! let stream = client.tcp_connect(now, "10.0.0.1:80".parse()?, None)?;
//! exchange(now, &mut client, &mut server);
//! let (accepted, _) = server.tcp_accept(now, listener)?.ok_or("no connection")?;
//!
//! client.tcp_send(now, stream, b"hello")?;
//! exchange(now, &mut client, &mut server);
//! let mut received = [0; 16];
//! let length = server.tcp_recv(now, accepted, &mut received)?;
//! assert_eq!(&received[..length], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate `airtcp-net` drives a host on a device in real time and provides tokio sockets.
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
