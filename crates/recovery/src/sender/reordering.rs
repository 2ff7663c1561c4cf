//! Degree and frequency of reordering (RFC 8985 section 6.2, step 3).

use airtcp_types::{ByteCount, ExtSeq};

use crate::transmission::Delivered;

/// The reordering seen on the connection.
#[derive(Debug, Default)]
pub(super) struct Reordering {
    /// The largest reordering distance, in segments.
    extent: u16,
    /// The number of ACKs that showed reordering.
    seen: u16,
}

impl Reordering {
    /// Processes the newly delivered segments of an ACK. Reordered segments are those sent once
    /// that fill a hole below `fack`, the end of the highest data delivered before this ACK.
    pub(super) fn on_ack(&mut self, fack: ExtSeq, newly: &[Delivered], smss: ByteCount) {
        let late = newly.iter().filter(|acked| acked.resent == 0 && acked.first_end() < fack);
        let Some(first) = late.map(|acked| acked.range.start).min() else { return };
        self.seen = self.seen.saturating_add(1);
        let extent = fack.since(first).0.div_ceil(smss.0);
        self.extent = self.extent.max(u16::try_from(extent).unwrap_or(u16::MAX));
    }

    pub(super) const fn extent(&self) -> u32 {
        self.extent as u32
    }

    pub(super) const fn seen(&self) -> u32 {
        self.seen as u32
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::SendRule;

    use super::*;
    use crate::board::Board;
    use crate::rate::Snapshot;
    use crate::testkit::{FIRST, SMSS, ms, segments, seq};

    #[test]
    fn a_filled_hole_counts_as_reordered_by_the_data_behind_it() {
        let mut board = Board::new(FIRST);
        for index in 0..5 {
            let range = segments(index, index + 1);
            board.send_new(ms(0), range, SendRule::NewData, Snapshot::default());
        }
        let (mut newly, mut reordering) = (Vec::new(), Reordering::default());
        board.acknowledge(FIRST, &[segments(2, 4)], &mut newly);
        newly.clear();
        board.acknowledge(seq(1), &[], &mut newly);
        reordering.on_ack(seq(4), &newly, ByteCount(SMSS));
        assert_eq!((reordering.extent(), reordering.seen()), (4, 1));
        newly.clear();
        // Above all delivered data: in order.
        board.acknowledge(seq(1), &[segments(4, 5)], &mut newly);
        reordering.on_ack(seq(4), &newly, ByteCount(SMSS));
        assert_eq!((reordering.extent(), reordering.seen()), (4, 1));
    }
}
