//! `sack`: the conservative SACK-based loss recovery of RFC 6675.

use airtcp_types::{ByteCount, ExtSeq, SendRule, SeqRange};

use super::{Findings, LossDetection, Repair};
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::transmission::{Transmission, TxState};
use crate::view::{AckView, Phase, View};

pub(crate) const SACK: Entry<dyn LossDetection> = Entry {
    name: "sack",
    parameter: "",
    example: None,
    summary: "conservative loss recovery based on SACK, with DSACK",
    source: "RFC 6675, RFC 2883",
    needs: WireNeeds { sack: true, ..WireNeeds::NONE },
    fallback: Some("newreno"),
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Sack::default()) as _),
};

/// IsLost, Pipe and NextSeg of RFC 6675 on the board.
///
/// As in the RFC, the loss of a retransmission is not detected: the retransmission timer repairs
/// it.
#[derive(Debug, Default)]
pub struct Sack {
    dup_acks: u32,
    /// IsLost was evaluated for all data below.
    examined: ExtSeq,
    recovery: Option<LossRecovery>,
    /// After an undo: SACKs of data below are no evidence of loss, because they were misleading.
    evidence_from: ExtSeq,
}

#[derive(Debug)]
struct LossRecovery {
    point: ExtSeq,
    /// HighRxt: the end of the highest retransmission.
    high_rxt: ExtSeq,
    /// Whether RescueRxt was used.
    rescued: bool,
    /// Whether a lost segment was retransmitted in this recovery. A judge may defer that, and until
    /// then the later rules of NextSeg do not apply.
    repaired: bool,
}

impl Sack {
    /// Returns the sequence number below which IsLost holds for all data not SACKed: above it, more
    /// than (DupThresh - 1) * SMSS bytes or DupThresh separate ranges are SACKed (RFC 6675 section
    /// 4).
    fn lost_below(&self, view: &View<'_>) -> Option<ExtSeq> {
        let mut bytes = ByteCount::ZERO;
        let fresh = |range: &SeqRange| range.end > self.evidence_from;
        for (range, count) in view.board.sacked_ranges().iter().rev().take_while(fresh).zip(1u32..)
        {
            let range = SeqRange::new(range.start.max(self.evidence_from), range.end);
            bytes += range.len();
            if count >= view.dup_thresh || bytes > view.smss * u64::from(view.dup_thresh - 1) {
                return Some(range.start);
            }
        }
        None
    }

    fn report(&mut self, view: &View<'_>, out: &mut Findings) {
        let board = view.board;
        let below = self.lost_below(view);
        if let Some(first) = board.first().filter(|first| first.state == TxState::InFlight)
            && self.recovery.is_none()
            && (self.dup_acks >= view.dup_thresh
                || below.is_some_and(|seq| first.range.start < seq))
        {
            self.recovery = Some(LossRecovery {
                point: board.snd_nxt(),
                high_rxt: board.snd_una(),
                rescued: false,
                repaired: false,
            });
            // RFC 6675 section 5 (4.3): the first retransmission is sent at once.
            out.lost_immediate(first.tx);
            self.examined = first.range.end;
        }
        self.report_below(below, view, out);
    }

    /// Reports the segments for which IsLost newly holds.
    fn report_below(&mut self, below: Option<ExtSeq>, view: &View<'_>, out: &mut Findings) {
        let Some(below) = below.filter(|_| self.recovery.is_some()) else { return };
        let from = self.examined.max(view.board.snd_una());
        for segment in view.board.starting_in(SeqRange::new(from, below)) {
            if segment.state != TxState::InFlight {
                continue;
            }
            match segment.resent {
                0 => out.lost(segment.tx),
                // Retransmitted by rule 3 before IsLost held: only the original leaves the pipe, if
                // it is still in flight. If it is not, for example because a judge ruled on it,
                // there is nothing to report.
                _ => {
                    let original = segment.previous().and_then(|tx| view.board.get(tx));
                    let waits = original.filter(|sent| sent.state == TxState::InFlight);
                    waits.into_iter().for_each(|original| out.lost(original.tx));
                }
            }
        }
        self.examined = from.max(below);
    }

    /// NextSeg rule 3: returns the lowest segment above HighRxt and below the highest SACKed byte
    /// that is neither SACKed nor lost.
    ///
    /// A segment whose response a judge has deferred is not retransmitted by this rule either.
    fn unknown_below_sacked(&self, view: &View<'_>) -> Option<Transmission> {
        let recovery = self.recovery.as_ref()?;
        let board = view.board;
        let sacked = board.sacked_ranges();
        let highest = sacked.last()?.end;
        let from = sacked.next_gap(recovery.high_rxt.max(board.snd_una()));
        let segment = board.at(from).filter(|_| from < highest)?;
        let unknown = segment.state == TxState::InFlight
            && segment.range.start >= recovery.high_rxt
            && !view.is_deferred(segment.tx);
        unknown.then_some(segment)
    }
}

impl LossDetection for Sack {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        if ack.acked > ByteCount::ZERO {
            self.dup_acks = 0;
            if self.recovery.as_ref().is_some_and(|recovery| ack.ack >= recovery.point) {
                self.recovery = None;
            }
        }
        if view.phase == Phase::Loss {
            return;
        }
        // RFC 6675 section 2: with SACK, a duplicate ACK is one that SACKs new data.
        let sacks_new = ack.newly.iter().any(|delivered| !delivered.cumulative);
        if sacks_new && ack.acked == ByteCount::ZERO {
            self.dup_acks = self.dup_acks.saturating_add(1);
            if self.dup_acks == 1 && self.recovery.is_none() {
                view.board.first().into_iter().for_each(|first| out.suspect(first.tx));
            }
        }
        self.report(view, out);
    }

    fn on_sent(&mut self, sent: &Transmission) {
        let Some(recovery) = &mut self.recovery else { return };
        recovery.repaired |= matches!(sent.rule, SendRule::FastRetransmit | SendRule::Repair);
        match sent.rule {
            // RFC 6675 NextSeg rule 4: HighRxt is not updated by the rescue.
            SendRule::Rescue => recovery.rescued = true,
            rule if rule.is_retransmission() => {
                recovery.high_rxt = recovery.high_rxt.max(sent.range.end);
            }
            _ => {}
        }
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        self.dup_acks = 0;
        self.recovery = None;
        self.examined = view.board.snd_nxt();
    }

    fn on_undo(&mut self, view: &View<'_>) {
        let misled_by = view.board.sacked_ranges().last().map(|range| range.end);
        *self = Self { evidence_from: misled_by.unwrap_or_default(), ..Self::default() };
    }

    fn pick(&self, view: &View<'_>, new_data: bool) -> Option<Repair> {
        let board = view.board;
        // NextSeg rule 1.
        if let Some(lost) = board.first_lost() {
            return Some(Repair { tx: lost.tx, rule: SendRule::Repair });
        }
        // Rule 2, new data, is implemented by the sender.
        let recovery = self.recovery.as_ref().filter(|recovery| recovery.repaired && !new_data)?;
        if let Some(segment) = self.unknown_below_sacked(view) {
            return Some(Repair { tx: segment.tx, rule: SendRule::Unsacked });
        }
        // Rule 4.
        let last = board.last()?;
        let wanted = !recovery.rescued && last.state == TxState::InFlight && last.resent == 0;
        (wanted && !view.is_deferred(last.tx))
            .then_some(Repair { tx: last.tx, rule: SendRule::Rescue })
    }
}
