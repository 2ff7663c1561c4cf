//! A handle that observes and changes a running tunnel.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::peers::Peers;
use crate::{Network, PeerConfig, PublicKey, TunnelError};

/// A peer as it is now. Bytes are those of datagrams, without UDP and IP headers, as `wg show` counts them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PeerStatus {
    /// Its public key.
    pub public_key: PublicKey,
    /// Where it was last, by a datagram that it authenticated.
    pub endpoint: Option<SocketAddr>,
    /// The networks that lead to it.
    pub allowed_ips: Vec<Network>,
    /// The age of the last handshake. A session is renewed after two minutes and over after three.
    pub last_handshake: Option<Duration>,
    /// Bytes received and authenticated.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped that waited for a handshake: more than 128, or for 90 s.
    pub tx_dropped: u64,
    /// Datagrams dropped that were damaged or of a session that is over.
    pub rx_invalid: u64,
    /// Datagrams dropped that were there before, or arrived more than 1024 too late, and initiations that are older
    /// than the last one. If only these increase, the peer's clock stepped back.
    pub rx_replayed: u64,
    /// Packets dropped because their source is not in the peer's AllowedIPs.
    pub rx_refused: u64,
}

/// Datagrams that belong to no peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TunnelCounters {
    /// Dropped: no WireGuard message, or one for another public key.
    pub rx_malformed: u64,
    /// Dropped: of an unknown peer, or of a session that is not there.
    pub rx_unknown: u64,
    /// Dropped: an address that sends too many initiations, or there are too many addresses.
    pub rx_limited: u64,
    /// Handshake messages answered with a cookie, because there were more than 100 in a second.
    pub cookies: u64,
}

/// A handle of a tunnel, cheap to clone. It outlives the tunnel.
#[derive(Clone)]
pub struct TunnelHandle(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    peers: Mutex<Peers>,
    /// Notified when a timer may be due earlier.
    pub(crate) changed: Notify,
}

impl Shared {
    pub(crate) fn new(peers: Peers) -> Self {
        Self { peers: Mutex::new(peers), changed: Notify::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Peers> {
        // A panic under the lock is a bug of ours that has been reported; other peers go on.
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TunnelHandle {
    /// The public key of this end.
    pub fn public_key(&self) -> PublicKey {
        self.0.lock().public_key()
    }

    /// The peers, in the order of their keys.
    pub fn peers(&self) -> Vec<PeerStatus> {
        self.0.lock().status(Instant::now())
    }

    /// Counters of datagrams that belong to no peer.
    pub fn counters(&self) -> TunnelCounters {
        self.0.lock().counters
    }

    /// Adds a peer.
    ///
    /// # Errors
    /// [`TunnelError`]: the key or a network is there already, or the keepalive cannot be had.
    pub fn add_peer(&self, peer: PeerConfig) -> Result<(), TunnelError> {
        self.0.lock().add(peer, Instant::now())?;
        self.0.changed.notify_one();
        Ok(())
    }

    /// Removes a peer, with its sessions; whether it was there.
    pub fn remove_peer(&self, key: &PublicKey) -> bool {
        self.0.lock().remove(key)
    }
}

impl fmt::Debug for TunnelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelHandle").finish_non_exhaustive()
    }
}
