//! Holding back data that does not fill a segment (`TCP_CORK`, `MSG_MORE`), and the limit of unsent
//! data (`TCP_NOTSENT_LOWAT`).

use airtcp_types::{ByteCount, ExtSeq, Instant};

use super::SendHalf;

/// Holds back the data after the last full segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    /// Whether the application has set the cork; otherwise the next write or ACK ends the hold.
    corked: bool,
    /// The time when held data is sent anyway: one time-out after nothing else was in flight, as in
    /// Linux.
    until: Option<Instant>,
    /// Data below this number may be sent.
    released: ExtSeq,
}

impl SendHalf {
    /// Holds back data that does not fill a segment, because more data follows the last write soon.
    pub(in crate::tcp) fn leave_open(&mut self) {
        self.buffer.leave_open();
        self.hold(false);
    }

    /// Holds back everything except full segments, or sends the data that was held back.
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

    /// Sets the limit of unsent data; `None` is no limit but the size of the buffer.
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

    /// One past the last byte before `end` that may be sent.
    pub(super) fn held_to(&self, hold: &Hold, end: ExtSeq) -> ExtSeq {
        let size = self.sender.as_ref().map_or(1, |sender| sender.smss().0);
        let whole = self.nxt() + end.since(self.nxt()).0 / size * size;
        whole.max(hold.released.min(end))
    }

    /// Releases the data that is held back now.
    pub(super) fn release(&mut self) {
        let end = self.buffer.end();
        match &mut self.hold {
            Some(hold) if hold.corked => (hold.released, hold.until) = (end, None),
            _ => self.hold = None,
        }
    }

    /// Ends a hold without cork, after an ACK or a complete write.
    pub(super) fn end_more(&mut self) {
        if self.hold.as_ref().is_some_and(|hold| !hold.corked) {
            self.hold = None;
        }
    }

    /// Sets the time-out of the held data if nothing is in flight, so that no ACK can release it.
    pub(super) fn watch_hold(&mut self, now: Instant) {
        let (idle, rto, end) = (!self.is_outstanding(), self.rto(), self.buffer.end());
        let held = self.nxt() < end;
        let Some(hold) = &mut self.hold else { return };
        hold.until = (idle && held).then(|| hold.until.unwrap_or(now + rto));
    }

    /// The time when held data is sent.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.hold.as_ref().and_then(|hold| hold.until)
    }

    /// Releases held data if its time-out has expired.
    pub(in crate::tcp) fn on_hold_timeout(&mut self, now: Instant) {
        if self.held_until().is_some_and(|at| at <= now) {
            self.buffer.end_write();
            self.release();
        }
    }

    /// The number of bytes written and not sent.
    pub(super) fn not_sent(&self) -> ByteCount {
        self.buffer.end().since(self.nxt())
    }
}
