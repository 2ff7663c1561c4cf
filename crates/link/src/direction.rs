//! One direction of a link: queue, serialiser, channel, delay line.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Packet};

use crate::Occupancy;
use crate::channel::{Cause, Channel, Passage};
use crate::delay::{DelayLine, Delays, Drawn, Entry};
use crate::ledger::{DropCause, Ledger};
use crate::occupancy;
use crate::queue::Queue;
use crate::rate::Serialiser;
use crate::spec::{Discipline, LinkSpec, Way};

/// A frame on the wire.
#[derive(Clone, Debug)]
struct Frame {
    packet: Packet,
    /// When its last byte has left.
    done: Instant,
}

#[derive(Clone, Debug)]
pub(crate) struct Direction {
    queue: Queue,
    serialiser: Serialiser,
    frame: Option<Frame>,
    /// When the last frame left, if one waited behind it: the next then begins where it ended.
    last_done: Option<Instant>,
    /// How long frames were on the wire, the one that is there to its end.
    busy: Duration,
    /// What a frame costs beyond its bytes.
    overhead: Duration,
    /// There if it does anything to packets.
    channel: Option<Box<Channel>>,
    delays: Delays,
    /// Of second copies, where there are any.
    copy_delays: Option<Box<Delays>>,
    line: DelayLine,
    /// Packets that entered the channel.
    entered: u64,
    /// One more than the highest number that has come out.
    out_next: u64,
    /// How long after a frame's end there is nothing to do or to tell, at least.
    rest: Duration,
    pub(crate) ledger: Ledger,
}

impl Direction {
    pub(crate) fn new(spec: &LinkSpec, way: Way, serialiser: Serialiser, shared_air: bool) -> Self {
        let stream = |cause: Cause| cause.stream(spec.seed, way);
        let delays = |jitter, delayed| Delays::new(spec, stream(jitter), stream(delayed));
        let channel = Channel::new(spec, way).map(Box::new);
        let first_delays = delays(Cause::Jitter, Cause::Delayed);
        // CoDel drops as a frame begins, which is when another ends; on shared air that may be the other way's.
        let silent = channel.is_none()
            && !shared_air
            && !matches!(spec.queue.discipline, Discipline::CoDel { .. });
        Self {
            queue: Queue::new(&spec.queue, serialiser.slot(), stream(Cause::Queue)),
            serialiser,
            frame: None,
            last_done: None,
            busy: Duration::ZERO,
            overhead: spec.half.unwrap_or_default(),
            channel,
            rest: if silent { first_delays.least() } else { Duration::ZERO },
            delays: first_delays,
            copy_delays: spec
                .duplicate
                .map(|_| Box::new(delays(Cause::CopyJitter, Cause::CopyDelayed))),
            line: DelayLine::new(spec.delay.in_order),
            entered: 0,
            out_next: 0,
            ledger: Ledger::default(),
        }
    }

    /// Takes a packet into the queue.
    pub(crate) fn push(&mut self, now: Instant, packet: Packet) {
        self.ledger.counters.received += 1;
        self.queue.push(now, packet, &mut self.ledger);
    }

    /// Packets that wait for the serialiser.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Bytes that wait for the serialiser.
    pub(crate) fn waiting_bytes(&self) -> ByteCount {
        self.queue.bytes()
    }

    /// Packets that are anywhere between in and out.
    pub(crate) fn held(&self) -> usize {
        self.queue.len() + usize::from(self.frame.is_some()) + self.line.len()
    }

    /// The queue and the wire up to `now`, to which everything has been worked.
    pub(crate) fn occupancy(&mut self, now: Instant) -> Occupancy {
        let (mean, max) = self.queue.mean_and_max(now);
        let ahead = self.frame.as_ref().map_or(Duration::ZERO, |frame| frame.done.since(now));
        let busy = self.busy.saturating_sub(ahead).as_nanos() as f64;
        Occupancy { mean, max, busy: occupancy::ratio(busy, now.as_nanos() as f64) }
    }

    /// Ends and begins frames up to `now`, on a wire that no other direction shares.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some(done) = self.frame_done().filter(|done| *done <= now) {
            self.end_frame();
            self.begin_frame_if_idle(done);
        }
    }

    /// Puts the next packet of the queue on the wire, if there is one and the wire is free.
    pub(crate) fn begin_frame_if_idle(&mut self, now: Instant) {
        if self.frame.is_none() && self.waiting() > 0 {
            self.begin_frame(now);
        }
    }

    /// Puts the next packet of the queue on the wire; `false` if the queue had none to give.
    pub(crate) fn begin_frame(&mut self, now: Instant) -> bool {
        let Some(packet) = self.queue.pop(now, &mut self.ledger) else { return false };
        let fresh = self.last_done != Some(now);
        let size = ByteCount::from(packet.len());
        let done = self.serialiser.finish(now, size, fresh) + self.overhead;
        self.busy = self.busy.saturating_add(done.since(now));
        self.frame = Some(Frame { packet, done });
        true
    }

    /// When the frame on the wire will have left.
    pub(crate) fn frame_done(&self) -> Option<Instant> {
        self.frame.as_ref().map(|frame| frame.done)
    }

    /// Moves the frame that has left through the channel into the delay line.
    pub(crate) fn end_frame(&mut self) {
        let Some(Frame { mut packet, done }) = self.frame.take() else { return };
        // A packet that comes at this very instant has missed what this one left of an opportunity.
        self.last_done = (self.queue.len() > 0).then_some(done);
        let number = self.entered;
        self.entered += 1;
        let delay = self.delays.draw();
        let copy_delay = self.copy_delays.as_mut().map(|delays| delays.draw());
        let passage = match &mut self.channel {
            Some(channel) => channel.pass(done, &mut packet, &mut self.ledger),
            None => Passage::Once,
        };
        let copy = match passage {
            Passage::Lost(cause) => return self.ledger.dropped(done, cause, packet),
            Passage::Once => None,
            Passage::Twice => copy_delay.map(|delay| (packet.clone(), delay)),
        };
        self.enter_line(done, Entry { packet, number, copy: false }, delay);
        if let Some((packet, delay)) = copy {
            self.enter_line(done, Entry { packet, number, copy: true }, delay);
        }
    }

    fn enter_line(&mut self, now: Instant, entry: Entry, delay: Drawn) {
        if let Err(packet) = self.line.push(now, entry, delay) {
            self.ledger.dropped(now, DropCause::LineFull, packet);
        }
    }

    /// When the next packet comes out of the delay line.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.line.due()
    }

    /// When there is something to do next: a packet to give, or what must be done at the end of a frame.
    ///
    /// A frame that goes on unharmed to a constant delay needs nothing at its end: it is worked with
    /// whatever is next, at its own time all the same.
    pub(crate) fn next(&self) -> Option<Instant> {
        let done = self.frame.as_ref().map(|frame| frame.done + self.rest);
        match (self.line.due(), done) {
            (Some(due), Some(done)) => Some(due.min(done)),
            (due, done) => due.or(done),
        }
    }

    /// The next packet out of the delay line.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let entry = self.line.pop()?;
        let counters = &mut self.ledger.counters;
        counters.forwarded += 1;
        counters.forwarded_bytes += ByteCount::from(entry.packet.len());
        counters.reordered += u64::from(!entry.copy && entry.number < self.out_next);
        self.out_next = self.out_next.max(entry.number + 1);
        Some(entry.packet)
    }
}
