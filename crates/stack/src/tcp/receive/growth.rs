//! Receive buffer autotuning.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

/// The number of segments that a peer may send while the host is short of memory, so that no
/// connection stalls (Linux's `tcp_clamp_window`). The size of the segments is assumed to be this
/// end's MSS.
const HELD_BACK: u64 = 2;
/// The number of segments accepted then: one more, because windows are rounded up.
const TAKEN: u64 = HELD_BACK + 1;

/// Dynamic right-sizing of a receive buffer.
#[derive(Debug)]
pub(super) struct Growth {
    limit: ByteCount,
    max: ByteCount,
    held_back: bool,
    /// The receiver's estimate of the round-trip time.
    rtt: Option<Duration>,
    since: Instant,
    read: ByteCount,
}

impl Growth {
    pub(super) fn new(now: Instant, initial: ByteCount, max: ByteCount) -> Self {
        let limit = initial.min(max);
        Self { limit, max, held_back: false, rtt: None, since: now, read: ByteCount::ZERO }
    }

    /// The current size limit of the buffer.
    pub(super) const fn limit(&self) -> ByteCount {
        self.limit
    }

    /// The part of the buffer that may be offered to a peer whose segments have the size `mss`.
    pub(super) fn offered(&self, mss: ByteCount) -> ByteCount {
        if self.held_back { self.limit.min(mss * HELD_BACK) } else { self.limit }
    }

    /// The maximum amount of unread data while the host is short of memory; otherwise `None`.
    pub(super) fn taken(&self, mss: ByteCount) -> Option<ByteCount> {
        self.held_back.then(|| mss * TAKEN)
    }

    /// The receiver's estimate of the round-trip time.
    pub(super) const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Limits the size to `most`, above which a buffer is of no use.
    pub(super) fn keep_below(&mut self, most: ByteCount) {
        self.max = self.max.min(most);
        self.limit = self.limit.min(most);
    }

    /// Sets the maximum size.
    pub(super) fn set_max(&mut self, max: ByteCount) {
        self.max = max;
        self.limit = self.limit.min(max);
    }

    /// Stops or resumes growth.
    pub(super) fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    /// Records a round-trip time. Samples include the peer's pauses, so the smallest has the most
    /// weight (Linux's `tcp_rcv_rtt_update`).
    pub(super) fn on_rtt(&mut self, sample: Duration) {
        let sample = sample.max(Duration::from_millis(1));
        self.rtt = Some(match self.rtt {
            Some(rtt) if rtt < sample => (rtt * 7 + sample) / 8,
            _ => sample,
        });
    }

    /// Doubles the limit if an application reads more than half of the buffer in a round trip,
    /// because the buffer then limits it. Out-of-order data in the buffer counts as well (Linux
    /// since 6.16).
    pub(super) fn on_read(&mut self, now: Instant, bytes: ByteCount, waiting: ByteCount) {
        self.read += bytes;
        let Some(rtt) = self.rtt else { return };
        if now.since(self.since) > rtt {
            self.since = now;
            self.read = bytes;
        }
        if self.read * 2 + waiting > self.limit && !self.held_back {
            self.limit = (self.limit * 2).min(self.max);
            self.since = now;
            self.read = ByteCount::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_waits_for_what_is_late_takes_room_beside() {
        let kib = ByteCount::from_kib;
        let mut growth = Growth::new(Instant::ZERO, kib(64), kib(256));
        growth.on_rtt(Duration::from_millis(100));
        growth.on_read(Instant::from_millis(10), kib(20), ByteCount::ZERO);
        assert_eq!(growth.limit(), kib(64));
        growth.on_read(Instant::from_millis(20), kib(1), kib(30));
        assert_eq!(growth.limit(), kib(128));
    }
}
