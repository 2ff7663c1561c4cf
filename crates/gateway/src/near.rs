//! The near gateway: carries connections to the far gateway.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airtcp_net::{Stack, TcpStream};
use serde::{Serialize, Serializer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::carried::{Resets, Totals, lock};
use crate::header::{REPLY, Request, read_reply};
use crate::heartbeat;
use crate::{Carried, Destination, Refusal};

/// The time limit for opening a spare connection.
const OPENING: Duration = Duration::from_secs(10);

/// The interval between checks of the spare connections, and the pause after one failed to open.
const UPKEEP: Duration = Duration::from_secs(1);

/// The settings of a near gateway.
#[derive(Clone, Debug)]
pub struct NearConfig {
    /// The carrier address and port of the far gateway.
    pub far: SocketAddr,
    /// The number of spare connections: carrier connections that are opened ahead.
    pub spare: usize,
    /// The time limit until the far gateway has connected. It should exceed the far gateway's own
    /// limit.
    pub dial: Duration,
    /// How long established connections outlive a far gateway that does not answer; at least 4 s.
    pub hold: Duration,
}

impl NearConfig {
    /// The defaults: 8 spare connections, 15 s for a dial, a hold of 120 s.
    pub const fn new(far: SocketAddr) -> Self {
        let (dial, hold) = (Duration::from_secs(15), Duration::from_secs(120));
        Self { far, spare: 8, dial, hold }
    }
}

/// A near gateway: a handle, cheap to clone.
///
/// It opens carrier connections ahead, and detects within 5 s that the far gateway does not answer.
/// From then until the far gateway answers again, it refuses new connections at once. Established
/// connections are held; they are reset when [`NearConfig::hold`] ends, or when the far gateway
/// turns out to be another instance.
///
/// The gateway stops when the last handle is dropped; its connections continue, but are no longer
/// watched.
#[derive(Clone, Debug)]
pub struct Near(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    inner: Arc<Inner>,
    /// The background tasks; they end with the handle.
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) stack: Stack,
    pub(crate) config: NearConfig,
    pub(crate) health: watch::Sender<Health>,
    pub(crate) totals: Arc<Totals>,
    pub(crate) resets: Arc<Resets>,
    spare: Mutex<Vec<TcpStream>>,
    /// Notified when a spare connection was taken.
    taken: Notify,
}

/// Whether the far gateway answers.
#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) state: State,
    pub(crate) since: Instant,
    pub(crate) rtt: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The far gateway has not answered yet.
    Starting,
    Up,
    /// With the reason, such as "does not answer".
    Down(String),
}

/// The status of a near gateway. Durations are serialized in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct NearStatus {
    /// The address of the far gateway.
    pub far: SocketAddr,
    /// Whether the far gateway answers.
    pub connected: bool,
    /// Why it does not, if that is known, such as "does not answer".
    pub reason: Option<String>,
    /// How long `connected` has had its value.
    #[serde(serialize_with = "millis")]
    pub since: Duration,
    /// The round-trip time of the last heartbeat, including the far gateway's time to answer.
    #[serde(serialize_with = "airtcp_types::maybe_millis")]
    pub rtt: Option<Duration>,
    /// Spare connections: carrier connections that are open ahead.
    pub spare: usize,
    /// Connections carried now.
    pub open: usize,
    /// Connections carried so far.
    pub opened: u64,
    /// Connections refused so far, by [`Refusal::name`].
    pub refused: BTreeMap<&'static str, u64>,
    /// Bytes of programs sent to the far gateway.
    pub sent: u64,
    /// Bytes for programs received from the far gateway.
    pub received: u64,
}

fn millis<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64() * 1e3)
}

impl Near {
    /// Starts a near gateway on the current tokio runtime.
    ///
    /// # Panics
    /// Panics outside a tokio runtime, and in one without a time driver.
    pub fn start(stack: Stack, config: NearConfig) -> Self {
        let health = Health { state: State::Starting, since: Instant::now(), rtt: None };
        let inner = Arc::new(Inner {
            stack,
            config,
            health: watch::Sender::new(health),
            totals: Arc::default(),
            resets: Arc::default(),
            spare: Mutex::default(),
            taken: Notify::new(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(heartbeat::run(inner.clone()));
        tasks.spawn(open_ahead(inner.clone()));
        Self(Arc::new(Handle { inner, _tasks: tasks }))
    }

    /// Connects to `to` through the far gateway; completes once the far gateway has connected.
    ///
    /// Dropping the future cancels the attempt, also at the far gateway.
    ///
    /// # Errors
    /// Why there is no connection; [`Refusal::NoGateway`] at once while the far gateway does not
    /// answer.
    pub async fn connect(&self, to: &Destination) -> Result<Carried, Refusal> {
        self.connect_with(to, &[]).await
    }

    /// As [`connect`](Self::connect), with data that the program has already sent. The data follows
    /// the request, and the destination receives it as soon as it is connected.
    ///
    /// Keep `early` small, such as the first flight of TLS: it must fit into the windows of a
    /// connection that nobody reads from yet.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(&self, to: &Destination, early: &[u8]) -> Result<Carried, Refusal> {
        let inner = &self.0.inner;
        let carried = inner.connect(&Request::Connect(to.clone()), early).await;
        carried.inspect_err(|refusal| inner.totals.refuse(refusal))
    }

    /// Opens a port of the far gateway's machine for as long as the result lives. Waits while the
    /// far gateway does not answer. The far gateway closes the connection when it closes the port,
    /// or when this near gateway opens the same port again.
    ///
    /// # Errors
    /// [`Refusal::NotAllowed`] unless [`FarConfig::permit_listen`](crate::FarConfig::permit_listen)
    /// includes the port, [`Refusal::PortInUse`], [`Refusal::CannotListen`]; [`Refusal::NoGateway`]
    /// also from a far gateway of a version without remote ports.
    pub async fn listen(&self, at: SocketAddr) -> Result<Carried, Refusal> {
        self.0.inner.connect(&Request::Listen(at), &[]).await
    }

    /// Waits for a connection to a port that [`listen`](Self::listen) has opened. Several callers
    /// may wait. Like established connections, they are held while the far gateway does not answer.
    ///
    /// # Errors
    /// [`Refusal::NotAllowed`] if the port is not open, or as [`connect`](Self::connect).
    pub async fn accept(&self, at: SocketAddr) -> Result<Carried, Refusal> {
        self.0.inner.connect(&Request::Accept(at), &[]).await
    }

    /// The local addresses of the spare connections.
    pub fn spare(&self) -> Vec<SocketAddr> {
        lock(&self.0.inner.spare).iter().filter_map(|stream| stream.local_addr().ok()).collect()
    }

    /// The gateway's current status.
    pub fn status(&self) -> NearStatus {
        let Inner { config, health, totals, spare, .. } = &*self.0.inner;
        let health = health.borrow();
        let reason = match &health.state {
            State::Down(why) => Some(why.clone()),
            State::Starting | State::Up => None,
        };
        NearStatus {
            far: config.far,
            connected: health.state == State::Up,
            reason,
            since: health.since.elapsed(),
            rtt: health.rtt,
            spare: lock(spare).len(),
            open: totals.open(),
            opened: totals.opened.load(Relaxed),
            refused: totals.refused(),
            sent: totals.sent.load(Relaxed),
            received: totals.received.load(Relaxed),
        }
    }
}

impl Inner {
    /// Sets whether the far gateway answers; returns whether that is a change.
    pub(crate) fn turn(&self, state: State) -> bool {
        self.health.send_if_modified(|health| {
            // While down, the first reason is kept.
            let same = matches!((&health.state, &state), (State::Down(_), State::Down(_)));
            if same || health.state == state {
                return false;
            }
            (health.state, health.since) = (state, Instant::now());
            true
        })
    }

    /// Drops the spare connections: the far gateway was restarted, or is gone.
    pub(crate) fn drop_spare(&self) {
        let spare = std::mem::take(&mut *lock(&self.spare));
        drop(spare);
        self.taken.notify_one();
    }

    async fn connect(&self, request: &Request, early: &[u8]) -> Result<Carried, Refusal> {
        let mut bytes = Vec::with_capacity(early.len() + 64);
        // A destination with port 0 or an invalid name cannot exist.
        request.encode(&mut bytes).map_err(|_| Refusal::NoSuchName)?;
        bytes.extend_from_slice(early);
        let mut health = self.health.subscribe();
        // Listen and accept requests wait for the far gateway: no program waits for their answer.
        // The wait cannot fail: `self` keeps the sender.
        if !matches!(request, Request::Connect(_)) {
            let _ = health.wait_for(|health| health.state == State::Up).await;
        }
        // An accept request has no time limit: a program may connect to the port at any time, also
        // after the far gateway was away.
        let is_held = matches!(request, Request::Accept(_));
        let connecting = async {
            // Within seconds of the start it is known whether the far gateway answers.
            let _ = health.wait_for(|health| health.state != State::Starting).await;
            let since = self.resets.count();
            let down = health.wait_for(|health| matches!(health.state, State::Down(_)));
            tokio::select! {
                biased;
                down = down, if !is_held => {
                    Err(self.refusal(down.ok().map(|health| health.state.clone())))
                }
                () = self.resets.after(since) => Err(Refusal::NoGateway(format!(
                    "{} was restarted, or did not answer for too long", self.config.far
                ))),
                stream = self.carry(&bytes, early.is_empty()) => Ok((stream?, since)),
            }
        };
        let patience = if is_held { Duration::MAX } else { self.config.dial };
        let (stream, since) = match tokio::time::timeout(patience, connecting).await {
            Ok(connected) => connected?,
            Err(_) => {
                let Self { config: NearConfig { far, dial, .. }, .. } = self;
                return Err(Refusal::NoGateway(format!("{far} did not reply within {dial:?}")));
            }
        };
        let mut carried = Carried::new(stream, self.totals.clone(), self.resets.clone(), since);
        if !matches!(request, Request::Listen(_)) {
            carried.count();
        }
        self.totals.sent.fetch_add(early.len() as u64, Relaxed);
        Ok(carried)
    }

    fn refusal(&self, state: Option<State>) -> Refusal {
        match state {
            Some(State::Down(why)) => Refusal::NoGateway(format!("{} {why}", self.config.far)),
            _ => Refusal::NoGateway(format!("{} does not answer", self.config.far)),
        }
    }

    /// Sends `request` on a spare or new connection, and waits for the reply.
    async fn carry(&self, request: &[u8], may_repeat: bool) -> Result<TcpStream, Refusal> {
        if let Some(stream) = self.take_spare() {
            match ask(stream, request).await {
                // The spare connection was dead and nothing had noticed, or the gateway may have
                // room by now.
                Err(_) | Ok(Err(Refusal::Busy)) if may_repeat => {}
                asked => return asked.unwrap_or_else(|error| Err(self.of_carrier(&error))),
            }
        }
        let stream = self.stack.connect(self.config.far).await;
        let stream = stream.map_err(|error| self.of_carrier(&error))?;
        ask(stream, request).await.unwrap_or_else(|error| Err(self.of_carrier(&error)))
    }

    /// Returns the refusal for a carrier connection that failed.
    fn of_carrier(&self, error: &io::Error) -> Refusal {
        match error.kind() {
            ErrorKind::AddrNotAvailable | ErrorKind::QuotaExceeded | ErrorKind::OutOfMemory => {
                Refusal::Busy
            }
            _ => Refusal::NoGateway(format!("the connection to {}: {error}", self.config.far)),
        }
    }

    fn take_spare(&self) -> Option<TcpStream> {
        let mut spare = lock(&self.spare);
        let alive = std::iter::from_fn(|| spare.pop()).find(is_idle);
        drop(spare);
        self.taken.notify_one();
        alive
    }
}

/// Sends `request`, and reads the reply. Dropping the future resets the connection.
async fn ask(mut stream: TcpStream, request: &[u8]) -> io::Result<Result<TcpStream, Refusal>> {
    stream.set_nodelay(true)?;
    stream.set_zero_linger()?;
    // The write may fail because the far gateway refused before it read everything; then the reply
    // has the reason.
    let written = stream.write_all(request).await;
    let mut reply = [0; REPLY];
    stream.read_exact(&mut reply).await?;
    if let Err(refusal) = read_reply(reply) {
        return Ok(Err(refusal));
    }
    written?;
    stream.set_linger(None)?;
    Ok(Ok(stream))
}

/// Whether nothing has arrived on a spare connection: the far gateway sends there only to close it.
fn is_idle(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// Keeps spare connections open while the far gateway answers.
async fn open_ahead(inner: Arc<Inner>) {
    let mut health = inner.health.subscribe();
    let mut opening = JoinSet::new();
    loop {
        if health.wait_for(|health| health.state == State::Up).await.is_err() {
            return;
        }
        let (held, ended) = {
            let mut spare = lock(&inner.spare);
            let before = spare.len();
            spare.retain(is_idle);
            (spare.len(), before - spare.len())
        };
        if ended > 0 {
            // The far gateway closed them: it has no room for them.
            tokio::time::sleep(UPKEEP).await;
        }
        for _ in held + opening.len()..inner.config.spare {
            let (stack, far) = (inner.stack.clone(), inner.config.far);
            opening.spawn(async move { stack.connect_timeout(far, OPENING).await });
        }
        tokio::select! {
            Some(opened) = opening.join_next() => match opened {
                Ok(Ok(stream)) => lock(&inner.spare).push(stream),
                _ => tokio::time::sleep(UPKEEP).await,
            },
            () = inner.taken.notified() => {}
            () = tokio::time::sleep(UPKEEP) => {}
        }
    }
}
