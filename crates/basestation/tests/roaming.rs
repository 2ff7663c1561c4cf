//! A mobile that registers through one station and then through another in the middle of a
//! transfer, in virtual time: two airtcp hosts, a home agent, two stations that are foreign agents,
//! and a network between them that delays and loses packets.

mod reader;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airtcp_basestation::handoff::{Handoff, HandoffConfig, HandoffCounters, HandoffState};
use airtcp_basestation::home::{
    Algorithm, ForeignAgent, HomeMobile, HomeStation, Key, RelayConfig,
};
use airtcp_basestation::{HomeAgent, HomeConfig, Policy, Station, StationConfig};
use airtcp_stack::host::{Host, HostConfig, SocketId};
use airtcp_types::rng::Stream;
use airtcp_types::{ExtSeq, FlowId, Instant, Node, Packet, PortId, RangeSet, SeqRange};
use airtcp_wire::mobility::{self, Ends, Message, Request, code};
use airtcp_wire::tcp::View;
use airtcp_wire::{ip, udp};
use proptest::prelude::*;

use reader::{Reader, pattern};

const WIRED: PortId = PortId(0);
const WIRELESS: PortId = PortId(1);
/// The bytes of a transfer.
const TOTAL: u64 = 1_500_000;
/// The delay of the paths between agents, and to the fixed host.
const NEAR: Duration = Duration::from_millis(2);
const FAR: Duration = Duration::from_millis(20);
/// When the mobile repeats its request.
const PATIENCE: Duration = Duration::from_millis(400);

/// The addresses of the fixed host, the home agent, the mobile and the stations.
struct Addresses {
    fixed: IpAddr,
    agent: IpAddr,
    home: IpAddr,
    stations: [IpAddr; 2],
}

fn addresses(v6: bool) -> Addresses {
    let texts = match v6 {
        false => ["203.0.113.9", "192.0.2.1", "192.0.2.7", "198.51.100.1", "198.51.100.2"],
        true => ["2001:db8:9::9", "2001:db8::1", "2001:db8::7", "2001:db8:1::1", "2001:db8:1::2"],
    };
    let [fixed, agent, home, north, south] = texts.map(|text| text.parse().unwrap());
    Addresses { fixed, agent, home, stations: [north, south] }
}

fn key(spi: u32) -> Key {
    Key::new(spi, Algorithm::HmacSha256, vec![spi as u8; 16]).unwrap()
}

fn home_agent(at: &Addresses) -> HomeAgent {
    let mobile = HomeMobile { name: "van".to_owned(), address: at.home, key: key(300) };
    let stations = [0, 1].map(|of| HomeStation {
        name: format!("station {of}"),
        address: at.stations[of],
        key: key(400 + of as u32),
    });
    let config = HomeConfig {
        addresses: vec![at.agent],
        mobiles: vec![mobile],
        stations: stations.to_vec(),
        lifetime: Duration::from_secs(600),
        // The network of this test has no MTU.
        mtu: 2_000,
    };
    HomeAgent::new(config, Instant::ZERO, time(Instant::ZERO)).unwrap()
}

fn station(at: &Addresses, of: usize) -> ForeignAgent<Handoff> {
    let config = StationConfig { policy: Policy::TcpEcn, ..StationConfig::default() };
    let peers = vec![(at.stations[1 - of], key(500))];
    let handoff = Handoff::new(
        Station::new(&config).unwrap(),
        HandoffConfig { peers, ..HandoffConfig::default() },
    );
    let relay = RelayConfig {
        addresses: vec![at.stations[of]],
        home_agents: vec![(at.agent, key(400 + of as u32))],
        mobiles: Vec::new(),
        lifetime: Duration::from_secs(600),
        visitors: 10,
    };
    ForeignAgent::new(handoff, relay).unwrap()
}

fn host(address: IpAddr, secret: u8) -> Host {
    let network = format!("{address}/{}", if address.is_ipv6() { 64 } else { 24 });
    // The other family is not used.
    let other = if address.is_ipv6() { "10.9.9.9/24" } else { "fd09::9/64" };
    let mut config = HostConfig::new([network.parse().unwrap(), other.parse().unwrap()]);
    config.secret = [secret; 16];
    Host::new(config)
}

/// The time as a timestamp of a request.
fn time(now: Instant) -> u64 {
    mobility::timestamp(Duration::from_secs(1_767_225_600) + now.since(Instant::ZERO))
}

/// What happens to the mobile. Times are in milliseconds since the last step.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    /// The station notices that the mobile is out of reach.
    Notice,
    /// The station of the mobile loses its state.
    Crash,
    /// The mobile is out of reach.
    Lose,
    /// The mobile is at the other station, and registers.
    Move,
}

struct World {
    now: Instant,
    stream: Stream,
    /// The share of the packets of agents that are lost.
    loss: f64,
    at: Addresses,
    fixed: Host,
    agent: HomeAgent,
    stations: [ForeignAgent<Handoff>; 2],
    mobile: Host,
    sender: Option<SocketId>,
    reader: Reader,
    written: u64,
    attached: Option<usize>,
    last: usize,
    /// The request that waits for its reply, and when it is sent again.
    request: Option<(u64, Instant)>,
    registered: usize,
    steps: Vec<(Instant, Step)>,
    /// Packets on their way, by time and number.
    way: BTreeMap<(Instant, u64), Packet>,
    number: u64,
    /// The data that crossed a radio, and the bytes that crossed again.
    crossed: RangeSet,
    again: u64,
}

impl World {
    fn new(seed: u64, loss: f64, v6: bool, steps: &[(u64, Step)]) -> Self {
        let at = addresses(v6);
        let mut mobile = host(at.home, 2);
        let listener = mobile.tcp_listen(SocketAddr::new(at.home, 5_001), 1).unwrap();
        let mut when = Instant::from_millis(500);
        let steps = steps.iter().map(|(after, step)| {
            when += Duration::from_millis(*after);
            (when, *step)
        });
        Self {
            now: Instant::ZERO,
            stream: Stream::new(seed, 0),
            loss,
            fixed: host(at.fixed, 1),
            agent: home_agent(&at),
            stations: [0, 1].map(|of| station(&at, of)),
            mobile,
            sender: None,
            reader: Reader::new(listener),
            written: 0,
            attached: Some(0),
            last: 0,
            request: Some((0, Instant::ZERO)),
            registered: 0,
            steps: steps.collect(),
            way: BTreeMap::new(),
            number: 0,
            crossed: RangeSet::new(),
            again: 0,
            at,
        }
    }

    /// Sends a packet on its way to another part of the network.
    fn post(&mut self, packet: Packet) {
        let (source, destination) = ip::addresses(&packet.data).unwrap();
        let ends = [source, destination];
        let is_far = ends.contains(&self.at.fixed);
        let is_message = !is_far && ip::parse(&packet.data).unwrap().protocol == ip::UDP;
        if is_message && self.stream.chance(self.loss) {
            return;
        }
        let delay = if is_far { FAR } else { NEAR };
        self.number += 1;
        self.way.insert((self.now + delay, self.number), packet);
    }

    fn arrive(&mut self, packet: Packet) {
        let (_, destination) = ip::addresses(&packet.data).unwrap();
        if destination == self.at.fixed {
            self.fixed.handle_packet(self.now, PortId(0), packet);
        } else if let Some(of) = self.at.stations.iter().position(|at| *at == destination) {
            self.stations[of].handle_packet(self.now, WIRED, packet);
        } else {
            self.agent.handle_packet(self.now, PortId(0), packet);
        }
    }

    /// Sends the request of the mobile if it is due.
    fn register(&mut self) -> bool {
        let (Some((identification, at)), Some(of)) = (self.request, self.attached) else {
            return false;
        };
        if at > self.now {
            return false;
        }
        // RFC 5944 section 3.6.3: a repeated request has a new identification. Some mobiles do not
        // choose one.
        let identification = match identification {
            same if same != 0 && self.stream.chance(0.5) => same,
            _ => time(self.now),
        };
        self.request = Some((identification, self.now + PATIENCE));
        let Addresses { agent, home, stations, .. } = self.at;
        let (home_agent, care_of) = (agent, stations[of]);
        let request =
            Request { flags: 0, lifetime: 600, home, home_agent, care_of, identification };
        let mut message = Message::Request(request).emit();
        key(300).sign(&mut message, Ends::MobileHome);
        let port = if home.is_ipv6() { mobility::V6_PORT } else { mobility::PORT };
        let (local, remote) = (SocketAddr::new(home, 5_000), SocketAddr::new(care_of, port));
        let packet = udp::emit(&FlowId { local, remote }, 64, &message);
        self.stations[of].handle_packet(self.now, WIRELESS, packet);
        true
    }

    /// Processes a packet that a radio has delivered to the mobile.
    fn deliver(&mut self, packet: Packet) {
        let outer = ip::parse(&packet.data).unwrap();
        if outer.protocol == ip::UDP {
            let datagram = udp::parse(outer.payload).unwrap();
            let (message, _) = mobility::parse(datagram.payload, outer.src.is_ipv6()).unwrap();
            let Message::Reply(reply) = message else { panic!("{message:?}") };
            if self.request.is_some_and(|(asked, _)| asked == reply.identification) {
                match reply.code {
                    code::ACCEPTED => {
                        self.request = None;
                        self.registered += 1;
                    }
                    // No reply came to the station in time, or no request to the home agent.
                    code::FOREIGN_TIMEOUT | code::IDENTIFICATION => {
                        self.request = Some((0, self.now));
                    }
                    _ => panic!("{reply:?}"),
                }
            }
            return;
        }
        self.count(&packet);
        self.mobile.handle_packet(self.now, PortId(0), packet);
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

    fn work(&mut self) {
        let now = self.now;
        loop {
            let mut is_moved = self.write() | self.reader.read(&mut self.mobile, now);
            is_moved |= self.register();
            while let Some((_, packet)) = self.fixed.poll_transmit(now) {
                self.post(packet);
                is_moved = true;
            }
            if let Some((number, _)) = self.agent.poll_store() {
                self.agent.stored(now, number);
            }
            while let Some((_, packet)) = self.agent.poll_transmit(now) {
                self.post(packet);
                is_moved = true;
            }
            for of in 0..2 {
                while let Some((port, packet)) = self.stations[of].poll_transmit(now) {
                    is_moved = true;
                    match port {
                        WIRED => self.post(packet),
                        _ if self.attached == Some(of) => self.deliver(packet),
                        _ => {}
                    }
                }
            }
            while let Some((_, packet)) = self.mobile.poll_transmit(now) {
                if let Some(of) = self.attached {
                    self.stations[of].handle_packet(now, WIRELESS, packet);
                }
                is_moved = true;
            }
            while let Some(entry) = self.way.first_entry().filter(|entry| entry.key().0 <= now) {
                let packet = entry.remove();
                self.arrive(packet);
                is_moved = true;
            }
            if !is_moved {
                return;
            }
        }
    }

    fn write(&mut self) -> bool {
        if self.registered == 0 {
            return false;
        }
        let now = self.now;
        let server = SocketAddr::new(self.at.home, 5_001);
        let fixed = &mut self.fixed;
        let sender =
            *self.sender.get_or_insert_with(|| fixed.tcp_connect(now, server, None).unwrap());
        let left = TOTAL - self.written;
        if left == 0 || !self.fixed.readiness(sender).is_ok_and(|ready| ready.writable) {
            return false;
        }
        let end = self.written + left.min(65_536);
        let data: Vec<u8> = (self.written..end).map(pattern).collect();
        let sent = self.fixed.tcp_send(now, sender, &data).unwrap_or(0);
        self.written += sent as u64;
        sent > 0
    }

    fn on_step(&mut self, step: Step) {
        let (now, old) = (self.now, self.last);
        match step {
            Step::Notice => {
                let station = self.stations[old].inner_mut().station_mut();
                station.disconnect(now);
            }
            Step::Crash => {
                self.stations[old] = station(&self.at, old);
                self.stations[old].inner_mut().station_mut().disconnect(now);
            }
            Step::Lose => self.attached = None,
            Step::Move => {
                self.last = 1 - old;
                self.attached = Some(self.last);
                self.stations[self.last].inner_mut().station_mut().reconnect(now);
                self.request = Some((0, now));
            }
        }
    }

    /// Runs until all data has arrived and all steps are over; returns whether it has.
    fn run(&mut self, seconds: u64) -> bool {
        let end = Instant::ZERO + Duration::from_secs(seconds);
        loop {
            self.work();
            if self.reader.read == TOTAL && self.steps.is_empty() && self.request.is_none() {
                return true;
            }
            let [one, other] = &self.stations;
            let nodes: [&dyn Node; 5] = [&self.fixed, &self.agent, one, other, &self.mobile];
            let timers = nodes.iter().filter_map(|node| node.poll_timeout());
            let way = self.way.first_key_value().map(|((at, _), _)| *at);
            let steps = self.steps.first().map(|(at, _)| *at);
            let request = self.request.filter(|_| self.attached.is_some()).map(|(_, at)| at);
            let next = timers.chain(way).chain(steps).chain(request).min();
            let Some(next) = next.filter(|next| *next <= end) else { return false };
            self.now = self.now.max(next);
            let [one, other] = &mut self.stations;
            let nodes: [&mut dyn Node; 5] =
                [&mut self.fixed, &mut self.agent, one, other, &mut self.mobile];
            for node in nodes {
                if node.poll_timeout().is_some_and(|at| at <= self.now) {
                    node.handle_timeout(self.now);
                }
            }
            while self.steps.first().is_some_and(|(at, _)| *at <= self.now) {
                let (_, step) = self.steps.remove(0);
                self.on_step(step);
            }
        }
    }

    fn counters(&self) -> [HandoffCounters; 2] {
        [0, 1].map(|of| *self.stations[of].inner().counters())
    }

    /// The sum of a counter of both stations.
    fn sum(&self, of: impl Fn(&HandoffCounters) -> u64) -> u64 {
        self.counters().iter().map(of).sum()
    }
}

/// Moves after the old station has noticed that the mobile is out of reach.
fn noticed(count: usize) -> Vec<(u64, Step)> {
    [(200, Step::Notice), (0, Step::Lose), (60, Step::Move)].repeat(count)
}

#[test]
fn without_faults_a_move_takes_the_flow_along_and_no_byte_crosses_twice() {
    for v6 in [false, true] {
        let mut world = World::new(1, 0.0, v6, &noticed(4));
        assert!(world.run(20), "{} of {TOTAL} bytes", world.reader.read);
        let counters = world.counters();
        assert_eq!((world.sum(|of| of.arrivals), world.sum(|of| of.departures)), (5, 4));
        assert_eq!(world.sum(|of| of.taken_over), 4, "{counters:?}");
        assert_eq!(world.sum(|of| of.completed), 4, "{counters:?}");
        assert_eq!((world.sum(|of| of.flows_sent), world.sum(|of| of.flows_received)), (4, 4));
        let faults = |of: &HandoffCounters| {
            [of.failed, of.discarded, of.ignored, of.timed_out, of.adopted, of.refused]
                .iter()
                .sum::<u64>()
                + [of.repeated, of.dropped_full, of.stale].iter().sum::<u64>()
        };
        assert_eq!(world.sum(faults), 0, "{counters:?}");
        assert_eq!(world.again, 0, "bytes crossed twice");
        let state = |of: usize| world.stations[of].inner().state(world.at.home).unwrap().1;
        assert_eq!([0, 1].map(state), [HandoffState::Here, HandoffState::Left]);
        let foreign = [0, 1].map(|of| world.stations[of].counters());
        assert_eq!(foreign.map(|of| of.no_visitor), [0, 0], "{foreign:?}");
        let seconds = world.now.as_secs_f64();
        assert!(seconds < 5.0, "{seconds} s");
    }
}

#[test]
fn a_move_that_the_old_station_has_not_noticed_leaves_the_stream_identical() {
    let steps = [(200, Step::Lose), (60, Step::Move)].repeat(3);
    let mut world = World::new(1, 0.0, false, &steps);
    assert!(world.run(60), "{} of {TOTAL} bytes", world.reader.read);
    assert_eq!(world.sum(|of| of.taken_over), 3, "{:?}", world.counters());
    assert_eq!(world.sum(|of| of.adopted), 0);
}

#[test]
fn an_old_station_that_was_restarted_has_nothing_and_says_so_at_once() {
    let steps = [(200, Step::Crash), (0, Step::Lose), (60, Step::Move)].repeat(2);
    let mut world = World::new(1, 0.0, false, &steps);
    assert!(world.run(60), "{} of {TOTAL} bytes", world.reader.read);
    assert_eq!((world.sum(|of| of.timed_out), world.sum(|of| of.taken_over)), (0, 1));
    assert_eq!(world.counters()[0].departures, 1, "of the station that has not crashed since");
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let each = (20u64..800, any::<bool>(), prop::bool::weighted(0.2), 0u64..200);
    let moves = each.prop_map(|(after, is_noticed, is_crash, gap)| {
        let mut steps = vec![(after, Step::Lose)];
        steps.extend(is_noticed.then_some((0, Step::Notice)));
        steps.extend(is_crash.then_some((0, Step::Crash)));
        steps.push((gap, Step::Move));
        steps
    });
    prop::collection::vec(moves, 1..6).prop_map(|moves| moves.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whichever_messages_of_the_agents_are_lost_all_bytes_arrive(
        steps in steps(),
        loss in prop_oneof![1 => Just(0.0), 2 => 0.0..0.5f64],
        seed in any::<u64>(),
        v6 in any::<bool>(),
    ) {
        let mut world = World::new(seed, loss, v6, &steps);
        prop_assert!(world.run(400), "{} of {TOTAL} bytes", world.reader.read);
        prop_assert_eq!(world.sum(|of| of.refused + of.dropped_full + of.unauthenticated), 0);
    }
}
