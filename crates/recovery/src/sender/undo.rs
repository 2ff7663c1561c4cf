//! Undo of a spurious reduction.
//!
//! Four signs show that a reduction was spurious:
//! - the segment to be retransmitted is acknowledged before it is retransmitted;
//! - the ACK that covers a retransmission echoes a time stamp from before the retransmission, so
//!   the original had arrived (Eifel detection, RFC 3522);
//! - the receiver reports every retransmission since the reduction as a duplicate (DSACK, RFC 2883
//!   and RFC 3708);
//! - without time stamps, F-RTO finds that a time-out was spurious (RFC 5682).
//!
//! The response is that of RFC 4015: the windows are restored without a burst.

use airtcp_types::{ByteCount, EventKind, ExtSeq, Instant, RangeSet, SendRule, SeqRange, TxNo};

use super::Sender;
use super::f_rto::{FRto, Outcome};
use super::recovery::Recovery;
use crate::control::NoticeKind;
use crate::view::{AckView, Phase};

/// The sign that showed that a reduction was spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UndoSign {
    /// The segment to be retransmitted was acknowledged before its retransmission.
    Overtaken,
    /// The ACK of a retransmission echoes a time stamp from before the retransmission (Eifel
    /// detection, RFC 3522).
    TimeStamp,
    /// The receiver reported every retransmission as a duplicate (RFC 3708).
    Duplicates,
    /// After a time-out, data that was not retransmitted arrived (F-RTO, RFC 5682).
    NewData,
}

/// Watches for the signs, from a reduction until it can no longer be undone.
#[derive(Debug, Default)]
pub(super) struct Undo {
    watch: Option<Box<Watch>>,
    /// The first transmission after the last undo, until a loss of an earlier transmission is
    /// found.
    undone_at: TxNo,
}

/// What is known about the last reduction.
#[derive(Clone, Debug, Default)]
struct Watch {
    /// When the first retransmission was sent, until an ACK has decided by time stamp.
    first_retransmission: Option<Instant>,
    /// The retransmitted data; the windows bound its size.
    sent_again: RangeSet,
    retransmissions: u64,
    duplicates: u64,
    /// SND.NXT when the recovery ended. Once it is acknowledged, a DSACK is late by more than a
    /// round trip and reports something else.
    ends_at: Option<ExtSeq>,
    /// The recovery that a time-out interrupted: its own reduction was not spurious.
    interrupted: Option<Recovery>,
    /// The first transmission after the previous reduction.
    answered: TxNo,
    f_rto: Option<FRto>,
}

/// What an ACK shows about the last reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shown {
    Nothing,
    /// It was spurious, according to this sign.
    Spurious(UndoSign),
    /// The time-out was not spurious: send the retransmissions that F-RTO withheld.
    Needed,
}

impl Undo {
    /// Starts the watch at a reduction; `is_on` is the profile's setting, and `answered` is the
    /// first transmission after the previous reduction.
    fn begin(&mut self, is_on: bool, answered: TxNo) {
        self.watch = is_on.then(|| Box::new(Watch { answered, ..Watch::default() }));
    }

    /// Records that the reduction is that of a time-out: `f_rto`, if F-RTO applies, and the
    /// recovery that it interrupts, if there is one.
    fn is_of_timeout(&mut self, f_rto: Option<FRto>, interrupted: Option<Recovery>) {
        if let Some(watch) = &mut self.watch {
            (watch.f_rto, watch.interrupted) = (f_rto, interrupted);
        }
    }

    /// Ends the watch: the reduction must not be undone.
    pub(super) fn stop(&mut self) {
        self.watch = None;
    }

    /// Stops F-RTO for this time-out.
    pub(super) fn stop_f_rto(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.f_rto = None;
        }
    }

    /// The recovery is over; DSACKs of its retransmissions may still arrive.
    pub(super) fn end_later(&mut self, snd_nxt: ExtSeq) {
        if let Some(watch) = &mut self.watch {
            watch.ends_at = Some(snd_nxt);
        }
    }

    pub(super) fn on_retransmission(&mut self, now: Instant, range: SeqRange) {
        if let Some(watch) = self.watch.as_mut().filter(|watch| watch.ends_at.is_none()) {
            if watch.retransmissions == 0 {
                watch.first_retransmission = Some(now);
            }
            watch.retransmissions += 1;
            watch.sent_again.insert(range);
            watch.f_rto.iter_mut().for_each(|f_rto| f_rto.on_retransmission(range));
        }
    }

    /// Returns whether retransmissions wait for the second ACK of F-RTO. Without new data to send
    /// they do not wait (RFC 5682 section 2.1 step 2 b).
    pub(super) fn withholds_repairs(&mut self, has_new_data: bool, snd_nxt: ExtSeq) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        let Some(recover) = watch.f_rto.and_then(FRto::probes_beyond) else { return false };
        let waits = has_new_data || snd_nxt > recover;
        if !waits {
            watch.f_rto = None;
        }
        waits
    }

    /// `overtaken` is whether the segment to be retransmitted is acknowledged before its
    /// retransmission.
    fn on_ack(&mut self, ack: &AckView<'_>, overtaken: bool) -> Shown {
        let Some(watch) = &mut self.watch else { return Shown::Nothing };
        // A duplicate of data that was sent once is the network's own.
        let reported =
            ack.dsack.is_some_and(|dsack| !dsack.is_empty() && watch.sent_again.covers(dsack));
        watch.duplicates += u64::from(reported);
        let mut sign = (reported && watch.duplicates >= watch.retransmissions)
            .then_some(UndoSign::Duplicates)
            .or((overtaken && watch.retransmissions == 0).then_some(UndoSign::Overtaken));
        let mut is_needed = false;
        // RFC 7323 section 4.3: an ACK that advances SND.UNA echoes the time stamp of the segment
        // that arrived at SND.UNA. If that segment was not retransmitted since the reduction, the
        // echo says nothing about the segments that were.
        let una = ack.ack - ack.acked.0;
        if ack.acked > ByteCount::ZERO
            && let Some(echo) = ack.echo
            && watch.sent_again.range_at(una).is_some()
            && let Some(first) = watch.first_retransmission.take()
        {
            // RFC 3522 section 3.2 step 5. Time stamps have a resolution of a millisecond: within
            // the same one they decide nothing.
            let earlier = echo < Instant::from_millis(first.as_millis());
            sign = sign.or(earlier.then_some(UndoSign::TimeStamp));
        }
        if let Some(f_rto) = watch.f_rto.take() {
            match f_rto.on_ack(ack) {
                Outcome::Goes(on) => watch.f_rto = Some(on),
                Outcome::Ends => is_needed = f_rto.probes_beyond().is_some(),
                Outcome::Spurious => sign = sign.or(Some(UndoSign::NewData)),
            }
        }
        if let Some(sign) = sign {
            return Shown::Spurious(sign);
        }
        if watch.ends_at.is_some_and(|end| ack.ack > end) {
            self.watch = None;
        }
        if is_needed { Shown::Needed } else { Shown::Nothing }
    }

    /// Returns whether this transmission is retransmitted at once, whatever the window permits: it
    /// is the first loss of those that an undo counted as in flight again. After an outage all of
    /// them may be lost, and without this retransmission nothing would trigger an ACK.
    pub(super) fn repairs_at_once(&mut self, lost: TxNo) -> bool {
        let first = lost < self.undone_at;
        if first {
            self.undone_at = TxNo::default();
        }
        first
    }

    /// Ends the watch; returns the state before the reduction: the recovery that a time-out
    /// interrupted, and the first transmission after the previous reduction.
    fn take_before(&mut self) -> (Option<Recovery>, TxNo) {
        self.watch.take().map_or_else(Default::default, |watch| (watch.interrupted, watch.answered))
    }
}

/// The upper bound of cwnd, in bytes, from an undo until ACKs have filled the restored window
/// again; [`u32::MAX`] at any other time. A `u32` keeps every connection small.
#[derive(Debug)]
pub(super) struct Refill(u32);

impl Refill {
    pub(super) const OFF: Self = Self(u32::MAX);

    /// Returns whether cwnd is still below the window that an undo restored.
    pub(super) const fn is_on(&self) -> bool {
        self.0 < u32::MAX
    }

    pub(super) fn limit(&self) -> ByteCount {
        if self.is_on() { ByteCount(self.0.into()) } else { ByteCount::MAX }
    }

    fn set(&mut self, limit: ByteCount, window: ByteCount) {
        let is_full = limit >= window;
        self.0 = if is_full { u32::MAX } else { u32::try_from(limit.0).unwrap_or(u32::MAX) };
    }
}

impl Sender {
    pub(super) fn watch_for_spurious(&mut self) {
        self.refill = Refill::OFF;
        self.undo.begin(self.profile.undo, self.core.recovery.answered());
    }

    /// Starts the watch at a time-out, before the time-out replaces the current recovery.
    pub(super) fn watch_for_spurious_timeout(&mut self) {
        self.refill = Refill::OFF;
        // RFC 5682 section 2.1 step 1: not during the recovery of an earlier time-out.
        let finds = self.profile.f_rto && self.core.phase() != Phase::Loss;
        let (una, recover) = (self.snd_una(), self.snd_nxt());
        let interrupted = self.core.recovery.interrupted();
        let f_rto = finds.then(|| FRto::new(una, recover));
        self.undo.begin(self.profile.undo, self.core.recovery.answered());
        self.undo.is_of_timeout(f_rto, interrupted);
    }

    /// Undoes the last reduction if the ACK shows that it was spurious; returns the sign.
    pub(super) fn undo_if_spurious(&mut self, now: Instant, ack: &AckView<'_>) -> Option<UndoSign> {
        // Acknowledged before its retransmission was sent: a host that is late runs its timers
        // before it reads the ACKs that wait for it.
        let overtaken = self.immediate.is_some_and(|(tx, _)| self.core.board.get(tx).is_none());
        match self.undo.on_ack(ack, overtaken) {
            Shown::Nothing => None,
            Shown::Spurious(sign) => {
                let before = self.cwnd();
                self.take_back(now);
                // RFC 4015 section 3.4: the restored window must not cause a burst. With pacing,
                // the pacer spreads the data.
                if self.pacer.rate().is_none() {
                    self.refill_to(before);
                }
                Some(sign)
            }
            Shown::Needed => {
                // RFC 5682 section 2.1 step 3 a: the new data has filled the window, which may now
                // be three segments.
                let lost = self.core.board.first_lost().map(|lost| lost.tx);
                self.immediate = lost.map(|tx| (tx, SendRule::Timeout));
                None
            }
        }
    }

    fn take_back(&mut self, now: Instant) {
        let una = self.core.board.snd_una();
        let (interrupted, answered) = self.undo.take_before();
        self.core.recovery.restore(now, una, interrupted, answered);
        self.undo.undone_at = self.core.board.next_tx();
        self.prr = None;
        self.probes.cancel();
        self.immediate = None;
        self.core.board.revive_lost();
        self.core.rtt.end_backoff();
        self.stats.undos += 1;
        self.strategies.on_undo(&self.core, now);
        let resumes = self.core.recovery.is_on();
        self.notify(now, NoticeKind::Undo { resumes });
        self.restart_rto(now);
        self.events.add(|| EventKind::Undo);
    }

    /// Limits each ACK to an initial window of data, until the window that an undo restored is
    /// full.
    pub(super) fn refill(&mut self) {
        if self.refill.is_on() {
            self.refill_to(self.refill.limit());
        }
    }

    fn refill_to(&mut self, least: ByteCount) {
        let burst = self.core.smss * u64::from(self.profile.initial_window);
        let limit = least.max(self.pipe() + burst);
        self.refill.set(limit, self.control_window());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{SMSS, ack_view, ms, segments, seq};

    /// A watch that has seen the retransmission of segments 0 and 1, at 100 and 101 ms.
    fn watch() -> Undo {
        let mut undo = Undo::default();
        undo.begin(true, TxNo(0));
        undo.on_retransmission(ms(100), segments(0, 1));
        undo.on_retransmission(ms(101), segments(1, 2));
        undo
    }

    /// An ACK of `count` segments below `end`.
    fn ack(count: u64, end: u64) -> AckView<'static> {
        AckView { ack: seq(end), ..ack_view(ms(200), ByteCount(count * SMSS)) }
    }

    #[test]
    fn an_echo_from_before_the_first_retransmission_is_a_sign_and_one_of_its_millisecond_is_none() {
        let spurious = Shown::Spurious(UndoSign::TimeStamp);
        for (echo, shown) in [(99, spurious), (100, Shown::Nothing)] {
            let mut undo = watch();
            assert_eq!(undo.on_ack(&AckView { echo: Some(ms(echo)), ..ack(1, 1) }, false), shown);
            // The first ACK decides.
            let later = AckView { echo: Some(ms(1)), ..ack(1, 2) };
            if shown == Shown::Nothing {
                assert_eq!(undo.on_ack(&later, false), Shown::Nothing);
            }
        }
    }

    #[test]
    fn as_many_duplicates_as_retransmissions_are_a_sign_until_the_watch_is_over() {
        let report = |of| AckView { dsack: Some(segments(of, of + 1)), ..ack(0, 2) };
        let mut undo = watch();
        assert_eq!(undo.on_ack(&report(0), false), Shown::Nothing);
        // Sent once: the network's own duplicate.
        assert_eq!(undo.on_ack(&report(7), false), Shown::Nothing);
        assert_eq!(undo.on_ack(&report(1), false), Shown::Spurious(UndoSign::Duplicates));
        let mut late = watch();
        late.end_later(seq(4));
        assert_eq!(late.on_ack(&ack(3, 5), false), Shown::Nothing);
        assert_eq!(late.on_ack(&report(0), false), Shown::Nothing);
        assert_eq!(late.on_ack(&report(1), false), Shown::Nothing);
    }

    #[test]
    fn an_ack_before_the_repair_is_evidence_only_without_a_retransmission() {
        assert_eq!(watch().on_ack(&ack(1, 1), true), Shown::Nothing);
        let mut undo = Undo::default();
        undo.begin(true, TxNo(0));
        assert_eq!(undo.on_ack(&ack(1, 1), true), Shown::Spurious(UndoSign::Overtaken));
        undo.begin(false, TxNo(0));
        assert_eq!(undo.on_ack(&ack(1, 1), true), Shown::Nothing);
    }

    #[test]
    fn repairs_wait_for_the_second_ack_after_a_time_out_and_leave_if_it_shows_nothing() {
        let mut undo = Undo::default();
        undo.begin(true, TxNo(0));
        undo.is_of_timeout(Some(FRto::new(seq(0), seq(9))), None);
        undo.on_retransmission(ms(100), segments(0, 1));
        assert!(!undo.withholds_repairs(true, seq(9)));
        assert_eq!(undo.on_ack(&ack(1, 1), false), Shown::Nothing);
        assert!(undo.withholds_repairs(true, seq(9)) && undo.withholds_repairs(false, seq(10)));
        let duplicate = AckView { duplicate: true, ..ack(0, 1) };
        assert_eq!(undo.on_ack(&duplicate, false), Shown::Needed);
        assert!(!undo.withholds_repairs(true, seq(10)));
    }

    #[test]
    fn a_refill_is_over_when_its_limit_has_reached_the_window() {
        let mut refill = Refill::OFF;
        assert_eq!((refill.is_on(), refill.limit()), (false, ByteCount::MAX));
        refill.set(ByteCount(4_000), ByteCount(5_000));
        assert_eq!((refill.is_on(), refill.limit()), (true, ByteCount(4_000)));
        refill.set(ByteCount(5_000), ByteCount(5_000));
        assert!(!refill.is_on());
    }
}
