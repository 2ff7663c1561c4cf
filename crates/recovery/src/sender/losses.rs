//! Response to losses: rulings, recoveries, the retransmission timer.

use std::time::Duration;

use airtcp_types::{ByteCount, EventKind, ExtSeq, Instant, SendRule, TxNo};

use super::prr::Prr;
use super::recovery::{Answer, Recovery};
use super::{Core, Sender};
use crate::board::Board;
use crate::control::{Loss, NoticeKind};
use crate::detection::{Certainty, Finding, Findings};
use crate::judge::{Cause, Raised, Ruling, When};
use crate::transmission::{Delivered, Transmission, TxState};
use crate::view::AckView;

/// A judge that waits for no time at all would be asked for ever at one instant.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

impl Sender {
    /// Has the judges rule on each finding, and does what they say.
    pub(super) fn work_findings(&mut self, now: Instant, findings: &mut Findings) {
        for finding in findings.0.drain(..) {
            self.rule(now, &finding, false);
        }
    }

    /// Does what judges raised of their own accord.
    pub(super) fn work_raised(&mut self, now: Instant, raised: &mut Raised) {
        for (tx, ruling) in raised.losses.drain(..) {
            let finding = Finding { tx, certainty: Certainty::Lost, immediate: false };
            self.carry_out(now, &finding, ruling);
        }
        if let Some(cause) = raised.reduce.take() {
            self.reduce(now, cause, self.snd_una(), None);
        }
        if std::mem::take(&mut raised.restart_rto) {
            self.restart_rto(now);
        }
        if std::mem::take(&mut raised.judge_again) {
            let all = self.core.deferred.take();
            self.rule_again(now, &all);
        }
    }

    /// Judges again what an earlier ruling put off until now.
    pub(super) fn rule_what_is_due(&mut self, now: Instant) {
        let due = self.core.deferred.take_due(now);
        self.rule_again(now, &due);
    }

    /// Judges again what an earlier ruling put off, if it is still missing.
    fn rule_again(&mut self, now: Instant, deferred: &[Finding]) {
        let mut begins = false;
        for finding in deferred {
            begins |= self.rule(now, finding, true);
        }
        if begins {
            // DCR 2.2: a host that is late must not take the end of the wait for a time-out.
            self.restart_rto(now);
            // Further losses of the same window wait no longer.
            for finding in self.core.deferred.take() {
                self.rule(now, &finding, true);
            }
        }
    }

    /// Has judges that know nothing of it rule on what others put off.
    pub(super) fn judge_anew(&mut self, now: Instant, deferred: &[Finding]) {
        for finding in deferred {
            self.rule(now, finding, false);
        }
    }

    /// Forgets what was put off and has arrived with this ACK.
    pub(super) fn forget_delivered(&mut self, newly: &[Delivered]) {
        let Core { board, deferred, .. } = &mut self.core;
        if deferred.is_empty() {
            return;
        }
        for latest in newly.iter().flat_map(Delivered::transmissions) {
            for tx in board.sendings(latest).filter(|tx| !is_missing(board, *tx)) {
                deferred.remove(tx);
            }
        }
        deferred.remove_below(board.oldest_tx());
    }

    /// A hole was filled in time: what else is put off waits with the window of now. Where late
    /// data never ends, the growth of every wait would be held back by the first one for ever.
    pub(super) fn renew_waits(&mut self) {
        let window = self.control_window();
        self.core.deferred.renew(window);
    }

    /// Gives whether a recovery begins.
    fn rule(&mut self, now: Instant, finding: &Finding, again: bool) -> bool {
        if !is_missing(&self.core.board, finding.tx) {
            return false;
        }
        let Some(lost) = self.core.board.get(finding.tx) else { return false };
        let ruling = self.strategies.rule(&self.core, now, (finding, &lost), again);
        match (finding.certainty, ruling) {
            (_, Some(ruling)) => self.carry_out(now, finding, ruling),
            (Certainty::Lost, None) => self.carry_out(now, finding, Ruling::CONGESTION),
            (Certainty::Suspect, None) => false,
        }
    }

    fn carry_out(&mut self, now: Instant, finding: &Finding, ruling: Ruling) -> bool {
        if ruling.repair == When::Now {
            self.mark_lost(now, finding, ruling.cause);
        }
        let lost = self.core.board.get(finding.tx).map(|t| (t.range.start, t.state));
        let from = lost.map_or(self.snd_una(), |(start, _)| start);
        let begins =
            ruling.reduce == When::Now && self.reduce(now, ruling.cause, from, Some(finding.tx));
        if begins && lost.is_some_and(|(_, state)| state == TxState::Lost) {
            // RFC 5681 section 3.2, RFC 6675 section 5 (4.3): whatever the smaller window says, the
            // first repair of a recovery leaves at once.
            self.immediate = Some((finding.tx, SendRule::FastRetransmit));
        }
        let later = [ruling.repair, ruling.reduce].into_iter().filter_map(|when| match when {
            When::After(wait) => Some(now + wait.max(SHORTEST_WAIT)),
            When::Now | When::Never => None,
        });
        if let Some(at) = later.min() {
            self.core.deferred.add(at, *finding, self.control_window());
        }
        begins
    }

    fn mark_lost(&mut self, now: Instant, finding: &Finding, cause: Cause) {
        let Some(lost) = self.core.board.get(finding.tx) else { return };
        if !self.core.board.mark_lost(finding.tx) {
            return;
        }
        self.stats.segments_lost += 1;
        self.stats.segments_lost_at_random += u64::from(cause == Cause::Random);
        self.end_expired_recovery(now);
        let range = lost.range;
        self.events.add(|| EventKind::Lost { tx: finding.tx, range, cause: cause.name() });
        self.notify_lost(now, &lost, cause);
        let waits = self.core.board.get(finding.tx).is_some_and(|t| t.state == TxState::Lost);
        if waits && (self.undo.repairs_at_once(finding.tx) || finding.immediate) {
            self.immediate = Some((finding.tx, SendRule::FastRetransmit));
        }
    }

    /// Counts a loss, and gives the control notice of it.
    pub(super) fn notify_lost(&mut self, now: Instant, lost: &Transmission, cause: Cause) {
        let (bytes, sent) = (lost.range.len(), lost.snapshot);
        self.lost += bytes;
        if cause.is_congestion() {
            self.rate.on_lost(bytes);
        }
        let loss = Loss {
            start: lost.range.start,
            bytes,
            cause,
            sent_at: lost.sent_at,
            tx_in_flight: sent.tx_in_flight,
            prior_delivered: sent.delivered,
            lost_since_sent: self.rate.lost() - sent.lost,
            app_limited: sent.app_limited,
        };
        self.notify(now, NoticeKind::Lost(loss));
    }

    /// Reduces the window for the loss of what begins at `lost`, unless it was reduced in this
    /// recovery; gives whether a recovery begins. Where that was for a mark, losses of the same
    /// window are repaired, and reduce it no second time. `tx` is the transmission that was lost,
    /// if one was.
    pub(super) fn reduce(
        &mut self,
        now: Instant,
        cause: Cause,
        lost: ExtSeq,
        tx: Option<TxNo>,
    ) -> bool {
        let recovery = self.recovery_of_loss(now);
        match self.core.recovery.on_loss(now, lost, recovery) {
            Answer::Begins => return true,
            Answer::Continues => return false,
            Answer::Nothing => {}
        }
        if tx.is_some_and(|tx| self.core.recovery.answers(tx)) {
            // LE 2.2: what left before the reduction belongs to its event of losses, however late
            // it is found. A repair still leaves at once: if the window is full of losses that are
            // not found yet, nothing else would cause an ACK.
            let first = self.core.board.first_lost();
            self.immediate = first.map(|lost| (lost.tx, SendRule::FastRetransmit));
            return false;
        }
        self.watch_for_spurious();
        self.begin_reduction(now, cause, recovery);
        true
    }

    /// The recovery that a loss found now begins.
    pub(super) fn recovery_of_loss(&self, now: Instant) -> Recovery {
        let end = self.strategies.recovery_end(&self.core, now);
        Recovery::of_loss(now, self.core.board.snd_nxt(), end)
    }

    /// Reduces the window for all of a recovery, in the place of one that the clock has ended.
    pub(super) fn begin_reduction(&mut self, now: Instant, cause: Cause, recovery: Recovery) {
        if self.core.recovery.begin(recovery, self.core.board.next_tx()) {
            self.notify(now, NoticeKind::RecoveryOver);
        }
        let flight_size = self.validation.loss_flight_size(self.core.board.flight_size());
        self.stats.reductions += 1;
        self.reduced = true;
        self.events.add(|| EventKind::Reduced { cause: cause.name() });
        let before = self.control_window();
        self.notify(now, NoticeKind::Reduce { flight_size, cause });
        let proportional = self.profile.proportional_rate_reduction
            && !self.strategies.taken_over().recovery
            && self.core.sack
            && self.control_window() < before;
        // RFC 9937 section 6.1: RecoverFS.
        let recover_fs =
            self.core.board.flight_size() - self.core.board.sacked() + self.newly_delivered;
        self.prr = proportional.then(|| Box::new(Prr::new(recover_fs)));
    }

    /// Ends a recovery whose time is over, so that the control takes a loss found now for the first
    /// of a new recovery.
    fn end_expired_recovery(&mut self, now: Instant) {
        if self.core.recovery.is_over(now) {
            self.finish_recovery(now);
        }
    }

    fn finish_recovery(&mut self, now: Instant) {
        self.core.recovery.finish();
        self.undo.end_later(self.core.board.snd_nxt());
        self.notify(now, NoticeKind::RecoveryOver);
    }

    /// Ends the recovery if this ACK does.
    pub(super) fn end_recovery(&mut self, ack: &AckView<'_>) {
        let (advances, is_all_acked) = (ack.acked > ByteCount::ZERO, self.core.board.is_empty());
        if self.core.recovery.on_ack(ack.now, ack.ack, advances, is_all_acked) {
            self.finish_recovery(ack.now);
        }
    }

    /// The retransmission timer ran out (RFC 6298 section 5, RFC 5681 section 3.1). Gives whether
    /// something was outstanding.
    pub(super) fn on_rto(&mut self, now: Instant) -> bool {
        if self.core.board.is_empty() {
            self.core.rto.stop();
            return false;
        }
        self.end_expired_recovery(now);
        let flight_size = self.validation.loss_flight_size(self.core.board.flight_size());
        let first = self.core.rto.timeouts() == 0;
        let point = self.core.board.snd_nxt();
        self.core.rtt.back_off();
        let backoff = self.core.rto.on_timeout();
        self.stats.timeouts += 1;
        self.reduced = true;
        self.events.add(|| EventKind::Timeout { backoff });
        if first {
            self.watch_for_spurious_timeout();
        } else {
            self.undo.stop_f_rto();
        }
        let lost_before = self.core.board.lost();
        let detection = self.strategies.detection();
        let lost = self.core.board.mark_all_lost(|sent| detection.survives_timeout(now, sent));
        self.core.deferred.take();
        self.prr = None;
        self.probes.cancel();
        let bytes = self.core.board.lost() - lost_before;
        self.stats.segments_lost += bytes.0.div_ceil(self.core.smss.0.max(1));
        self.strategies.on_timeout(&self.core, now);
        self.core.recovery.begin(Recovery::of_repeating(point), self.core.board.next_tx());
        for lost in &lost {
            self.notify_lost(now, lost, Cause::Timeout);
        }
        self.notify(now, NoticeKind::Timeout { flight_size, first });
        if let Some(tx) = self.core.board.first_lost().map(|lost| lost.tx) {
            self.immediate = Some((tx, SendRule::Timeout));
        }
        self.restart_rto(now);
        true
    }

    /// The peer's window has opened, which was closed when time-outs sent the oldest segment again.
    /// That segment was thrown away there, and says nothing of the path: it leaves once more at
    /// once, and the time-out is without back-off again. Without a time-out since the last such
    /// word nothing happens.
    pub(super) fn on_window_opened(&mut self, now: Instant) {
        if self.core.rto.timeouts() == 0 || self.core.rtt.backoff() == 0 {
            return;
        }
        self.core.rtt.end_backoff();
        self.restart_rto(now);
        let head = self.core.board.at(self.snd_una()).map(|head| head.tx);
        if let Some(tx) = head.filter(|tx| is_missing(&self.core.board, *tx)) {
            self.core.board.mark_lost(tx);
            self.immediate = Some((tx, SendRule::Timeout));
        }
    }
}

/// Whether the bytes of a transmission have not arrived, as far as is known.
fn is_missing(board: &Board, tx: TxNo) -> bool {
    let latest = board.get(tx).and_then(|t| board.at(t.range.start));
    latest.is_some_and(|latest| latest.state != TxState::Sacked)
}
