//! Running a scenario.

use std::time::Duration;

use airtcp_basestation::station::StationCounters;
use airtcp_link::radio::AirCounters;
use airtcp_link::{Counters, Link, Way};
use airtcp_rrtp::Info;
use airtcp_types::{Crossing, Event, Instant, NodeId, Observer, Packet};

use crate::check::check;
use crate::measure::{Counts, Measure};
use crate::network::{Network, Placed};
use crate::state::report;
use crate::{
    Cancel, FlowResult, LinkResult, RadioResult, RrtpResult, RunResult, Scenario, Sender, SimError,
    State, StationMemory, StationResult, Topology, jain,
};

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// A host.
    Host,
    /// A link.
    Link,
    /// A router.
    Router,
    /// A base station with its radio.
    BaseStation,
}

/// A scenario that has been built and has not run yet.
///
/// ```
/// # use airtcp_sim::{FlowSpec, Scenario, Simulation, Topology, Wire};
/// # let wire = Wire::both("rate 10mbit delay 10ms limit 17".parse()?);
/// # let scenario = Scenario {
/// #     flows: vec![FlowSpec::new("sack/reno".parse()?)],
/// #     ..Scenario::new("one flow", Topology::Chain { wires: vec![wire] })
/// # };
/// let simulation = Simulation::new(&scenario)?;
/// assert_eq!(simulation.nodes()[0].0, "left");
/// assert!(simulation.run(None)?.flows[0].goodput > 9e6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Simulation<'s> {
    scenario: &'s Scenario,
    network: Network,
}

impl<'s> Simulation<'s> {
    /// Builds the network of a scenario.
    ///
    /// # Errors
    ///
    /// [`SimError`] if the scenario is invalid.
    pub fn new(scenario: &'s Scenario) -> Result<Self, SimError> {
        check(scenario)?;
        Ok(Self { scenario, network: Network::new(scenario)? })
    }

    /// Makes the run end with [`SimError::Cancelled`] as soon as `cancel` is set.
    #[must_use]
    pub fn with_cancel(mut self, cancel: &Cancel) -> Self {
        self.network.world.set_cancel(cancel.clone());
        self
    }

    /// Returns the name and kind of every node, indexed by [`NodeId`].
    pub fn nodes(&self) -> &[(String, NodeKind)] {
        &self.network.nodes
    }

    /// Runs the scenario. An observer sees all packets and events, and does not change the result.
    ///
    /// # Errors
    ///
    /// [`SimError`] if the simulated time stops, an application's socket call fails, an application
    /// reads other data than was sent, or the run is cancelled.
    pub fn run(self, observer: Option<&mut dyn Observer>) -> Result<RunResult, SimError> {
        self.run_to_end(observer, None)
    }

    /// Runs the scenario as [`run`](Self::run) does, with the same result, and passes the state of
    /// every sender and queue to `on_state` after each `interval` of virtual time.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), or [`SimError::Senseless`] for an interval of zero.
    pub fn run_with_states(
        self,
        observer: Option<&mut dyn Observer>,
        interval: Duration,
        on_state: &mut dyn FnMut(&State),
    ) -> Result<RunResult, SimError> {
        if interval.is_zero() {
            return Err(SimError::Senseless {
                place: "scenario".to_owned(),
                what: "the sampling interval of states must be above zero".to_owned(),
            });
        }
        self.run_to_end(observer, Some(Series { interval, on_state }))
    }

    fn run_to_end(
        self,
        observer: Option<&mut dyn Observer>,
        mut series: Option<Series<'_>>,
    ) -> Result<RunResult, SimError> {
        let Self { scenario, mut network } = self;
        if observer.is_some() {
            network.make_events();
        }
        let first_flows = std::mem::take(&mut network.first_flows);
        let measure = Measure::new(network.flows.len(), first_flows, scenario.samples);
        let mut watch = Watch { measure, packets: 0, last: Instant::ZERO, other: observer };
        let mut next = Instant::ZERO;
        let mut advance = |network: &mut Network, watch: &mut Watch<'_>, end| {
            if let Some(Series { interval, on_state }) = &mut series {
                while next + *interval <= end {
                    next += *interval;
                    network.world.run_until(next, watch)?;
                    network.world.check_cancelled()?;
                    report(network, &scenario.flows, on_state);
                }
            }
            network.world.run_until(end, watch)?;
            network.world.check_cancelled()
        };
        let before = match scenario.warm_up.checked_sub(Duration::from_nanos(1)) {
            None => vec![0; network.flows.len()],
            Some(before) => {
                advance(&mut network, &mut watch, Instant::ZERO + before)?;
                network.flows.iter().map(|flow| network.unread(flow)).collect()
            }
        };
        let at_warm_up = link_counters(&mut network);
        advance(&mut network, &mut watch, Instant::ZERO + scenario.duration)?;
        let links = link_results(scenario, &mut network, &at_warm_up);
        let station = station_result(scenario, &network);
        check_applications(scenario, &network, &links, station.as_ref())?;
        let flows: Vec<FlowResult> = network
            .flows
            .iter()
            .zip(watch.measure.flows.into_iter().zip(before))
            .map(|(placed, (counts, before))| {
                flow_result(scenario, &network, placed, counts, before)
            })
            .collect();
        let goodput: Vec<f64> = flows.iter().map(|flow| flow.goodput).collect();
        Ok(RunResult {
            name: scenario.name.clone(),
            seed: scenario.seed,
            flows,
            links,
            station,
            jain: jain(&goodput),
            events: network.world.touches(),
            packets: watch.packets,
            end: watch.last.as_secs_f64(),
        })
    }
}

/// Builds and runs a scenario, as [`Simulation::run`] does.
///
/// # Errors
///
/// [`SimError`] if the scenario is invalid or fails.
pub fn run(
    scenario: &Scenario,
    observer: Option<&mut dyn Observer>,
) -> Result<RunResult, SimError> {
    Simulation::new(scenario)?.run(observer)
}

/// Builds and runs a scenario, as [`Simulation::run_with_states`] does.
///
/// # Errors
///
/// [`SimError`] if the scenario is invalid or fails, or the interval is zero.
pub fn run_with_states(
    scenario: &Scenario,
    observer: Option<&mut dyn Observer>,
    interval: Duration,
    on_state: &mut dyn FnMut(&State),
) -> Result<RunResult, SimError> {
    Simulation::new(scenario)?.run_with_states(observer, interval, on_state)
}

/// The sampling interval and the receiver of states.
struct Series<'a> {
    interval: Duration,
    on_state: &'a mut dyn FnMut(&State),
}

/// Passes everything to the measurement and to the caller's observer.
struct Watch<'a> {
    measure: Measure,
    /// Packets sent by hosts.
    packets: u64,
    /// The time of the last packet.
    last: Instant,
    other: Option<&'a mut dyn Observer>,
}

impl Observer for Watch<'_> {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        self.last = now;
        self.packets += u64::from(crossing == Crossing::Out && self.measure.is_host(node));
        self.measure.on_packet(now, node, crossing, packet);
        if let Some(other) = &mut self.other {
            other.on_packet(now, node, crossing, packet);
        }
    }

    fn on_event(&mut self, node: NodeId, event: &Event) {
        self.measure.on_event(node, event);
        if let Some(other) = &mut self.other {
            other.on_event(node, event);
        }
    }
}

/// Returns an error if a socket call of an application failed, or an application read wrong data.
fn check_applications(
    scenario: &Scenario,
    network: &Network,
    links: &[LinkResult],
    station: Option<&StationResult>,
) -> Result<(), SimError> {
    let of_radio = station.into_iter().flat_map(|station| &station.radio);
    let counters = links.iter().map(|link| &link.counters).chain(of_radio.map(|way| &way.counters));
    let unnoticed = counters.into_iter().any(|counters| counters.corrupted_unnoticed > 0);
    for placed in &network.flows {
        let flow = || scenario.flows[placed.spec].name.clone();
        for end in [placed.caller, placed.answerer] {
            let Some(meter) = network.meter(end) else { continue };
            if let Some(source) = meter.refused {
                return Err(SimError::Host { flow: flow(), source });
            }
            // Checksums do not detect all flipped bits.
            if let Some(offset) = meter.wrong.filter(|_| !unnoticed) {
                return Err(SimError::Content { flow: flow(), offset });
            }
        }
    }
    Ok(())
}

/// Calculates the result of a flow. `before` is the number of bytes that had arrived before the end
/// of the warm-up and were read after it.
fn flow_result(
    scenario: &Scenario,
    network: &Network,
    placed: &Placed,
    mut counts: Counts,
    before: u64,
) -> FlowResult {
    let spec = &scenario.flows[placed.spec];
    let meters: Vec<_> =
        [placed.caller, placed.answerer].into_iter().filter_map(|end| network.meter(end)).collect();
    let sum = |of: fn(&crate::app::Meter) -> u64| -> u64 { meters.iter().map(|m| of(m)).sum() };
    // Goodput counts the bytes that arrived within the interval, in any order. Bytes that arrived
    // before it behind a hole do not count.
    let counted = (sum(|meter| meter.counted) + network.unread(placed)).saturating_sub(before);
    let finished = meters.iter().filter_map(|meter| meter.finished).max();
    // Only the end that opens a connection measures exchanges.
    let caller = meters.first();
    counts.samples.exchanges = caller.and_then(|meter| meter.samples.clone()).unwrap_or_default();
    let interval = (scenario.duration - scenario.warm_up).as_secs_f64();
    let rrtp = rrtp_result(network, placed, &mut counts);
    if let [Some(sender), Some(receiver)] =
        [placed.caller, placed.answerer].map(|end| network.udp(end))
    {
        (counts.segments_sent, counts.lost) = (sender.sent, receiver.missed());
    }
    let of_tcp = matches!(spec.sender, Sender::Tcp(_));
    FlowResult {
        name: spec.name.clone(),
        copy: placed.copy,
        combination: spec.sender.to_string(),
        bytes: sum(|meter| meter.bytes),
        goodput: counted as f64 * 8.0 / interval,
        segments_sent: counts.segments_sent,
        retransmissions: counts.retransmissions,
        spurious: counts.spurious,
        timeouts: of_tcp.then_some(counts.timeouts),
        lost: counts.lost,
        reductions: of_tcp.then_some(counts.reductions),
        recoveries: of_tcp.then(|| counts.recoveries.summary()),
        rtt: counts.rtt.summary(),
        finished: finished.map(|at| at.since(placed.start).as_secs_f64()),
        exchanges: caller.map(|meter| meter.exchanges.summary()).unwrap_or_default(),
        broken: sum(|meter| meter.broken),
        rrtp,
        samples: scenario.samples.then_some(counts.samples),
    }
}

/// Returns the RRTP counters of both ends; those that TCP has too go into `counts`.
fn rrtp_result(network: &Network, placed: &Placed, counts: &mut Counts) -> Option<RrtpResult> {
    let [sender, receiver] = [placed.caller, placed.answerer].map(|end| network.rrtp(end));
    let (sender, receiver) = (sender?, receiver?);
    let (sent, came) = (sender.info(), receiver.info());
    let of = |info: &Option<Info>, count: fn(&Info) -> u64| info.as_ref().map_or(0, count);
    let congestive_losses = of(&came, |info| info.congestive_losses);
    let wireless_losses = of(&came, |info| info.wireless_losses);
    counts.segments_sent = of(&sent, |info| info.packets_sent);
    counts.retransmissions = of(&sent, |info| info.retransmissions);
    counts.spurious = receiver.spurious;
    counts.lost = congestive_losses + wireless_losses;
    counts.rtt = sender.rtt;
    Some(RrtpResult {
        packets_received: of(&came, |info| info.packets_received),
        congestive_losses,
        wireless_losses,
        rate: of(&sent, |info| info.rate.bits_per_sec()) as f64,
    })
}

/// The present counters of each direction of each link.
fn link_counters(network: &mut Network) -> Vec<[Counters; 2]> {
    let links = network.links.clone();
    let counters = |link: &mut Link| Way::BOTH.map(|way| *link.counters(way));
    links.iter().filter_map(|(id, _)| network.link(*id).map(counters)).collect()
}

fn link_results(
    scenario: &Scenario,
    network: &mut Network,
    at_warm_up: &[[Counters; 2]],
) -> Vec<LinkResult> {
    let end = Instant::ZERO + scenario.duration;
    let mut results = Vec::new();
    for ((id, has_rate), before) in network.links.clone().into_iter().zip(at_warm_up) {
        let name = network.nodes[id.0 as usize].0.clone();
        let Some(link) = network.link(id) else { continue };
        for way in Way::BOTH {
            let occupancy = link.occupancy(way, end);
            results.push(LinkResult {
                name: name.clone(),
                way: if way == Way::Forth { "forth" } else { "back" },
                counters: *link.counters(way),
                at_warm_up: before[way as usize],
                drops: link.drops(way).filter(|(_, packets)| *packets > 0).collect(),
                queue_mean: occupancy.mean,
                queue_max: occupancy.max as u64,
                utilisation: has_rate[way as usize].then_some(occupancy.busy),
            });
        }
    }
    results
}

fn station_result(scenario: &Scenario, network: &Network) -> Option<StationResult> {
    let Topology::Wireless { station: config, .. } = &scenario.topology else { return None };
    let radio = |name, way| {
        let (mut counters, mut air) = (Counters::default(), AirCounters::default());
        for radio in network.bases().map(|base| base.station().radio()) {
            counters += *radio.counters(way);
            air += radio.air_counters(way, None);
        }
        RadioResult::of(name, counters, air)
    };
    let mut counters = StationCounters::default();
    let mut memory = StationMemory::default();
    for base in network.bases() {
        counters += *base.station().counters();
        memory = memory.plus(base.most());
    }
    Some(StationResult {
        policy: config.policy,
        arq: config.arq.name(),
        counters,
        radio: [radio("forth", Way::Forth), radio("back", Way::Back)],
        memory,
    })
}
