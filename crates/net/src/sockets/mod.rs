//! Sockets for tokio on the sans-IO stack.
//!
//! A [`Stack`] runs one [`Host`](airtcp_stack::Host) on one [`Device`](airtcp_device::Device), in a task
//! of its own, the driver. Sockets call the host under a lock that is never held across an await;
//! what a call gives to send goes to the driver, which moves packets in batches, and what a batch
//! makes ready wakes the sockets that wait for it.
//!
//! The sockets have the names and the ways of tokio's, so that what is written for those works on these:
//! streams are [`AsyncRead`](tokio::io::AsyncRead) and [`AsyncWrite`](tokio::io::AsyncWrite), with
//! readiness, calls that never wait and peeking; a [`TcpSocket`] is set up before it connects or listens;
//! a [`UdpSocket`] may have a peer. Beyond tokio's: strategies, chosen before or on a live stream,
//! [`TcpStream::info`], reading and writing without a copy ([`TcpStream::read_chunk`],
//! [`TcpStream::write_chunk`]), and the end of a whole stack ([`Stack::drain`], [`Stack::shutdown`]).
//! A task that never has to wait gives way now and then, within tokio's budget.
//!
//! Every future here is cancel-safe: dropped before it is ready, it has lost no connection, no
//! datagram and no byte of a stream.
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

mod core;
mod driver;
#[cfg(test)]
mod ending_tests;
#[cfg(test)]
mod hold_tests;
#[cfg(test)]
mod keepalive_tests;
mod listener;
mod options;
mod ready;
#[cfg(test)]
mod ready_tests;
mod siblings;
#[cfg(test)]
mod siblings_tests;
mod socket;
#[cfg(test)]
mod socket_tests;
mod split;
mod stack;
mod stream;
#[cfg(test)]
mod tests;
mod thread;
#[cfg(test)]
mod thread_tests;
mod udp;
#[cfg(test)]
mod watch_tests;

pub use listener::TcpListener;
pub use siblings::Sibling;
pub use socket::TcpSocket;
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use stack::Stack;
pub use stream::TcpStream;
pub use thread::StackThread;
pub use udp::UdpSocket;
