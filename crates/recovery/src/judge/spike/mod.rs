//! `spike`: losses without a queue, no more frequent than at low loads, are random.

mod baseline;
mod capacity;
mod departures;

use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

use super::{Cause, LossJudge, Raised, Ruling, When};
use crate::detection::{Certainty, Finding, earlier_arrived};
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::transmission::Transmission;
use crate::view::{AckView, View};

use baseline::Baseline;
use capacity::Capacity;
use departures::{Departures, Group};

pub(crate) const SPIKE: Entry<dyn LossJudge> = Entry {
    name: "spike",
    parameter: "",
    example: None,
    summary: "does not reduce the window for losses without queueing delay, up to the loss rate at low load",
    source: "Tobe et al. 2000; Cen, Cosman, Voelker 2003",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Spike::default()) as _),
};

const RANDOM: Ruling = Ruling { repair: When::Now, reduce: When::Never, cause: Cause::Random };

/// A queueing delay above the base round-trip time over this is congestion.
const QUEUE: u32 = 4;
/// The queue counts as empty up to a delay of this, which timers make, ...
const NOISE: Duration = Duration::from_millis(1);
/// ... and of this many packets.
const PACKETS: u64 = 3;
/// The load is low with at most this share of what the path holds in flight. ProbeRTT of `bbr3`
/// goes down to a half.
const LOW: f64 = 0.6;
/// No larger share is ruled random: Linux's bbr takes 20 % for the sign of a policer.
const MOST: f64 = 0.2;
/// A cumulative sum of the log-likelihood ratio, in bits, of a share of losses twice as large to
/// the share itself: each loss costs one, each transmission earns the share times 1 / ln 2.
const SLOPE: f64 = std::f64::consts::LOG2_E;
/// Bits of evidence that close the gate.
const EVIDENCE: f64 = 12.0;

/// Rules losses random that no queue can have made.
///
/// A queue drops only when it is full. It is full when the sender has more in flight than the path
/// holds, and while it is full, round trips take longer. A lossy link loses the same share at all
/// times. Two tests follow from that. A loss is [`Cause::Random`] only if it passes both:
///
/// 1. **Spike** (Tobe et al. 2000; Cen, Cosman, Voelker 2003). The round-trip times of
///    transmissions that left around the lost one are at most a quarter above the smallest of the
///    connection. The papers test one-way delays at the receiver; this test serves any receiver.
/// 2. **The gate.** A policer, or a queue shorter than a quarter of the bandwidth-delay product,
///    passes the first test. So the share of losses is measured at low load: at most 0.6 of what
///    the path holds is in flight, and there is no queueing delay. This share, the baseline, bounds
///    how many losses are ruled random at any load. A cumulative sum notices a share twice as
///    large.
///
/// The gate is closed until the baseline is known: every loss is congestion. It closes again when
/// more is lost than the baseline lets expect, when more than a fifth of all is lost, when the
/// delivery rate falls below what counted as a low load, and on a time-out.
///
/// Flows that share a queue of a packet or two fill it for each other. Each of them sees drops at
/// all of its own loads and no queueing delay, as over a lossy link: these it cannot tell apart.
#[derive(Debug, Default)]
pub struct Spike {
    departures: Departures,
    capacity: Capacity,
    baseline: Baseline,
    /// How many more losses may be ruled random before the gate closes.
    allowance: f64,
    open: bool,
}

impl Spike {
    /// What the path holds without a queue.
    fn full(&self, base: Duration) -> ByteCount {
        self.capacity.get().bytes_in(base)
    }

    /// A queueing delay up to which the queue counts as empty.
    fn idle(&self, smss: ByteCount, base: Duration) -> Duration {
        let rate = self.capacity.get();
        let packets = if rate > Rate::ZERO { rate.time_for(smss * PACKETS) } else { base };
        (NOISE + packets).min(base / (2 * QUEUE))
    }

    fn settle(&mut self, group: &Group, wait: Duration, view: &View<'_>, base: Duration) {
        let is_low = group.load <= self.full(base).scale(LOW);
        if is_low && wait <= self.idle(view.smss, base) {
            self.baseline.add(view.now, group);
        }
    }

    fn earn(&mut self, bytes: ByteCount, smss: ByteCount) {
        let Some(share) = self.baseline.share() else {
            self.close();
            return;
        };
        let segments = bytes.0 as f64 / smss.0.max(1) as f64;
        let most = EVIDENCE * self.baseline.dispersion();
        self.allowance = (self.allowance + segments * (share * SLOPE).min(MOST)).min(most);
        self.open |= self.allowance >= most / 2.0;
    }

    fn spend(&mut self) {
        self.allowance -= 1.0;
        if self.allowance <= 0.0 {
            self.close();
        }
    }

    fn close(&mut self) {
        self.allowance = 0.0;
        self.open = false;
    }
}

impl LossJudge for Spike {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, _: &mut Raised) {
        let Some(base) = view.rtt.min() else { return };
        if let Some(rate) = ack.rate.and_then(|rate| rate.rate()) {
            self.capacity.on_sample(view.now, rate, ack.srtt);
            self.baseline.keep_below(self.full(base));
        }
        if view.slow_start && view.ssthresh.is_none_or(|ssthresh| view.cwnd < ssthresh) {
            self.departures.on_slow_start(view.now);
        }
        for told in ack.newly {
            if !earlier_arrived(told, ack, view) {
                let rtt = (told.resent == 0).then(|| ack.now.since(told.sent_at));
                self.departures.on_delivered(told, rtt, ack.srtt);
            }
        }
        while let Some((group, rtt)) = self.departures.next_settled(ack.now, ack.srtt) {
            if let Some(rtt) = rtt {
                self.settle(&group, rtt.saturating_sub(base), view, base);
            }
        }
        self.earn(ack.delivered, view.smss);
    }

    fn rule(
        &mut self,
        finding: &Finding,
        lost: &Transmission,
        view: &View<'_>,
        again: bool,
    ) -> Option<Ruling> {
        if finding.certainty == Certainty::Suspect || again {
            return None;
        }
        let base = view.rtt.min()?;
        let rtt = self.departures.on_lost(lost)?;
        self.earn(lost.range.len(), view.smss);
        self.spend();
        (self.open && rtt.saturating_sub(base) <= base / QUEUE).then_some(RANDOM)
    }

    fn random_share(&self) -> f64 {
        self.baseline.share().filter(|_| self.open).unwrap_or_default()
    }

    fn on_timeout(&mut self, _: &View<'_>) {
        self.departures.clear();
        self.close();
    }
}

#[cfg(test)]
#[path = "spike_tests.rs"]
mod tests;
