//! An association at the far gateway: its kernel sockets.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use super::link::Link;
use super::{ANY_V4, ANY_V6, echo, refused};
use crate::dial::look_up;
use crate::{Destination, HostAddress, Rules};

/// The time limit for resolving a name, and how long the result is used.
const RESOLVER: Duration = Duration::from_secs(10);
const NAME: Duration = Duration::from_secs(60);
/// The most names of an association, and the most datagrams that wait for one name's address.
const NAMES: usize = 64;
const WAITING: usize = 16;
/// The approximate number of addresses that may answer; beyond it, the oldest are forgotten.
const ASKED: usize = 4096;
/// The most datagrams received at a time from one socket.
const TURN: usize = 32;

/// From whom an association receives datagrams (RFC 4787 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Filtering {
    /// From any address; games and calls between peers need this.
    #[default]
    EndpointIndependent,
    /// From addresses to which the association has sent, from any port.
    AddressDependent,
}

/// The reason why a text is not a [`Filtering`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a filtering: write endpoint-independent or address-dependent")]
pub struct FilteringError(String);

impl FromStr for Filtering {
    type Err = FilteringError;

    fn from_str(text: &str) -> Result<Self, FilteringError> {
        match text {
            "endpoint-independent" => Ok(Self::EndpointIndependent),
            "address-dependent" => Ok(Self::AddressDependent),
            _ => Err(FilteringError(text.to_owned())),
        }
    }
}

/// The state shared by all associations.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) rules: Rules,
    pub(crate) filtering: Filtering,
    pub(crate) idle: Duration,
    /// Limits the number of concurrent lookups.
    pub(crate) resolver: Semaphore,
    pub(crate) dropped: Dropped,
}

/// Counts of datagrams that the far gateway dropped.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    pub(crate) not_allowed: AtomicU64,
    pub(crate) unresolved: AtomicU64,
    pub(crate) unsendable: AtomicU64,
    pub(crate) filtered: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A datagram to send, with the permits for its bytes.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) to: Destination,
    pub(crate) data: Vec<u8>,
    pub(crate) _permits: [OwnedSemaphorePermit; 2],
}

/// The sockets of an association.
#[derive(Debug)]
pub(crate) struct Outside {
    common: Arc<Common>,
    link: Arc<Link>,
    id: u32,
    /// The sockets for UDP over IPv4 and IPv6, and for ICMP echo over IPv4 and IPv6.
    sockets: [Option<UdpSocket>; 4],
    names: HashMap<String, Name>,
    resolving: JoinSet<(String, Vec<IpAddr>)>,
    asked: Recent,
    last: Instant,
}

#[derive(Debug)]
enum Name {
    Resolving(Vec<Outgoing>),
    Known(Vec<IpAddr>, Instant),
}

/// The last addresses to which a datagram was sent.
#[derive(Debug, Default)]
struct Recent {
    new: HashSet<IpAddr>,
    old: HashSet<IpAddr>,
}

impl Recent {
    fn insert(&mut self, ip: IpAddr) {
        if self.new.len() >= ASKED / 2 && !self.new.contains(&ip) {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(ip);
    }

    fn contains(&self, ip: &IpAddr) -> bool {
        self.new.contains(ip) || self.old.contains(ip)
    }
}

impl Outside {
    pub(crate) fn new(common: Arc<Common>, link: Arc<Link>, id: u32) -> Self {
        Self {
            common,
            link,
            id,
            sockets: [const { None }; 4],
            names: HashMap::new(),
            resolving: JoinSet::new(),
            asked: Recent::default(),
            last: Instant::now(),
        }
    }

    /// Sends outgoing datagrams, and returns the answers, until the other end closes the
    /// association or it is idle for too long.
    pub(crate) async fn run(mut self, mut outgoing: mpsc::Receiver<Outgoing>) {
        loop {
            tokio::select! {
                next = outgoing.recv() => match next {
                    Some(next) => self.send(next).await,
                    None => break,
                },
                place = ready(&self.sockets) => {
                    self.report(place);
                    self.receive(place);
                }
                Some(Ok((name, addresses))) = self.resolving.join_next() => {
                    self.on_resolved(name, addresses).await;
                }
                () = sleep_until(self.last + self.common.idle) => break,
            }
        }
        self.link.with(|channel, _| channel.close(self.id, false));
    }

    async fn send(&mut self, outgoing: Outgoing) {
        self.last = Instant::now();
        match &outgoing.to.host {
            HostAddress::Ip(ip) => self.send_to_one_of(&[*ip], &outgoing).await,
            HostAddress::Name(name) => match self.names.get_mut(name) {
                Some(Name::Known(addresses, until)) if *until > self.last => {
                    let addresses = addresses.clone();
                    self.send_to_one_of(&addresses, &outgoing).await;
                }
                Some(Name::Resolving(waiting)) if waiting.len() < WAITING => waiting.push(outgoing),
                Some(Name::Resolving(_)) => count(&self.common.dropped.unresolved),
                Some(Name::Known(..)) | None => self.resolve(name.clone(), outgoing),
            },
        }
    }

    fn resolve(&mut self, name: String, outgoing: Outgoing) {
        if self.names.len() >= NAMES {
            let now = self.last;
            self.names.retain(|_, name| !matches!(name, Name::Known(_, until) if *until <= now));
        }
        if self.names.len() >= NAMES && !self.names.contains_key(&name) {
            return count(&self.common.dropped.unresolved);
        }
        self.names.insert(name.clone(), Name::Resolving(vec![outgoing]));
        let common = self.common.clone();
        self.resolving.spawn(async move {
            let lookup = async {
                let _permit = common.resolver.acquire().await;
                look_up(name.clone(), 0).await
            };
            let mut addresses: Vec<_> = match timeout(RESOLVER, lookup).await {
                Ok(Ok(addresses)) => addresses.iter().map(SocketAddr::ip).take(16).collect(),
                Ok(Err(error)) => {
                    debug!(name, %error, "name not resolved");
                    Vec::new()
                }
                Err(_) => Vec::new(),
            };
            // A datagram is sent to one address only: IPv4 paths are broken less often.
            addresses.sort_by_key(IpAddr::is_ipv6);
            (name, addresses)
        });
    }

    async fn on_resolved(&mut self, name: String, addresses: Vec<IpAddr>) {
        // A name without addresses is not remembered: the next datagram resolves it again.
        let waiting = match addresses.is_empty() {
            true => self.names.remove(&name),
            false => {
                let known = Name::Known(addresses.clone(), Instant::now() + NAME);
                self.names.insert(name, known)
            }
        };
        if let Some(Name::Resolving(waiting)) = waiting {
            for outgoing in waiting {
                match addresses.is_empty() {
                    true => count(&self.common.dropped.unresolved),
                    false => self.send_to_one_of(&addresses, &outgoing).await,
                }
            }
        }
    }

    /// Sends to the first address that the rules allow and the kernel has a route to.
    async fn send_to_one_of(&mut self, addresses: &[IpAddr], outgoing: &Outgoing) {
        let common = self.common.clone();
        let mut counter = &common.dropped.not_allowed;
        for to in addresses.iter().map(|ip| SocketAddr::new(*ip, outgoing.to.port)) {
            if !common.rules.allow(to) {
                debug!(%to, "the rules do not allow this destination");
                continue;
            }
            match self.send_to(&outgoing.data, to).await {
                Ok(_) => return,
                Err(error) => {
                    debug!(%to, %error, "datagram not sent");
                    counter = &common.dropped.unsendable;
                }
            }
        }
        count(counter);
    }

    async fn send_to(&mut self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        let place = place(to);
        let socket = match &mut self.sockets[place] {
            Some(socket) => socket,
            none => none.insert(open(place).await?),
        };
        if self.common.filtering == Filtering::AddressDependent {
            self.asked.insert(to.ip());
        }
        if place >= ECHO {
            return socket.send_to(&echo::request(data, to.is_ipv6()), to).await;
        }
        match socket.send_to(data, to).await {
            // The error may be the network's about an earlier datagram, which the kernel reports
            // once.
            Err(_) => socket.send_to(data, to).await,
            sent => sent,
        }
    }

    /// Passes on refusals from addresses that have no program on a port. A program that sent to a
    /// name cannot match them, because it does not know the address.
    fn report(&self, place: usize) {
        let Some(socket) = &self.sockets[place] else { return };
        for _ in 0..TURN {
            let Ok(report) = refused::next_report(socket) else { return };
            if let Some(to) = report {
                debug!(%to, "the destination has no such port");
                self.link.with(|channel, now| channel.refuse(now, self.id, &to.into()));
            }
        }
    }

    /// Passes on datagrams that have arrived at a socket.
    fn receive(&mut self, place: usize) {
        // One buffer per thread, shared by its associations, so that none keeps 64 KiB for itself.
        thread_local! {
            static BUF: RefCell<Vec<u8>> = RefCell::new(vec![0; usize::from(u16::MAX)]);
        }
        let Some(socket) = &self.sockets[place] else { return };
        BUF.with_borrow_mut(|buf| {
            for _ in 0..TURN {
                // The error is about an earlier datagram, or means that nothing more has arrived.
                let Ok((len, from)) = socket.try_recv_from(buf) else { return };
                let filtered = match self.common.filtering {
                    Filtering::EndpointIndependent => false,
                    Filtering::AddressDependent => !self.asked.contains(&from.ip()),
                };
                // IPv4 has a socket of its own; an IPv4-mapped source is not expected here.
                let mapped = from.ip().to_canonical() != from.ip();
                if filtered || mapped || (place < ECHO && from.port() == 0) {
                    count(&self.common.dropped.filtered);
                    continue;
                }
                let (data, from) = match place < ECHO {
                    true => (&buf[..len], from),
                    false => match echo::reply(&buf[..len], from.is_ipv6()) {
                        Some(data) => (data, SocketAddr::new(from.ip(), 0)),
                        None => continue,
                    },
                };
                self.last = Instant::now();
                self.link.with(|channel, now| channel.send(now, self.id, &from.into(), data));
            }
        });
    }
}

/// The index of the first ICMP echo socket.
const ECHO: usize = 2;

/// Returns the index of the socket that sends to `to`; port 0 means ICMP echo.
fn place(to: SocketAddr) -> usize {
    usize::from(to.is_ipv6()) + if to.port() == 0 { ECHO } else { 0 }
}

async fn open(place: usize) -> io::Result<UdpSocket> {
    let socket = match place {
        0 => UdpSocket::bind(ANY_V4).await?,
        1 => UdpSocket::bind(ANY_V6).await?,
        _ => return echo::socket(place > ECHO),
    };
    refused::keep_reports(&socket, place == 1)?;
    Ok(socket)
}

/// Waits until a datagram or an error report has arrived at a socket; returns its index.
async fn ready(sockets: &[Option<UdpSocket>; 4]) -> usize {
    let wait = async |place: usize| match &sockets[place] {
        Some(socket) => drop(socket.ready(Interest::READABLE | Interest::ERROR).await),
        None => pending().await,
    };
    tokio::select! {
        () = wait(0) => 0,
        () = wait(1) => 1,
        () = wait(2) => 2,
        () = wait(3) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_that_may_answer_are_bounded_and_the_last_are_kept() {
        let ip = |n: u32| IpAddr::from(n.to_be_bytes());
        let mut recent = Recent::default();
        (0..100_000).for_each(|n| recent.insert(ip(n)));
        assert!(recent.new.len() + recent.old.len() <= ASKED);
        assert!((100_000 - ASKED as u32 / 2..100_000).all(|n| recent.contains(&ip(n))));
        assert!(!recent.contains(&ip(1)));
    }
}
