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

/// Packets taken from the host, or from the device, before the lock is let go.
pub(super) const BATCH: usize = 64;
/// Bytes of packets taken from the host at a time: what comes meanwhile waits until they have left.
const BATCH_BYTES: usize = 256 * 1024;

/// How long connections that nobody holds any more may take to end once the last handle is gone.
const LINGER: Duration = Duration::from_secs(60);

/// What the lock guards.
pub(super) struct Core {
    pub(super) host: Host,
    /// Every socket that a handle exists for, and who waits for it.
    sockets: Wakers<SocketId, Kind>,
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
    /// Notified after each turn, for those who wait for room in the host's queue of datagrams.
    pub(super) drained: Arc<Notify>,
}

/// What a handle is of.
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
            // It may set a timer.
            self.settle(now);
        }
        let kick = self.wants_turn();
        self.kicked |= kick;
        kick
    }

    /// What was accepted is still delivered, within [`LINGER`].
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

    /// An error once sockets can do nothing any more.
    pub(super) fn alive(&self) -> io::Result<()> {
        match &self.ended {
            Some(end) => Err(end.error::<Self>()),
            None => Ok(()),
        }
    }

    /// An error once no socket may be opened any more.
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

    /// Whether a program still has a stream.
    pub(super) fn has_streams(&self) -> bool {
        self.sockets.iter().any(|(_, &kind)| kind == Kind::Stream)
    }

    /// Takes and opens nothing new from here on: the listeners are closed.
    pub(super) fn drain(&mut self, now: Instant) {
        debug!(sockets = self.sockets.iter().count(), "the stack takes nothing new");
        self.draining = true;
        for (id, &kind) in self.sockets.iter() {
            if kind == Kind::Other {
                // It refuses what is no listener.
                let _ = self.host.tcp_close(now, id);
            }
        }
        self.sockets.wake_all();
    }

    /// What tells any number of tasks that the readiness of a socket has changed.
    pub(super) fn watchers(&mut self, id: SocketId) -> io::Result<Arc<Notify>> {
        self.sockets.watchers(id).ok_or_else(|| End::Shutdown.error::<Self>())
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
        if self.sockets.wait(id, direction, context) {
            Poll::Pending
        } else {
            Poll::Ready(Err(End::Shutdown.error::<Self>()))
        }
    }

    /// Takes what the host has to tell: who is ready, and events.
    pub(super) fn settle(&mut self, now: Instant) {
        self.host.settle(now);
        while let Some((id, readiness)) = self.host.poll_ready() {
            // A connection that waits for its accept has nobody who waits.
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

    /// Whether somebody was made ready and not woken yet.
    pub(super) fn has_woken(&self) -> bool {
        self.sockets.has_woken()
    }

    /// Takes packets from the host, as many as are given to the device at a time; whether it may
    /// have more.
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

    /// Begins the end: nothing new, listeners and UDP sockets closed, a FIN on every connection.
    pub(super) fn close(&mut self, now: Instant, patience: Duration) {
        let deadline = now + patience;
        if self.closing.is_some_and(|closing| closing <= deadline) || self.ended.is_some() {
            return;
        }
        debug!(sockets = self.sockets.iter().count(), ?patience, "the stack is closing");
        self.closing = Some(deadline);
        for (id, &kind) in self.sockets.iter() {
            // An error says that the socket has ended already.
            let _ = if kind == Kind::Stream {
                self.host.tcp_shutdown(now, id)
            } else {
                self.host.tcp_close(now, id).or_else(|_| self.host.udp_close(id))
            };
        }
        self.sockets.wake_all();
    }

    /// How much of the time that closing may take is left.
    pub(super) fn time_to_close(&self, now: Instant) -> Duration {
        self.closing.map_or(Duration::ZERO, |end| end.since(now))
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
        for (id, &kind) in self.sockets.iter() {
            if kind == Kind::Stream {
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
