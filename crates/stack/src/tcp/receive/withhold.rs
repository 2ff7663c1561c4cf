//! Duplicate ACKs that wait for a base station (TCP-ECN 6.2.1.2).
//!
//! A base station marks segments while something before them is missing on its wired side. So a hole shown by a segment
//! without the mark was made by the radio, whose link layer repairs it, and a duplicate ACK would only make the sender
//! repair it too. The paper's section 6.3.4 has the two cases the wrong way round; its text, figures 1 to 4 and 7.1.1
//! have them as here.
//!
//! Nothing is withheld for ever. RCV.NXT moves on, a marked segment, a FIN or the end of patience have the peer told, and
//! until RCV.NXT moves on nothing is withheld again.

use std::time::Duration;

use airtcp_types::mark::TCP_ECN_MARK;
use airtcp_types::{ByteCount, ExtSeq, Instant};
use airtcp_wire::tcp::Segment;

use crate::counters::Counters;
use crate::tcp::Connection;

use super::Arrival;

/// How a receiver behind a base station knows the mark, and how long it waits for the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkAware {
    /// The bits of the mark in the byte that has the data offset.
    pub bits: u8,
    /// How long a duplicate ACK is withheld at most: as long as the radio may take for its last try.
    pub patience: Duration,
}

impl Default for MarkAware {
    /// The paper's bit, and 150 ms: less than any retransmission time-out.
    fn default() -> Self {
        Self { bits: TCP_ECN_MARK, patience: Duration::from_millis(150) }
    }
}

/// What is withheld on one connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Withholding {
    aware: MarkAware,
    /// When patience ends, if a duplicate ACK is withheld.
    until: Option<Instant>,
    /// RCV.NXT when the peer was told of the hole there.
    told: Option<ExtSeq>,
}

impl Withholding {
    pub(in crate::tcp) const fn new(aware: MarkAware) -> Self {
        Self { aware, until: None, told: None }
    }

    pub(in crate::tcp) const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Whether the duplicate ACK for a segment that left the hole at `nxt` is withheld.
    fn withholds(&mut self, now: Instant, nxt: ExtSeq, is_marked: bool) -> bool {
        if is_marked || self.told == Some(nxt) {
            return false;
        }
        self.until.get_or_insert(now + self.aware.patience);
        true
    }

    /// The peer is told of the hole at `nxt`; gives whether something was withheld.
    fn end(&mut self, nxt: ExtSeq) -> bool {
        self.told = Some(nxt);
        self.until.take().is_some()
    }
}

impl Connection {
    /// A segment with data or a FIN was taken in; RCV.NXT was `before`. Gives whether its ACK is withheld.
    pub(in crate::tcp) fn withhold(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        before: ExtSeq,
        arrival: &Arrival,
        counters: &mut Counters,
    ) -> bool {
        let nxt = self.receive.nxt();
        let Some(withholding) = &mut self.withholding else { return false };
        if nxt != before {
            withholding.until = None;
            return false;
        }
        // Anything else is for the peer to know: DSACKs, what had no room, a second answer to old data.
        let is_gap = arrival.out_of_order
            && arrival.new_bytes > ByteCount::ZERO
            && arrival.duplicate.is_none()
            && !arrival.dropped
            && !segment.flags.fin;
        let is_marked = segment.reserved & withholding.aware.bits != 0;
        if is_gap && withholding.withholds(now, nxt, is_marked) {
            counters.tcp_ext_dup_acks_withheld += 1;
            return true;
        }
        if (segment.flags.fin || (is_gap && is_marked)) && withholding.end(nxt) {
            // One more follows, for the segment itself.
            self.tell_of_hole(2, counters);
        }
        false
    }

    pub(in crate::tcp) fn on_withholding_timeout(&mut self, now: Instant, counters: &mut Counters) {
        let nxt = self.receive.nxt();
        let Some(withholding) = &mut self.withholding else { return };
        if withholding.until.is_some_and(|until| until <= now) && withholding.end(nxt) {
            self.schedule_ack(None);
            self.tell_of_hole(2, counters);
        }
    }

    /// One ACK says it all with SACK; without, it takes three duplicates (RFC 5681 section 3.2), of which these are
    /// `more`.
    fn tell_of_hole(&mut self, more: usize, counters: &mut Counters) {
        counters.tcp_ext_withholding_ended += 1;
        if !self.sack {
            (0..more).for_each(|_| self.schedule_ack(None));
        }
    }
}
