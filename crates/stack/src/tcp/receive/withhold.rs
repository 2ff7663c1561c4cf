//! Withholding of duplicate ACKs behind a base station (TCP-ECN 6.2.1.2).
//!
//! A base station marks segments while an earlier segment is missing on its wired side. A hole that
//! an unmarked segment shows is therefore due to the radio, whose link layer repairs it: a
//! duplicate ACK would only cause an unnecessary retransmission. Section 6.3.4 of the paper swaps
//! the two cases; its text, figures 1 to 4 and section 7.1.1 describe them as here.
//!
//! Withholding is bounded. A marked segment, a FIN or the end of the patience reports the hole to
//! the peer; then nothing more is withheld until RCV.NXT advances, which also ends withholding by
//! itself.

use std::time::Duration;

use airtcp_types::mark::TCP_ECN_MARK;
use airtcp_types::{ByteCount, ExtSeq, Instant};

use super::Arrival;

/// The mark of a base station, and the maximum time to wait for the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkAware {
    /// The bits of the mark, in the byte that contains the data offset.
    pub bits: u8,
    /// The maximum time for which a duplicate ACK is withheld: the time that the radio may need for
    /// its last retransmission.
    pub patience: Duration,
}

impl Default for MarkAware {
    /// The bit of the paper, and 150 ms, which is less than any retransmission time-out.
    fn default() -> Self {
        Self { bits: TCP_ECN_MARK, patience: Duration::from_millis(150) }
    }
}

/// The withheld ACKs of a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Withholding {
    aware: MarkAware,
    /// The end of the patience, if a duplicate ACK is withheld.
    until: Option<Instant>,
    /// RCV.NXT when the hole at it was last reported to the peer.
    reported: Option<ExtSeq>,
}

/// An accepted segment with data or a FIN.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Taken<'a> {
    /// RCV.NXT before and after the segment.
    pub(in crate::tcp) before: ExtSeq,
    pub(in crate::tcp) nxt: ExtSeq,
    pub(in crate::tcp) arrival: &'a Arrival,
    /// The reserved bits of the header, which contain the mark.
    pub(in crate::tcp) reserved: u8,
    pub(in crate::tcp) fin: bool,
}

/// The decision about the ACK of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum AckFate {
    /// The ACK is sent as usual.
    Free,
    /// The ACK is withheld.
    Withheld,
    /// The ACK is sent, with duplicate ACKs that report the hole for which ACKs were withheld.
    Reported,
}

impl Withholding {
    pub(in crate::tcp) const fn new(aware: MarkAware) -> Self {
        Self { aware, until: None, reported: None }
    }

    /// The end of the patience, if a duplicate ACK is withheld.
    pub(in crate::tcp) const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Decides whether the ACK of a segment is withheld.
    pub(in crate::tcp) fn on_data(&mut self, now: Instant, taken: &Taken<'_>) -> AckFate {
        let &Taken { before, nxt, arrival, reserved, fin } = taken;
        if nxt != before {
            self.until = None;
            return AckFate::Free;
        }
        // The peer needs all other ACKs: DSACKs, dropped data, repeated answers to old data.
        let is_gap = arrival.out_of_order
            && arrival.new_bytes > ByteCount::ZERO
            && arrival.duplicate.is_none()
            && !arrival.dropped
            && !fin;
        let is_marked = reserved & self.aware.bits != 0;
        if is_gap && !is_marked && self.reported != Some(nxt) {
            self.until.get_or_insert(now + self.aware.patience);
            return AckFate::Withheld;
        }
        let ends = fin || (is_gap && is_marked);
        if ends && self.end(nxt) { AckFate::Reported } else { AckFate::Free }
    }

    /// Whether the patience ends now, so that the hole at `nxt` must be reported.
    pub(in crate::tcp) fn on_timeout(&mut self, now: Instant, nxt: ExtSeq) -> bool {
        self.until.is_some_and(|until| until <= now) && self.end(nxt)
    }

    /// Records that the hole at `nxt` is reported; returns whether an ACK was withheld.
    fn end(&mut self, nxt: ExtSeq) -> bool {
        self.reported = Some(nxt);
        self.until.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::SeqRange;

    use super::*;

    const HOLE: ExtSeq = ExtSeq(100);
    const GAP: Arrival = Arrival {
        new_bytes: ByteCount(10),
        duplicate: None,
        out_of_order: true,
        queued: true,
        dropped: false,
        over_quota: false,
        no_memory: false,
        fin: false,
    };

    fn behind_the_hole(arrival: &Arrival) -> Taken<'_> {
        Taken { before: HOLE, nxt: HOLE, arrival, reserved: 0, fin: false }
    }

    fn withholding() -> Withholding {
        Withholding::new(MarkAware::default())
    }

    #[test]
    fn duplicate_acks_wait_until_patience_ends_and_then_no_more_do() {
        let mut withholding = withholding();
        let end = Instant::ZERO + MarkAware::default().patience;
        let later = Instant::from_millis(7);
        assert_eq!(withholding.on_data(Instant::ZERO, &behind_the_hole(&GAP)), AckFate::Withheld);
        assert_eq!(withholding.on_data(later, &behind_the_hole(&GAP)), AckFate::Withheld);
        assert_eq!(withholding.deadline(), Some(end));
        assert!(!withholding.on_timeout(later, HOLE));
        assert!(withholding.on_timeout(end, HOLE));
        assert_eq!(withholding.deadline(), None);
        assert_eq!(withholding.on_data(end, &behind_the_hole(&GAP)), AckFate::Free);
    }

    #[test]
    fn a_repaired_hole_is_forgotten_and_the_next_one_waits_from_its_start() {
        let mut withholding = withholding();
        withholding.on_data(Instant::ZERO, &behind_the_hole(&GAP));
        let repaired = Taken { nxt: HOLE + 20, ..behind_the_hole(&GAP) };
        assert_eq!(withholding.on_data(Instant::ZERO, &repaired), AckFate::Free);
        assert_eq!(withholding.deadline(), None);
        let next = Taken { before: HOLE + 20, ..repaired };
        assert_eq!(withholding.on_data(Instant::ZERO, &next), AckFate::Withheld);
    }

    #[test]
    fn a_mark_or_a_fin_reports_the_hole_for_which_acks_were_withheld() {
        let marked = Taken { reserved: TCP_ECN_MARK, ..behind_the_hole(&GAP) };
        let last = Taken { fin: true, ..behind_the_hole(&GAP) };
        for ends in [marked, last] {
            let fate = withholding().on_data(Instant::ZERO, &ends);
            assert_eq!(fate, AckFate::Free, "nothing waits");
            let mut withholding = withholding();
            withholding.on_data(Instant::ZERO, &behind_the_hole(&GAP));
            assert_eq!(withholding.on_data(Instant::ZERO, &ends), AckFate::Reported);
            assert_eq!(withholding.on_data(Instant::ZERO, &behind_the_hole(&GAP)), AckFate::Free);
        }
    }

    #[test]
    fn needed_acks_are_not_withheld() {
        let twice = SeqRange::new(HOLE + 5, HOLE + 9);
        for arrival in [
            Arrival { out_of_order: false, ..GAP },
            Arrival { new_bytes: ByteCount::ZERO, ..GAP },
            Arrival { duplicate: Some(twice), ..GAP },
            Arrival { dropped: true, ..GAP },
        ] {
            let fate = withholding().on_data(Instant::ZERO, &behind_the_hole(&arrival));
            assert_eq!(fate, AckFate::Free, "{arrival:?}");
        }
    }
}
