//! Tail loss probes (RFC 8985 section 7): when nothing is heard of the last that was sent, one more
//! segment is, so that its ACK tells what the retransmission timer would have to guess.

use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant, SendRule, SeqRange};

use super::{Sender, Supply};
use crate::detection::{Certainty, Finding};
use crate::judge::{Cause, When};
use crate::transmission::{Transmission, TxState};
use crate::view::{AckView, Phase};

/// TLP.max_ack_delay: how long the receiver may hold the ACK of a single segment back.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// The time-out before there is a round-trip time (RFC 8985 section 7.2).
const UNMEASURED: Duration = Duration::from_secs(1);

/// The probe time-out, and the probe that was sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Probe {
    pub(super) at: Option<Instant>,
    /// It ran out, and the probe is the next that leaves.
    due: bool,
    outstanding: Option<Outstanding>,
}

impl Probe {
    pub(super) fn is_in_use(&self) -> bool {
        self.at.is_some() || self.due || self.outstanding.is_some()
    }
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// TLP.end_seq: SND.NXT when it left.
    end: ExtSeq,
    /// TLP.is_retrans: the transmission that the probe repeats. When the verdict comes, the board
    /// no longer has it.
    repeats: Option<Transmission>,
}

impl Sender {
    /// Sets or stops the probe time-out, after new data left or an ACK was worked (RFC 8985 section 7.2). One that is set
    /// is set anew only if there was `news`: data that left, or of which the ACK told for the first time.
    pub(super) fn schedule_probe(&mut self, now: Instant, news: bool) {
        if !self.probes {
            return;
        }
        let board = &self.core.board;
        let outstanding = self.probe.as_ref().is_some_and(|probe| probe.outstanding.is_some());
        let wanted = !board.is_empty()
            && board.sacked() == ByteCount::ZERO
            && board.lost() == ByteCount::ZERO
            && matches!(self.core.phase(), Phase::Open | Phase::Cwr)
            // RFC 8985 section 7.3: else probes would keep the time-out from following a path that grew longer.
            && !self.unmeasured_probe
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
        let single = board.flight_size() <= self.core.smss + ByteCount(1);
        let delay = if single { MAX_ACK_DELAY } else { Duration::ZERO };
        let timeout = self.core.rtt.srtt().map_or(UNMEASURED, |srtt| srtt * 2 + delay);
        let at = self.core.rto_at.map_or(now + timeout, |rto| rto.min(now + timeout));
        let probe = self.probe.get_or_insert_default();
        (probe.at, probe.due) = (Some(at), false);
    }

    /// The probe time-out, if it is due, gives the retransmission timer another whole time-out.
    pub(super) fn on_probe_timeout(&mut self, now: Instant) {
        if let Some(probe) =
            self.probe.as_mut().filter(|probe| probe.at.is_some_and(|at| at <= now))
        {
            (probe.at, probe.due) = (None, true);
            self.restart_rto(now);
        }
    }

    pub(super) fn is_probe_due(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.due)
    }

    /// The probe that is due: new data if there is any, else the last segment (RFC 8985 section 7.3).
    pub(super) fn take_probe(&mut self, supply: &Supply) -> Option<(SeqRange, SendRule)> {
        let probe = self.probe.as_mut().filter(|probe| probe.due)?;
        probe.due = false;
        let new_data = self.new_data(supply).ok();
        let last = self.core.board.last().filter(|last| last.state == TxState::InFlight);
        let (range, repeats) = match (new_data, last) {
            (Some(range), _) => (range, None),
            (None, Some(last)) => (last.range, Some(last)),
            (None, None) => return None,
        };
        let end = self.core.board.snd_nxt().max(range.end);
        if let Some(probe) = &mut self.probe {
            probe.outstanding = Some(Outstanding { end, repeats });
        }
        self.stats.probes += 1;
        self.unmeasured_probe = true;
        let rule = if repeats.is_some() { SendRule::ProbeAgain } else { SendRule::Probe };
        Some((range, rule))
    }

    /// RFC 8985 section 7.4.2: whether the ACK ends the probe's episode, and whether the probe has
    /// repaired a loss that nobody noticed.
    pub(super) fn on_probe_acked(&mut self, ack: &AckView<'_>) {
        let Some(probe) = &mut self.probe else { return };
        let Some(sent) = probe.outstanding.filter(|sent| ack.ack >= sent.end) else { return };
        let Some(lost) = sent.repeats else {
            probe.outstanding = None;
            return;
        };
        let both_arrived = ack.dsack.is_some_and(|dsack| dsack.end == sent.end);
        let repaired_one = !both_arrived && ack.ack > sent.end;
        if both_arrived || repaired_one || (ack.duplicate && ack.sack.is_empty()) {
            probe.outstanding = None;
        }
        if repaired_one {
            let found = Finding { tx: lost.tx, certainty: Certainty::Lost, immediate: false };
            let ruling = self.ask_judges(ack.now, &found, &lost, false);
            // A judge that would wait has had its time: two round trips have passed.
            if ruling.is_none_or(|ruling| ruling.reduce != When::Never) {
                let cause = ruling.map_or(Cause::Congestion, |ruling| ruling.cause);
                self.reduce(ack.now, cause, sent.end - 1);
            }
        }
    }
}
