//! tokio sockets for TCP, UDP and RRTP on the state machines of airtcp.
//!
//! A [`Stack`] runs a [`Host`](airtcp_stack::Host) on a [`Device`](airtcp_device::Device) and
//! creates TCP and UDP sockets. One task for each stack, the driver, moves packets between device
//! and host in batches and wakes the sockets that a batch made ready. Socket calls lock the host;
//! the lock is never held across an await.
//!
//! The sockets have the names and methods of tokio's: streams implement
//! [`AsyncRead`](tokio::io::AsyncRead) and [`AsyncWrite`](tokio::io::AsyncWrite), with readiness,
//! `try_*` calls and peeking; a [`TcpSocket`] is configured before it connects or listens; a
//! [`UdpSocket`] can be connected to a peer. Beyond tokio's API:
//!
//! - strategies of the sender, selected before connecting or on a live stream, and
//!   [`TcpStream::info`];
//! - reading and writing without a copy ([`TcpStream::read_chunk`], [`TcpStream::write_chunk`]);
//! - sockets for every destination ([`Stack::listen_any`], [`Stack::udp_bind_any`]);
//! - graceful shutdown of a whole stack ([`Stack::drain`], [`Stack::shutdown`]).
//!
//! Socket calls take part in tokio's cooperative budget: a task whose calls are always ready still
//! yields.
//!
//! Every future of this crate is cancel-safe: dropping it before it completes loses no connection,
//! no datagram and no byte of a stream.
//!
//! ```
//! use airtcp_device::memory;
//! use airtcp_net::Stack;
//! use airtcp_stack::HostConfig;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (left, right) = memory::pair(1500, 64);
//! let server = Stack::new(left, HostConfig::new(["10.0.0.1/24".parse()?]))?;
//! let client = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse()?]))?;
//!
//! let listener = server.listen("10.0.0.1:7".parse()?, 16)?;
//! let mut one = client.connect("10.0.0.1:7".parse()?).await?;
//! let (mut other, peer) = listener.accept().await?;
//! assert_eq!(peer, one.local_addr()?);
//!
//! one.write_all(b"hello").await?;
//! one.shutdown().await?;
//! let mut heard = Vec::new();
//! other.read_to_end(&mut heard).await?;
//! assert_eq!(heard, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! Features: `rrtp` adds the module `rrtp` with sockets for RRTP, over UDP sockets of the kernel or
//! of a stack; `drive` adds `Driver`, which runs any [`Node`](airtcp_types::Node), such as an
//! emulated link, between devices.
//!
//! This crate reads the clock and takes random keys from the operating system; the state machines
//! below it do neither. Time is real: `tokio::time::pause` has no effect on it.
#![forbid(unsafe_code)]

#[cfg(feature = "drive")]
mod drive;
#[cfg(feature = "drive")]
mod lateness;
#[cfg(feature = "rrtp")]
pub mod rrtp;
mod runtime_thread;
mod shared;
mod sockets;
mod task;
mod wakers;

#[cfg(feature = "drive")]
pub use drive::{DriveError, Driver};
#[cfg(feature = "drive")]
pub use lateness::Lateness;
pub use runtime_thread::RuntimeThread;
pub use sockets::{
    AnyTcpListener, AnyUdpSocket, OwnedReadHalf, OwnedWriteHalf, PendingStream, ReadHalf,
    ReuniteError, Sibling, Stack, StackThread, TcpListener, TcpSocket, TcpStream, UdpSocket,
    WriteHalf,
};
