//! Timers of a connection.

use std::time::Duration;

use airtcp_types::Instant;

use super::liveness::View;
use super::{Connection, State};
use crate::error::ConnectionError;

/// The minimum time for which a complete connection still responds; the maximum is ten times this.
const LEAST_LINGER: Duration = Duration::from_secs(1);

impl Connection {
    pub(super) fn linger(&self) -> Duration {
        (self.rtt.pto() * 3).clamp(LEAST_LINGER, LEAST_LINGER * 10)
    }

    fn view(&self) -> View {
        let (awaits, pto) = (self.send.awaits(), self.rtt.pto());
        View { awaits, pto, loss_rate: self.losses.loss_rate() }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Connecting(handshake) if handshake.is_timed_out(now) => {
                self.close(Some(ConnectionError::HandshakeTimeout));
            }
            State::Lingering(until) if now >= until => self.close(None),
            State::Established => {
                if let Some(error) = self.liveness.handle_timeout(now, self.view()) {
                    self.give_up(error);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.owe_close.is_some() {
            return Some(Instant::ZERO);
        }
        match self.state {
            State::Connecting(handshake) => Some(handshake.poll_timeout()),
            State::Closed(_) => None,
            _ if self.owe_start_echo || self.liveness.is_ping_owed() => Some(Instant::ZERO),
            State::Lingering(until) => {
                Some(self.receive.poll_timeout().map_or(until, |report| report.min(until)))
            }
            State::Established => {
                let rest = [self.receive.poll_timeout(), self.data_at()].into_iter().flatten();
                rest.chain([self.liveness.poll_timeout(self.view())]).min()
            }
        }
    }
}
