//! Special ACKs: the peer received a segment with a good header and corrupted data (HACK 3.3).

use airtcp_types::{ExtSeq, Instant};

use super::Sender;

impl Sender {
    /// Takes the number of a corrupted segment from a special ACK, whose other fields tell nothing.
    /// Gives whether it was believed.
    pub fn on_special_ack(&mut self, now: Instant, seq: ExtSeq) -> bool {
        let _ = (now, seq);
        false
    }
}
