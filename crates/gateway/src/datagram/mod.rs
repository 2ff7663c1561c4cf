//! UDP between two gateways.
//!
//! A near gateway ([`NearDatagrams`]) gives each socket of a program an [`Association`]. The far
//! gateway ([`FarDatagrams`]) gives each association one kernel socket for IPv4 and one for IPv6,
//! for all of its destinations: an endpoint-independent mapping (RFC 4787). Between them datagrams
//! travel in UDP datagrams of the carrier's stack, with a header of 8 bytes; those that are too
//! long for one are split and joined again.
//!
//! An association carries pings as well: see [`Association::ping`].
//!
//! If the path loses datagrams, repair frames follow them (forward error correction): as many as
//! the loss that the receiver reports requires, up to a limit. A lost datagram is recovered within
//! about a round trip. Without loss nothing is added.
//!
//! A datagram is sent at most once, and can be lost: with a full queue the newest is dropped, as in
//! a router.

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
#[cfg(test)]
mod tests;
mod window;

pub use channel::{Channel, Datagram, DatagramCounters};
pub use far::{FarDatagrams, FarDatagramsConfig, FarDatagramsStatus};
pub use near::{Answer, Association, NearDatagrams, NearDatagramsConfig, NearDatagramsStatus};
pub use outside::{Filtering, FilteringError};

const ANY_V4: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
const ANY_V6: SocketAddr = SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0));

/// The most repair data, in percent. With the headers it is less than a quarter.
const REDUNDANCY: u8 = 22;

/// What a datagram takes in a queue beside its data.
const OVERHEAD: usize = 64;

/// A random number for each life of a gateway, not 0.
fn instance() -> io::Result<u32> {
    Ok(SysRng.try_next_u32().map_err(io::Error::other)?.max(1))
}
