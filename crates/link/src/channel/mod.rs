//! The channel: loss, corruption and duplication.

mod corrupt;
mod loss;
mod outage;

use airtcp_types::rng::Stream;
use airtcp_types::{Instant, Packet};

use crate::ip;
use crate::ledger::{DropCause, Ledger};
use crate::spec::{LinkSpec, LossSpec, Share, Way};
use corrupt::{BitErrors, Corruption};
use loss::{Bursts, Drops, RandomLoss};
pub(crate) use outage::Outages;

/// The causes of random draws in a direction. Each cause has a random stream of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
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
    Backoff,
    Announcement,
    LinkAck,
}

impl Draw {
    /// The number of streams per direction, with room for new causes without renumbering the
    /// others.
    const PER_WAY: u64 = 64;

    pub(crate) fn stream(self, seed: u64, way: Way) -> Stream {
        Stream::new(seed, way as u64 * Self::PER_WAY + self as u64)
    }
}

/// The result of passing the channel.
pub(crate) enum Passage {
    Lost(DropCause),
    Once,
    /// The packet is duplicated.
    Twice,
}

/// The channel of one direction. Every cause processes every packet, whatever the other causes do
/// to it.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// Whether errors are limited to packets with payload.
    only_payload: bool,
    /// Whether errors are limited to the other direction.
    unharmed: bool,
    loss: Option<RandomLoss>,
    bursts: Option<Bursts>,
    drops: Option<Drops>,
    outages: Option<Outages>,
    duplicates: Option<(f64, Stream)>,
    bit_errors: Option<BitErrors>,
    corruption: Option<Corruption>,
}

impl Channel {
    /// Creates the channel that `spec` describes; `None` if it has no effect on packets.
    pub(crate) fn new(spec: &LinkSpec, way: Way) -> Option<Self> {
        let stream = |draw: Draw| draw.stream(spec.seed, way);
        let channel = Self {
            only_payload: spec.only.payload,
            unharmed: spec.only.way.is_some_and(|only| only != way),
            // Loss that starts with a later change also draws from the start on, so that a seed
            // gives the same results.
            loss: spec.losses().next().map(|_| {
                let first = spec.loss.unwrap_or(LossSpec::Random(Share::NONE));
                RandomLoss::new(first, stream(Draw::Loss))
            }),
            bursts: spec.burst.map(|(share, length)| {
                Bursts::new(share.probability(), length, stream(Draw::Burst))
            }),
            drops: spec.drop.clone().map(Drops::new),
            outages: Outages::new(spec.duty, &spec.down),
            duplicates: spec.duplicate.map(|share| (share.probability(), stream(Draw::Duplicate))),
            bit_errors: spec
                .biterror
                .filter(|rate| *rate > 0.0)
                .map(|rate| BitErrors::new(rate, stream(Draw::BitError))),
            corruption: spec.corrupt.map(|corrupt| Corruption::new(corrupt, stream(Draw::Corrupt))),
        };
        let clean = channel.loss.is_none()
            && channel.bursts.is_none()
            && channel.drops.is_none()
            && channel.outages.is_none()
            && channel.duplicates.is_none()
            && channel.bit_errors.is_none()
            && channel.corruption.is_none();
        (!clean).then_some(channel)
    }

    /// Changes the random loss of the packets that follow.
    pub(crate) fn change_loss(&mut self, loss: LossSpec) {
        if let Some(random) = &mut self.loss {
            random.change(loss);
        }
    }

    /// Applies the channel to a packet. Corruption and duplication are recorded in the ledger; the
    /// caller records a loss.
    pub(crate) fn pass(
        &mut self,
        now: Instant,
        packet: &mut Packet,
        ledger: &mut Ledger,
    ) -> Passage {
        let harmed = !self.unharmed && (!self.only_payload || ip::has_payload(&packet.data));
        // Each cause draws, also if another one has already lost the packet.
        let random = self.loss.as_mut().and_then(RandomLoss::loses_next);
        let burst = self.bursts.as_mut().is_some_and(Bursts::hits_next);
        let by_number = harmed && self.drops.as_mut().is_some_and(Drops::takes_next);
        let errors = self.bit_errors.as_mut().map(BitErrors::draw);
        let corruption = self.corruption.as_mut().and_then(Corruption::draw);
        let twice = self.duplicates.as_mut().is_some_and(|(share, stream)| stream.chance(*share));

        let out = |is: fn(&Outages, Instant) -> bool| {
            self.outages.as_ref().is_some_and(|outages| is(outages, now))
        };
        let lost = if out(Outages::is_down) {
            Some(DropCause::LinkDown)
        } else if harmed {
            random
                .or(burst.then_some(DropCause::Burst))
                .or(by_number.then_some(DropCause::ByNumber))
                .or_else(|| out(Outages::is_duty_off).then_some(DropCause::DutyCycle))
        } else {
            None
        };
        if let Some(cause) = lost {
            return Passage::Lost(cause);
        }
        if harmed {
            let errors = self.bit_errors.as_ref().zip(errors);
            let corruption = self.corruption.as_ref().zip(corruption);
            if let Some(damage) = corrupt::apply(errors, corruption, packet) {
                ledger.corrupted(now, damage, packet);
            }
        }
        if !twice {
            return Passage::Once;
        }
        ledger.duplicated(now, packet);
        Passage::Twice
    }
}
