//! Measurement of the path from packet times: rates, and the causes of losses.

use std::time::Duration;

use airtcp_types::Instant;

use crate::config::{Config, NetworkKind};
use crate::differentiation::{Arrival, Arrivals, Loss};
use crate::gaps::{Gaps, Trains};
use crate::wire::{Counts, Data, Feedback};

#[derive(Clone, Debug)]
pub(super) struct Path {
    gaps: Gaps,
    trains: Trains,
    arrivals: Arrivals,
    /// Measured and not reported yet.
    feedback: Option<Feedback>,
}

impl Path {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            gaps: Gaps::default(),
            trains: Trains::default(),
            arrivals: Arrivals::new(config.kind, config.biaz),
            feedback: None,
        }
    }

    /// Sets the kind of network.
    pub(super) const fn reconfigure(&mut self, kind: NetworkKind) {
        self.arrivals.set_kind(kind);
    }

    /// The shortest recent gap between packets.
    pub(super) fn shortest_gap(&self) -> Duration {
        self.arrivals.shortest_gap().unwrap_or(Duration::ZERO)
    }

    /// Handles a packet with the full number `transmission`; returns the cause of losing packets
    /// missing directly before it. An epoch that it completes is reported with `counts`.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        transmission: u64,
        data: &Data<'_>,
        counts: Counts,
    ) -> Loss {
        let arrival = Arrival {
            at: now,
            transmission,
            sent: data.sent,
            size: data.payload.len(),
            pause: data.pause,
        };
        let verdict = self.arrivals.on_data(arrival, self.gaps.half_epoch());
        if verdict.stalled {
            self.gaps.skip();
        }
        self.measure(now, transmission, data, counts);
        verdict.loss
    }

    fn measure(&mut self, now: Instant, transmission: u64, data: &Data<'_>, counts: Counts) {
        let epoch = self.gaps.on_data(now, transmission, data);
        let train = self.trains.on_data(now, transmission, data);
        if epoch.is_none() && train.is_none() {
            return;
        }
        let nanos = |gap: Duration| u32::try_from(gap.as_nanos()).unwrap_or(u32::MAX);
        let mut feedback = self.feedback.unwrap_or_default();
        if let Some(epoch) = epoch {
            feedback.since = epoch.since as u32;
            feedback.send_gap = nanos(epoch.send_gap);
            feedback.receive_gap = nanos(epoch.receive_gap);
            feedback.congested = self.arrivals.end_epoch();
            feedback.counts = counts;
        }
        if let Some(train) = train {
            feedback.train_gap = Some(nanos(train));
        }
        self.feedback = Some(feedback);
    }

    /// Whether there is a measurement to report.
    pub(super) const fn has_feedback(&self) -> bool {
        self.feedback.is_some()
    }

    /// Takes the measurement to report, with the current counts: losses reported meanwhile belong
    /// to the epoch, too. Counts that have restarted belong to another epoch.
    pub(super) fn take_feedback(&mut self, counts: Counts) -> Option<Feedback> {
        let measured = self.feedback.take()?;
        let same = measured.counts.first_counted == counts.first_counted;
        Some(Feedback { counts: if same { counts } else { measured.counts }, ..measured })
    }
}
