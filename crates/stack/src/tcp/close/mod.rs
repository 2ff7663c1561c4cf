//! Closing: FIN from either side, RST, TIME-WAIT (RFC 9293 sections 3.6, 3.10.4).

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
    /// Ends the sending direction: a FIN follows the data already written. The peer may go on
    /// sending.
    pub fn shutdown(&mut self, now: Instant) {
        if self.send.is_shut_down() || self.state == State::Closed {
            return;
        }
        self.send.shut_down();
        self.tally.busy_from(now);
        self.set_state(self.state.after_shutdown());
    }

    /// Sets how long [`close`](Self::close) may take: what the peer has not acknowledged by then, the FIN included, is
    /// thrown away with a RST, at once with a limit of zero (`SO_LINGER`). `None`, the default, is no limit but that of
    /// time-outs.
    pub fn set_linger(&mut self, limit: Option<Duration>) {
        self.closing.set_linger(limit);
    }

    /// The linger time of [`close`](Self::close).
    pub const fn linger(&self) -> Option<Duration> {
        self.closing.linger()
    }

    /// The application lets go. What was written is still delivered, then a FIN; but if something
    /// unread is thrown away, now or later, the peer gets a RST (RFC 2525 section 2.17). Gives
    /// whether it was now. [`set_linger`](Self::set_linger) limits how long that may take.
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

    /// Ends both directions; gives whether something unread was thrown away.
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

    /// Whether a SYN may take the place of this connection in TIME-WAIT: it is provably newer (RFC
    /// 9293 section 3.6.1, RFC 6191).
    pub fn may_be_replaced(&self, syn: &Segment<'_>) -> bool {
        self.state == State::TimeWait && is_newer(self.receive.nxt(), self.timestamps.as_ref(), syn)
    }

    /// The peer's FIN is in order.
    pub(super) fn on_peer_fin(&mut self, now: Instant) {
        self.move_on(now, self.state.after_peer_fin());
    }

    /// After an ACK: the peer may now have our FIN.
    pub(super) fn on_fin_acked(&mut self, now: Instant) {
        if !self.send.is_fin_acked() {
            return;
        }
        self.move_on(now, self.state.after_fin_acked());
    }

    /// Moves on towards the end of the connection.
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

    /// Sends a RST and is done.
    pub(super) fn reset_peer(&mut self, now: Instant) {
        self.send_rst();
        self.receive.discard();
        self.retire(now);
        self.set_state(State::Closed);
    }

    /// The peer did not answer in time.
    pub(super) fn give_up(&mut self, now: Instant, counters: &mut Counters) {
        let error = self.closing.reason_of_silence();
        debug!(remote = %self.flow.remote, state = %self.state, %error, "given up");
        counters.tcp_ext_abort_on_timeout += 1;
        self.fail(now, error);
    }

    /// It is over, and the application should know why.
    pub(super) fn fail(&mut self, now: Instant, error: TcpError) {
        self.retire(now);
        self.closing.on_error(error);
        self.set_state(State::Closed);
    }

    /// Gives back everything but what the application has not read.
    pub(super) fn retire(&mut self, now: Instant) {
        self.retire_sender(now);
        self.handshake = None;
        self.acks.clear();
        self.closing.stop_waiting();
        // What is above a hole can no longer be read.
        self.receive.discard_out_of_order();
        self.receive.shrink();
    }

    /// Lets the sender go; its figures are still wanted.
    fn retire_sender(&mut self, now: Instant) {
        // Of one that nobody holds nobody asks.
        if self.send.sender().is_some() && !self.closing.is_orphan() {
            self.last_info = Some(Box::new(self.info(now)));
        }
        self.collect_events();
        self.keep_path_news();
        self.send.retire();
    }
}
