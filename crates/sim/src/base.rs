//! A base station, and its peak memory.

use airtcp_basestation::station::StationError;
use airtcp_basestation::{Station, StationConfig};
use airtcp_link::Way;
use airtcp_types::{Event, Instant, Node, Packet, PortId};

use crate::StationMemory;

/// A [`Station`] whose memory is measured after every call.
#[derive(Debug)]
pub(crate) struct Base {
    station: Station,
    most: StationMemory,
}

impl Base {
    pub(crate) fn new(config: &StationConfig) -> Result<Self, StationError> {
        Ok(Self { station: Station::new(config)?, most: StationMemory::default() })
    }

    pub(crate) fn make_events(&mut self) {
        self.station.set_events(true);
    }

    pub(crate) const fn station(&self) -> &Station {
        &self.station
    }

    /// Returns the peak of each kind of memory, and of the total.
    pub(crate) const fn most(&self) -> StationMemory {
        self.most
    }

    fn look(&mut self, now: Instant) {
        let status = self.station.status(now);
        let (_, queued) = self.station.radio().queued(Way::Forth, None);
        let held = status.held_bytes;
        // The flows' memory includes the cache.
        let now = StationMemory {
            flows: (status.memory - status.cached) as u64,
            cached: status.cached as u64,
            queued: queued as u64,
            held: held as u64,
            all: (status.memory + queued + held) as u64,
        };
        self.most = self.most.max(now);
    }
}

impl Node for Base {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        self.station.handle_packet(now, port, packet);
        self.look(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.station.handle_timeout(now);
        self.look(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.station.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.station.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.station.poll_event()
    }
}
