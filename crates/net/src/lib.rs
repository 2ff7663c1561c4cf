//! Sockets for tokio on the state machines of airtcp.
//!
//! A [`Stack`] drives a [`Host`](airtcp_stack::Host) on a [`Device`](airtcp_device::Device) and
//! gives TCP and UDP sockets with tokio's names and ways. With the feature `rrtp`, the module
//! `rrtp` does the same for RRTP on a UDP socket. This crate has the clock and asks the operating
//! system for randomness; the state machines below it do neither.
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
    OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, Sibling, Stack, StackThread,
    TcpListener, TcpSocket, TcpStream, UdpSocket, WriteHalf,
};
