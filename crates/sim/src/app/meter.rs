//! Measurements of an application.

use airtcp_stack::HostError;
use airtcp_types::Instant;

use super::pattern;
use crate::summary::Running;

/// What an application counts.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// From when on bytes count for the goodput.
    counts_from: Instant,
    /// Bytes read.
    pub(crate) bytes: u64,
    /// Of these, those that count for the goodput.
    pub(crate) counted: u64,
    /// How long exchanges took, in seconds.
    pub(crate) exchanges: Running,
    /// When each began, and how long it took, if that is to be kept.
    pub(crate) samples: Option<Vec<(f64, f64)>>,
    /// When everything was done.
    pub(crate) finished: Option<Instant>,
    /// Connections that ended abnormally.
    pub(crate) broken: u64,
    /// Where a byte was wrong.
    pub(crate) wrong: Option<u64>,
    /// What the host refused.
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

    /// Takes what was read from `offset` of its stream on.
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
