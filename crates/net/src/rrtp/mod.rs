//! tokio sockets for RRTP on its state machine.
//!
//! An [`RrtpSocket`] runs one [`Endpoint`](airtcp_rrtp::Endpoint) on one UDP socket, in a task of
//! its own, the driver. The UDP socket is the kernel's, a stack's, or any other [`DatagramSocket`].
//! Streams call the endpoint under a lock that is never held across an await; only the driver
//! sends.
//!
//! A stream implements [`AsyncRead`](tokio::io::AsyncRead) and
//! [`AsyncWrite`](tokio::io::AsyncWrite). Every future of this module is cancel-safe: dropping it
//! before it completes loses no connection and no byte.
//!
//! ```
//! use airtcp_rrtp::Config;
//! use airtcp_net::rrtp::{RrtpListener, RrtpStream};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let listener = RrtpListener::bind("127.0.0.1:0".parse().unwrap(), Config::default()).await?;
//! let mut one = RrtpStream::connect(listener.local_addr()?, Config::default()).await?;
//! one.write_all(b"hello").await?;
//! one.shutdown().await?;
//!
//! let (mut other, _) = listener.accept().await?;
//! let mut heard = Vec::new();
//! other.read_to_end(&mut heard).await?;
//! assert_eq!(heard, b"hello");
//! # Ok(())
//! # }
//! ```

mod core;
mod datagrams;
mod driver;
mod error;
mod kernel;
mod listener;
mod socket;
mod split;
mod stream;
#[cfg(test)]
mod tests;

pub use datagrams::{DatagramSocket, Inbox, Outbox};
pub use listener::RrtpListener;
pub use socket::RrtpSocket;
pub use split::{OwnedReadHalf, OwnedWriteHalf};
pub use stream::RrtpStream;
