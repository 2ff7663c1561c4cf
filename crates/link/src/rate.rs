//! The rate of a link: constant, or by a trace.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant, Rate};

/// A packet-delivery trace of mahimahi: one time in milliseconds per line, each an opportunity to
/// deliver one MTU of 1504 bytes; after the last time the trace starts again.
///
/// As in mahimahi, a packet counts 4 bytes more than its IP length (the header of mahimahi's TUN
/// device), so that an opportunity carries exactly one packet of 1500 bytes. The next queued packet
/// uses the rest of an opportunity; without a queued packet the rest is wasted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// Non-decreasing times in milliseconds; the last one is the period, and is not zero.
    stamps: Vec<u64>,
}

/// An invalid trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// A line is not a number of milliseconds.
    #[error("line {line}: expected a time in whole milliseconds, such as `17`")]
    NotAStamp {
        /// The line number; the first line is 1.
        line: usize,
    },
    /// The time in a line is earlier than that in the line before.
    #[error("line {line}: {stamp} is earlier than the line before, {before}")]
    Backwards {
        /// The line number; the first line is 1.
        line: usize,
        /// The time in this line.
        stamp: u64,
        /// The time in the line before.
        before: u64,
    },
    /// The trace has no line, or all times are 0.
    #[error("the trace has no timestamp above 0")]
    Empty,
    /// The trace is longer than 10 million lines.
    #[error("the trace has more than 10000000 lines")]
    TooLong,
}

impl Trace {
    /// Bytes that one opportunity carries.
    pub const OPPORTUNITY: ByteCount = ByteCount(1504);
    /// Bytes that a packet counts beyond its own.
    pub const OVERHEAD: ByteCount = ByteCount(4);
    const MAX_LINES: usize = 10_000_000;

    /// Parses a trace.
    ///
    /// # Errors
    ///
    /// The first invalid line.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut stamps: Vec<u64> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let stamp: u32 =
                line.trim().parse().map_err(|_| TraceError::NotAStamp { line: number })?;
            let stamp = u64::from(stamp);
            let before = stamps.last().copied().unwrap_or(0);
            if stamp < before {
                return Err(TraceError::Backwards { line: number, stamp, before });
            }
            if stamps.len() == Self::MAX_LINES {
                return Err(TraceError::TooLong);
            }
            stamps.push(stamp);
        }
        if stamps.last().is_none_or(|last| *last == 0) {
            return Err(TraceError::Empty);
        }
        Ok(Self { stamps })
    }

    /// Returns the mean rate.
    pub fn mean_rate(&self) -> Rate {
        let bytes = Self::OPPORTUNITY * self.stamps.len() as u64;
        Rate::from_bytes_over(bytes, Duration::from_millis(self.period()))
    }

    fn period(&self) -> u64 {
        self.stamps.last().copied().unwrap_or(1).max(1)
    }

    /// The time of the opportunity with this number, counted from the clock's origin.
    fn at(&self, number: u64) -> Instant {
        let lines = self.stamps.len() as u64;
        let stamp = self.stamps[(number % lines) as usize];
        Instant::from_millis((number / lines).saturating_mul(self.period()).saturating_add(stamp))
    }

    /// The number of the first opportunity after `now`.
    fn after(&self, now: Instant) -> u64 {
        let round = now.as_millis() / self.period();
        let into = now.as_millis() % self.period();
        let earlier = self.stamps.partition_point(|stamp| *stamp <= into) as u64;
        // At the exact end of a round `into` is 0, and the last opportunity of that round is at
        // `now`: it has passed.
        round.saturating_mul(self.stamps.len() as u64).saturating_add(earlier)
    }
}

/// The serialiser: the transmission time of a packet is known when its first byte leaves.
#[derive(Clone, Debug)]
pub(crate) enum Serialiser {
    Unlimited,
    Constant { rate: Rate, overhead: ByteCount },
    Trace { trace: Trace, next: u64, left: u64 },
}

impl Serialiser {
    /// Returns when the last byte of a packet leaves if the transmission starts at `now`.
    ///
    /// `fresh` means that the wire was idle before: the opportunities up to `now` passed unused.
    pub(crate) fn finish(&mut self, now: Instant, size: ByteCount, fresh: bool) -> Instant {
        match self {
            Self::Unlimited => now,
            Self::Constant { rate, overhead } => now + rate.time_for(size + *overhead),
            Self::Trace { trace, next, left } => {
                if fresh {
                    (*next, *left) = (trace.after(now), 0);
                }
                let mut need = (size + Trace::OVERHEAD).0;
                let mut at = now;
                while need > 0 {
                    if *left == 0 {
                        at = trace.at(*next);
                        *next = next.saturating_add(1);
                        *left = Trace::OPPORTUNITY.0;
                    }
                    let sent = need.min(*left);
                    need -= sent;
                    *left -= sent;
                }
                at
            }
        }
    }

    /// Returns the approximate transmission time of a packet of 1500 bytes, by which RED ages its
    /// average while the queue is empty.
    pub(crate) fn slot(&self) -> Duration {
        match self {
            Self::Unlimited => Duration::from_micros(1),
            Self::Constant { rate, .. } => rate.time_for(ByteCount(1_500)),
            Self::Trace { trace, .. } => {
                Duration::from_millis(trace.period())
                    / u32::try_from(trace.stamps.len()).unwrap_or(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_with_rubbish_names_the_line() {
        let mut lines: Vec<String> = (1..20).map(|ms| ms.to_string()).collect();
        lines[16] = "rubbish".to_owned();
        let error = Trace::parse(&lines.join("\n")).unwrap_err();
        assert!(error.to_string().starts_with("line 17: "));
        assert_eq!(Trace::parse(""), Err(TraceError::Empty));
        assert_eq!(Trace::parse("0\n0"), Err(TraceError::Empty));
        let backwards = TraceError::Backwards { line: 2, stamp: 4, before: 5 };
        assert_eq!(Trace::parse("5\n4"), Err(backwards));
    }

    #[test]
    fn the_next_opportunity_is_strictly_later() {
        let trace = Trace::parse("0\n5\n5\n10").unwrap();
        let next = |ms| trace.at(trace.after(Instant::from_millis(ms))).as_millis();
        assert_eq!([0, 4, 5, 9, 10, 15].map(next), [5, 5, 10, 10, 15, 20]);
    }
}
