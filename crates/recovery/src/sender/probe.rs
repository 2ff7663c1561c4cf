//! Tail loss probes (RFC 8985 section 7): when nothing is heard of the last that was sent, one more
//! segment is, so that its ACK tells what the retransmission timer would have to guess.

use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant, SendRule, SeqRange};

use super::{Core, Sender, Supply};
use crate::board::Board;
use crate::detection::{Certainty, Finding};
use crate::judge::{Cause, When};
use crate::transmission::{Transmission, TxState};
use crate::view::{AckView, Phase};

/// TLP.max_ack_delay: how long the receiver may hold the ACK of a single segment back.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// The time-out before there is a round-trip time (RFC 8985 section 7.2).
const UNMEASURED: Duration = Duration::from_secs(1);

/// Probes of the tail, where the detection has a use for them.
#[derive(Debug)]
pub(super) struct TailProbes {
    are_on: bool,
    /// No RTT was measured since the last probe left, or ever: there may not be another.
    unmeasured: bool,
    probe: Option<Box<Probe>>,
}

/// The probe time-out, and the probe that was sent.
#[derive(Clone, Debug, Default)]
struct Probe {
    at: Option<Instant>,
    /// It ran out, and the probe is the next that leaves.
    due: bool,
    outstanding: Option<Outstanding>,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// TLP.end_seq: SND.NXT when it left.
    end: ExtSeq,
    /// TLP.is_retrans: the transmission that the probe repeats. When the verdict comes, the board
    /// no longer has it.
    repeats: Option<Transmission>,
}

/// A loss that nobody noticed, repaired by a probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repaired {
    lost: Transmission,
    /// SND.NXT when the probe left.
    end: ExtSeq,
}

impl TailProbes {
    /// `unmeasured`: the handshake gave no round-trip time.
    pub(super) const fn new(are_on: bool, unmeasured: bool) -> Self {
        Self { are_on, unmeasured, probe: None }
    }

    /// Another detection has a use for them, or none.
    pub(super) fn restart(&mut self, are_on: bool) {
        (self.are_on, self.probe) = (are_on, None);
    }

    /// What was outstanding is to be sent again, or is in flight again: its probe tells nothing.
    pub(super) fn cancel(&mut self) {
        self.probe = None;
    }

    pub(super) const fn on_rtt_sample(&mut self) {
        self.unmeasured = false;
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.probe.as_ref()?.at
    }

    /// Whether a probe is the next that leaves.
    pub(super) fn is_due(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.due)
    }

    /// Sets or stops the probe time-out, after new data left or an ACK was worked (RFC 8985 section
    /// 7.2). One that is set is set anew only if there was `news`: data that left, or of which the
    /// ACK told for the first time.
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
            // RFC 8985 section 7.3: else probes would keep the time-out from following a path that
            // grew longer.
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
        // It may have a FIN, too.
        let single = board.flight_size() <= core.smss + ByteCount(1);
        let delay = if single { MAX_ACK_DELAY } else { Duration::ZERO };
        let timeout = core.rtt.srtt().map_or(UNMEASURED, |srtt| srtt * 2 + delay);
        let at = core.rto.expires_at().map_or(now + timeout, |rto| rto.min(now + timeout));
        let probe = self.probe.get_or_insert_default();
        (probe.at, probe.due) = (Some(at), false);
    }

    /// Works the probe time-out; gives whether it was due.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        let due = self.probe.as_mut().filter(|probe| probe.at.is_some_and(|at| at <= now));
        due.map(|probe| (probe.at, probe.due) = (None, true)).is_some()
    }

    /// The probe that is due: new data if there is any, else the last segment (RFC 8985 section
    /// 7.3).
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

    /// RFC 8985 section 7.4.2: whether the ACK ends the probe, and whether the probe has repaired a
    /// loss that nobody noticed.
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

    /// Gives memory back that is not in use.
    pub(super) fn shrink(&mut self) {
        let is_in_use =
            |probe: &Probe| probe.at.is_some() || probe.due || probe.outstanding.is_some();
        self.probe = self.probe.take().filter(|probe| is_in_use(probe));
    }
}

impl Sender {
    /// The probe time-out, if it is due, gives the retransmission timer another whole time-out.
    pub(super) fn on_probe_timeout(&mut self, now: Instant) {
        if self.probes.on_timeout(now) {
            self.restart_rto(now);
        }
    }

    /// The probe that is due.
    pub(super) fn take_probe(&mut self, supply: &Supply) -> Option<(SeqRange, SendRule)> {
        if !self.probes.is_due() {
            return None;
        }
        let new_data = self.new_data(supply).ok();
        let probe = self.probes.take(&self.core.board, new_data);
        self.stats.probes += u64::from(probe.is_some());
        probe
    }

    /// Reduces the window for a loss that a probe has repaired, unless a judge says that it need
    /// not be.
    pub(super) fn on_probe_acked(&mut self, ack: &AckView<'_>) {
        let Some(Repaired { lost, end }) = self.probes.on_ack(ack) else { return };
        let found = Finding { tx: lost.tx, certainty: Certainty::Lost, immediate: false };
        let ruling = self.strategies.rule(&self.core, ack.now, (&found, &lost), false);
        // A judge that would wait has had its time: two round trips have passed.
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

    /// A sender that has `count` segments outstanding.
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
    fn it_starts_anew_with_news_alone_and_gives_one_probe() {
        let (core, mut probes) = (core(2), probes());
        probes.schedule(&core, ms(0), true);
        probes.schedule(&core, ms(50), false);
        assert_eq!(probes.next_at(), Some(ms(200)));
        probes.schedule(&core, ms(50), true);
        assert!(!probes.on_timeout(ms(249)) && probes.on_timeout(ms(250)) && probes.is_due());
        let probe = probes.take(&core.board, None);
        assert_eq!(probe, Some((segments(1, 2), SendRule::ProbeAgain)));
        assert_eq!(probes.take(&core.board, None), None);
        // Not another one before a round-trip time was measured.
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
