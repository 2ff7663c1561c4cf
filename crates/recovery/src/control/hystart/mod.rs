//! HyStart++ (RFC 9406): slow start also ends when the RTT grows, not only on a loss.
//!
//! A round trip whose smallest RTT is longer than that of the previous one indicates that a queue
//! builds up. Slow start then continues conservatively for five rounds. If the RTT decreases in
//! these rounds, the growth was jitter, and slow start resumes; otherwise congestion avoidance
//! starts with the current window.

use std::num::NonZeroU32;
use std::time::Duration;

use airtcp_types::ByteCount;

use crate::view::AckView;

/// RFC 9406 section 4.3: the minimum and maximum growth of the RTT that counts, in microseconds.
const MIN_RTT_THRESH: u32 = 4_000;
const MAX_RTT_THRESH: u32 = 16_000;
/// Within these limits, the growth that counts is the RTT divided by this.
const MIN_RTT_DIVISOR: u32 = 8;
/// The samples after which the smallest RTT of a round is valid.
const N_RTT_SAMPLE: u8 = 8;
/// The factor by which conservative slow start is slower.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// The rounds of conservative slow start, including the one in which it starts.
const CSS_ROUNDS: u8 = 5;

/// The smallest RTTs, in microseconds, which keeps every connection small.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// The smallest RTT of the last round.
    last: Option<NonZeroU32>,
    /// The smallest RTT of this round so far.
    current: Option<NonZeroU32>,
    /// The smallest RTT of the round in which the RTT grew; set during conservative slow start.
    baseline: Option<NonZeroU32>,
    /// The number of samples in this round.
    samples: u8,
    /// The number of completed rounds of conservative slow start.
    rounds: u8,
}

impl HyStart {
    /// Processes an ACK in slow start (RFC 9406 section 4.2); returns whether slow start is over.
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

    /// Returns the step by which the window grows, reduced in conservative slow start.
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
