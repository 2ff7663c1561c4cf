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

/// What is due within this leaves together, so that a fast sender does not wake for every packet.
const GRAIN: Duration = Duration::from_micros(250);

/// What the lock guards.
pub(super) struct Core {
    pub(super) endpoint: Endpoint,
    /// The connections that a stream exists for, and who waits for them.
    streams: Wakers<ConnectionId, Handshake>,
    /// Notified when a connection may be there to accept, or the socket is gone.
    pub(super) incoming: Arc<Notify>,
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
}

/// How far the connection of a stream has come.
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

    /// A turn of the driver begins: it need not be asked for another one.
    pub(super) fn begin_turn(&mut self, now: Instant) {
        (self.kicked, self.armed, self.last_turn) = (false, Some(Instant::ZERO), now);
    }

    /// Why the socket is of no use any more, if so.
    pub(super) fn alive(&self) -> io::Result<()> {
        match &self.ended {
            Some(end) => Err(end.error::<Self>()),
            None => Ok(()),
        }
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

    /// Adds the stream of a connection.
    pub(super) fn add(&mut self, id: ConnectionId, handshake: Handshake) {
        self.streams.add(id, handshake);
    }

    /// Removes it.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        self.streams.remove(id);
    }

    pub(super) fn is_connected(&mut self, id: ConnectionId) -> bool {
        self.streams.get_mut(id).is_some_and(|handshake| *handshake == Handshake::Done)
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
        if self.streams.wait(id, direction, context) {
            Poll::Pending
        } else {
            Poll::Ready(Err(End::Shutdown.error::<Self>()))
        }
    }

    /// Takes what has happened to the connections, and who is to be woken for it.
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
