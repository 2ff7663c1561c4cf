//! The detection of ns-2's SACK sender (`tcp-sack1.cc`), which ns-2 profiles use instead of `sack`.
//!
//! It is older than RFC 6675, and its pipe counts events. On the third duplicate ACK, the pipe is
//! the outstanding data minus three segments. From then on each ACK subtracts one segment, an ACK
//! that advances SND.UNA subtracts two, and each transmission except the first retransmission adds
//! one. Lost segments are never subtracted. The behaviour after a time-out is not ns-2's, which
//! forgets all SACKs and retransmits data that has arrived.

use airtcp_types::{ByteCount, ExtSeq, SendRule, SeqRange};

use super::{Findings, LossDetection};
use crate::board::Board;
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::transmission::{Transmission, TxState};
use crate::view::{AckView, Phase, View};

/// ns-2's SACK sender, which the ns-2 profiles use instead of `sack`. It is not in the registry.
pub const SACK1: Entry<dyn LossDetection> = Entry {
    name: "sack1",
    parameter: "",
    example: None,
    summary: "SACK with the pipe of ns-2, which counts lost segments as in flight",
    source: "ns-2, tcp-sack1.cc",
    needs: WireNeeds { sack: true, ..WireNeeds::NONE },
    fallback: Some("newreno"),
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Sack1::default()) as _),
};

const DUP_THRESH: u64 = 3;

#[derive(Debug, Default)]
struct Sack1 {
    dup_acks: u64,
    smss: ByteCount,
    recovery: Option<FastRecovery>,
    /// The holes below were reported, each once.
    examined: ExtSeq,
    /// After a time-out, nothing sent before it is in flight, whether it arrived or not.
    going_back: bool,
}

#[derive(Debug)]
struct FastRecovery {
    point: ExtSeq,
    pipe: ByteCount,
}

impl Sack1 {
    fn new(view: &View<'_>) -> Self {
        Self { smss: view.smss, ..Self::default() }
    }

    fn on_duplicate(&mut self, view: &View<'_>, out: &mut Findings) {
        self.dup_acks += 1;
        let board = view.board;
        if let Some(first) = board.first().filter(|_| self.dup_acks == DUP_THRESH) {
            let pipe = board.flight_size() - view.smss * DUP_THRESH;
            self.recovery = Some(FastRecovery { point: board.snd_nxt(), pipe });
            out.lost_immediate(first.tx);
            self.examined = self.examined.max(first.range.end);
        }
    }

    /// Reports every hole below the highest SACKed range, once.
    fn report_holes(&mut self, view: &View<'_>, out: &mut Findings) {
        let board = view.board;
        let Some(highest) = board.sacked_ranges().last() else { return };
        let from = self.examined.max(board.snd_una());
        if from >= highest.start {
            return;
        }
        for segment in board.starting_in(SeqRange::new(from, highest.start)) {
            if segment.state == TxState::InFlight && segment.resent == 0 {
                out.lost(segment.tx);
            }
        }
        self.examined = highest.start;
    }
}

impl LossDetection for Sack1 {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        self.smss = view.smss;
        let advances = ack.acked > ByteCount::ZERO;
        let reports = advances || ack.duplicate || ack.delivered > ByteCount::ZERO;
        if let Some(recovery) = self.recovery.as_mut().filter(|_| reports) {
            recovery.pipe -= view.smss * if advances { 2 } else { 1 };
        }
        self.recovery.take_if(|recovery| ack.ack >= recovery.point);
        if advances {
            self.dup_acks = 0;
        }
        self.going_back &= view.phase == Phase::Loss;
        if self.going_back {
            return;
        }
        let sacks_new = ack.newly.iter().any(|delivered| !delivered.cumulative);
        if self.recovery.is_none() && sacks_new && !advances {
            self.on_duplicate(view, out);
        }
        if self.recovery.is_some() {
            self.report_holes(view, out);
        }
    }

    fn on_sent(&mut self, sent: &Transmission) {
        if let Some(recovery) = &mut self.recovery
            && sent.rule != SendRule::FastRetransmit
        {
            recovery.pipe += self.smss;
        }
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        *self = Self { going_back: true, ..Self::new(view) };
    }

    fn on_undo(&mut self, view: &View<'_>) {
        *self = Self::new(view);
    }

    fn pipe(&self, board: &Board) -> ByteCount {
        match &self.recovery {
            Some(recovery) => recovery.pipe,
            None if self.going_back => board.in_flight(),
            // Each duplicate ACK permits one segment (RFC 3042), as with ns-2's `singledup_`.
            None => board.in_flight() + board.sacked() - self.smss * self.dup_acks,
        }
    }
}
