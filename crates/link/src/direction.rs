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
    /// When its last byte has left.
    done: Instant,
}

#[derive(Clone, Debug)]
pub(crate) struct Direction {
    policer: Option<Box<Policer>>,
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
    /// What is still to change, the next one last.
    changes: Vec<ChangeSpec>,
    pub(crate) ledger: Ledger,
}

impl Direction {
    pub(crate) fn new(spec: &LinkSpec, way: Way, serialiser: Serialiser, shared_air: bool) -> Self {
        let stream = |draw: Draw| draw.stream(spec.seed, way);
        let delays = |jitter, delayed| Delays::new(spec, stream(jitter), stream(delayed));
        let channel = Channel::new(spec, way).map(Box::new);
        let first_delays = delays(Draw::Jitter, Draw::Delayed);
        // CoDel drops as a frame begins, which is when another ends; on shared air that may be the
        // other way's.
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

    /// Takes a packet into the queue, if it passes the policer.
    pub(crate) fn push(&mut self, now: Instant, packet: Packet) {
        self.ledger.counters.received += 1;
        let size = ByteCount::from(packet.len());
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, size)) {
            return self.ledger.dropped(now, DropCause::Policed, packet);
        }
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

    /// Makes the changes that are due. Frames begin and end in the order of time; a rate matters
    /// when one begins, delay and loss when one ends, so it is soon enough to make a change then.
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

    /// Gathers into bursts what has arrived up to `now`, to which all frames have been worked.
    pub(crate) fn gather(&mut self, now: Instant) {
        self.line.advance(now);
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
        self.change(now);
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
        self.change(done);
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

    /// When the next packet comes out, of those that are known to.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.line.due()
    }

    /// When there is something to do next: a packet to give, or what must be done at the end of a
    /// frame.
    ///
    /// A frame that goes on unharmed to a constant delay needs nothing at its end: it is worked
    /// with whatever is next, at its own time all the same.
    pub(crate) fn next(&self) -> Option<Instant> {
        let done = self.frame.as_ref().map(|frame| frame.done + self.rest);
        earlier(self.line.next(), done)
    }

    /// The next packet that comes out.
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
