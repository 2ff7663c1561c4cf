//! A link: two directions on a shared or a full-duplex medium.

use airtcp_types::{ByteCount, Event, Instant, Node, Packet, PortId};

use crate::direction::Direction;
use crate::ledger::Ledger;
use crate::medium::Medium;
use crate::rate::Serialiser;
use crate::spec::{LinkSpec, RateSpec, Way};
use crate::{Counters, Occupancy, Trace};

/// An emulated link: two directions between port 0 and port 1. Forth is from port 0 to port 1.
///
/// Each direction is a policer, a queue, a rate, a channel with errors, a delay and an aggregation
/// into bursts, as its [`LinkSpec`] describes them; see the crate's page.
///
/// A link that is polled late delivers late, but drops the same packets and keeps its rate.
#[derive(Clone, Debug)]
pub struct Link {
    directions: [Direction; 2],
    /// Present if the directions share the medium (half duplex).
    medium: Option<Medium>,
    unknown_port: u64,
}

/// The reason why a link cannot be created.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinkError {
    /// The trace that the description names could not be read.
    #[error("trace {file}: {reason}")]
    Trace {
        /// The trace's name in the description.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Half duplex combined with a trace. A trace says when *its* direction may send, so there is
    /// no medium to share.
    #[error("`half` requires `rate`: it cannot be combined with a trace")]
    HalfDuplexTrace,
}

impl Link {
    /// Creates a link with `forth` from port 0 to port 1 and `back` in the other direction.
    ///
    /// The link is half duplex if either description says so.
    ///
    /// # Errors
    ///
    /// [`LinkError::Trace`] if a description names a trace: use [`Link::with_traces`] for those.
    pub fn new(forth: &LinkSpec, back: &LinkSpec) -> Result<Self, LinkError> {
        Self::with_traces(forth, back, |_| Err("traces are read by the caller".to_owned()))
    }

    /// Creates a link like [`Link::new`], with a function that loads traces by name: this crate
    /// opens no files.
    ///
    /// # Errors
    ///
    /// [`LinkError::Trace`] with the reason that `read` returned, and
    /// [`LinkError::HalfDuplexTrace`].
    pub fn with_traces(
        forth: &LinkSpec,
        back: &LinkSpec,
        mut read: impl FnMut(&str) -> Result<Trace, String>,
    ) -> Result<Self, LinkError> {
        let half = forth.half.is_some() || back.half.is_some();
        let mut direction = |spec: &LinkSpec, way| {
            let serialiser = match &spec.rate {
                RateSpec::Unlimited => Serialiser::Unlimited,
                RateSpec::Constant { rate, overhead } => {
                    Serialiser::Constant { rate: *rate, overhead: *overhead }
                }
                RateSpec::Trace(_) if half => return Err(LinkError::HalfDuplexTrace),
                RateSpec::Trace(file) => {
                    let trace = read(file)
                        .map_err(|reason| LinkError::Trace { file: file.clone(), reason })?;
                    Serialiser::Trace { trace, next: 0, left: 0 }
                }
            };
            Ok(Direction::new(spec, way, serialiser, half))
        };
        let directions = [direction(forth, Way::Forth)?, direction(back, Way::Back)?];
        Ok(Self { directions, medium: half.then(Medium::new), unknown_port: 0 })
    }

    /// Enables or disables an [`Event`] for each packet that is dropped, corrupted, marked or
    /// duplicated.
    ///
    /// An event contains a copy of the packet; without events packets are not copied. At most
    /// 65,536 events are queued in each direction; further ones are discarded and counted
    /// ([`missed_events`](Self::missed_events)). Events do not change what the link does to
    /// packets.
    pub fn set_events(&mut self, on: bool) {
        self.directions.iter_mut().for_each(|direction| direction.ledger.set_events(on));
    }

    /// Returns the number of events discarded since [`set_events`](Self::set_events) because the
    /// queue was full.
    pub fn missed_events(&self) -> u64 {
        self.directions.iter().map(|direction| direction.ledger.missed_events()).sum()
    }

    /// Returns the counters of one direction.
    pub fn counters(&self, way: Way) -> &Counters {
        &self.directions[way as usize].ledger.counters
    }

    /// Returns the number of packets that one direction has dropped, by cause; causes that dropped
    /// none are left out. The causes are those of [`Fate::Dropped`](airtcp_types::Fate::Dropped).
    pub fn drops(&self, way: Way) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.directions[way as usize].ledger.drops()
    }

    /// Returns the number of packets dropped because they arrived on a port that a link does not
    /// have.
    pub fn unknown_port(&self) -> u64 {
        self.unknown_port
    }

    /// Returns the packets and bytes in the queue of one direction, without the packet in
    /// transmission, as of the last call with a time.
    pub fn queued(&self, way: Way) -> (usize, ByteCount) {
        let direction = &self.directions[way as usize];
        (direction.waiting(), direction.waiting_bytes())
    }

    /// Returns the queue length and the utilization of one direction, from the clock's origin to
    /// `now`.
    pub fn occupancy(&mut self, way: Way, now: Instant) -> Occupancy {
        self.advance(now);
        self.directions[way as usize].occupancy(now)
    }

    /// Returns the number of packets that one direction has received and neither forwarded nor
    /// dropped.
    pub fn held(&self, way: Way) -> usize {
        self.directions[way as usize].held()
    }

    /// Processes everything due up to `now`, in the order of time.
    fn advance(&mut self, now: Instant) {
        match &mut self.medium {
            None => self.directions.iter_mut().for_each(|direction| direction.advance(now)),
            Some(medium) => Self::advance_shared(&mut self.directions, medium, now),
        }
        self.directions.iter_mut().for_each(|direction| direction.gather(now));
    }

    /// Ends and starts transmissions up to `now`. The shared medium carries one frame at a time.
    fn advance_shared(directions: &mut [Direction; 2], medium: &mut Medium, now: Instant) {
        loop {
            let done = |way: &Way| directions[*way as usize].frame_done();
            let sends = Way::BOTH.into_iter().find_map(|way| Some((done(&way)?, way)));
            let Some((done, way)) = sends.filter(|(done, _)| *done <= now) else { return };
            directions[way as usize].end_frame();
            medium.end();
            Self::begin_shared(directions, medium, done);
        }
    }

    /// Starts a transmission on the shared medium if it is idle at `now`.
    fn begin_shared(directions: &mut [Direction; 2], medium: &mut Medium, now: Instant) {
        while let Some(way) = medium.turn([0, 1].map(|way| directions[way].waiting() > 0)) {
            // CoDel may drop everything that is queued; the direction gets another turn only if
            // packets are left.
            if directions[way as usize].begin_frame(now) {
                medium.begin(way);
            }
        }
    }
}

impl Node for Link {
    /// Queues a packet in its direction, or drops and counts it. A link carries any bytes.
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        self.advance(now);
        let Some(direction) = self.directions.get_mut(usize::from(port.0)) else {
            self.unknown_port += 1;
            return;
        };
        direction.push(now, packet);
        match &mut self.medium {
            None => direction.begin_frame_if_idle(now),
            Some(medium) => Self::begin_shared(&mut self.directions, medium, now),
        }
        self.advance(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// Returns the packet that arrived first; at a tie, that of the forward direction.
    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.advance(now);
        let due = |way: Way| self.directions[way as usize].due().filter(|due| *due <= now);
        let way = match (due(Way::Forth), due(Way::Back)) {
            (Some(forth), Some(back)) if back < forth => Way::Back,
            (Some(_), _) => Way::Forth,
            (None, Some(_)) => Way::Back,
            (None, None) => return None,
        };
        Some((PortId(way.other() as u16), self.directions[way as usize].pop()?))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (self.directions[0].next(), self.directions[1].next()) {
            (Some(forth), Some(back)) => Some(forth.min(back)),
            (forth, back) => forth.or(back),
        }
    }

    /// Returns the next event, in the order of time; see [`Link::set_events`].
    fn poll_event(&mut self) -> Option<Event> {
        let [forth, back] = &mut self.directions;
        Ledger::take_first(&mut forth.ledger, &mut back.ledger)
    }
}
