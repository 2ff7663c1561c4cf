//! One TCP connection between a fixed host and the mobile, as the base station sees it pass.

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

/// Separate ranges that are kept of a flow; what would make one more is not remembered, and so
/// counts as missing.
const MAX_RANGES: usize = 256;
/// No window reaches farther (RFC 7323 section 2.3): what is beyond is nobody's data.
const MAX_WINDOW: u64 = 1 << 30;

/// What the mobile said last: all that it takes to speak in its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mobile {
    pub(super) end: End,
    /// The window field of its last segment, as a segment that is no SYN has it.
    pub(super) window: u16,
    pub(super) timestamps: Option<Timestamps>,
}

/// What a segment of the fixed host's brings to its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entered {
    pub(super) range: SeqRange,
    /// It reaches above everything seen before. If it does not, the fixed host sends it again, or
    /// it is late.
    pub(super) is_new: bool,
}

#[derive(Clone, Copy, Debug)]
struct Carried {
    range: SeqRange,
    is_new: bool,
    frame: FrameNo,
}

/// The state of one flow. Of data towards the mobile it has the numbers, and no byte.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Seen from the fixed host and not acknowledged by the mobile.
    seen: RangeSet,
    /// What is below was not watched: no hole there is known of.
    floor: ExtSeq,
    /// The fixed host, once it was heard.
    fixed: Option<End>,
    pub(super) mobile: Option<Mobile>,
    /// The last segment that was not believed. If the other end acknowledges it, the two have
    /// another connection.
    claim: Option<Box<Segment>>,
    /// What went to the radio, and it still had when last asked.
    frames: Vec<Carried>,
    /// A segment of the mobile's whose round trip to the fixed host is timed: its time stamp, and
    /// when it passed.
    timed: Option<(u32, Instant)>,
    /// The shortest round trip seen between here and the fixed host.
    rtt: Option<Duration>,
    /// When its sender was told last to stop; `None` if it may send.
    pub(super) frozen: Option<Instant>,
    /// When its sender is told again that it may.
    pub(super) reminder: Option<Reminder>,
    /// Copies, where the policy keeps them.
    pub(super) cache: Option<Box<Cache>>,
}

impl Flow {
    /// A flow whose next byte for the mobile is `seq`, as far as is known: what is below is not
    /// watched.
    pub(super) fn starting_at(seq: SeqNumber) -> Self {
        let floor = ExtSeq::starting_at(seq);
        Self { floor, fixed: Some(End::starting_at(floor)), ..Self::unheard() }
    }

    /// A flow that the mobile opens.
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

    /// Whether a segment from `side` may be the flow's, by what its two ends have said.
    ///
    /// # Errors
    ///
    /// Why it is not believed.
    pub(super) fn check(&self, segment: &Segment, side: Side) -> Result<(), Refusal> {
        let mobile = self.mobile.map(|mobile| mobile.end);
        match side {
            Side::Wired => end::check(self.fixed, mobile, segment),
            // The station was there when the mobile opened the flow: it would have seen what this
            // acknowledges.
            Side::Wireless if self.fixed.is_none() && segment.has(flag::ACK) => Err(Refusal::Ack),
            Side::Wireless => end::check(mobile, self.fixed, segment),
        }
    }

    /// Keeps a segment that is not believed. Gives the one kept before if the two acknowledge each
    /// other exactly: then both ends speak of another connection, or of numbers that did not come
    /// by here.
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

    /// Whether the mobile was never heard.
    pub(super) const fn is_one_sided(&self) -> bool {
        self.mobile.is_none()
    }

    /// The numbers of a segment from the fixed host.
    pub(super) fn range_of(&self, segment: &Segment) -> SeqRange {
        end::numbers(self.fixed, self.mobile.map(|mobile| mobile.end), segment)
    }

    /// Takes note of a segment from the fixed host; gives its numbers.
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

    fn insert(&mut self, range: SeqRange) {
        let from = self.from();
        let range = SeqRange::new(range.start.max(from), range.end);
        let is_too_far = range.end.since(from) > ByteCount(MAX_WINDOW);
        if range.is_empty() || is_too_far {
            return;
        }
        // What the mobile waits for is taken however many there are.
        let is_one_more = range.start > from
            && self.seen.next_gap(range.start - 1) < range.start
            && self.seen.next_gap(range.start) == range.start
            && self.seen.next_gap(range.end) == range.end;
        if self.seen.len() >= MAX_RANGES && is_one_more {
            return;
        }
        self.seen.insert(range);
    }

    /// The number from which on the mobile waits for data that was watched.
    fn from(&self) -> ExtSeq {
        self.acked().map_or(self.floor, |acked| acked.max(self.floor))
    }

    /// Whether something between the mobile's acknowledgement and the highest number seen did not
    /// come by here.
    pub(super) fn has_hole(&self) -> bool {
        self.seen.last().is_some_and(|last| self.seen.next_gap(self.from()) < last.end)
    }

    /// Takes note of a segment from the mobile.
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

    /// What a segment of the mobile's acknowledges.
    pub(super) fn acknowledged_by(&self, segment: &Segment) -> ExtSeq {
        self.highest().nearest(segment.ack)
    }

    /// A round trip to the fixed host ends with its echo of the time stamp that was timed.
    fn on_echo(&mut self, now: Instant, segment: &Segment) {
        let Some((val, since)) = self.timed else { return };
        let echo = segment.options.timestamps.filter(|_| segment.has(flag::ACK));
        if echo.is_some_and(|echo| echo.ecr.wrapping_sub(val) as i32 >= 0) {
            // An echo waits for something to be sent: the shortest is the round trip.
            let sample = now.since(since);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
            self.timed = None;
        }
    }

    /// The frame `frame` carries what was entered.
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

    /// Whether the radio still has the byte `seq`.
    pub(super) fn is_in_radio(&self, seq: ExtSeq, is_held: impl Fn(FrameNo) -> bool) -> bool {
        self.frames.iter().any(|carried| carried.range.contains(seq) && is_held(carried.frame))
    }

    /// Whether the radio still has the byte `seq`, and the fixed host has not sent it again.
    pub(super) fn is_radios(&self, seq: ExtSeq, is_held: impl Fn(FrameNo) -> bool) -> bool {
        let mut carriers = self.frames.iter().filter(|carried| carried.range.contains(seq));
        carriers.clone().all(|carried| carried.is_new)
            && carriers.any(|carried| is_held(carried.frame))
    }

    /// The mobile's highest acknowledgement; `None` before there is one.
    pub(super) fn acked(&self) -> Option<ExtSeq> {
        self.mobile.and_then(|mobile| mobile.end.acked)
    }

    /// One past the highest number of the fixed host's.
    pub(super) fn highest(&self) -> ExtSeq {
        self.fixed.map_or(self.floor, |fixed| fixed.nxt)
    }

    /// Whether both ends have said that they are done, and heard that the other knows.
    pub(super) fn is_finished(&self) -> bool {
        let ends = self.fixed.zip(self.mobile.map(|mobile| mobile.end));
        ends.is_some_and(|(fixed, mobile)| fixed.is_done(&mobile) && mobile.is_done(&fixed))
    }

    /// Whether a reset from `side` has the number that its receiver waits for (RFC 5961 section
    /// 3.2): what that end has acknowledged, or one past the sender's highest, where the
    /// acknowledgement is on its way.
    pub(super) fn believes_reset(&self, segment: &Segment, side: Side) -> bool {
        let mobile = self.mobile.map(|mobile| mobile.end);
        let (own, other) = match side {
            Side::Wired => (self.fixed, mobile),
            Side::Wireless => (mobile, self.fixed),
        };
        let is = |number: Option<ExtSeq>, seq| number.is_some_and(|number| number.wire() == seq);
        // RFC 9293 section 3.10.7.3: the answer to a SYN has no number of its own.
        let refuses = own.is_none() && other.is_some_and(|other| other.is_answered_by(segment));
        is(own.map(|own| own.nxt), segment.seq)
            || is(other.and_then(|other| other.acked), segment.seq)
            || refuses
    }

    /// The round trip between here and the fixed host, if one was seen.
    pub(super) const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// The mobile's last ACK once more, with the window `window`; `None` before it has sent one.
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

    /// Everything that another base station has to know, and whoever looks.
    pub(super) fn record(&self, key: &FlowKey) -> FlowRecord {
        let wire = |range: SeqRange| (range.start.wire().0, range.end.wire().0);
        FlowRecord {
            key: *key,
            seen: self.seen.iter().map(wire).collect(),
            acked: self.acked().map(|acked| acked.wire().0),
            floor: self.floor.wire().0,
            seq: self.mobile.map(|mobile| mobile.end.nxt.wire().0),
            window: self.mobile.map(|mobile| mobile.window),
            window_scale: self.mobile.and_then(|mobile| mobile.end.shift),
            timestamps: self.mobile.and_then(|mobile| mobile.timestamps).map(|ts| (ts.val, ts.ecr)),
            is_frozen: self.frozen.is_some(),
        }
    }

    /// Bytes of packets that are cached.
    pub(super) fn cached(&self) -> usize {
        self.cache.as_ref().map_or(0, |cache| cache.bytes())
    }

    /// Bytes of memory, the heap's among them.
    pub(super) fn memory(&self) -> usize {
        // A node of the tree holds eleven ranges.
        let tree = self.seen.len().div_ceil(11) * (11 * size_of::<SeqRange>() + 16);
        let claim = self.claim.as_ref().map_or(0, |_| size_of::<Segment>());
        size_of::<Self>()
            + claim
            + self.cached()
            + tree
            + self.frames.capacity() * size_of::<Carried>()
    }
}

/// The number that a segment acknowledges, if it does, near one that it may.
fn acknowledged(segment: &Segment, near: Option<ExtSeq>) -> Option<ExtSeq> {
    let ack = near.map_or(ExtSeq::starting_at(segment.ack), |near| near.nearest(segment.ack));
    segment.has(flag::ACK).then_some(ack)
}

/// A flow as it can be shown, stored, and handed to another base station. Numbers are those on the
/// wire.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct FlowRecord {
    /// The two ends.
    #[serde(flatten)]
    pub key: FlowKey,
    /// Ranges seen from the fixed host and not acknowledged by the mobile: first number, and one
    /// past the last.
    pub seen: Vec<(u32, u32)>,
    /// The mobile's highest acknowledgement.
    pub acked: Option<u32>,
    /// What is below was not watched.
    pub floor: u32,
    /// The mobile's SND.NXT.
    pub seq: Option<u32>,
    /// Its window, before scaling.
    pub window: Option<u16>,
    /// The shift of its windows; `None` where its SYN was not seen.
    pub window_scale: Option<u8>,
    /// Its last TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Whether the fixed host was told to stop.
    pub is_frozen: bool,
}

#[cfg(test)]
mod tests {
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
        assert_eq!(flow.record(&testkey()).seen, [(5_500, 6_000)]);
        ack(&mut flow, 4_000);
        assert_eq!(flow.acked().map(ExtSeq::wire), Some(SeqNumber(5_500)), "it never goes back");
        ack(&mut flow, 6_000);
        assert!(flow.record(&testkey()).seen.is_empty());
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
        assert_eq!(flow.record(&testkey()).seen.len(), MAX_RANGES);
        let memory = flow.memory();
        assert!(memory < 8_192, "{memory}");
        data(&mut flow, 0, 1_000);
        assert_eq!(
            flow.record(&testkey()).seen[0],
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
        assert_eq!(flow.record(&testkey()).window_scale, Some(7));
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
