//! The node between the two devices: a bridge or a base station.

use airtcp_basestation::home::ForeignAgent;
use airtcp_basestation::station::{MobileChange, Reach};
use airtcp_basestation::{Bridge, Handoff, Station};
use airtcp_types::{Event, Instant, Node, Packet, PortId};

use super::settings::Plan;

/// The capacity of a bridge's queue, in packets: a driver leaves at most one batch of each side
/// there.
const CAPACITY: usize = 512;

/// A base station, or a plain bridge.
#[derive(Debug)]
pub(super) enum Middle {
    Bridge(Bridge),
    Station(Box<Station>),
    /// A station that hands mobiles over to others, and is their foreign agent.
    Handoff(Box<ForeignAgent<Handoff>>),
}

impl Middle {
    /// Creates what the settings describe. With an observer, a station records events.
    ///
    /// # Errors
    /// The settings contradict each other.
    pub(super) fn new(plan: &Plan, has_observer: bool) -> anyhow::Result<Self> {
        let Some(config) = &plan.station else { return Ok(Self::Bridge(Bridge::new(CAPACITY))) };
        let mut station = Station::new(config)?;
        station.set_events(has_observer);
        station.set_mobile_events(true);
        let Some(of) = &plan.handoff else { return Ok(Self::Station(Box::new(station))) };
        let handoff = Handoff::new(station, of.handoff.clone());
        Ok(Self::Handoff(Box::new(ForeignAgent::new(handoff, of.relay.clone())?)))
    }

    /// Returns the station; a bridge has none.
    pub(super) fn station(&self) -> Option<&Station> {
        match self {
            Self::Bridge(_) => None,
            Self::Station(station) => Some(station),
            Self::Handoff(agent) => Some(agent.inner().station()),
        }
    }

    /// Returns the station for changes; a bridge has none.
    pub(super) fn station_mut(&mut self) -> Option<&mut Station> {
        match self {
            Self::Bridge(_) => None,
            Self::Station(station) => Some(station),
            Self::Handoff(agent) => Some(agent.inner_mut().station_mut()),
        }
    }

    fn node(&self) -> &dyn Node {
        match self {
            Self::Bridge(bridge) => bridge,
            Self::Station(station) => &**station,
            Self::Handoff(agent) => &**agent,
        }
    }

    fn node_mut(&mut self) -> &mut dyn Node {
        match self {
            Self::Bridge(bridge) => bridge,
            Self::Station(station) => &mut **station,
            Self::Handoff(agent) => &mut **agent,
        }
    }

    /// Logs the changes of the mobiles.
    fn log(&mut self) {
        if let Some(station) = self.station_mut() {
            log(station);
        }
    }
}

/// Logs the changes of the mobiles.
fn log(station: &mut Station) {
    while let Some(event) = station.poll_mobile_event() {
        let change = match event.change {
            MobileChange::Heard => "heard",
            MobileChange::Forgotten => "forgotten: another one took its place",
            MobileChange::Reach(Reach::There) => "joined",
            MobileChange::Reach(Reach::Leaving) => "is about to leave",
            MobileChange::Reach(Reach::Gone) => "left",
            MobileChange::Reach(Reach::Lost) => "stayed away: its flows are released",
        };
        tracing::info!(mobile = &*event.mobile, "{change}");
    }
}

impl Node for Middle {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        self.node_mut().handle_packet(now, port, packet);
        self.log();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node_mut().handle_timeout(now);
        self.log();
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.node_mut().poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node().poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.node_mut().poll_event()
    }
}
