//! Two endpoints over an emulated link, in virtual time.

pub(crate) mod hostile;
mod life;
mod path;
mod properties;
mod sharing;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_link::{Link, LinkSpec};
use airtcp_types::{Instant, Node, Packet, PortId};

use crate::{CallError, Config, ConnectionId, Endpoint, Event, Limits};

/// The length of IP and UDP headers, which the link's rate includes.
const HEADERS: usize = 28;
/// The size of each read.
const READ: usize = 16_384;

/// Returns the byte of a stream at an offset.
fn byte(offset: u64) -> u8 {
    ((offset % 8_191).wrapping_mul(0x9e37_79b9) >> 13) as u8
}

/// An application at one end: writes a number of bytes, reads everything, and verifies it.
#[derive(Debug)]
struct App {
    endpoint: Endpoint,
    at: SocketAddr,
    id: Option<ConnectionId>,
    to_write: u64,
    written: u64,
    /// The last write was not accepted completely.
    blocked: bool,
    finished: bool,
    read: u64,
    reads: bool,
    at_end: bool,
    ended: Option<Result<(), CallError>>,
    released: bool,
}

impl App {
    fn new(at: &str, key: u8, to_write: u64, limits: Limits) -> Self {
        Self {
            endpoint: Endpoint::new(limits, [key; 16]),
            at: at.parse().unwrap(),
            id: None,
            to_write,
            written: 0,
            blocked: false,
            finished: false,
            read: 0,
            reads: true,
            at_end: false,
            ended: None,
            released: false,
        }
    }

    /// Handles events, writes as much as there is room for, and reads the available data.
    fn act(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Incoming if self.id.is_none() => self.id = self.endpoint.accept(),
                Event::Closed(id, error) if Some(id) == self.id => {
                    self.ended = Some(error.map_or(Ok(()), |error| Err(error.into())));
                }
                Event::Writable(_) => self.blocked = false,
                _ => {}
            }
        }
        let Some(id) = self.id.filter(|_| !self.released) else { return };
        // Errors are reported by the event.
        let _ = self.write(now, id);
        if self.reads {
            let _ = self.read(now, id);
        }
    }

    fn write(&mut self, now: Instant, id: ConnectionId) -> Result<(), CallError> {
        while self.written < self.to_write && !self.blocked {
            let until = (self.written + READ as u64).min(self.to_write);
            let data: Vec<u8> = (self.written..until).map(byte).collect();
            let taken = self.endpoint.send(now, id, &data)?;
            self.written += taken as u64;
            self.blocked = self.written < until;
        }
        if self.written == self.to_write && !self.finished {
            self.endpoint.finish(now, id)?;
            self.finished = true;
        }
        Ok(())
    }

    fn read(&mut self, now: Instant, id: ConnectionId) -> Result<(), CallError> {
        let mut buffer = [0; READ];
        while let Some(count) = self.endpoint.recv(now, id, &mut buffer)? {
            if count == 0 {
                self.at_end = true;
                return Ok(());
            }
            for (index, got) in buffer[..count].iter().enumerate() {
                assert_eq!(*got, byte(self.read + index as u64), "at {}", self.read + index as u64);
            }
            self.read += count as u64;
        }
        Ok(())
    }
}

/// A client, a server, and the link between them.
struct World {
    now: Instant,
    link: Link,
    ends: [App; 2],
    acts: u64,
    /// The interval at which the ends send and run timers; datagrams keep their time of arrival.
    turn: Duration,
    stalls: Stalls,
}

/// A machine without enough cores: each end and the link are stalled now and then.
struct Stalls {
    /// The state of the random number generator.
    state: u64,
    /// The mean time between two stalls; zero for none.
    every: Duration,
    /// The start and the end of the next stall of each end and of the link.
    at: [(Instant, Instant); 3],
    /// Packets that arrived at an end during a stall, with their times; packets that wait for the
    /// link, with their ports.
    came: [VecDeque<(Instant, Packet)>; 2],
    leaves: VecDeque<(PortId, Packet)>,
}

/// The index of the link in `at`.
const LINK: usize = 2;
const SHORTEST_STALL: Duration = Duration::from_millis(5);

impl Stalls {
    fn new(now: Instant) -> Self {
        Self {
            state: 1,
            every: Duration::ZERO,
            at: [(now, now); 3],
            came: Default::default(),
            leaves: VecDeque::new(),
        }
    }

    /// Returns a number from 0 to 1.
    fn random(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether `who` is stalled; a stall takes 5 to 40 ms.
    fn stalled(&mut self, who: usize, now: Instant) -> bool {
        if self.every.is_zero() {
            return false;
        }
        while now >= self.at[who].1 {
            let begins = self.at[who].1 + self.every.mul_f64(self.random() * 2.0);
            let ends = begins + SHORTEST_STALL.mul_f64(1.0 + 7.0 * self.random());
            self.at[who] = (begins, ends);
        }
        now >= self.at[who].0
    }

    /// Returns the first time from `at` on at which `who` is not stalled.
    fn awake_at(&self, who: usize, at: Instant) -> Instant {
        let (begins, ends) = self.at[who];
        if !self.every.is_zero() && (begins..ends).contains(&at) { ends } else { at }
    }
}

/// Creates a world in which the client writes `up` bytes and the server `down`; `forth` describes
/// the link's direction to the server.
fn world(forth: &str, back: &str, [up, down]: [u64; 2], configs: [Config; 2]) -> World {
    let [forth, back]: [LinkSpec; 2] = [forth, back].map(|spec| spec.parse().unwrap());
    let client = App::new("10.0.0.1:1000", 1, up, Limits::default());
    let server = App::new("10.0.0.2:2000", 2, down, Limits::default());
    let link = Link::new(&forth, &back).unwrap();
    // The clock has run for a while, and will soon wrap in 32 bits of microseconds.
    let now = Instant::from_nanos((u64::from(u32::MAX) - 500_000) * 1_000);
    let mut world = World {
        now,
        link,
        ends: [client, server],
        acts: 0,
        turn: Duration::from_nanos(1),
        stalls: Stalls::new(now),
    };
    let [ours, theirs] = configs;
    world.ends[1].endpoint.listen(Some(theirs));
    let remote = world.ends[1].at;
    world.ends[0].id = Some(world.ends[0].endpoint.connect(now, remote, ours).unwrap());
    world
}

fn with(change: impl Fn(&mut Config)) -> [Config; 2] {
    let mut config = Config::default();
    change(&mut config);
    [config.clone(), config]
}

impl World {
    /// Processes everything that happens at the current time.
    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            let is_turn = self.turn_at(self.now) == self.now;
            let remotes = [self.ends[1].at, self.ends[0].at];
            for (port, end) in self.ends.iter_mut().enumerate() {
                if self.stalls.stalled(port, self.now) {
                    continue;
                }
                let from = remotes[port];
                for (at, packet) in self.stalls.came[port].drain(..) {
                    let datagram = packet.data.get(HEADERS..).unwrap_or_default();
                    end.endpoint.handle_datagram(at, from, datagram);
                }
                end.act(self.now);
                let mut datagram = vec![0; HEADERS];
                while is_turn && end.endpoint.poll_transmit(self.now, &mut datagram).is_some() {
                    let packet = Packet::new(std::mem::replace(&mut datagram, vec![0; HEADERS]));
                    self.stalls.leaves.push_back((PortId(port as u16), packet));
                }
            }
            if !self.stalls.stalled(LINK, self.now) {
                for (port, packet) in self.stalls.leaves.drain(..) {
                    self.link.handle_packet(self.now, port, packet);
                }
                while let Some((port, packet)) = self.link.poll_transmit(self.now) {
                    quiet = false;
                    self.acts += 1;
                    self.stalls.came[usize::from(port.0)].push_back((self.now, packet));
                }
            }
            if quiet {
                return;
            }
        }
    }

    /// Returns the first turn of the ends from `at` on.
    fn turn_at(&self, at: Instant) -> Instant {
        Instant::from_nanos(at.as_nanos().next_multiple_of(self.turn.as_nanos() as u64))
    }

    fn next(&self) -> Option<Instant> {
        let stalls = &self.stalls;
        let ends = self.ends.iter().enumerate().filter_map(|(port, end)| {
            let came = stalls.came[port].front().map(|_| self.now);
            let due = end.endpoint.poll_timeout().map(|at| self.turn_at(at.max(self.now)));
            Some(stalls.awake_at(port, came.into_iter().chain(due).min()?))
        });
        let waits = stalls.leaves.front().map(|_| self.now);
        let link = self.link.poll_timeout().into_iter().chain(waits).min();
        ends.chain(link.map(|at| stalls.awake_at(LINK, at.max(self.now)))).min()
    }

    /// Runs while `busy` holds, for at most `limit`; returns whether it ended before.
    fn run_while(&mut self, limit: Duration, busy: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + limit;
        let mut stands = 0;
        self.settle();
        while busy(self) {
            let Some(at) = self.next().filter(|at| *at <= end) else {
                self.now = self.now.max(end);
                return false;
            };
            stands = if at <= self.now { stands + 1 } else { 0 };
            assert!(stands < 100_000, "time stands still at {:?}", self.now);
            self.now = self.now.max(at);
            if !self.stalls.stalled(LINK, self.now) {
                self.link.handle_timeout(self.now);
            }
            for (port, end) in self.ends.iter_mut().enumerate() {
                if !self.stalls.stalled(port, self.now) {
                    end.endpoint.handle_timeout(self.now);
                }
            }
            self.settle();
        }
        true
    }

    fn run_for(&mut self, time: Duration) {
        let done = self.run_while(time, |_| true);
        assert!(!done);
    }

    /// Runs until both ends have read everything up to the end of the stream; returns the time.
    #[track_caller]
    fn finish_within(&mut self, limit: Duration) -> Duration {
        let began = self.now;
        let done = self.run_while(limit, |world| world.ends.iter().any(|end| !end.at_end));
        let ends: Vec<_> = self.ends.iter().map(|end| (end.read, end.at_end, end.ended)).collect();
        assert!(done, "{ends:?}\n{:#?}\n{:#?}", self.info(0), self.info(1));
        for (end, other) in [(0, 1), (1, 0)] {
            assert_eq!(self.ends[end].read, self.ends[other].to_write);
        }
        self.now.since(began)
    }

    fn info(&self, end: usize) -> Option<crate::Info> {
        self.ends[end].id.and_then(|id| self.ends[end].endpoint.info(id))
    }

    fn error(&self, end: usize) -> Option<CallError> {
        self.ends[end].ended.and_then(Result::err)
    }
}
