//! `spike`: losses are random up to the loss rate measured while the queue is not full.

mod baseline;
mod capacity;
mod departures;

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

/// Transmissions wait in a queue when round trips take longer by the base round-trip time over
/// this, and by [`NOISE`] at least.
const QUEUE: u32 = 4;
/// The queue counts as empty up to a delay of this, which timers make, ...
const NOISE: Duration = Duration::from_millis(1);
/// ... and of this many packets.
const PACKETS: u64 = 3;
/// The load is low with at most this share of what the path holds in flight. ProbeRTT of `bbr3`
/// goes down to a half.
const LOW: f64 = 0.6;
/// A queue that was seen vouches for the path this long. `bbr3` probes every two to three seconds.
const SEEN: Duration = Duration::from_secs(5);
/// It vouches only if queues were seen at least this far apart. Behind a policer the first burst
/// alone makes one.
const APART: Duration = Duration::from_secs(1);
/// It vouches for delivery rates from this share of the capacity on. A policer below that share of
/// the link's rate delivers less.
const SAME: f64 = 0.9;
/// No larger share is ruled random: Linux's bbr takes 20 % for the sign of a policer.
const MOST: f64 = 0.2;
/// A cumulative sum of the log-likelihood ratio, in bits, of a share of losses twice as large to
/// the share itself: each loss costs one, each transmission earns the share times 1 / ln 2.
const SLOPE: f64 = std::f64::consts::LOG2_E;
/// Bits of evidence that close the gate.
const EVIDENCE: f64 = 12.0;

/// It asks for a low load for this time at most, ...
const ASKED: Duration = Duration::from_secs(20);
/// ... or for this many smoothed round-trip times, if these take longer, ...
const ASKED_ROUNDS: u32 = 40;
/// ... and begins again when this many times as long has passed.
const PERIOD: u32 = 4;

/// Rules losses random that no queue can have made.
///
/// A queue drops only when it is full. It is full when the sender has more in flight than the path
/// holds, and while it is full, round trips take longer. A lossy link loses the same share at all
/// times. So there are two tests of whether a loss is [`Cause::Random`]:
///
/// 1. **The gate.** The share of losses is measured at low load: at most 0.6 of what the path holds
///    is in flight, and there is no queueing delay. On a path that has lately shown queues, at
///    about the present delivery rate, it is measured at any load while nothing waits half as long
///    as these queues lasted. This share, the baseline, bounds how many losses are ruled random at
///    any load. A cumulative sum notices a share twice as large.
/// 2. **Spike** (Tobe et al. 2000; Cen, Cosman, Voelker 2003). A loss comes with a queue if the
///    round-trip times of transmissions that left around it are more than a quarter above the
///    smallest of the connection, and 1 ms at least. The papers test one-way delays at the
///    receiver; this test serves any receiver. Transmissions and losses with a queue have a
///    cumulative sum of their own: losses beyond it are congestion, and leave the gate open.
///
/// The gate is closed until the baseline is known: every loss is congestion. It closes again when
/// more is lost without a queue than the baseline lets expect, or more than a fifth, and when the
/// delivery rate falls below what counted as a low load. A time-out leaves it as it is: where one
/// transmission in ten is lost at random, so is a retransmission now and then.
///
/// Flows that share a queue of a packet or two fill it for each other. Each of them sees drops at
/// all of its own loads and no queueing delay, as over a lossy link: these it cannot tell apart.
#[derive(Debug, Default)]
pub struct Spike {
    departures: Departures,
    capacity: Capacity,
    baseline: Baseline,
    /// How many more losses there may be without a queueing delay before the gate closes.
    allowance: f64,
    /// How many more losses with a queueing delay may be ruled random.
    queued: f64,
    open: bool,
    /// More was lost than the baseline let expect while the gate was open.
    disproved: bool,
    /// Whether less is to be in flight for a while, and since when it has asked for that.
    asks: bool,
    asked_since: Option<Instant>,
    /// The latest delivery rate.
    rate: Rate,
    /// When a whole group of transmissions last waited in a queue, and the capacity then.
    queue_seen: Option<(Instant, Rate)>,
    /// When the present series of such sightings began, each within [`SEEN`] of the one before.
    queues_since: Instant,
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

    /// Takes a group of which all is known, with the smallest and the largest round-trip time near
    /// it. A queueing delay up to `idle` may be none.
    fn settle(
        &mut self,
        mut group: Group,
        rtts: (Duration, Duration),
        (base, idle): (Duration, Duration),
        now: Instant,
    ) {
        let (shortest, longest) = (rtts.0.saturating_sub(base), rtts.1.saturating_sub(base));
        let queue = queue(base);
        if shortest > queue {
            self.see_queue(now);
        }
        let full = self.full(base);
        let is_low = group.load <= full.scale(LOW) && shortest <= idle;
        // A burst finds an empty queue and fills it: none of its segments is to have waited half as
        // long as the queue was seen to last.
        if longest <= queue / 2 && self.shows_queues(now) {
            // The baseline is forgotten when the capacity falls below this share of what it is now.
            group.load = group.load.min(full.scale(SAME));
            self.baseline.add(&group);
        } else if is_low {
            self.baseline.add(&group);
        }
    }

    /// A whole group of transmissions waited in a queue.
    fn see_queue(&mut self, now: Instant) {
        let last = self.queue_seen.filter(|(at, _)| now.since(*at) <= SEEN);
        if last.is_none() {
            self.queues_since = now;
        }
        // A policer that delivers less later is not vouched for by the queue of others.
        let rate = last.map_or(Rate::ZERO, |(_, rate)| rate).max(self.capacity.get());
        self.queue_seen = Some((now, rate));
    }

    /// Whether the path has lately shown a queue at about the present delivery rate: a loss while
    /// the queue is empty is then neither its drop nor a policer's.
    fn shows_queues(&self, now: Instant) -> bool {
        self.queue_seen.is_some_and(|(at, rate)| {
            let least = rate.scale(SAME);
            let lasts = now.since(at) <= SEEN && at.since(self.queues_since) >= APART;
            lasts && self.rate >= least && self.capacity.get() >= least
        })
    }

    /// Whether transmissions that left around this time waited in a queue; `None` if not known.
    fn waited(&self, sent_at: Instant, base: Duration) -> Option<bool> {
        let rtt = self.departures.smallest_rtt(sent_at)?;
        Some(rtt.saturating_sub(base) > queue(base))
    }

    /// Adds to the allowance of losses of a kind for transmissions of this kind.
    fn earn(&mut self, segments: u32, with_queue: bool) {
        let Some(share) = self.baseline.share() else { return };
        let most = EVIDENCE * self.baseline.dispersion();
        let allowance = if with_queue { &mut self.queued } else { &mut self.allowance };
        *allowance = (*allowance + f64::from(segments) * (share * SLOPE).min(MOST)).min(most);
        self.open |= self.allowance >= most / 2.0;
    }

    /// Takes a loss; whether it may be ruled random.
    fn spend(&mut self, with_queue: bool) -> bool {
        if with_queue {
            // Drops of a full queue leave the gate open for losses without one.
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

    /// Requests a low load while the gate is closed and more losses there would open it; after a
    /// while in vain, it waits before it asks again.
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

/// The queueing delay above which there is a queue.
fn queue(base: Duration) -> Duration {
    (base / QUEUE).max(NOISE)
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
                // Where it is not known whether a transmission waited, its loss uses up nothing,
                // either.
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

    /// The gate is then open, with half of the allowance.
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
    }
}

#[cfg(test)]
mod tests;
