//! How many clients are served at a time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How long a client may take to say what it wants.
pub(super) const GREETING: Duration = Duration::from_secs(10);

/// A client that is silent for so many seconds is asked whether it is still there.
const SILENT: u32 = 60;

/// A limit on the clients that are served at a time. Clones share it.
///
/// Above it, clients wait until others have ended: one is accepted and not served, the others are in the backlog of the
/// kernel's listener.
#[derive(Clone, Debug)]
pub struct Clients {
    slots: Arc<Semaphore>,
    limit: u32,
    /// All are to end.
    over: Arc<watch::Sender<bool>>,
}

impl Clients {
    /// At most `limit` clients at a time.
    pub fn new(limit: u32) -> Self {
        let slots = Arc::new(Semaphore::new(limit as usize));
        Self { slots, limit, over: Arc::new(watch::Sender::new(false)) }
    }

    /// How many clients are served now.
    pub fn count(&self) -> u32 {
        self.limit.saturating_sub(self.slots.available_permits() as u32)
    }

    /// Waits until no client is served.
    pub async fn drained(&self) {
        // An error means that the semaphore was closed, which nothing does.
        let _ = self.slots.acquire_many(self.limit).await;
    }

    /// Resets the connections of the clients of proxies and forwards, now and from now on.
    pub fn reset(&self) {
        self.over.send_replace(true);
    }

    /// Waits for a place; it is free again when the permit is dropped.
    pub(super) async fn enter(&self) -> OwnedSemaphorePermit {
        match Arc::clone(&self.slots).acquire_owned().await {
            Ok(slot) => slot,
            // Nothing closes the semaphore.
            Err(_) => std::future::pending().await,
        }
    }

    /// Has `serve` see to each client in a task of its own, which goes on when this future is dropped.
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
                    let slot = self.enter().await;
                    prepare(&stream);
                    let served = serve(stream, peer);
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
                Err(error) => {
                    // Out of descriptors, for the most part: others have to go first.
                    tracing::warn!(%error, "a client could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Small writes are not delayed, and a client that vanishes is noticed.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = setsockopt(stream, sockopt::KeepAlive, &true);
    let _ = setsockopt(stream, sockopt::TcpKeepIdle, &SILENT);
}
