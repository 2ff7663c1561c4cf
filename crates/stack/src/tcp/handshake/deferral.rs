//! Connections that are for nobody before they bring data or a FIN (Linux's `TCP_DEFER_ACCEPT`).
//!
//! As Linux: an ACK without data leaves the connection half-open. While data is waited for the SYN-ACK is not sent again;
//! when the time is over it is, once more at least, and then any ACK will do.

use std::time::Duration;

use airtcp_types::Instant;
use airtcp_wire::tcp::Segment;
use tracing::debug;

use crate::counters::Counters;
use crate::tcp::Connection;

/// The wait of one half-open connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Deferral {
    until: Instant,
    is_over: bool,
    /// What the first ACK of the SYN-ACK showed.
    shown: Option<Shown>,
}

/// What an ACK of a SYN, or of a SYN-ACK, shows of the path.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Shown {
    /// The round-trip time, where it was measured.
    pub(in crate::tcp) rtt: Option<Duration>,
    /// It had to be sent more than once.
    pub(in crate::tcp) retransmitted: bool,
}

impl Deferral {
    pub(in crate::tcp) const fn new(until: Instant) -> Self {
        Self { until, is_over: false, shown: None }
    }

    /// Works a time-out of the SYN-ACK, and gives whether that is to leave again.
    pub(in crate::tcp) fn on_timeout(&mut self, now: Instant) -> bool {
        self.is_over |= self.until <= now;
        self.is_over || self.shown.is_none()
    }

    /// Whether data alone is missing, and there is time left.
    pub(in crate::tcp) const fn waits(&self) -> bool {
        self.shown.is_some() && !self.is_over
    }

    pub(in crate::tcp) const fn shown(&self) -> Option<Shown> {
        self.shown
    }
}

impl Connection {
    /// Whether a segment that acknowledges the SYN-ACK leaves the connection half-open.
    pub(in crate::tcp) fn defers(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        counters: &mut Counters,
    ) -> bool {
        let Some(handshake) = &mut self.handshake else { return false };
        let wait = handshake.deferral.as_ref().filter(|wait| !wait.is_over && segment.len() == 0);
        let Some(mut wait) = wait.copied() else { return false };
        debug!(remote = %self.flow.remote, "an ACK without data: it is waited for");
        counters.tcp_ext_defer_accept_drop += 1;
        let echoed = segment.options.timestamps.zip(self.timestamps);
        let echoed = echoed.and_then(|(theirs, clock)| clock.echo(now, theirs.ecr));
        wait.shown = wait.shown.or_else(|| Some(handshake.show(now, echoed)));
        handshake.deferral = Some(wait);
        true
    }
}
