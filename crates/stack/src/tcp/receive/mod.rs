//! The receive half: acceptability of segments, reassembly, and the window to offer.

mod ack_policy;
mod buffer;
mod growth;
mod reassembly;
mod withhold;

use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant, SeqRange};
use airtcp_wire::options::SackBlocks;
use airtcp_wire::payload::Payload;

pub(super) use ack_policy::{AckPolicy, DueAck};
pub use buffer::Chunk;
pub use withhold::MarkAware;
pub(super) use withhold::{AckFate, Taken, Withholding};

use buffer::ReceiveBuffer;
use growth::Growth;
use reassembly::{Inserted, Reassembly};

/// RCV.NXT, RCV.WND and all data that was not read.
#[derive(Debug)]
pub(super) struct Receiver {
    /// RCV.NXT.
    nxt: ExtSeq,
    /// One past the last number offered; it never moves left.
    edge: ExtSeq,
    /// The acknowledgement number sent last (RFC 7323's Last.ACK.sent).
    last_ack_sent: ExtSeq,
    /// The scale of the windows that this end sends (bits).
    scale: u8,
    /// Whether the last offered window was zero.
    is_closed: bool,
    /// The MSS of this end, for silly-window avoidance.
    mss: ByteCount,
    buffer: ReceiveBuffer,
    /// The amount of out-of-order data that the host can still store.
    room: ByteCount,
    /// Exists only while there are holes.
    reassembly: Option<Box<Reassembly>>,
    /// The number of the peer's FIN, once it has arrived.
    fin: Option<ExtSeq>,
    growth: Growth,
}

/// The window of a segment that is sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Offered {
    /// The window field of the header.
    pub(super) field: u16,
    /// The window is zero and was not zero before.
    pub(super) closes: bool,
    /// The window is not zero and was zero before.
    pub(super) opens: bool,
}

/// The effect of a segment's data or FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Arrival {
    /// Bytes that had not arrived before.
    pub(super) new_bytes: ByteCount,
    /// A range that the peer sent twice, for a DSACK.
    pub(super) duplicate: Option<SeqRange>,
    /// The segment left or filled a hole: it must be acknowledged at once (RFC 5681 section 4.2).
    pub(super) out_of_order: bool,
    /// The segment is above a hole and was stored.
    pub(super) queued: bool,
    /// Part of the segment was beyond the window, or was dropped because of the number of holes or
    /// the memory limits.
    pub(super) dropped: bool,
    /// The segment is above a hole, and the quota of out-of-order data is reached.
    pub(super) over_quota: bool,
    /// Data was dropped because the host is short of memory.
    pub(super) no_memory: bool,
    /// The peer's FIN is now in order.
    pub(super) fin: bool,
}

impl Receiver {
    /// Creates the state before the peer's initial sequence number is known.
    pub(super) fn new(now: Instant, mss: ByteCount, initial: ByteCount, max: ByteCount) -> Self {
        Self {
            nxt: ExtSeq::default(),
            edge: ExtSeq::default(),
            last_ack_sent: ExtSeq::default(),
            scale: 0,
            is_closed: false,
            mss,
            buffer: ReceiveBuffer::default(),
            room: ByteCount::MAX,
            reassembly: None,
            fin: None,
            growth: Growth::new(now, initial, max),
        }
    }

    /// Sets the peer's initial sequence number `irs` and the scale of the windows that this end
    /// sends. Limits the buffer to what can be offered: a larger one would cause window updates
    /// without a change.
    pub(super) fn start(&mut self, irs: ExtSeq, scale: u8) {
        let offered = u64::from(self.syn_window());
        self.scale = scale;
        self.growth.keep_below(ByteCount(u64::from(u16::MAX) << scale));
        self.nxt = irs + 1;
        self.last_ack_sent = self.nxt;
        self.edge = self.nxt + offered;
    }

    /// RCV.NXT.
    pub(super) const fn nxt(&self) -> ExtSeq {
        self.nxt
    }

    /// The acknowledgement number sent last.
    pub(super) const fn last_ack_sent(&self) -> ExtSeq {
        self.last_ack_sent
    }

    /// Whether everything in order was acknowledged.
    pub(super) fn is_all_acknowledged(&self) -> bool {
        self.nxt == self.last_ack_sent
    }

    /// The scale of the windows that this end sends (bits).
    pub(super) const fn scale(&self) -> u8 {
        self.scale
    }

    /// RCV.WND: the part of the offered window that has not arrived.
    pub(super) fn window(&self) -> ByteCount {
        self.edge.since(self.nxt)
    }

    /// The amount of in-order data that is accepted as a whole: the offered window, or nothing if
    /// the host is short of memory.
    pub(super) fn room(&self) -> ByteCount {
        match self.growth.taken(self.mss) {
            Some(_) => ByteCount::ZERO,
            None => self.window(),
        }
    }

    /// Bytes that can be read now.
    pub(super) fn readable(&self) -> ByteCount {
        self.buffer.len()
    }

    /// The bytes stored, in order or not.
    pub(super) fn held(&self) -> ByteCount {
        self.buffer.len() + self.reassembly.as_ref().map_or(ByteCount::ZERO, |held| held.len())
    }

    /// The memory of the out-of-order data, including the overhead.
    pub(super) fn out_of_order(&self) -> ByteCount {
        self.reassembly.as_ref().map_or(ByteCount::ZERO, |held| held.cost())
    }

    /// Whether [`shrink`](Self::shrink) would free memory.
    pub(super) fn can_shrink(&self) -> bool {
        self.buffer.can_shrink()
    }

    /// Frees the memory that is kept to avoid an allocation per segment.
    pub(super) fn shrink(&mut self) {
        self.buffer.shrink();
    }

    /// Whether there are holes.
    pub(super) fn has_holes(&self) -> bool {
        self.reassembly.is_some()
    }

    /// Whether the peer's FIN and everything before it have arrived.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    /// Sets the amount of out-of-order data that the host can still store.
    pub(super) fn set_out_of_order_room(&mut self, room: ByteCount) {
        self.room = room;
    }

    /// Sets the maximum size of the receive buffer.
    pub(super) fn set_max(&mut self, max: ByteCount) {
        self.growth.set_max(max);
    }

    /// The current size limit of the buffer.
    pub(super) const fn limit(&self) -> ByteCount {
        self.growth.limit()
    }

    /// The receiver's estimate of the round-trip time.
    pub(super) const fn rtt(&self) -> Option<Duration> {
        self.growth.rtt()
    }

    /// Whether a segment from `seq` to `end` touches the window (RFC 9293 section 3.10.7.4, first).
    ///
    /// As in Linux, the range is wider at both ends than the four cases of the RFC: it starts at
    /// the last ACK sent, so that a repeated FIN is accepted, and includes the edge of the window,
    /// from where a peer that has filled the window sends its ACKs and one-byte probes.
    pub(super) fn is_acceptable(&self, seq: ExtSeq, end: ExtSeq) -> bool {
        end >= self.last_ack_sent && seq <= self.edge.max(self.nxt)
    }

    /// Whether `seq` is in the window (RFC 5961 section 3.2).
    pub(super) fn is_in_window(&self, seq: ExtSeq) -> bool {
        seq == self.nxt || (seq > self.nxt && seq < self.edge)
    }

    /// Whether the peer may have sent `seq` recently: it is in the window, or at most one window
    /// below RCV.NXT.
    pub(super) fn is_near(&self, seq: ExtSeq) -> bool {
        seq <= self.edge && self.nxt.since(seq) <= self.growth.limit()
    }

    /// Whether the byte `seq` is in the offered window and not yet in order.
    pub(super) fn offers(&self, seq: ExtSeq) -> bool {
        seq >= self.nxt && seq < self.edge
    }

    /// Stores the data and the FIN of an acceptable segment.
    pub(super) fn on_data<'a>(
        &mut self,
        seq: ExtSeq,
        payload: impl Into<Payload<'a>>,
        fin: bool,
    ) -> Arrival {
        let payload = payload.into();
        let mut arrival = Arrival::default();
        let whole = SeqRange::new(seq, seq + payload.len() as u64 + u64::from(fin));
        if whole.start < self.nxt {
            let end = whole.end.min(self.nxt);
            arrival.duplicate = Some(SeqRange::new(whole.start, end));
        }
        if whole.end <= self.nxt {
            return arrival;
        }
        let (payload, fin) = self.trim(seq, payload, fin, &mut arrival);
        let start = seq.max(self.nxt);
        let range = SeqRange::new(start, start + payload.len() as u64 + u64::from(fin));
        if range.is_empty() {
            return arrival;
        }
        if range.start == self.nxt && self.reassembly.is_none() {
            // The fast path: there are no holes.
            self.buffer.push(payload);
            self.nxt = range.end;
            arrival.new_bytes = payload.len().into();
        } else {
            arrival.out_of_order = true;
            let Self { reassembly, buffer, .. } = self;
            let held = reassembly.get_or_insert_default();
            let inserted = if range.start == self.nxt {
                let (inserted, nxt) = held.take_next(range, payload, |data| buffer.push(data));
                self.nxt = nxt;
                inserted
            } else if Reassembly::cost_of(payload.len()) <= self.room {
                let inserted = held.insert(range, &payload.contiguous());
                arrival.queued = !inserted.refused;
                inserted
            } else {
                arrival.over_quota = true;
                Inserted { refused: true, ..Inserted::default() }
            };
            arrival.new_bytes = inserted.new_bytes;
            arrival.duplicate = arrival.duplicate.or(inserted.duplicate);
            arrival.dropped |= inserted.refused;
            reassembly.take_if(|held| held.is_empty());
        }
        arrival.fin = self.is_finished();
        arrival
    }

    /// Cuts off the part of a segment below RCV.NXT, beyond the window or the FIN, or beyond the
    /// memory limit.
    fn trim<'a>(
        &mut self,
        seq: ExtSeq,
        payload: Payload<'a>,
        fin: bool,
        arrival: &mut Arrival,
    ) -> (Payload<'a>, bool) {
        let known = self.nxt.since(seq).as_usize().min(payload.len());
        let start = seq.max(self.nxt);
        let payload = payload.skip(known);
        let mut bound = self.fin.map_or(self.edge, |fin| fin.min(self.edge));
        if let Some(taken) = self.growth.taken(self.mss) {
            let last = self.nxt + (taken - self.buffer.len());
            arrival.no_memory = last < bound && last < start + payload.len() as u64;
            bound = bound.min(last);
        }
        let room = bound.since(start).as_usize();
        if room < payload.len() {
            arrival.dropped = true;
            return (payload.truncate(room), false);
        }
        // A FIN needs no space in the window. A FIN below data that has arrived, or a second FIN at
        // another number, is invalid.
        let number = start + payload.len() as u64;
        let credible = self.fin.is_none_or(|fin| fin == number)
            && self
                .reassembly
                .as_ref()
                .and_then(|held| held.end())
                .is_none_or(|end| end <= number + 1);
        if fin && credible {
            self.fin = Some(number);
            self.edge = self.edge.max(number + 1);
        }
        (payload, fin && credible)
    }

    /// The SACK blocks for an ACK: first the DSACK; second, if the DSACK is above the cumulative
    /// acknowledgement, the block that contains it (RFC 2883 section 4); then the others, the one
    /// with the latest segment first.
    pub(super) fn blocks(&self, dsack: Option<SeqRange>) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        let mut push = |range: SeqRange| blocks.push(range.start.wire(), range.end.wire());
        let around = dsack.and_then(|range| self.block_around(range));
        dsack.into_iter().chain(around).for_each(|range| {
            push(range);
        });
        let held = self.reassembly.iter().flat_map(|held| held.blocks());
        for range in held.filter(|range| Some(*range) != around) {
            push(range);
        }
        blocks
    }

    /// The stored range above RCV.NXT that contains all of `range`.
    fn block_around(&self, range: SeqRange) -> Option<SeqRange> {
        self.reassembly.as_ref()?.range_of(range.start).filter(|block| block.covers(range))
    }

    /// The part of a segment with `len` bytes of data that has arrived before.
    pub(super) fn old_part(&self, seq: ExtSeq, len: usize) -> Option<SeqRange> {
        let old = SeqRange::new(seq, (seq + len as u64).min(self.nxt).max(seq));
        (!old.is_empty()).then_some(old)
    }

    /// Copies data to the application's buffer and removes it.
    pub(super) fn read(&mut self, now: Instant, buf: &mut [u8]) -> usize {
        let n = self.buffer.pop(buf);
        self.on_read(now, n);
        n
    }

    /// Takes the next contiguous bytes without a copy.
    pub(super) fn take(&mut self, now: Instant, chunk: &mut Chunk) -> usize {
        let n = self.buffer.take(chunk);
        self.on_read(now, n);
        n
    }

    fn on_read(&mut self, now: Instant, n: usize) {
        let last = self.reassembly.as_ref().and_then(|held| held.end());
        let waiting = last.map_or(ByteCount::ZERO, |end| end.since(self.nxt));
        self.growth.on_read(now, n.into(), waiting);
    }

    /// Copies readable data without removing it; returns the number of bytes.
    pub(super) fn peek(&self, buf: &mut [u8]) -> usize {
        self.buffer.peek(buf)
    }

    /// Records a round-trip time measured by the receiver: from a timestamp of this end to data
    /// that echoes it.
    pub(super) fn on_rtt(&mut self, sample: Duration) {
        self.growth.on_rtt(sample);
    }

    /// Stops or resumes the growth of the buffer, and limits the offered window, while the host is
    /// short of memory.
    pub(super) fn hold_back(&mut self, held_back: bool) {
        self.growth.hold_back(held_back);
    }

    /// Drops all data that was not read.
    pub(super) fn discard(&mut self) {
        self.buffer.clear();
        self.reassembly = None;
    }

    /// Drops all out-of-order data.
    pub(super) fn discard_out_of_order(&mut self) {
        self.reassembly = None;
    }

    /// The edge to offer now. It moves right only by a worthwhile step (RFC 9293 section
    /// 3.8.6.2.2).
    fn next_edge(&self) -> ExtSeq {
        let edge = self.nxt + (self.growth.offered(self.mss) - self.buffer.len());
        let step = self.growth.limit().half().min(self.mss);
        if edge.since(self.edge) >= step { edge } else { self.edge }
    }

    /// Offers the current window in a segment that acknowledges `ack`, and returns its fields.
    pub(super) fn offer(&mut self, ack: ExtSeq) -> Offered {
        let unit = 1u64 << self.scale;
        let edge = self.next_edge();
        let window = edge.since(ack).0;
        // The field is rounded up so that the edge does not move left. A stream of tiny segments
        // must not push the edge beyond the buffer, however.
        let bound = (self.nxt + self.growth.limit().0 + unit).0.saturating_sub(self.buffer.len().0);
        let mut field = window.div_ceil(unit);
        if ack.0.saturating_add(field * unit) > bound.max(self.edge.0) {
            field = window / unit;
        }
        let field = u16::try_from(field).unwrap_or(u16::MAX);
        self.edge = self.edge.max(ack + u64::from(field) * unit);
        self.last_ack_sent = self.last_ack_sent.max(ack);
        let was_closed = std::mem::replace(&mut self.is_closed, field == 0);
        Offered { field, closes: field == 0 && !was_closed, opens: field != 0 && was_closed }
    }

    /// The window field that offers no more than was offered already.
    pub(super) fn offered(&self) -> u16 {
        u16::try_from(self.window().0 >> self.scale).unwrap_or(u16::MAX)
    }

    /// The window field of a SYN, which is not scaled (RFC 7323 section 2.2).
    pub(super) fn syn_window(&self) -> u16 {
        u16::try_from(self.growth.limit().0).unwrap_or(u16::MAX)
    }

    /// Whether reads have opened the window enough for a window update: by at least a step, and to
    /// at least twice the window that the peer knows (Linux's `tcp_cleanup_rbuf`).
    pub(super) fn wants_update(&self) -> bool {
        let known = self.window();
        let edge = self.next_edge();
        edge > self.edge && edge.since(self.nxt) >= known * 2
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use airtcp_types::SharedBytes;

    use super::*;

    const MSS: ByteCount = ByteCount(1000);

    fn receiver(limit: u64, scale: u8) -> Receiver {
        let mut r = Receiver::new(Instant::ZERO, MSS, ByteCount(limit), ByteCount(limit * 8));
        r.start(ExtSeq(99), 0);
        r.scale = scale;
        r
    }

    #[test]
    fn the_window_closes_and_opens_by_worthwhile_steps_only() {
        let mut r = receiver(4000, 0);
        for n in 0..4 {
            r.on_data(ExtSeq(100 + n * 1000), &[0; 1000], false);
            let field = 3000 - 1000 * n as u16;
            let offered = Offered { field, closes: field == 0, opens: false };
            assert_eq!(r.offer(r.nxt()), offered);
        }
        r.read(Instant::ZERO, &mut [0; 999]);
        assert!(!r.wants_update());
        assert_eq!(r.offer(r.nxt()), Offered { field: 0, closes: false, opens: false });
        r.read(Instant::ZERO, &mut [0; 1]);
        assert!(r.wants_update());
        assert_eq!(r.offer(r.nxt()), Offered { field: 1000, closes: false, opens: true });
        assert_eq!(r.offer(r.nxt()), Offered { field: 1000, closes: false, opens: false });
    }

    #[test]
    fn an_older_ack_does_not_change_the_last_acknowledgement() {
        let mut r = receiver(4000, 0);
        assert!(r.is_all_acknowledged());
        r.on_data(ExtSeq(100), &[0; 1000], false);
        assert!(!r.is_all_acknowledged());
        for ack in [1100, 100] {
            r.offer(ExtSeq(ack));
            assert!(r.is_all_acknowledged());
            assert_eq!(r.last_ack_sent(), ExtSeq(1100));
        }
    }

    #[test]
    fn a_duplicate_is_reported_first_and_the_range_around_it_second() {
        let mut r = receiver(4000, 0);
        for start in [200, 400, 600] {
            r.on_data(ExtSeq(start), &[0; 100], false);
        }
        let blocks = |r: &Receiver, dsack: Option<(u64, u64)>| {
            let range = dsack.map(|(start, end)| SeqRange::new(ExtSeq(start), ExtSeq(end)));
            let blocks = r.blocks(range);
            let blocks = blocks.as_slice().iter().map(|(start, end)| (start.0, end.0));
            blocks.collect::<Vec<_>>()
        };
        assert_eq!(blocks(&r, None), [(600, 700), (400, 500), (200, 300)]);
        let around = blocks(&r, Some((420, 450)));
        assert_eq!(around, [(420, 450), (400, 500), (600, 700), (200, 300)]);
        let below = blocks(&r, Some((50, 100)));
        assert_eq!(below, [(50, 100), (600, 700), (400, 500), (200, 300)]);
    }

    #[test]
    fn what_fills_a_hole_is_not_copied() {
        let packet = Arc::new(vec![7; 40_000]);
        let shared = [SharedBytes::new(&packet, 0..40_000)];
        let mut r = receiver(65_535, 0);
        r.on_data(ExtSeq(40_100), b"x", false);
        let arrival = r.on_data(ExtSeq(100), Payload::new(&[], &shared), false);
        assert_eq!((arrival.new_bytes, r.nxt()), (ByteCount(40_000), ExtSeq(40_101)));
        let mut chunk = Chunk::default();
        assert_eq!(r.take(Instant::ZERO, &mut chunk), 40_000);
        assert_eq!(chunk.as_ptr(), packet.as_ptr());
    }

    #[test]
    fn data_below_rcv_nxt_is_old() {
        let r = receiver(4000, 0);
        let range = |start, end| Some(SeqRange::new(ExtSeq(start), ExtSeq(end)));
        assert_eq!(r.old_part(ExtSeq(90), 5), range(90, 95));
        assert_eq!(r.old_part(ExtSeq(90), 50), range(90, 100));
        assert_eq!((r.old_part(ExtSeq(90), 0), r.old_part(ExtSeq(120), 9)), (None, None));
    }

    // Shows: RFC9293-SHLD-14
    #[test]
    fn tiny_segments_move_the_edge_neither_left_nor_past_the_buffer() {
        let mut r = receiver(65_535, 7);
        let mut edge = ExtSeq(0);
        for n in 0..70_000 {
            r.on_data(ExtSeq(100 + n), b"x", false);
            let ack = r.nxt();
            let offered = ack + (u64::from(r.offer(ack).field) << 7);
            // A decrease below one unit of the scale is rounding.
            assert!(offered + 128 > edge);
            edge = edge.max(offered);
        }
        assert!(r.held() <= ByteCount(65_535 + 128), "{:?}", r.held());
        assert_eq!(r.offer(r.nxt()).field, 0);
    }

    #[test]
    fn data_beyond_the_window_is_trimmed() {
        let mut r = receiver(1000, 0);
        let arrival = r.on_data(ExtSeq(100), &[0; 1500], true);
        assert!(arrival.dropped && !arrival.fin);
        assert_eq!((r.nxt(), r.window()), (ExtSeq(1100), ByteCount(0)));
    }

    #[test]
    fn a_fin_may_come_first_and_ends_the_stream() {
        let mut r = receiver(1000, 0);
        assert!(!r.on_data(ExtSeq(110), b"xy", true).fin);
        assert!(r.on_data(ExtSeq(112), b"beyond", false).dropped);
        assert!(!r.on_data(ExtSeq(105), b"", true).fin, "a second FIN lies");
        assert!(r.on_data(ExtSeq(100), &[0; 10], false).fin);
        assert_eq!((r.nxt(), r.readable()), (ExtSeq(113), ByteCount(12)));
    }

    #[test]
    fn a_fast_reader_gets_a_larger_buffer_up_to_the_maximum() {
        let mut r = receiver(4000, 0);
        r.on_rtt(Duration::from_millis(10));
        let mut now = Instant::ZERO;
        let mut read_all = |r: &mut Receiver, pause| {
            let limit = r.limit().as_usize();
            let nxt = r.nxt();
            r.offer(nxt);
            r.on_data(nxt, &vec![0; limit][..], false);
            now += Duration::from_millis(pause);
            r.read(now, &mut vec![0; limit / 2]);
            now += Duration::from_millis(pause);
            r.read(now, &mut vec![0; limit]);
        };
        read_all(&mut r, 100);
        assert_eq!(r.limit(), ByteCount(4000), "half a buffer in a round trip is enough");
        (0..9).for_each(|_| read_all(&mut r, 1));
        assert_eq!(r.limit(), ByteCount(32_000));
    }

    #[test]
    fn a_peer_that_leaves_wide_holes_gets_no_more_than_the_maximum() {
        let mut r = receiver(4000, 0);
        r.on_rtt(Duration::from_millis(10));
        for n in 0..100 {
            let now = Instant::from_millis(n);
            r.offer(r.nxt());
            // The last byte of the window, and the next byte in order.
            r.on_data(r.edge - 1, b"x", false);
            r.on_data(r.nxt(), b"x", false);
            r.read(now, &mut [0; 1]);
            assert!(r.limit() <= ByteCount(32_000));
            assert!(r.window() <= ByteCount(32_000), "{:?}", r.window());
        }
        assert!(r.limit() > ByteCount(4000), "holes do make it grow");
    }
}
