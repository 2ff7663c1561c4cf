//! Changes of the segment size, for segments that are too large for the path.

use airtcp_types::{ByteCount, EventKind, Instant};

use super::Sender;
use crate::control::NoticeKind;
use crate::judge::Cause;
use crate::transmission::Transmission;

impl Sender {
    /// Lowers the segment size to `smss`; never raises it.
    ///
    /// Larger outstanding segments were dropped on the path, and are retransmitted in smaller
    /// segments as the windows permit. This is not congestion, and the window does not change (RFC
    /// 1191 section 6.5). Until all of them are acknowledged, duplicate ACKs and SACK blocks are no
    /// sign of congestion either: as in Linux's `tcp_simple_retransmit`, the sender is in a
    /// recovery without a reduction.
    pub fn shrink_segments(&mut self, now: Instant, smss: ByteCount) {
        let smss = smss.max(ByteCount(1));
        if smss >= self.core.smss {
            return;
        }
        self.resize(now, smss);
        let lost = self.core.board.mark_larger_lost(smss);
        if !lost.is_empty() {
            for &Transmission { tx, range, .. } in &lost {
                self.core.deferred.remove(tx);
                self.stats.segments_lost += 1;
                self.events.add(|| EventKind::Lost { tx, range, cause: Cause::TooBig.name() });
            }
            self.begin_to_repeat(now, &lost);
        }
        self.update_pacing(now);
        self.report_window();
    }

    /// Raises the segment size to `smss`; never lowers it.
    pub fn grow_segments(&mut self, now: Instant, smss: ByteCount) {
        if smss > self.core.smss {
            // The windows before a reduction are below the new minimums.
            self.undo.stop();
            self.resize(now, smss);
            self.update_pacing(now);
            self.report_window();
        }
    }

    /// Returns whether a segment of the current size was delivered.
    pub const fn full_segment_arrived(&self) -> bool {
        self.full_arrived
    }

    fn resize(&mut self, now: Instant, smss: ByteCount) {
        (self.core.smss, self.full_arrived) = (smss, false);
        self.notify(now, NoticeKind::SegmentSize(smss));
    }

    fn begin_to_repeat(&mut self, now: Instant, lost: &[Transmission]) {
        self.prr = None;
        self.probes.cancel();
        self.undo.stop();
        self.strategies.on_repeat(&self.core, now);
        self.core.recovery.repeat(self.core.board.snd_nxt());
        for lost in lost {
            self.notify_lost(now, lost, Cause::TooBig);
        }
        self.restart_rto(now);
    }
}
