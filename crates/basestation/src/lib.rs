//! A base station between a wired network and a radio that it emulates.
//!
//! A [`Station`] has a radio, and helps the TCP flows that use it; see [`station`]. A [`Bridge`]
//! only forwards packets. Both are a [`Node`](airtcp_types::Node) with one port per [`Side`]: the
//! inputs are packets and the time, the outputs are packets, events and a deadline.
//!
//! A [`HomeAgent`] sends the packets of mobiles that are away to where they are, and a
//! [`ForeignAgent`](home::ForeignAgent) relays their registrations; see [`home`]. A [`Handoff`] is a
//! station that passes the flows of a mobile on to the station where the mobile goes; see
//! [`handoff`].
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
//! Stations and bridges neither fragment packets nor send "packet too big". Devices and the command line are in other
//! crates.
#![forbid(unsafe_code)]

mod bridge;
mod counters;
pub mod handoff;
pub mod home;
pub mod station;

pub use bridge::{Bridge, Side};
pub use counters::Counters;
pub use handoff::{Handoff, HandoffConfig};
pub use home::{HomeAgent, HomeConfig};
pub use station::{Policy, Station, StationConfig};
