//! One direction of a link: policer, queue, serialiser, channel, delay line, aggregation.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Packet};

use crate::Occupancy;
use crate::channel::{Channel, Draw, Passage};
use crate::delay::{DelayLine, Delays, Drawn, Entry, earlier};
use crate::ledger::{DropCause, Ledger};
use crate::occupancy;
use crate::police::Policer;
use crate::queue::Queue;
use crate::rate::Serialiser;
use crate::spec::{ChangeSpec, Discipline, LinkSpec, Way};

/// A frame on the wire.
#[derive(Clone, Debug)]
struct Frame {
    packet: Packet,
    /// When its last byte leaves.
    done: Instant,
}

#[derive(Clone, Debug)]
pub(crate) struct Direction {
    policer: Option<Box<Policer>>,
    queue: Queue,
    serialiser: Serialiser,
    frame: Option<Frame>,
    /// The end of the last frame, if a packet was queued behind it: the next frame starts at that
    /// time.
    last_done: Option<Instant>,
    /// The total transmission time, including the rest of the frame in transmission.
    busy: Duration,
    /// The air time of a frame beyond that of its bytes.
    overhead: Duration,
    /// Present if the channel has any effect on packets.
    channel: Option<Box<Channel>>,
    delays: Delays,
    /// Delays of second copies, if packets are duplicated.
    copy_delays: Option<Box<Delays>>,
    line: DelayLine,
    /// Packets that entered the channel.
    entered: u64,
    /// One more than the highest packet number that left the delay line.
    out_next: u64,
    /// The least time after the end of a frame for which no wake-up is needed.
    rest: Duration,
    /// The outstanding changes, the next one last.
    changes: Vec<ChangeSpec>,
    pub(crate) ledger: Ledger,
}

impl Direction {
    pub(crate) fn new(spec: &LinkSpec, way: Way, serialiser: Serialiser, shared_air: bool) -> Self {
        let stream = |draw: Draw| draw.stream(spec.seed, way);
        let delays = |jitter, delayed| Delays::new(spec, stream(jitter), stream(delayed));
        let channel = Channel::new(spec, way).map(Box::new);
        let first_delays = delays(Draw::Jitter, Draw::Delayed);
        // CoDel drops when a frame starts, which is when another one ends; on a shared medium that
        // may be a frame of the other direction.
        let silent = channel.is_none()
            && !shared_air
            && spec.changes.is_empty()
            && !matches!(
                spec.queue.discipline,
                Discipline::CoDel { .. } | Discipline::FqCoDel { .. }
            );
        Self {
            policer: spec.police.map(|police| Box::new(Policer::new(police))),
            queue: Queue::new(&spec.queue, serialiser.slot(), stream(Draw::Queue)),
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
                .map(|_| Box::new(delays(Draw::CopyJitter, Draw::CopyDelayed))),
            line: DelayLine::new(spec.delay.in_order, spec.aggregate),
            entered: 0,
            out_next: 0,
            changes: spec.changes.iter().rev().copied().collect(),
            ledger: Ledger::default(),
        }
    }

    /// Queues a packet that conforms to the policer.
    pub(crate) fn push(&mut self, now: Instant, packet: Packet) {
        self.ledger.counters.received += 1;
        let size = ByteCount::from(packet.len());
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, size)) {
            return self.ledger.dropped(now, DropCause::Policed, packet);
        }
        self.queue.push(now, packet, &mut self.ledger);
    }

    /// The number of packets that wait for the serialiser.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The number of bytes that wait for the serialiser.
    pub(crate) fn waiting_bytes(&self) -> ByteCount {
        self.queue.bytes()
    }

    /// The number of packets between entry and exit.
    pub(crate) fn held(&self) -> usize {
        self.queue.len() + usize::from(self.frame.is_some()) + self.line.len()
    }

    /// The occupancy of queue and wire up to `now`; the direction has been advanced to `now`.
    pub(crate) fn occupancy(&mut self, now: Instant) -> Occupancy {
        let (mean, max) = self.queue.mean_and_max(now);
        let ahead = self.frame.as_ref().map_or(Duration::ZERO, |frame| frame.done.since(now));
        let busy = self.busy.saturating_sub(ahead).as_nanos() as f64;
        Occupancy { mean, max, busy: occupancy::ratio(busy, now.as_nanos() as f64) }
    }

    /// Makes the changes that are due. Frames start and end in the order of time. The rate is used
    /// at the start of a frame, delay and loss at its end, so changes are made at these times.
    fn change(&mut self, now: Instant) {
        while let Some(change) = self.changes.pop_if(|next| Instant::ZERO + next.at <= now) {
            if let Some((rate, overhead)) = change.rate {
                self.serialiser = Serialiser::Constant { rate, overhead };
                self.queue.set_slot(self.serialiser.slot());
            }
            if let Some(delay) = &change.delay {
                self.delays.change(delay);
                if let Some(delays) = &mut self.copy_delays {
                    delays.change(delay);
                }
                self.line.set_in_order(delay.in_order);
            }
            if let (Some(loss), Some(channel)) = (change.loss, &mut self.channel) {
                channel.change_loss(loss);
            }
        }
    }

    /// Aggregates the packets that arrived up to `now`; the frames have been processed up to `now`.
    pub(crate) fn gather(&mut self, now: Instant) {
        self.line.advance(now);
    }

    /// Ends and starts frames up to `now`, on a wire that no other direction shares.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some(done) = self.frame_done().filter(|done| *done <= now) {
            self.end_frame();
            self.begin_frame_if_idle(done);
        }
    }

    /// Transmits the next packet of the queue, if there is one and the wire is idle.
    pub(crate) fn begin_frame_if_idle(&mut self, now: Instant) {
        if self.frame.is_none() && self.waiting() > 0 {
            self.begin_frame(now);
        }
    }

    /// Transmits the next packet of the queue; `false` if the queue returns none.
    pub(crate) fn begin_frame(&mut self, now: Instant) -> bool {
        self.change(now);
        let Some(packet) = self.queue.pop(now, &mut self.ledger) else { return false };
        let fresh = self.last_done != Some(now);
        let size = ByteCount::from(packet.len());
        let done = self.serialiser.finish(now, size, fresh) + self.overhead;
        self.busy = self.busy.saturating_add(done.since(now));
        self.frame = Some(Frame { packet, done });
        true
    }

    /// When the transmission of the current frame ends.
    pub(crate) fn frame_done(&self) -> Option<Instant> {
        self.frame.as_ref().map(|frame| frame.done)
    }

    /// Passes the transmitted frame through the channel into the delay line.
    pub(crate) fn end_frame(&mut self) {
        let Some(Frame { mut packet, done }) = self.frame.take() else { return };
        self.change(done);
        // A packet that arrives at this instant cannot use the rest of this packet's opportunity.
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

    /// When the next packet leaves the delay line, as far as that is known.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.line.due()
    }

    /// The next deadline: a packet to deliver, or the end of a frame.
    ///
    /// A frame without errors and with a constant delay needs no wake-up at its end: it is
    /// processed at the next wake-up, with its own time.
    pub(crate) fn next(&self) -> Option<Instant> {
        let done = self.frame.as_ref().map(|frame| frame.done + self.rest);
        earlier(self.line.next(), done)
    }

    /// Returns the next packet that leaves the delay line.
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
