//! The window that the peer offers (RFC 9293 sections 3.3.1 and 3.10.7.4).

use airtcp_types::{ByteCount, ExtSeq};

/// SND.WND, SND.WL1 and SND.WL2.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow {
    size: ByteCount,
    /// MAX.SND.WND of RFC 5961.
    max: ByteCount,
    /// SND.WL1 and SND.WL2: the numbers of the segment that last changed it.
    updated_by: (ExtSeq, ExtSeq),
    /// One past the last number that the peer allows.
    edge: ExtSeq,
    /// The window scale in segments from the peer (bits).
    scale: u8,
}

impl SendWindow {
    /// Creates a closed window; `first` is the first sequence number.
    pub(super) const fn new(first: ExtSeq) -> Self {
        Self {
            size: ByteCount::ZERO,
            max: ByteCount::ZERO,
            updated_by: (ExtSeq(0), ExtSeq(0)),
            edge: first,
            scale: 0,
        }
    }

    pub(super) fn set_scale(&mut self, scale: u8) {
        self.scale = scale;
    }

    pub(super) const fn scale(&self) -> u8 {
        self.scale
    }

    pub(super) const fn size(&self) -> ByteCount {
        self.size
    }

    pub(super) const fn max(&self) -> ByteCount {
        self.max
    }

    pub(super) const fn edge(&self) -> ExtSeq {
        self.edge
    }

    /// Applies the window of an acceptable segment if it is newer than the last one (RFC 9293
    /// section 3.10.7.4, fifth); returns whether its size changed. A window that shrinks is
    /// accepted: no new data is sent beyond it (RFC 9293 section 3.8.6, SHLD-15).
    ///
    /// As in Linux, an ACK that advances `una` is newer whatever its sequence number: it may be on
    /// data that the peer retransmits.
    pub(super) fn update(
        &mut self,
        una: ExtSeq,
        (seq, ack): (ExtSeq, ExtSeq),
        size: ByteCount,
    ) -> bool {
        let (wl1, wl2) = self.updated_by;
        if ack <= una && (wl1 > seq || (wl1 == seq && wl2 > ack)) {
            return false;
        }
        let changed = self.size != size;
        self.updated_by = (seq, ack);
        self.size = size;
        self.max = self.max.max(size);
        self.edge = ack + size;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNA: ExtSeq = ExtSeq(100);

    #[test]
    fn an_older_segment_changes_nothing_unless_it_advances_una() {
        let mut window = SendWindow::new(UNA);
        assert!(window.update(UNA, (ExtSeq(50), UNA), ByteCount(4_000)));
        assert!(!window.update(UNA, (ExtSeq(49), UNA), ByteCount(1_000)));
        assert!(!window.update(UNA, (ExtSeq(50), UNA - 1), ByteCount(1_000)));
        assert_eq!((window.size(), window.edge()), (ByteCount(4_000), UNA + 4_000));
        assert!(window.update(UNA, (ExtSeq(49), UNA + 10), ByteCount(1_000)));
        assert_eq!((window.size(), window.edge()), (ByteCount(1_000), UNA + 1_010));
        assert_eq!(window.max(), ByteCount(4_000));
    }
}
