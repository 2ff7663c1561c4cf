//! An acceptable ACK on its way to the sender: SACK blocks that lie are sorted out first.

use airtcp_types::options::{MAX_SACK_BLOCKS, SackBlocks};
use airtcp_types::{ExtSeq, SeqRange};

/// The SACK option of one ACK, checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reports {
    blocks: [SeqRange; MAX_SACK_BLOCKS],
    len: usize,
    /// The report of a duplicate (RFC 2883).
    pub(super) dsack: Option<SeqRange>,
    /// Blocks that cannot be true.
    pub(super) lies: u64,
}

/// What a SACK option is checked against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// ISS + 1.
    pub(super) first: ExtSeq,
    /// SEG.ACK.
    pub(super) ack: ExtSeq,
    /// SND.NXT.
    pub(super) nxt: ExtSeq,
}

impl Reports {
    /// Checks the blocks of an ACK: what was never sent, is empty, runs backwards or was
    /// acknowledged already is left out.
    pub(super) fn read(sack: &SackBlocks, bounds: &Bounds) -> Self {
        let range =
            |&(start, end)| SeqRange::new(bounds.ack.nearest(start), bounds.ack.nearest(end));
        let mut reports = Self::default();
        let wire = sack.as_slice();
        for (index, block) in wire.iter().map(range).enumerate() {
            let sent = bounds.first <= block.start && block.end <= bounds.nxt && !block.is_empty();
            // RFC 2883 section 4: the first block reports a duplicate if it lies below the
            // cumulative acknowledgement, or inside the second block.
            let duplicate = index == 0
                && (block.end <= bounds.ack
                    || wire.get(1).map(range).is_some_and(|second| second.covers(block)));
            if !sent {
                reports.lies += 1;
            } else if duplicate {
                reports.dsack = Some(block);
            } else if block.start < bounds.ack {
                reports.lies += 1;
            } else {
                reports.blocks[reports.len] = block;
                reports.len += 1;
            }
        }
        reports
    }

    /// The true blocks above the cumulative acknowledgement, in the peer's order.
    pub(super) fn blocks(&self) -> &[SeqRange] {
        &self.blocks[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::SeqNumber;

    use super::*;

    const BOUNDS: Bounds = Bounds { first: ExtSeq(1000), ack: ExtSeq(2000), nxt: ExtSeq(5000) };

    fn read(blocks: &[(u32, u32)]) -> Reports {
        let sack = blocks.iter().map(|(a, b)| (SeqNumber(*a), SeqNumber(*b))).collect();
        Reports::read(&sack, &BOUNDS)
    }

    fn range(start: u64, end: u64) -> SeqRange {
        SeqRange::new(ExtSeq(start), ExtSeq(end))
    }

    #[test]
    fn lies_are_left_out() {
        let reports = read(&[(3000, 2500), (3000, 3000), (4000, 5001), (2500, 3500)]);
        assert_eq!((reports.blocks(), reports.lies), (&[range(2500, 3500)][..], 3));
        assert_eq!(read(&[(2500, 3000), (1500, 2500)]).lies, 1, "below the cumulative ACK");
        assert_eq!(read(&[(900, 950)]).lies, 1, "below the first byte");
    }

    #[test]
    fn a_dsack_is_below_the_ack_or_inside_the_second_block() {
        assert_eq!(read(&[(1500, 2000), (3000, 4000)]).dsack, Some(range(1500, 2000)));
        let inside = read(&[(3000, 3500), (3000, 4000)]);
        assert_eq!(inside.dsack, Some(range(3000, 3500)));
        assert_eq!(inside.blocks(), [range(3000, 4000)]);
        assert_eq!(read(&[(3000, 4000), (3500, 3600)]).dsack, None);
    }
}
