//! Sockets for tokio on the state machines of airtcp.
//!
//! A [`Stack`] drives a [`Host`](airtcp_stack::Host) on a [`Device`](airtcp_device::Device), in a
//! task of its own, and makes TCP and UDP sockets. Sockets call the host under a lock that is never
//! held across an await. Data to send goes to the driver, which moves packets in batches and wakes
//! the sockets for which a batch brought something.
//!
//! The sockets have tokio's names and methods: streams are [`AsyncRead`](tokio::io::AsyncRead) and
//! [`AsyncWrite`](tokio::io::AsyncWrite), with readiness, `try_*` calls and peeking; a
//! [`TcpSocket`] is set up before it connects or listens; a [`UdpSocket`] may have a peer.
//! [`Stack::listen_any`] and [`Stack::udp_bind_any`] make sockets for every destination. In
//! addition there are strategies, chosen before or on a live stream, [`TcpStream::info`], reading
//! and writing without a copy ([`TcpStream::read_chunk`], [`TcpStream::write_chunk`]), and the end
//! of a whole stack ([`Stack::drain`], [`Stack::shutdown`]). A task that never has to wait yields
//! within tokio's budget.
//!
//! Every future here is cancel-safe: if it is dropped before it is ready, no connection, no
//! datagram and no byte of a stream is lost.
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
//! Features: with `rrtp`, the module `rrtp` has sockets for RRTP, over the kernel's UDP or a
//! stack's; with `drive`, `Driver` runs any [`Node`](airtcp_types::Node), such as an emulated link,
//! between devices.
//!
//! This crate reads the clock and asks the operating system for randomness; the state machines
//! below it do neither. Time is real: `tokio::time::pause` does not move it.
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
