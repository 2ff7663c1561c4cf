//! All peers: by key, by index and by inner address.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use airtcp_types::Packet;
use boringtun::noise::handshake::parse_handshake_anon;
use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::noise::{Packet as Message, Tunn};
use boringtun::x25519;
use ip_network_table::IpNetworkTable;
use rand::TryRng;
use rand::rngs::SysRng;

use crate::gate::{Gate, Verdict};
use crate::handle::{PeerStatus, TunnelCounters};
use crate::outgoing::{Arrival, Io};
use crate::peer::{Peer, Received, earliest};
use crate::{Datagrams, PeerConfig, PrivateKey, PublicKey, TunnelError};

/// The maximum number of peers. Indices have 24 bits and are drawn at random, so most of them must
/// stay free.
const MOST: usize = 1 << 16;
const INDEX_BITS: u32 = 0x00ff_ffff;

pub(crate) struct Peers {
    private_key: PrivateKey,
    public_key: x25519::PublicKey,
    gate: Gate,
    /// A rate limiter without a limit, which boringtun requires; the gate limits before.
    never: Arc<RateLimiter>,
    by_key: BTreeMap<PublicKey, u32>,
    by_index: HashMap<u32, Peer>,
    by_network: IpNetworkTable<u32>,
    /// When the timers of the first peer are due.
    next: Option<Instant>,
    pub(crate) counters: TunnelCounters,
}

impl Peers {
    pub(crate) fn new(private_key: PrivateKey, now: Instant) -> Self {
        let public_key = x25519::PublicKey::from(&private_key.0);
        Self {
            gate: Gate::new(&public_key, now),
            never: Arc::new(RateLimiter::new(&public_key, u64::MAX)),
            private_key,
            public_key,
            by_key: BTreeMap::new(),
            by_index: HashMap::new(),
            by_network: IpNetworkTable::new(),
            next: None,
            counters: TunnelCounters::default(),
        }
    }

    pub(crate) fn add(&mut self, config: PeerConfig, now: Instant) -> Result<(), TunnelError> {
        let key = config.public_key;
        if key.0 == self.public_key.to_bytes() {
            return Err(TunnelError::OwnKey);
        }
        if self.by_key.contains_key(&key) {
            return Err(TunnelError::KnownPeer(key));
        }
        for &network in &config.allowed_ips {
            if let Some(index) = self.by_network.exact_match(network.0)
                && let Some(peer) = self.by_index.get(index)
            {
                return Err(TunnelError::TakenNetwork { network, peer: peer.config().public_key });
            }
        }
        if self.by_key.len() >= MOST {
            return Err(TunnelError::TooManyPeers);
        }
        // boringtun would panic.
        SystemTime::UNIX_EPOCH.elapsed().map_err(|_| TunnelError::Clock)?;
        let index = self.free_index();
        let peer = Peer::new(&self.private_key, config, index, &self.never, now)?;
        for network in &peer.config().allowed_ips {
            self.by_network.insert(network.0, index);
        }
        self.next = earliest(self.next, peer.due());
        self.by_key.insert(key, index);
        self.by_index.insert(index, peer);
        Ok(())
    }

    /// Draws a random index, which does not reveal the number of peers.
    fn free_index(&self) -> u32 {
        loop {
            let mut bytes = [0; 4];
            SysRng.try_fill_bytes(&mut bytes).expect("the operating system has randomness");
            let index = u32::from_le_bytes(bytes) & INDEX_BITS;
            if !self.by_index.contains_key(&index) {
                return index;
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &PublicKey) -> bool {
        let Some(index) = self.by_key.remove(key) else { return false };
        for network in
            self.by_index.remove(&index).iter().flat_map(|peer| &peer.config().allowed_ips)
        {
            self.by_network.remove(network.0);
        }
        true
    }

    pub(crate) fn status(&self, now: Instant) -> Vec<PeerStatus> {
        self.by_key
            .values()
            .filter_map(|index| self.by_index.get(index))
            .map(|peer| peer.status(now))
            .collect()
    }

    pub(crate) fn public_key(&self) -> PublicKey {
        PublicKey(self.public_key.to_bytes())
    }

    /// Returns when the timers must run.
    pub(crate) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Runs the timers that are due.
    pub(crate) fn tick<S: Datagrams>(&mut self, io: &mut Io<'_, S>) {
        if self.next.is_none_or(|next| next > io.now) {
            return;
        }
        self.next = None;
        for index in self.by_key.values() {
            let Some(peer) = self.by_index.get_mut(index) else { continue };
            if peer.due().is_some_and(|due| due <= io.now) {
                peer.tick(io);
            }
            self.next = earliest(self.next, peer.due());
        }
    }

    /// Sends a packet to the peer of its destination.
    pub(crate) fn transmit<S: Datagrams>(&mut self, packet: &[u8], io: &mut Io<'_, S>) {
        let index = Tunn::dst_address(packet).and_then(|to| self.index_of(to));
        let Some(peer) = index.and_then(|index| self.by_index.get_mut(&index)) else {
            io.out.counters.tx_errors += 1;
            return;
        };
        peer.transmit(packet, io);
        self.next = earliest(self.next, peer.due());
    }

    fn index_of(&self, address: IpAddr) -> Option<u32> {
        self.by_network.longest_match(address).map(|(_, &index)| index)
    }

    /// Processes a datagram; returns whether it contained a packet, which then is in `packet`.
    pub(crate) fn receive<S: Datagrams>(
        &mut self,
        datagram: Arrival<'_>,
        packet: &mut Packet,
        io: &mut Io<'_, S>,
    ) -> bool {
        let Arrival { from, bytes } = datagram;
        let message = match self.gate.verify(io.now, from.ip(), bytes, io.buf) {
            Verdict::Pass(message) => message,
            Verdict::Cookie(length) => {
                self.counters.cookies += 1;
                io.out.send(&io.buf[..length], from);
                return false;
            }
            Verdict::Malformed => {
                self.counters.rx_malformed += 1;
                io.out.counters.rx_errors += 1;
                return false;
            }
            Verdict::Limited => {
                self.counters.rx_limited += 1;
                io.out.counters.rx_errors += 1;
                return false;
            }
        };
        let index = match message {
            // Decrypts the first half of the handshake, which identifies the sender and verifies
            // that it is for this key.
            Message::HandshakeInit(initiation) => {
                parse_handshake_anon(&self.private_key.0, &self.public_key, &initiation)
                    .ok()
                    .and_then(|half| self.by_key.get(&PublicKey(half.peer_static_public)))
                    .copied()
            }
            Message::HandshakeResponse(response) => Some(response.receiver_idx >> 8),
            Message::PacketCookieReply(cookie) => Some(cookie.receiver_idx >> 8),
            Message::PacketData(data) => Some(data.receiver_idx >> 8),
        };
        let Some((index, peer)) =
            index.and_then(|index| Some((index, self.by_index.get_mut(&index)?)))
        else {
            self.counters.rx_unknown += 1;
            io.out.counters.rx_errors += 1;
            return false;
        };
        let received = peer.receive(datagram, packet, io);
        self.next = earliest(self.next, peer.due());
        let is_taken = match received {
            Received::Nothing => return false,
            Received::Bad => false,
            Received::Packet(source) => {
                let leads_to = self.by_network.longest_match(source).map(|(_, &index)| index);
                peer.rx_refused += u64::from(leads_to != Some(index));
                leads_to == Some(index)
            }
        };
        if is_taken {
            io.out.counters.rx_packets += 1;
            io.out.counters.rx_bytes += packet.len() as u64;
        } else {
            io.out.counters.rx_errors += 1;
        }
        is_taken
    }
}
