//! A board and its views, without a sender.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, SendRule, SeqRange};

use super::{FIRST, RTT, SMSS, ack_view, index, segments, seq};
use crate::board::Board;
use crate::deferred::Deferred;
use crate::rate::Snapshot;
use crate::{
    AckView, Certainty, Finding, Findings, LossDetection, LossJudge, Phase, RtoForm, RttEstimator,
    Ruling, View,
};

/// A [`Board`] that a test fills segment by segment, and the other fields of a [`View`].
///
/// ```
/// use airtcp_recovery::testkit::{RTT, Scene, segments};
/// use airtcp_recovery::{Certainty, detection::Rack};
///
/// let mut scene = Scene::new();
/// scene.send(10);
/// scene.pass(RTT);
/// let mut rack = Rack::default();
/// assert_eq!(scene.detect(&mut rack, 0, &[segments(1, 3)]), [(0, Certainty::Suspect)]);
/// assert_eq!(scene.detect(&mut rack, 0, &[segments(3, 4)]), [(0, Certainty::Lost)]);
/// ```
#[derive(Debug)]
pub struct Scene {
    /// The current time.
    pub now: Instant,
    /// The sender's response to congestion.
    pub phase: Phase,
    /// Whether a recovery is in progress: another loss does not reduce the window again.
    pub in_recovery: bool,
    /// The congestion window.
    pub cwnd: ByteCount,
    /// The slow-start threshold; `None` while it is not set.
    pub ssthresh: Option<ByteCount>,
    /// RTT estimates, with one sample of [`RTT`]; each ACK of data sent once adds one.
    pub rtt: RttEstimator,
    board: Board,
    deferred: Deferred,
    delivered: ByteCount,
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Scene {
    /// A scene with nothing sent, in slow start with a window of 100 segments.
    pub fn new() -> Self {
        let mut rtt = RttEstimator::new(RtoForm::LINUX, false);
        rtt.on_sample(RTT);
        Self {
            now: Instant::ZERO,
            phase: Phase::Open,
            in_recovery: false,
            cwnd: ByteCount(100 * SMSS),
            ssthresh: None,
            rtt,
            board: Board::new(FIRST),
            deferred: Deferred::default(),
            delivered: ByteCount::ZERO,
        }
    }

    /// Returns the board: all outstanding transmissions and their states.
    pub const fn board(&self) -> &Board {
        &self.board
    }

    /// Returns the view of a detection or a judge. The test can change its fields.
    pub fn view(&self) -> View<'_> {
        View {
            now: self.now,
            board: &self.board,
            phase: self.phase,
            in_recovery: self.in_recovery,
            smss: ByteCount(SMSS),
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            slow_start: self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh),
            sack: true,
            dup_thresh: 3,
            rtt: &self.rtt,
            rto_left: (!self.board.is_empty()).then(|| self.rtt.rto()),
            deferred: &self.deferred,
        }
    }

    /// Advances the time.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// Sends the next `count` new segments. If the detection uses
    /// [`on_sent`](LossDetection::on_sent), the test has to call it.
    pub fn send(&mut self, count: u64) {
        for _ in 0..count {
            let next = index(self.board.snd_nxt());
            let (range, snapshot) = (segments(next, next + 1), self.snapshot());
            self.board.send_new(self.now, range, SendRule::NewData, snapshot);
        }
    }

    /// Retransmits a segment.
    pub fn send_again(&mut self, segment: u64) {
        let (size, snapshot) = (ByteCount(SMSS), self.snapshot());
        let sent = self.board.send_again(self.now, seq(segment), size, SendRule::Repair, snapshot);
        assert!(sent.is_some(), "segment {segment} is not on the board");
    }

    /// Marks the latest transmission of a segment lost.
    pub fn lose(&mut self, segment: u64) {
        let latest = self.board.at(seq(segment));
        let is_lost = latest.is_some_and(|latest| self.board.mark_lost(latest.tx));
        assert!(is_lost, "segment {segment} is not in flight");
    }

    /// Processes an ACK of all segments below `upto`, with SACK blocks: updates the board, and
    /// calls `hear` with the views.
    pub fn ack<R>(
        &mut self,
        upto: u64,
        sack: &[SeqRange],
        hear: impl FnOnce(&AckView<'_>, &View<'_>) -> R,
    ) -> R {
        let (una, prior_pipe) = (self.board.snd_una(), self.board.in_flight());
        let outstanding = !self.board.is_empty();
        let mut newly = Vec::new();
        self.board.acknowledge(seq(upto), sack, &mut newly);
        let acked = self.board.snd_una().since(una);
        // Karn: an ACK of data sent twice does not show which transmission arrived.
        let originals = newly.iter().filter(|acked| acked.resent == 0);
        let newest = originals.map(|acked| acked.sent_at).max();
        let rtt = newest.map(|sent_at| self.now.since(sent_at));
        rtt.into_iter().for_each(|rtt| self.rtt.on_sample(rtt));
        let delivered = newly.iter().map(|acked| acked.range.len()).sum();
        self.delivered += delivered;
        let ack = AckView {
            ack: self.board.snd_una(),
            acked,
            delivered,
            newly: &newly,
            sack,
            duplicate: outstanding && acked == ByteCount::ZERO,
            rtt,
            srtt: self.rtt.srtt().unwrap_or_default(),
            delivered_total: self.delivered,
            pipe: self.board.in_flight(),
            prior_pipe,
            phase: self.phase,
            ..ack_view(self.now, ByteCount::ZERO)
        };
        hear(&ack, &self.view())
    }

    /// Returns the findings of a detection on an [ACK](Self::ack), as segment numbers and
    /// certainties.
    pub fn detect(
        &mut self,
        detector: &mut dyn LossDetection,
        upto: u64,
        sack: &[SeqRange],
    ) -> Vec<(u64, Certainty)> {
        let mut found = Findings::default();
        self.ack(upto, sack, |ack, view| detector.on_ack(ack, view, &mut found));
        let segment = |finding: &Finding| {
            let sent = self.board.get(finding.tx).expect("what is found is on the board");
            (index(sent.range.start), finding.certainty)
        };
        found.as_slice().iter().map(segment).collect()
    }

    /// Returns the ruling of a judge on the latest transmission of a segment.
    pub fn rule(
        &self,
        judge: &mut dyn LossJudge,
        segment: u64,
        certainty: Certainty,
    ) -> Option<Ruling> {
        let sent = self.board.at(seq(segment)).expect("the segment is on the board");
        let finding = Finding { tx: sent.tx, certainty, immediate: false };
        judge.rule(&finding, &sent, &self.view(), false)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            delivered: self.delivered,
            tx_in_flight: self.board.in_flight() + ByteCount(SMSS),
            delivered_at: self.now,
            first_sent_at: self.now,
            ..Snapshot::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TxState;

    #[test]
    fn the_board_adds_up_after_every_step() {
        let mut scene = Scene::new();
        let state = |scene: &Scene, segment| scene.board().at(seq(segment)).unwrap().state;
        scene.send(4);
        scene.pass(RTT / 2);
        scene.ack(1, &[segments(3, 4)], |ack, view| {
            assert_eq!((ack.acked, ack.delivered), (ByteCount(SMSS), ByteCount(2 * SMSS)));
            assert_eq!((ack.prior_pipe, ack.pipe), (ByteCount(4 * SMSS), ByteCount(2 * SMSS)));
            assert_eq!((ack.rtt, view.rtt.latest()), (Some(RTT / 2), Some(RTT / 2)));
            assert!(!ack.duplicate);
        });
        assert_eq!(state(&scene, 3), TxState::Sacked);
        scene.lose(1);
        assert_eq!((state(&scene, 1), scene.board().lost()), (TxState::Lost, ByteCount(SMSS)));
        scene.send_again(1);
        assert_eq!(state(&scene, 1), TxState::InFlight);
        // It is not known which transmission of segment 1 arrived.
        scene.ack(2, &[], |ack, _| assert_eq!(ack.rtt, None));
        scene.ack(2, &[], |ack, _| assert!(ack.duplicate));
        scene.board().audit().unwrap();
    }
}
