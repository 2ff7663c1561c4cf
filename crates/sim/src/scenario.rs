//! Scenarios.

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

    /// Whether anything is drawn at random that shows: by a link, by an application, or by a
    /// sender's strategy. If nothing is, all seeds have the same result.
    pub fn is_random(&self) -> bool {
        let of_flows = self.flows.iter().filter_map(|flow| flow.access.as_ref());
        let (shared, in_a_row): (Vec<_>, &[Wire]) = match &self.topology {
            Topology::Dumbbell { access, bottleneck } => (vec![access, bottleneck], &[]),
            Topology::Chain { wires } => (Vec::new(), wires),
            // Who contends for the air draws its backoff.
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
    /// The same link in both directions, with independent random numbers.
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
    /// Every flow has a host of its own on the left and on the right, each on its access wire; two
    /// routers, and the bottleneck between them.
    ///
    /// An access wire's forth is from left to right too: of the left one to the router, of the
    /// right one from it.
    Dumbbell {
        /// The access wires of flows that name none.
        access: Wire,
        /// The wire between the routers.
        bottleneck: Wire,
    },
    /// A dumbbell whose right hosts are mobiles: behind the bottleneck, which is the wired
    /// Internet, stands a base station with a radio, or one for each. Mobiles have no access wires.
    Wireless {
        /// The access wires of the fixed hosts of flows that name none.
        access: Wire,
        /// The wire between the fixed hosts' router and the base station.
        bottleneck: Wire,
        /// The base station and its radio.
        station: StationConfig,
        /// Whose it is.
        radios: Radios,
    },
    /// Two hosts, one at each end, and wires in a row between them, without routers; all flows
    /// share the hosts. A chain of one wire is the simplest network. A flow whose
    /// [`FlowSpec::wires`] begin or end between two wires has its host at a router there.
    Chain {
        /// From left to right.
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
    /// The right host does.
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
    /// The transport of both ends, and its rules. RRTP and UDP carry [`App::Bulk`] alone.
    pub sender: Sender,
    /// TCP: the profile of both ends.
    pub profile: Profile,
    /// Its direction.
    pub way: FlowDirection,
    /// Its application.
    pub app: App,
    /// The start of the first copy.
    pub start: Duration,
    /// The interval between the starts of copies.
    pub stagger: Duration,
    /// When it stops, from the run's start: an application writes no more, begins no request and no
    /// transfer. What it has written is still delivered.
    pub stop: Option<Duration>,
    /// TCP: other strategies that its connection changes to while it runs, at both ends.
    pub changes: Vec<Change>,
    /// In a chain: the first and the last wire it crosses, counted from 1; `None` for all of them.
    pub wires: Option<(usize, usize)>,
    /// The MTU (bytes).
    pub mtu: u16,
    /// TCP: whether timestamps are offered.
    pub timestamps: bool,
    /// TCP: whether SACK is offered.
    pub sack: bool,
    /// TCP: whether the sender paces even if its control sets no rate.
    pub pacing: bool,
    /// TCP: whether connections start with what others between the same hosts have learned of the
    /// path.
    pub path_memory: bool,
    /// The size of the receive buffer, from the start; without it, TCP's grows to the stack's
    /// default, and RRTP has its own.
    pub receive_buffer: Option<ByteCount>,
    /// The maximum size of the send buffer, if not the transport's default.
    pub send_buffer: Option<ByteCount>,
    /// How long connections wait for an answer; without it, for as many time-outs in a row as the
    /// stack does, and with RRTP as long as its default has it.
    pub user_timeout: Option<Duration>,
    /// How late its hosts wake, as on a busy machine: a packet that arrived or a timer that expired
    /// waits this long, and the host then works all that is due. In a chain, where flows share the
    /// hosts, the longest delay counts.
    pub wake_up_delay: Duration,
    /// Whether its mobile suppresses duplicate ACKs according to the base station's marks
    /// (TCP-ECN).
    pub mark_aware: bool,
    /// The access wires of its hosts, in a dumbbell, if not the topology's; of a fixed host beside
    /// a mobile.
    pub access: Option<Wire>,
}

impl FlowSpec {
    /// One bulk transfer from left to right until the end, named after its sender.
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
    /// Where its hosts are in a chain, by the number of wires before them.
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
        /// How much; without it, as much as there is time for.
        size: Option<ByteCount>,
    },
    /// Sequential requests and responses on one connection.
    RequestResponse {
        /// The size of a request.
        request: ByteCount,
        /// The size of its response.
        response: ByteCount,
        /// The mean pause between a response and the next request, exponentially distributed; zero
        /// for none.
        think: Duration,
        /// How many requests; without it, as many as there is time for.
        count: Option<u64>,
    },
    /// Many short transfers, each on a new connection.
    ShortFlows {
        /// The smallest and the largest size; those between are equally likely.
        size: (ByteCount, ByteCount),
        /// The mean pause between the end of a transfer and the begin of the same user's next.
        gap: Duration,
        /// Whether pauses are Pareto-distributed (of shape 1.5); they are all alike without.
        pareto: bool,
        /// How many transfer at the same time.
        users: u32,
    },
    /// A message that is echoed, on one connection.
    PingPong {
        /// The size of the message.
        size: ByteCount,
        /// How many times back and forth; without it, as many as there is time for.
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
