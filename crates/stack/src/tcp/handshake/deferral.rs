//! Deferred accept (Linux's `TCP_DEFER_ACCEPT`): hold a connection until its first data or FIN
//! arrives.
//!
//! As Linux: an ACK without data leaves the connection half-open. While data is waited for the
//! SYN-ACK is not sent again; when the time is over it is, once more at least, and then any ACK
//! will do.

use std::time::Duration;

use airtcp_types::Instant;

/// The wait of one half-open connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deferral {
    until: Instant,
    is_over: bool,
    /// What the first ACK of the SYN-ACK showed.
    shown: Option<Shown>,
}

/// What an ACK of a SYN, or of a SYN-ACK, shows of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// The round-trip time, where it was measured.
    pub(super) rtt: Option<Duration>,
    /// It had to be sent more than once.
    pub(super) retransmitted: bool,
}

impl Deferral {
    pub(super) const fn new(until: Instant) -> Self {
        Self { until, is_over: false, shown: None }
    }

    /// Works a time-out of the SYN-ACK, and gives whether that is to leave again.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        self.is_over |= self.until <= now;
        self.is_over || self.shown.is_none()
    }

    /// Takes an ACK of the SYN-ACK, which shows something of the path; gives whether data is waited
    /// for all the same.
    pub(super) fn on_ack(&mut self, has_text: bool, shown: Shown) -> bool {
        let waits = !self.is_over && !has_text;
        if waits {
            self.shown.get_or_insert(shown);
        }
        waits
    }

    /// Whether data alone is missing, and there is time left.
    pub(super) const fn waits(&self) -> bool {
        self.shown.is_some() && !self.is_over
    }

    pub(super) const fn shown(&self) -> Option<Shown> {
        self.shown
    }
}
