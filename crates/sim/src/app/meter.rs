//! Measurements of an application.

use airtcp_stack::HostError;
use airtcp_types::Instant;

use super::pattern;
use crate::summary::Running;

/// The counters of an application.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// The start of the interval in which bytes count for the goodput.
    counts_from: Instant,
    /// Bytes read.
    pub(crate) bytes: u64,
    /// The number of these that count for the goodput.
    pub(crate) counted: u64,
    /// The duration of exchanges in seconds.
    pub(crate) exchanges: Running,
    /// The start and the duration of each exchange, if samples are kept.
    pub(crate) samples: Option<Vec<(f64, f64)>>,
    /// When the application finished.
    pub(crate) finished: Option<Instant>,
    /// Connections that ended abnormally.
    pub(crate) broken: u64,
    /// The stream offset of the first wrong byte.
    pub(crate) wrong: Option<u64>,
    /// The error of a failed socket call.
    pub(crate) refused: Option<HostError>,
}

impl Meter {
    pub(crate) fn new(counts_from: Instant, keep_samples: bool) -> Self {
        Self {
            counts_from,
            bytes: 0,
            counted: 0,
            exchanges: Running::default(),
            samples: keep_samples.then(Vec::new),
            finished: None,
            broken: 0,
            wrong: None,
            refused: None,
        }
    }

    /// Counts and verifies data that was read from `offset` of its stream on.
    pub(super) fn on_read(&mut self, now: Instant, offset: u64, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if now >= self.counts_from {
            self.counted += bytes.len() as u64;
        }
        if let Some(at) = pattern::mismatch(offset, bytes) {
            self.wrong.get_or_insert(at);
        }
    }

    pub(super) fn on_exchange(&mut self, began: Instant, ended: Instant) {
        let took = ended.since(began).as_secs_f64();
        self.exchanges.add(took);
        if let Some(samples) = &mut self.samples {
            samples.push((began.as_secs_f64(), took));
        }
    }
}
