//! A listening port and its queues of connections, independent of the host.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use airtcp_types::Instant;

use crate::tcp::TcpConfig;

use super::bindings::ANY;
use super::{SocketId, cookie};

/// A listening port.
///
/// Each of its connections is half-open or waits to be accepted.
#[derive(Debug)]
pub(super) struct Listener {
    local: SocketAddr,
    backlog: usize,
    /// The settings of its connections, if they differ from the host's.
    config: Option<Box<TcpConfig>>,
    /// Connections whose handshake is not complete.
    half_open: BTreeSet<SocketId>,
    /// Connections that wait to be accepted, the oldest first.
    waiting: VecDeque<SocketId>,
    /// The time until which a cookie that was sent may be returned.
    cookies_until: Option<Instant>,
}

impl Listener {
    /// Creates a listener with at most `backlog` connections, and at least one, that are half-open
    /// or wait to be accepted.
    pub(super) fn new(local: SocketAddr, backlog: usize, config: Option<Box<TcpConfig>>) -> Self {
        Self {
            local,
            backlog: backlog.max(1),
            config,
            half_open: BTreeSet::new(),
            waiting: VecDeque::new(),
            cookies_until: None,
        }
    }

    pub(super) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// The settings of its connections; `default` are the host's settings.
    pub(super) fn config<'c>(&'c self, default: &'c TcpConfig) -> &'c TcpConfig {
        self.config.as_deref().unwrap_or(default)
    }

    /// Sets the settings of future connections.
    pub(super) fn set_config(&mut self, config: TcpConfig) {
        self.config = Some(Box::new(config));
    }

    /// Whether it listens at every address and port. Its queues then contain SYNs instead of
    /// connections: a SYN counts as half-open after the program has seen it, until it is accepted
    /// or refused.
    pub(super) fn is_any(&self) -> bool {
        self.local == ANY
    }

    /// Whether there is no room for another half-open connection.
    pub(super) fn is_full(&self) -> bool {
        self.half_open.len() + self.waiting.len() >= self.backlog
    }

    /// Whether there is no room for another connection to be accepted.
    pub(super) fn is_unattended(&self) -> bool {
        self.waiting.len() >= self.backlog
    }

    /// Whether a connection waits to be accepted.
    pub(super) fn is_readable(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Adds a half-open connection.
    pub(super) fn add_half_open(&mut self, id: SocketId) {
        self.half_open.insert(id);
    }

    /// Adds a SYN that the program has not seen yet.
    pub(super) fn add_syn(&mut self, id: SocketId) {
        self.waiting.push_back(id);
    }

    /// Moves a half-open connection, whose handshake is complete, to the connections that wait to
    /// be accepted.
    pub(super) fn complete(&mut self, id: SocketId) {
        self.half_open.remove(&id);
        self.waiting.push_back(id);
    }

    /// Removes a connection or a SYN.
    pub(super) fn remove(&mut self, id: SocketId) {
        if self.half_open.remove(&id) {
            return;
        }
        // Usually it is the oldest.
        if let Some(place) = self.waiting.iter().position(|waiting| *waiting == id) {
            self.waiting.remove(place);
        }
    }

    /// Takes the oldest connection that waits to be accepted.
    pub(super) fn accept(&mut self) -> Option<SocketId> {
        self.waiting.pop_front()
    }

    /// Takes the oldest SYN that waits, and counts it as half-open.
    pub(super) fn next_syn(&mut self) -> Option<SocketId> {
        let id = self.waiting.pop_front()?;
        self.half_open.insert(id);
        Some(id)
    }

    /// Records that a cookie was sent, which may be returned for [`cookie::LIFETIME`]. Returns
    /// whether no other cookie was outstanding.
    pub(super) fn on_cookie_sent(&mut self, now: Instant) -> bool {
        let is_first = !self.expects_cookies(now);
        self.cookies_until = Some(now + cookie::LIFETIME);
        is_first
    }

    /// Whether a cookie may still be returned.
    pub(super) fn expects_cookies(&self, now: Instant) -> bool {
        self.cookies_until > Some(now)
    }

    /// All its connections and SYNs: the half-open ones, then the waiting ones.
    pub(super) fn into_children(self) -> impl Iterator<Item = SocketId> {
        self.half_open.into_iter().chain(self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::slab::Slab;
    use super::*;

    fn at_port_80(backlog: usize) -> Listener {
        Listener::new("10.0.0.1:80".parse().unwrap(), backlog, None)
    }

    fn ids<const N: usize>() -> [SocketId; N] {
        let mut slab = Slab::new();
        [(); N].map(|()| slab.insert(()))
    }

    #[test]
    fn a_connection_is_half_open_then_waits_then_is_accepted() {
        let (mut listener, [first, second]) = (at_port_80(2), ids());
        listener.add_half_open(first);
        listener.add_half_open(second);
        assert!(listener.is_full() && !listener.is_unattended() && !listener.is_readable());
        listener.complete(second);
        listener.complete(first);
        assert!(listener.is_full() && listener.is_unattended() && listener.is_readable());
        assert_eq!([(); 3].map(|()| listener.accept()), [Some(second), Some(first), None]);
        assert!(!listener.is_full() && !listener.is_readable());
    }

    #[test]
    fn an_ended_connection_frees_its_place() {
        let (mut listener, [first, second, third]) = (at_port_80(3), ids());
        [first, second, third].into_iter().for_each(|id| listener.add_half_open(id));
        listener.complete(first);
        listener.complete(third);
        for (gone, left) in [(third, vec![second, first]), (second, vec![first]), (first, vec![])] {
            listener.remove(gone);
            listener.remove(gone);
            assert!(!listener.is_full());
            let (half_open, waiting) = (listener.half_open.clone(), listener.waiting.clone());
            let children = Listener { half_open, waiting, ..at_port_80(3) }.into_children();
            assert_eq!(children.collect::<Vec<_>>(), left);
        }
    }

    #[test]
    fn a_syn_that_the_program_has_seen_still_takes_its_place() {
        let (mut listener, [syn]) = (Listener::new(ANY, 0, None), ids());
        assert!(listener.is_any() && !listener.is_full(), "a backlog of none is one of one");
        listener.add_syn(syn);
        assert!(listener.is_readable());
        assert_eq!((listener.next_syn(), listener.next_syn()), (Some(syn), None));
        assert!(!listener.is_readable() && listener.is_full());
        listener.remove(syn);
        assert!(!listener.is_full());
    }

    #[test]
    fn cookies_may_come_back_for_their_lifetime() {
        let (mut listener, now) = (at_port_80(1), Instant::from_millis(5));
        assert!(!listener.expects_cookies(now));
        assert!(listener.on_cookie_sent(now));
        let last = now + cookie::LIFETIME - Duration::from_nanos(1);
        assert!(
            listener.expects_cookies(last) && !listener.expects_cookies(now + cookie::LIFETIME)
        );
        assert!(!listener.on_cookie_sent(last), "one was out");
        assert!(listener.expects_cookies(now + cookie::LIFETIME));
        assert!(listener.on_cookie_sent(last + cookie::LIFETIME));
    }

    #[test]
    fn its_settings_go_before_the_hosts() {
        let (mut listener, host) = (at_port_80(1), TcpConfig { mtu: 1400, ..TcpConfig::default() });
        assert_eq!(listener.config(&host).mtu, 1400);
        listener.set_config(TcpConfig { mtu: 1300, ..TcpConfig::default() });
        assert_eq!(listener.config(&host).mtu, 1300);
    }
}
