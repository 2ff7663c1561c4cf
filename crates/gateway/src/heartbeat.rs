//! Heartbeats over a control connection: detect whether the far gateway answers, and whether it is
//! the same instance as before.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use airtcp_net::TcpStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::Refusal;
use crate::header::{REPLY, Request, read_reply};
use crate::near::{Inner, State};

/// The interval between heartbeats, and the shortest interval between attempts to open a control
/// connection.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time after which a silent far gateway counts as down. Together with [`LOOK`], silence is
/// detected within 5 s.
const SILENCE: Duration = Duration::from_secs(4);

/// The interval between checks for silence.
const LOOK: Duration = Duration::from_millis(250);

/// The time limit for opening a control connection: two SYNs, then the next attempt.
const OPENING: Duration = Duration::from_secs(2);

/// Returns a random number that identifies one run of a gateway.
pub(crate) fn instance() -> u64 {
    use rand::TryRng;
    // On a machine without a random source, the clock still distinguishes two runs.
    rand::rngs::SysRng.try_next_u64().unwrap_or_else(|_| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as u64)
    })
}

/// Updates `near` on whether its far gateway answers, for as long as the future is polled.
pub(crate) async fn run(near: Arc<Inner>) {
    let (heard, last_heard) = watch::channel(Instant::now());
    let mut life = Life { near: near.clone(), own: instance(), far: None, heard };
    tokio::join!(life.run(), watch_silence(near, last_heard));
}

impl Inner {
    fn down(&self, why: String) {
        if self.turn(State::Down(why.clone())) {
            info!(at = %self.config.far, "the far gateway {why}: new connections are refused");
        }
    }
}

struct Life {
    near: Arc<Inner>,
    own: u64,
    /// The last known instance of the far gateway.
    far: Option<u64>,
    heard: watch::Sender<Instant>,
}

impl Life {
    async fn run(&mut self) {
        loop {
            let began = Instant::now();
            let Err(error) = self.control().await;
            // A host answers, but no usable gateway.
            match error.kind() {
                ErrorKind::ConnectionRefused => {
                    self.near.down(
                        "refuses connections: is `airtcp gateway far` running there?".to_owned(),
                    );
                }
                ErrorKind::InvalidData => {
                    self.near.down(format!("is none that this one can use: {error}"))
                }
                _ => {}
            }
            tokio::time::sleep_until(began + INTERVAL).await;
        }
    }

    /// Opens a control connection and sends heartbeats, until that fails.
    async fn control(&mut self) -> io::Result<Infallible> {
        let mut stream = self.near.stack.connect_timeout(self.near.config.far, OPENING).await?;
        stream.set_nodelay(true)?;
        let far = in_time(self.greet(&mut stream)).await?;
        self.on_hello(far);
        let mut number = 0_u64;
        loop {
            let sent_at = Instant::now();
            stream.write_all(&number.to_be_bytes()).await?;
            let mut echo = [0; 8];
            in_time(stream.read_exact(&mut echo)).await?;
            if u64::from_be_bytes(echo) != number {
                return Err(io::Error::new(ErrorKind::InvalidData, "a wrong heartbeat"));
            }
            let rtt = sent_at.elapsed();
            self.heard.send_replace(Instant::now());
            self.near.health.send_if_modified(|health| {
                health.rtt = Some(rtt);
                false
            });
            number += 1;
            tokio::time::sleep_until(sent_at + INTERVAL).await;
        }
    }

    /// Sends the control request; returns the instance of the far gateway.
    async fn greet(&self, stream: &mut TcpStream) -> io::Result<u64> {
        let mut request = Vec::new();
        Request::Control(self.own).encode(&mut request).map_err(invalid)?;
        stream.write_all(&request).await?;
        let mut reply = [0; REPLY];
        stream.read_exact(&mut reply).await?;
        // Also counts as an answer if the far gateway has no room for a control connection.
        self.heard.send_replace(Instant::now());
        read_reply(reply).map_err(|refusal| match refusal {
            Refusal::Busy => io::Error::new(ErrorKind::ResourceBusy, refusal),
            Refusal::NoGateway(why) => io::Error::new(ErrorKind::InvalidData, why),
            refusal => invalid(refusal),
        })?;
        stream.read_u64().await
    }

    fn on_hello(&mut self, far: u64) {
        let at = self.near.config.far;
        if self.far.replace(far).is_some_and(|known| known != far) {
            warn!(%at, "the far gateway was restarted: the connections over it are reset");
            self.near.drop_spare();
            self.near.resets.reset();
        }
        if self.near.turn(State::Up) {
            info!(%at, "the far gateway answers");
        }
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

async fn in_time<T>(answer: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(SILENCE, answer).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

/// Detects that the far gateway is silent, and ends the hold.
async fn watch_silence(near: Arc<Inner>, mut heard: watch::Receiver<Instant>) {
    let mut received = 0;
    let mut last = *heard.borrow_and_update();
    let mut held = true;
    loop {
        tokio::time::sleep(LOOK).await;
        last = last.max(*heard.borrow_and_update());
        // Data on any connection also counts: a heartbeat may be queued behind bulk data.
        let now_received = near.totals.received.load(Relaxed);
        if std::mem::replace(&mut received, now_received) != now_received {
            last = Instant::now();
        }
        let silence = last.elapsed();
        // A shorter hold would reset connections between two heartbeats.
        let (far, hold) = (near.config.far, near.config.hold.max(SILENCE));
        if silence >= SILENCE {
            near.down("does not answer: is it running, and is the tunnel up?".to_owned());
        }
        if silence >= hold && held {
            warn!(at = %far, ?hold, "the hold has ended: the connections are reset");
            near.drop_spare();
            near.resets.reset();
        }
        held = silence < hold;
    }
}
