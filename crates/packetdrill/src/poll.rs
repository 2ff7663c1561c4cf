//! poll(2) and epoll(7).

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_stack::tcp::{Connection, State};
use airtcp_types::ByteCount;
use nix::errno::Errno;
use nix::libc;

use crate::memory::Address;
use crate::socket::Kind;
use crate::target::Target;
use crate::world::World;

/// The size of `struct pollfd` in bytes.
const POLLFD: usize = 8;
/// The size of `struct epoll_event` in bytes, and the offset of its data.
const EVENT: usize = size_of::<libc::epoll_event>();
const DATA: usize = std::mem::offset_of!(libc::epoll_event, u64);
/// The maximum number of entries per call.
const MAX: usize = 4096;
/// Events that are reported even if they were not requested.
const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

/// Events, with the caller's data.
type Ready = (u32, [u8; 8]);

/// The descriptors that an epoll descriptor watches, in the order in which they became ready.
#[derive(Debug, Default)]
pub(crate) struct Epoll {
    watched: BTreeMap<i32, Watched>,
    /// Counts the times that a descriptor became ready.
    count: u64,
}

#[derive(Debug)]
struct Watched {
    events: u32,
    data: [u8; 8],
    seen: Seen,
    /// Its position in the list of ready descriptors, if something has happened since it was last
    /// reported.
    news: Option<u64>,
}

/// The state of a socket: a change is an event for an edge-triggered watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Seen {
    ready: u32,
    /// The number of received bytes.
    arrived: ByteCount,
}

/// poll(2).
pub(crate) fn poll(
    target: &Target,
    table: Address,
    count: usize,
    timeout: i32,
) -> Result<i32, Errno> {
    if count > MAX {
        return Err(Errno::EINVAL);
    }
    let fds: Vec<[u8; POLLFD]> =
        (0..count).map(|at| table.at(at * POLLFD).array()).collect::<Result<_, _>>()?;
    let mut reported = vec![0u16; count];
    target.wait(patience(timeout), |world| {
        for (fd, reported) in fds.iter().zip(&mut reported) {
            let [a, b, c, d, e, f, ..] = *fd;
            let (fd, events) = (i32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]));
            let wanted = u32::from(events) | ALWAYS;
            *reported = match world.events(fd) {
                Ok(ready) => (ready & wanted) as u16,
                Err(_) if fd < 0 => 0,
                Err(_) => libc::POLLNVAL as u16,
            };
        }
        Ok(reported.iter().any(|reported| *reported != 0).then_some(()))
    })?;
    for (at, reported) in reported.iter().enumerate() {
        table.at(at * POLLFD + 6).write(&reported.to_ne_bytes())?;
    }
    Ok(reported.iter().filter(|reported| **reported != 0).count() as i32)
}

/// epoll_wait(2).
pub(crate) fn epoll_wait(
    target: &Target,
    epoll: i32,
    table: Address,
    most: i32,
    timeout: i32,
) -> Result<i32, Errno> {
    let most = usize::try_from(most).ok().filter(|most| *most > 0).ok_or(Errno::EINVAL)?;
    let reported =
        target.wait(patience(timeout), |world| world.take_events(epoll, most.min(MAX)))?;
    let reported = reported.unwrap_or_default();
    for (at, (events, data)) in reported.iter().enumerate() {
        table.at(at * EVENT).write(&events.to_ne_bytes())?;
        table.at(at * EVENT + DATA).write(data)?;
    }
    Ok(reported.len() as i32)
}

/// Converts a timeout in milliseconds; a negative one is infinite.
fn patience(timeout: i32) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

impl World {
    /// epoll_ctl(2).
    pub(crate) fn epoll_ctl(
        &mut self,
        epoll: i32,
        op: i32,
        fd: i32,
        event: Address,
    ) -> Result<(), Errno> {
        if fd == epoll {
            return Err(Errno::EINVAL);
        }
        self.socket(fd)?;
        let wish = match op {
            libc::EPOLL_CTL_DEL => None,
            libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD => {
                Some((event.array().map(u32::from_ne_bytes)?, event.at(DATA).array()?))
            }
            _ => return Err(Errno::EINVAL),
        };
        let seen = self.seen(fd)?;
        let epoll = self.epoll(epoll)?;
        if epoll.watched.contains_key(&fd) == (op == libc::EPOLL_CTL_ADD) {
            let there = op == libc::EPOLL_CTL_ADD;
            return Err(if there { Errno::EEXIST } else { Errno::ENOENT });
        }
        match wish {
            None => drop(epoll.watched.remove(&fd)),
            Some((events, data)) => {
                epoll.count += 1;
                let news = (seen.ready & (events | ALWAYS) != 0).then_some(epoll.count);
                epoll.watched.insert(fd, Watched { events, data, seen, news });
            }
        }
        Ok(())
    }

    /// Returns the descriptors that were ready at the last [`watch`](Self::watch), at most `most`;
    /// `None` if none is ready.
    fn take_events(&mut self, epoll: i32, most: usize) -> Result<Option<Vec<Ready>>, Errno> {
        let epoll = self.epoll(epoll)?;
        let mut news: Vec<(u64, i32)> =
            epoll.watched.iter().filter_map(|(fd, watched)| Some((watched.news?, *fd))).collect();
        news.sort_unstable();
        let mut reported = Vec::new();
        for (_, fd) in news {
            let Some(watched) = epoll.watched.get_mut(&fd).filter(|_| reported.len() < most) else {
                break;
            };
            let ready = watched.seen.ready & (watched.events | ALWAYS);
            if ready == 0 {
                watched.news = None;
                continue;
            }
            reported.push((ready, watched.data));
            if watched.events & libc::EPOLLONESHOT as u32 != 0 {
                watched.events = 0;
                watched.news = None;
            } else if watched.events & libc::EPOLLET as u32 != 0 {
                watched.news = None;
            } else {
                epoll.count += 1;
                watched.news = Some(epoll.count);
            }
        }
        Ok((!reported.is_empty()).then_some(reported))
    }

    /// Updates the state of all watched descriptors.
    pub(crate) fn watch(&mut self) {
        let watched = |socket: &crate::socket::Socket| match &socket.kind {
            Kind::Epoll(epoll) => epoll.watched.keys().copied().collect(),
            _ => Vec::new(),
        };
        let all: Vec<(i32, i32)> = self
            .sockets
            .iter()
            .flat_map(|(epoll, socket)| watched(socket).into_iter().map(|fd| (*epoll, fd)))
            .collect();
        for (epoll, fd) in all {
            let Ok(seen) = self.seen(fd) else { continue };
            let Ok(epoll) = self.epoll(epoll) else { continue };
            let Some(watched) = epoll.watched.get_mut(&fd) else { continue };
            let wanted = watched.events | ALWAYS;
            let fresh = seen.ready & !watched.seen.ready & wanted != 0;
            let arrived = seen.arrived != watched.seen.arrived
                && seen.ready & wanted & libc::EPOLLIN as u32 != 0;
            watched.seen = seen;
            let disarmed = watched.events == 0;
            if (fresh || arrived) && !disarmed && watched.news.is_none() {
                epoll.count += 1;
                watched.news = Some(epoll.count);
            }
        }
    }

    /// Removes a closed descriptor from all epoll descriptors.
    pub(crate) fn forget(&mut self, fd: i32) {
        for socket in self.sockets.values_mut() {
            if let Kind::Epoll(epoll) = &mut socket.kind {
                epoll.watched.remove(&fd);
            }
        }
    }

    /// Returns the events of a descriptor for poll(2).
    pub(crate) fn events(&mut self, fd: i32) -> Result<u32, Errno> {
        let readiness = self.readiness(fd)?;
        let state = self.state(fd)?;
        let failed = self.error(fd)?.is_some();
        let socket = self.socket(fd)?;
        let ended = match state {
            Some(state) => has_ended(state),
            None => false,
        };
        let (read_over, write_over) = (socket.read_shut || ended, socket.write_shut);
        let closed =
            state == Some(State::Closed) || matches!(socket.kind, Kind::Fresh | Kind::Bound(_));
        let stream = matches!(socket.kind, Kind::Stream(_));
        let flags = [
            (readiness.readable || read_over, libc::EPOLLIN | libc::EPOLLRDNORM),
            (readiness.writable || (stream && write_over), libc::EPOLLOUT | libc::EPOLLWRNORM),
            (read_over, libc::EPOLLRDHUP),
            (closed, libc::EPOLLHUP | libc::EPOLLOUT),
            (read_over && write_over, libc::EPOLLHUP),
            (failed, libc::EPOLLERR),
        ];
        let set = flags.iter().filter(|(on, _)| *on);
        Ok(set.fold(0, |all, (_, flag)| all | *flag as u32))
    }

    fn seen(&mut self, fd: i32) -> Result<Seen, Errno> {
        let ready = self.events(fd)?;
        let arrived = match self.socket(fd)?.stream() {
            Ok(id) => self.host.tcp(id).map_or(ByteCount::ZERO, Connection::bytes_received),
            Err(_) => ByteCount::ZERO,
        };
        Ok(Seen { ready, arrived })
    }

    fn epoll(&mut self, fd: i32) -> Result<&mut Epoll, Errno> {
        match &mut self.socket(fd)?.kind {
            Kind::Epoll(epoll) => Ok(epoll),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// Whether the peer's FIN has arrived, or the connection is closed.
const fn has_ended(state: State) -> bool {
    matches!(
        state,
        State::CloseWait | State::Closing | State::LastAck | State::TimeWait | State::Closed
    )
}
