//! Processing of an ACK, in the order documented at `LossDetection`.

use airtcp_types::{ByteCount, EventKind, Instant};

use super::prr::Progress;
use super::{Ack, Scratch, Sender, UndoSign};
use crate::detection::RecoveryEnd;
use crate::transmission::Delivered;
use crate::view::{AckView, Phase};

impl Sender {
    /// Returns whether slow start may continue although the window was not full. As in Linux, the
    /// window may grow to twice the most that was outstanding; otherwise an application that writes
    /// small pieces would fall behind one that writes everything at once.
    fn doubles(&self) -> bool {
        let control = self.strategies.control();
        control.window() < self.cwnd_use.most_out() * 2 && control.in_slow_start()
    }

    /// Processes an acceptable ACK. The caller rejects an `ack` above SND.NXT, which is ignored
    /// here. Of an old ACK, below SND.UNA, the time stamp and congestion marks are ignored.
    ///
    /// Returns the sign that the last reduction was spurious, if this ACK undoes the reduction.
    pub fn on_ack(&mut self, now: Instant, ack: &Ack<'_>) -> Option<UndoSign> {
        let una = self.core.board.snd_una();
        if ack.ack > self.core.board.snd_nxt() {
            return None;
        }
        // The sender has no use for the ACKs of a connection that only receives.
        let echoes = ack.ece || ack.ce > ByteCount::ZERO;
        let is_informative =
            ack.window_changed || !ack.sack.is_empty() || ack.dsack.is_some() || echoes;
        if self.core.board.is_empty() && !is_informative {
            return None;
        }
        let late = ack.ack < una;
        let ack = &Ack { ack: ack.ack.max(una), echo: ack.echo.filter(|_| !late), ..*ack };
        let acked = ack.ack.since(una);
        let prior_pipe = self.pipe();
        let phase = self.core.phase();
        let outstanding = !self.core.board.is_empty();
        let lost_before = self.lost;

        let board = &self.core.board;
        self.cwnd_use.on_ack(una, board.snd_nxt(), board.flight_size());

        // 1. The board.
        let mut scratch = self.scratch.take().unwrap_or_default();
        let Scratch { newly, findings, raised } = &mut *scratch;
        newly.clear();
        let fack = self.core.board.sacked_ranges().last().map(|range| range.end);
        self.core.board.acknowledge(ack.ack, ack.sack, newly);
        if let Some(fack) = fack {
            self.reordering.on_ack(fack, newly, self.core.smss);
        }
        let delivered: ByteCount = newly.iter().map(|delivered| delivered.range.len()).sum();

        self.newly_delivered = delivered;
        self.events.acknowledged(newly);
        self.full_arrived |= newly.iter().any(|acked| acked.size == self.core.smss);

        // 2. RTT, rate and round.
        let rtt = self.measure_rtt(now, ack, acked, newly);
        let (rate, round_start) = self.rate.on_ack(now, newly, self.core.rtt.min());
        // RFC 5681 section 2: the definition of a duplicate acknowledgment.
        let duplicate = outstanding
            && !late
            && acked == ByteCount::ZERO
            && !ack.has_payload
            && !ack.window_changed;
        // Only outstanding data can have carried a mark.
        let ece = echoes && outstanding && !late;
        let view = AckView {
            now,
            ack: ack.ack,
            acked,
            delivered,
            newly,
            sack: ack.sack,
            dsack: ack.dsack,
            duplicate,
            echo: ack.echo,
            ece,
            marked: match (ece, ack.ce) {
                (false, _) => ByteCount::ZERO,
                (true, ByteCount::ZERO) => delivered,
                (true, ce) => ce,
            },
            echoed_tx: ack.echoed,
            rtt,
            srtt: self.core.rtt.srtt().unwrap_or_default(),
            rate,
            delivered_total: self.rate.delivered(),
            lost: ByteCount::ZERO,
            pipe: self.pipe(),
            random_share: 0.0,
            low_load_wanted: false,
            round_start,
            prior_pipe,
            cwnd_limited: (self.cwnd_use.was_limited(una) || self.doubles())
                && self.control_window() < self.clamp(),
            max_flight: self.cwnd_use.most_out(),
            grows_with_hole: false,
            phase,
        };
        self.stats.duplicate_acks += u64::from(duplicate);
        self.stats.dsacks += u64::from(ack.dsack.is_some());

        // 3. Undo.
        self.refill();
        let undone = self.undo_if_spurious(now, &view);

        // 4. The judges.
        self.strategies.judge_ack(&self.core, &view, raised);
        self.work_raised(now, raised);

        // 5. Marks.
        if view.ece {
            self.on_mark_echoed(now, ack.ack);
        }

        // 6 to 8. Detection, rulings, notices.
        self.strategies.detect(&self.core, &view, findings);
        self.work_findings(now, findings);

        // 9 and 10. Probe verdict, end of the recovery.
        self.on_probe_acked(&view);
        self.end_recovery(&view);

        // 11. The control.
        if delivered > ByteCount::ZERO {
            self.forget_delivered(newly);
        }
        let view = self.after_detection(view, lost_before);
        self.strategies.control_ack(&view);

        // 12 and 13. Window validation, PRR.
        self.validate_window(&view);
        self.reduce_in_proportion(&view);

        // 14. Timers and pacing.
        if acked > ByteCount::ZERO {
            self.renew_waits();
            self.core.rto.on_advance();
            self.idle.on_advance(now, self.core.board.is_empty());
            if self.core.board.is_empty() {
                self.core.rtt.on_all_acked();
            }
            if self.core.board.is_empty() || self.restarts_rto() {
                self.restart_rto(now);
            }
        }
        self.newly_delivered = ByteCount::ZERO;
        self.probes.schedule(&self.core, now, delivered > ByteCount::ZERO);
        self.update_pacing(now);
        self.scratch = Some(scratch);
        self.report_window();
        if ack.window_opened {
            self.on_window_opened(now);
        }
        undone
    }

    /// Returns the ACK as the control sees it, after detection and rulings. The phase is that of
    /// the recovery for the ACK that starts it as well as for the ACK that ends it: cwnd stays at
    /// ssthresh.
    fn after_detection<'a>(&self, ack: AckView<'a>, lost_before: ByteCount) -> AckView<'a> {
        let phase = match self.core.phase() {
            started @ (Phase::Recovery | Phase::Cwr) => started,
            Phase::Open | Phase::Loss => ack.phase,
        };
        let control = self.strategies.control();
        let end = self.strategies.recovery_end(&self.core, ack.now);
        let increases_always = matches!(end, RecoveryEnd::After(_)) && !control.in_slow_start();
        AckView {
            grows_with_hole: self.waits() || increases_always,
            lost: self.lost - lost_before,
            pipe: self.pipe(),
            phase,
            random_share: self.strategies.random_share(),
            low_load_wanted: self.strategies.want_low_load(),
            rate: ack.rate.map(|rate| self.rate.with_losses(rate)),
            ..ack
        }
    }

    /// Computes how much this ACK allows to be sent during a reduction (RFC 9937 section 6.2). The
    /// ACK that ends the reduction is not part of it: from then on cwnd is ssthresh (section 6.4).
    fn reduce_in_proportion(&mut self, ack: &AckView<'_>) {
        if !self.core.recovery.is_on() {
            self.prr = None;
        }
        let (pipe, ssthresh, smss) = (self.pipe(), self.control_window(), self.core.smss);
        let Some(prr) = &mut self.prr else { return };
        prr.on_ack(&Progress {
            delivered: ack.delivered,
            pipe,
            ssthresh,
            safe: ack.acked > ByteCount::ZERO && ack.lost == ByteCount::ZERO,
            smss,
        });
    }

    /// Takes an RTT sample for the time-out, by Karn's rule, a transmission number or the time
    /// stamp, and returns the sample for the control.
    ///
    /// The time-out uses the oldest segment that the ACK newly covers, so that the sample includes
    /// the receiver's delayed ACK (RFC 6298 section 3, RFC 7323 section 4.2); the control uses the
    /// newest.
    fn measure_rtt(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        acked: ByteCount,
        newly: &[Delivered],
    ) -> Option<std::time::Duration> {
        // If the ACK cumulatively covers a retransmission, the data above it may have arrived long
        // ago and only waited for it.
        let clean = newly.iter().all(|delivered| delivered.resent == 0 || !delivered.cumulative);
        let sent_once = || newly.iter().filter(|delivered| delivered.resent == 0);
        // LE 2.2.4: an ACK that echoes the number of a transmission that it newly covers gives a
        // sample of that transmission, even of a retransmission.
        let echoed = newly.iter().find(|acked| acked.resent > 0 && ack.echoed == Some(acked.tx));
        let (oldest, newest) = if let Some(repair) = echoed {
            (Some(repair.sent_at), Some(repair.sent_at))
        } else if clean {
            (
                sent_once().map(|delivered| delivered.sent_at).min(),
                sent_once().map(|delivered| delivered.sent_at).max(),
            )
        } else {
            // RFC 7323 section 4.1: only an ACK that advances SND.UNA gives a sample.
            let echo = ack.echo.filter(|&echo| acked > ByteCount::ZERO && echo <= now);
            (echo, None)
        };
        if let Some(sample) = oldest.map(|sent_at| now.since(sent_at)) {
            let segments = self.cwnd().0 / self.core.smss.0;
            self.core.rtt.set_window(segments.try_into().unwrap_or(u32::MAX));
            self.core.rtt.on_sample(sample);
            self.probes.on_rtt_sample();
            let srtt = self.core.rtt.srtt().unwrap_or(sample);
            let min = self.core.rtt.min().unwrap_or(sample);
            self.events.add(|| EventKind::Rtt { sample, srtt, min });
        }
        newest.map(|sent_at| now.since(sent_at))
    }
}
