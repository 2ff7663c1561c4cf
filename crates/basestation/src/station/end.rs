//! State of one end of a flow: its window, and the numbers that the other end may use.

use airtcp_types::{ExtSeq, SeqRange};

use super::segment::{Segment, flag};

/// The largest shift of a window (RFC 7323 section 2.3). That of an end whose SYN was not seen may
/// be as large.
const MAX_SHIFT: u8 = 14;
/// A window counts as so large at least: it may have been larger before the station saw the flow.
const MIN_WINDOW: u32 = 65_535;

/// Why a segment is not believed to be its end's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// Its numbers lie outside the window of the other end.
    Data,
    /// It acknowledges what the other end has not sent, or nothing.
    Ack,
    /// It opens a flow that is open.
    Syn,
}

/// One end of a flow, by the segments that were believed to be its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    /// SND.NXT: the number after its highest.
    pub(super) nxt: ExtSeq,
    /// The number after its SYN, where that was seen: ISS + 1.
    opened: Option<ExtSeq>,
    /// Its highest acknowledgement.
    pub(super) acked: Option<ExtSeq>,
    /// The largest window that it has offered, in bytes.
    window: u32,
    /// The shift of its windows, where its SYN was seen.
    pub(super) shift: Option<u8>,
    /// Whether its FIN is below SND.NXT.
    is_done: bool,
}

impl End {
    /// An end whose first number is `first`.
    pub(super) const fn starting_at(first: ExtSeq) -> Self {
        Self {
            nxt: first,
            opened: None,
            acked: None,
            window: MIN_WINDOW,
            shift: None,
            is_done: false,
        }
    }

    /// Whether it has sent its FIN, and `other` has acknowledged it.
    pub(super) fn is_done(&self, other: &Self) -> bool {
        self.is_done && other.acked.is_some_and(|acked| acked >= self.nxt)
    }

    /// Takes note of a segment of its own that has the numbers `range`, and acknowledges `ack`.
    pub(super) fn on_segment(&mut self, segment: &Segment, range: SeqRange, ack: Option<ExtSeq>) {
        self.is_done = match range.end >= self.nxt {
            true => segment.has(flag::FIN) || self.is_done && range.end == self.nxt,
            false => self.is_done,
        };
        self.nxt = self.nxt.max(range.end);
        self.acked = self.acked.max(ack);
        if segment.has(flag::SYN) {
            let shift = segment.options.window_scale.unwrap_or(0).min(MAX_SHIFT);
            self.shift.get_or_insert(shift);
            self.opened.get_or_insert(range.start + 1);
        }
        self.window = self.window.max(offered(segment, self.shift));
    }

    /// Whether it has sent its SYN and acknowledged nothing: it is in SYN-SENT.
    fn is_opening(&self) -> bool {
        self.opened.is_some() && self.acked.is_none()
    }

    /// Whether a segment acknowledges everything that it has sent. Of a SYN with data the SYN alone
    /// may be acknowledged too (RFC 7413 section 4.2).
    pub(super) fn is_answered_by(&self, segment: &Segment) -> bool {
        let is = |number: ExtSeq| number.wire() == segment.ack;
        let is_syns = self.is_opening() && self.opened.is_some_and(is);
        segment.has(flag::ACK) && (is(self.nxt) || is_syns)
    }

    /// Whether a SYN of this end's repeats the one that opened the flow. It may come again without
    /// the data that it had (RFC 7413 section 4.2.1).
    fn is_repeated_by(&self, segment: &Segment) -> bool {
        let range = numbers(Some(*self), None, segment);
        let is_without_data = self.acked.is_none() && self.opened == Some(range.start + 1);
        range.end == self.nxt || is_without_data
    }

    /// Whether a segment of this end's may be believed, by what it has said and `other` has: RFC
    /// 9293 section 3.10.7.4.
    fn check(&self, segment: &Segment, other: &Self) -> Result<(), Refusal> {
        if segment.has(flag::ACK) {
            let oldest = match (self.acked, other.opened) {
                // RFC 5961 section 5.2: at most MAX.SND.WND back.
                (Some(acked), _) => acked - u64::from(self.window),
                (None, Some(opened)) => opened,
                // The flow was first seen in the middle: MAX.SND.WND may be what this segment
                // offers.
                (None, None) => other.nxt - u64::from(offered(segment, self.shift)),
            };
            // RFC 9293 section 3.10.7.3: the other end's SYN at least.
            let oldest = other.opened.map_or(oldest, |opened| oldest.max(opened));
            let ack = other.nxt.nearest(segment.ack);
            if !(oldest..=other.nxt).contains(&ack) {
                return Err(Refusal::Ack);
            }
        }
        let range = numbers(Some(*self), None, segment);
        let window = u64::from(other.window);
        // What was sent again may be as far below as windows reach. A probe is one byte above a
        // closed one.
        let is_near = other.acked.is_none_or(|next| {
            next.since(range.start).0 <= window && range.end.since(next).0 <= window + 1
        });
        if is_near { Ok(()) } else { Err(Refusal::Data) }
    }
}

/// Whether a segment may be its end's. `own` is what that end has said before, `other` what the
/// other end has.
pub(super) fn check(
    own: Option<End>,
    other: Option<End>,
    segment: &Segment,
) -> Result<(), Refusal> {
    let is_syn = segment.has(flag::SYN);
    // RFC 5961 section 4: no SYN is in a flow that is open, but the first one sent again.
    if is_syn && own.is_some_and(|own| !own.is_repeated_by(segment)) {
        return Err(Refusal::Syn);
    }
    // RFC 9293 section 3.10.7.4, fifth: what acknowledges nothing is dropped.
    if !is_syn && !segment.has(flag::ACK) {
        return Err(Refusal::Ack);
    }
    let Some(other) = other else { return Ok(()) };
    // Neither the numbers nor the window of an end are known before its answer to the SYN: only the
    // acknowledgement shows that the answer is its own.
    if own.is_none() && other.is_opening() && !(is_syn && other.is_answered_by(segment)) {
        return Err(Refusal::Ack);
    }
    let first = || End::starting_at(numbers(None, Some(other), segment).start);
    own.unwrap_or_else(first).check(segment, &other)
}

/// The numbers of a segment, near those that its end has used, or that `other` waits for.
pub(super) fn numbers(own: Option<End>, other: Option<End>, segment: &Segment) -> SeqRange {
    let near = own.map(|own| own.nxt).or_else(|| other.and_then(|other| other.acked));
    let start = near.map_or(ExtSeq::starting_at(segment.seq), |near| near.nearest(segment.seq));
    SeqRange::new(start, start + u64::from(segment.len()))
}

/// The window that a segment offers, in bytes; on a SYN it is not scaled (RFC 7323 section 2.2).
fn offered(segment: &Segment, shift: Option<u8>) -> u32 {
    let shift = if segment.has(flag::SYN) { 0 } else { shift.unwrap_or(MAX_SHIFT) };
    (u32::from(segment.window) << shift).max(MIN_WINDOW)
}
