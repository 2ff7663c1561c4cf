//! The queues of one end, one for each mobile.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Packet};

use super::end::Frame;
use super::{AirCounters, MobileNo};
use crate::queue::ControlLaw;

/// The queue of one mobile.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    frames: VecDeque<Frame>,
    /// The bytes of the packets in `frames`.
    pub(super) bytes: ByteCount,
    /// The number of this mobile's frames in [`Queues::aside`], and the bytes of their packets.
    aside: (usize, ByteCount),
    /// The air time in nanoseconds that it may still use in its turn; negative if it used more.
    deficit: i64,
    /// Whether no frame was queued or set aside since the last drain.
    is_drained: bool,
    /// The highest [`Frame::order`] that arrived.
    pub(super) highest: Option<u64>,
    pub(super) counters: AirCounters,
    /// CoDel's control law, if the queue marks.
    pub(super) law: Option<ControlLaw>,
}

impl Queue {
    /// The number of frames that wait.
    pub(super) fn waiting(&self) -> usize {
        self.frames.len() + self.aside.0
    }

    /// The bytes of their packets.
    pub(super) fn waiting_bytes(&self) -> ByteCount {
        self.bytes + self.aside.1
    }

    /// A mobile without frames keeps its debt, but no unused air time.
    fn end_turn(&mut self) {
        self.deficit = self.deficit.min(0);
    }
}

/// The queues of one end. Mobiles take turns by deficit round robin (Shreedhar and Varghese 1996)
/// in air time: a mobile is charged for each try after it was made, as Linux does for Wi-Fi
/// (Høiland-Jørgensen et al. 2017, Ending the Anomaly), so that retransmissions to one mobile take
/// nothing from the others' shares.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    others: Queue,
    by_mobile: BTreeMap<MobileNo, Queue>,
    /// The mobiles with frames to send. The first one has the turn.
    turns: VecDeque<MobileNo>,
    /// Lost frames, each with the time at which the sender detects the loss.
    aside: VecDeque<(Instant, Frame)>,
    /// The air time of a turn in nanoseconds, at least 1.
    turn: i64,
}

impl Queues {
    /// Creates the queues for turns of length `turn`.
    pub(super) fn new(turn: Duration) -> Self {
        Self {
            others: Queue::default(),
            by_mobile: BTreeMap::new(),
            turns: VecDeque::new(),
            aside: VecDeque::new(),
            turn: nanos(turn).max(1),
        }
    }

    /// Returns the number under which the frames of a mobile are queued.
    pub(super) fn place(&self, of: MobileNo) -> MobileNo {
        if self.by_mobile.contains_key(&of) { of } else { MobileNo::OTHERS }
    }

    pub(super) fn of(&self, of: MobileNo) -> &Queue {
        self.by_mobile.get(&of).unwrap_or(&self.others)
    }

    pub(super) fn of_mut(&mut self, of: MobileNo) -> &mut Queue {
        self.by_mobile.get_mut(&of).unwrap_or(&mut self.others)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Queue> {
        std::iter::once(&self.others).chain(self.by_mobile.values())
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        std::iter::once(&mut self.others).chain(self.by_mobile.values_mut())
    }

    pub(super) fn join(&mut self, mobile: MobileNo) {
        if mobile != MobileNo::OTHERS && !self.by_mobile.contains_key(&mobile) {
            let law = self.others.law.as_ref().map(|_| ControlLaw::standard());
            self.by_mobile.insert(mobile, Queue { law, ..Queue::default() });
        }
    }

    /// Removes a mobile; returns its frames in the order of their numbers. Its counters are added
    /// to those of the others.
    pub(super) fn leave(&mut self, mobile: MobileNo) -> Vec<Frame> {
        if self.place(mobile) == MobileNo::OTHERS {
            return Vec::new();
        }
        self.of_mut(mobile).is_drained = false;
        let frames = self.drain(mobile, &|_| true);
        if let Some(left) = self.by_mobile.remove(&mobile) {
            self.others.counters += left.counters;
        }
        frames
    }

    /// Whether no frame can be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(super) fn push_back(&mut self, frame: Frame) {
        self.push(&frame).push_back(frame);
    }

    pub(super) fn push_front(&mut self, frame: Frame) {
        self.push(&frame).push_front(frame);
    }

    /// Counts a frame that is about to be queued; returns its queue.
    fn push(&mut self, frame: &Frame) -> &mut VecDeque<Frame> {
        let queue = self.by_mobile.get_mut(&frame.of).unwrap_or(&mut self.others);
        if queue.frames.is_empty() {
            self.turns.push_back(frame.of);
        }
        queue.bytes += size(frame);
        queue.is_drained = false;
        &mut queue.frames
    }

    /// Stores a lost frame until `known`, which is not before that of the last one.
    pub(super) fn set_aside(&mut self, known: Instant, frame: Frame) {
        let queue = self.of_mut(frame.of);
        queue.aside.0 += 1;
        queue.aside.1 += size(&frame);
        queue.is_drained = false;
        self.aside.push_back((known, frame));
    }

    /// When the next loss is detected.
    pub(super) fn known_at(&self) -> Option<Instant> {
        Some(self.aside.front()?.0)
    }

    /// Returns a frame whose loss is detected at `now` or before.
    pub(super) fn take_lost(&mut self, now: Instant) -> Option<Frame> {
        self.known_at().filter(|known| *known <= now)?;
        let (_, frame) = self.aside.pop_front()?;
        let queue = self.of_mut(frame.of);
        queue.aside.0 -= 1;
        queue.aside.1 -= size(&frame);
        Some(frame)
    }

    /// Removes and returns the next frame to send.
    pub(super) fn pop(&mut self) -> Option<Frame> {
        loop {
            let of = *self.turns.front()?;
            let queue = self.by_mobile.get_mut(&of).unwrap_or(&mut self.others);
            if queue.deficit < 0 {
                queue.deficit += self.turn;
                self.turns.rotate_left(1);
                continue;
            }
            let frame = queue.frames.pop_front()?;
            queue.bytes -= size(&frame);
            if queue.frames.is_empty() {
                queue.end_turn();
                self.turns.pop_front();
            }
            return Some(frame);
        }
    }

    /// Charges a mobile for the air time of a try.
    pub(super) fn charge(&mut self, of: MobileNo, time: Duration) {
        let queue = self.of_mut(of);
        queue.deficit = queue.deficit.saturating_sub(nanos(time));
    }

    /// Removes the frames of a mobile with `wanted` packets; returns them in the order of their
    /// numbers. If no frame came since the last drain, none is examined.
    pub(super) fn drain(&mut self, of: MobileNo, wanted: &dyn Fn(&Packet) -> bool) -> Vec<Frame> {
        let of = self.place(of);
        let queue = self.by_mobile.get_mut(&of).unwrap_or(&mut self.others);
        if std::mem::replace(&mut queue.is_drained, true) {
            return Vec::new();
        }
        let all = std::mem::take(&mut queue.frames).into_iter();
        let (mut frames, kept): (Vec<_>, Vec<_>) = all.partition(|frame| wanted(&frame.packet));
        queue.frames = kept.into();
        queue.bytes -= frames.iter().map(size).sum::<ByteCount>();
        if queue.frames.is_empty() {
            queue.end_turn();
            self.turns.retain(|mobile| *mobile != of);
        }
        if queue.aside.0 > 0 {
            let all = std::mem::take(&mut self.aside).into_iter();
            let (lost, kept): (Vec<_>, Vec<_>) =
                all.partition(|(_, frame)| frame.of == of && wanted(&frame.packet));
            self.aside = kept.into();
            queue.aside.0 -= lost.len();
            queue.aside.1 -= lost.iter().map(|(_, frame)| size(frame)).sum::<ByteCount>();
            frames.extend(lost.into_iter().map(|(_, frame)| frame));
        }
        frames.sort_by_key(|frame| frame.no);
        frames
    }
}

/// The bytes of a frame's packet.
fn size(frame: &Frame) -> ByteCount {
    ByteCount::from(frame.packet.len())
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
