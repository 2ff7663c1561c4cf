//! `spike`: losses are random up to the loss rate measured while the queue is not full.

mod baseline;
mod capacity;
mod departures;
mod jitter;

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

use super::{Cause, LossJudge, Raised, Ruling, When};
use crate::detection::{Certainty, Finding, earlier_arrived};
use crate::learned::RandomLosses;
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::transmission::Transmission;
use crate::view::{AckView, View};

use baseline::Baseline;
use capacity::Capacity;
use departures::{Departures, Group};
use jitter::Jitter;

pub(crate) const SPIKE: Entry<dyn LossJudge> = Entry {
    name: "spike",
    parameter: "",
    example: None,
    summary: "ignores random losses, up to the loss rate measured while the queue is not full",
    source: "Tobe et al. 2000; Cen, Cosman, Voelker 2003",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Spike::default()) as _),
};

const RANDOM: Ruling = Ruling { repair: When::Now, reduce: When::Never, cause: Cause::Random };

/// Transmissions wait in a queue if their RTT exceeds the base RTT by more than the base RTT over
/// this number, and by more than [`NOISE`].
const QUEUE: u32 = 4;
/// The queue counts as empty up to this delay, which timers can cause, ...
const NOISE: Duration = Duration::from_millis(1);
/// ... plus the time of this many packets.
const PACKETS: u64 = 3;
/// The load is low if at most this share of the path's capacity is in flight. ProbeRTT of `bbr3`
/// reduces to a half.
const LOW: f64 = 0.6;
/// How long an observed queue is evidence about the path. `bbr3` probes every two to three seconds.
const SEEN: Duration = Duration::from_secs(5);
/// An observed queue is evidence only if queues were observed at least this far apart. Behind a
/// policer only the first burst makes a queue.
const APART: Duration = Duration::from_secs(1);
/// An observed queue is evidence only for delivery rates of at least this share of the capacity. A
/// policer with a lower rate than that delivers less.
const SAME: f64 = 0.9;
/// The largest share that is ruled random: Linux's bbr takes 20 % for the sign of a policer.
const MOST: f64 = 0.2;
/// The log-likelihood ratio, in bits, of twice the share of losses to the share itself, as a
/// cumulative sum: each loss subtracts one from the allowance, each transmission adds the share
/// times 1 / ln 2.
const SLOPE: f64 = std::f64::consts::LOG2_E;
/// The bits of evidence that close the gate.
const EVIDENCE: f64 = 12.0;

/// The longest time for which a low load is requested, ...
const ASKED: Duration = Duration::from_secs(20);
/// ... or this many smoothed RTTs, if those take longer. ...
const ASKED_ROUNDS: u32 = 40;
/// ... The judge may request it again after this many times as long.
const PERIOD: u32 = 4;

/// Rules losses random that cannot be drops of a queue.
///
/// A queue drops packets only when it is full. It is full when more data is in flight than the path
/// holds, and while it is full, RTTs are longer. A lossy link loses the same share at all times.
/// Therefore two tests decide whether a loss is [`Cause::Random`]:
///
/// 1. **The gate.** The share of losses is measured at low load: at most 0.6 of the path's capacity
///    is in flight, and there is no queueing delay. On a path that recently showed queues, at about
///    the current delivery rate, the share is measured at any load, while the queueing delay is at
///    most half of what counts as a queue. This share is the baseline: it limits the number of
///    losses ruled random at any load. A cumulative sum detects a share twice as large.
/// 2. **Spike** (Tobe et al. 2000; Cen, Cosman, Voelker 2003). A loss comes with a queue if the
///    RTTs of transmissions sent around it exceed the smallest RTT of the connection by more than a
///    quarter, and by more than 1 ms. The papers test one-way delays at the receiver; this test
///    works with any receiver. Transmissions and losses with a queue have a cumulative sum of their
///    own: losses in excess of it are congestion, and do not close the gate.
///
/// Jitter makes RTTs longer without a queue. It is measured at a low load, and delays of up to the
/// jitter count as no queue in both tests.
///
/// The gate is closed until the baseline is known: every loss is congestion. It closes again when
/// more is lost without a queue than the baseline predicts, or more than a fifth, and when the
/// delivery rate falls below what counted as a low load. A time-out does not close it: if one
/// transmission in ten is lost at random, so are some retransmissions.
///
/// Flows that share a queue of one or two packets fill it for each other. Each of them sees drops
/// at all of its own loads without a queueing delay, as on a lossy link. `spike` cannot distinguish
/// these drops from random losses.
#[derive(Debug, Default)]
pub struct Spike {
    departures: Departures,
    capacity: Capacity,
    baseline: Baseline,
    jitter: Jitter,
    /// The number of further losses without a queueing delay before the gate closes.
    allowance: f64,
    /// The number of further losses with a queueing delay that may be ruled random.
    queued: f64,
    open: bool,
    /// Whether more was lost than the baseline predicts while the gate was open.
    disproved: bool,
    /// Whether a low load is requested, and since when.
    asks: bool,
    asked_since: Option<Instant>,
    /// The latest delivery rate.
    rate: Rate,
    /// When a whole group of transmissions last waited in a queue, and the capacity then.
    queue_seen: Option<(Instant, Rate)>,
    /// The start of the current series of such observations, each within [`SEEN`] of the previous
    /// one.
    queues_since: Instant,
}

impl Spike {
    /// Returns how much longer than `base` RTTs can be without a queue; as long as `base` at most.
    fn jitter(&self, base: Duration) -> Duration {
        self.jitter.get().min(base)
    }

    /// Returns the bytes that the path holds without a queue. Jitter that can hide an empty queue is
    /// a part of the path's delay: its usual part is at least a half, so that a low load stays below
    /// what the path holds.
    fn full(&self, base: Duration) -> ByteCount {
        let jitter = Some(self.jitter(base)).filter(|&jitter| jitter > half_threshold(base));
        self.capacity.get().bytes_in(base + jitter.unwrap_or_default())
    }

    /// Returns the queueing delay up to which the queue counts as empty.
    fn idle(&self, smss: ByteCount, base: Duration) -> Duration {
        let rate = self.capacity.get();
        let packets = if rate > Rate::ZERO { rate.time_for(smss * PACKETS) } else { base };
        (NOISE + packets).min(base / (2 * QUEUE)).max(self.jitter(base))
    }

    /// Returns the queueing delay above which there is a queue.
    fn queue(&self, base: Duration) -> Duration {
        (half_threshold(base) * 2).max(self.jitter(base))
    }

    /// Processes a group whose transmissions are all known to be delivered or lost; `rtts` are the
    /// smallest and the largest RTT near it. A queueing delay of up to `idle` counts as none.
    fn settle(
        &mut self,
        mut group: Group,
        rtts: (Duration, Duration),
        (base, idle): (Duration, Duration),
        now: Instant,
    ) {
        let (shortest, longest) = (rtts.0.saturating_sub(base), rtts.1.saturating_sub(base));
        if shortest > self.queue(base) {
            self.see_queue(now);
        }
        let full = self.full(base);
        let is_low = group.load <= full.scale(LOW);
        if is_low {
            self.jitter.add(shortest, longest - shortest);
        }
        // A burst finds an empty queue and fills it, so none of its segments may have waited half
        // as long as what counts as a queue.
        if longest <= half_threshold(base) && self.shows_queues(now) {
            // The baseline is discarded when the capacity falls below this share of its current
            // value.
            let full = self.capacity.get().bytes_in(base);
            group.load = group.load.min(full.scale(SAME));
            self.baseline.add(&group);
        } else if is_low && shortest <= idle {
            self.baseline.add(&group);
        }
    }

    /// Records that a whole group of transmissions waited in a queue.
    fn see_queue(&mut self, now: Instant) {
        let last = self.queue_seen.filter(|(at, _)| now.since(*at) <= SEEN);
        if last.is_none() {
            self.queues_since = now;
        }
        // The highest rate of the series: its queues are no evidence once a policer delivers less.
        let rate = last.map_or(Rate::ZERO, |(_, rate)| rate).max(self.capacity.get());
        self.queue_seen = Some((now, rate));
    }

    /// Returns whether the path recently showed a queue at about the current delivery rate. A loss
    /// while the queue is empty is then a drop of neither the queue nor a policer.
    fn shows_queues(&self, now: Instant) -> bool {
        self.queue_seen.is_some_and(|(at, rate)| {
            let least = rate.scale(SAME);
            let lasts = now.since(at) <= SEEN && at.since(self.queues_since) >= APART;
            lasts && self.rate >= least && self.capacity.get() >= least
        })
    }

    /// Returns whether transmissions sent around this time waited in a queue; `None` if it is not
    /// known.
    fn waited(&self, sent_at: Instant, base: Duration) -> Option<bool> {
        let rtt = self.departures.smallest_rtt(sent_at)?;
        Some(rtt.saturating_sub(base) > self.queue(base))
    }

    /// Adds to an allowance of losses for transmissions with or without a queueing delay.
    fn earn(&mut self, segments: u32, with_queue: bool) {
        let Some(share) = self.baseline.share() else { return };
        let most = EVIDENCE * self.baseline.dispersion();
        let allowance = if with_queue { &mut self.queued } else { &mut self.allowance };
        *allowance = (*allowance + f64::from(segments) * (share * SLOPE).min(MOST)).min(most);
        self.open |= self.allowance >= most / 2.0;
    }

    /// Subtracts a loss from its allowance; returns whether it may be ruled random.
    fn spend(&mut self, with_queue: bool) -> bool {
        if with_queue {
            // Drops of a full queue do not close the gate for losses without a queue.
            let is_random = self.open && self.queued >= 1.0;
            self.queued = (self.queued - 1.0).max(0.0);
            return is_random;
        }
        self.baseline.see_loss();
        self.allowance -= 1.0;
        if self.allowance <= 0.0 {
            self.disproved |= self.open;
            self.close();
        }
        self.open
    }

    /// Requests a low load while the gate is closed and more losses at a low load could open it.
    /// After a time without success, it pauses before the next request.
    fn request_low_load(&mut self, now: Instant, srtt: Duration) {
        self.asks = !self.open && self.baseline.is_in_doubt();
        let longest = (srtt * ASKED_ROUNDS).max(ASKED);
        let asked = now.since(*self.asked_since.get_or_insert(now));
        if asked > longest * PERIOD {
            self.asked_since = self.asks.then_some(now);
        } else if asked > longest {
            self.asks = false;
        } else if !self.asks {
            self.asked_since = None;
        }
    }

    fn close(&mut self) {
        (self.allowance, self.queued) = (0.0, 0.0);
        self.open = false;
    }
}

/// Returns half of the queueing delay above which there is a queue, without jitter.
fn half_threshold(base: Duration) -> Duration {
    (base / QUEUE).max(NOISE) / 2
}

impl LossJudge for Spike {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, _: &mut Raised) {
        let Some(base) = view.rtt.min() else { return };
        if let Some(rate) = ack.rate.and_then(|rate| rate.rate()) {
            self.rate = rate;
            self.capacity.on_sample(view.now, rate, ack.srtt);
            self.baseline.keep_below(self.full(base));
        }
        if view.slow_start && view.ssthresh.is_none_or(|ssthresh| view.cwnd < ssthresh) {
            self.departures.on_slow_start(view.now);
        }
        for acked in ack.newly {
            if !earlier_arrived(acked, ack, view) {
                let rtt = (acked.resent == 0).then(|| ack.now.since(acked.sent_at));
                self.departures.on_delivered(acked, rtt, ack.srtt);
                // If it is not known whether a transmission waited in a queue, its loss does not
                // count, either.
                if let Some(with_queue) = self.waited(acked.sent_at, base) {
                    let segments = acked.transmissions().count().try_into().unwrap_or(u32::MAX);
                    self.earn(segments, with_queue);
                }
            }
        }
        while let Some((group, rtts)) = self.departures.next_settled(ack.now, ack.srtt) {
            if let Some(rtts) = rtts {
                let idle = self.idle(view.smss, base);
                self.settle(group, rtts, (base, idle), view.now);
            }
        }
        self.baseline.age(view.now);
        if self.baseline.share().is_none() {
            self.close();
            self.disproved = false;
        }
        self.request_low_load(view.now, ack.srtt);
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
        self.departures.on_lost(lost);
        let with_queue = self.waited(lost.sent_at, base)?;
        self.earn(1, with_queue);
        self.spend(with_queue).then_some(RANDOM)
    }

    fn random_share(&self) -> f64 {
        self.baseline.share().filter(|_| self.open).unwrap_or_default()
    }

    fn wants_low_load(&self) -> bool {
        self.asks
    }

    /// Opens the gate with half of the allowance, if the inherited share is known.
    fn inherit(&mut self, known: &RandomLosses) {
        self.baseline = Baseline::starting_with(known);
        if self.baseline.share().is_some() {
            self.allowance = EVIDENCE * self.baseline.dispersion() / 2.0;
            self.open = true;
        }
    }

    fn learned(&self) -> Option<RandomLosses> {
        if self.open {
            return self.baseline.counts();
        }
        self.disproved.then_some(RandomLosses::NONE)
    }

    fn on_timeout(&mut self, _: &View<'_>) {
        self.departures.clear();
    }

    fn shrink(&mut self) {
        self.departures = Departures::default();
        self.jitter.shrink();
    }
}

#[cfg(test)]
mod tests;
