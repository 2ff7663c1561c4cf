//! A TCP connection between a fixed host and the mobile, as the base station sees it.

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_link::radio::FrameNo;
use airtcp_types::{ByteCount, ExtSeq, Instant, RangeSet, SeqNumber, SeqRange};
use airtcp_wire::options::Timestamps;

use super::end::{self, End, Refusal};
use super::freezer::Reminder;
use super::segment::{MadeAck, Segment, flag};
use super::snoop::Cache;
use crate::Side;

/// The two ends of a flow.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct FlowKey {
    /// The end on the wired side.
    pub fixed: SocketAddr,
    /// The end behind the radio.
    pub mobile: SocketAddr,
}

/// The maximum number of separate ranges per flow. A further range is not recorded, and counts as
/// missing.
const MAX_RANGES: usize = 256;
/// The largest possible window (RFC 7323 section 2.3): data beyond it is invalid.
pub(super) const MAX_WINDOW: u64 = 1 << 30;

/// The last state of the mobile, from which the station can generate ACKs in its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mobile {
    pub(super) end: End,
    /// The window field of its last segment; that of a SYN is converted to the scaled form.
    pub(super) window: u16,
    pub(super) timestamps: Option<Timestamps>,
}

/// The range of a recorded segment of the fixed host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entered {
    pub(super) range: SeqRange,
    /// Whether the segment reaches above everything seen before. Otherwise it is a retransmission
    /// or was reordered.
    pub(super) is_new: bool,
}

#[derive(Clone, Copy, Debug)]
struct Carried {
    range: SeqRange,
    is_new: bool,
    frame: FrameNo,
}

/// The state of a flow. For data to the mobile it records ranges of sequence numbers.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Ranges seen from the fixed host and not acknowledged by the mobile.
    pub(super) seen: RangeSet,
    /// The sequence number from which on the flow was observed: holes below it are not known.
    pub(super) floor: ExtSeq,
    /// The state of the fixed host, once it has sent a segment.
    pub(super) fixed: Option<End>,
    pub(super) mobile: Option<Mobile>,
    /// The last rejected segment. If the other end acknowledges it, the two ends have another
    /// connection.
    claim: Option<Box<Segment>>,
    /// The frames on the radio that carry data of this flow, as of the last check.
    frames: Vec<Carried>,
    /// The segment of the mobile whose round trip to the fixed host is measured: its TSval, and the
    /// time when it passed.
    timed: Option<(u32, Instant)>,
    /// The minimum round-trip time between the station and the fixed host.
    pub(super) rtt: Option<Duration>,
    /// When the sender was last sent a zero window; `None` if the flow is not frozen.
    pub(super) frozen: Option<Instant>,
    /// The next repetition of the window update.
    pub(super) reminder: Option<Reminder>,
    /// The cache of the policy `snoop`.
    pub(super) cache: Option<Box<Cache>>,
}

impl Flow {
    /// Creates a flow whose next expected byte for the mobile is `seq`; the numbers below were not
    /// observed.
    pub(super) fn starting_at(seq: SeqNumber) -> Self {
        let floor = ExtSeq::starting_at(seq);
        Self { floor, fixed: Some(End::starting_at(floor)), ..Self::unheard() }
    }

    /// Creates a flow that the mobile opens.
    pub(super) fn unheard() -> Self {
        Self {
            seen: RangeSet::new(),
            floor: ExtSeq::default(),
            fixed: None,
            mobile: None,
            claim: None,
            frames: Vec::new(),
            timed: None,
            rtt: None,
            frozen: None,
            reminder: None,
            cache: None,
        }
    }

    /// Checks whether a segment from `side` can belong to the flow, given the state of both ends.
    ///
    /// # Errors
    ///
    /// The reason for the rejection.
    pub(super) fn check(&self, segment: &Segment, side: Side) -> Result<(), Refusal> {
        let mobile = self.mobile.map(|mobile| mobile.end);
        match side {
            Side::Wired => end::check(self.fixed, mobile, segment),
            // The station has seen everything since the mobile opened the flow, and the fixed host
            // has not sent anything that this could acknowledge.
            Side::Wireless if self.fixed.is_none() && segment.has(flag::ACK) => Err(Refusal::Ack),
            Side::Wireless => end::check(mobile, self.fixed, segment),
        }
    }

    /// Stores a rejected segment. Returns the segment stored before if the two acknowledge each
    /// other exactly: then both ends use another connection, or numbers that the station did not
    /// see.
    pub(super) fn claim(&mut self, segment: &Segment) -> Option<Segment> {
        let agrees = |before: &Segment| {
            before.src == segment.dst
                && segment.has(flag::ACK)
                && segment.ack == before.seq + before.len()
                && (before.ack == segment.seq || !before.has(flag::ACK))
        };
        let before = self.claim.as_deref().copied().filter(agrees);
        self.claim = Some(Box::new(*segment));
        before
    }

    /// Whether the mobile has not sent anything yet.
    pub(super) const fn is_one_sided(&self) -> bool {
        self.mobile.is_none()
    }

    /// Returns the range of a segment from the fixed host.
    pub(super) fn range_of(&self, segment: &Segment) -> SeqRange {
        end::numbers(self.fixed, self.mobile.map(|mobile| mobile.end), segment)
    }

    /// Records a segment from the fixed host; returns its range.
    pub(super) fn on_fixed(&mut self, now: Instant, segment: &Segment) -> SeqRange {
        let range = self.range_of(segment);
        if self.fixed.is_none() {
            self.floor = range.start;
        }
        let fixed = self.fixed.get_or_insert(End::starting_at(range.start));
        let near = self.mobile.map(|mobile| mobile.end.nxt).or(fixed.acked);
        fixed.on_segment(segment, range, acknowledged(segment, near));
        self.insert(range);
        if segment.data > 0 {
            self.reminder = None;
        }
        self.on_echo(now, segment);
        range
    }

    pub(super) fn insert(&mut self, range: SeqRange) {
        let from = self.from();
        let range = SeqRange::new(range.start.max(from), range.end);
        let is_too_far = range.end.since(from) > ByteCount(MAX_WINDOW);
        if range.is_empty() || is_too_far {
            return;
        }
        // A range that starts at the next expected number is always recorded.
        let is_one_more = range.start > from
            && self.seen.next_gap(range.start - 1) < range.start
            && self.seen.next_gap(range.start) == range.start
            && self.seen.next_gap(range.end) == range.end;
        if self.seen.len() >= MAX_RANGES && is_one_more {
            return;
        }
        self.seen.insert(range);
    }

    /// The sequence number from which on the mobile expects data that was observed.
    pub(super) fn from(&self) -> ExtSeq {
        self.acked().map_or(self.floor, |acked| acked.max(self.floor))
    }

    /// Whether data between the mobile's acknowledgement and the highest number seen is missing.
    pub(super) fn has_hole(&self) -> bool {
        self.seen.last().is_some_and(|last| self.seen.next_gap(self.from()) < last.end)
    }

    /// Records a segment from the mobile.
    pub(super) fn on_mobile(&mut self, now: Instant, segment: &Segment) {
        let before = self.mobile;
        let range = end::numbers(before.map(|before| before.end), self.fixed, segment);
        let mut end = before.map_or(End::starting_at(range.start), |before| before.end);
        let ack = acknowledged(segment, self.fixed.map(|fixed| fixed.nxt));
        end.on_segment(segment, range, ack);
        // RFC 7323 section 2.2: the window of a SYN is not scaled.
        let shift = end.shift.filter(|_| segment.has(flag::SYN)).unwrap_or(0);
        let timestamps =
            match (before.and_then(|before| before.timestamps), segment.options.timestamps) {
                (Some(last), Some(new)) if (new.val.wrapping_sub(last.val) as i32) < 0 => {
                    Some(last)
                }
                (_, new) => new,
            };
        self.mobile = Some(Mobile { end, window: segment.window >> shift, timestamps });
        if let Some(ack) =
            end.acked.filter(|_| before.and_then(|before| before.end.acked) != end.acked)
        {
            self.seen.remove_below(ack);
            self.frames.retain(|carried| carried.range.end > ack);
        }
        if self.timed.is_none()
            && let Some(stamp) = segment.options.timestamps
        {
            self.timed = Some((stamp.val, now));
        }
    }

    /// Returns the number that a segment of the mobile acknowledges.
    pub(super) fn acknowledged_by(&self, segment: &Segment) -> ExtSeq {
        self.highest().nearest(segment.ack)
    }

    /// Completes the measurement of a round trip when the fixed host echoes the TSval.
    fn on_echo(&mut self, now: Instant, segment: &Segment) {
        let Some((val, since)) = self.timed else { return };
        let echo = segment.options.timestamps.filter(|_| segment.has(flag::ACK));
        if echo.is_some_and(|echo| echo.ecr.wrapping_sub(val) as i32 >= 0) {
            // An echo may be delayed until there is something to send; the minimum is the
            // round-trip time.
            let sample = now.since(since);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
            self.timed = None;
        }
    }

    /// Records that the frame `frame` carries the range `entered`.
    pub(super) fn on_passed(
        &mut self,
        entered: &Entered,
        frame: FrameNo,
        is_held: impl Fn(FrameNo) -> bool,
    ) {
        let Entered { range, is_new } = *entered;
        if !range.is_empty() {
            if self.frames.len() == self.frames.capacity() {
                self.frames.retain(|carried| is_held(carried.frame));
            }
            self.frames.push(Carried { range, is_new, frame });
        }
    }

    /// Removes a frame that was taken back; returns whether its data were new.
    pub(super) fn on_taken_back(&mut self, frame: FrameNo) -> bool {
        let at = self.frames.iter().position(|carried| carried.frame == frame);
        // If the frame is not known, it may be a retransmission: its duplicate ACKs are not hidden.
        at.is_some_and(|at| self.frames.remove(at).is_new)
    }

    /// Whether the radio still holds the byte `seq`.
    pub(super) fn is_in_radio(&self, seq: ExtSeq, is_held: impl Fn(FrameNo) -> bool) -> bool {
        self.frames.iter().any(|carried| carried.range.contains(seq) && is_held(carried.frame))
    }

    /// Whether the radio still holds the byte `seq`, and the fixed host has not retransmitted it.
    pub(super) fn is_radios(&self, seq: ExtSeq, is_held: impl Fn(FrameNo) -> bool) -> bool {
        let mut carriers = self.frames.iter().filter(|carried| carried.range.contains(seq));
        carriers.clone().all(|carried| carried.is_new)
            && carriers.any(|carried| is_held(carried.frame))
    }

    /// Returns the mobile's highest acknowledgement, if any.
    pub(super) fn acked(&self) -> Option<ExtSeq> {
        self.mobile.and_then(|mobile| mobile.end.acked)
    }

    /// Returns the sequence number after the fixed host's highest.
    pub(super) fn highest(&self) -> ExtSeq {
        self.fixed.map_or(self.floor, |fixed| fixed.nxt)
    }

    /// Whether both ends have sent a FIN that the other has acknowledged.
    pub(super) fn is_finished(&self) -> bool {
        let ends = self.fixed.zip(self.mobile.map(|mobile| mobile.end));
        ends.is_some_and(|(fixed, mobile)| fixed.is_done(&mobile) && mobile.is_done(&fixed))
    }

    /// Whether a reset from `side` has the sequence number that its receiver expects (RFC 5961
    /// section 3.2): the receiver's acknowledgement, or the sender's next number if that
    /// acknowledgement is still in flight.
    pub(super) fn believes_reset(&self, segment: &Segment, side: Side) -> bool {
        let mobile = self.mobile.map(|mobile| mobile.end);
        let (own, other) = match side {
            Side::Wired => (self.fixed, mobile),
            Side::Wireless => (mobile, self.fixed),
        };
        let is = |number: Option<ExtSeq>, seq| number.is_some_and(|number| number.wire() == seq);
        // RFC 9293 section 3.10.7.3: a reset in response to a SYN is identified by its
        // acknowledgement.
        let refuses = own.is_none() && other.is_some_and(|other| other.is_answered_by(segment));
        is(own.map(|own| own.nxt), segment.seq)
            || is(other.and_then(|other| other.acked), segment.seq)
            || refuses
    }

    /// Returns the round-trip time between the station and the fixed host, if measured.
    pub(super) const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Returns the mobile's last ACK again, with the window `window`; `None` before the first one.
    pub(super) fn last_ack(&self, key: &FlowKey, window: u16) -> Option<MadeAck> {
        let mobile = self.mobile?;
        Some(MadeAck {
            src: key.mobile,
            dst: key.fixed,
            seq: mobile.end.nxt.wire(),
            ack: mobile.end.acked?.wire(),
            window,
            timestamps: mobile.timestamps,
        })
    }

    /// Returns the bytes of cached packets.
    pub(super) fn cached(&self) -> usize {
        self.cache.as_ref().map_or(0, |cache| cache.bytes())
    }

    /// Returns the memory in bytes, including the heap.
    pub(super) fn memory(&self) -> usize {
        // A node of the B-tree holds eleven ranges.
        let tree = self.seen.len().div_ceil(11) * (11 * size_of::<SeqRange>() + 16);
        let claim = self.claim.as_ref().map_or(0, |_| size_of::<Segment>());
        size_of::<Self>()
            + claim
            + self.cached()
            + tree
            + self.frames.capacity() * size_of::<Carried>()
    }
}

/// Returns the number that a segment acknowledges, if it has an ACK, extended to be close to
/// `near`.
fn acknowledged(segment: &Segment, near: Option<ExtSeq>) -> Option<ExtSeq> {
    let ack = near.map_or(ExtSeq::starting_at(segment.ack), |near| near.nearest(segment.ack));
    segment.has(flag::ACK).then_some(ack)
}

#[cfg(test)]
mod tests {
    use super::super::FlowRecord;
    use super::super::testkit::{Seg, from_fixed, from_mobile};
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn data(flow: &mut Flow, seq: u32, len: usize) -> bool {
        flow.on_fixed(NOW, &from_fixed(Seg::data(seq, len)).1);
        flow.has_hole()
    }

    fn ack(flow: &mut Flow, ack: u32) {
        flow.on_mobile(NOW, &from_mobile(Seg::ack(1, ack)).1);
    }

    #[test]
    fn a_hole_lasts_from_the_segment_above_it_to_the_one_that_fills_it() {
        for start in [1_000, u32::MAX - 1_500] {
            let at = |offset: u32| start.wrapping_add(offset);
            let mut flow = Flow::starting_at(SeqNumber(start));
            assert!(!data(&mut flow, at(0), 1_000));
            assert!(data(&mut flow, at(2_000), 1_000));
            assert!(data(&mut flow, at(4_000), 1_000));
            assert!(data(&mut flow, at(1_000), 1_000), "one is left");
            assert!(data(&mut flow, at(2_500), 1_000), "overlaps count by their bytes");
            assert!(!data(&mut flow, at(3_400), 700));
        }
    }

    #[test]
    fn what_the_mobile_acknowledges_is_no_hole() {
        let mut flow = Flow::starting_at(SeqNumber(0));
        assert!(data(&mut flow, 5_000, 1_000));
        ack(&mut flow, 5_500);
        assert!(!flow.has_hole());
        assert_eq!(FlowRecord::of(&testkey(), &flow).seen, [(5_500, 6_000)]);
        ack(&mut flow, 4_000);
        assert_eq!(flow.acked().map(ExtSeq::wire), Some(SeqNumber(5_500)), "it never goes back");
        ack(&mut flow, 6_000);
        assert!(FlowRecord::of(&testkey(), &flow).seen.is_empty());
    }

    #[test]
    fn an_adopted_flow_has_no_hole_below_what_was_seen_first() {
        let mut flow = Flow::starting_at(SeqNumber(9_000));
        assert!(!data(&mut flow, 9_000, 1_000));
        ack(&mut flow, 4_000);
        assert!(!flow.has_hole());
        assert!(!data(&mut flow, 4_000, 1_000), "the fixed host repairs something of before");
        assert!(data(&mut flow, 11_000, 1_000));
    }

    #[test]
    fn ranges_are_bounded_and_data_beyond_every_window_is_not_remembered() {
        let mut flow = Flow::starting_at(SeqNumber(0));
        for n in 0..1_000 {
            data(&mut flow, 2_000 * n + 1_000, 1_000);
        }
        assert_eq!(FlowRecord::of(&testkey(), &flow).seen.len(), MAX_RANGES);
        let memory = flow.memory();
        assert!(memory < 8_192, "{memory}");
        data(&mut flow, 0, 1_000);
        assert_eq!(
            FlowRecord::of(&testkey(), &flow).seen[0],
            (0, 2_000),
            "what the mobile waits for is taken"
        );
        let mut flow = Flow::starting_at(SeqNumber(0));
        assert!(!data(&mut flow, (1 << 30) + 1, 1_000));
    }

    #[test]
    fn both_fins_have_to_be_acknowledged() {
        let mut flow = Flow::starting_at(SeqNumber(100));
        flow.on_fixed(NOW, &from_fixed(Seg { flags: "FA", ack: 50, ..Seg::data(100, 10) }).1);
        flow.on_mobile(NOW, &from_mobile(Seg { flags: "FA", ..Seg::ack(50, 111) }).1);
        assert!(!flow.is_finished());
        flow.on_fixed(NOW, &from_fixed(Seg { ack: 50, ..Seg::data(111, 0) }).1);
        assert!(!flow.is_finished());
        flow.on_fixed(NOW, &from_fixed(Seg { ack: 51, ..Seg::data(111, 0) }).1);
        assert!(flow.is_finished());
    }

    #[test]
    fn the_last_ack_has_the_mobiles_highest_numbers_and_latest_time_stamp() {
        let mut flow = Flow::starting_at(SeqNumber(0));
        data(&mut flow, 0, 1_000);
        let stamped = |seq, ack, val| Seg { ts: Some((val, 7)), ..Seg::ack(seq, ack) };
        flow.on_mobile(NOW, &from_mobile(Seg { window: 99, len: 20, ..stamped(500, 1_000, 40) }).1);
        flow.on_mobile(NOW, &from_mobile(Seg { window: 77, ..stamped(510, 500, 39) }).1);
        let made = flow.last_ack(&testkey(), 0).unwrap();
        assert_eq!((made.seq, made.ack, made.window), (SeqNumber(520), SeqNumber(1_000), 0));
        assert_eq!(made.timestamps, Some(Timestamps { val: 40, ecr: 7 }));
        assert_eq!(flow.mobile.unwrap().window, 77);
    }

    #[test]
    fn the_window_of_a_syn_is_shifted_as_those_after_it_are() {
        let mut flow = Flow::starting_at(SeqNumber(0));
        let syn = Seg { flags: "SA", window: 64_000, wscale: Some(7), ..Seg::ack(9, 1) };
        flow.on_mobile(NOW, &from_mobile(syn).1);
        assert_eq!(flow.mobile.unwrap().window, 500);
        assert_eq!(FlowRecord::of(&testkey(), &flow).window_scale, Some(7));
    }

    #[test]
    fn a_round_trip_is_from_a_time_stamp_to_its_echo() {
        let mut flow = Flow::starting_at(SeqNumber(0));
        let stamped =
            |ms: u64, val| (Instant::from_millis(ms), Seg { ts: Some((val, 0)), ..Seg::ack(1, 0) });
        for (now, seg) in [stamped(10, 100), stamped(20, 110)] {
            flow.on_mobile(now, &from_mobile(seg).1);
        }
        let echo = |ecr| from_fixed(Seg { ts: Some((5, ecr)), ..Seg::data(0, 10) }).1;
        flow.on_fixed(Instant::from_millis(30), &echo(99));
        assert_eq!(flow.rtt(), None);
        flow.on_fixed(Instant::from_millis(60), &echo(110));
        assert_eq!(flow.rtt(), Some(Duration::from_millis(50)));
    }

    fn testkey() -> FlowKey {
        super::super::testkit::key()
    }
}
