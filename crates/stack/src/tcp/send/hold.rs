//! Holding back what does not fill a segment (`TCP_CORK`, `MSG_MORE`), and how much may wait to be
//! sent (`TCP_NOTSENT_LOWAT`).

use airtcp_types::{ByteCount, ExtSeq, Instant};

use super::SendHalf;

/// What is left behind the last full segment waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    /// Until the application says otherwise; else until the next write or the next ACK.
    corked: bool,
    /// When it leaves all the same: a time-out after nothing else was on its way, as in Linux.
    until: Option<Instant>,
    /// What is below leaves.
    released: ExtSeq,
}

impl SendHalf {
    /// More follows the last write soon: what does not fill a segment waits for it.
    pub(in crate::tcp) fn leave_open(&mut self) {
        self.buffer.leave_open();
        self.hold(false);
    }

    /// Lets only full segments leave from now on, or lets what was held back leave.
    pub(in crate::tcp) fn set_cork(&mut self, cork: bool) {
        match cork {
            true => self.hold(true),
            false => self.hold = None,
        }
    }

    /// Whether only full segments are sent.
    pub(in crate::tcp) fn is_corked(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.corked)
    }

    /// No more is taken while so much was written and not sent; `None` leaves that to the size of
    /// the buffer.
    pub(in crate::tcp) fn set_low_water(&mut self, mark: Option<ByteCount>) {
        let bytes = mark.map_or(u32::MAX, |mark| u32::try_from(mark.0).unwrap_or(u32::MAX));
        self.low_water = bytes.max(1);
    }

    /// The limit of unsent data.
    pub(in crate::tcp) fn low_water(&self) -> Option<ByteCount> {
        Some(self.low_water).filter(|mark| *mark != u32::MAX).map(|mark| ByteCount(mark.into()))
    }

    fn hold(&mut self, corked: bool) {
        let (corked, end) = (corked || self.hold.as_ref().is_some_and(|h| h.corked), self.nxt());
        self.hold = Some(Box::new(Hold { corked, until: None, released: end }));
    }

    /// One past the last byte that may leave, of those up to `end`.
    pub(super) fn held_to(&self, hold: &Hold, end: ExtSeq) -> ExtSeq {
        let size = self.sender.as_ref().map_or(1, |sender| sender.smss().0);
        let whole = self.nxt() + end.since(self.nxt()).0 / size * size;
        whole.max(hold.released.min(end))
    }

    /// What is held back now leaves.
    pub(super) fn release(&mut self) {
        let end = self.buffer.end();
        match &mut self.hold {
            Some(hold) if hold.corked => (hold.released, hold.until) = (end, None),
            _ => self.hold = None,
        }
    }

    /// An ACK, or a write that nothing is to follow.
    pub(super) fn end_more(&mut self) {
        if self.hold.as_ref().is_some_and(|hold| !hold.corked) {
            self.hold = None;
        }
    }

    /// Nothing leaves now: what is held back does after a time-out, if nothing is on its way whose
    /// ACK could tell when.
    pub(super) fn watch_hold(&mut self, now: Instant) {
        let (idle, rto, end) = (!self.is_outstanding(), self.rto(), self.buffer.end());
        let held = self.nxt() < end;
        let Some(hold) = &mut self.hold else { return };
        hold.until = (idle && held).then(|| hold.until.unwrap_or(now + rto));
    }

    /// When what is held back leaves.
    pub(super) fn held_until(&self) -> Option<Instant> {
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
    pub(super) fn not_sent(&self) -> ByteCount {
        self.buffer.end().since(self.nxt())
    }
}
