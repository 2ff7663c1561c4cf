//! Resource accounting per peer and in total.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use airtcp_types::ByteCount;

use super::HostConfig;
use super::secret::Keyed;

/// Resource limits, per peer or in total.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// The number of connections, except those in TIME-WAIT that the application has closed.
    pub connections: usize,
    /// The number of these whose handshake a peer has started and not completed. SYNs beyond this
    /// limit are answered with SYN cookies.
    pub half_open: usize,
    /// Out-of-order data that waits for missing data, including the overhead.
    pub out_of_order: ByteCount,
    /// Fragments of incomplete packets, including the overhead. Beyond this limit the oldest packet
    /// is dropped.
    pub fragments: ByteCount,
    /// Memory of sockets: of a peer its connections; in total also the queued datagrams. Beyond
    /// this limit no connection is opened, and an existing one keeps at most three unread segments
    /// and 1 KiB of data to send.
    pub memory: ByteCount,
}

impl Quota {
    /// No limit.
    pub const UNLIMITED: Self = Self {
        connections: usize::MAX,
        half_open: usize::MAX,
        out_of_order: ByteCount::MAX,
        fragments: ByteCount::MAX,
        memory: ByteCount::MAX,
    };
    /// The default limits of all peers together.
    pub const ALL: Self = Self {
        connections: 131_072,
        half_open: 16_384,
        out_of_order: ByteCount::from_mib(64),
        fragments: ByteCount::from_mib(4),
        memory: ByteCount::from_mib(256),
    };
    /// The default limits per peer.
    pub const PEER: Self = Self {
        connections: 32_768,
        half_open: 1_024,
        out_of_order: ByteCount::from_mib(32),
        fragments: ByteCount::from_mib(1),
        memory: ByteCount::from_mib(128),
    };
}

/// The scope of a quota.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    All,
    Peer,
}

/// A peer with connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PeerId(u32);

#[derive(Clone, Copy, Default, Debug)]
struct Taken {
    connections: usize,
    half_open: usize,
    out_of_order: ByteCount,
    memory: ByteCount,
}

#[derive(Debug)]
struct Peer {
    network: IpAddr,
    taken: Taken,
}

/// Every peer with connections. The table is searched when a connection starts; the connection then
/// keeps the peer's index.
#[derive(Debug)]
pub(super) struct Peers {
    all: Taken,
    places: HashMap<IpAddr, PeerId, Keyed>,
    peers: Vec<Peer>,
    free: Vec<PeerId>,
}

/// The unit that counts as one peer: an IPv4 address, or an IPv6 network of 64 bits, because a host
/// may use any address in its network.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

impl Peers {
    pub(super) fn new(keyed: Keyed) -> Self {
        Self {
            all: Taken::default(),
            places: HashMap::with_hasher(keyed),
            peers: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The quota that another connection with `address` would exceed.
    pub(super) fn overdrawn(&self, config: &HostConfig, address: IpAddr) -> Option<Scope> {
        self.which(config, address, |taken, quota| taken.connections >= quota.connections)
    }

    /// The quota that another half-open connection with `address` would exceed.
    pub(super) fn crowded(&self, config: &HostConfig, address: IpAddr) -> Option<Scope> {
        self.which(config, address, |taken, quota| taken.half_open >= quota.half_open)
    }

    /// Whether the connections with `address` have reached their memory limit.
    pub(super) fn is_out_of_memory(&self, config: &HostConfig, address: IpAddr) -> bool {
        self.taken_by(address).memory >= config.peer_quota.memory
    }

    /// The memory that the connections of `peer` may still use; all sockets use `held`.
    pub(super) fn memory_left(
        &self,
        config: &HostConfig,
        held: ByteCount,
        peer: PeerId,
    ) -> ByteCount {
        let of_peer = config.peer_quota.memory - self.peers[peer.0 as usize].taken.memory;
        of_peer.min(config.quota.memory - held)
    }

    fn taken_by(&self, address: IpAddr) -> Taken {
        let place = self.places.get(&network(address));
        place.map_or(Taken::default(), |place| self.peers[place.0 as usize].taken)
    }

    fn which(
        &self,
        config: &HostConfig,
        address: IpAddr,
        is_taken: impl Fn(&Taken, &Quota) -> bool,
    ) -> Option<Scope> {
        if is_taken(&self.all, &config.quota) {
            return Some(Scope::All);
        }
        is_taken(&self.taken_by(address), &config.peer_quota).then_some(Scope::Peer)
    }

    /// The amount of out-of-order data that a connection of `peer` may still store.
    pub(super) fn room(&self, config: &HostConfig, peer: PeerId) -> ByteCount {
        let taken = match self.all.out_of_order {
            // The usual case.
            ByteCount::ZERO => ByteCount::ZERO,
            _ => self.peers[peer.0 as usize].taken.out_of_order,
        };
        let room = config.quota.out_of_order - self.all.out_of_order;
        room.min(config.peer_quota.out_of_order - taken)
    }

    /// Counts a new connection with `address`.
    pub(super) fn enter(&mut self, address: IpAddr) -> PeerId {
        let Self { places, peers, free, .. } = self;
        let network = network(address);
        let peer = *places.entry(network).or_insert_with(|| {
            let new = Peer { network, taken: Taken::default() };
            if let Some(place) = free.pop() {
                peers[place.0 as usize] = new;
                return place;
            }
            peers.push(new);
            PeerId((peers.len() - 1) as u32)
        });
        self.change(peer, |taken| taken.connections += 1);
        peer
    }

    /// Removes a connection that has ended.
    pub(super) fn leave(&mut self, peer: PeerId) {
        self.change(peer, |taken| taken.connections -= 1);
        let Peer { network, taken } = &self.peers[peer.0 as usize];
        if taken.connections == 0 {
            self.places.remove(network);
            self.free.push(peer);
        }
    }

    /// Counts a half-open connection.
    pub(super) fn begin_half_open(&mut self, peer: PeerId) {
        self.change(peer, |taken| taken.half_open += 1);
    }

    /// Removes a half-open connection.
    pub(super) fn end_half_open(&mut self, peer: PeerId) {
        self.change(peer, |taken| taken.half_open -= 1);
    }

    /// Updates the out-of-order memory of a connection from `before` to `now`.
    pub(super) fn set_out_of_order(&mut self, peer: PeerId, before: ByteCount, now: ByteCount) {
        self.change(peer, |taken| taken.out_of_order = taken.out_of_order - before + now);
    }

    /// Updates the memory of a connection from `before` to `now`.
    pub(super) fn set_memory(&mut self, peer: PeerId, before: ByteCount, now: ByteCount) {
        self.change(peer, |taken| taken.memory = taken.memory - before + now);
    }

    /// The resources used by all peers: connections, half-open connections, out-of-order bytes,
    /// memory.
    #[cfg(test)]
    pub(super) fn taken(&self) -> (usize, usize, ByteCount, ByteCount) {
        let Taken { connections, half_open, out_of_order, memory } = self.all;
        (connections, half_open, out_of_order, memory)
    }

    fn change(&mut self, peer: PeerId, change: impl Fn(&mut Taken)) {
        change(&mut self.all);
        change(&mut self.peers[peer.0 as usize].taken);
    }
}

#[cfg(test)]
mod tests {
    use super::super::secret::Secret;
    use super::*;

    fn config() -> HostConfig {
        let mut config = HostConfig::new([]);
        config.quota =
            Quota { connections: 3, half_open: 2, out_of_order: ByteCount(100), ..Quota::ALL };
        config.peer_quota =
            Quota { connections: 2, half_open: 1, out_of_order: ByteCount(70), ..Quota::PEER };
        config
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_peer_overdraws_its_own_quota_and_all_the_hosts() {
        let (config, mut peers) = (config(), Peers::new(Secret::new([1; 16]).keyed()));
        let [a, b] = ["10.0.0.1", "10.0.0.2"].map(address);
        let first = peers.enter(a);
        assert_eq!(peers.enter(a), first);
        let overdrawn = |peers: &Peers| [a, b].map(|peer| peers.overdrawn(&config, peer));
        assert_eq!(overdrawn(&peers), [Some(Scope::Peer), None]);
        peers.begin_half_open(first);
        assert_eq!([a, b].map(|p| peers.crowded(&config, p)), [Some(Scope::Peer), None]);
        let second = peers.enter(b);
        assert_eq!(overdrawn(&peers), [Some(Scope::All); 2]);
        peers.begin_half_open(second);
        assert_eq!([a, b].map(|p| peers.crowded(&config, p)), [Some(Scope::All); 2]);
        peers.end_half_open(first);
        peers.leave(first);
        peers.leave(first);
        assert_eq!(overdrawn(&peers), [None; 2]);
        assert_eq!((peers.places.len(), peers.free.len()), (1, 1), "an unused peer is removed");
        assert_eq!(peers.enter(address("10.0.0.3")), first, "and its entry is reused");
    }

    #[test]
    fn data_out_of_order_is_counted_by_peer_and_for_all() {
        let (config, mut peers) = (config(), Peers::new(Secret::new([1; 16]).keyed()));
        let [a, b] = ["10.0.0.1", "10.0.0.2"].map(|text| peers.enter(address(text)));
        assert_eq!(peers.room(&config, a), ByteCount(70));
        peers.set_out_of_order(a, ByteCount(0), ByteCount(60));
        assert_eq!([a, b].map(|peer| peers.room(&config, peer).0), [10, 40]);
        peers.set_out_of_order(a, ByteCount(60), ByteCount(20));
        assert_eq!([a, b].map(|peer| peers.room(&config, peer).0), [50, 70]);
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_peer() {
        let mut peers = Peers::new(Secret::new([1; 16]).keyed());
        let one = peers.enter(address("2001:db8::1"));
        assert_eq!(peers.enter(address("2001:db8::ffff:1")), one);
        assert_ne!(peers.enter(address("2001:db8:0:1::1")), one);
    }
}
