//! One direction of a link: queue, serialiser, channel, delay line.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Packet};

use crate::Counters;
use crate::channel::{Cause, Channel, Verdict};
use crate::delay::{DelayLine, Delays, Entry};
use crate::queue::Queue;
use crate::rate::Serialiser;
use crate::spec::{LinkSpec, Way};

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
    /// What a frame costs beyond its bytes.
    overhead: Duration,
    channel: Channel,
    delays: Delays,
    copy_delays: Delays,
    line: DelayLine,
    /// Packets that entered the channel.
    entered: u64,
    /// One more than the highest number that has come out.
    out_next: u64,
    pub(crate) counters: Counters,
}

impl Direction {
    pub(crate) fn new(spec: &LinkSpec, way: Way, serialiser: Serialiser) -> Self {
        let stream = |cause: Cause| cause.stream(spec.seed, way);
        let (jitter, delayed) = (stream(Cause::Jitter), stream(Cause::Delayed));
        let (copy_jitter, copy_delayed) = (stream(Cause::CopyJitter), stream(Cause::CopyDelayed));
        Self {
            queue: Queue::new(&spec.queue, serialiser.slot(), stream(Cause::Queue)),
            serialiser,
            frame: None,
            last_done: None,
            overhead: spec.half.unwrap_or_default(),
            channel: Channel::new(spec, way),
            delays: Delays::new(spec, jitter, delayed),
            copy_delays: Delays::new(spec, copy_jitter, copy_delayed),
            line: DelayLine::new(spec.delay.in_order),
            entered: 0,
            out_next: 0,
            counters: Counters::default(),
        }
    }

    /// Takes a packet into the queue.
    pub(crate) fn push(&mut self, now: Instant, packet: Packet) {
        self.counters.received += 1;
        self.queue.push(now, packet, &mut self.counters);
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

    /// Puts the next packet of the queue on the wire; `false` if the queue had none to give.
    pub(crate) fn begin_frame(&mut self, now: Instant) -> bool {
        let Some(packet) = self.queue.pop(now, &mut self.counters) else { return false };
        let fresh = self.last_done != Some(now);
        let size = ByteCount::from(packet.len());
        let done = self.serialiser.finish(now, size, fresh) + self.overhead;
        self.frame = Some(Frame { packet, done });
        true
    }

    /// When the frame on the wire will have left.
    pub(crate) fn frame_done(&self) -> Option<Instant> {
        self.frame.as_ref().map(|frame| frame.done)
    }

    /// Moves the frame that has left through the channel into the delay line.
    pub(crate) fn end_frame(&mut self) {
        let Some(Frame { packet, done }) = self.frame.take() else { return };
        // A packet that comes at this very instant has missed what this one left of an opportunity.
        self.last_done = (self.queue.len() > 0).then_some(done);
        let (number, delay, copy_delay) =
            (self.entered, self.delays.draw(), self.copy_delays.draw());
        self.entered += 1;
        let Verdict::Through { packet, twice } =
            self.channel.pass(done, packet, &mut self.counters)
        else {
            return;
        };
        let copy = twice.then(|| Entry { packet: packet.clone(), number, copy: true });
        let first = Entry { packet, number, copy: false };
        for (entry, delay) in [(Some(first), delay), (copy, copy_delay)] {
            if entry.is_some_and(|entry| !self.line.push(done, entry, delay)) {
                self.counters.overflowed += 1;
            }
        }
    }

    /// When the next packet comes out of the delay line.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.line.due()
    }

    /// The next packet out of the delay line.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let entry = self.line.pop()?;
        self.counters.forwarded += 1;
        self.counters.forwarded_bytes += ByteCount::from(entry.packet.len());
        self.counters.reordered += u64::from(!entry.copy && entry.number < self.out_next);
        self.out_next = self.out_next.max(entry.number + 1);
        Some(entry.packet)
    }
}
