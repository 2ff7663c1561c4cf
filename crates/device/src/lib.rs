//! Devices: where a stack reads and writes packets.
//!
//! A [`Device`] takes and gives IP packets in batches, without link headers: a [`Tun`] shares them
//! with the Linux kernel, a [`Memory`] with the other end of its [`pair`](memory::pair). Packets
//! flow in with [`Device::try_recv`] and out with [`Device::try_send`]; a loop that drives one
//! waits for [`Device::readable`], and for [`Device::writable`] only when a send left something
//! over. A packet that a device refuses is counted ([`Counters`]) and dropped; no loop ends for it.
//!
//! Loops that drive a state machine on a device are in `airtcp-net`. They read a [`Clock`], which
//! several may share, and wait for an [`Alarm`], which is finer than the runtime's timers.
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
//! A device that offloads ([`Capabilities`]) takes and gives super-segments, and packets whose
//! checksum is left open: a [`Tun`] opened so, and an [`offloading_pair`](memory::offloading_pair).
//!
//! Not here: TAP devices, and addresses and routes, which belong to whoever made the interface.
#![deny(unsafe_code)]

mod alarm;
mod clock;
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
pub use device::{Capabilities, Counters, Device};
#[cfg(feature = "tun")]
pub use error::DeviceError;
pub use memory::Memory;
#[cfg(feature = "tun")]
pub use tun::{Tun, TunFile, TunOptions};
pub use watch::Watch;
