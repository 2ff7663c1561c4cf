//! Mobiles that change stations in the middle of transfers, in virtual time: two airtcp hosts, two
//! stations, and a network between the stations that loses, repeats, reorders and forges messages.

mod reader;

use std::net::IpAddr;
use std::time::Duration;

use airtcp_basestation::handoff::{Handoff, HandoffConfig};
use airtcp_basestation::home::{Algorithm, Key};
use airtcp_basestation::{Policy, Station, StationConfig};
use airtcp_link::Link;
use airtcp_stack::host::{Host, HostConfig, SocketId};
use airtcp_types::rng::Stream;
use airtcp_types::{ExtSeq, Instant, Node, Packet, PortId, RangeSet, SeqNumber, SeqRange};
use airtcp_wire::tcp::{View, flag};
use proptest::prelude::*;

use reader::{Reader, pattern};

const WIRED: PortId = PortId(0);
const WIRELESS: PortId = PortId(1);
/// The bytes of a transfer.
const TOTAL: u64 = 1_500_000;

/// What happens to the messages between the stations.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    /// The share of the messages that are lost, sent twice, delayed, sent again later, and changed.
    lost: f64,
    twice: f64,
    late: f64,
    replayed: f64,
    forged: f64,
}

/// A move from one station to the other. Times are in milliseconds.
#[derive(Clone, Debug)]
struct Move {
    /// When the old station loses the mobile, since the last move.
    after: u64,
    /// Until the mobile is at the new one.
    gap: u64,
    /// Since then, until packets come to the new one, and until the old one hears of it.
    route: u64,
    notice: u64,
    /// Whether the old station loses its state instead.
    is_crash: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Lose,
    Attach,
    Route,
    Notice,
}

struct World {
    now: Instant,
    stream: Stream,
    faults: Faults,
    fixed: Host,
    wire: Link,
    stations: [Handoff; 2],
    mobile: Host,
    sender: SocketId,
    reader: Reader,
    written: u64,
    v6: bool,
    /// The station whose radio reaches the mobile, and the one to which packets are routed.
    attached: Option<usize>,
    routed: usize,
    epoch: u64,
    agenda: Vec<(Instant, Step, usize, bool)>,
    /// Messages on their way: their time and destination.
    letters: Vec<(Instant, usize, Vec<u8>)>,
    old_letters: Vec<(usize, Vec<u8>)>,
    /// The highest acknowledgement of the mobile.
    acked: Option<SeqNumber>,
    /// The data that crossed a radio, and the bytes that crossed again.
    crossed: RangeSet,
    again: u64,
    /// For each station, the ACKs that it had made when the mobile left.
    made: [Option<u64>; 2],
}

fn address(of: usize, v6: bool) -> IpAddr {
    let text = match (of, v6) {
        (0, false) => "198.51.100.1",
        (0, true) => "2001:db8:1::1",
        (_, false) => "198.51.100.2",
        (_, true) => "2001:db8:1::2",
    };
    text.parse().unwrap()
}

fn home(v6: bool) -> IpAddr {
    if v6 { "fd01::2" } else { "192.168.0.2" }.parse().unwrap()
}

fn station(of: usize, radio: &str, v6: bool) -> Handoff {
    let config = StationConfig {
        radio: radio.parse().unwrap(),
        policy: Policy::TcpEcn,
        ..StationConfig::default()
    };
    let key = Key::new(400, Algorithm::HmacSha256, vec![7; 16]).unwrap();
    let peers = vec![(address(1 - of, v6), key)];
    let config_of = HandoffConfig { peers, ..HandoffConfig::default() };
    Handoff::new(Station::new(&config).unwrap(), config_of)
}

fn host(addresses: [&str; 2], secret: u8) -> Host {
    let mut config = HostConfig::new(addresses.map(|cidr| cidr.parse().unwrap()));
    config.secret = [secret; 16];
    Host::new(config)
}

impl World {
    fn new(seed: u64, faults: Faults, v6: bool) -> Self {
        let now = Instant::ZERO;
        let mut fixed = host(["10.0.0.1/8", "fd00::1/64"], 1);
        let mut mobile = host(["192.168.0.2/24", "fd01::2/64"], 2);
        let server = if v6 { "[fd01::2]:5001" } else { "192.168.0.2:5001" }.parse().unwrap();
        let listener = mobile.tcp_listen(server, 1).unwrap();
        let sender = fixed.tcp_connect(now, server, None).unwrap();
        let wire = "rate 100mbit delay 20ms limit 1000".parse().unwrap();
        Self {
            now,
            stream: Stream::new(seed, 0),
            faults,
            fixed,
            wire: Link::new(&wire, &wire).unwrap(),
            stations: [0, 1].map(|of| station(of, "", v6)),
            mobile,
            sender,
            reader: Reader::new(listener),
            written: 0,
            v6,
            attached: Some(0),
            routed: 0,
            epoch: 0,
            agenda: Vec::new(),
            letters: Vec::new(),
            old_letters: Vec::new(),
            acked: None,
            crossed: RangeSet::new(),
            again: 0,
            made: [None; 2],
        }
    }

    fn plan(&mut self, moves: &[Move]) {
        let mut at = Instant::from_millis(200);
        for (number, of) in moves.iter().enumerate() {
            let old = number % 2;
            let times = [of.after, of.gap, of.route, of.notice].map(Duration::from_millis);
            at += times[0];
            self.agenda.push((at, Step::Lose, old, of.is_crash));
            at += times[1];
            self.agenda.push((at, Step::Attach, old, of.is_crash));
            self.agenda.push((at + times[2], Step::Route, old, of.is_crash));
            self.agenda.push((at + times[3], Step::Notice, old, of.is_crash));
            at += times[2].max(times[3]);
        }
        self.agenda.sort_by_key(|(at, ..)| *at);
    }

    fn on_step(&mut self, step: Step, old: usize, is_crash: bool) {
        let (now, new) = (self.now, 1 - old);
        match step {
            Step::Lose => {
                self.drain_station(old);
                self.attached = None;
                self.stations[old].station_mut().disconnect(now);
                if is_crash {
                    self.stations[old] = station(old, "", self.v6);
                    self.stations[old].station_mut().disconnect(now);
                    self.made[old] = None;
                }
            }
            Step::Attach => {
                self.attached = Some(new);
                self.epoch += 1;
                self.stations[new].station_mut().reconnect(now);
                let from = Some(address(old, self.v6));
                self.stations[new].arrive(now, home(self.v6), self.epoch, from).unwrap();
                self.made[new] = None;
            }
            Step::Route => self.routed = new,
            Step::Notice if is_crash => {}
            Step::Notice => {
                let to = address(new, self.v6);
                self.made[old] = Some(self.stations[old].station().counters().made);
                self.stations[old].leave(now, home(self.v6), self.epoch, to).unwrap();
                self.drain_station(old);
            }
        }
    }

    /// Passes what a station sends.
    fn drain_station(&mut self, of: usize) -> bool {
        let mut is_moved = false;
        while let Some((port, packet)) = self.stations[of].poll_transmit(self.now) {
            is_moved = true;
            if port == WIRED {
                self.check_ack(&packet);
                self.wire.handle_packet(self.now, PortId(1), packet);
            } else if self.attached == Some(of) {
                self.count(&packet);
                self.mobile.handle_packet(self.now, PortId(0), packet);
            }
        }
        is_moved
    }

    /// No ACK exceeds those of the mobile.
    fn check_ack(&self, packet: &Packet) {
        let view = View::checked(&packet.data).unwrap();
        let fields = view.fields();
        let highest = self.acked.expect("the mobile has sent something");
        assert!(!fields.has(flag::ACK) || fields.ack() <= highest);
    }

    /// Counts the data that crosses a radio more than once.
    fn count(&mut self, packet: &Packet) {
        let view = View::checked(&packet.data).unwrap();
        if view.data_len() > 0 {
            let near = self.crossed.last().map(|range| range.end);
            let seq = view.fields().seq();
            let start = near.map_or(ExtSeq::starting_at(seq), |near| near.nearest(seq));
            let before = self.crossed.bytes();
            self.crossed.insert(SeqRange::new(start, start + view.data_len() as u64));
            self.again += view.data_len() as u64 - (self.crossed.bytes() - before).0;
        }
    }

    fn post(&mut self) -> bool {
        let mut is_moved = false;
        for of in 0..2 {
            while let Some((to, message)) = self.stations[of].poll_message(self.now) {
                assert_eq!(to, address(1 - of, self.v6));
                is_moved = true;
                let Faults { lost, twice, late, replayed, forged } = self.faults;
                let copies = 1 + usize::from(self.stream.chance(twice));
                for _ in 0..copies {
                    if self.stream.chance(lost) {
                        continue;
                    }
                    let mut message = message.clone();
                    if self.stream.chance(forged) {
                        let bit = self.stream.below(message.len() as u64 * 8) as usize;
                        message[bit / 8] ^= 1 << (bit % 8);
                    }
                    let millis = if self.stream.chance(late) { self.stream.below(900) } else { 2 };
                    self.letters.push((self.now + Duration::from_millis(millis), 1 - of, message));
                }
                self.old_letters.push((1 - of, message));
                if self.stream.chance(replayed) {
                    let at = self.stream.below(self.old_letters.len() as u64) as usize;
                    let (to, message) = self.old_letters[at].clone();
                    self.letters.push((self.now + Duration::from_millis(3), to, message));
                }
            }
        }
        let now = self.now;
        while let Some(at) = self.letters.iter().position(|(at, ..)| *at <= now) {
            let (_, to, message) = self.letters.remove(at);
            self.stations[to].handle_message(now, address(1 - to, self.v6), &message);
            is_moved = true;
        }
        is_moved
    }

    fn work(&mut self) {
        let now = self.now;
        loop {
            let mut is_moved = self.write() | self.reader.read(&mut self.mobile, now) | self.post();
            while let Some((_, packet)) = self.fixed.poll_transmit(now) {
                self.wire.handle_packet(now, PortId(0), packet);
                is_moved = true;
            }
            while let Some((port, packet)) = self.wire.poll_transmit(now) {
                match port {
                    PortId(0) => self.fixed.handle_packet(now, PortId(0), packet),
                    _ => self.stations[self.routed].handle_packet(now, WIRED, packet),
                }
                is_moved = true;
            }
            for of in 0..2 {
                is_moved |= self.drain_station(of);
                let made = self.stations[of].station().counters().made;
                assert!(self.made[of].is_none_or(|before| made == before), "it has left");
            }
            while let Some((_, packet)) = self.mobile.poll_transmit(now) {
                let fields = View::checked(&packet.data).unwrap().fields();
                let ack = fields.has(flag::ACK).then(|| fields.ack());
                let before = self.acked;
                let is_higher = |ack: &SeqNumber| before.is_none_or(|before| before < *ack);
                self.acked = ack.filter(is_higher).or(before);
                if let Some(of) = self.attached {
                    self.stations[of].handle_packet(now, WIRELESS, packet);
                }
                is_moved = true;
            }
            if !is_moved {
                return;
            }
        }
    }

    fn write(&mut self) -> bool {
        let left = TOTAL - self.written;
        let ready = self.fixed.readiness(self.sender);
        if left == 0 || !ready.is_ok_and(|ready| ready.writable) {
            return false;
        }
        let end = self.written + left.min(65_536);
        let data: Vec<u8> = (self.written..end).map(pattern).collect();
        let sent = self.fixed.tcp_send(self.now, self.sender, &data).unwrap_or(0);
        self.written += sent as u64;
        sent > 0
    }

    /// Runs until all data has arrived and all moves are over; returns whether it has.
    fn run(&mut self, seconds: u64) -> bool {
        let end = Instant::ZERO + Duration::from_secs(seconds);
        loop {
            self.work();
            if self.reader.read == TOTAL && self.agenda.is_empty() {
                return true;
            }
            let [one, other] = &self.stations;
            let nodes: [&dyn Node; 5] = [&self.fixed, &self.wire, one, other, &self.mobile];
            let timers = nodes.iter().filter_map(|node| node.poll_timeout());
            let letters = self.letters.iter().map(|(at, ..)| *at);
            let steps = self.agenda.first().map(|(at, ..)| *at);
            let next = timers.chain(letters).chain(steps).min();
            let Some(next) = next.filter(|next| *next <= end) else { return false };
            self.now = self.now.max(next);
            let [one, other] = &mut self.stations;
            let nodes: [&mut dyn Node; 5] =
                [&mut self.fixed, &mut self.wire, one, other, &mut self.mobile];
            for node in nodes {
                if node.poll_timeout().is_some_and(|at| at <= self.now) {
                    node.handle_timeout(self.now);
                }
            }
            while self.agenda.first().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, step, old, is_crash) = self.agenda.remove(0);
                self.on_step(step, old, is_crash);
            }
        }
    }

    fn held(&self) -> usize {
        self.stations.iter().map(|station| station.station().status(self.now).held).sum()
    }
}

/// Moves that are as quick as they should be.
fn quick(count: usize) -> Vec<Move> {
    let each = Move { after: 200, gap: 60, route: 5, notice: 2, is_crash: false };
    vec![each; count]
}

#[test]
fn without_faults_no_byte_crosses_twice_and_nothing_waits_for_a_timer() {
    for v6 in [false, true] {
        let mut world = World::new(1, Faults::default(), v6);
        world.plan(&quick(6));
        assert!(world.run(20), "{} of {TOTAL} bytes", world.reader.read);
        let counters = [0, 1].map(|of| *world.stations[of].counters());
        let [one, other] = counters;
        assert_eq!((one.completed, other.completed), (3, 3), "{counters:?}");
        assert_eq!(one.timed_out + other.timed_out + one.repeated + other.repeated, 0);
        assert_eq!(one.refused + other.refused + one.stale + other.stale, 0);
        assert_eq!(world.again, 0, "bytes crossed twice");
        assert_eq!(world.held(), 0);
        let seconds = world.now.as_secs_f64();
        assert!(seconds < 5.0, "{seconds} s");
    }
}

#[test]
fn an_old_station_that_crashes_leaves_the_flow_alive() {
    let mut moves = quick(4);
    moves.iter_mut().for_each(|of| of.is_crash = true);
    let mut world = World::new(1, Faults::default(), false);
    world.plan(&moves);
    assert!(world.run(60), "{} of {TOTAL} bytes", world.reader.read);
    let counters = [0, 1].map(|of| *world.stations[of].counters());
    assert!(counters.iter().any(|of| of.timed_out > 0), "{counters:?}");
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let each = (20u64..600, 0u64..200, 0u64..100, 0u64..300, prop::bool::weighted(0.15)).prop_map(
        |(after, gap, route, notice, is_crash)| Move { after, gap, route, notice, is_crash },
    );
    prop::collection::vec(each, 1..8)
}

fn faults() -> impl Strategy<Value = Faults> {
    let share = || prop_oneof![1 => Just(0.0), 1 => 0.0..0.5f64];
    (share(), share(), share(), share(), share()).prop_map(
        |(lost, twice, late, replayed, forged)| Faults { lost, twice, late, replayed, forged },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_happens_to_the_messages_all_bytes_arrive(
        moves in moves(),
        faults in faults(),
        seed in any::<u64>(),
        v6 in any::<bool>(),
    ) {
        let mut world = World::new(seed, faults, v6);
        world.plan(&moves);
        prop_assert!(world.run(300), "{} of {TOTAL} bytes", world.reader.read);
        let counters = [0, 1].map(|of| *world.stations[of].counters());
        for of in counters {
            prop_assert_eq!((of.refused, of.dropped_full), (0, 0));
        }
        let is_free = faults.forged == 0.0;
        prop_assert!(!is_free || counters.iter().all(|of| of.unauthenticated + of.malformed == 0));
    }
}
