//! What a home agent reports.

use std::net::IpAddr;

use serde::Serialize;

/// The state and the counters of a home agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HomeStatus {
    /// The registered mobiles, by home address.
    pub bindings: Vec<BindingStatus>,
    /// The counters since the start.
    pub counters: HomeCounters,
}

/// A registered mobile.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BindingStatus {
    /// The name of the mobile.
    pub mobile: String,
    /// Its home address.
    pub address: IpAddr,
    /// Its care-of address.
    pub care_of: IpAddr,
    /// The name of the station with that address; `None` if the mobile has the address itself.
    pub station: Option<String>,
    /// The seconds until the registration ends.
    pub seconds: u64,
}

/// The counters of a home agent since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HomeCounters {
    /// Registration requests, with those below.
    pub requests: u64,
    /// Requests accepted, without those accepted before.
    pub accepted: u64,
    /// Requests that were accepted before, and are answered again.
    pub repeated: u64,
    /// Requests refused because a field is invalid or not supported.
    pub refused: u64,
    /// Requests refused because of their identification.
    pub replayed: u64,
    /// Requests and acknowledgments without valid authentication.
    pub unauthenticated: u64,
    /// Requests for home addresses that are not configured, or from an address of no host.
    pub unknown: u64,
    /// Datagrams to the agent that are no message, or a message that it does not use, or that have
    /// an unknown critical extension.
    pub malformed: u64,
    /// Replies and ICMP errors not sent, because of their rate limit.
    pub rate_limited: u64,
    /// Registrations that reached the end of their lifetime.
    pub expired: u64,
    /// Revocations sent to stations that mobiles left.
    pub revocations: u64,
    /// Parts of flow lists that were passed on to new stations.
    pub flow_parts: u64,
    /// Packets sent into tunnels.
    pub tunnelled: u64,
    /// Bytes of these packets, without the outer headers.
    pub tunnelled_bytes: u64,
    /// Packets that were split into fragments before the tunnel.
    pub fragmented: u64,
    /// Reports of routers that a path to a care-of address has a smaller MTU.
    pub path_mtus: u64,
    /// Packets too long for the tunnel that must not be split.
    pub too_big: u64,
    /// Packets to mobiles that are not registered.
    pub unreachable: u64,
    /// Packets dropped because they came out of a tunnel of this agent, or from the exit of the one
    /// that they would enter.
    pub looped: u64,
    /// Packets dropped because they are invalid or for an unknown address.
    pub dropped: u64,
    /// Packets dropped because the output queue was full.
    pub dropped_full: u64,
}
