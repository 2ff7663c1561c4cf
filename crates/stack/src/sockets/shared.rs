//! What the driver and the sockets share: the host, and who waits for what.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use airtcp_device::{Clock, Watch};
use airtcp_types::{Crossing, Instant, Node, Packet};
use smallvec::SmallVec;
use tokio::sync::Notify;
use tracing::{debug, trace};

use crate::host::{Astray, Host, SocketId};
use crate::tcp::{Readiness, State};

/// Packets taken from the host, or from the device, before the lock is let go.
pub(super) const BATCH: usize = 64;
/// Bytes of packets taken from the host at a time: what comes meanwhile waits until they have left.
const BATCH_BYTES: usize = 256 * 1024;

/// How long connections that nobody holds any more may take to end once the last handle is gone.
const LINGER: Duration = Duration::from_secs(60);

/// The state behind every handle of one stack.
pub(super) struct Shared {
    clock: Clock,
    core: Mutex<Core>,
    /// Asks the driver for a turn.
    pub(super) driver: Notify,
    /// Told after each turn, for those who wait for the host's queue of datagrams to drain.
    pub(super) drained: Notify,
    /// Told once, when the driver has ended.
    pub(super) done: Notify,
}

/// What the lock guards.
pub(super) struct Core {
    pub(super) host: Host,
    /// Every socket that a handle exists for.
    waiting: BTreeMap<SocketId, Waiting>,
    /// The driver is about to take what the host has to send.
    pub(super) kicked: bool,
    /// The device takes nothing at the moment; the driver waits for it, and not for more packets.
    pub(super) stalled: bool,
    /// When the driver wakes without being asked.
    pub(super) armed: Option<Instant>,
    /// Nothing new is taken or opened; the streams that there are go on.
    draining: bool,
    /// Told when it drains and the last stream has gone.
    pub(super) idle: Arc<Notify>,
    /// The stack is closing, and gives up at this time.
    pub(super) closing: Option<Instant>,
    /// The driver has ended.
    pub(super) ended: Option<End>,
    pub(super) device: airtcp_device::Counters,
    /// Who is shown what the host does.
    pub(super) watch: Option<Watch>,
    woken: Woken,
}

/// Who waits for a socket.
#[derive(Debug)]
struct Waiting {
    is_stream: bool,
    /// Of those that poll, the last one in each direction.
    read: Option<Waker>,
    write: Option<Waker>,
    /// Any number of tasks; on a stream once the first one has asked.
    watchers: Option<Arc<Notify>>,
}

/// The direction a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Read,
    Write,
}

/// Why there is no driver any more.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// The stack was shut down, or every handle dropped.
    Shutdown,
    /// The device failed for good.
    Device(String),
    /// The runtime ended before the stack did.
    Dropped,
}

impl End {
    pub(super) fn error(&self) -> io::Error {
        match self {
            Self::Shutdown => {
                io::Error::new(io::ErrorKind::NotConnected, "the stack was shut down")
            }
            Self::Device(why) => io::Error::new(
                io::ErrorKind::NetworkDown,
                format!("the device of the stack is gone: {why}"),
            ),
            Self::Dropped => io::Error::new(
                io::ErrorKind::NotConnected,
                "the runtime that drove the stack has ended",
            ),
        }
    }
}

/// What to do once the lock is free: a waker may run anything, a drop of one too.
#[derive(Default, Debug)]
struct Woken {
    wakers: SmallVec<[Waker; 2]>,
    notifies: Vec<Arc<Notify>>,
    discarded: Vec<Waker>,
}

impl Woken {
    fn is_empty(&self) -> bool {
        self.wakers.is_empty() && self.notifies.is_empty()
    }

    fn wake(self) {
        self.wakers.into_iter().for_each(Waker::wake);
        self.notifies.iter().for_each(|notify| notify.notify_waiters());
    }
}

/// Without the host: its secret is no one's to print, and it is long.
impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(host: Host, clock: Clock, watch: Option<Watch>) -> Self {
        Self {
            clock,
            core: Mutex::new(Core {
                host,
                waiting: BTreeMap::new(),
                kicked: false,
                stalled: false,
                armed: None,
                draining: false,
                idle: Arc::new(Notify::new()),
                closing: None,
                ended: None,
                device: airtcp_device::Counters::default(),
                watch,
                woken: Woken::default(),
            }),
            driver: Notify::new(),
            drained: Notify::new(),
            done: Notify::new(),
        }
    }

    /// Makes a call on the host, then sees to what follows from it: the driver does, which is asked for a turn if it is not
    /// about to have one; or, where there is nothing for it to do, those are woken here who are ready now.
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut Core, Instant) -> R) -> R {
        let (result, woken, kick) = {
            let mut core = self.lock();
            // Read under the lock, so that the host's time never runs backwards.
            let now = self.clock.now();
            let result = call(&mut core, now);
            if !core.wants_turn() && !core.kicked {
                // It may set a timer.
                core.settle(now);
            }
            let kick = core.wants_turn();
            core.kicked |= kick;
            (result, mem::take(&mut core.woken), kick)
        };
        if kick {
            self.driver.notify_one();
        }
        woken.wake();
        result
    }

    /// The driver's part of a turn: as [`with`](Self::with), without asking for another one.
    pub(super) fn turn<R>(&self, call: impl FnOnce(&mut Core, Instant) -> R) -> R {
        let (result, woken) = {
            let mut core = self.lock();
            let now = self.clock.now();
            let result = call(&mut core, now);
            (result, mem::take(&mut core.woken))
        };
        woken.wake();
        result
    }

    /// Looks without calling the host.
    pub(super) fn look<R>(&self, look: impl FnOnce(&Core, Instant) -> R) -> R {
        let core = self.lock();
        let now = self.clock.now();
        look(&core, now)
    }

    /// Records that the driver has ended, and tells everyone; the first reason stays.
    pub(super) fn end(&self, end: End) {
        let woken = {
            let mut core = self.lock();
            core.ended.get_or_insert(end);
            core.watch = None;
            core.wake_all();
            let idle = core.idle.clone();
            core.woken.notifies.push(idle);
            mem::take(&mut core.woken)
        };
        woken.wake();
        self.drained.notify_waiters();
        self.done.notify_waiters();
    }

    /// How much of the time that closing may take is left.
    pub(super) fn time_to_close(&self) -> Duration {
        self.look(|core, now| core.closing.map_or(Duration::ZERO, |end| end.since(now)))
    }

    /// Whether the end has been asked for.
    pub(super) fn is_closing(&self) -> bool {
        self.lock().closing.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic under the lock is a bug of ours that has been reported; other sockets go on.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// An error once sockets can do nothing any more.
    pub(super) fn alive(&self) -> io::Result<()> {
        match &self.ended {
            Some(end) => Err(end.error()),
            None => Ok(()),
        }
    }

    /// An error once no socket may be opened any more.
    pub(super) fn open(&self) -> io::Result<()> {
        self.alive()?;
        if self.draining || self.closing.is_some() { Err(End::Shutdown.error()) } else { Ok(()) }
    }

    /// A handle for a connection comes to be.
    pub(super) fn add_stream(&mut self, id: SocketId) {
        let waiting = Waiting { is_stream: true, read: None, write: None, watchers: None };
        self.waiting.insert(id, waiting);
    }

    /// A handle for a listener or a UDP socket comes to be.
    pub(super) fn add_any(&mut self, id: SocketId) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        let watchers = Some(notify.clone());
        self.waiting.insert(id, Waiting { is_stream: false, read: None, write: None, watchers });
        notify
    }

    /// The handle of a socket goes.
    pub(super) fn remove(&mut self, id: SocketId) {
        if let Some(Waiting { read, write, .. }) = self.waiting.remove(&id) {
            self.woken.discarded.extend(read.into_iter().chain(write));
        }
        if self.draining && !self.has_streams() {
            self.woken.notifies.push(self.idle.clone());
        }
    }

    /// Whether a program still has a stream.
    pub(super) fn has_streams(&self) -> bool {
        self.waiting.values().any(|waiting| waiting.is_stream)
    }

    /// Takes and opens nothing new from here on: the listeners are closed.
    pub(super) fn drain(&mut self, now: Instant) {
        debug!(sockets = self.waiting.len(), "the stack takes nothing new");
        self.draining = true;
        for (&id, waiting) in &self.waiting {
            if !waiting.is_stream {
                // It refuses what is no listener.
                let _ = self.host.tcp_close(now, id);
            }
        }
        self.wake_all();
    }

    /// What tells any number of tasks that the readiness of a socket has changed.
    pub(super) fn watchers(&mut self, id: SocketId) -> io::Result<Arc<Notify>> {
        let waiting = self.waiting.get_mut(&id).ok_or_else(|| End::Shutdown.error())?;
        Ok(waiting.watchers.get_or_insert_default().clone())
    }

    /// Remembers that a task waits for a socket; an error if waiting would be in vain.
    pub(super) fn wait<T>(
        &mut self,
        id: SocketId,
        direction: Direction,
        context: &Context<'_>,
    ) -> Poll<io::Result<T>> {
        if let Err(error) = self.alive() {
            return Poll::Ready(Err(error));
        }
        let Some(Waiting { read, write, .. }) = self.waiting.get_mut(&id) else {
            return Poll::Ready(Err(End::Shutdown.error()));
        };
        let slot = if direction == Direction::Read { read } else { write };
        match slot {
            Some(waker) if waker.will_wake(context.waker()) => {}
            _ => self.woken.discarded.extend(slot.replace(context.waker().clone())),
        }
        Poll::Pending
    }

    /// Takes what the host has to tell: who is ready, and events.
    pub(super) fn settle(&mut self, now: Instant) {
        self.host.settle(now);
        while let Some((id, readiness)) = self.host.poll_ready() {
            self.wake(id, readiness);
        }
        while let Some(event) = self.host.poll_event() {
            trace!(target: "airtcp::event", ?event);
            if let Some(watch) = &self.watch {
                watch.event(&event);
            }
        }
    }

    /// Whether somebody was made ready and not woken yet.
    pub(super) fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// Takes packets from the host, as many as are given to the device at a time; whether it may have more.
    pub(super) fn fill(&mut self, now: Instant, outbox: &mut VecDeque<Packet>) -> bool {
        let mut bytes = 0;
        while outbox.len() < BATCH && bytes < BATCH_BYTES {
            let Some((_, packet)) = self.host.poll_transmit(now) else { return false };
            bytes += packet.len();
            self.push(now, packet, outbox);
        }
        true
    }

    fn push(&self, now: Instant, packet: Packet, outbox: &mut VecDeque<Packet>) {
        if let Some(watch) = &self.watch {
            watch.packet(now, Crossing::Out, &packet);
        }
        outbox.push_back(packet);
    }

    /// Gives the host packets that arrived.
    pub(super) fn arrive(&mut self, now: Instant, packets: &[Packet]) {
        if let Some(watch) = &self.watch {
            packets.iter().for_each(|packet| watch.packet(now, Crossing::In, packet));
        }
        self.host.handle_packets(now, packets);
    }

    /// Gives the host packets that a sibling handed on, and takes those that it hands on itself.
    pub(super) fn exchange(&mut self, now: Instant, astray: &mut Vec<Astray>) {
        for packet in astray.drain(..) {
            self.host.on_astray(now, packet);
        }
        astray.extend(std::iter::from_fn(|| self.host.poll_astray()));
    }

    /// Whether the driver is to be asked for a turn.
    fn wants_turn(&self) -> bool {
        if self.kicked || self.ended.is_some() {
            return false;
        }
        let sooner = self
            .host
            .poll_timeout()
            .is_some_and(|deadline| self.armed.is_none_or(|armed| deadline < armed));
        sooner || (self.host.has_to_send() && !self.stalled)
    }

    fn wake(&mut self, id: SocketId, readiness: Readiness) {
        // A connection that waits for its accept has nobody who waits.
        let Some(Waiting { read, write, watchers, .. }) = self.waiting.get_mut(&id) else { return };
        let ended = readiness.closed;
        if readiness.readable || ended {
            self.woken.wakers.extend(read.take());
        }
        if readiness.writable || readiness.connected || ended {
            self.woken.wakers.extend(write.take());
        }
        self.woken.notifies.extend(watchers.clone());
    }

    fn wake_all(&mut self) {
        for Waiting { read, write, watchers, .. } in self.waiting.values_mut() {
            self.woken.wakers.extend(read.take().into_iter().chain(write.take()));
            self.woken.notifies.extend(watchers.clone());
        }
    }

    /// Begins the end: nothing new, listeners and UDP sockets closed, a FIN on every connection.
    pub(super) fn close(&mut self, now: Instant, patience: Duration) {
        let deadline = now + patience;
        if self.closing.is_some_and(|closing| closing <= deadline) || self.ended.is_some() {
            return;
        }
        debug!(sockets = self.waiting.len(), ?patience, "the stack is closing");
        self.closing = Some(deadline);
        for (&id, waiting) in &self.waiting {
            // An error says that the socket has ended already.
            let _ = if waiting.is_stream {
                self.host.tcp_shutdown(now, id)
            } else {
                self.host.tcp_close(now, id).or_else(|_| self.host.udp_close(id))
            };
        }
        self.wake_all();
    }

    /// The last handle is gone: what was accepted is still delivered, within [`LINGER`].
    pub(super) fn abandon(&mut self, now: Instant) {
        self.close(now, LINGER);
    }

    /// Whether every byte and FIN has been acknowledged, as far as it will be.
    pub(super) fn is_quiet(&self) -> bool {
        let busy = |state| {
            matches!(
                state,
                State::Established
                    | State::FinWait1
                    | State::CloseWait
                    | State::Closing
                    | State::LastAck
            )
        };
        !self.host.has_to_send() && !self.host.tcp_connections().any(|(_, s)| busy(s))
    }

    /// Lets go of every connection: in order when all is `quiet`, with a RST otherwise.
    pub(super) fn finish(&mut self, now: Instant, quiet: bool, outbox: &mut VecDeque<Packet>) {
        for (&id, waiting) in &self.waiting {
            if waiting.is_stream {
                // An error says that the connection has ended already.
                let _ =
                    if quiet { self.host.tcp_close(now, id) } else { self.host.tcp_abort(now, id) };
            }
        }
        if !quiet {
            self.host.tcp_abort_all(now);
        }
        // All of it, for there is no later: at most a RST or an ACK each, and what cwnd lets go.
        while let Some((_, packet)) = self.host.poll_transmit(now) {
            self.push(now, packet, outbox);
        }
    }
}
