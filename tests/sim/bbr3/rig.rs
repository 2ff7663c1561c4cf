//! One connection over a chain of links, driven step by step, with a record of its control after
//! each event of the sender.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use airtcp_link::{Link, LinkSpec, Way};
use airtcp_recovery::{PathModel, Sender, Stats};
use airtcp_sim::World;
use airtcp_stack::host::{Cidr, Host, HostConfig, SocketId};
use airtcp_stack::tcp::{Connection, TcpConfig};
use airtcp_types::{ByteCount, Event, Instant, Node, NodeId, Packet, PortId, Rate};

const PORT: u16 = 5001;
/// Payload bytes of a 1500-byte packet with timestamps.
pub(crate) const SMSS: ByteCount = ByteCount(1448);
/// Payload over the bytes of a packet.
pub(crate) const PAYLOAD: f64 = 1448.0 / 1500.0;
/// The time between two checks of a condition.
const STEP: Duration = Duration::from_millis(1);
/// The unsent bytes that the application keeps buffered.
const BUFFERED: u64 = 100_000;
static ZEROS: [u8; 65_536] = [0; 65_536];

/// The behaviour of the sender's application.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// Writes nothing.
    Nothing,
    /// Always has more than the window allows.
    Bulk,
    /// Has this many bytes left.
    Bytes(u64),
    /// Writes at this rate every millisecond since this time; the last field counts the bytes
    /// written.
    Paced(Rate, Instant, ByteCount),
}

/// The sender's state after an event.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) at: Instant,
    pub(crate) model: PathModel,
    pub(crate) cwnd: ByteCount,
    pub(crate) pipe: ByteCount,
    pub(crate) pacing_rate: Rate,
    pub(crate) srtt: Duration,
    /// The latest sample of the delivery rate, and whether it is application-limited.
    pub(crate) rate: Option<(Rate, bool)>,
    pub(crate) delivered: ByteCount,
    pub(crate) stats: Stats,
}

impl Look {
    fn of(now: Instant, sender: &Sender) -> Option<Self> {
        Some(Self {
            at: now,
            model: sender.path_model()?,
            cwnd: sender.cwnd(),
            pipe: sender.pipe(),
            pacing_rate: sender.pacing_rate().unwrap_or_default(),
            srtt: sender.rtt().srtt().unwrap_or_default(),
            rate: sender.delivery_rate(),
            delivered: sender.delivered(),
            stats: *sender.stats(),
        })
    }

    pub(crate) fn state(&self) -> &'static str {
        self.model.state
    }

    pub(crate) fn is(&self, state: &str) -> bool {
        self.model.state == state
    }

    /// BBR.bdp: `bw` times `min_rtt`.
    pub(crate) fn bdp(&self) -> ByteCount {
        self.model.bw.bytes_in(self.model.min_rtt.unwrap_or_default())
    }

    /// C.send_quantum.
    pub(crate) fn quantum(&self) -> ByteCount {
        self.pacing_rate.bytes_in(STEP).min(ByteCount(65_536)).max(SMSS * 2)
    }

    /// Inflight(1.0) outside ProbeBW_UP.
    pub(crate) fn inflight(&self) -> ByteCount {
        self.bdp().max(self.quantum() * 3).max(SMSS * 4)
    }

    /// Lost over sent, in segments.
    pub(crate) fn loss_rate(&self) -> f64 {
        self.stats.segments_lost as f64 / self.stats.segments_sent.max(1) as f64
    }
}

/// A host with a sending application, or one that reads everything.
#[derive(Debug)]
struct End {
    host: Host,
    socket: Option<SocketId>,
    load: Load,
    /// How late its timers run.
    late: Duration,
    log: Vec<Look>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few")]
enum Element {
    End(End),
    Link(Link),
}

/// The connection, the links and the clock.
pub(crate) struct Rig {
    world: World<Element>,
    sender: NodeId,
    links: Vec<NodeId>,
}

impl Rig {
    /// A connection with `combination` over `links`, each with its own description for the way
    /// back.
    pub(crate) fn new(combination: &str, links: &[(&str, &str)]) -> Self {
        let mut config = TcpConfig { mtu: 1500, ..TcpConfig::default() };
        config.sender.combination = combination.parse().expect("a combination");
        let mut world = World::new();
        let sender = world.add(Element::End(End::new(1, &config)));
        let mut last = (sender, PortId(0));
        let mut ids = Vec::new();
        for (number, (forth, back)) in links.iter().enumerate() {
            let [forth, back] = [(forth, 0), (back, 1)].map(|(text, way)| {
                let spec: LinkSpec = text.parse().expect("a link");
                LinkSpec { seed: spec.seed + 2 * number as u64 + way, ..spec }
            });
            let link = world.add(Element::Link(Link::new(&forth, &back).expect("a link")));
            world.connect(last, (link, PortId(0)));
            last = (link, PortId(1));
            ids.push(link);
        }
        let receiver = world.add(Element::End(End::new(2, &config)));
        world.connect(last, (receiver, PortId(0)));
        world.act(receiver, &mut (), |end, _| {
            let Element::End(end) = end else { return };
            end.host.tcp_listen(address(2), 1).expect("a listener");
        });
        world.act(sender, &mut (), |end, now| {
            let Element::End(end) = end else { return };
            let socket = end.host.tcp_connect(now, address(2), Some(config));
            end.socket = Some(socket.expect("a connection"));
        });
        Self { world, sender, links: ids }
    }

    /// A connection with `rack/bbr3` over one link.
    pub(crate) fn over(forth: &str, back: &str) -> Self {
        Self::new("rack/bbr3", &[(forth, back)])
    }

    fn load(&mut self, load: Load) {
        self.world.act(self.sender, &mut (), |end, now| {
            let Element::End(end) = end else { return };
            end.load = load;
            end.write(now);
        });
    }

    /// Makes each timer of the sender run late.
    pub(crate) fn wake_late(&mut self, late: Duration) {
        self.world.act(self.sender, &mut (), |end, _| {
            let Element::End(end) = end else { return };
            end.late = late;
        });
    }

    /// Makes the application always have data.
    pub(crate) fn bulk(&mut self) {
        self.load(Load::Bulk);
    }

    /// Stops the application's writes.
    pub(crate) fn pause(&mut self) {
        self.load(Load::Nothing);
    }

    /// Writes this many bytes as space permits, and then nothing.
    pub(crate) fn send(&mut self, bytes: u64) {
        self.load(Load::Bytes(bytes));
    }

    /// Writes at this rate, in a piece every millisecond.
    pub(crate) fn paced(&mut self, rate: Rate) {
        let now = self.world.now();
        self.load(Load::Paced(rate, now, ByteCount::ZERO));
    }

    /// The bytes of [`send`](Self::send) that have not left.
    pub(crate) fn unsent(&self) -> u64 {
        let end = self.end();
        let owed = if let Load::Bytes(bytes) = end.load { bytes } else { 0 };
        let tcp = end.socket.and_then(|socket| end.host.tcp(socket).ok());
        owed + tcp.map_or(0, |tcp| unsent(tcp).0)
    }

    pub(crate) fn now(&self) -> Instant {
        self.world.now()
    }

    fn end(&self) -> &End {
        match self.world.node(self.sender) {
            Some(Element::End(end)) => end,
            _ => panic!("the sender is there"),
        }
    }

    /// All looks since the connection started.
    pub(crate) fn log(&self) -> &[Look] {
        &self.end().log
    }

    /// The last look.
    #[track_caller]
    pub(crate) fn look(&self) -> &Look {
        self.log().last().expect("the sender has heard something")
    }

    /// The looks from `at` on.
    pub(crate) fn since(&self, at: Instant) -> &[Look] {
        let log = self.log();
        &log[log.partition_point(|look| look.at < at)..]
    }

    /// The bytes in a link's queue in the forward direction.
    pub(crate) fn queued(&mut self, link: usize) -> ByteCount {
        match self.world.node_mut(self.links[link]) {
            Some(Element::Link(link)) => link.queued(Way::Forth).1,
            _ => panic!("the link is there"),
        }
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now() + time;
        while self.now() < end {
            self.step();
        }
    }

    fn step(&mut self) {
        let next = self.now() + STEP;
        self.world.run_until(next, &mut ()).expect("time goes on");
        self.world.act(self.sender, &mut (), |end, now| {
            let Element::End(end) = end else { return };
            end.write(now);
        });
    }

    /// Runs until the condition holds, and returns whether it did within `time`.
    pub(crate) fn runs_until(&mut self, time: Duration, condition: impl Fn(&Self) -> bool) -> bool {
        let end = self.now() + time;
        while !condition(self) {
            if self.now() >= end {
                return false;
            }
            self.step();
        }
        true
    }

    /// Runs into a state and returns when it was entered, which may be less than a step ago.
    #[track_caller]
    pub(crate) fn run_into(&mut self, state: &str) -> Instant {
        let reached = self.runs_until(Duration::from_secs(60), |rig| {
            rig.log().last().is_some_and(|look| look.is(state))
        });
        assert!(reached, "{state} does not come: {:?}", self.log().last());
        let entered = self.log().iter().rev().take_while(|look| look.is(state)).last();
        entered.expect("it is in the state").at
    }

    /// The sequence of states since `at`.
    pub(crate) fn states(&self, at: Instant) -> Vec<&'static str> {
        let mut states: Vec<_> = self.since(at).iter().map(Look::state).collect();
        states.dedup();
        states
    }
}

/// The buffered bytes that have not left, if the peer sends no data. A snapshot of the connection
/// has them too, but walks all transmissions on the board.
fn unsent(tcp: &Connection) -> ByteCount {
    let outstanding = tcp.sender().map_or(ByteCount::ZERO, |sender| sender.board().flight_size());
    tcp.held() - outstanding
}

const fn address(host: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), PORT)
}

impl End {
    fn new(number: u8, config: &TcpConfig) -> Self {
        let cidr = Cidr::new(address(number).ip(), 24).expect("an address");
        let config = HostConfig { tcp: config.clone(), ..HostConfig::new([cidr]) };
        Self {
            host: Host::new(config),
            socket: None,
            load: Load::Nothing,
            late: Duration::ZERO,
            log: Vec::new(),
        }
    }

    fn sender(&self) -> Option<&Sender> {
        self.host.tcp(self.socket?).ok()?.sender()
    }

    /// Records the sender's state if it has a path model.
    fn take_look(&mut self, now: Instant) {
        let Some(look) = self.sender().and_then(|sender| Look::of(now, sender)) else { return };
        self.log.push(look);
    }

    /// Writes what the application has.
    fn write(&mut self, now: Instant) {
        let Some(socket) = self.socket else { return };
        let Ok(tcp) = self.host.tcp(socket) else { return };
        // Little is buffered, so that a change of the load has a quick effect.
        let room = BUFFERED.saturating_sub(unsent(tcp).0);
        let wanted = match &mut self.load {
            Load::Nothing => return,
            Load::Bulk => room,
            Load::Bytes(bytes) => (*bytes).min(room),
            Load::Paced(rate, since, written) => {
                (rate.bytes_in(now.since(*since)) - *written).0.min(room)
            }
        };
        let mut left = wanted;
        while left > 0 {
            let piece = &ZEROS[..left.min(ZEROS.len() as u64) as usize];
            let Ok(len) = self.host.tcp_send(now, socket, piece) else { break };
            left -= len as u64;
        }
        match &mut self.load {
            Load::Bytes(bytes) => *bytes -= wanted - left,
            Load::Paced(_, _, written) => *written += ByteCount(wanted - left),
            _ => {}
        }
    }

    fn work(&mut self, now: Instant) {
        self.host.settle(now);
        self.take_look(now);
        while let Some((socket, ready)) = self.host.poll_ready() {
            while let Ok(Some(_)) = self.host.tcp_accept(now, socket) {}
            if ready.readable {
                let mut buffer = [0; 4096];
                while let Ok(1..) = self.host.tcp_recv(now, socket, &mut buffer) {}
            }
        }
        self.write(now);
    }
}

impl Node for Element {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        match self {
            Self::End(end) => {
                end.host.handle_packet(now, port, packet);
                end.work(now);
            }
            Self::Link(link) => link.handle_packet(now, port, packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::End(end) => {
                end.host.handle_timeout(now);
                end.work(now);
            }
            Self::Link(link) => link.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        match self {
            Self::End(end) => end.host.poll_transmit(now),
            Self::Link(link) => link.poll_transmit(now),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::End(end) => end.host.poll_timeout().map(|at| at + end.late),
            Self::Link(link) => link.poll_timeout(),
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::End(end) => end.host.poll_event(),
            Self::Link(link) => link.poll_event(),
        }
    }
}
