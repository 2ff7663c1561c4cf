//! The type of a measurement.

use std::io;
use std::time::Duration;

use crate::subject::Subject;

/// How much of it is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Times that both are measured, one after the other.
    pub(crate) pairs: usize,
    /// For how long what is counted in time goes on.
    pub(crate) time: Duration,
    /// Connections that are open together, and idle.
    pub(crate) idle: usize,
    /// For how long they are.
    pub(crate) silence: Duration,
    /// Connections that open and close.
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
    /// A sign of life.
    pub(crate) const TEST: Self = Self {
        pairs: 1,
        time: Duration::from_millis(100),
        idle: 200,
        silence: Duration::from_millis(100),
        short: 1_000,
    };
}

/// Something that is measured of a stack, as one number or more.
pub(crate) trait Measurement {
    fn name(&self) -> String;

    /// What the numbers are, with their units.
    fn quantities(&self) -> &'static [&'static str];

    /// Connections for echoes that begin at the same time.
    fn echoes(&self) -> usize {
        1
    }

    /// Whether the stack runs on one CPU, as its peer does then.
    fn is_pinned(&self) -> bool {
        false
    }

    /// Whether the stack's application copies what it reads, which `airtcp serve` does not.
    fn is_copied(&self) -> bool {
        false
    }

    /// Whether it needs a stack that has done nothing yet.
    fn is_fresh(&self) -> bool {
        false
    }

    /// Measures once: a number for each quantity.
    ///
    /// # Errors
    /// The stack does not do what it is to do, or not in time.
    fn measure(&self, subject: &Subject, effort: &Effort) -> io::Result<Vec<f64>>;
}
