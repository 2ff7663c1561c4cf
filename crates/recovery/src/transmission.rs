//! Transmissions, and reports of their delivery.

use airtcp_types::{ByteCount, ExtSeq, Instant, SendRule, SeqRange, TxNo};

use crate::rate::Snapshot;

/// The state of a transmission. Each is in exactly one of these states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxState {
    /// Held to be in the network.
    InFlight,
    /// Judged lost; its bytes wait to be sent again.
    Lost,
    /// Its bytes were selectively acknowledged.
    Sacked,
    /// A later transmission of the same bytes decides what becomes of them.
    Superseded,
    /// All of its bytes are cumulatively acknowledged. The board no longer shows it.
    Acked,
}

/// One sending of one byte range.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    /// Its number: the order in which transmissions left.
    pub tx: TxNo,
    /// The bytes it carried, less what was cumulatively acknowledged since.
    pub range: SeqRange,
    /// When it left.
    pub sent_at: Instant,
    /// The rule that let it leave.
    pub rule: SendRule,
    /// What is known of it.
    pub state: TxState,
    /// How often these bytes had been sent before.
    pub resent: u32,
    /// The transmission of the same bytes before this one.
    pub(crate) previous: Option<TxNo>,
    pub(crate) snapshot: Snapshot,
}

impl Transmission {
    /// The transmission of the same bytes before this one.
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

/// Bytes that an ACK told to have arrived, as the latest of their transmissions.
///
/// Segments of one length that left together, once each, and are cumulatively acknowledged together
/// are one: a device that takes them as one packet makes dozens of them.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    first: TxNo,
    /// The latest transmission of these bytes; of several segments, that of the last.
    pub tx: TxNo,
    /// The bytes of each segment.
    pub size: ByteCount,
    /// The bytes.
    pub range: SeqRange,
    /// When that transmission left.
    pub sent_at: Instant,
    /// How often the bytes had been sent before: with more than none, which sending arrived is
    /// not known (Karn).
    pub resent: u32,
    /// The transmission of the same bytes before that one.
    pub previous: Option<TxNo>,
    /// Whether the cumulative ACK told it, and not a SACK block.
    pub cumulative: bool,
    pub(crate) snapshot: Snapshot,
}

impl Delivered {
    /// The latest transmission of the first of these segments.
    pub(crate) const fn first(&self) -> TxNo {
        self.first
    }

    /// The latest transmissions of these bytes, one of each segment, in the order sent.
    pub fn transmissions(&self) -> impl DoubleEndedIterator<Item = TxNo> {
        (self.first.0..=self.tx.0).map(TxNo)
    }

    /// Where the first segment ends.
    pub fn first_end(&self) -> ExtSeq {
        self.range.start + self.size
    }
}
