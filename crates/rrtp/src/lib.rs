//! RRTP: a reliable, reconfigurable transport over UDP, as a state machine. `airtcp-net` has tokio
//! sockets for it.
//!
//! **Nothing is encrypted**, and anyone who sees the packets can forge more: run RRTP inside a
//! tunnel that protects them. `docs/rrtp.md` explains how, describes the packets, and lists the
//! decisions where the thesis that RRTP comes from (Tan Wang, "A User-level, Reliable and
//! Reconfigurable Transport Layer Protocol", Waterloo 2009) is silent.
//!
//! An [`Endpoint`] has all connections of one UDP socket. Its inputs are datagrams and the current
//! time, its outputs datagrams, [`Event`]s and the next deadline. The sender is rate-based: it
//! accepts a profile of the network ([`NetworkProfile`]) before and while it runs. The receiver
//! distinguishes losses of the link from losses caused by congestion.
//!
//! ```
//! use airtcp_rrtp::{Config, Endpoint, Event, Limits};
//! use airtcp_types::Instant;
//!
//! let [client_at, server_at] = ["10.0.0.1:1", "10.0.0.2:2"].map(|at| at.parse().unwrap());
//! let mut client = Endpoint::new(Limits::default(), [1; 16]);
//! let mut server = Endpoint::new(Limits::default(), [2; 16]);
//! server.listen(Some(Config::default()));
//! let mut now = Instant::ZERO;
//! let stream = client.connect(now, server_at, Config::default())?;
//! client.send(now, stream, b"hello")?;
//! client.finish(now, stream)?;
//! let mut heard = Vec::new();
//! while heard != b"hello" {
//!     // A network without delay and without losses.
//!     let mut datagram = Vec::new();
//!     while client.poll_transmit(now, &mut datagram).is_some() {
//!         server.handle_datagram(now, client_at, &datagram);
//!         datagram.clear();
//!     }
//!     while server.poll_transmit(now, &mut datagram).is_some() {
//!         client.handle_datagram(now, server_at, &datagram);
//!         datagram.clear();
//!     }
//!     while let Some(event) = server.poll_event() {
//!         if let Event::Readable(id) = event {
//!             let mut buffer = [0; 100];
//!             let count = server.recv(now, id, &mut buffer)?.unwrap_or(0);
//!             heard.extend_from_slice(&buffer[..count]);
//!         }
//!     }
//!     now = client.poll_timeout().into_iter().chain(server.poll_timeout()).min().unwrap().max(now);
//!     client.handle_timeout(now);
//!     server.handle_timeout(now);
//! }
//! # Ok::<(), airtcp_rrtp::CallError>(())
//! ```
//!
//! Not supported: changes of a peer's address, several streams in one connection, path MTU
//! discovery (packets have 1,400 bytes unless configured otherwise), and encryption.
#![forbid(unsafe_code)]

mod config;
mod connection;
mod cookie;
mod counters;
mod differentiation;
mod endpoint;
mod error;
mod gaps;
mod info;
mod pool;
mod rate;
mod receive;
mod send;
#[cfg(test)]
mod tests;
mod wire;

pub use config::{Biaz, Config, Limits, NetworkKind, NetworkProfile};
pub use counters::Counters;
pub use endpoint::{ConnectionId, Endpoint, Event};
pub use error::{CallError, ConnectionError};
pub use info::{Info, Phase};
pub use wire::is_probe;
