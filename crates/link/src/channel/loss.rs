//! Packet loss: random, in bursts, and by number.

use airtcp_types::rng::Stream;

use crate::ledger::DropCause;
use crate::spec::{DropSpec, LossSpec};

/// Random loss: independent, or Gilbert-Elliott.
#[derive(Clone, Debug)]
pub(super) struct RandomLoss {
    spec: LossSpec,
    bad: bool,
    stream: Stream,
}

impl RandomLoss {
    pub(super) fn new(spec: LossSpec, stream: Stream) -> Self {
        Self { spec, bad: false, stream }
    }

    /// Changes the loss of the packets that follow. The state becomes good; the random stream
    /// continues.
    pub(super) fn change(&mut self, spec: LossSpec) {
        (self.spec, self.bad) = (spec, false);
    }

    /// Returns the cause if the next packet is lost.
    pub(super) fn loses_next(&mut self) -> Option<DropCause> {
        match self.spec {
            LossSpec::Random(share) => {
                self.stream.chance(share.probability()).then_some(DropCause::RandomLoss)
            }
            LossSpec::GilbertElliott { to_bad, to_good, loss_bad, loss_good } => {
                // netem's order (loss_gilb_ell): the state before the packet decides its loss, and
                // the packet changes the state for the next one.
                let (leave, loss) =
                    if self.bad { (to_good, loss_bad) } else { (to_bad, loss_good) };
                let changes = self.stream.chance(leave.probability());
                let lost = self.stream.chance(loss.probability());
                self.bad ^= changes;
                lost.then_some(DropCause::GilbertElliott)
            }
        }
    }
}

/// Bursts of a fixed length. Each packet outside of a burst starts one with a probability.
///
/// The share of packets hit is `p L / (1 + p (L - 1))`.
#[derive(Clone, Debug)]
pub(super) struct Bursts {
    probability: f64,
    length: u64,
    left: u64,
    stream: Stream,
}

impl Bursts {
    pub(super) fn new(probability: f64, length: u64, stream: Stream) -> Self {
        Self { probability, length, left: 0, stream }
    }

    pub(super) fn hits_next(&mut self) -> bool {
        let starts = self.stream.chance(self.probability);
        if self.left == 0 && starts {
            self.left = self.length;
        }
        let hit = self.left > 0;
        self.left = self.left.saturating_sub(1);
        hit
    }
}

/// Loss by packet number.
#[derive(Clone, Debug)]
pub(super) struct Drops {
    spec: DropSpec,
    number: u64,
}

impl Drops {
    pub(super) fn new(spec: DropSpec) -> Self {
        Self { spec, number: 0 }
    }

    pub(super) fn takes_next(&mut self) -> bool {
        self.number += 1;
        match &self.spec {
            DropSpec::Every(n) => self.number.is_multiple_of(*n),
            DropSpec::Numbers(ranges) => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&self.number))
            }
        }
    }
}
