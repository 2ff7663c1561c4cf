//! The bridge between a wired and a wireless TUN device.
//!
//! Packets flow in on one side and out on the other, unchanged. The [`Bridge`] is pure: a
//! [`Node`](airtcp_types::Node) with one port per [`Side`], a bounded queue towards each, and
//! [`Counters`] of what arrived on each. A [`Forwarder`] drives one between two devices, and
//! [`main`] is the command `basestation --wired TUN --wireless TUN`.
//!
//! ```
//! use airtcp_basestation::{Bridge, Side};
//! use airtcp_types::{Instant, Node, Packet};
//!
//! let mut bridge = Bridge::new(512);
//! let mut packet = Packet::new(vec![0; 20]);
//! packet.data[0] = 0x45;
//! bridge.handle_packet(Instant::ZERO, Side::Wired.port(), packet.clone());
//! assert_eq!(bridge.poll_transmit(Instant::ZERO), Some((Side::Wireless.port(), packet)));
//! ```
//!
//! The bridge does nothing besides forwarding: it repairs nothing, marks nothing, shapes nothing, knows no flow and
//! answers no packet; it neither fragments nor says "packet too big". Its queue drops at the tail.
//!
//! A [`Station`] does more: it has a radio, and helps the TCP flows that go over it; see [`station`].
#![forbid(unsafe_code)]

mod bridge;
mod command;
mod counters;
mod forwarder;
pub mod station;

pub use bridge::{Bridge, Side};
pub use command::main;
pub use counters::Counters;
pub use forwarder::{DeviceGone, Forwarder};
pub use station::{Policy, Station, StationConfig};
