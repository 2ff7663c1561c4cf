//! State shared by the driver and the sockets: the host and the waiting tasks.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use airtcp_device::Watch;
use airtcp_stack::host::{Astray, Host, SocketId};
use airtcp_stack::tcp::State;
use airtcp_types::{Crossing, Instant, Node, Packet};
use tokio::sync::Notify;
use tracing::{debug, trace};

use crate::shared::{self, End};
use crate::wakers::{Direction, Wakers, Woken};

/// The maximum number of packets taken from the host or the device at a time.
pub(super) const BATCH: usize = 64;
/// The number of bytes after which no more packets are taken from the host until the device has
/// accepted these.
const BATCH_BYTES: usize = 256 * 1024;

/// How long connections may take to close after the last handle was dropped.
const LINGER: Duration = Duration::from_secs(60);

/// The state behind the lock.
pub(super) struct Core {
    pub(super) host: Host,
    /// Every socket that has a handle, and its waiting tasks.
    sockets: Wakers<SocketId, Kind>,
    /// The driver was notified, or is in a turn, and will take packets from the host.
    pub(super) kicked: bool,
    /// The device is full: the driver waits for the device, not for more packets.
    pub(super) stalled: bool,
    /// When the driver wakes without being notified.
    pub(super) armed: Option<Instant>,
    /// No socket can be opened and no connection accepted; existing streams continue.
    draining: bool,
    /// Notified when the last stream is dropped while the stack drains.
    pub(super) idle: Arc<Notify>,
    /// The stack is closing, until this time at most.
    pub(super) closing: Option<Instant>,
    /// Why the driver has ended, if it has.
    pub(super) ended: Option<End>,
    pub(super) device: airtcp_device::Counters,
    /// The observer of the host.
    pub(super) watch: Option<Watch>,
    /// Notified after each turn, for tasks that wait for room in the host's datagram queue.
    pub(super) drained: Arc<Notify>,
}

/// The kind of socket that a handle refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Stream,
    /// A listener or a UDP socket.
    Other,
}

impl shared::Core for Core {
    const NAME: &'static str = "the stack";
    const BELOW: &'static str = "the device of the stack";

    fn settle_call(&mut self, now: Instant) -> bool {
        if !self.wants_turn() && !self.kicked {
            // The call may have made sockets ready or produced events.
            self.settle(now);
        }
        let kick = self.wants_turn();
        self.kicked |= kick;
        kick
    }

    /// Closes every socket; data already accepted for sending is delivered within [`LINGER`].
    fn abandon(&mut self, now: Instant) {
        self.close(now, LINGER);
    }

    fn end(&mut self, end: End) {
        self.ended.get_or_insert(end);
        self.watch = None;
        self.sockets.wake_all();
        self.sockets.notify(self.idle.clone());
        self.sockets.notify(self.drained.clone());
    }

    fn take_woken(&mut self) -> Woken {
        self.sockets.take_woken()
    }
}

impl Core {
    pub(super) fn new(host: Host, watch: Option<Watch>) -> Self {
        Self {
            host,
            sockets: Wakers::default(),
            kicked: false,
            stalled: false,
            armed: None,
            draining: false,
            idle: Arc::new(Notify::new()),
            closing: None,
            ended: None,
            device: airtcp_device::Counters::default(),
            watch,
            drained: Arc::new(Notify::new()),
        }
    }

    /// Returns an error if the driver has ended.
    pub(super) fn alive(&self) -> io::Result<()> {
        match &self.ended {
            Some(end) => Err(end.error::<Self>()),
            None => Ok(()),
        }
    }

    /// Returns an error if no socket can be opened any more.
    pub(super) fn open(&self) -> io::Result<()> {
        self.alive()?;
        if self.draining || self.closing.is_some() {
            Err(End::Shutdown.error::<Self>())
        } else {
            Ok(())
        }
    }

    /// Adds the handle of a connection.
    pub(super) fn add_stream(&mut self, id: SocketId) {
        self.sockets.add(id, Kind::Stream);
    }

    /// Adds the handle of a listener or a UDP socket.
    pub(super) fn add_any(&mut self, id: SocketId) -> Arc<Notify> {
        self.sockets.add_watched(id, Kind::Other)
    }

    /// Removes the handle of a socket.
    pub(super) fn remove(&mut self, id: SocketId) {
        self.sockets.remove(id);
        if self.draining && !self.has_streams() {
            self.sockets.notify(self.idle.clone());
        }
    }

    /// Whether a handle of a stream still exists.
    pub(super) fn has_streams(&self) -> bool {
        self.sockets.iter().any(|(_, &kind)| kind == Kind::Stream)
    }

    /// Stops accepting and opening connections: closes the listeners.
    pub(super) fn drain(&mut self, now: Instant) {
        debug!(sockets = self.sockets.iter().count(), "stack draining: no new connections");
        self.draining = true;
        for (id, &kind) in self.sockets.iter() {
            if kind == Kind::Other {
                // Fails for a UDP socket, which stays open.
                let _ = self.host.tcp_close(now, id);
            }
        }
        self.sockets.wake_all();
    }

    /// Returns the [`Notify`] that signals changes of the readiness of a socket to any number of
    /// tasks.
    pub(super) fn watchers(&mut self, id: SocketId) -> io::Result<Arc<Notify>> {
        self.sockets.watchers(id).ok_or_else(|| End::Shutdown.error::<Self>())
    }

    /// Registers a task that waits for a socket; returns an error if waiting is useless.
    pub(super) fn wait<T>(
        &mut self,
        id: SocketId,
        direction: Direction,
        context: &Context<'_>,
    ) -> Poll<io::Result<T>> {
        if let Err(error) = self.alive() {
            return Poll::Ready(Err(error));
        }
        if self.sockets.wait(id, direction, context) {
            Poll::Pending
        } else {
            Poll::Ready(Err(End::Shutdown.error::<Self>()))
        }
    }

    /// Takes readiness changes and events from the host.
    pub(super) fn settle(&mut self, now: Instant) {
        self.host.settle(now);
        while let Some((id, readiness)) = self.host.poll_ready() {
            // A connection in the accept queue has no handle, so no task waits for it.
            let ended = readiness.closed;
            let writable = readiness.writable || readiness.connected || ended;
            self.sockets.wake(id, readiness.readable || ended, writable);
        }
        while let Some(event) = self.host.poll_event() {
            trace!(target: "airtcp::event", ?event);
            if let Some(watch) = &self.watch {
                watch.event(&event);
            }
        }
    }

    /// Whether a task was made ready and has not been woken yet.
    pub(super) fn has_woken(&self) -> bool {
        self.sockets.has_woken()
    }

    /// Takes packets from the host, at most a batch; returns whether the host may have more.
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

    /// Passes received packets to the host.
    pub(super) fn arrive(&mut self, now: Instant, packets: &[Packet]) {
        if let Some(watch) = &self.watch {
            packets.iter().for_each(|packet| watch.packet(now, Crossing::In, packet));
        }
        self.host.handle_packets(now, packets);
    }

    /// Passes the packets that the previous sibling forwarded to the host, and takes those to
    /// forward.
    pub(super) fn exchange(&mut self, now: Instant, astray: &mut Vec<Astray>) {
        for packet in astray.drain(..) {
            self.host.on_astray(now, packet);
        }
        astray.extend(std::iter::from_fn(|| self.host.poll_astray()));
    }

    /// Whether the driver must be woken for a turn.
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

    /// Starts closing: no new sockets or connections, listeners and UDP sockets closed, a FIN on
    /// every connection.
    pub(super) fn close(&mut self, now: Instant, patience: Duration) {
        let deadline = now + patience;
        if self.closing.is_some_and(|closing| closing <= deadline) || self.ended.is_some() {
            return;
        }
        debug!(sockets = self.sockets.iter().count(), ?patience, "stack closing");
        self.closing = Some(deadline);
        for (id, &kind) in self.sockets.iter() {
            // Fails if the socket has already ended.
            let _ = if kind == Kind::Stream {
                self.host.tcp_shutdown(now, id)
            } else {
                self.host.tcp_close(now, id).or_else(|_| self.host.udp_close(id))
            };
        }
        self.sockets.wake_all();
    }

    /// Returns the remaining time for closing.
    pub(super) fn time_to_close(&self, now: Instant) -> Duration {
        self.closing.map_or(Duration::ZERO, |end| end.since(now))
    }

    /// Whether every byte and FIN that can be acknowledged has been.
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

    /// Closes every remaining connection: gracefully if all are `quiet`, with a RST otherwise.
    pub(super) fn finish(&mut self, now: Instant, quiet: bool, outbox: &mut VecDeque<Packet>) {
        for (id, &kind) in self.sockets.iter() {
            if kind == Kind::Stream {
                // Fails if the connection has already ended.
                let _ =
                    if quiet { self.host.tcp_close(now, id) } else { self.host.tcp_abort(now, id) };
            }
        }
        if !quiet {
            self.host.tcp_abort_all(now);
        }
        // Takes all packets, because no turn follows: at most a RST or an ACK for each connection,
        // and the data that cwnd allows.
        while let Some((_, packet)) = self.host.poll_transmit(now) {
            self.push(now, packet, outbox);
        }
    }
}
