//! ProbeRTT (draft-ietf-ccwg-bbr, "ProbeRTT Logic").

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use super::Machine;
use super::congestion::ShortTerm;
use super::sample::Sample;
use super::state::State;

/// BBR.ProbeRTTDuration.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// The current ProbeRTT, and the samples that belong to it.
///
/// The draft marks the connection as limited by the application in ProbeRTT, so that low rates do
/// not count. That mark is the sender's; here the control identifies such samples by the value of
/// C.delivered when their packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// Whether a judge requested it, and the minimum was not due.
    for_judge: bool,
    /// When the last ProbeRTT ended.
    ended: Instant,
    /// BBR.probe_rtt_done_stamp.
    pub(super) done_stamp: Option<Instant>,
    /// BBR.probe_rtt_round_done.
    round_done: bool,
    /// C.delivered at the start of the last ProbeRTT, and its value when all data in flight at the
    /// last ACK will be delivered.
    limited: Option<(ByteCount, ByteCount)>,
}

impl ProbeRtt {
    /// Returns whether the sample of a packet sent at `prior_delivered` belongs to a ProbeRTT.
    pub(super) fn limits(&self, prior_delivered: ByteCount) -> bool {
        self.limited.is_some_and(|(from, to)| (from..=to).contains(&prior_delivered))
    }

    /// MarkConnectionAppLimited.
    fn mark(&mut self, delivered: ByteCount, inflight: ByteCount) {
        let (from, _) = self.limited.unwrap_or((delivered, delivered));
        self.limited = Some((from, delivered + inflight));
    }
}

impl Machine {
    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, sample: &Sample) {
        let is_due = self.min_rtt.is_probe_due();
        let is_asked_for = self.low_load_wanted
            && self.state == State::ProbeBwCruise
            && sample.now > self.probe_rtt.ended + self.min_rtt.low_load_interval();
        if self.state != State::ProbeRtt && (is_due || is_asked_for) && !self.idle_restart {
            self.save_cwnd();
            // EnterProbeRTT
            self.state = State::ProbeRtt;
            let ended = self.probe_rtt.ended;
            self.probe_rtt = ProbeRtt { for_judge: !is_due, ended, ..ProbeRtt::default() };
            self.cycle.ack_phase = super::cycle::AckPhase::ProbeStopping;
            self.rounds.restart(sample.total_delivered);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        self.idle_restart &= sample.delivered == ByteCount::ZERO;
    }

    /// HandleProbeRTT.
    fn handle_probe_rtt(&mut self, sample: &Sample) {
        // Ignore low rate samples during ProbeRTT.
        self.probe_rtt.mark(sample.total_delivered, sample.inflight);
        if self.probe_rtt.done_stamp.is_some() {
            self.probe_rtt.round_done |= self.rounds.start();
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(sample.now);
            }
        } else if sample.inflight <= self.probe_rtt_cwnd() {
            self.probe_rtt.done_stamp = Some(sample.now + PROBE_RTT_DURATION);
            self.probe_rtt.round_done = false;
            self.rounds.restart(sample.total_delivered);
        }
    }

    /// CheckProbeRTTDone.
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt.done_stamp.is_some_and(|done| now > done) {
            self.probe_rtt.ended = now;
            // ExitProbeRTT
            self.congestion.short_term = ShortTerm::UNBOUNDED;
            if self.probe_rtt.for_judge {
                // The wait for the next probe continues.
                self.congestion.reset();
                self.rounds.restart(self.delivered);
                self.state = State::ProbeBwCruise;
                self.restore_cwnd();
                return;
            }
            self.min_rtt.schedule_next_probe(now);
            if self.full_bw.reached {
                self.start_probe_bw_down(now);
                self.state = State::ProbeBwCruise;
            } else {
                self.enter_startup();
            }
            self.restore_cwnd();
        }
    }
}
