//! Response to losses: rulings, recoveries and the retransmission timer.

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

/// The shortest deferral: with a deferral of zero, a judge would be asked endlessly at one instant.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

impl Sender {
    /// Asks the judges for a ruling on each finding, and applies it.
    pub(super) fn work_findings(&mut self, now: Instant, findings: &mut Findings) {
        for finding in findings.0.drain(..) {
            self.rule(now, &finding, false);
        }
    }

    /// Applies the losses and requests that judges raised themselves.
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

    /// Asks the judges again about the deferred findings that are due.
    pub(super) fn rule_what_is_due(&mut self, now: Instant) {
        let due = self.core.deferred.take_due(now);
        self.rule_again(now, &due);
    }

    /// Asks the judges again about deferred findings whose data is still missing.
    fn rule_again(&mut self, now: Instant, deferred: &[Finding]) {
        let mut begins = false;
        for finding in deferred {
            begins |= self.rule(now, finding, true);
        }
        if begins {
            // DCR 2.2: if the host runs its timers late, the end of the wait must not cause a
            // time-out.
            self.restart_rto(now);
            // Further losses of the same window are no longer deferred.
            for finding in self.core.deferred.take() {
                self.rule(now, &finding, true);
            }
        }
    }

    /// Asks new judges about findings that the previous judges deferred.
    pub(super) fn judge_again(&mut self, now: Instant, deferred: &[Finding]) {
        for finding in deferred {
            self.rule(now, finding, false);
        }
    }

    /// Discards deferred findings whose data this ACK delivers.
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

    /// Renews the bound of cwnd for the remaining deferred findings, because a hole was filled in
    /// time. Otherwise, with continuous reordering, the first wait would limit the window forever.
    pub(super) fn renew_waits(&mut self) {
        let window = self.control_window();
        self.core.deferred.renew(window);
    }

    /// Asks the judges about a finding and applies the ruling; returns whether a recovery starts.
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
            // RFC 5681 section 3.2, RFC 6675 section 5 (4.3): the first retransmission of a
            // recovery is sent at once, even if the reduced window does not permit it.
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

    /// Counts a loss and notifies the control.
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

    /// Reduces the window for a loss at `lost`, unless it was already reduced in this recovery;
    /// returns whether a recovery starts. After a reduction for a mark, losses of the same window
    /// start a recovery without another reduction. `tx` is the lost transmission, if there is one.
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
            // LE 2.2: a transmission sent before the reduction belongs to that loss event, however
            // late its loss is found. One segment is still retransmitted at once: if the window is
            // full of losses that are not found yet, nothing else would trigger an ACK.
            let first = self.core.board.first_lost();
            self.immediate = first.map(|lost| (lost.tx, SendRule::FastRetransmit));
            return false;
        }
        self.watch_for_spurious();
        self.begin_reduction(now, cause, recovery);
        true
    }

    /// Returns the recovery that a loss found now would start.
    pub(super) fn recovery_of_loss(&self, now: Instant) -> Recovery {
        let end = self.strategies.recovery_end(&self.core, now);
        Recovery::of_loss(now, self.core.board.snd_nxt(), end)
    }

    /// Reduces the window and starts `recovery`, which replaces a recovery whose time is over.
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

    /// Ends a recovery whose time is over, so that the control sees a loss found now as the first
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

    /// Ends the recovery if this ACK reaches its end.
    pub(super) fn end_recovery(&mut self, ack: &AckView<'_>) {
        let (advances, is_all_acked) = (ack.acked > ByteCount::ZERO, self.core.board.is_empty());
        if self.core.recovery.on_ack(ack.now, ack.ack, advances, is_all_acked) {
            self.finish_recovery(ack.now);
        }
    }

    /// Handles the expiry of the retransmission timer (RFC 6298 section 5, RFC 5681 section 3.1).
    /// Returns whether data was outstanding.
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

    /// Handles the opening of the peer's window after it was closed while time-outs retransmitted
    /// the oldest segment. The peer dropped that segment for lack of room, which says nothing about
    /// the path: it is retransmitted at once, and the back-off ends. Does nothing without a
    /// time-out since SND.UNA last advanced, or without back-off.
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

/// Returns whether the bytes of a transmission are missing, as far as is known.
fn is_missing(board: &Board, tx: TxNo) -> bool {
    let latest = board.get(tx).and_then(|t| board.at(t.range.start));
    latest.is_some_and(|latest| latest.state != TxState::Sacked)
}
