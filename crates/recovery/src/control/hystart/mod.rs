//! HyStart++ (RFC 9406): slow start that ends when round trips grow, and not only with a loss.
//!
//! A round whose smallest round trip is longer than that of the round before hints at a queue that
//! fills. Slow start then goes on conservatively for five rounds. If round trips grow shorter again
//! in these, it was jitter, and slow start is resumed; if not, congestion avoidance begins, where
//! the window is then.

use std::num::NonZeroU32;
use std::time::Duration;

use airtcp_types::ByteCount;

use crate::view::AckView;

/// RFC 9406 section 4.3: by how much a round trip has to grow, at least and at most, microseconds.
const MIN_RTT_THRESH: u32 = 4_000;
const MAX_RTT_THRESH: u32 = 16_000;
/// The part of a round trip by which it has to grow, between these.
const MIN_RTT_DIVISOR: u32 = 8;
/// Samples before a round's smallest is believed.
const N_RTT_SAMPLE: u8 = 8;
/// By how much slower conservative slow start grows.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds of conservative slow start, the one in which it began counted.
const CSS_ROUNDS: u8 = 5;

/// Smallest round trips, in microseconds; small, as every connection has it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// That of the last round.
    last: Option<NonZeroU32>,
    /// That of this round, so far.
    current: Option<NonZeroU32>,
    /// That of the round in which it rose. Conservative slow start is on while there is one.
    baseline: Option<NonZeroU32>,
    /// Of this round.
    samples: u8,
    /// Of conservative slow start, ended.
    rounds: u8,
}

impl HyStart {
    /// Hears an ACK in slow start (RFC 9406 section 4.2); gives back whether slow start is over.
    pub(super) fn on_ack(&mut self, ack: &AckView<'_>) -> bool {
        if ack.round_start {
            (self.last, self.current, self.samples) = (self.current, None, 0);
            self.rounds += u8::from(self.is_conservative());
        }
        if let Some(rtt) = ack.rtt {
            let rtt = micros(rtt);
            self.current = Some(self.current.map_or(rtt, |current| current.min(rtt)));
            self.samples = self.samples.saturating_add(1);
        }
        if self.samples >= N_RTT_SAMPLE
            && let Some(current) = self.current
        {
            match self.baseline {
                Some(baseline) if current < baseline => self.baseline = None,
                None if self.last.is_some_and(|last| has_grown(last, current)) => {
                    (self.baseline, self.rounds) = (Some(current), 0);
                }
                _ => {}
            }
        }
        self.is_conservative() && self.rounds >= CSS_ROUNDS
    }

    pub(super) const fn is_conservative(&self) -> bool {
        self.baseline.is_some()
    }

    /// What is left of slow start's step.
    pub(super) fn step(&self, step: ByteCount) -> ByteCount {
        if self.is_conservative() { ByteCount(step.0 / CSS_GROWTH_DIVISOR) } else { step }
    }
}

fn has_grown(last: NonZeroU32, current: NonZeroU32) -> bool {
    let threshold = (last.get() / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
    current.get() >= last.get().saturating_add(threshold)
}

fn micros(rtt: Duration) -> NonZeroU32 {
    let micros = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
    NonZeroU32::new(micros).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests;
