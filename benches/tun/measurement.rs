//! The trait of a measurement.

use std::io;
use std::time::Duration;

use crate::subject::Subject;

/// The extent of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The number of pairs: measurements of both stacks, one after the other.
    pub(crate) pairs: usize,
    /// The duration of a measurement by time.
    pub(crate) time: Duration,
    /// The number of idle connections open at a time.
    pub(crate) idle: usize,
    /// How long they stay idle.
    pub(crate) silence: Duration,
    /// The number of short connections.
    pub(crate) short: usize,
}

impl Effort {
    pub(crate) const WHOLE: Self = Self {
        pairs: 9,
        time: Duration::from_secs(1),
        idle: 10_000,
        silence: Duration::from_secs(10),
        short: 100_000,
    };
    /// A smoke test.
    pub(crate) const TEST: Self = Self {
        pairs: 1,
        time: Duration::from_millis(100),
        idle: 200,
        silence: Duration::from_millis(100),
        short: 1_000,
    };
}

/// A measurement of a stack, with one number or more as the result.
pub(crate) trait Measurement {
    fn name(&self) -> String;

    /// The names of the numbers, with their units.
    fn quantities(&self) -> &'static [&'static str];

    /// The number of echo connections that open at the same time.
    fn echoes(&self) -> usize {
        1
    }

    /// Whether the stack and its peer run on one CPU.
    fn is_pinned(&self) -> bool {
        false
    }

    /// Whether the stack's application copies what it reads, which `airtcp serve` does not.
    fn is_copied(&self) -> bool {
        false
    }

    /// Whether it needs a newly started stack.
    fn is_fresh(&self) -> bool {
        false
    }

    /// Measures once and returns a number for each quantity.
    ///
    /// # Errors Returns an error if the stack fails or does not answer in time.
    fn measure(&self, subject: &Subject, effort: &Effort) -> io::Result<Vec<f64>>;
}
