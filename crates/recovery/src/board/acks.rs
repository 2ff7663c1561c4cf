//! Processing of the cumulative acknowledgement and SACK blocks.

use airtcp_types::{ExtSeq, SeqRange, TxNo};

use crate::run::Run;
use crate::transmission::{Delivered, TxState};

use super::{Board, Segment};

impl Board {
    /// Processes the cumulative acknowledgement and the SACK blocks; appends the newly acknowledged
    /// data to `delivered`.
    ///
    /// `ack` lies between SND.UNA and SND.NXT, blocks lie between `ack` and SND.NXT.
    pub(crate) fn acknowledge(
        &mut self,
        ack: ExtSeq,
        blocks: &[SeqRange],
        delivered: &mut Vec<Delivered>,
    ) {
        self.acknowledge_below(ack.min(self.snd_nxt), delivered);
        for block in blocks {
            let clipped = SeqRange::new(block.start.max(self.snd_una), block.end.min(self.snd_nxt));
            self.acknowledge_block(clipped, delivered);
        }
    }

    fn acknowledge_below(&mut self, ack: ExtSeq, delivered: &mut Vec<Delivered>) {
        if ack <= self.snd_una {
            return;
        }
        self.snd_una = ack;
        self.acknowledge_segments(ack, delivered);
        self.acknowledge_runs(ack, delivered);
        if self.runs.front().is_some_and(|run| run.first().range.start < ack) {
            // The ACK ends inside the run.
            self.spell_out(ack);
            self.acknowledge_segments(ack, delivered);
        }
        self.sacked.remove_below(ack);
        // If the ACK ends inside a segment, the rest of the segment may already be SACKed.
        self.settle_if_sacked(0, delivered);
    }

    fn acknowledge_segments(&mut self, ack: ExtSeq, delivered: &mut Vec<Delivered>) {
        while let Some(&segment) = self.segments.front() {
            if segment.range.start >= ack {
                break;
            }
            let acked = SeqRange::new(segment.range.start, segment.range.end.min(ack));
            self.report(segment.latest, acked, true, delivered);
            self.trim_chain(segment.latest, ack);
            if segment.range.end <= ack {
                self.segments.pop_front();
            } else if let Some(front) = self.segments.front_mut() {
                front.range.start = ack;
            }
        }
        let done = self.transmissions.iter().take_while(|t| t.state == TxState::Acked).count();
        self.transmissions.drain(..done);
        self.base.0 += done as u64;
    }

    fn acknowledge_runs(&mut self, ack: ExtSeq, delivered: &mut Vec<Delivered>) {
        while let Some(acked) = self.runs.front_mut().and_then(|run| run.acknowledge(ack)) {
            self.base = TxNo(acked.tx.0 + 1);
            self.in_flight_bytes -= acked.range.len();
            delivered.push(acked);
            if self.runs.front().is_some_and(Run::is_empty) {
                self.runs.pop_front();
            }
        }
    }

    fn acknowledge_block(&mut self, block: SeqRange, delivered: &mut Vec<Delivered>) {
        if block.is_empty() {
            return;
        }
        // Almost always there is only one part, which needs no allocation.
        let (mut fresh, mut others) = (None, Vec::new());
        self.sacked.insert_with(block, |part| match fresh {
            None => fresh = Some(part),
            Some(_) => others.push(part),
        });
        self.spell_out(block.end);
        for part in fresh.into_iter().chain(others) {
            // A part may complete a segment that starts below it or ends above it.
            let from = self.index_of(part.start).unwrap_or(self.segments.len());
            let starts_in = |segment: &Segment| segment.range.start < part.end;
            for index in from..self.segments.len() {
                if !self.segments.get(index).is_some_and(starts_in) {
                    break;
                }
                self.settle_if_sacked(index, delivered);
            }
        }
    }

    fn settle_if_sacked(&mut self, index: usize, delivered: &mut Vec<Delivered>) {
        let covered = |segment: &&Segment| self.sacked.covers(segment.range);
        if let Some(&segment) = self.segments.get(index).filter(covered) {
            self.report(segment.latest, segment.range, false, delivered);
            self.settle_sacked(segment.latest);
        }
    }

    fn report(&self, tx: TxNo, range: SeqRange, cumulative: bool, delivered: &mut Vec<Delivered>) {
        if let Some(t) = self.spelled(tx).filter(|t| t.state != TxState::Sacked) {
            delivered.push(t.delivered(range, cumulative));
        }
    }

    /// Marks the latest transmission SACKed and the earlier ones superseded.
    fn settle_sacked(&mut self, latest: TxNo) {
        self.set_state(latest, TxState::Sacked);
        let mut next = self.spelled(latest).and_then(|t| t.previous);
        while let Some(tx) = next {
            next = self.spelled(tx).and_then(|t| t.previous);
            self.set_state(tx, TxState::Superseded);
        }
    }
}
