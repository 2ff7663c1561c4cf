//! Outages, at times after the clock's origin.

use std::time::Duration;

use airtcp_types::Instant;

use crate::spec::DownSpec;

/// The schedule of disconnections, and the duty cycle.
#[derive(Clone, Debug)]
pub(crate) struct Outages {
    duty: Option<(Duration, Duration)>,
    down: Vec<DownSpec>,
}

impl Outages {
    /// Creates a schedule; `None` if there are no outages.
    pub(crate) fn new(duty: Option<(Duration, Duration)>, down: &[DownSpec]) -> Option<Self> {
        (duty.is_some() || !down.is_empty()).then(|| Self { duty, down: down.to_vec() })
    }

    /// Whether the link is down. A disconnection includes its first instant and excludes its last.
    pub(crate) fn is_down(&self, now: Instant) -> bool {
        let now = now.since(Instant::ZERO);
        self.down.iter().any(|down| {
            let Some(since) = now.checked_sub(down.from) else { return false };
            down.every.map_or(since, |every| remainder(since, every)) < down.length
        })
    }

    /// Whether the duty cycle is in its phase of total loss. It starts with the phase without loss.
    pub(crate) fn is_duty_off(&self, now: Instant) -> bool {
        self.duty.is_some_and(|(on, off)| remainder(now.since(Instant::ZERO), on + off) >= on)
    }
}

fn remainder(time: Duration, period: Duration) -> Duration {
    let nanos = time.as_nanos() % period.as_nanos().max(1);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
