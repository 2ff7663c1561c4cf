//! Special ACKs: the peer received a segment with an intact header and corrupted data (HACK 3.3).

use airtcp_types::{ExtSeq, Instant};

use super::Sender;
use crate::judge::Raised;

impl Sender {
    /// Processes a special ACK, which reports the corrupted segment at `seq`. Its other fields have
    /// no meaning: it is not a duplicate ACK and does not restart the retransmission timer. Returns
    /// whether a judge accepted the report.
    pub fn on_special_ack(&mut self, now: Instant, seq: ExtSeq) -> bool {
        let mut raised = Raised::default();
        self.strategies.judge_special_ack(&self.core, now, seq, &mut raised);
        let lost = self.stats.segments_lost;
        self.work_raised(now, &mut raised);
        let believed = self.stats.segments_lost > lost;
        self.stats.corrupted += u64::from(believed);
        if believed {
            self.report_window();
        }
        believed
    }
}
