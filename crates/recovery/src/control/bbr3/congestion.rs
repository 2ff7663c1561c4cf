//! Congestion in the current round, and the resulting short-term model (draft-ietf-ccwg-bbr, "When
//! not Probing for Bandwidth").

use airtcp_types::{ByteCount, ExtSeq, Rate};

use super::sample::Sample;

/// BBR.Beta.
pub(super) const BETA: f64 = 0.7;
/// The value of a bound that is not set (Infinity).
pub(super) const NO_BOUND: ByteCount = ByteCount::MAX;
const NO_RATE_BOUND: Rate = Rate::from_bits_per_sec(u64::MAX);

/// The short-term model: bounds that hold until the next probe for bandwidth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShortTerm {
    /// BBR.bw_shortterm.
    pub(super) bw: Rate,
    /// BBR.inflight_shortterm.
    pub(super) inflight: ByteCount,
}

impl ShortTerm {
    /// ResetShortTermModel.
    pub(super) const UNBOUNDED: Self = Self { bw: NO_RATE_BOUND, inflight: NO_BOUND };

    /// BBR.bw_shortterm, if it is set.
    pub(super) fn bw(&self) -> Option<Rate> {
        Some(self.bw).filter(|bw| *bw != NO_RATE_BOUND)
    }

    /// Returns the larger value of each bound.
    pub(super) fn max(self, other: Self) -> Self {
        Self { bw: self.bw.max(other.bw), inflight: self.inflight.max(other.inflight) }
    }
}

/// The data delivered, lost and marked in the current loss round.
///
/// A loss round is a round trip that starts with its first loss or mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    /// BBR.bw_latest.
    bw_latest: Rate,
    /// BBR.inflight_latest.
    inflight_latest: ByteCount,
    /// BBR.loss_round_delivered.
    loss_round_delivered: ByteCount,
    /// BBR.loss_round_start: whether this ACK ended a loss round.
    loss_round_start: bool,
    /// BBR.is_loss_in_round.
    is_loss_in_round: bool,
    /// The discontiguous sequence ranges lost in this loss round, and the end of the last one.
    lost_ranges: u32,
    last_lost_end: ExtSeq,
    /// Bytes delivered with a congestion mark in this loss round.
    marked: ByteCount,
    pub(super) short_term: ShortTerm,
}

impl Congestion {
    pub(super) const fn new() -> Self {
        Self {
            bw_latest: Rate::ZERO,
            inflight_latest: ByteCount::ZERO,
            loss_round_delivered: ByteCount::ZERO,
            loss_round_start: false,
            is_loss_in_round: false,
            lost_ranges: 0,
            last_lost_end: ExtSeq(0),
            marked: ByteCount::ZERO,
            short_term: ShortTerm::UNBOUNDED,
        }
    }

    /// ResetCongestionSignals.
    pub(super) const fn reset(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = ByteCount::ZERO;
    }

    /// NoteLoss: records a loss or a mark, at C.delivered.
    pub(super) const fn note(&mut self, delivered: ByteCount) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = delivered;
        }
        self.is_loss_in_round = true;
    }

    /// Counts a lost sequence range, unless it continues the last one.
    pub(super) fn note_lost_range(&mut self, start: ExtSeq, bytes: ByteCount) {
        if self.lost_ranges == 0 || start != self.last_lost_end {
            self.lost_ranges += 1;
        }
        self.last_lost_end = start + bytes;
    }

    /// Counts bytes delivered with a congestion mark.
    pub(super) fn note_marked(&mut self, bytes: ByteCount) {
        self.marked += bytes;
    }

    /// UpdateLatestDeliverySignals.
    pub(super) fn update_latest(&mut self, sample: &Sample) {
        self.bw_latest = self.bw_latest.max(sample.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.loss_round_start = sample.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = sample.total_delivered;
        }
    }

    /// The rest of UpdateCongestionSignals. `adapts` is whether the flow is not probing for
    /// bandwidth; `max_bw` and `cwnd` are the values that the first reduction starts from.
    pub(super) fn end_round(&mut self, adapts: bool, max_bw: Rate, cwnd: ByteCount) {
        if !self.loss_round_start {
            return;
        }
        // AdaptLowerBoundsFromCongestion
        if adapts && self.is_loss_in_round {
            let ShortTerm { bw, inflight } = &mut self.short_term;
            // InitLowerBounds
            *bw = if *bw == NO_RATE_BOUND { max_bw } else { *bw };
            *inflight = if *inflight == NO_BOUND { cwnd } else { *inflight };
            // LossLowerBounds
            *bw = self.bw_latest.max(bw.scale(BETA));
            *inflight = self.inflight_latest.max(inflight.scale(BETA));
        }
        self.is_loss_in_round = false;
    }

    /// AdvanceLatestDeliverySignals: the last step of processing an ACK's sample.
    pub(super) const fn advance_latest(&mut self, sample: &Sample) {
        if self.loss_round_start {
            self.bw_latest = sample.delivery_rate;
            self.inflight_latest = sample.delivered;
            self.lost_ranges = 0;
            self.marked = ByteCount::ZERO;
        }
    }

    pub(super) const fn is_loss_in_round(&self) -> bool {
        self.is_loss_in_round
    }

    /// Discards the losses of the round, because they were spurious.
    pub(super) const fn forget_losses(&mut self) {
        self.is_loss_in_round = false;
        self.lost_ranges = 0;
    }

    pub(super) const fn loss_round_start(&self) -> bool {
        self.loss_round_start
    }

    pub(super) const fn inflight_latest(&self) -> ByteCount {
        self.inflight_latest
    }

    pub(super) const fn lost_ranges(&self) -> u32 {
        self.lost_ranges
    }

    pub(super) const fn marked(&self) -> ByteCount {
        self.marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::bbr3::sample::tests::sample;

    const fn mbit(mbit: u64) -> Rate {
        Rate::from_bits_per_sec(mbit * 1_000_000)
    }

    /// Processes an ACK of a packet that was sent after `prior`, at 5 Mbit/s.
    fn ack(congestion: &mut Congestion, prior: u64, total: u64, adapts: bool) -> bool {
        let sample = Sample {
            delivery_rate: mbit(5),
            delivered: ByteCount(6_000),
            prior_delivered: ByteCount(prior),
            total_delivered: ByteCount(total),
            ..sample()
        };
        congestion.update_latest(&sample);
        congestion.end_round(adapts, mbit(10), ByteCount(20_000));
        congestion.advance_latest(&sample);
        congestion.loss_round_start()
    }

    #[test]
    fn one_round_with_a_loss_reduces_the_bounds_once() {
        let mut congestion = Congestion::new();
        ack(&mut congestion, 0, 1_000, true);
        assert_eq!(congestion.short_term, ShortTerm::UNBOUNDED);
        congestion.note(ByteCount(1_000));
        congestion.note(ByteCount(1_500));
        assert!(!ack(&mut congestion, 500, 2_000, true), "sent before the loss was found");
        assert_eq!(congestion.short_term, ShortTerm::UNBOUNDED);
        assert!(ack(&mut congestion, 1_000, 3_000, true));
        // Seven tenths of the rate and of the window: both exceed the latest values.
        let once = ShortTerm { bw: mbit(7), inflight: ByteCount(14_000) };
        assert_eq!(congestion.short_term, once);
        assert!(ack(&mut congestion, 3_000, 4_000, true));
        assert_eq!(congestion.short_term, once, "a round without a loss");
        for round in [4_000, 5_000, 6_000] {
            congestion.note(ByteCount(round));
            ack(&mut congestion, round, round + 1_000, true);
        }
        let latest = ShortTerm { bw: mbit(5), inflight: ByteCount(6_000) };
        assert_eq!(congestion.short_term, latest, "no less than what is delivered");
    }

    #[test]
    fn a_probe_for_bandwidth_does_not_adapt() {
        let mut congestion = Congestion::new();
        congestion.note(ByteCount::ZERO);
        assert!(ack(&mut congestion, 0, 1_000, false));
        assert_eq!(congestion.short_term, ShortTerm::UNBOUNDED);
        assert!(!congestion.is_loss_in_round());
    }

    #[test]
    fn ranges_that_follow_one_another_are_one() {
        let mut congestion = Congestion::new();
        congestion.note(ByteCount(1_000));
        for start in [1_000, 2_000, 5_000, 6_000, 9_000] {
            congestion.note_lost_range(ExtSeq(start), ByteCount(1_000));
        }
        assert_eq!(congestion.lost_ranges(), 3);
        ack(&mut congestion, 0, 2_000, true);
        assert_eq!(congestion.lost_ranges(), 3, "the round goes on");
        ack(&mut congestion, 1_000, 3_000, true);
        assert_eq!(congestion.lost_ranges(), 0);
    }
}
