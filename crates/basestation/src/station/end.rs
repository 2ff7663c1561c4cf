//! The state of one end of a flow: its window, and the sequence numbers that the other end may use.

use std::cmp::Ordering;

use airtcp_types::{ExtSeq, SeqRange};

use super::segment::{Segment, flag};

/// The maximum window scale (RFC 7323 section 2.3), which is assumed for an end whose SYN was not
/// seen.
pub(super) const MAX_SHIFT: u8 = 14;
/// The minimum of an assumed window: it may have been larger before the station saw the flow.
const MIN_WINDOW: u32 = 65_535;

/// Why a segment is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// Its sequence numbers are outside the window of the other end.
    Data,
    /// It acknowledges data that the other end has not sent, or has no ACK.
    Ack,
    /// It is a SYN in an open flow.
    Syn,
}

/// The state of one end of a flow, from its accepted segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    /// SND.NXT: the next sequence number.
    pub(super) nxt: ExtSeq,
    /// ISS + 1, if its SYN was seen.
    pub(super) opened: Option<ExtSeq>,
    /// Its highest acknowledgement.
    pub(super) acked: Option<ExtSeq>,
    /// The largest window that it has advertised, in bytes.
    pub(super) window: u32,
    /// Its window scale, if its SYN was seen.
    pub(super) shift: Option<u8>,
    /// Whether it has sent a FIN below SND.NXT.
    pub(super) has_ended: bool,
}

impl End {
    /// Creates an end whose first sequence number is `first`.
    pub(super) const fn starting_at(first: ExtSeq) -> Self {
        Self {
            nxt: first,
            opened: None,
            acked: None,
            window: MIN_WINDOW,
            shift: None,
            has_ended: false,
        }
    }

    /// Whether it has sent a FIN that `other` has acknowledged.
    pub(super) fn is_done(&self, other: &Self) -> bool {
        self.has_ended && other.acked.is_some_and(|acked| acked >= self.nxt)
    }

    /// Records an accepted segment of this end with the sequence numbers `range` and the
    /// acknowledgement `ack`.
    pub(super) fn on_segment(&mut self, segment: &Segment, range: SeqRange, ack: Option<ExtSeq>) {
        self.has_ended = match range.end >= self.nxt {
            true => segment.has(flag::FIN) || self.has_ended && range.end == self.nxt,
            false => self.has_ended,
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

    /// Adds what another station recorded of this end. Numbers only rise.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.has_ended = match self.nxt.cmp(&other.nxt) {
            Ordering::Less => other.has_ended,
            Ordering::Equal => self.has_ended || other.has_ended,
            Ordering::Greater => self.has_ended,
        };
        self.nxt = self.nxt.max(other.nxt);
        self.opened = self.opened.or(other.opened);
        self.acked = self.acked.max(other.acked);
        self.window = self.window.max(other.window);
        self.shift = self.shift.or(other.shift);
    }

    /// Whether the end is in SYN-SENT: it has sent its SYN and acknowledged nothing.
    fn is_opening(&self) -> bool {
        self.opened.is_some() && self.acked.is_none()
    }

    /// Whether a segment acknowledges everything that the end has sent. A SYN with data may be
    /// acknowledged without the data (RFC 7413 section 4.2).
    pub(super) fn is_answered_by(&self, segment: &Segment) -> bool {
        let is = |number: ExtSeq| number.wire() == segment.ack;
        let is_syns = self.is_opening() && self.opened.is_some_and(is);
        segment.has(flag::ACK) && (is(self.nxt) || is_syns)
    }

    /// Whether a SYN of this end is a retransmission of the one that opened the flow, with or
    /// without its data (RFC 7413 section 4.2.1).
    fn is_repeated_by(&self, segment: &Segment) -> bool {
        let range = numbers(Some(*self), None, segment);
        let is_without_data = self.acked.is_none() && self.opened == Some(range.start + 1);
        range.end == self.nxt || is_without_data
    }

    /// Checks whether a segment of this end is acceptable, given the state of both ends (RFC 9293
    /// section 3.10.7.4).
    fn check(&self, segment: &Segment, other: &Self) -> Result<(), Refusal> {
        if segment.has(flag::ACK) {
            let oldest = match (self.acked, other.opened) {
                // RFC 5961 section 5.2: at most MAX.SND.WND below.
                (Some(acked), _) => acked - u64::from(self.window),
                (None, Some(opened)) => opened,
                // The start of the flow was not seen: the window of this segment may be
                // MAX.SND.WND.
                (None, None) => other.nxt - u64::from(offered(segment, self.shift)),
            };
            // RFC 9293 section 3.10.7.3: at least the other end's SYN.
            let oldest = other.opened.map_or(oldest, |opened| oldest.max(opened));
            let ack = other.nxt.nearest(segment.ack);
            if !(oldest..=other.nxt).contains(&ack) {
                return Err(Refusal::Ack);
            }
        }
        let range = numbers(Some(*self), None, segment);
        let window = u64::from(other.window);
        // Retransmissions may start up to a window below the acknowledgement. A probe is one byte
        // above a closed window.
        let is_near = other.acked.is_none_or(|next| {
            next.since(range.start).0 <= window && range.end.since(next).0 <= window + 1
        });
        if is_near { Ok(()) } else { Err(Refusal::Data) }
    }
}

/// Checks whether a segment is acceptable. `own` is the state of its sender, `other` that of its
/// receiver.
pub(super) fn check(
    own: Option<End>,
    other: Option<End>,
    segment: &Segment,
) -> Result<(), Refusal> {
    let is_syn = segment.has(flag::SYN);
    // RFC 5961 section 4: an open flow has no SYN except a retransmission of the first one.
    if is_syn && own.is_some_and(|own| !own.is_repeated_by(segment)) {
        return Err(Refusal::Syn);
    }
    // RFC 9293 section 3.10.7.4, fifth: segments without ACK are dropped.
    if !is_syn && !segment.has(flag::ACK) {
        return Err(Refusal::Ack);
    }
    let Some(other) = other else { return Ok(()) };
    // The sequence numbers and the window of an end are not known before its response to the SYN:
    // only the acknowledgement shows that the response is authentic.
    if own.is_none() && other.is_opening() && !(is_syn && other.is_answered_by(segment)) {
        return Err(Refusal::Ack);
    }
    let first = || End::starting_at(numbers(None, Some(other), segment).start);
    own.unwrap_or_else(first).check(segment, &other)
}

/// Returns the extended range of a segment, close to the numbers that its sender has used, or to
/// those that `other` expects.
pub(super) fn numbers(own: Option<End>, other: Option<End>, segment: &Segment) -> SeqRange {
    let near = own.map(|own| own.nxt).or_else(|| other.and_then(|other| other.acked));
    let start = near.map_or(ExtSeq::starting_at(segment.seq), |near| near.nearest(segment.seq));
    SeqRange::new(start, start + u64::from(segment.len()))
}

/// Returns the window that a segment advertises, in bytes, at least [`MIN_WINDOW`]. In a SYN it is
/// not scaled (RFC 7323 section 2.2).
fn offered(segment: &Segment, shift: Option<u8>) -> u32 {
    let shift = if segment.has(flag::SYN) { 0 } else { shift.unwrap_or(MAX_SHIFT) };
    (u32::from(segment.window) << shift).max(MIN_WINDOW)
}
