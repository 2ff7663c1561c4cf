//! State of the end of a connection: ownership, pending close, and the reason of the end.

use std::time::Duration;

use airtcp_types::Instant;

use crate::tcp::{State, TcpConfig, TcpError, Unreachable};

/// The end of one connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Closing {
    /// The application let go.
    is_orphan: bool,
    /// Why it ended; the first reason counts.
    error: Option<TcpError>,
    /// What the network said, should it prove true (RFC 1122 section 4.2.3.9).
    soft_error: Option<Unreachable>,
    /// How long closing may take.
    linger: Option<Duration>,
    /// When TIME-WAIT or an orphan's FIN-WAIT-2 ends, or the wait for the peer's last ACK.
    until: Option<Instant>,
    time_wait: Duration,
    fin_wait_2: Duration,
}

/// What the end of a wait means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) enum Ended {
    /// TIME-WAIT is over.
    TimeWait,
    /// Nobody waits for the peer's FIN any longer.
    FinWait2,
    /// The peer has not acknowledged everything in time.
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

    /// The application lets go.
    pub(super) fn let_go(&mut self) {
        self.is_orphan = true;
    }

    /// Whether the application let go.
    pub(in crate::tcp) const fn is_orphan(&self) -> bool {
        self.is_orphan
    }

    /// Sets how long closing may take.
    pub(super) fn set_linger(&mut self, limit: Option<Duration>) {
        self.linger = limit;
    }

    /// How long closing may take.
    pub(super) const fn linger(&self) -> Option<Duration> {
        self.linger
    }

    /// TIME-WAIT begins, or begins anew.
    pub(in crate::tcp) fn begin_time_wait(&mut self, now: Instant) {
        self.until = Some(now + self.time_wait);
    }

    /// How long TIME-WAIT lasts.
    pub(super) const fn time_wait(&self) -> Duration {
        self.time_wait
    }

    /// In FIN-WAIT-2 with nobody to read what comes: that ends some time.
    pub(super) fn begin_fin_wait_2(&mut self, now: Instant) {
        if self.is_orphan {
            self.until = Some(now + self.fin_wait_2);
        }
    }

    /// The peer has this long to acknowledge everything.
    pub(super) fn wait_at_most(&mut self, now: Instant, limit: Duration) {
        self.until = Some(now + limit);
    }

    /// There is nothing to wait for any more.
    pub(super) fn stop_waiting(&mut self) {
        self.until = None;
    }

    /// When a wait ends.
    pub(in crate::tcp) const fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// What the end of a wait means in `state`, if one ends now.
    pub(in crate::tcp) fn on_timeout(&self, now: Instant, state: State) -> Option<Ended> {
        self.until.filter(|at| *at <= now).map(|_| match state {
            State::TimeWait => Ended::TimeWait,
            State::FinWait2 => Ended::FinWait2,
            _ => Ended::Overdue,
        })
    }

    /// It ends for this reason, unless it has ended for another one.
    pub(in crate::tcp) fn on_error(&mut self, error: TcpError) {
        self.error.get_or_insert(error);
    }

    /// The reason why it ended, if not by both FINs.
    pub(in crate::tcp) const fn error(&self) -> Option<TcpError> {
        self.error
    }

    /// The network reports that something did not arrive; that may pass.
    pub(in crate::tcp) fn on_soft_error(&mut self, error: Unreachable) {
        self.soft_error = Some(error);
    }

    /// An ACK has come: what the network said is history.
    pub(in crate::tcp) fn on_ack(&mut self) {
        self.soft_error = None;
    }

    /// What the network said since the last ACK.
    pub(in crate::tcp) const fn soft_error(&self) -> Option<Unreachable> {
        self.soft_error
    }

    /// Why a peer does not answer: what the network said, if it said something (RFC 5461).
    pub(super) fn reason_of_silence(&self) -> TcpError {
        self.soft_error.map_or(TcpError::TimedOut, TcpError::Unreachable)
    }
}

impl State {
    /// The state after a FIN of this end was queued; before the handshake is done that has to wait.
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
    fn fin_wait_2_ends_only_if_nobody_holds_the_connection() {
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
