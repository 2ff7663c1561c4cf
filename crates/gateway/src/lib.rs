//! Carries the TCP connections of unmodified programs between two gateways, over any
//! [`Stack`](airtcp_net::Stack).
//!
//! A [`Near`] gateway accepts the connections of programs ([`front`]) and carries each over one
//! connection of its stack to the [`Far`] gateway, which dials the destination with the kernel's
//! sockets. A [`header`] names the destination. Carrier connections are opened ahead, so that a new
//! connection costs one round trip over the carrier and no handshake. [`splice()`] joins two
//! connections at either end.
//!
//! [`split`] is a gateway in the path that needs no far gateway.
#![forbid(unsafe_code)]

mod carried;
mod carrier;
pub mod datagram;
mod destination;
mod dial;
mod far;
mod filter;
pub mod front;
pub mod header;
mod heartbeat;
mod near;
mod peers_only;
mod refusal;
mod remotes;
mod rules;
mod sources;
mod splice;
pub mod split;
mod waiting;

pub use carried::Carried;
pub use carrier::carrier_config;
pub use destination::{Destination, DestinationError, HostAddress};
pub use far::{Far, FarConfig, FarStatus};
pub use near::{Near, NearConfig, NearStatus};
pub use peers_only::{PeerFigure, PeerFigures, peers_only};
pub use refusal::Refusal;
pub use rules::{Rule, RuleError, Rules};
pub use sources::Limits;
pub use splice::{Side, Spliced, splice};
