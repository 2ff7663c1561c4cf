//! The limit on ACKs that answer nonsense (RFC 5961 section 7, and Linux's defence against ACK
//! loops).

use std::time::Duration;

use airtcp_types::Instant;

/// Linux's `tcp_invalid_ratelimit`.
const INTERVAL: Duration = Duration::from_millis(500);
/// A peer that probes a window or keeps a connection alive asks for an answer.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

/// When this connection last answered nonsense.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Challenge {
    last: Option<Instant>,
}

impl Challenge {
    /// Whether an ACK may answer a segment that is not acceptable.
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        self.admit_after(now, INTERVAL)
    }

    /// Whether an ACK may answer a window probe or a keep-alive.
    pub(super) fn admit_probe(&mut self, now: Instant) -> bool {
        self.admit_after(now, PROBE_INTERVAL)
    }

    fn admit_after(&mut self, now: Instant, interval: Duration) -> bool {
        let admitted = self.last.is_none_or(|last| now.since(last) >= interval);
        if admitted {
            self.last = Some(now);
        }
        admitted
    }
}
