//! State shared by the driver and the streams: the endpoint and the waiting tasks.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use airtcp_rrtp::{CallError, ConnectionId, Endpoint, Event};
use airtcp_types::Instant;
use tokio::sync::Notify;

use super::error::io_error;
use crate::shared::{self, End};
use crate::wakers::{Direction, Wakers, Woken};

/// Packets that are due within this time leave together, so that a fast sender does not wake the
/// driver for every packet.
const GRAIN: Duration = Duration::from_micros(250);

/// The state behind the lock.
pub(super) struct Core {
    pub(super) endpoint: Endpoint,
    /// The connections that have a stream, and their waiting tasks.
    streams: Wakers<ConnectionId, Handshake>,
    /// Notified when there may be a connection to accept, or when the socket has ended.
    pub(super) incoming: Arc<Notify>,
    /// When the driver wakes without being notified; zero during a turn.
    pub(super) armed: Option<Instant>,
    last_turn: Instant,
    /// The driver was notified and has not started the turn.
    kicked: bool,
    /// The last handle was dropped.
    pub(super) abandoned: bool,
    /// The socket is closing, until this time at most.
    pub(super) closing: Option<Instant>,
    /// Why the driver has ended, if it has.
    pub(super) ended: Option<End>,
    /// The number of datagrams that the UDP socket failed to send.
    pub(super) refused: u64,
}

/// The progress of a connection's handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Handshake {
    Open,
    Done,
}

impl shared::Core for Core {
    const NAME: &'static str = "the RRTP socket";
    const BELOW: &'static str = "the UDP socket";

    fn settle_call(&mut self, _now: Instant) -> bool {
        self.settle();
        let wake = self.next_wake();
        let kick = !self.kicked && wake.is_some() && (self.armed.is_none() || wake < self.armed);
        self.kicked |= kick;
        kick
    }

    fn abandon(&mut self, _now: Instant) {
        self.abandoned = true;
    }

    fn end(&mut self, end: End) {
        self.ended.get_or_insert(end);
        self.streams.wake_all();
        self.streams.notify(self.incoming.clone());
    }

    fn take_woken(&mut self) -> Woken {
        self.streams.take_woken()
    }
}

impl Core {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            streams: Wakers::default(),
            incoming: Arc::new(Notify::new()),
            armed: None,
            last_turn: Instant::ZERO,
            kicked: false,
            abandoned: false,
            closing: None,
            ended: None,
            refused: 0,
        }
    }

    /// Marks the start of a turn: the driver need not be notified.
    pub(super) fn begin_turn(&mut self, now: Instant) {
        (self.kicked, self.armed, self.last_turn) = (false, Some(Instant::ZERO), now);
    }

    /// Returns an error if the driver has ended.
    pub(super) fn alive(&self) -> io::Result<()> {
        match &self.ended {
            Some(end) => Err(end.error::<Self>()),
            None => Ok(()),
        }
    }

    /// Returns an error if no connection can be opened or accepted any more.
    pub(super) fn open(&self) -> io::Result<()> {
        self.alive()?;
        match self.closing {
            None => Ok(()),
            Some(_) => {
                Err(io::Error::new(ErrorKind::NotConnected, "the RRTP socket is being shut down"))
            }
        }
    }

    /// Returns the error of a failed call, or the reason why the socket has ended, which says more.
    pub(super) fn why(&self, error: CallError) -> io::Error {
        self.alive().err().unwrap_or_else(|| io_error(error))
    }

    /// Adds the stream of a connection.
    pub(super) fn add(&mut self, id: ConnectionId, handshake: Handshake) {
        self.streams.add(id, handshake);
    }

    /// Removes the stream of a connection.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        self.streams.remove(id);
    }

    pub(super) fn is_connected(&mut self, id: ConnectionId) -> bool {
        self.streams.get_mut(id).is_some_and(|handshake| *handshake == Handshake::Done)
    }

    /// Registers a task that waits for a connection; returns an error if waiting is useless.
    pub(super) fn wait<T>(
        &mut self,
        id: ConnectionId,
        direction: Direction,
        context: &Context<'_>,
    ) -> Poll<io::Result<T>> {
        if let Err(error) = self.alive() {
            return Poll::Ready(Err(error));
        }
        if self.streams.wait(id, direction, context) {
            Poll::Pending
        } else {
            Poll::Ready(Err(End::Shutdown.error::<Self>()))
        }
    }

    /// Takes the endpoint's events and the tasks that they wake.
    pub(super) fn settle(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            let (id, readable, writable) = match event {
                Event::Incoming => {
                    self.streams.notify(self.incoming.clone());
                    continue;
                }
                Event::Readable(id) => (id, true, false),
                Event::Writable(id) => (id, false, true),
                Event::Connected(id) | Event::Closed(id, _) => (id, true, true),
            };
            if let (Event::Connected(_), Some(handshake)) = (event, self.streams.get_mut(id)) {
                *handshake = Handshake::Done;
            }
            self.streams.wake(id, readable, writable);
        }
    }

    /// Sets and returns the time at which the driver wakes without being notified.
    pub(super) fn arm(&mut self) -> Option<Instant> {
        self.armed = self.next_wake();
        self.armed
    }

    /// Returns when the driver must wake without being notified. Packets that are due within
    /// [`GRAIN`] share a turn.
    fn next_wake(&self) -> Option<Instant> {
        let due = self.endpoint.poll_timeout().map(|at| at.max(self.last_turn + GRAIN));
        due.into_iter().chain(self.closing).min()
    }
}
