//! What the driver and the streams share: the endpoint, and who waits for what.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use airtcp_device::Clock;
use airtcp_types::Instant;
use tokio::sync::Notify;

use super::error::io_error;
use crate::{CallError, ConnectionId, Endpoint, Event};

/// What is due within this leaves together, so that a fast sender does not wake for every packet.
const GRAIN: Duration = Duration::from_micros(250);

/// The state behind every handle of one socket.
pub(super) struct Shared {
    clock: Clock,
    core: Mutex<Core>,
    /// Asks the driver for a turn.
    pub(super) driver: Notify,
    /// A connection may be there to accept, or the socket is gone.
    pub(super) incoming: Notify,
    /// Told once, when the driver has ended.
    pub(super) done: Notify,
}

/// What the lock guards.
pub(super) struct Core {
    pub(super) endpoint: Endpoint,
    /// The connections that a stream exists for, or will when it is accepted.
    waiting: BTreeMap<ConnectionId, Waiting>,
    /// When the driver wakes without being asked; at once, while it works.
    pub(super) armed: Option<Instant>,
    last_turn: Instant,
    /// The driver was asked for a turn and has not begun it.
    kicked: bool,
    /// No handle is left.
    pub(super) abandoned: bool,
    /// Gives up at this time.
    pub(super) closing: Option<Instant>,
    /// The driver has ended, and this is why.
    pub(super) ended: Option<End>,
    /// Datagrams that the socket refused to send.
    pub(super) refused: u64,
    woken: Woken,
}

/// Of those that poll, the last one in each direction.
#[derive(Debug, Default)]
struct Waiting {
    connected: bool,
    read: Option<Waker>,
    write: Option<Waker>,
}

/// The direction that a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Read,
    Write,
}

/// Why there is no driver any more.
#[derive(Clone, Debug)]
pub(super) enum End {
    Shutdown,
    /// The UDP socket failed for good.
    Socket(String),
    /// The runtime ended.
    Dropped,
}

/// Whom to wake once the lock is free.
#[derive(Debug, Default)]
struct Woken {
    wakers: Vec<Waker>,
    incoming: bool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(endpoint: Endpoint, clock: Clock) -> Self {
        let core = Core {
            endpoint,
            waiting: BTreeMap::new(),
            armed: None,
            last_turn: Instant::ZERO,
            kicked: false,
            abandoned: false,
            closing: None,
            ended: None,
            refused: 0,
            woken: Woken::default(),
        };
        let (driver, incoming, done) = (Notify::new(), Notify::new(), Notify::new());
        Self { clock, core: Mutex::new(core), driver, incoming, done }
    }

    /// Makes a call, wakes whom it made ready, and asks the driver for a turn if something is due before it wakes.
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut Core, Instant) -> R) -> R {
        let (result, woken, kick) = {
            let mut core = self.lock();
            // Read under the lock, so that the endpoint's time never runs backwards.
            let now = self.clock.now();
            let result = call(&mut core, now);
            core.hear();
            let wake = core.next_wake();
            let kick =
                !core.kicked && wake.is_some() && (core.armed.is_none() || wake < core.armed);
            core.kicked |= kick;
            (result, mem::take(&mut core.woken), kick)
        };
        if kick {
            self.driver.notify_one();
        }
        self.wake(woken);
        result
    }

    /// The driver's turn: as [`with`](Self::with), without asking for another one.
    pub(super) fn turn<R>(&self, call: impl FnOnce(&mut Core, Clock) -> R) -> R {
        let (result, woken) = {
            let mut core = self.lock();
            (core.kicked, core.armed, core.last_turn) =
                (false, Some(Instant::ZERO), self.clock.now());
            let result = call(&mut core, self.clock);
            core.hear();
            (result, mem::take(&mut core.woken))
        };
        self.wake(woken);
        result
    }

    fn wake(&self, woken: Woken) {
        woken.wakers.into_iter().for_each(Waker::wake);
        if woken.incoming {
            self.incoming.notify_waiters();
        }
    }

    /// The socket is gone: nobody waits for it any more.
    pub(super) fn end(&self, end: End) {
        let woken = {
            let mut core = self.lock();
            core.ended.get_or_insert(end);
            let all = core.waiting.values_mut();
            let wakers = all.flat_map(|one| [one.read.take(), one.write.take()]).flatten();
            Woken { wakers: wakers.collect(), incoming: true }
        };
        self.wake(woken);
        self.done.notify_waiters();
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn look<R>(&self, look: impl FnOnce(&Core) -> R) -> R {
        look(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Why the socket is of no use any more, if so.
    pub(super) fn alive(&self) -> io::Result<()> {
        Err(match &self.ended {
            None => return Ok(()),
            Some(End::Shutdown) => {
                io::Error::new(ErrorKind::NotConnected, "the RRTP socket was shut down")
            }
            Some(End::Socket(why)) => {
                io::Error::new(ErrorKind::NetworkDown, format!("the UDP socket is gone: {why}"))
            }
            Some(End::Dropped) => {
                io::Error::new(ErrorKind::NotConnected, "the runtime that drove it has ended")
            }
        })
    }

    /// Nothing new may be begun.
    pub(super) fn open(&self) -> io::Result<()> {
        self.alive()?;
        match self.closing {
            None => Ok(()),
            Some(_) => {
                Err(io::Error::new(ErrorKind::NotConnected, "the RRTP socket is being shut down"))
            }
        }
    }

    /// Why a call failed: without a socket, that says more.
    pub(super) fn why(&self, error: CallError) -> io::Error {
        self.alive().err().unwrap_or_else(|| io_error(error))
    }

    /// There is a stream of it from here on.
    pub(super) fn add(&mut self, id: ConnectionId, connected: bool) {
        self.waiting.insert(id, Waiting { connected, ..Waiting::default() });
    }

    pub(super) fn remove(&mut self, id: ConnectionId) {
        self.waiting.remove(&id);
    }

    pub(super) fn is_connected(&self, id: ConnectionId) -> bool {
        self.waiting.get(&id).is_some_and(|waiting| waiting.connected)
    }

    /// Has a task wait.
    pub(super) fn wait<T>(
        &mut self,
        id: ConnectionId,
        direction: Direction,
        context: &Context<'_>,
    ) -> Poll<io::Result<T>> {
        if let Err(error) = self.alive() {
            return Poll::Ready(Err(error));
        }
        if let Some(waiting) = self.waiting.get_mut(&id) {
            let place = match direction {
                Direction::Read => &mut waiting.read,
                Direction::Write => &mut waiting.write,
            };
            *place = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// What has happened to the connections.
    fn hear(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            let (id, read, write) = match event {
                Event::Incoming => {
                    self.woken.incoming = true;
                    continue;
                }
                Event::Readable(id) => (id, true, false),
                Event::Writable(id) => (id, false, true),
                Event::Connected(id) | Event::Closed(id, _) => (id, true, true),
            };
            let Some(waiting) = self.waiting.get_mut(&id) else { continue };
            waiting.connected |= matches!(event, Event::Connected(_));
            let readers = waiting.read.take_if(|_| read);
            let writers = waiting.write.take_if(|_| write);
            self.woken.wakers.extend(readers.into_iter().chain(writers));
        }
    }

    /// The driver waits now; until when, if nothing comes.
    pub(super) fn arm(&mut self) -> Option<Instant> {
        self.armed = self.next_wake();
        self.armed
    }

    /// When the driver is to wake if nothing comes: not for each packet.
    fn next_wake(&self) -> Option<Instant> {
        let due = self.endpoint.poll_timeout().map(|at| at.max(self.last_turn + GRAIN));
        due.into_iter().chain(self.closing).min()
    }
}
