//! `westwood` and `westwood-plus`: reduce the window to the measured bandwidth-delay product
//! (Mascolo et al., 2001; Grieco and Mascolo, 2004).

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

use super::reno::Reno;
use super::{CongestionControl, ControlParams, ControlState, Notice, NoticeKind};
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::view::AckView;

pub(crate) const WESTWOOD: Entry<dyn CongestionControl> = Entry {
    name: "westwood",
    parameter: "",
    example: None,
    summary: "reduces to the measured bandwidth times the minimum RTT; one bandwidth sample per ACK",
    source: "Mascolo et al. 2001",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, params| {
        let estimate = Estimate::PerAck(PerAck::default());
        no_parameter(parameter).map(|()| Box::new(Westwood::new(params, estimate)) as _)
    },
};

pub(crate) const WESTWOOD_PLUS: Entry<dyn CongestionControl> = Entry {
    name: "westwood-plus",
    summary: "`westwood` with one bandwidth sample per RTT, which ACK compression does not bias",
    source: "Grieco, Mascolo 2004",
    make: |parameter, params| {
        let estimate = Estimate::PerRound(PerRound::default());
        no_parameter(parameter).map(|()| Box::new(Westwood::new(params, estimate)) as _)
    },
    ..WESTWOOD
};

/// The time constant of the filter, in seconds.
const TIME_CONSTANT: f64 = 0.5;
/// Each such period without an ACK counts as a sample of zero.
const SILENCE: Duration = Duration::from_millis(250);
/// After this many periods, the estimate is zero.
const MOST_SILENCES: u32 = 64;

/// Grows like `reno`, and reduces the window to a bandwidth estimate.
#[derive(Clone, Debug)]
pub struct Westwood {
    aimd: Reno,
    estimate: Estimate,
    rtt_min: Option<Duration>,
}

#[derive(Clone, Debug)]
enum Estimate {
    PerAck(PerAck),
    PerRound(PerRound),
}

/// The samples b_k between ACKs, low-pass filtered with the bilinear (Tustin) approximation. Rates
/// are in bytes per second.
#[derive(Clone, Debug, Default)]
struct PerAck {
    filtered: Option<f64>,
    /// b_(k-1).
    last: f64,
    /// The ACKs of one instant, which form one sample.
    batch: Option<(Instant, ByteCount)>,
    /// The end of the last sample.
    ended: Option<Instant>,
}

impl PerAck {
    fn on_ack(&mut self, now: Instant, delivered: ByteCount) {
        match &mut self.batch {
            Some((at, bytes)) if *at == now => *bytes += delivered,
            _ => {
                self.end_batch();
                self.batch = Some((now, delivered));
            }
        }
    }

    fn end_batch(&mut self) {
        let Some((at, bytes)) = self.batch.take() else { return };
        self.pass_silence(at);
        let interval = self.ended.map_or(Duration::ZERO, |ended| at.since(ended));
        if !interval.is_zero() {
            let rate = bytes.0 as f64 / interval.as_secs_f64();
            self.filter(rate, interval);
        }
        self.ended = Some(at);
    }

    /// Adds virtual samples of zero for the time without ACKs.
    fn pass_silence(&mut self, now: Instant) {
        let Some(ended) = self.ended else { return };
        let silences = now.since(ended).as_nanos() / SILENCE.as_nanos();
        if silences > u128::from(MOST_SILENCES) {
            (self.filtered, self.last) = (self.filtered.map(|_| 0.0), 0.0);
            self.ended = Some(now);
            return;
        }
        for _ in 0..silences {
            self.filter(0.0, SILENCE);
        }
        self.ended = Some(ended + SILENCE * silences as u32);
    }

    fn filter(&mut self, rate: f64, interval: Duration) {
        let interval = interval.as_secs_f64();
        let a = (2.0 * TIME_CONSTANT - interval) / (2.0 * TIME_CONSTANT + interval);
        self.filtered = Some(match self.filtered {
            None => rate,
            Some(filtered) => a * filtered + (1.0 - a) * (rate + self.last) / 2.0,
        });
        self.last = rate;
    }
}

/// One sample per round trip, smoothed with a weight of an eighth.
#[derive(Clone, Debug, Default)]
struct PerRound {
    filtered: Option<f64>,
    began: Option<Instant>,
    bytes: ByteCount,
}

impl PerRound {
    fn on_ack(&mut self, now: Instant, delivered: ByteCount, srtt: Duration) {
        let began = *self.began.get_or_insert(now);
        self.bytes += delivered;
        let interval = now.since(began);
        if interval < srtt || interval.is_zero() {
            return;
        }
        let rate = self.bytes.0 as f64 / interval.as_secs_f64();
        self.filtered = Some(self.filtered.map_or(rate, |old| (7.0 * old + rate) / 8.0));
        (self.began, self.bytes) = (Some(now), ByteCount::ZERO);
    }
}

impl Westwood {
    fn new(params: &ControlParams, estimate: Estimate) -> Self {
        Self { aimd: Reno::new(params), estimate, rtt_min: None }
    }

    /// Returns BWE * RTTmin, or half of the window in use if nothing was measured.
    fn ssthresh(&mut self, now: Instant, flight_size: ByteCount) -> ByteCount {
        let rate = match &mut self.estimate {
            Estimate::PerAck(per_ack) => {
                per_ack.end_batch();
                per_ack.pass_silence(now);
                per_ack.filtered
            }
            Estimate::PerRound(per_round) => per_round.filtered,
        };
        match rate.zip(self.rtt_min) {
            Some((rate, rtt_min)) => ByteCount((rate * rtt_min.as_secs_f64()) as u64),
            None => self.aimd.used(flight_size).half(),
        }
    }
}

impl CongestionControl for Westwood {
    fn on_ack(&mut self, ack: &AckView<'_>) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
        if ack.delivered > ByteCount::ZERO {
            match &mut self.estimate {
                Estimate::PerAck(per_ack) => per_ack.on_ack(ack.now, ack.delivered),
                Estimate::PerRound(per_round) => {
                    per_round.on_ack(ack.now, ack.delivered, ack.srtt);
                }
            }
        }
        self.aimd.on_ack(ack);
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Reduce { flight_size, .. } => {
                let ssthresh = self.ssthresh(notice.now, flight_size);
                self.aimd.reduce_to(ssthresh);
            }
            NoticeKind::Timeout { flight_size, first } => {
                let ssthresh = self.ssthresh(notice.now, flight_size);
                self.aimd.collapse(first, ssthresh);
            }
            NoticeKind::Idle { .. } => {
                // Idle time is not a measurement of the path.
                match &mut self.estimate {
                    Estimate::PerAck(per_ack) => {
                        per_ack.end_batch();
                        per_ack.ended = None;
                    }
                    Estimate::PerRound(per_round) => {
                        (per_round.began, per_round.bytes) = (None, ByteCount::ZERO);
                    }
                }
                self.aimd.on_notice(notice);
            }
            _ => self.aimd.on_notice(notice),
        }
    }

    fn window(&self) -> ByteCount {
        self.aimd.window()
    }

    fn state(&self) -> ControlState {
        self.aimd.state()
    }

    fn bandwidth(&self) -> Option<Rate> {
        let bytes = match &self.estimate {
            Estimate::PerAck(per_ack) => per_ack.filtered,
            Estimate::PerRound(per_round) => per_round.filtered,
        }?;
        Some(Rate::from_bits_per_sec((bytes * 8.0) as u64))
    }
}

#[cfg(test)]
mod tests;
