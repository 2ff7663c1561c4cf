//! Deferred accept (Linux's `TCP_DEFER_ACCEPT`): holds a connection until its first data or FIN
//! arrives.
//!
//! As in Linux, an ACK without data leaves the connection half-open. While it waits for data, the
//! SYN-ACK is not retransmitted. When the time is over, it is retransmitted at least once, and then
//! any ACK completes the handshake.

use std::time::Duration;

use airtcp_types::Instant;

/// The wait of one half-open connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deferral {
    until: Instant,
    is_over: bool,
    /// The measurement of the first ACK of the SYN-ACK.
    shown: Option<Shown>,
}

/// The measurement that an ACK of a SYN or SYN-ACK makes possible.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// The round-trip time, if it was measured.
    pub(super) rtt: Option<Duration>,
    /// Whether the SYN or SYN-ACK was sent more than once.
    pub(super) retransmitted: bool,
}

impl Deferral {
    pub(super) const fn new(until: Instant) -> Self {
        Self { until, is_over: false, shown: None }
    }

    /// Handles a time-out of the SYN-ACK; returns whether to retransmit it.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        self.is_over |= self.until <= now;
        self.is_over || self.shown.is_none()
    }

    /// Handles an ACK of the SYN-ACK with its measurement; returns whether the connection still
    /// waits for data.
    pub(super) fn on_ack(&mut self, has_text: bool, shown: Shown) -> bool {
        let waits = !self.is_over && !has_text;
        if waits {
            self.shown.get_or_insert(shown);
        }
        waits
    }

    /// Whether only data is missing, and the time is not over.
    pub(super) const fn waits(&self) -> bool {
        self.shown.is_some() && !self.is_over
    }

    pub(super) const fn shown(&self) -> Option<Shown> {
        self.shown
    }
}
