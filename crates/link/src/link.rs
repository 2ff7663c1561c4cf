//! A link: two directions, and the medium they share or do not.

use airtcp_types::{ByteCount, Event, Instant, Node, Packet, PortId};

use crate::direction::Direction;
use crate::medium::Medium;
use crate::rate::Serialiser;
use crate::spec::{LinkSpec, RateSpec, Way};
use crate::{Counters, Trace};

/// Two directions between port 0 and port 1. See the crate's page.
///
/// It works each thing at its own time, not at the time it is called: called late, it delivers late but
/// with the same losses, and its rate does not fall. It makes no events.
#[derive(Clone, Debug)]
pub struct Link {
    directions: [Direction; 2],
    medium: Medium,
    unknown_port: u64,
}

/// A link that cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinkError {
    /// The trace that a description names could not be had.
    #[error("trace {file}: {reason}")]
    Trace {
        /// The name in the description.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Half duplex and a trace: a trace says when *its* direction may send, and leaves no air to share.
    #[error("`half` needs `rate`: a trace cannot share the air")]
    HalfDuplexTrace,
}

impl Link {
    /// A link that does `forth` to packets from port 0 to port 1 and `back` to the others.
    ///
    /// It is half duplex if either says so.
    ///
    /// # Errors
    ///
    /// [`LinkError::Trace`] if a description names a trace: give those to [`Link::with_traces`].
    pub fn new(forth: &LinkSpec, back: &LinkSpec) -> Result<Self, LinkError> {
        Self::with_traces(forth, back, |_| Err("traces are read by the caller".to_owned()))
    }

    /// As [`Link::new`], with what reads the trace of a name: this crate opens no file.
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
            Ok(Direction::new(spec, way, serialiser))
        };
        let directions = [direction(forth, Way::Forth)?, direction(back, Way::Back)?];
        Ok(Self { directions, medium: Medium::new(half), unknown_port: 0 })
    }

    /// What one direction did so far.
    pub fn counters(&self, way: Way) -> &Counters {
        &self.directions[way as usize].counters
    }

    /// Packets dropped because they came in on a port that a link does not have.
    pub fn unknown_port(&self) -> u64 {
        self.unknown_port
    }

    /// Packets and bytes that wait in the queue of one direction, without the one being sent.
    pub fn queued(&self, way: Way) -> (usize, ByteCount) {
        let direction = &self.directions[way as usize];
        (direction.waiting(), direction.waiting_bytes())
    }

    /// Packets that one direction has taken and not yet given or dropped.
    pub fn held(&self, way: Way) -> usize {
        self.directions[way as usize].held()
    }

    /// Works everything due up to `now`, in the order of time.
    fn advance(&mut self, now: Instant) {
        while let Some((done, way)) = self.next_done() {
            if done > now {
                break;
            }
            self.directions[way as usize].end_frame();
            self.medium.end(way);
            self.begin_frames(done);
        }
    }

    fn next_done(&self) -> Option<(Instant, Way)> {
        let done = |way: Way| Some((self.directions[way as usize].frame_done()?, way));
        Way::BOTH.into_iter().filter_map(done).min_by_key(|(done, _)| *done)
    }

    /// Puts on the wire what may be at `now`.
    fn begin_frames(&mut self, now: Instant) {
        loop {
            let waits = |way: Way| self.directions[way as usize].waiting() > 0;
            let waits = Way::BOTH.map(waits);
            let next = Way::BOTH.into_iter().find(|way| {
                waits[*way as usize] && self.medium.may_send(*way, waits[1 - *way as usize])
            });
            let Some(way) = next else { return };
            // A queue that is kept short may drop all it has, and is asked again only if it has more.
            if self.directions[way as usize].begin_frame(now) {
                self.medium.begin(way);
            }
        }
    }
}

impl Node for Link {
    /// Takes a packet into the queue of its direction, or drops and counts it. What it holds does not
    /// matter: a link carries bytes.
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        self.advance(now);
        match self.directions.get_mut(usize::from(port.0)) {
            Some(direction) => direction.push(now, packet),
            None => self.unknown_port += 1,
        }
        self.begin_frames(now);
        self.advance(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// Gives the packet that arrived first; of two at once, the forward direction's.
    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        self.advance(now);
        let due = |way: Way| Some((self.directions[way as usize].due()?, way));
        let (due, way) = Way::BOTH.into_iter().filter_map(due).min_by_key(|(due, _)| *due)?;
        if due > now {
            return None;
        }
        let out = PortId(1 - way as u16);
        Some((out, self.directions[way as usize].pop()?))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let times = |direction: &Direction| [direction.frame_done(), direction.due()];
        self.directions.iter().flat_map(times).flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
