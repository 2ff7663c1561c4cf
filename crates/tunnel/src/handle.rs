//! A handle to observe and change a running tunnel.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::peers::Peers;
use crate::{Network, PeerConfig, PublicKey, TunnelError};

/// The status of a peer. Bytes are those of datagrams, without UDP and IP headers, as in `wg show`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PeerStatus {
    /// The public key.
    pub public_key: PublicKey,
    /// The source of its last authenticated datagram, or the configured endpoint before there is
    /// one.
    pub endpoint: Option<SocketAddr>,
    /// The AllowedIPs.
    pub allowed_ips: Vec<Network>,
    /// The age of the last handshake. A session is renewed after two minutes and expires after
    /// three.
    pub last_handshake: Option<Duration>,
    /// Bytes received and authenticated.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets that waited for a handshake and were dropped: more than 128, or for 90 s.
    pub tx_dropped: u64,
    /// Datagrams dropped because they were damaged or belonged to an expired session.
    pub rx_invalid: u64,
    /// Datagrams dropped because they were replayed or arrived more than 1024 positions late, and
    /// initiations older than the last one. If only this counter increases, the peer's clock has
    /// stepped back.
    pub rx_replayed: u64,
    /// Packets dropped because their source is not in the peer's AllowedIPs.
    pub rx_refused: u64,
}

/// Counters of datagrams that belong to no peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TunnelCounters {
    /// Datagrams dropped because they are not WireGuard messages, or are for another public key.
    pub rx_malformed: u64,
    /// Datagrams dropped because they are from an unknown peer or for an unknown session.
    pub rx_unknown: u64,
    /// Initiations dropped because an address sends too many, or there are too many addresses.
    pub rx_limited: u64,
    /// Handshake messages answered with a cookie, because there were more than 100 in a second.
    pub cookies: u64,
}

/// A handle of a tunnel, cheap to clone. It can outlive the tunnel.
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
        // A panic under the lock is a bug that has been reported; the other peers continue.
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TunnelHandle {
    /// Returns the public key of this end.
    pub fn public_key(&self) -> PublicKey {
        self.0.lock().public_key()
    }

    /// Returns the status of all peers, in the order of their keys.
    pub fn peers(&self) -> Vec<PeerStatus> {
        self.0.lock().status(Instant::now())
    }

    /// Returns the counters of datagrams that belong to no peer.
    pub fn counters(&self) -> TunnelCounters {
        self.0.lock().counters
    }

    /// Adds a peer.
    ///
    /// # Errors
    /// [`TunnelError`] if the key or a network is in use, or the keepalive interval is invalid.
    pub fn add_peer(&self, peer: PeerConfig) -> Result<(), TunnelError> {
        self.0.lock().add(peer, Instant::now())?;
        self.0.changed.notify_one();
        Ok(())
    }

    /// Removes a peer with its sessions; returns whether it existed.
    pub fn remove_peer(&self, key: &PublicKey) -> bool {
        self.0.lock().remove(key)
    }
}

impl fmt::Debug for TunnelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelHandle").finish_non_exhaustive()
    }
}
