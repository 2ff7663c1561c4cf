//! The link emulator as a state machine.
//!
//! A [`Link`] is a [`Node`](airtcp_types::Node) with two ports. Packets and the time flow in;
//! packets and the next deadline flow out. It knows no clock and no device, so that the same link
//! stands in virtual time and between two real devices. Each direction is
//!
//! ```text
//! policer -> queue -> serialiser (rate) -> channel (errors) -> delay line -> aggregation
//! ```
//!
//! and is described in netem's words by a [`LinkSpec`]; see [`spec`] for all of them. Half duplex
//! has both directions share the air. [`named`] has links by name.
//!
//! Randomness is seeded: one stream per cause and direction, drawn for each packet in the order of
//! the channel's entry, whatever becomes of the packet. So a seed loses the same packets whenever
//! they come, and adding one cause does not shift another.
//!
//! Rate, delay and loss may change at given times ([`spec::ChangeSpec`]). A change drops nothing:
//! the queue stays, the packet that is being sent leaves when it would have left, and packets under
//! way arrive when they would have arrived; what begins later obeys the new values.
//!
//! ```
//! use airtcp_link::{Link, Way};
//! use airtcp_types::{Instant, Node, Packet, PortId};
//!
//! let spec = "rate 8mbit delay 5ms drop 2".parse()?;
//! let mut link = Link::new(&spec, &spec)?;
//! for _ in 0..3 {
//!     link.handle_packet(Instant::ZERO, PortId(0), Packet::new(vec![0x45; 1_000]));
//! }
//! // 1 ms on the wire, 5 ms under way.
//! assert_eq!(link.poll_timeout(), Some(Instant::from_millis(1)));
//! let arrived = |link: &mut Link, ms| link.poll_transmit(Instant::from_millis(ms)).is_some();
//! assert!(!arrived(&mut link, 5) && arrived(&mut link, 6));
//! assert!(!arrived(&mut link, 7) && arrived(&mut link, 8), "the second was lost");
//! assert_eq!(link.counters(Way::Forth).channel_lost, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Radio`] is another such node: two stations by the rules of IEEE 802.11b, with collisions,
//! retries and a path of the mobile; see [`radio`].
#![forbid(unsafe_code)]

mod aggregate;
mod channel;
mod counters;
mod delay;
mod direction;
mod ip;
mod ledger;
mod link;
mod medium;
pub mod named;
mod occupancy;
mod police;
mod queue;
pub mod radio;
mod rate;
pub mod spec;
#[cfg(test)]
mod tests;

pub use counters::Counters;
pub use link::{Link, LinkError};
pub use named::parse_pair;
pub use occupancy::Occupancy;
pub use radio::{Arq, Radio, RadioSpec};
pub use rate::{Trace, TraceError};
pub use spec::{LinkSpec, Share, SpecError, Way};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
