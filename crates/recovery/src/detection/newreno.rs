//! `newreno`: a partial ACK shows the next loss of the window (RFC 6582).

use airtcp_types::{ByteCount, ExtSeq};

use super::reno::DupAcks;
use super::{Findings, LossDetection};
use crate::board::Board;
use crate::registry::{Entry, TakesOver, WireNeeds};
use crate::view::{AckView, Phase, View};

pub(crate) const NEWRENO: Entry<dyn LossDetection> = Entry {
    name: "newreno",
    parameter: "[:slow]",
    example: Some("slow"),
    summary: "retransmits one segment per partial ACK; `slow` restarts the timer on each of them",
    source: "RFC 6582",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| match parameter {
        None => Ok(Box::new(NewReno::new(false))),
        Some("slow") => Ok(Box::new(NewReno::new(true))),
        Some(_) => Err("it takes `slow` or nothing, as in `newreno:slow`".to_owned()),
    },
};

/// Detects one loss per round trip, without SACK.
#[derive(Debug, Default)]
pub struct NewReno {
    dup_acks: DupAcks,
    /// The recovery point of the current fast recovery.
    recovering_to: Option<ExtSeq>,
    /// Duplicate ACKs up to here do not start another recovery (RFC 6582 section 3.2 step 1).
    recover: Option<ExtSeq>,
    /// RFC 6582 section 4: restart the timer on every partial ACK ("slow but steady"), not only on
    /// the first ("impatient").
    slow_but_steady: bool,
    partial_acks: u32,
}

impl NewReno {
    /// Returns the slow but steady variant, or the impatient one.
    pub fn new(slow_but_steady: bool) -> Self {
        Self { slow_but_steady, ..Self::default() }
    }

    fn on_advance(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        self.recover = self.recover.filter(|recover| ack.ack <= *recover);
        self.dup_acks.on_advance(ack.ack);
        match self.recovering_to {
            Some(point) if ack.ack < point => {
                self.partial_acks += 1;
                self.dup_acks.on_partial_ack(ack.acked, view.smss);
                if let Some(first) = view.board.first() {
                    out.lost_immediate(first.tx);
                }
            }
            _ => {
                self.recovering_to = None;
                self.partial_acks = 0;
                self.dup_acks.clear();
            }
        }
    }
}

impl LossDetection for NewReno {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Findings) {
        if ack.acked > ByteCount::ZERO {
            self.on_advance(ack, view, out);
        }
        if !ack.duplicate || view.phase == Phase::Loss {
            return;
        }
        let Some(first) = view.board.first() else { return };
        if self.recovering_to.is_some() {
            self.dup_acks.count_one(view);
            return;
        }
        if self.recover.is_some() || self.dup_acks.are_echoes() {
            return;
        }
        match self.dup_acks.count_one(view) {
            _ if self.dup_acks.is_repaired(&first) => {}
            count if count == view.dup_thresh => {
                let point = view.board.snd_nxt();
                (self.recovering_to, self.recover) = (Some(point), Some(point));
                out.lost_immediate(first.tx);
            }
            1 => out.suspect(first.tx),
            _ => {}
        }
    }

    fn on_timeout(&mut self, view: &View<'_>) {
        // RFC 6582 section 3.2 step 4.
        self.dup_acks.on_timeout(view.board.snd_nxt());
        (self.recovering_to, self.recover) = (None, None);
        self.partial_acks = 0;
    }

    fn on_undo(&mut self, view: &View<'_>) {
        let dup_acks = DupAcks::begin(view.board);
        *self = Self { dup_acks, ..Self::new(self.slow_but_steady) };
    }

    fn pipe(&self, board: &Board) -> ByteCount {
        self.dup_acks.pipe(board)
    }

    fn restarts_rto(&self) -> bool {
        self.slow_but_steady || self.partial_acks <= 1
    }
}
