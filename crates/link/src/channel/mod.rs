//! What the channel does to packets: loses them, flips their bits, doubles them.

mod corrupt;
mod loss;
mod outage;

use airtcp_types::rng::Stream;
use airtcp_types::{Instant, Packet};

use crate::spec::{LinkSpec, Way};
use crate::{Counters, ip};
use corrupt::{BitErrors, Corruption};
use loss::{Bursts, Drops, RandomLoss};
use outage::Outages;

/// What draws at random in a direction: each cause has a stream of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    Queue,
    Loss,
    Burst,
    Duplicate,
    BitError,
    Corrupt,
    Jitter,
    Delayed,
    CopyJitter,
    CopyDelayed,
}

impl Cause {
    /// Room for causes to come without moving those that are there.
    const PER_WAY: u64 = 64;

    pub(crate) fn stream(self, seed: u64, way: Way) -> Stream {
        Stream::new(seed, way as u64 * Self::PER_WAY + self as u64)
    }
}

/// What comes out of the channel for one packet.
pub(crate) enum Verdict {
    Lost,
    Through {
        packet: Packet,
        /// Whether it comes out twice.
        twice: bool,
    },
}

/// The channel of one direction. Every packet is seen by every cause, whatever becomes of it.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// Whether errors are limited to packets with payload.
    only_payload: bool,
    /// Whether errors are limited to the other direction.
    unharmed: bool,
    loss: Option<RandomLoss>,
    bursts: Option<Bursts>,
    drops: Option<Drops>,
    outages: Outages,
    duplicate: f64,
    duplicates: Stream,
    bit_errors: Option<BitErrors>,
    corruption: Option<Corruption>,
}

impl Channel {
    pub(crate) fn new(spec: &LinkSpec, way: Way) -> Self {
        let stream = |cause: Cause| cause.stream(spec.seed, way);
        Self {
            only_payload: spec.only.payload,
            unharmed: spec.only.way.is_some_and(|only| only != way),
            loss: spec.loss.map(|loss| RandomLoss::new(loss, stream(Cause::Loss))),
            bursts: spec.burst.map(|(share, length)| {
                Bursts::new(share.probability(), length, stream(Cause::Burst))
            }),
            drops: spec.drop.clone().map(Drops::new),
            outages: Outages::new(spec.duty, &spec.down),
            duplicate: spec.duplicate.map_or(0.0, |share| share.probability()),
            duplicates: stream(Cause::Duplicate),
            bit_errors: spec
                .biterror
                .filter(|rate| *rate > 0.0)
                .map(|rate| BitErrors::new(rate, stream(Cause::BitError))),
            corruption: spec
                .corrupt
                .map(|corrupt| Corruption::new(corrupt, stream(Cause::Corrupt))),
        }
    }

    pub(crate) fn pass(
        &mut self,
        now: Instant,
        mut packet: Packet,
        counters: &mut Counters,
    ) -> Verdict {
        let harmed = !self.unharmed && (!self.only_payload || ip::has_payload(&packet.data));
        // Each draws, and none is left out because another has spoken.
        let random = self.loss.as_mut().is_some_and(RandomLoss::loses_next);
        let burst = self.bursts.as_mut().is_some_and(Bursts::hits_next);
        let dropped = harmed && self.drops.as_mut().is_some_and(Drops::takes_next);
        let errors = self.bit_errors.as_mut().map(BitErrors::draw);
        let corruption = self.corruption.as_mut().map(Corruption::draw);
        let twice = self.duplicates.chance(self.duplicate);

        if self.outages.is_down(now) {
            counters.disconnected += 1;
            return Verdict::Lost;
        }
        if harmed && (random || burst || dropped || self.outages.is_duty_off(now)) {
            counters.channel_lost += 1;
            return Verdict::Lost;
        }
        if harmed {
            let flips = corrupt::Flips { errors, corruption };
            corrupt::apply(
                flips,
                self.bit_errors.as_ref(),
                self.corruption.as_ref(),
                &mut packet,
                counters,
            );
        }
        counters.duplicated += u64::from(twice);
        Verdict::Through { packet, twice }
    }
}
