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
/// into bursts, as a [`LinkSpec`] describes them; see the crate's page.
///
/// If it is called late, it delivers late, but loses the same packets and keeps its rate.
#[derive(Clone, Debug)]
pub struct Link {
    directions: [Direction; 2],
    /// There if the directions share the air.
    medium: Option<Medium>,
    unknown_port: u64,
}

/// The reason why a link cannot be created.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinkError {
    /// The trace of the description could not be read.
    #[error("trace {file}: {reason}")]
    Trace {
        /// The name in the description.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Half duplex and a trace: a trace says when *its* direction may send, and leaves no air to
    /// share.
    #[error("`half` requires `rate`: it cannot be combined with a trace")]
    HalfDuplexTrace,
}

impl Link {
    /// Creates a link with `forth` from port 0 to port 1 and `back` in the other direction.
    ///
    /// It is half duplex if either says so.
    ///
    /// # Errors
    ///
    /// [`LinkError::Trace`] if a description names a trace: give those to [`Link::with_traces`].
    pub fn new(forth: &LinkSpec, back: &LinkSpec) -> Result<Self, LinkError> {
        Self::with_traces(forth, back, |_| Err("traces are read by the caller".to_owned()))
    }

    /// As [`Link::new`], with a function that loads traces by name: this crate opens no files.
    ///
    /// # Errors
    ///
    /// [`LinkError::Trace`] with the reason that `read` gave, and [`LinkError::HalfDuplexTrace`].
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
    /// An event has a copy of the packet; without events there is none. At most 65,536 wait to be
    /// taken in each direction; more are counted ([`missed_events`](Self::missed_events)). What a
    /// link does to packets is the same with and without.
    pub fn set_events(&mut self, on: bool) {
        self.directions.iter_mut().for_each(|direction| direction.ledger.set_events(on));
    }

    /// Events that found too many before them, since [`set_events`](Self::set_events).
    pub fn missed_events(&self) -> u64 {
        self.directions.iter().map(|direction| direction.ledger.missed_events()).sum()
    }

    /// The counters of one direction.
    pub fn counters(&self, way: Way) -> &Counters {
        &self.directions[way as usize].ledger.counters
    }

    /// Packets that one direction dropped so far, by cause, without the causes that dropped none.
    /// The causes are those of [`Fate::Dropped`](airtcp_types::Fate::Dropped).
    pub fn drops(&self, way: Way) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.directions[way as usize].ledger.drops()
    }

    /// Packets dropped because they came in on a port that a link does not have.
    pub fn unknown_port(&self) -> u64 {
        self.unknown_port
    }

    /// Packets and bytes that wait in the queue of one direction, without the one being sent, as of
    /// the last call that had a time.
    pub fn queued(&self, way: Way) -> (usize, ByteCount) {
        let direction = &self.directions[way as usize];
        (direction.waiting(), direction.waiting_bytes())
    }

    /// How full the queue and how busy the serialiser of one direction were, from the clock's
    /// origin to `now`.
    pub fn occupancy(&mut self, way: Way, now: Instant) -> Occupancy {
        self.advance(now);
        self.directions[way as usize].occupancy(now)
    }

    /// Packets that one direction has taken and not yet given or dropped.
    pub fn held(&self, way: Way) -> usize {
        self.directions[way as usize].held()
    }

    /// Works everything due up to `now`, in the order of time.
    fn advance(&mut self, now: Instant) {
        match &mut self.medium {
            None => self.directions.iter_mut().for_each(|direction| direction.advance(now)),
            Some(medium) => Self::advance_shared(&mut self.directions, medium, now),
        }
        self.directions.iter_mut().for_each(|direction| direction.gather(now));
    }

    /// Ends and begins frames up to `now`. On the shared air there is one at a time.
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

    /// Puts on the shared air what may be at `now`.
    fn begin_shared(directions: &mut [Direction; 2], medium: &mut Medium, now: Instant) {
        while let Some(way) = medium.turn([0, 1].map(|way| directions[way].waiting() > 0)) {
            // A queue that is kept short may drop all it has, and is asked again only if it has
            // more.
            if directions[way as usize].begin_frame(now) {
                medium.begin(way);
            }
        }
    }
}

impl Node for Link {
    /// Takes a packet into the queue of its direction, or drops and counts it. What it holds does
    /// not matter: a link carries bytes.
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

    /// Gives the packet that arrived first; of two at once, the forward direction's.
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

    /// Gives the next of the events that [`Link::set_events`] asks for, in the order of time.
    fn poll_event(&mut self) -> Option<Event> {
        let [forth, back] = &mut self.directions;
        Ledger::take_first(&mut forth.ledger, &mut back.ledger)
    }
}
