//! Closing: FIN from either end, RST, TIME-WAIT (RFC 9293 sections 3.6 and 3.10.4).

mod closing;
pub(crate) mod time_wait;

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};
use airtcp_wire::tcp::Segment;
use tracing::debug;

use crate::counters::Counters;

use super::{Connection, State, TcpError};

pub(super) use closing::{Closing, Ended};

use time_wait::is_newer;

impl Connection {
    /// Closes the sending direction: a FIN follows the data already written. The peer may continue
    /// to send.
    pub fn shutdown(&mut self, now: Instant) {
        if self.send.is_shut_down() || self.state == State::Closed {
            return;
        }
        self.send.shut_down();
        self.tally.busy_from(now);
        self.set_state(self.state.after_shutdown());
    }

    /// Sets the linger time (`SO_LINGER`): the maximum duration of [`close`](Self::close). If the
    /// peer has not acknowledged all data and the FIN by then, the rest is discarded and a RST is
    /// sent; with a limit of zero at once. With `None`, the default, only the usual time-outs
    /// apply.
    pub fn set_linger(&mut self, limit: Option<Duration>) {
        self.closing.set_linger(limit);
    }

    /// The linger time of [`close`](Self::close).
    pub const fn linger(&self) -> Option<Duration> {
        self.closing.linger()
    }

    /// Closes the connection for the application. Written data is still delivered, followed by a
    /// FIN. If unread data is discarded, now or later, the peer gets a RST instead (RFC 2525
    /// section 2.17). Returns whether unread data was discarded now.
    /// [`set_linger`](Self::set_linger) limits how long closing may take.
    pub fn close(&mut self, now: Instant) -> bool {
        self.closing.let_go();
        let linger = self.linger();
        if linger.is_some_and(|limit| limit.is_zero()) {
            self.abort(now);
            return false;
        }
        let lost = self.finish(now);
        if let Some(limit) = linger
            && !matches!(self.state, State::Closed | State::TimeWait | State::FinWait2)
        {
            self.closing.wait_at_most(now, limit);
        }
        lost
    }

    /// Closes both directions; returns whether unread data was discarded.
    fn finish(&mut self, now: Instant) -> bool {
        let unread = self.receive.readable() > ByteCount::ZERO || self.receive.has_holes();
        let lost = unread && !matches!(self.state, State::Closed | State::TimeWait);
        match self.state {
            State::Closed | State::TimeWait => {}
            State::SynSent => {
                self.retire(now);
                self.set_state(State::Closed);
            }
            _ if lost => {
                self.reset_peer(now);
                self.closing.on_error(TcpError::Aborted);
            }
            State::FinWait2 => self.closing.begin_fin_wait_2(now),
            _ => self.shutdown(now),
        }
        self.receive.discard();
        lost
    }

    /// Resets the connection with a RST, and discards unsent data.
    pub fn abort(&mut self, now: Instant) {
        match self.state {
            State::Closed => return,
            State::SynSent | State::TimeWait => {
                self.retire(now);
                self.set_state(State::Closed);
            }
            _ => self.reset_peer(now),
        }
        self.closing.on_error(TcpError::Aborted);
    }

    /// Whether a SYN may replace this connection in TIME-WAIT, because it is provably newer (RFC
    /// 9293 section 3.6.1, RFC 6191).
    pub fn may_be_replaced(&self, syn: &Segment<'_>) -> bool {
        self.state == State::TimeWait && is_newer(self.receive.nxt(), self.timestamps.as_ref(), syn)
    }

    /// Handles the peer's FIN, which is in order.
    pub(super) fn on_peer_fin(&mut self, now: Instant) {
        self.move_on(now, self.state.after_peer_fin());
    }

    /// Changes the state if an ACK has acknowledged the FIN of this end.
    pub(super) fn on_fin_acked(&mut self, now: Instant) {
        if !self.send.is_fin_acked() {
            return;
        }
        self.move_on(now, self.state.after_fin_acked());
    }

    /// Enters the next state of closing and does the work of the transition.
    fn move_on(&mut self, now: Instant, to: State) {
        if to == self.state {
            return;
        }
        match to {
            State::FinWait2 => self.closing.begin_fin_wait_2(now),
            State::TimeWait => {
                self.closing.begin_time_wait(now);
                self.retire_sender(now);
            }
            State::Closed => self.retire(now),
            _ => {}
        }
        self.set_state(to);
    }

    /// Sends a RST and ends the connection.
    pub(super) fn reset_peer(&mut self, now: Instant) {
        self.send_rst();
        self.receive.discard();
        self.retire(now);
        self.set_state(State::Closed);
    }

    /// Ends the connection because the peer did not answer in time.
    pub(super) fn give_up(&mut self, now: Instant, counters: &mut Counters) {
        let error = self.closing.reason_of_silence();
        debug!(remote = %self.flow.remote, state = %self.state, %error, "connection timed out");
        counters.tcp_ext_abort_on_timeout += 1;
        self.fail(now, error);
    }

    /// Ends the connection with the reason that the application gets.
    pub(super) fn fail(&mut self, now: Instant, error: TcpError) {
        self.retire(now);
        self.closing.on_error(error);
        self.set_state(State::Closed);
    }

    /// Frees everything except the data that the application has not read.
    pub(super) fn retire(&mut self, now: Instant) {
        self.retire_sender(now);
        self.handshake = None;
        self.acks.clear();
        self.closing.stop_waiting();
        // Data above a hole can no longer become readable.
        self.receive.discard_out_of_order();
        self.receive.shrink();
    }

    /// Drops the sender, but keeps its last values for [`info`](Self::info).
    fn retire_sender(&mut self, now: Instant) {
        // No application can ask for the details after it has closed the connection.
        if self.send.sender().is_some() && !self.closing.is_orphan() {
            self.last_info = Some(Box::new(self.info(now)));
        }
        self.collect_events();
        self.keep_path_news();
        self.send.retire();
    }
}
