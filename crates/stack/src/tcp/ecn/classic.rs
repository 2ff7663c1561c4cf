//! Classic ECN feedback (RFC 3168).
//!
//! ```text
//! receiver: data with CE        -> ECE in every ACK ...
//! sender:   ECE                 -> one reduction a round trip (the sender's), CWR in the next new data
//! receiver: data with CWR       -> ... until then
//! ```

use airtcp_wire::ip::CE;
use airtcp_wire::tcp::Segment;

/// What a connection keeps of it.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Classic {
    /// A packet was marked, and the sender has not said since that it slows down.
    echoes: bool,
    /// Whether new data leaves as ECT(0).
    pub(super) marks: bool,
}

/// What the marks of data change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum News {
    Nothing,
    /// It is the first mark since the sender last said that it slows down.
    Marked,
    /// The sender says that it slows down: its window may be one segment.
    SlowsDown,
}

impl Classic {
    pub(super) const fn new() -> Self {
        Self { echoes: false, marks: true }
    }

    /// Takes the marks of data that is new.
    pub(super) fn on_data(&mut self, segment: &Segment<'_>) -> News {
        let before = self.echoes;
        self.echoes = segment.ecn == CE || (self.echoes && !segment.flags.cwr);
        match (segment.flags.cwr, before, self.echoes) {
            (true, ..) => News::SlowsDown,
            (false, false, true) => News::Marked,
            _ => News::Nothing,
        }
    }

    /// Whether ACKs tell of a mark.
    pub(super) const fn echoes(&self) -> bool {
        self.echoes
    }
}
