//! The network of a scenario.

mod build;
mod element;
mod ends;

use airtcp_link::Link;
use airtcp_types::{Instant, NodeId};

use crate::app::{Meter, RrtpEnd, UdpEnd};
use crate::base::Base;
use crate::world::World;
use crate::{NodeKind, Scenario, SimError, Topology};
use build::Builder;
pub(crate) use element::Element;
pub(crate) use ends::UDP_HEADERS;

/// Kinds of random streams; the low 32 bits of a stream's number are an index.
const LINKS: u64 = 1 << 32;
const FLOWS: u64 = 2 << 32;
const HOSTS: u64 = 3 << 32;
const RADIOS: u64 = 4 << 32;
const KEYS: u64 = 5 << 32;

/// One copy of a flow.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The index of the flow in the scenario.
    pub(crate) spec: usize,
    pub(crate) copy: u32,
    pub(crate) start: Instant,
    /// The host of the end that opens connections, and the index of its application.
    pub(crate) caller: (NodeId, usize),
    /// The host of the other end, and the index of its application.
    pub(crate) answerer: (NodeId, usize),
}

/// The network of a scenario.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) world: World<Element>,
    pub(crate) nodes: Vec<(String, NodeKind)>,
    pub(crate) flows: Vec<Placed>,
    /// Every link, and whether each direction has a rate.
    pub(crate) links: Vec<(NodeId, [bool; 2])>,
    /// The base stations: none, one, or one for each mobile.
    pub(crate) bases: Vec<NodeId>,
    /// For each host its first flow; `None` for other nodes.
    pub(crate) first_flows: Vec<Option<u32>>,
}

impl Network {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, SimError> {
        let builder = Builder {
            scenario,
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

    /// Enables the events of links and base stations.
    pub(crate) fn make_events(&mut self) {
        let links = self.links.iter().map(|(link, _)| *link);
        for node in links.chain(self.bases.iter().copied()) {
            match self.world.node_mut(node) {
                Some(Element::Link(link)) => link.set_events(true),
                Some(Element::BaseStation(base)) => base.make_events(),
                _ => {}
            }
        }
    }

    pub(crate) fn meter(&self, (node, application): (NodeId, usize)) -> Option<&Meter> {
        match self.world.node(node)? {
            Element::Host(host) => host.meter(application),
            _ => None,
        }
    }

    /// Returns an end of an RRTP flow.
    pub(crate) fn rrtp(&self, (node, application): (NodeId, usize)) -> Option<&RrtpEnd> {
        match self.world.node(node)? {
            Element::Host(host) => host.rrtp(application),
            _ => None,
        }
    }

    /// Returns an end of a UDP flow.
    pub(crate) fn udp(&self, (node, application): (NodeId, usize)) -> Option<&UdpEnd> {
        match self.world.node(node)? {
            Element::Host(host) => host.udp(application),
            _ => None,
        }
    }

    /// The number of bytes that have arrived at either end of a flow behind a hole.
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
