//! Construction of a network: routers, links, base stations, hosts and their connections.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use airtcp_basestation::station::StationError;
use airtcp_basestation::{Side, StationConfig};
use airtcp_link::{Link, LinkSpec, RadioSpec};
use airtcp_types::rng::Stream;
use airtcp_types::{NodeId, PortId};

use crate::base::Base;
use crate::measure::FIRST_PORT;
use crate::router::Router;
use crate::{NodeKind, Radios, Scenario, SimError, Wire};

use super::ends::Bench;
use super::{Element, LINKS, Network, RADIOS};

/// The base addresses of the hosts on the left and on the right.
const LEFT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 0);

pub(super) struct Builder<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) hosts: u64,
    pub(super) network: Network,
}

impl Builder<'_> {
    /// Builds a dumbbell. With a station, the hosts on the right are mobiles behind it.
    pub(super) fn dumbbell(
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

    /// Builds a chain: wires in a row with a host at each end, and a host with a router wherever
    /// flows start or end between two wires.
    pub(super) fn chain(mut self, wires: &[Wire]) -> Result<Network, SimError> {
        let copies: Vec<_> = self.copies().collect();
        // A position in the chain is the number of wires before it.
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

    /// Returns every flow's copies, in the scenario's order.
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

    /// Connects a host and a router, by a link if it has any effect.
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
        let base = Base::new(&config).map_err(senseless)?;
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
        let link = Link::with_traces(&forth, &back, read)
            .map_err(|source| SimError::Link { name: name.clone(), source })?;
        let id = self.add(name, NodeKind::Link, Element::Link(Box::new(link)), None);
        self.network.links.push((id, [forth.has_rate(), back.has_rate()]));
        Ok(id)
    }
}

/// The port of a router in a chain towards hosts at a position: 0 to the left, 1 its own host, 2 to
/// the right.
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

pub(super) fn address(side: Ipv4Addr, index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(side.to_bits() + index + 1)
}
