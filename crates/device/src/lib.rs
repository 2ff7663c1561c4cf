//! Devices, from which a stack receives packets and to which it sends them.
//!
//! A [`Device`] exchanges IP packets without link headers, in batches: a [`Tun`] with the Linux
//! kernel, a [`Memory`] with the other end of its [`pair`](memory::pair). [`Device::try_recv`]
//! receives packets and [`Device::try_send`] sends them. The loop that drives a device waits for
//! [`Device::readable`], and for [`Device::writable`] only while packets are left over from a send.
//! A packet that a device refuses is counted ([`Counters`]) and dropped; it does not end the loop.
//!
//! The loops that drive a state machine on a device are in `airtcp-net`. They read a [`Clock`],
//! which several loops can share, and wait for an [`Alarm`], which has a finer resolution than the
//! runtime's timers.
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use airtcp_device::{Device, memory};
//! use airtcp_types::Packet;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let (mut left, mut right) = memory::pair(1500, 64);
//! left.send(&mut VecDeque::from([Packet::new(vec![0x45; 40])])).await;
//!
//! let mut batch = Vec::new();
//! assert_eq!(right.recv(&mut batch, 32).await?, 1);
//! assert_eq!(batch[0].len(), 40);
//! # Ok(())
//! # }
//! ```
//!
//! An offloading device ([`Capabilities`]) sends and receives super-segments, and packets whose
//! checksum is not complete: a [`Tun`] opened with offload, and an
//! [`offloading_pair`](memory::offloading_pair).
//!
//! Not supported: TAP devices. Not part of this crate: addresses and routes, which the creator of
//! the interface configures.
#![deny(unsafe_code)]

mod alarm;
mod clock;
mod counters;
mod device;
#[cfg(feature = "tun")]
mod error;
pub mod memory;
mod sys;
#[cfg(feature = "tun")]
mod tun;
mod watch;

pub use alarm::Alarm;
pub use clock::Clock;
pub use counters::Counters;
pub use device::{Capabilities, Device};
#[cfg(feature = "tun")]
pub use error::DeviceError;
pub use memory::Memory;
#[cfg(feature = "tun")]
pub use tun::{Tun, TunFile, TunOptions};
pub use watch::Watch;
