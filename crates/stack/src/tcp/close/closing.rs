//! The state of closing: ownership, deadline, and the reason of the end.

use std::time::Duration;

use airtcp_types::Instant;

use crate::tcp::{State, TcpConfig, TcpError, Unreachable};

/// The state of closing a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Closing {
    /// Whether the application has closed the connection.
    is_orphan: bool,
    /// The reason why the connection ended; the first reason is kept.
    error: Option<TcpError>,
    /// The last ICMP soft error (RFC 1122 section 4.2.3.9), which becomes the reason if the
    /// connection times out.
    soft_error: Option<Unreachable>,
    /// The linger time.
    linger: Option<Duration>,
    /// The end of TIME-WAIT, of FIN-WAIT-2 without an application, or of the linger time.
    until: Option<Instant>,
    time_wait: Duration,
    fin_wait_2: Duration,
}

/// The meaning of an expired deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum Ended {
    /// TIME-WAIT has ended.
    TimeWait,
    /// The peer's FIN did not arrive in time after the application closed the connection.
    FinWait2,
    /// The peer did not acknowledge all data and the FIN in time.
    Overdue,
}

impl Closing {
    pub(in crate::tcp) const fn new(config: &TcpConfig) -> Self {
        Self {
            is_orphan: false,
            error: None,
            soft_error: None,
            linger: None,
            until: None,
            time_wait: config.time_wait,
            fin_wait_2: config.fin_wait_2,
        }
    }

    /// Records that the application has closed the connection.
    pub(super) fn let_go(&mut self) {
        self.is_orphan = true;
    }

    /// Whether the application has closed the connection.
    pub(in crate::tcp) const fn is_orphan(&self) -> bool {
        self.is_orphan
    }

    /// Sets the linger time.
    pub(super) fn set_linger(&mut self, limit: Option<Duration>) {
        self.linger = limit;
    }

    /// The linger time.
    pub(super) const fn linger(&self) -> Option<Duration> {
        self.linger
    }

    /// Starts or restarts TIME-WAIT.
    pub(in crate::tcp) fn begin_time_wait(&mut self, now: Instant) {
        self.until = Some(now + self.time_wait);
    }

    /// The duration of TIME-WAIT.
    pub(super) const fn time_wait(&self) -> Duration {
        self.time_wait
    }

    /// Limits FIN-WAIT-2 if the application has closed the connection.
    pub(super) fn begin_fin_wait_2(&mut self, now: Instant) {
        if self.is_orphan {
            self.until = Some(now + self.fin_wait_2);
        }
    }

    /// Limits the time until the peer has acknowledged everything.
    pub(super) fn wait_at_most(&mut self, now: Instant, limit: Duration) {
        self.until = Some(now + limit);
    }

    /// Clears the deadline.
    pub(super) fn stop_waiting(&mut self) {
        self.until = None;
    }

    /// The deadline.
    pub(in crate::tcp) const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Returns the meaning of the deadline in `state`, if it has expired.
    pub(in crate::tcp) fn on_timeout(&self, now: Instant, state: State) -> Option<Ended> {
        self.until.filter(|at| *at <= now).map(|_| match state {
            State::TimeWait => Ended::TimeWait,
            State::FinWait2 => Ended::FinWait2,
            _ => Ended::Overdue,
        })
    }

    /// Sets the reason of the end, unless there already is one.
    pub(in crate::tcp) fn on_error(&mut self, error: TcpError) {
        self.error.get_or_insert(error);
    }

    /// The reason why the connection ended; `None` if it has not ended, or ended by both FINs.
    pub(in crate::tcp) const fn error(&self) -> Option<TcpError> {
        self.error
    }

    /// Stores an ICMP soft error: the condition may pass.
    pub(in crate::tcp) fn on_soft_error(&mut self, error: Unreachable) {
        self.soft_error = Some(error);
    }

    /// Clears the soft error, because an ACK has arrived.
    pub(in crate::tcp) fn on_ack(&mut self) {
        self.soft_error = None;
    }

    /// The last soft error since the last ACK.
    pub(in crate::tcp) const fn soft_error(&self) -> Option<Unreachable> {
        self.soft_error
    }

    /// The reason if the peer does not answer: the soft error, if there was one (RFC 5461).
    pub(super) fn reason_of_silence(&self) -> TcpError {
        self.soft_error.map_or(TcpError::TimedOut, TcpError::Unreachable)
    }
}

impl State {
    /// The state after a FIN of this end was queued. During the handshake the state does not change
    /// yet.
    pub(super) const fn after_shutdown(self) -> Self {
        match self {
            Self::Established => Self::FinWait1,
            Self::CloseWait => Self::LastAck,
            other => other,
        }
    }

    /// The state after the peer's FIN.
    pub(super) const fn after_peer_fin(self) -> Self {
        match self {
            Self::Established => Self::CloseWait,
            Self::FinWait1 => Self::Closing,
            Self::FinWait2 => Self::TimeWait,
            other => other,
        }
    }

    /// The state after the peer has acknowledged the FIN of this end.
    pub(super) const fn after_fin_acked(self) -> Self {
        match self {
            Self::FinWait1 => Self::FinWait2,
            Self::Closing => Self::TimeWait,
            Self::LastAck => Self::Closed,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NOW: Instant = Instant::ZERO;

    fn closing() -> Closing {
        let (time_wait, fin_wait_2) = (SECOND * 60, SECOND * 30);
        Closing::new(&TcpConfig { time_wait, fin_wait_2, ..TcpConfig::default() })
    }

    #[test]
    fn the_first_reason_counts() {
        let mut closing = closing();
        assert_eq!(closing.error(), None);
        closing.on_error(TcpError::Reset);
        closing.on_error(TcpError::Aborted);
        assert_eq!(closing.error(), Some(TcpError::Reset));
    }

    #[test]
    fn silence_has_the_reason_that_the_network_gave_since_the_last_ack() {
        let mut closing = closing();
        assert_eq!(closing.reason_of_silence(), TcpError::TimedOut);
        closing.on_soft_error(Unreachable::Port);
        assert_eq!(closing.reason_of_silence(), TcpError::Unreachable(Unreachable::Port));
        assert_eq!(closing.error(), None, "it may pass");
        closing.on_ack();
        assert_eq!(closing.reason_of_silence(), TcpError::TimedOut);
    }

    #[test]
    fn fin_wait_2_times_out_only_after_close() {
        let mut closing = closing();
        closing.begin_fin_wait_2(NOW);
        assert_eq!(closing.deadline(), None);
        closing.let_go();
        closing.begin_fin_wait_2(NOW);
        assert_eq!(closing.deadline(), Some(NOW + SECOND * 30));
    }

    #[test]
    fn what_the_end_of_a_wait_means_depends_on_the_state() {
        let mut closing = closing();
        assert_eq!(closing.on_timeout(NOW, State::TimeWait), None);
        closing.begin_time_wait(NOW);
        assert_eq!(closing.on_timeout(NOW + SECOND * 59, State::TimeWait), None);
        for (state, wait) in [
            (State::TimeWait, Ended::TimeWait),
            (State::FinWait2, Ended::FinWait2),
            (State::LastAck, Ended::Overdue),
            (State::Established, Ended::Overdue),
        ] {
            assert_eq!(closing.on_timeout(NOW + SECOND * 60, state), Some(wait));
        }
        closing.wait_at_most(NOW, SECOND);
        assert_eq!(closing.deadline(), Some(NOW + SECOND));
        closing.stop_waiting();
        assert_eq!(closing.on_timeout(NOW + SECOND * 60, State::TimeWait), None);
    }

    // RFC 9293 figure 5.
    #[test]
    fn both_fins_lead_to_the_end_in_any_order() {
        let first = State::Established.after_shutdown();
        assert_eq!(first.after_fin_acked().after_peer_fin(), State::TimeWait);
        assert_eq!(first.after_peer_fin().after_fin_acked(), State::TimeWait);
        let second = State::Established.after_peer_fin();
        assert_eq!(second.after_shutdown().after_fin_acked(), State::Closed);
        for state in [State::SynSent, State::SynReceived, State::TimeWait, State::Closed] {
            let after = [state.after_shutdown(), state.after_peer_fin(), state.after_fin_acked()];
            assert_eq!(after, [state; 3]);
        }
    }
}
