//! The node between the two devices: a bridge or a base station.

use airtcp_basestation::{Bridge, Station, StationConfig};
use airtcp_types::{Event, Instant, Node, Packet, PortId};

/// Packets that wait in a bridge: a batch of each side is all that a driver leaves there.
const CAPACITY: usize = 512;

/// A station, or no more than a bridge.
#[derive(Debug)]
pub(super) enum Middle {
    Bridge(Bridge),
    Station(Box<Station>),
}

impl Middle {
    /// The station described; a bridge if none is. Events are for an observer.
    ///
    /// # Errors
    /// Settings that contradict each other.
    pub(super) fn new(config: Option<&StationConfig>, has_observer: bool) -> anyhow::Result<Self> {
        let Some(config) = config else { return Ok(Self::Bridge(Bridge::new(CAPACITY))) };
        let mut station = Box::new(Station::new(config)?);
        station.set_events(has_observer);
        Ok(Self::Station(station))
    }
}

impl Node for Middle {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        match self {
            Self::Bridge(bridge) => bridge.handle_packet(now, port, packet),
            Self::Station(station) => station.handle_packet(now, port, packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Bridge(bridge) => bridge.handle_timeout(now),
            Self::Station(station) => station.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        match self {
            Self::Bridge(bridge) => bridge.poll_transmit(now),
            Self::Station(station) => station.poll_transmit(now),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Bridge(bridge) => bridge.poll_timeout(),
            Self::Station(station) => station.poll_timeout(),
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Bridge(bridge) => bridge.poll_event(),
            Self::Station(station) => station.poll_event(),
        }
    }
}
