//! The network of a scenario.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use airtcp_basestation::station::StationError;
use airtcp_basestation::{Side, StationConfig};
use airtcp_link::{Link, LinkSpec, RadioSpec};
use airtcp_recovery::{Combination, SenderConfig};
use airtcp_rrtp::Config;
use airtcp_stack::host::{Cidr, Host, HostConfig, Quota};
use airtcp_stack::tcp::{MarkAware, TcpConfig};
use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Event, Instant, Node, NodeId, Packet, PortId, Rate};

use crate::app::{
    Answerer, Application, Caller, Crowd, EndHost, Habits, Meter, Role, RrtpEnd, Script, UdpEnd,
};
use crate::base::Base;
use crate::measure::FIRST_PORT;
use crate::router::Router;
use crate::world::World;
use crate::{
    App, FlowDirection, FlowSpec, NodeKind, Radios, Rrtp, Scenario, Sender, SimError, Topology,
    Wire,
};

/// What streams are drawn for; the low half of a stream's number says for which of them.
const LINKS: u64 = 1 << 32;
const FLOWS: u64 = 2 << 32;
const HOSTS: u64 = 3 << 32;
const RADIOS: u64 = 4 << 32;
const KEYS: u64 = 5 << 32;

/// The bytes of an IPv4 and a UDP header.
pub(crate) const UDP_HEADERS: u16 = 28;
/// What a flow that stops has written and not sent, at most: more than a quantum of the pacer.
const NOT_SENT: ByteCount = ByteCount(128 * 1024);
/// A flow of RRTP is to be held back by its path, and not by what its user allows.
const RRTP_CAP: Rate = Rate::from_bits_per_sec(10_000_000_000);

/// Hosts on the left have the addresses from here on, and those on the right from there.
const LEFT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 0);

/// A node of a scenario.
#[derive(Debug)]
pub(crate) enum Element {
    Host(Box<EndHost>),
    Link(Box<Link>),
    Router(Router),
    BaseStation(Box<Base>),
}

/// One copy of a flow.
#[derive(Debug)]
pub(crate) struct Placed {
    /// Which of the scenario's flows it is.
    pub(crate) spec: usize,
    pub(crate) copy: u32,
    pub(crate) start: Instant,
    /// The host of the end that opens connections, and its application there.
    pub(crate) caller: (NodeId, usize),
    /// The same of the other end.
    pub(crate) answerer: (NodeId, usize),
}

/// A scenario, built.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) world: World<Element>,
    pub(crate) nodes: Vec<(String, NodeKind)>,
    pub(crate) flows: Vec<Placed>,
    /// Every link, and whether each direction has a rate.
    pub(crate) links: Vec<(NodeId, [bool; 2])>,
    /// The base stations: none, one, or one for each mobile.
    pub(crate) bases: Vec<NodeId>,
    /// For each node the first flow it has an end of, if it is a host.
    pub(crate) first_flows: Vec<Option<u32>>,
}

/// A host that is not in the world yet.
struct Bench {
    host: EndHost,
    address: Ipv4Addr,
}

impl Network {
    pub(crate) fn new(scenario: &Scenario, link_events: bool) -> Result<Self, SimError> {
        let builder = Builder {
            scenario,
            link_events,
            hosts: 0,
            network: Self {
                world: World::new(),
                nodes: Vec::new(),
                flows: Vec::new(),
                links: Vec::new(),
                bases: Vec::new(),
                first_flows: Vec::new(),
            },
        };
        match &scenario.topology {
            Topology::Dumbbell { access, bottleneck } => builder.dumbbell(access, bottleneck, None),
            Topology::Wireless { access, bottleneck, station, radios } => {
                builder.dumbbell(access, bottleneck, Some((station, *radios)))
            }
            Topology::Chain { wires } => builder.chain(wires),
        }
    }

    pub(crate) fn meter(&self, (node, application): (NodeId, usize)) -> Option<&Meter> {
        match self.world.node(node)? {
            Element::Host(host) => host.meter(application),
            _ => None,
        }
    }

    /// An end of an RRTP flow.
    pub(crate) fn rrtp(&self, (node, application): (NodeId, usize)) -> Option<&RrtpEnd> {
        match self.world.node(node)? {
            Element::Host(host) => host.rrtp(application),
            _ => None,
        }
    }

    /// An end of a flow of UDP.
    pub(crate) fn udp(&self, (node, application): (NodeId, usize)) -> Option<&UdpEnd> {
        match self.world.node(node)? {
            Element::Host(host) => host.udp(application),
            _ => None,
        }
    }

    /// Bytes that have arrived at either end of a flow, behind a hole.
    pub(crate) fn unread(&self, flow: &Placed) -> u64 {
        let ends = [flow.caller, flow.answerer].into_iter();
        let of = |(node, application)| match self.world.node(node)? {
            Element::Host(host) => Some(host.unread(application)),
            _ => None,
        };
        ends.filter_map(of).sum()
    }

    pub(crate) fn bases(&self) -> impl Iterator<Item = &Base> {
        self.bases.iter().filter_map(|base| match self.world.node(*base)? {
            Element::BaseStation(base) => Some(base.as_ref()),
            _ => None,
        })
    }

    pub(crate) fn link(&mut self, node: NodeId) -> Option<&mut Link> {
        match self.world.node_mut(node)? {
            Element::Link(link) => Some(link),
            _ => None,
        }
    }
}

struct Builder<'a> {
    scenario: &'a Scenario,
    link_events: bool,
    hosts: u64,
    network: Network,
}

impl Builder<'_> {
    /// With a station the hosts on the right are mobiles behind it.
    fn dumbbell(
        mut self,
        access: &Wire,
        bottleneck: &Wire,
        station: Option<(&StationConfig, Radios)>,
    ) -> Result<Network, SimError> {
        let far = Some(PortId(0));
        let mut routers = [Router::new(far), Router::new(far)];
        let total = self.copies().count() as u32;
        for index in 0..total {
            routers[0].route(address(LEFT, index), PortId(index as u16 + 1));
            routers[1].route(address(RIGHT, index), PortId(index as u16 + 1));
        }
        let sides = if station.is_some() { ["fixed", "mobile"] } else { ["left", "right"] };
        let [left, right] = sides.map(|side| format!("{side}-router"));
        let [first, second] = routers;
        let left = self.add(left, NodeKind::Router, Element::Router(first), None);
        let link = self.link("bottleneck".to_owned(), bottleneck)?;
        self.network.world.connect((left, PortId(0)), (link, PortId(0)));
        let mut last = (link, PortId(1));
        if let Some((config, Radios::Shared)) = station {
            let base = self.base("station".to_owned(), config)?;
            self.network.world.connect(last, (base, Side::Wired.port()));
            last = (base, Side::Wireless.port());
        }
        let right = self.add(right, NodeKind::Router, Element::Router(second), None);
        self.network.world.connect(last, (right, PortId(0)));
        for (index, (spec, copy)) in (0..).zip(self.copies().collect::<Vec<_>>()) {
            let mut benches = [self.bench(LEFT, index), self.bench(RIGHT, index)];
            let [caller, answerer] =
                self.install(benches.each_mut(), spec, copy, index, FIRST_PORT);
            let wire = self.scenario.flows[spec].access.as_ref().unwrap_or(access);
            let router_port = PortId(index as u16 + 1);
            let number = index + 1;
            let ([one, other], [near, far]) = (benches, sides);
            let one = self.host(format!("{near}-{number}"), one, index);
            self.wire(format!("{near}-access-{number}"), wire, one, (left, router_port), true)?;
            let other = self.host(format!("{far}-{number}"), other, index);
            let mut near = (right, router_port);
            if let Some((config, Radios::Own)) = station {
                let base = self.base(format!("station-{number}"), config)?;
                self.network.world.connect(near, (base, Side::Wired.port()));
                near = (base, Side::Wireless.port());
            }
            let nothing = Wire::default();
            let wire = if station.is_some() { &nothing } else { wire };
            self.wire(format!("{far}-access-{number}"), wire, other, near, false)?;
            self.place(spec, copy, [one, other], [caller, answerer]);
        }
        Ok(self.network)
    }

    /// Wires in a row, with a host at each end, and one at a router where flows enter or leave between two wires.
    fn chain(mut self, wires: &[Wire]) -> Result<Network, SimError> {
        let copies: Vec<_> = self.copies().collect();
        // Places are counted by the wires before them.
        let ends: Vec<[usize; 2]> =
            self.scenario.flows.iter().map(|flow| flow.ends(wires.len())).collect();
        let inner: BTreeSet<usize> = ends
            .iter()
            .flatten()
            .copied()
            .filter(|place| (1..wires.len()).contains(place))
            .collect();
        let places: Vec<usize> = [0, wires.len()].into_iter().chain(inner).collect();
        let mut benches: Vec<Bench> =
            (0..places.len()).map(|number| self.bench(LEFT, number as u32)).collect();
        let mut installed = Vec::new();
        for (index, (spec, copy)) in (0..).zip(&copies) {
            let port = FIRST_PORT + index as u16;
            let at = ends[*spec].map(|end| places.iter().position(|place| *place == end));
            let at = at.map(|number| number.expect("every end is a place"));
            let sides = benches.get_disjoint_mut(at).expect("a flow crosses a wire");
            installed.push((at, self.install(sides, *spec, *copy, index, port)));
        }
        let mut benches: Vec<_> = benches.into_iter().map(Some).collect();
        let mut host = |me: &mut Self, number: usize, name: String| {
            me.host(name, benches[number].take().expect("each is placed once"), 0)
        };
        let mut hosts = vec![host(&mut self, 0, "left".to_owned())];
        let mut between = Vec::new();
        let mut last = (hosts[0], PortId(0));
        for (place, wire) in (1..).zip(wires) {
            let link = self.link(format!("wire-{place}"), wire)?;
            self.network.world.connect(last, (link, PortId(0)));
            last = (link, PortId(1));
            if let Some(number) = (2..places.len()).find(|number| places[*number] == place) {
                let mut router = Router::new(None);
                for (other, at) in (0..).zip(&places) {
                    router.route(address(LEFT, other), toward(*at, place));
                }
                let router = self.add(
                    format!("router-{place}"),
                    NodeKind::Router,
                    Element::Router(router),
                    None,
                );
                self.network.world.connect(last, (router, PortId(0)));
                let own = host(&mut self, number, format!("host-{place}"));
                self.network.world.connect((router, PortId(1)), (own, PortId(0)));
                between.push(own);
                last = (router, PortId(2));
            }
        }
        hosts.push(host(&mut self, 1, "right".to_owned()));
        self.network.world.connect(last, (hosts[1], PortId(0)));
        hosts.extend(between);
        for ((spec, copy), (at, ends)) in copies.into_iter().zip(installed) {
            self.place(spec, copy, at.map(|number| hosts[number]), ends);
        }
        Ok(self.network)
    }

    /// Every flow's copies, in the scenario's order.
    fn copies(&self) -> impl Iterator<Item = (usize, u32)> + use<'_> {
        let flows = self.scenario.flows.iter().enumerate();
        flows.flat_map(|(spec, flow)| (0..flow.count).map(move |copy| (spec, copy)))
    }

    fn add(
        &mut self,
        name: String,
        kind: NodeKind,
        element: Element,
        first_flow: Option<u32>,
    ) -> NodeId {
        self.network.nodes.push((name, kind));
        self.network.first_flows.push(first_flow);
        self.network.world.add(element)
    }

    fn host(&mut self, name: String, bench: Bench, first_flow: u32) -> NodeId {
        let element = Element::Host(Box::new(bench.host));
        self.add(name, NodeKind::Host, element, Some(first_flow))
    }

    fn bench(&mut self, side: Ipv4Addr, index: u32) -> Bench {
        let address = address(side, index);
        let cidr = Cidr::new(IpAddr::V4(address), 32).expect("a host's address");
        let mut random = Stream::new(self.scenario.seed, HOSTS | self.hosts);
        self.hosts += 1;
        let host = Host::new(HostConfig {
            secret: key(&mut random),
            mtu: ByteCount(u16::MAX.into()),
            // What connections hold is bounded by their own buffers.
            quota: Quota::UNLIMITED,
            peer_quota: Quota::UNLIMITED,
            events: true,
            ..HostConfig::new([cidr])
        });
        Bench { host: EndHost::new(host), address }
    }

    /// Puts both ends of a flow on the left and the right, and gives their numbers there, the caller's first.
    fn install(
        &self,
        sides: [&mut Bench; 2],
        spec: usize,
        copy: u32,
        index: u32,
        port: u16,
    ) -> [usize; 2] {
        let flow = &self.scenario.flows[spec];
        let [left, right] = sides;
        left.host.delay_wake_ups(flow.wake_up_delay);
        right.host.delay_wake_ups(flow.wake_up_delay);
        let (caller, answerer) = match flow.way {
            FlowDirection::LeftToRight => (left, right),
            FlowDirection::RightToLeft => (right, left),
        };
        let remote = SocketAddr::new(answerer.address.into(), port);
        let meter = Meter::new(Instant::ZERO + self.scenario.warm_up, self.scenario.samples);
        let start = start(flow, copy);
        let stop = flow.stop.map(|stop| Instant::ZERO + stop);
        let size = match &flow.app {
            App::Bulk { size } => size.map(|size| size.0),
            _ => None,
        };
        let roles =
            [Role::Sends { start, stop, remote, size }, Role::Takes { port, expected: size }];
        let combination = match &flow.sender {
            Sender::Tcp(combination) => combination,
            Sender::Udp(rate) => {
                let [sends, takes] = roles.map(|role| {
                    let end = UdpEnd::new(role, *rate, flow.mtu, UDP_HEADERS, meter.clone());
                    Application::Udp(Box::new(end))
                });
                return [caller.host.add(sends), answerer.host.add(takes)];
            }
            Sender::Rrtp(rrtp) => {
                let mut random = Stream::new(self.scenario.seed, KEYS | u64::from(index));
                let [sends, takes] = roles.map(|role| {
                    let key = key(&mut random);
                    RrtpEnd::new(role, rrtp_config(flow, rrtp), key, meter.clone())
                });
                return [
                    caller.host.add(Application::Rrtp(Box::new(sends))),
                    answerer.host.add(Application::Rrtp(Box::new(takes))),
                ];
            }
        };
        // Mobiles are on the right.
        let plain = tcp_config(flow, combination);
        let aware = flow.mark_aware.then(MarkAware::default);
        let mobile = TcpConfig { mark_aware: aware, ..plain.clone() };
        let (calls_with, answers_with) = match flow.way {
            FlowDirection::LeftToRight => (plain, mobile),
            FlowDirection::RightToLeft => (mobile, plain),
        };
        let random = Stream::new(self.scenario.seed, FLOWS | u64::from(index));
        let script = |request, response: ByteCount, think, count| Script {
            stop,
            request,
            response: response.0,
            think,
            count,
        };
        let (script, answers, expected) = match &flow.app {
            App::Bulk { size } => {
                let size = size.map(|size| size.0);
                let nothing = ByteCount::ZERO;
                (script(size, nothing, std::time::Duration::ZERO, size.map(|_| 1)), None, size)
            }
            App::RequestResponse { request, response, think, count } => {
                let answers = Some((request.0, response.0));
                (script(Some(request.0), *response, *think, *count), answers, None)
            }
            App::PingPong { size, count } => {
                let think = std::time::Duration::ZERO;
                (script(Some(size.0), *size, think, *count), Some((size.0, size.0)), None)
            }
            App::ShortFlows { size, gap, pareto, users } => {
                let size = (size.0.0, size.1.0);
                let habits = Habits { size, gap: *gap, pareto: *pareto, stop };
                let crowd =
                    Crowd::new(start, *users, remote, calls_with, habits, random, meter.clone());
                let answers = Answerer::new(remote, answers_with, None, None, meter);
                return [
                    caller.host.add(Application::Crowd(crowd)),
                    answerer.host.add(Application::Answerer(answers)),
                ];
            }
        };
        let answers = Answerer::new(remote, answers_with, answers, expected, meter.clone());
        let calls = Caller::new(start, remote, calls_with, script, random, meter);
        let calls = caller.host.add(Application::Caller(calls));
        let answers = answerer.host.add(Application::Answerer(answers));
        for change in &flow.changes {
            caller.host.change(calls, change);
            answerer.host.change(answers, change);
        }
        [calls, answers]
    }

    fn place(&mut self, spec: usize, copy: u32, hosts: [NodeId; 2], ends: [usize; 2]) {
        let flow = &self.scenario.flows[spec];
        let [left, right] = hosts;
        let (caller, answerer) = match flow.way {
            FlowDirection::LeftToRight => (left, right),
            FlowDirection::RightToLeft => (right, left),
        };
        self.network.flows.push(Placed {
            spec,
            copy,
            start: start(flow, copy),
            caller: (caller, ends[0]),
            answerer: (answerer, ends[1]),
        });
    }

    /// Connects a host and a router; by a link, unless it would do nothing.
    fn wire(
        &mut self,
        name: String,
        wire: &Wire,
        host: NodeId,
        router: (NodeId, PortId),
        left: bool,
    ) -> Result<(), SimError> {
        let host = (host, PortId(0));
        if *wire == Wire::default() {
            self.network.world.connect(host, router);
            return Ok(());
        }
        let link = self.link(name, wire)?;
        let (one, other) = if left { (host, router) } else { (router, host) };
        self.network.world.connect(one, (link, PortId(0)));
        self.network.world.connect((link, PortId(1)), other);
        Ok(())
    }

    fn base(&mut self, name: String, config: &StationConfig) -> Result<NodeId, SimError> {
        let number = self.network.bases.len() as u64;
        let own = Stream::new(self.scenario.seed, RADIOS | number).next_u64();
        let seed = own.wrapping_add(config.radio.seed);
        let radio = RadioSpec { seed, ..config.radio.clone() };
        let config = StationConfig { radio, ..config.clone() };
        let base = Base::new(&config, self.link_events).map_err(senseless)?;
        let id = self.add(name, NodeKind::BaseStation, Element::BaseStation(Box::new(base)), None);
        self.network.bases.push(id);
        Ok(id)
    }

    fn link(&mut self, name: String, wire: &Wire) -> Result<NodeId, SimError> {
        let number = 2 * self.network.links.len() as u64;
        let seeded = |spec: &LinkSpec, way: u64| LinkSpec {
            seed: Stream::new(self.scenario.seed, LINKS | (number + way))
                .next_u64()
                .wrapping_add(spec.seed),
            ..spec.clone()
        };
        let (forth, back) = (seeded(&wire.forth, 0), seeded(&wire.back, 1));
        let traces = &self.scenario.traces;
        let read = |file: &str| {
            traces
                .get(file)
                .cloned()
                .ok_or_else(|| "the scenario does not contain this trace".to_owned())
        };
        let mut link = Link::with_traces(&forth, &back, read)
            .map_err(|source| SimError::Link { name: name.clone(), source })?;
        link.set_events(self.link_events);
        let id = self.add(name, NodeKind::Link, Element::Link(Box::new(link)), None);
        self.network.links.push((id, [forth.has_rate(), back.has_rate()]));
        Ok(id)
    }
}

/// The port of a router in a chain for hosts at a place: 0 to the left, 1 its own host, 2 to the right.
fn toward(place: usize, router: usize) -> PortId {
    match place.cmp(&router) {
        Ordering::Less => PortId(0),
        Ordering::Equal => PortId(1),
        Ordering::Greater => PortId(2),
    }
}

fn senseless(error: StationError) -> SimError {
    SimError::Senseless { place: "station".to_owned(), what: error.to_string() }
}

fn address(side: Ipv4Addr, index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(side.to_bits() + index + 1)
}

fn start(flow: &FlowSpec, copy: u32) -> Instant {
    Instant::ZERO + flow.start + flow.stagger.saturating_mul(copy)
}

fn key(random: &mut Stream) -> [u8; 16] {
    let mut key = [0; 16];
    for half in key.chunks_mut(8) {
        half.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    key
}

fn rrtp_config(flow: &FlowSpec, rrtp: &Rrtp) -> Config {
    let default = Config::default();
    let patience = |usual| flow.user_timeout.unwrap_or(usual);
    Config {
        kind: rrtp.kind,
        profile: rrtp.profile,
        biaz: rrtp.biaz,
        rate_cap: RRTP_CAP,
        asked_rate_cap: RRTP_CAP,
        packet_size: flow.mtu - UDP_HEADERS,
        receive_buffer: flow.receive_buffer.unwrap_or(default.receive_buffer),
        send_buffer: flow.send_buffer.unwrap_or(default.send_buffer),
        handshake_timeout: patience(default.handshake_timeout),
        idle_timeout: patience(default.idle_timeout),
        progress_timeout: patience(default.progress_timeout),
        // Who has nothing to send is to be heard of in time.
        keepalive: default.keepalive.min(patience(default.idle_timeout) / 3),
    }
}

fn tcp_config(flow: &FlowSpec, combination: &Combination) -> TcpConfig {
    let default = TcpConfig::default();
    TcpConfig {
        sender: SenderConfig {
            combination: combination.clone(),
            profile: flow.profile.clone(),
            pacing: flow.pacing,
            events: true,
        },
        mtu: flow.mtu,
        // As with SO_RCVBUF, a size that is asked for is there from the start, and stays.
        initial_window: flow.receive_buffer.unwrap_or(default.initial_window),
        receive_buffer: flow.receive_buffer.unwrap_or(default.receive_buffer),
        send_buffer: flow.send_buffer.unwrap_or(default.send_buffer),
        user_timeout: flow.user_timeout.or(default.user_timeout),
        // No link here drops by size: what times out again and again is no black hole.
        black_holes: false,
        nodelay: !matches!(flow.app, App::Bulk { .. }),
        timestamps: flow.timestamps,
        sack: flow.sack,
        path_memory: flow.path_memory,
        // What a flow has written when it stops is still sent: it is to be little.
        not_sent_low_water: flow.stop.map(|_| NOT_SENT).or(default.not_sent_low_water),
        ..default
    }
}

impl Node for Element {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        match self {
            Self::Host(node) => node.handle_packet(now, port, packet),
            Self::Link(node) => node.handle_packet(now, port, packet),
            Self::Router(node) => node.handle_packet(now, port, packet),
            Self::BaseStation(node) => node.handle_packet(now, port, packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Host(node) => node.handle_timeout(now),
            Self::Link(node) => node.handle_timeout(now),
            Self::Router(node) => node.handle_timeout(now),
            Self::BaseStation(node) => node.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        match self {
            Self::Host(node) => node.poll_transmit(now),
            Self::Link(node) => node.poll_transmit(now),
            Self::Router(node) => node.poll_transmit(now),
            Self::BaseStation(node) => node.poll_transmit(now),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Host(node) => node.poll_timeout(),
            Self::Link(node) => node.poll_timeout(),
            Self::Router(node) => node.poll_timeout(),
            Self::BaseStation(node) => node.poll_timeout(),
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Host(node) => node.poll_event(),
            Self::Link(node) => node.poll_event(),
            Self::Router(node) => node.poll_event(),
            Self::BaseStation(node) => node.poll_event(),
        }
    }
}
