//! Tail loss probes (RFC 8985 section 7): if no ACK arrives for the last data sent, send one more
//! segment. Its ACK shows a loss before the retransmission timer expires.

use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant, SendRule, SeqRange};

use super::{Core, Sender, Supply};
use crate::board::Board;
use crate::detection::{Certainty, Finding};
use crate::judge::{Cause, When};
use crate::transmission::{Transmission, TxState};
use crate::view::{AckView, Phase};

/// TLP.max_ack_delay: how long the receiver may delay the ACK of a single segment.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// The probe time-out without an RTT sample (RFC 8985 section 7.2).
const UNMEASURED: Duration = Duration::from_secs(1);

/// The state of tail loss probes, if the detection uses them.
#[derive(Debug)]
pub(super) struct TailProbes {
    are_on: bool,
    /// Whether no RTT was sampled since the last probe, or ever. If so, no probe may be sent.
    unmeasured: bool,
    probe: Option<Box<Probe>>,
}

/// The probe timer, and the last probe sent.
#[derive(Clone, Debug, Default)]
struct Probe {
    at: Option<Instant>,
    /// Whether the timer has expired and the probe is the next segment to send.
    due: bool,
    outstanding: Option<Outstanding>,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// TLP.end_seq: SND.NXT when the probe was sent.
    end: ExtSeq,
    /// TLP.is_retrans: the transmission that the probe repeats. A copy, because the board no longer
    /// has it when the probe is acknowledged.
    repeats: Option<Transmission>,
}

/// A loss that only the probe repaired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repaired {
    lost: Transmission,
    /// SND.NXT when the probe was sent.
    end: ExtSeq,
}

impl TailProbes {
    /// `unmeasured` is whether the handshake gave no RTT sample.
    pub(super) const fn new(are_on: bool, unmeasured: bool) -> Self {
        Self { are_on, unmeasured, probe: None }
    }

    /// Discards the state; `are_on` is whether the new detection uses probes.
    pub(super) fn restart(&mut self, are_on: bool) {
        (self.are_on, self.probe) = (are_on, None);
    }

    /// Cancels the probe: the outstanding data is retransmitted, or is in flight again after an
    /// undo.
    pub(super) fn cancel(&mut self) {
        self.probe = None;
    }

    pub(super) const fn on_rtt_sample(&mut self) {
        self.unmeasured = false;
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.probe.as_ref()?.at
    }

    /// Returns whether a probe is the next segment to send.
    pub(super) fn is_due(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.due)
    }

    /// Sets or stops the probe timer after new data was sent or an ACK was processed (RFC 8985
    /// section 7.2). A running timer is restarted only if there is `news`: new data was sent, or
    /// the ACK delivered data.
    pub(super) fn schedule(&mut self, core: &Core, now: Instant, news: bool) {
        if !self.are_on {
            return;
        }
        let board = &core.board;
        let outstanding = self.probe.as_ref().is_some_and(|probe| probe.outstanding.is_some());
        let wanted = !board.is_empty()
            && board.sacked() == ByteCount::ZERO
            && board.lost() == ByteCount::ZERO
            && matches!(core.phase(), Phase::Open | Phase::Cwr)
            // RFC 8985 section 7.3: otherwise probes would keep the time-out from adapting to a
            // longer RTT.
            && !self.unmeasured
            && !outstanding;
        if !wanted {
            if let Some(probe) = &mut self.probe {
                (probe.at, probe.due) = (None, false);
            }
            return;
        }
        if !news && self.probe.as_ref().is_some_and(|probe| probe.at.is_some() || probe.due) {
            return;
        }
        // The segment may also carry a FIN.
        let single = board.flight_size() <= core.smss + ByteCount(1);
        let delay = if single { MAX_ACK_DELAY } else { Duration::ZERO };
        let timeout = core.rtt.srtt().map_or(UNMEASURED, |srtt| srtt * 2 + delay);
        let at = core.rto.expires_at().map_or(now + timeout, |rto| rto.min(now + timeout));
        let probe = self.probe.get_or_insert_default();
        (probe.at, probe.due) = (Some(at), false);
    }

    /// Handles the expiry of the probe timer; returns whether it was due.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        let due = self.probe.as_mut().filter(|probe| probe.at.is_some_and(|at| at <= now));
        due.map(|probe| (probe.at, probe.due) = (None, true)).is_some()
    }

    /// Returns the probe that is due: new data if there is any, otherwise the last segment (RFC
    /// 8985 section 7.3).
    fn take(&mut self, board: &Board, new_data: Option<SeqRange>) -> Option<(SeqRange, SendRule)> {
        let probe = self.probe.as_mut().filter(|probe| probe.due)?;
        probe.due = false;
        let last = board.last().filter(|last| last.state == TxState::InFlight);
        let (range, repeats) = match (new_data, last) {
            (Some(range), _) => (range, None),
            (None, Some(last)) => (last.range, Some(last)),
            (None, None) => return None,
        };
        let end = board.snd_nxt().max(range.end);
        probe.outstanding = Some(Outstanding { end, repeats });
        self.unmeasured = true;
        let rule = if repeats.is_some() { SendRule::ProbeAgain } else { SendRule::Probe };
        Some((range, rule))
    }

    /// RFC 8985 section 7.4.2: handles an ACK, which may end the probe; returns the loss that the
    /// probe repaired, if it repaired one.
    fn on_ack(&mut self, ack: &AckView<'_>) -> Option<Repaired> {
        let probe = self.probe.as_mut()?;
        let sent = probe.outstanding.filter(|sent| ack.ack >= sent.end)?;
        let Some(lost) = sent.repeats else {
            probe.outstanding = None;
            return None;
        };
        let both_arrived = ack.dsack.is_some_and(|dsack| dsack.end == sent.end);
        let repaired_one = !both_arrived && ack.ack > sent.end;
        if both_arrived || repaired_one || (ack.duplicate && ack.sack.is_empty()) {
            probe.outstanding = None;
        }
        repaired_one.then_some(Repaired { lost, end: sent.end })
    }

    /// Frees memory that is not in use.
    pub(super) fn shrink(&mut self) {
        let is_in_use =
            |probe: &Probe| probe.at.is_some() || probe.due || probe.outstanding.is_some();
        self.probe = self.probe.take().filter(|probe| is_in_use(probe));
    }
}

impl Sender {
    /// Handles the expiry of the probe timer, which restarts the retransmission timer.
    pub(super) fn on_probe_timeout(&mut self, now: Instant) {
        if self.probes.on_timeout(now) {
            self.restart_rto(now);
        }
    }

    /// Returns the probe that is due.
    pub(super) fn take_probe(&mut self, supply: &Supply) -> Option<(SeqRange, SendRule)> {
        if !self.probes.is_due() {
            return None;
        }
        let new_data = self.new_data(supply).ok();
        let probe = self.probes.take(&self.core.board, new_data);
        self.stats.probes += u64::from(probe.is_some());
        probe
    }

    /// Reduces the window for a loss that a probe has repaired, unless a judge rules against it.
    pub(super) fn on_probe_acked(&mut self, ack: &AckView<'_>) {
        let Some(Repaired { lost, end }) = self.probes.on_ack(ack) else { return };
        let found = Finding { tx: lost.tx, certainty: Certainty::Lost, immediate: false };
        let ruling = self.strategies.rule(&self.core, ack.now, (&found, &lost), false);
        // A ruling that defers the reduction reduces it now: two round trips have already passed.
        if ruling.is_none_or(|ruling| ruling.reduce != When::Never) {
            let cause = ruling.map_or(Cause::Congestion, |ruling| ruling.cause);
            self.reduce(ack.now, cause, end - 1, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::rate::Snapshot;
    use crate::rtt::RttEstimator;
    use crate::testkit::{FIRST, RTT, SMSS, ack_view, ms, segments, seq};

    /// A core with `count` segments outstanding.
    fn core(count: u64) -> Core {
        let mut rtt = RttEstimator::new(Profile::modern().rto, false);
        rtt.on_sample(RTT);
        let mut core = Core::new(FIRST, ByteCount(SMSS), rtt, true, 3);
        for index in 0..count {
            let range = segments(index, index + 1);
            core.board.send_new(ms(0), range, SendRule::NewData, Snapshot::default());
        }
        core
    }

    fn probes() -> TailProbes {
        TailProbes::new(true, false)
    }

    #[test]
    fn the_time_out_is_two_round_trips_and_the_receivers_delay_for_a_single_segment() {
        for (count, at) in [(0, None), (1, Some(ms(400))), (2, Some(ms(200)))] {
            let mut probes = probes();
            probes.schedule(&core(count), ms(0), true);
            assert_eq!(probes.next_at(), at, "{count}");
        }
        let mut off = TailProbes::new(false, false);
        off.schedule(&core(2), ms(0), true);
        assert_eq!(off.next_at(), None);
    }

    #[test]
    fn the_probe_timer_restarts_on_news_only_and_gives_one_probe() {
        let (core, mut probes) = (core(2), probes());
        probes.schedule(&core, ms(0), true);
        probes.schedule(&core, ms(50), false);
        assert_eq!(probes.next_at(), Some(ms(200)));
        probes.schedule(&core, ms(50), true);
        assert!(!probes.on_timeout(ms(249)) && probes.on_timeout(ms(250)) && probes.is_due());
        let probe = probes.take(&core.board, None);
        assert_eq!(probe, Some((segments(1, 2), SendRule::ProbeAgain)));
        assert_eq!(probes.take(&core.board, None), None);
        // No second probe without an RTT sample.
        probes.schedule(&core, ms(260), true);
        assert_eq!(probes.next_at(), None);
    }

    #[test]
    fn an_ack_beyond_the_probe_shows_a_loss_and_a_report_of_its_duplicate_none() {
        let ack = AckView { ack: seq(3), ..ack_view(ms(300), ByteCount(SMSS)) };
        let reported = AckView { dsack: Some(segments(1, 2)), ack: seq(2), ..ack };
        for (ack, repairs) in [(ack, true), (reported, false)] {
            let (core, mut probes) = (core(2), probes());
            probes.schedule(&core, ms(0), true);
            probes.on_timeout(ms(200));
            probes.take(&core.board, None);
            assert_eq!(probes.on_ack(&ack).is_some(), repairs);
            assert!(probes.on_ack(&ack).is_none());
            probes.shrink();
            assert!(probes.probe.is_none());
        }
    }
}
