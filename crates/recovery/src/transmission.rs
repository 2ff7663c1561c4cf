//! Transmissions, and reports of their delivery.

use airtcp_types::{ByteCount, ExtSeq, Instant, SendRule, SeqRange, TxNo};

use crate::rate::Snapshot;

/// The state of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxState {
    /// In the network, as far as is known.
    InFlight,
    /// Marked lost; its bytes wait for retransmission.
    Lost,
    /// Its bytes were selectively acknowledged.
    Sacked,
    /// The state of its bytes is that of a later transmission of the same bytes.
    Superseded,
    /// All of its bytes are cumulatively acknowledged. The board no longer returns it.
    Acked,
}

/// One transmission of a byte range.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    /// Its number; transmissions are numbered in the order sent.
    pub tx: TxNo,
    /// Its bytes that are not yet cumulatively acknowledged.
    pub range: SeqRange,
    /// When it was sent.
    pub sent_at: Instant,
    /// The rule that permitted it.
    pub rule: SendRule,
    /// Its state.
    pub state: TxState,
    /// How often these bytes had been sent before: zero for the first transmission.
    pub resent: u32,
    /// The previous transmission of the same bytes.
    pub(crate) previous: Option<TxNo>,
    pub(crate) snapshot: Snapshot,
}

impl Transmission {
    /// Returns the number of the previous transmission of the same bytes.
    pub const fn previous(&self) -> Option<TxNo> {
        self.previous
    }

    pub(crate) fn delivered(&self, range: SeqRange, cumulative: bool) -> Delivered {
        Delivered {
            first: self.tx,
            tx: self.tx,
            size: range.len(),
            range,
            sent_at: self.sent_at,
            resent: self.resent,
            previous: self.previous,
            cumulative,
            snapshot: self.snapshot,
        }
    }
}

/// Bytes that an ACK newly acknowledges, and their latest transmission.
///
/// Segments of one length that were sent together, once each, and that are cumulatively
/// acknowledged together are one entry: a device with segmentation offload sends dozens of segments
/// as one packet.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    first: TxNo,
    /// The latest transmission of these bytes; for several segments, that of the last.
    pub tx: TxNo,
    /// The length of each segment.
    pub size: ByteCount,
    /// The bytes.
    pub range: SeqRange,
    /// When that transmission was sent.
    pub sent_at: Instant,
    /// How often the bytes had been sent before. If this is not zero, the ACK does not show which
    /// transmission arrived (Karn).
    pub resent: u32,
    /// The transmission of the same bytes before `tx`.
    pub previous: Option<TxNo>,
    /// Whether the cumulative acknowledgement covers the bytes, rather than a SACK block.
    pub cumulative: bool,
    pub(crate) snapshot: Snapshot,
}

impl Delivered {
    /// Returns the latest transmission of the first of these segments.
    pub(crate) const fn first(&self) -> TxNo {
        self.first
    }

    /// Returns the latest transmission of each segment, in the order sent.
    pub fn transmissions(&self) -> impl DoubleEndedIterator<Item = TxNo> {
        (self.first.0..=self.tx.0).map(TxNo)
    }

    /// Returns the end of the first segment.
    pub fn first_end(&self) -> ExtSeq {
        self.range.start + self.size
    }
}
