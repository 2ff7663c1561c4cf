//! The node between the two devices: a bridge or a base station.

use airtcp_basestation::station::{MobileChange, Reach};
use airtcp_basestation::{Bridge, Station, StationConfig};
use airtcp_types::{Event, Instant, Node, Packet, PortId};

/// The capacity of a bridge's queue, in packets: a driver leaves at most one batch of each side
/// there.
const CAPACITY: usize = 512;

/// A base station, or a plain bridge.
#[derive(Debug)]
pub(super) enum Middle {
    Bridge(Bridge),
    Station(Box<Station>),
}

impl Middle {
    /// Creates a station, or a bridge without `config`. With an observer, the station records
    /// events.
    ///
    /// # Errors
    /// The settings contradict each other.
    pub(super) fn new(config: Option<&StationConfig>, has_observer: bool) -> anyhow::Result<Self> {
        let Some(config) = config else { return Ok(Self::Bridge(Bridge::new(CAPACITY))) };
        let mut station = Box::new(Station::new(config)?);
        station.set_events(has_observer);
        station.set_mobile_events(true);
        Ok(Self::Station(station))
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
        match self {
            Self::Bridge(bridge) => bridge.handle_packet(now, port, packet),
            Self::Station(station) => {
                station.handle_packet(now, port, packet);
                log(station);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Bridge(bridge) => bridge.handle_timeout(now),
            Self::Station(station) => {
                station.handle_timeout(now);
                log(station);
            }
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
