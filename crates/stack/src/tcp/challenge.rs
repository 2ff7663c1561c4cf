//! The rate limit of ACKs that answer invalid segments (RFC 5961 section 7, and Linux's protection
//! against ACK loops).

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_types::Instant;
use tracing::debug;

use crate::counters::Counters;

/// Linux's `tcp_invalid_ratelimit`.
const INTERVAL: Duration = Duration::from_millis(500);
/// The interval for answers to window probes and keep-alives, which a live peer needs.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

/// The time of the last answer to an invalid segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Challenge {
    last: Option<Instant>,
}

impl Challenge {
    /// Whether a challenge ACK may be sent (RFC 5961 section 7): the host's limit allows it
    /// (`may`), and none was sent just before. Counts and logs the result.
    pub(super) fn send(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        may: bool,
        counters: &mut Counters,
    ) -> bool {
        if !may {
            debug!(%remote, "challenge ACK not sent: limit of the host reached");
            counters.tcp_ext_challenge_ack_limit += 1;
        } else if self.admit(now) {
            debug!(%remote, "challenge ACK sent");
            counters.tcp_ext_challenge_ack += 1;
            return true;
        } else {
            debug!(%remote, "challenge ACK not sent: limit of the connection reached");
            counters.tcp_ext_ack_skipped_challenge += 1;
        }
        false
    }

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
