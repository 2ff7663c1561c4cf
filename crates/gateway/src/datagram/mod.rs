//! UDP between two gateways.
//!
//! A near gateway ([`NearDatagrams`]) gives each socket of a program an [`Association`]. The far
//! gateway ([`FarDatagrams`]) gives each association one kernel socket for IPv4 and one for IPv6,
//! for all of its destinations: an endpoint-independent mapping (RFC 4787). Between the gateways,
//! datagrams travel in UDP datagrams of the carrier's stack, with a header of 8 bytes; a datagram
//! too long for one of them is split and reassembled.
//!
//! An association also carries pings: see [`Association::ping`].
//!
//! If the path loses datagrams, repair frames follow them (forward error correction): as many as
//! the loss reported by the receiver requires, up to a limit. A lost datagram is recovered within
//! about a round trip. Without loss, no repair frames are sent.
//!
//! A datagram is sent at most once, and can be lost. While the stack has no room, datagrams wait
//! in a queue for each association. The associations take turns; those with little to send have
//! priority. If the queues are full, the oldest datagrams of the longest one are dropped.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use rand::TryRng;
use rand::rngs::SysRng;

mod channel;
mod echo;
mod far;
mod fec;
mod frame;
mod link;
mod loss;
mod near;
mod outside;
mod parts;
mod refused;
mod schedule;
#[cfg(test)]
mod tests;
mod window;

pub use channel::{Channel, Datagram, DatagramCounters};
pub use far::{FarDatagrams, FarDatagramsConfig, FarDatagramsStatus};
pub use near::{Answer, Association, NearDatagrams, NearDatagramsConfig, NearDatagramsStatus};
pub use outside::{Filtering, FilteringError};

const ANY_V4: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
const ANY_V6: SocketAddr = SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0));

/// The default limit on repair data, in percent. Including headers it is less than a quarter.
const REDUNDANCY: u8 = 22;

/// The bytes that a datagram occupies in a queue in addition to its data.
const OVERHEAD: usize = 64;

/// Returns a random number, not 0, that identifies one run of a gateway.
fn instance() -> io::Result<u32> {
    Ok(SysRng.try_next_u32().map_err(io::Error::other)?.max(1))
}
