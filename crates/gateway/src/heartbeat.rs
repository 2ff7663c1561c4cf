//! Heartbeats over a control connection: whether the far gateway answers, and whether it is the
//! same as before.

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

/// How often the far gateway is asked whether it is there, and how often a control connection is
/// opened at most.
const INTERVAL: Duration = Duration::from_secs(1);

/// A far gateway that was not heard for so long does not answer. With what it takes to look it is
/// noticed within 5 s.
const SILENCE: Duration = Duration::from_secs(4);

/// How often the silence is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// How long a control connection may take to open: two SYNs, then the next attempt.
const OPENING: Duration = Duration::from_secs(2);

/// A random number for each life of a gateway.
pub(crate) fn instance() -> u64 {
    use rand::TryRng;
    // The clock of a machine without randomness still tells one life from the next.
    rand::rngs::SysRng.try_next_u64().unwrap_or_else(|_| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as u64)
    })
}

/// Tells `near` whether its far gateway answers, for as long as it is polled.
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
    /// The instance of the far gateway.
    far: Option<u64>,
    heard: watch::Sender<Instant>,
}

impl Life {
    async fn run(&mut self) {
        loop {
            let began = Instant::now();
            let Err(error) = self.control().await;
            // Somebody answers, but is no gateway.
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

    /// Sends the control request; gives the instance of the far gateway.
    async fn greet(&self, stream: &mut TcpStream) -> io::Result<u64> {
        let mut request = Vec::new();
        Request::Control(self.own).encode(&mut request).map_err(invalid)?;
        stream.write_all(&request).await?;
        let mut reply = [0; REPLY];
        stream.read_exact(&mut reply).await?;
        // Also if it has no room for a control connection.
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

/// Notices that the far gateway is silent, and ends the hold.
async fn watch_silence(near: Arc<Inner>, mut heard: watch::Receiver<Instant>) {
    let mut received = 0;
    let mut last = *heard.borrow_and_update();
    let mut held = true;
    loop {
        tokio::time::sleep(LOOK).await;
        last = last.max(*heard.borrow_and_update());
        // Data of any connection is a sign of life, too: a heartbeat may wait behind a lot of it.
        let now_received = near.totals.received.load(Relaxed);
        if std::mem::replace(&mut received, now_received) != now_received {
            last = Instant::now();
        }
        let silence = last.elapsed();
        // Less would reset connections between two heartbeats.
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
