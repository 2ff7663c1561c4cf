//! Duplicate ACKs that wait for a base station (TCP-ECN 6.2.1.2).
//!
//! A base station marks segments while something before them is missing on its wired side. So a
//! hole shown by a segment without the mark was made by the radio, whose link layer repairs it, and
//! a duplicate ACK would only make the sender repair it too. The paper's section 6.3.4 has the two
//! cases the wrong way round; its text, figures 1 to 4 and 7.1.1 have them as here.
//!
//! Nothing is withheld for ever. A marked segment, a FIN and the end of patience report the hole to
//! the peer; then nothing is withheld until RCV.NXT moves on, which itself ends the withholding.

use std::time::Duration;

use airtcp_types::mark::TCP_ECN_MARK;
use airtcp_types::{ByteCount, ExtSeq, Instant};

use super::Arrival;

/// The mark of a base station, and the time to wait for the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkAware {
    /// The bits of the mark in the byte that has the data offset.
    pub bits: u8,
    /// How long a duplicate ACK is withheld at most: as long as the radio may take for its last
    /// try.
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
    /// RCV.NXT when the hole there was reported to the peer.
    reported: Option<ExtSeq>,
}

/// A segment with data or a FIN that was taken in.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Taken<'a> {
    /// RCV.NXT before it came, and now.
    pub(in crate::tcp) before: ExtSeq,
    pub(in crate::tcp) nxt: ExtSeq,
    pub(in crate::tcp) arrival: &'a Arrival,
    /// The bits that may have the mark.
    pub(in crate::tcp) reserved: u8,
    pub(in crate::tcp) fin: bool,
}

/// What happens to the ACK of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum AckFate {
    /// It leaves as any other.
    Free,
    /// It waits.
    Withheld,
    /// It leaves, and duplicate ACKs report the hole for which ACKs were withheld.
    Reported,
}

impl Withholding {
    pub(in crate::tcp) const fn new(aware: MarkAware) -> Self {
        Self { aware, until: None, reported: None }
    }

    /// When patience ends, if a duplicate ACK is withheld.
    pub(in crate::tcp) const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Decides about the ACK of a segment.
    pub(in crate::tcp) fn on_data(&mut self, now: Instant, taken: &Taken<'_>) -> AckFate {
        let &Taken { before, nxt, arrival, reserved, fin } = taken;
        if nxt != before {
            self.until = None;
            return AckFate::Free;
        }
        // Anything else is for the peer to know: DSACKs, what had no room, a second answer to old
        // data.
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

    /// Whether patience ends now: the hole at `nxt` is to be reported.
    pub(in crate::tcp) fn on_timeout(&mut self, now: Instant, nxt: ExtSeq) -> bool {
        self.until.is_some_and(|until| until <= now) && self.end(nxt)
    }

    /// The hole at `nxt` is reported; gives whether something was withheld.
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
    fn what_the_radio_has_repaired_is_forgotten_and_the_next_hole_waits_anew() {
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
    fn what_the_peer_has_to_know_is_not_withheld() {
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
