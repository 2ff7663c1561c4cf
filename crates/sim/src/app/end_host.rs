//! A host and the applications on it.

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_recovery::Combination;
use airtcp_stack::host::{Host, HostError, SocketId};
use airtcp_stack::tcp::{Connection, Readiness, SocketOption};
use airtcp_types::{Event, Instant, Node, Packet, PortId};

use super::{Answerer, Caller, Crowd, Meter, RrtpEnd, UdpEnd};
use crate::Change;
use crate::agenda::Agenda;

/// An application of a host.
#[derive(Debug)]
pub(crate) enum Application {
    Answerer(Answerer),
    Caller(Caller),
    Crowd(Crowd),
    Rrtp(Box<RrtpEnd>),
    Udp(Box<UdpEnd>),
}

/// The context of a call to an application.
pub(super) struct Desk<'a> {
    pub(super) now: Instant,
    pub(super) host: &'a mut Host,
    /// The application's number.
    me: u32,
    /// The application that owns each socket.
    holders: &'a mut BTreeMap<SocketId, u32>,
    waiting: &'a mut Vec<u32>,
}

impl Desk<'_> {
    /// Schedules a call of the application's `on_room` after the queued packets have left.
    pub(super) fn wait(&mut self) {
        self.waiting.push(self.me);
    }

    /// Registers the application for the readiness of `socket`.
    pub(super) fn hold(&mut self, socket: SocketId) {
        self.holders.insert(socket, self.me);
    }

    /// Whether the socket is readable now, which includes the end of the stream.
    pub(super) fn is_readable(&self, socket: SocketId) -> bool {
        self.host.readiness(socket).is_ok_and(|ready| ready.readable)
    }

    /// Closes a socket and ends its registration.
    pub(super) fn close(&mut self, socket: SocketId) {
        self.holders.remove(&socket);
        // The only possible error is an unknown socket, which is closed already.
        let _ = self.host.tcp_close(self.now, socket);
    }
}

/// A host and its applications, as one node.
#[derive(Debug)]
pub(crate) struct EndHost {
    host: Host,
    applications: Vec<Application>,
    holders: BTreeMap<SocketId, u32>,
    /// Deadlines of applications.
    agenda: Agenda,
    /// Pending changes of the strategies of applications' connections, the latest first.
    changes: Vec<(Instant, usize, Combination)>,
    /// Applications that wait for room for a datagram.
    waiting: Vec<u32>,
    /// The wake-up latency.
    wake_up_delay: Duration,
    /// Packets that arrived while the host was asleep, and the wake-up time of the first of them.
    inbox: Vec<(PortId, Packet)>,
    wake_at: Option<Instant>,
    /// When the host was last awake.
    awake_at: Instant,
}

impl EndHost {
    pub(crate) fn new(host: Host) -> Self {
        let (applications, holders) = (Vec::new(), BTreeMap::new());
        Self {
            host,
            applications,
            holders,
            agenda: Agenda::new(),
            changes: Vec::new(),
            waiting: Vec::new(),
            wake_up_delay: Duration::ZERO,
            inbox: Vec::new(),
            wake_at: None,
            awake_at: Instant::ZERO,
        }
    }

    /// Sets the wake-up latency; the longest one applies.
    pub(crate) fn delay_wake_ups(&mut self, delay: Duration) {
        self.wake_up_delay = self.wake_up_delay.max(delay);
    }

    /// Adds an application to the host, and returns its index. The application starts at its first
    /// deadline. A passive end listens at once, because on a link without delay the first packets
    /// arrive before the host is called.
    pub(crate) fn add(&mut self, application: Application) -> usize {
        let me = self.applications.len();
        self.applications.push(application);
        self.call(Instant::ZERO, me as u32, |application, desk| match application {
            Application::Answerer(answerer) => answerer.listen(desk),
            Application::Rrtp(end) => end.bind(desk),
            Application::Udp(end) => end.bind(desk),
            Application::Caller(_) | Application::Crowd(_) => {}
        });
        me
    }

    /// Schedules a change of the strategies of an application's connections.
    pub(crate) fn change(&mut self, application: usize, change: &Change) {
        let at = Instant::ZERO + change.at;
        let place = self.changes.partition_point(|(other, ..)| *other > at);
        self.changes.insert(place, (at, application, change.combination.clone()));
    }

    fn apply_changes(&mut self, now: Instant) {
        while let Some((_, me, combination)) = self.changes.pop_if(|(at, ..)| *at <= now) {
            let mine = self.holders.iter().filter(|(_, holder)| **holder as usize == me);
            for socket in mine.map(|(socket, _)| *socket).collect::<Vec<_>>() {
                let option = SocketOption::Combination(combination.clone());
                // A listener has no sender, and a closed connection is not changed.
                if let Err(error @ HostError::NotNegotiated(_)) =
                    self.host.tcp_set(now, socket, option)
                {
                    self.applications[me].meter_mut().refused = Some(error);
                }
            }
        }
    }

    pub(crate) fn meter(&self, application: usize) -> Option<&Meter> {
        self.applications.get(application).map(Application::meter)
    }

    /// Returns the RRTP end with this index.
    pub(crate) fn rrtp(&self, application: usize) -> Option<&RrtpEnd> {
        match self.applications.get(application)? {
            Application::Rrtp(end) => Some(end),
            _ => None,
        }
    }

    /// Returns the UDP end with this index.
    pub(crate) fn udp(&self, application: usize) -> Option<&UdpEnd> {
        match self.applications.get(application)? {
            Application::Udp(end) => Some(end),
            _ => None,
        }
    }

    /// The number of bytes that have arrived for an application behind a hole, so that it cannot
    /// read them yet.
    pub(crate) fn unread(&self, application: usize) -> u64 {
        if let Some(end) = self.rrtp(application) {
            return end.info().map_or(0, |info| info.unread.0);
        }
        self.connections(application).map(|tcp| tcp.unread().0).sum()
    }

    /// An application's TCP connections.
    pub(crate) fn connections(&self, application: usize) -> impl Iterator<Item = &Connection> {
        let mine = self.holders.iter().filter(move |(_, holder)| **holder as usize == application);
        mine.filter_map(|(socket, _)| self.host.tcp(*socket).ok())
    }

    /// Notifies applications of ready sockets; returns whether there were any.
    fn serve(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((socket, readiness)) = self.host.poll_ready() {
            any = true;
            if let Some(&me) = self.holders.get(&socket) {
                self.call(now, me, |application, desk| {
                    application.on_ready(desk, socket, readiness);
                });
            }
        }
        any
    }

    fn call(&mut self, now: Instant, me: u32, call: impl FnOnce(&mut Application, &mut Desk<'_>)) {
        let Some(application) = self.applications.get_mut(me as usize) else { return };
        let (holders, waiting) = (&mut self.holders, &mut self.waiting);
        let mut desk = Desk { now, host: &mut self.host, me, holders, waiting };
        call(application, &mut desk);
        self.agenda.set(me, application.poll_timeout());
    }
}

impl Application {
    pub(crate) const fn meter(&self) -> &Meter {
        match self {
            Self::Answerer(answerer) => &answerer.meter,
            Self::Caller(caller) => &caller.meter,
            Self::Crowd(crowd) => &crowd.meter,
            Self::Rrtp(end) => &end.meter,
            Self::Udp(end) => &end.meter,
        }
    }

    const fn meter_mut(&mut self) -> &mut Meter {
        match self {
            Self::Answerer(answerer) => &mut answerer.meter,
            Self::Caller(caller) => &mut caller.meter,
            Self::Crowd(crowd) => &mut crowd.meter,
            Self::Rrtp(end) => &mut end.meter,
            Self::Udp(end) => &mut end.meter,
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Answerer(_) => None,
            Self::Caller(caller) => caller.poll_timeout(),
            Self::Crowd(crowd) => crowd.poll_timeout(),
            Self::Rrtp(end) => end.poll_timeout(),
            Self::Udp(end) => end.poll_timeout(),
        }
    }

    fn on_timeout(&mut self, desk: &mut Desk<'_>) {
        match self {
            Self::Answerer(_) => {}
            Self::Caller(caller) => caller.on_timeout(desk),
            Self::Crowd(crowd) => crowd.on_timeout(desk),
            Self::Rrtp(end) => end.on_timeout(desk),
            Self::Udp(end) => end.on_timeout(desk),
        }
    }

    fn on_room(&mut self, desk: &mut Desk<'_>) {
        if let Self::Rrtp(end) = self {
            end.on_room(desk);
        }
    }

    fn on_ready(&mut self, desk: &mut Desk<'_>, socket: SocketId, readiness: Readiness) {
        match self {
            Self::Answerer(answerer) => answerer.on_ready(desk, socket, readiness),
            Self::Caller(caller) => caller.on_ready(desk, socket, readiness),
            Self::Crowd(crowd) => crowd.on_ready(desk, socket, readiness),
            Self::Rrtp(end) => end.on_ready(desk),
            Self::Udp(end) => end.on_ready(desk),
        }
    }
}

impl Node for EndHost {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        if !self.wake_up_delay.is_zero() {
            self.inbox.push((port, packet));
            self.wake_at.get_or_insert(now + self.wake_up_delay);
            return;
        }
        self.host.handle_packet(now, port, packet);
        // Applications are notified before anything is sent, so that an ACK advertises the window
        // after their reads.
        self.host.settle(now);
        self.serve(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        (self.wake_at, self.awake_at) = (None, now);
        for (port, packet) in self.inbox.drain(..) {
            self.host.handle_packet(now, port, packet);
        }
        if self.host.poll_timeout().is_some_and(|at| at <= now) {
            self.host.handle_timeout(now);
        }
        self.apply_changes(now);
        while let Some(me) = self.agenda.pop_due(now) {
            self.call(now, me, Application::on_timeout);
        }
        self.host.settle(now);
        self.serve(now);
    }

    /// Transmission can make sockets ready or close them, so applications are notified in between.
    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        if !self.wake_up_delay.is_zero() && now > self.awake_at {
            return None;
        }
        loop {
            if let Some(transmit) = self.host.poll_transmit(now) {
                return Some(transmit);
            }
            let waiting = std::mem::take(&mut self.waiting);
            if !self.serve(now) && waiting.is_empty() {
                return None;
            }
            for me in waiting {
                self.call(now, me, Application::on_room);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = self.agenda.first().map(|(at, _)| at);
        let own = own.into_iter().chain(self.changes.last().map(|(at, ..)| *at));
        let due = self.host.poll_timeout().into_iter().chain(own).min();
        due.map(|at| at + self.wake_up_delay).into_iter().chain(self.wake_at).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.host.poll_event()
    }
}
