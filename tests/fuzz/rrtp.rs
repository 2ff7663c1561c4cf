//! Attacks an RRTP server beside one honest connection: strangers do not know the connection's id,
//! and clients with their own connections lie in every field.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_rrtp::{
    Config, ConnectionError, ConnectionId, Counters, Endpoint, Event, Info, Limits, NetworkKind,
};
use airtcp_types::{ByteCount, Instant, Rate};

use super::feed::Feed;
use liars::{ACK, DATA, FEEDBACK, Liar, START, SYN, packet};

#[path = "rrtp_liars.rs"]
mod liars;

/// Bytes that each end of the honest connection sends.
const LEN: usize = 40_000;
const DELAY: Duration = Duration::from_millis(5);
/// The number of each end's latest datagrams that can be repeated.
const REMEMBERED: usize = 32;
/// The addresses of lying clients follow those of the two ends; then come those of strangers.
const LIARS: usize = 3;
const STRANGERS: [usize; 4] = [0, 1, 2 + LIARS, 3 + LIARS];
const LIMITS: Limits =
    Limits { connections: 3, connections_per_peer: 2, backlog: 2, memory: ByteCount::from_kib(64) };
/// Each connection may hold 64 KiB in each direction beyond the shared memory.
const MEMORY: u64 = (1 + 2 * LIMITS.connections as u64) * (64 << 10);
const CAP: u64 = 10_000_000;
const ASKED_CAP: u64 = 2_000_000;
const SIZE: u16 = 1_400;
/// Bits that may be sent ahead of the paced rate: a packet train and the first packet.
const EARLY: u64 = 17 * 8 * (28 + SIZE as u64);
/// The most packets that an endpoint sends at one instant: for each connection the losses of a
/// window in the smallest reports, a packet train, and the 2 ms of catching up at the cap.
const BURST: usize = 128;
/// When the attack ends at the latest, and when the honest transfer must be complete.
const REIGN: Instant = Instant::from_millis(100_000);
const END: Instant = Instant::from_millis(1_000_000);

/// One end of the honest connection.
struct End {
    endpoint: Endpoint,
    at: SocketAddr,
    id: Option<ConnectionId>,
    /// The bytes that the application may write; `written` and `read` count those it has written
    /// and read.
    ready: usize,
    written: usize,
    read: usize,
    is_at_end: bool,
    ended: Option<ConnectionError>,
    /// The latest datagrams to the other end.
    sent: VecDeque<Vec<u8>>,
    /// For each peer, when data was first sent to it and the bits sent since.
    paced: BTreeMap<SocketAddr, (Instant, u64)>,
}

struct World {
    now: Instant,
    /// The client and the server.
    ends: [End; 2],
    /// Datagrams in flight: arrival time, receiver and bytes.
    flight: VecDeque<(Instant, usize, Vec<u8>)>,
    /// Until then the network loses everything.
    dark: Instant,
    /// Whether packets were lost or repeated, so that the connection may have timed out.
    is_troubled: bool,
    liars: [Liar; LIARS],
    reads: bool,
    size: u16,
    /// How late the machine wakes up for a deadline.
    late: Duration,
}

/// Checks that the attack does not affect the honest connection and that all bounds hold. Returns
/// the server's counters.
pub(crate) fn run(data: &[u8]) -> Counters {
    let mut feed = Feed(data);
    let mut world = World::new(feed.byte());
    while !feed.is_empty() {
        world.step(&mut feed);
        world.settle();
    }
    world.complete();
    *world.ends[1].endpoint.counters()
}

impl End {
    fn new(at: SocketAddr, key: u8) -> Self {
        Self {
            endpoint: Endpoint::new(LIMITS, [key; 16]),
            at,
            id: None,
            ready: 0,
            written: 0,
            read: 0,
            is_at_end: false,
            ended: None,
            sent: VecDeque::new(),
            paced: BTreeMap::new(),
        }
    }

    /// Writes the bytes that are ready, and reads everything: exactly what the other end wrote.
    fn act(&mut self, now: Instant) {
        let Some(id) = self.id else { return };
        let data: Vec<u8> = (self.written..self.ready).map(pattern).collect();
        self.written += self.endpoint.send(now, id, &data).unwrap_or(0);
        if self.written == LEN {
            let _ = self.endpoint.finish(now, id);
        }
        let mut buffer = [0; 4_096];
        while let Ok(Some(count)) = self.endpoint.recv(now, id, &mut buffer) {
            for byte in &buffer[..count] {
                assert_eq!(*byte, pattern(self.read), "at {}", self.read);
                self.read += 1;
            }
            if count == 0 {
                assert_eq!(self.read, LEN, "an end that nobody sent");
                self.is_at_end = true;
                return;
            }
        }
    }

    fn info(&self) -> Option<Info> {
        self.id.and_then(|id| self.endpoint.info(id))
    }

    /// Checks that a data packet of this length is within the rate cap.
    fn pace(&mut self, now: Instant, to: SocketAddr, len: usize) {
        let (since, sum) = self.paced.entry(to).or_insert((now, 0));
        let most = EARLY + (now.since(*since).as_secs_f64() * CAP as f64) as u64;
        *sum += 8 * (28 + len as u64);
        assert!(*sum <= most, "{sum} bits where {most} fit");
    }
}

impl World {
    /// Makes a world in which the handshake is under way or complete.
    fn new(bits: u8) -> Self {
        let size = if bits & 2 == 0 { SIZE } else { 600 };
        let config = Config {
            kind: kind(bits),
            rate_cap: Rate::from_bits_per_sec(CAP),
            asked_rate_cap: Rate::from_bits_per_sec(ASKED_CAP),
            packet_size: size,
            receive_buffer: ByteCount::from_mib(1),
            send_buffer: ByteCount::from_kib(256),
            ..Config::default()
        };
        let now = Instant::from_millis(1);
        let mut ends = [0, 1].map(|end| End::new(address(end), end as u8));
        let remote = ends[1].at;
        ends[0].id = ends[0].endpoint.connect(now, remote, config.clone()).ok();
        ends[1].endpoint.listen(Some(config));
        let mut world = Self {
            now,
            ends,
            flight: VecDeque::new(),
            dark: now,
            is_troubled: false,
            liars: Default::default(),
            reads: bits & 4 == 0,
            late: Duration::from_millis(u64::from(bits >> 4 & 3)),
            size,
        };
        world.settle();
        if bits & 8 == 0 {
            world.run(Instant::from_millis(1_000), |world| world.ends[1].id.is_some());
        }
        world
    }

    fn step(&mut self, feed: &mut Feed<'_>) {
        match feed.choice(16) {
            0 => self.pass_time(Duration::from_micros(u64::from(feed.word()))),
            1 => self.pass_time(Duration::from_millis(u64::from(feed.word() >> 3))),
            2 => self.disturb(feed),
            3 => {
                let (from, to) = (STRANGERS[feed.choice(4)], feed.choice(2));
                self.forge(to, from, feed.bytes(80));
            }
            4 | 5 => self.repeat(feed),
            6 | 7 => {
                let (from, to) = (STRANGERS[feed.choice(4)], feed.choice(2));
                let [kind, flags] = [feed.byte(), feed.byte()];
                let id = feed.bytes(8).iter().fold(0, |id, byte| id << 8 | u64::from(*byte));
                self.forge(to, from, &packet(kind, flags, id, feed.bytes(60)));
            }
            8 => {
                let end = &mut self.ends[feed.choice(2)];
                end.ready = (end.ready + usize::from(feed.word() >> 2)).min(LEN);
            }
            9 | 10 => self.greet(feed),
            11 => self.call(feed),
            12 | 13 => self.report(feed),
            14 => self.data(feed),
            _ => {
                let (which, kind) = (feed.choice(LIARS), feed.byte() & 15);
                if !matches!(kind, SYN | START | ACK..=FEEDBACK) {
                    let flags = feed.byte();
                    self.lie(which, kind, flags, feed.bytes(80));
                }
            }
        }
    }

    /// Disturbs the network: it loses or reorders datagrams, or loses everything for a time.
    fn disturb(&mut self, feed: &mut Feed<'_>) {
        match feed.choice(4) {
            0 => self.flight.clear(),
            1 => drop(self.flight.pop_front()),
            2 => self.flight.rotate_left(self.flight.len().min(1)),
            _ => self.dark = self.now + Duration::from_millis(u64::from(feed.word() >> 1)),
        }
        self.is_troubled = true;
    }

    /// Repeats a datagram of an end. If it is damaged or comes from another address, it has no
    /// effect.
    fn repeat(&mut self, feed: &mut Feed<'_>) {
        let (from, which, how) = (feed.choice(2), feed.choice(REMEMBERED), feed.choice(4));
        let Some(mut bytes) = self.ends[from].sent.get(which).cloned() else { return };
        let (to, at) = (1 - from, usize::from(feed.word()) % bytes.len());
        match how {
            0 => {
                self.is_troubled = true;
                return self.fly(to, bytes);
            }
            // CRC-32C detects every change of up to three bits.
            1 => (0..=feed.choice(3)).for_each(|more| {
                let at = (at + more) % bytes.len();
                bytes[at] ^= 1 << feed.choice(8);
            }),
            2 => bytes.truncate(at),
            _ => return self.changes_nothing(to, STRANGERS[2 + (at & 1)], &bytes),
        }
        self.changes_nothing(to, from, &bytes);
    }

    /// Sends a stranger's datagram, which must have no effect. A datagram with the connection's id
    /// is left out, because strangers neither know nor guess the id.
    fn forge(&mut self, to: usize, from: usize, bytes: &[u8]) {
        let genuine = self.ends[0].sent.front();
        if genuine.is_none_or(|one| Some(&one[4..12]) != bytes.get(4..12)) {
            self.changes_nothing(to, from, bytes);
        }
    }

    /// Delivers a datagram that must have no effect. At most one answer, no longer than the
    /// datagram, may follow.
    fn changes_nothing(&mut self, to: usize, from: usize, bytes: &[u8]) {
        let (now, from) = (self.now, address(from));
        let end = &mut self.ends[to];
        let before = (end.info(), end.endpoint.memory(), end.endpoint.connections());
        end.endpoint.handle_datagram(now, from, bytes);
        let after = (end.info(), end.endpoint.memory(), end.endpoint.connections());
        assert_eq!(before, after);
        let (mut answer, mut answers) = (Vec::new(), 0);
        while let Some(remote) = end.endpoint.poll_transmit(now, &mut answer) {
            answers += 1;
            assert!(remote == from && answers == 1 && answer.len() <= bytes.len(), "{answer:?}");
        }
    }

    fn pass_time(&mut self, time: Duration) {
        let until = (self.now + time).min(REIGN);
        self.run(until, |_| false);
        self.now = self.now.max(until);
    }

    /// Runs until `until`, or until the condition holds.
    fn run(&mut self, until: Instant, is_done: impl Fn(&Self) -> bool) {
        for _ in 0..1_000_000 {
            self.settle();
            if is_done(self) {
                return;
            }
            let due = self.ends.iter().filter_map(|end| end.endpoint.poll_timeout());
            let next = due.chain(self.flight.front().map(|(at, ..)| *at)).min();
            let Some(next) = next.filter(|next| *next <= until) else { return };
            // Datagrams that have arrived are handled before the timers run.
            self.now = self.now.max((next + self.late).min(until));
            while self.flight.front().is_some_and(|(at, ..)| *at <= self.now)
                && let Some((_, to, datagram)) = self.flight.pop_front()
            {
                let from = self.ends[1 - to].at;
                self.ends[to].endpoint.handle_datagram(self.now, from, &datagram);
                self.drain(to);
            }
        }
        panic!("it never ends");
    }

    /// Runs due timers and the applications.
    fn settle(&mut self) {
        for to in [0, 1, 0, 1] {
            self.ends[to].endpoint.handle_timeout(self.now);
            self.drain(to);
            self.act(to);
            self.drain(to);
        }
        for end in &self.ends {
            let at = end.endpoint.poll_timeout();
            assert!(at.is_none_or(|at| at > self.now), "a deadline stays due");
            assert!(end.endpoint.memory() <= MEMORY, "{} bytes", end.endpoint.memory());
        }
        let ids = self.liars.iter().filter_map(|liar| liar.id);
        for id in ids.chain(self.ends[1].id) {
            let info = self.ends[1].endpoint.info(id);
            assert!(info.is_none_or(|info| info.rate.bits_per_sec() <= CAP));
        }
    }

    fn act(&mut self, which: usize) {
        let (end, now) = (&mut self.ends[which], self.now);
        while let Some(event) = end.endpoint.poll_event() {
            let accepted = if event == Event::Incoming { end.endpoint.accept() } else { None };
            if let Some(info) = accepted.and_then(|id| end.endpoint.info(id)) {
                let by = (0..2 + LIARS).find(|by| address(*by) == info.remote);
                end.paced.remove(&info.remote);
                match by.and_then(|by| self.liars.get_mut(by.checked_sub(2)?)) {
                    None => end.id = accepted,
                    Some(liar) => {
                        let Liar { cookie, size, limit, .. } = *liar;
                        *liar = Liar { cookie, size, limit, id: accepted, ..Liar::default() };
                    }
                }
            }
            let Event::Closed(id, error) = event else { continue };
            if end.id == Some(id) {
                end.ended = error;
            }
            for liar in self.liars.iter_mut().filter(|liar| which == 1 && liar.id == Some(id)) {
                end.endpoint.release(now, id);
                liar.id = None;
            }
        }
        end.act(now);
        let liars = self.liars.iter().filter(|_| which == 1).filter_map(|liar| liar.id);
        for id in liars {
            while end.endpoint.send(now, id, &[7; 4_096]) == Ok(4_096) {}
            while self.reads && matches!(end.endpoint.recv(now, id, &mut [0; 4_096]), Ok(Some(1..)))
            {
            }
        }
    }

    fn drain(&mut self, which: usize) {
        let (mut out, mut count) = (Vec::new(), 0);
        while let Some(to) = self.ends[which].endpoint.poll_transmit(self.now, &mut out) {
            count += 1;
            assert!(count <= BURST, "{count} packets at once");
            self.leaves(which, to, std::mem::take(&mut out));
        }
    }

    fn leaves(&mut self, which: usize, to: SocketAddr, bytes: Vec<u8>) {
        assert!(bytes.len() <= usize::from(SIZE), "{}", bytes.len());
        let kind = bytes[0] & 15;
        let end = &mut self.ends[which];
        if kind == DATA {
            end.pace(self.now, to, bytes.len());
        }
        match (0..2 + LIARS).find(|by| address(*by) == to) {
            Some(other @ (0 | 1)) => {
                end.sent.truncate(REMEMBERED - 1);
                end.sent.push_front(bytes.clone());
                self.fly(other, bytes);
            }
            Some(liar) => self.liars[liar - 2].hear(kind, &bytes),
            None => {}
        }
    }

    fn fly(&mut self, to: usize, bytes: Vec<u8>) {
        if self.now >= self.dark {
            self.flight.push_back((self.now + DELAY, to, bytes));
        }
    }

    /// Ends the attack. The honest transfer must complete, unless the server is full or the network
    /// has caused a time-out. Closing all connections must free all memory.
    fn complete(&mut self) {
        self.dark = self.now;
        self.ends.iter_mut().for_each(|end| end.ready = LEN);
        self.run(END, |world| world.ends.iter().all(|end| end.is_at_end || end.ended.is_some()));
        let ended = [0, 1].map(|end| self.ends[end].ended);
        let is_whole = self.ends.iter().all(|end| end.is_at_end);
        let timed_out = ended.into_iter().flatten().any(|error| {
            use ConnectionError::{HandshakeTimeout, Stalled, TimedOut};
            matches!(error, HandshakeTimeout | TimedOut | Stalled)
        });
        let counters = self.ends[1].endpoint.counters();
        let is_full = counters.too_many + counters.backlog_full > 0;
        let is_refused = ended[0] == Some(ConnectionError::Refused) && is_full;
        assert!(is_whole || is_refused || (timed_out && self.is_troubled), "{ended:?}");
        for (which, end) in self.ends.iter_mut().enumerate() {
            let liars = self.liars.iter().filter_map(|liar| liar.id.filter(|_| which == 1));
            end.endpoint.abort_all(self.now);
            liars.chain(end.id).for_each(|id| end.endpoint.release(self.now, id));
            while end.endpoint.poll_transmit(self.now, &mut Vec::new()).is_some() {}
            assert_eq!((end.endpoint.connections(), end.endpoint.memory()), (0, 0));
        }
    }
}

/// The address of an end, a liar or a stranger; two liars share a host.
fn address(of: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, [1, 2, 9, 9, 8, 7, 6][of]], of as u16))
}

fn kind(bits: u8) -> NetworkKind {
    if bits & 1 == 0 { NetworkKind::General } else { NetworkKind::WirelessLastHop }
}

fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}
