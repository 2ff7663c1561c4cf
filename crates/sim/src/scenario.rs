//! The description of a simulation: network, flows and applications.

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_basestation::StationConfig;
use airtcp_link::{LinkSpec, Trace};
use airtcp_recovery::{Combination, Profile};
use airtcp_types::ByteCount;

use crate::Sender;

/// A scenario: a network, its flows, the duration, and the seed of all random numbers.
///
/// Two flows through a bottleneck:
///
/// ```
/// use airtcp_sim::{FlowSpec, Scenario, Topology, Wire};
///
/// let bottleneck = Wire::both("rate 10mbit delay 5ms limit 50".parse()?);
/// let topology = Topology::Dumbbell { access: Wire::default(), bottleneck };
/// let scenario = Scenario {
///     flows: vec![FlowSpec { count: 2, ..FlowSpec::new("sack/reno".parse()?) }],
///     ..Scenario::new("two-flows", topology)
/// };
/// assert!(airtcp_sim::run(&scenario, None)?.jain > 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name, for results.
    pub name: String,
    /// The duration, in virtual time.
    pub duration: Duration,
    /// The start of the interval in which goodput is measured.
    pub warm_up: Duration,
    /// The seed. Every link direction and every application derives a stream of its own from it.
    pub seed: u64,
    /// The network.
    pub topology: Topology,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// Whether results keep every RTT sample, recovery and exchange.
    pub samples: bool,
    /// The packet-delivery traces that link descriptions name.
    pub traces: BTreeMap<String, Trace>,
}

impl Scenario {
    /// Creates a scenario of ten seconds on `topology` without flows, with seed 1.
    pub fn new(name: impl Into<String>, topology: Topology) -> Self {
        Self {
            name: name.into(),
            duration: Duration::from_secs(10),
            warm_up: Duration::ZERO,
            seed: 1,
            topology,
            flows: Vec::new(),
            samples: false,
            traces: BTreeMap::new(),
        }
    }

    /// Returns whether random numbers of a link, an application or a sender's strategy affect the
    /// result. If not, all seeds have the same result.
    pub fn is_random(&self) -> bool {
        let of_flows = self.flows.iter().filter_map(|flow| flow.access.as_ref());
        let (shared, in_a_row): (Vec<_>, &[Wire]) = match &self.topology {
            Topology::Dumbbell { access, bottleneck } => (vec![access, bottleneck], &[]),
            Topology::Chain { wires } => (Vec::new(), wires),
            // The backoff on the shared medium is random.
            Topology::Wireless { .. } => return true,
        };
        shared.into_iter().chain(in_a_row).chain(of_flows).any(Wire::is_random)
            || self.flows.iter().any(|flow| flow.app.is_random() || flow.sender.uses_seed())
    }
}

/// Both directions of a link. Forth is from left to right.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Wire {
    /// The link from left to right.
    pub forth: LinkSpec,
    /// The link from right to left.
    pub back: LinkSpec,
}

impl Wire {
    /// Creates the same link in both directions, with independent random numbers.
    pub fn both(spec: LinkSpec) -> Self {
        Self { forth: spec.clone(), back: spec }
    }

    fn is_random(&self) -> bool {
        use airtcp_link::Way;
        self.forth.is_random(Way::Forth) || self.back.is_random(Way::Back)
    }
}

/// The topology of hosts.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a scenario has one of them")]
pub enum Topology {
    /// Every flow has a host of its own on the left and on the right, each on its access wire. Two
    /// routers and the bottleneck between them connect the access wires.
    ///
    /// The forth direction of an access wire is from left to right too: from a left host to its
    /// router, and from a router to a right host.
    Dumbbell {
        /// The access wires of flows without their own.
        access: Wire,
        /// The wire between the routers.
        bottleneck: Wire,
    },
    /// A dumbbell whose right hosts are mobiles. Behind the bottleneck, which is the wired
    /// Internet, is a base station with a radio, or one for each mobile. Mobiles have no access
    /// wires.
    Wireless {
        /// The access wires of the fixed hosts, for flows without their own.
        access: Wire,
        /// The wire between the fixed hosts' router and the base station.
        bottleneck: Wire,
        /// The base station and its radio.
        station: StationConfig,
        /// The assignment of radios to mobiles.
        radios: Radios,
    },
    /// A host at each end and a row of wires between them, without routers; all flows share the two
    /// hosts. A chain of one wire is the simplest network. A flow whose [`FlowSpec::wires`] start
    /// or end between two wires has its host at a router there.
    Chain {
        /// The wires, from left to right.
        wires: Vec<Wire>,
    },
}

/// The assignment of radios to mobiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Radios {
    /// All mobiles share one radio.
    #[default]
    Shared,
    /// Each mobile has its own radio and station; packets from the wired side go to the station of
    /// their mobile.
    Own,
}

/// The direction of a flow's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FlowDirection {
    /// The left host opens the connection, and sends.
    #[default]
    LeftToRight,
    /// The right host opens the connection, and sends.
    RightToLeft,
}

/// A flow, or several identical ones.
///
/// ```
/// use std::time::Duration;
///
/// use airtcp_sim::{App, FlowDirection, FlowSpec};
/// use airtcp_types::ByteCount;
///
/// // Three downloads of 1 MiB each, from right to left, that start a second apart.
/// let downloads = FlowSpec {
///     count: 3,
///     way: FlowDirection::RightToLeft,
///     app: App::Bulk { size: Some(ByteCount::from_mib(1)) },
///     stagger: Duration::from_secs(1),
///     ..FlowSpec::new("rack/cubic".parse()?)
/// };
/// assert_eq!(downloads.name, "rack/cubic");
/// # Ok::<(), airtcp_sim::SenderError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// The name, for results.
    pub name: String,
    /// The number of copies.
    pub count: u32,
    /// The transport of both ends, and its parameters. RRTP and UDP support only [`App::Bulk`].
    pub sender: Sender,
    /// TCP: the profile of both ends.
    pub profile: Profile,
    /// The direction of its data.
    pub way: FlowDirection,
    /// The application.
    pub app: App,
    /// The start of the first copy.
    pub start: Duration,
    /// The interval between the starts of copies.
    pub stagger: Duration,
    /// The time, since the start of the run, after which the application writes no more data and
    /// starts no more requests or transfers. Data written before is still delivered.
    pub stop: Option<Duration>,
    /// TCP: changes of the strategies during the run, at both ends.
    pub changes: Vec<Change>,
    /// In a chain: the first and the last wire that the flow crosses, counted from 1; `None` for
    /// all wires.
    pub wires: Option<(usize, usize)>,
    /// The MTU in bytes.
    pub mtu: u16,
    /// TCP: whether timestamps are offered.
    pub timestamps: bool,
    /// TCP: whether SACK is offered.
    pub sack: bool,
    /// TCP: whether the sender paces even if its congestion control sets no rate.
    pub pacing: bool,
    /// TCP: whether connections start with the path state that earlier connections between the same
    /// hosts have cached.
    pub path_memory: bool,
    /// The size of the receive buffer from the start. `None`: TCP's buffer grows up to the stack's
    /// default, and RRTP uses its default.
    pub receive_buffer: Option<ByteCount>,
    /// The maximum size of the send buffer; `None` for the transport's default.
    pub send_buffer: Option<ByteCount>,
    /// The time after which a connection without an answer is aborted. `None`: TCP allows the
    /// stack's default number of consecutive time-outs, and RRTP uses its default times.
    pub user_timeout: Option<Duration>,
    /// The wake-up latency of its hosts, as on a busy machine: a received packet or an expired
    /// timer waits this long, then the host processes everything that is due. In a chain, where
    /// flows share the hosts, the longest latency applies.
    pub wake_up_delay: Duration,
    /// Whether its mobile suppresses duplicate ACKs by the base station's marks (TCP-ECN).
    pub mark_aware: bool,
    /// The access wires of its hosts, if not those of the topology; with mobiles, that of the fixed
    /// host.
    pub access: Option<Wire>,
}

impl FlowSpec {
    /// Creates a bulk transfer from left to right until the end of the run, named after its sender.
    pub fn new(sender: Sender) -> Self {
        Self {
            name: sender.to_string(),
            count: 1,
            sender,
            profile: Profile::default(),
            way: FlowDirection::LeftToRight,
            app: App::Bulk { size: None },
            start: Duration::ZERO,
            stagger: Duration::ZERO,
            stop: None,
            changes: Vec::new(),
            wires: None,
            mtu: 1500,
            timestamps: true,
            sack: true,
            pacing: false,
            path_memory: false,
            receive_buffer: None,
            send_buffer: None,
            user_timeout: None,
            wake_up_delay: Duration::ZERO,
            mark_aware: false,
            access: None,
        }
    }
}

impl FlowSpec {
    /// The positions of its hosts in a chain, as the number of wires before them.
    pub(crate) fn ends(&self, wires: usize) -> [usize; 2] {
        self.wires.map_or([0, wires], |(first, last)| [first - 1, last])
    }
}

/// A change of a flow's strategies.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The time since the start of the run.
    pub at: Duration,
    /// The new strategies.
    pub combination: Combination,
}

/// An application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum App {
    /// One long transfer.
    Bulk {
        /// The amount of data; `None` for a transfer until the end of the run.
        size: Option<ByteCount>,
    },
    /// Sequential requests and responses on one connection.
    RequestResponse {
        /// The size of a request.
        request: ByteCount,
        /// The size of its response.
        response: ByteCount,
        /// The mean pause between a response and the next request, exponentially distributed; zero
        /// for no pause.
        think: Duration,
        /// The number of requests; `None` for requests until the end of the run.
        count: Option<u64>,
    },
    /// Many short transfers, each on a new connection.
    ShortFlows {
        /// The smallest and the largest size; sizes are uniformly distributed between them.
        size: (ByteCount, ByteCount),
        /// The mean pause between the end of a transfer and the start of the same user's next one.
        gap: Duration,
        /// Whether pauses are Pareto-distributed (shape 1.5) instead of constant.
        pareto: bool,
        /// The number of users, each with one transfer at a time.
        users: u32,
    },
    /// A message that is echoed repeatedly, on one connection.
    PingPong {
        /// The size of the message.
        size: ByteCount,
        /// The number of round trips; `None` for round trips until the end of the run.
        count: Option<u64>,
    },
}

impl App {
    fn is_random(&self) -> bool {
        match self {
            Self::Bulk { .. } | Self::PingPong { .. } => false,
            Self::RequestResponse { think, .. } => !think.is_zero(),
            Self::ShortFlows { size: (smallest, largest), gap, .. } => {
                smallest != largest || !gap.is_zero()
            }
        }
    }
}
