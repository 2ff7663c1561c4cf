//! Limits the number of clients served at a time.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::carried::lock;

/// The time limit for a client to send its request.
pub(super) const GREETING: Duration = Duration::from_secs(10);

/// The idle time before TCP keep-alive probes a client, in seconds.
const SILENT: u32 = 60;

/// A limit on the number of clients served at a time. Clones share it.
///
/// Above the limit, clients wait until others have ended: one is accepted and not served, the
/// others stay in the backlog of the listener. Any one address (IPv6: any network of 64 bits) may
/// use at most seven eighths of the limit, so that it cannot keep all others waiting; its clients
/// beyond that are reset. Loopback may use all.
#[derive(Clone, Debug)]
pub struct Clients {
    slots: Arc<Semaphore>,
    limit: u32,
    /// For each source, the number of clients that are served or wait.
    pub(super) sources: Arc<Mutex<HashMap<IpAddr, u32>>>,
    /// Set by [`reset`](Self::reset).
    over: Arc<watch::Sender<bool>>,
}

impl Clients {
    /// Creates a limit of `limit` clients at a time.
    pub fn new(limit: u32) -> Self {
        let slots = Arc::new(Semaphore::new(limit as usize));
        let over = Arc::new(watch::Sender::new(false));
        Self { slots, limit, sources: Arc::default(), over }
    }

    /// The number of clients served now.
    pub fn count(&self) -> u32 {
        self.limit.saturating_sub(self.slots.available_permits() as u32)
    }

    /// Waits until no client is served.
    pub async fn drained(&self) {
        // An error would mean that the semaphore was closed, but nothing closes it.
        let _ = self.slots.acquire_many(self.limit).await;
    }

    /// Resets the connections of the clients, and each one that follows; not those of interception,
    /// which its stack resets.
    pub fn reset(&self) {
        self.over.send_replace(true);
    }

    /// Waits for a slot for a client at `source`; dropping the slot frees it. `None`: the source
    /// already has as many clients as it may.
    pub(crate) async fn enter(&self, source: IpAddr) -> Option<Slot> {
        let source = source.to_canonical();
        let kept = if source.is_loopback() { 0 } else { self.limit / 8 };
        let share = match kept {
            0 => None,
            kept => Some(self.share(source, self.limit - kept)?),
        };
        match Arc::clone(&self.slots).acquire_owned().await {
            Ok(permit) => Some(Slot { _permit: permit, _share: share }),
            // Nothing closes the semaphore.
            Err(_) => std::future::pending().await,
        }
    }

    /// Reserves one of the `most` places of a source; `None` if all are taken.
    fn share(&self, source: IpAddr, most: u32) -> Option<Share> {
        let source = match source {
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
            IpAddr::V4(_) => source,
        };
        let mut sources = lock(&self.sources);
        let count = sources.entry(source).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Share { sources: self.sources.clone(), source })
    }

    /// Serves a client in its own task, until `served` completes or [`reset`](Self::reset) is
    /// called.
    pub(crate) fn serve(&self, slot: Slot, served: impl Future<Output = ()> + Send + 'static) {
        let over = self.over.clone();
        tokio::spawn(async move {
            let is_over = async { drop(over.subscribe().wait_for(|over| *over).await) };
            tokio::select! {
                () = served => {}
                // A splice that is dropped resets its connections.
                () = is_over => {}
            }
            drop(slot);
        });
    }

    /// Accepts clients and runs `serve` for each in its own task. The tasks continue when this
    /// future is dropped.
    pub(super) async fn accept<F>(
        &self,
        listener: TcpListener,
        serve: impl Fn(TcpStream, SocketAddr) -> F,
    ) -> Infallible
    where
        F: Future<Output = ()> + Send + 'static,
    {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let Some(slot) = self.enter(peer.ip()).await else {
                        tracing::info!(%peer, "reset: its address has as many connections as it may");
                        let _ = stream.set_zero_linger();
                        continue;
                    };
                    prepare(&stream);
                    self.serve(slot, serve(stream, peer));
                }
                Err(error) => {
                    // Usually no file descriptors are left: wait until other connections end.
                    tracing::warn!(%error, "a client could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// A client's share of the limit.
#[derive(Debug)]
pub(crate) struct Slot {
    _permit: OwnedSemaphorePermit,
    _share: Option<Share>,
}

/// A client's share of the places of its source.
#[derive(Debug)]
struct Share {
    sources: Arc<Mutex<HashMap<IpAddr, u32>>>,
    source: IpAddr,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut sources = lock(&self.sources);
        if let Some(count) = sources.get_mut(&self.source) {
            *count -= 1;
            if *count == 0 {
                sources.remove(&self.source);
            }
        }
    }
}

/// Disables Nagle's algorithm and enables keep-alive, so that a vanished client is noticed.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = setsockopt(stream, sockopt::KeepAlive, &true);
    let _ = setsockopt(stream, sockopt::TcpKeepIdle, &SILENT);
}
