//! Takes back a reduction that was spurious.
//!
//! Four signs show one:
//! - the segment to be retransmitted is acknowledged before it is retransmitted;
//! - the ACK that covers a retransmission echoes a time stamp from before it: the original had arrived (Eifel
//!   detection, RFC 3522);
//! - the receiver reports every retransmission since the reduction as a duplicate (DSACK, RFC 2883 and RFC 3708);
//! - without time stamps, F-RTO finds a time-out spurious (RFC 5682).
//!
//! The response is that of RFC 4015: the windows are restored, and no burst follows.

use airtcp_types::{ByteCount, EventKind, ExtSeq, Instant, RangeSet, SendRule, SeqRange};

use super::Sender;
use super::f_rto::{FRto, Outcome};
use super::losses::Episode;
use crate::control::NoticeKind;
use crate::view::{AckView, Phase};

/// What showed a reduction to be spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UndoSign {
    /// What was to be sent again is acknowledged before it was.
    Overtaken,
    /// The ACK of a retransmission echoes a time stamp from before it left (Eifel detection, RFC 3522).
    TimeStamp,
    /// Every retransmission came twice (RFC 3708).
    Duplicates,
    /// After a time-out, what was never sent again arrives (F-RTO, RFC 5682).
    NewData,
}

/// What would show the last reduction to be spurious.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// When the first retransmission since left, until the ACK that decides by time stamp.
    first_retransmission: Option<Instant>,
    /// What was sent again since; its size is bounded by the windows.
    sent_again: RangeSet,
    retransmissions: u64,
    duplicates: u64,
    /// SND.NXT when the episode ended: once it is acknowledged, a report of a duplicate is late by
    /// more than a round trip, and about something else.
    ends_at: Option<ExtSeq>,
    /// The recovery that a time-out broke into: its own reduction was not spurious.
    interrupted: Option<Episode>,
    pub(super) f_rto: Option<FRto>,
}

impl Sender {
    /// What showed the last reduction that was taken back to be spurious.
    pub const fn last_undo(&self) -> Option<UndoSign> {
        self.last_undo
    }

    pub(super) fn watch_for_spurious(&mut self) {
        self.refill = u32::MAX;
        self.undo = self.profile.undo.then(Box::<Undo>::default);
    }

    /// A time-out is about to take the place of the episode that is on, if one is.
    pub(super) fn watch_for_spurious_timeout(&mut self) {
        self.watch_for_spurious();
        let (una, recover) = (self.core.board.snd_una(), self.core.board.snd_nxt());
        // RFC 5682 section 2.1 step 1: not while an earlier time-out is being recovered from.
        let finds = self.profile.f_rto && self.core.phase() != Phase::Loss;
        if let Some(undo) = &mut self.undo {
            undo.interrupted = self.core.episode.filter(|episode| episode.phase() != Phase::Loss);
            undo.f_rto = finds.then(|| FRto::new(una, recover));
        }
    }

    /// The episode is over, but reports of its duplicates may still be on their way.
    pub(super) fn end_watch_later(&mut self) {
        if let Some(undo) = &mut self.undo {
            undo.ends_at = Some(self.core.board.snd_nxt());
        }
    }

    pub(super) fn on_retransmission(&mut self, now: Instant, range: SeqRange) {
        if let Some(undo) = self.undo.as_mut().filter(|undo| undo.ends_at.is_none()) {
            if undo.retransmissions == 0 {
                undo.first_retransmission = Some(now);
            }
            undo.retransmissions += 1;
            undo.sent_again.insert(range);
            undo.f_rto.iter_mut().for_each(|f_rto| f_rto.on_retransmission(range));
        }
    }

    pub(super) fn undo_if_spurious(&mut self, now: Instant, ack: &AckView<'_>) {
        // Acknowledged before its repair has left: a host that is late sees to its timers before
        // the ACKs that wait for it.
        let overtaken = self.immediate.is_some_and(|(tx, _)| self.core.board.get(tx).is_none());
        let Some(undo) = &mut self.undo else { return };
        // A duplicate of what was sent once is the network's own.
        let reported =
            ack.dsack.is_some_and(|dsack| !dsack.is_empty() && undo.sent_again.covers(dsack));
        undo.duplicates += u64::from(reported);
        let mut sign = (reported && undo.duplicates >= undo.retransmissions)
            .then_some(UndoSign::Duplicates)
            .or((overtaken && undo.retransmissions == 0).then_some(UndoSign::Overtaken));
        let mut repairs = false;
        // RFC 7323 section 4.3: an ACK that advances echoes the time stamp of what arrived at SND.UNA. Where that was
        // not sent again since the reduction, it says nothing of those that were.
        let una = ack.ack - ack.acked.0;
        if ack.acked > ByteCount::ZERO
            && let Some(echo) = ack.echo
            && undo.sent_again.range_at(una).is_some()
            && let Some(first) = undo.first_retransmission.take()
        {
            // RFC 3522 section 3.2 step 5. Time stamps tick in milliseconds: within the same one
            // nothing can be told.
            let earlier = echo < Instant::from_millis(first.as_millis());
            sign = sign.or(earlier.then_some(UndoSign::TimeStamp));
        }
        if let Some(f_rto) = undo.f_rto.take() {
            match f_rto.on_ack(ack) {
                Outcome::Goes(on) => undo.f_rto = Some(on),
                Outcome::Ends if f_rto.is_probing() => repairs = true,
                Outcome::Ends => {}
                Outcome::Spurious => sign = sign.or(Some(UndoSign::NewData)),
            }
        }
        if sign.is_some() {
            self.last_undo = sign;
            let before = self.cwnd();
            self.take_back(now);
            // RFC 4015 section 3.4: the restored window is no leave to send a burst. A pacer spreads it.
            if self.pacer.rate().is_none() {
                self.refill_to(before);
            }
        } else if undo.ends_at.is_some_and(|end| ack.ack > end) {
            self.undo = None;
        }
        if repairs && sign.is_none() {
            // RFC 5682 section 2.1 step 3 a: the new data has filled the window, which may be three segments now.
            let lost = self.core.board.first_lost().map(|lost| lost.tx);
            self.immediate = lost.map(|tx| (tx, SendRule::Timeout));
        }
    }

    fn take_back(&mut self, now: Instant) {
        let una = self.core.board.snd_una();
        let interrupted = self.undo.take().and_then(|undo| undo.interrupted);
        self.core.episode = interrupted.filter(|episode| episode.lasts(now, una));
        (self.prr, self.probe) = (None, None);
        self.immediate = None;
        self.core.board.revive_lost();
        self.core.rtt.end_backoff();
        self.stats.undos += 1;
        let view = self.core.view(now, &*self.control);
        self.detection.on_undo(&view);
        let resumes = self.core.episode.is_some();
        self.notify(now, NoticeKind::Undo { resumes });
        self.restart_rto(now);
        self.tell(|| EventKind::Undo);
    }

    /// Whether cwnd is still below the window that an undo restored.
    pub(super) const fn is_refilling(&self) -> bool {
        self.refill < u32::MAX
    }

    pub(super) fn refill_limit(&self) -> ByteCount {
        if self.is_refilling() { ByteCount(self.refill.into()) } else { ByteCount::MAX }
    }

    /// Lets at most an initial window leave on each ACK until the window that an undo restored is full.
    pub(super) fn refill(&mut self) {
        if self.is_refilling() {
            self.refill_to(self.refill_limit());
        }
    }

    fn refill_to(&mut self, least: ByteCount) {
        let burst = self.core.smss * u64::from(self.profile.initial_window);
        let limit = least.max(self.pipe() + burst);
        let is_full = limit >= self.control.window();
        self.refill = if is_full { u32::MAX } else { u32::try_from(limit.0).unwrap_or(u32::MAX) };
    }
}
