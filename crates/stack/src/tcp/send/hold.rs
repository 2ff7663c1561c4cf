//! Holding back what does not fill a segment (`TCP_CORK`, `MSG_MORE`), and how much may wait to be sent
//! (`TCP_NOTSENT_LOWAT`).

use airtcp_types::{ByteCount, ExtSeq, Instant};

use crate::tcp::{Connection, Outlet, TcpError};

use super::SendHalf;

/// What is left behind the last full segment waits.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Hold {
    /// Until the application says otherwise; else until the next write or the next ACK.
    corked: bool,
    /// When it leaves all the same: a time-out after nothing else was on its way, as in Linux.
    until: Option<Instant>,
    /// What is below leaves.
    released: ExtSeq,
}

impl Connection {
    /// As [`send`](Self::send), but more follows soon: what does not fill a segment waits for it, for an ACK, or for a
    /// time-out, whatever [`nodelay`](Self::nodelay) says (`MSG_MORE`).
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_more(
        &mut self,
        now: Instant,
        data: &[u8],
        outlet: &mut Outlet,
    ) -> Result<usize, TcpError> {
        let n = self.send(now, data, outlet)?;
        self.send.buffer.leave_open();
        self.send.hold(false);
        Ok(n)
    }

    /// Lets only full segments leave from now on (`TCP_CORK`), or lets what was held back leave. A FIN ends it, and a
    /// time-out without anything on its way lets what is there leave.
    pub fn set_cork(&mut self, cork: bool) {
        match cork {
            true => self.send.hold(true),
            false => self.send.hold = None,
        }
    }

    /// Whether only full segments leave.
    pub fn cork(&self) -> bool {
        self.send.hold.as_ref().is_some_and(|hold| hold.corked)
    }

    /// Has [`send`](Self::send) take no more, and [`readiness`](Self::readiness) tell of no room, while so much was
    /// written and not sent yet (`TCP_NOTSENT_LOWAT`); `None`, the default, leaves that to the send buffer. The peer's
    /// ACKs then find what is there to be sent no older than it has to be.
    pub fn set_not_sent_low_water(&mut self, mark: Option<ByteCount>) {
        let bytes = mark.map_or(u32::MAX, |mark| u32::try_from(mark.0).unwrap_or(u32::MAX));
        self.send.low_water = bytes.max(1);
    }

    /// How much may be written and not sent.
    pub fn not_sent_low_water(&self) -> Option<ByteCount> {
        Some(self.send.low_water)
            .filter(|mark| *mark != u32::MAX)
            .map(|mark| ByteCount(mark.into()))
    }

    /// Sets the size of the send buffer, which then no longer follows the congestion window.
    pub fn set_send_buffer(&mut self, size: ByteCount) {
        (self.send.max, self.send.fixed) = (size, true);
    }

    /// Sets the most the receive buffer grows to. The window scale was agreed on when the connection was opened: the
    /// window that is offered is at most what it can tell.
    pub fn set_receive_buffer(&mut self, most: ByteCount) {
        self.receive.set_max(most);
    }
}

impl SendHalf {
    fn hold(&mut self, corked: bool) {
        let (corked, end) = (corked || self.hold.as_ref().is_some_and(|h| h.corked), self.nxt());
        self.hold = Some(Box::new(Hold { corked, until: None, released: end }));
    }

    /// One past the last byte that may leave, of those up to `end`.
    pub(in crate::tcp) fn held_to(&self, hold: &Hold, end: ExtSeq) -> ExtSeq {
        let size = self.sender.as_ref().map_or(1, |sender| sender.smss().0);
        let whole = self.nxt() + end.since(self.nxt()).0 / size * size;
        whole.max(hold.released.min(end))
    }

    /// What is held back now leaves.
    pub(in crate::tcp) fn release(&mut self) {
        let end = self.buffer.end();
        match &mut self.hold {
            Some(hold) if hold.corked => (hold.released, hold.until) = (end, None),
            _ => self.hold = None,
        }
    }

    /// An ACK, or a write that nothing is to follow.
    pub(in crate::tcp) fn end_more(&mut self) {
        if self.hold.as_ref().is_some_and(|hold| !hold.corked) {
            self.hold = None;
        }
    }

    /// Nothing leaves now: what is held back does after a time-out, if nothing is on its way whose ACK could tell when.
    pub(in crate::tcp) fn watch_hold(&mut self, now: Instant) {
        let (idle, rto, end) = (!self.is_outstanding(), self.rto(), self.buffer.end());
        let held = self.nxt() < end;
        let Some(hold) = &mut self.hold else { return };
        hold.until = (idle && held).then(|| hold.until.unwrap_or(now + rto));
    }

    /// When what is held back leaves.
    pub(in crate::tcp) fn held_until(&self) -> Option<Instant> {
        self.hold.as_ref().and_then(|hold| hold.until)
    }

    /// What is held back leaves if it is time.
    pub(in crate::tcp) fn on_hold_timeout(&mut self, now: Instant) {
        if self.held_until().is_some_and(|at| at <= now) {
            self.buffer.end_write();
            self.release();
        }
    }

    /// What was written and not sent.
    pub(in crate::tcp) fn not_sent(&self) -> ByteCount {
        self.buffer.end().since(self.nxt())
    }
}
