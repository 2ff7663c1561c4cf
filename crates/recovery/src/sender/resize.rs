//! Segments that are too large for the path, or were assumed to be.

use airtcp_types::{ByteCount, EventKind, Instant};

use super::Sender;
use crate::control::NoticeKind;
use crate::judge::Cause;
use crate::transmission::Transmission;

impl Sender {
    /// Has no segment be larger than `smss` from now on; never makes them larger.
    ///
    /// What is outstanding and larger was dropped on the way, and is sent again in smaller
    /// segments, as the window allows. That is no congestion, and the window stays (RFC 1191
    /// section 6.5). What the receiver tells until all of it is acknowledged is no sign of
    /// congestion either: as Linux's `tcp_simple_retransmit` it is a recovery without a reduction.
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
            // The windows before a reduction are below the floors of now.
            self.undo.stop();
            self.resize(now, smss);
            self.update_pacing(now);
            self.report_window();
        }
    }

    /// Whether a segment of the current size has arrived.
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
