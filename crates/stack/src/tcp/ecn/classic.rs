//! Classic ECN feedback (RFC 3168).
//!
//! ```text
//! receiver: data with CE    -> ECE in every ACK from now on
//! sender:   ECE             -> at most one reduction per round trip, CWR in the next new data
//! receiver: data with CWR   -> ECE stops
//! ```

use airtcp_wire::ip::CE;
use airtcp_wire::tcp::Segment;

/// The state of classic ECN on a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Classic {
    /// Whether ACKs carry ECE: a packet was marked, and no CWR has arrived since.
    echoes: bool,
    /// Whether new data is sent as ECT(0).
    pub(super) marks: bool,
}

/// The change caused by the ECN bits of received data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum News {
    Nothing,
    /// The first mark since the sender last sent CWR.
    Marked,
    /// The sender has reduced its window (CWR), which may now be one segment.
    SlowsDown,
}

impl Classic {
    pub(super) const fn new() -> Self {
        Self { echoes: false, marks: true }
    }

    /// Processes the ECN bits of new data.
    pub(super) fn on_data(&mut self, segment: &Segment<'_>) -> News {
        let before = self.echoes;
        self.echoes = segment.ecn == CE || (self.echoes && !segment.flags.cwr);
        match (segment.flags.cwr, before, self.echoes) {
            (true, ..) => News::SlowsDown,
            (false, false, true) => News::Marked,
            _ => News::Nothing,
        }
    }

    /// Whether ACKs carry ECE.
    pub(super) const fn echoes(&self) -> bool {
        self.echoes
    }
}
