//! The link emulator as a state machine.
//!
//! A [`Link`] is a [`Node`](airtcp_types::Node) with two ports. The inputs are packets and the
//! time; the outputs are packets and the next deadline. A link uses no clock and no device, so the
//! same link works in virtual time and between two real devices. Each direction is
//!
//! ```text
//! policer -> queue -> serialiser (rate) -> channel (errors) -> delay line -> aggregation
//! ```
//!
//! and is described in netem's syntax by a [`LinkSpec`]; [`spec`] lists all words. On a half-duplex
//! link both directions share the medium. [`named`] has links by name.
//!
//! Random numbers are seeded. Each cause and direction has a stream of its own, which is drawn from
//! once for each packet in the order of entry into the channel, whatever happens to the packet.
//! Therefore a seed loses the same packets at any timing, and adding a cause does not affect the
//! others.
//!
//! Rate, delay and loss can change at given times ([`spec::ChangeSpec`]). A change drops nothing:
//! the queue stays, and the packet in transmission and the packets in flight arrive at their
//! original times. The new values apply to transmissions that start later.
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
//! retransmissions and a moving mobile; see [`radio`].
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
