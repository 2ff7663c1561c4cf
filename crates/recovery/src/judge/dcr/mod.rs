//! `dcr:timer` and `dcr:count`: the response to a loss is deferred for one round trip (TCP-DCR).

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use super::{Cause, LossJudge, Raised, Ruling, When};
use crate::detection::{Certainty, Finding};
use crate::registry::{Entry, TakesOver, WireNeeds};
use crate::transmission::Transmission;
use crate::view::{AckView, View};

pub(crate) const DCR_TIMER: Entry<dyn LossJudge> = Entry {
    name: "dcr:timer",
    parameter: "[:K]",
    example: Some("0.5"),
    summary: "delays the response to a loss by K smoothed RTTs (1) after the first duplicate ACK, for reordering",
    source: "Bhandarkar, Reddy 2004",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| Dcr::new(false, parameter).map(|dcr| Box::new(dcr) as _),
};

pub(crate) const DCR_COUNT: Entry<dyn LossJudge> = Entry {
    name: "dcr:count",
    summary: "`dcr:timer` with a delay of K windows of duplicate ACKs, bounded by the retransmission timer",
    make: |parameter, _| Dcr::new(true, parameter).map(|dcr| Box::new(dcr) as _),
    ..DCR_TIMER
};

/// The deferral ends at least this long before the retransmission timer expires.
const BEFORE_RTO: Duration = Duration::from_millis(1);
/// The fewest duplicate ACKs before a response, as without DCR.
const FEWEST: u64 = 3;

/// Delayed congestion response, in congestion avoidance only. The sender implements the window
/// during the deferral: each ACK releases no more data than it delivers.
#[derive(Clone, Debug)]
pub struct Dcr {
    counts: bool,
    /// tau in smoothed RTTs.
    round_trips: f64,
    wait: Option<Wait>,
    /// When SND.UNA last advanced, which restarts the retransmission timer once the ACK is
    /// processed.
    advanced_at: Option<Instant>,
}

/// A deferral, which starts at the first duplicate ACK for the hole at SND.UNA.
#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Instant,
    /// The number of further duplicates after which it ends, if they are counted.
    left: u64,
}

impl Dcr {
    fn new(counts: bool, round_trips: Option<&str>) -> Result<Self, String> {
        let round_trips = round_trips.map_or(Some(1.0), |k| k.parse().ok());
        match round_trips.filter(|k| (0.1..=10.0).contains(k)) {
            Some(round_trips) => Ok(Self { counts, round_trips, wait: None, advanced_at: None }),
            None => Err("it takes 0.1 to 10 round trips, as in `dcr:timer:0.5`".to_owned()),
        }
    }

    /// Returns a deferral that starts now; `rto` is the time until the retransmission timer
    /// expires.
    fn begin(&self, view: &View<'_>, rto: Duration) -> Wait {
        let srtt = view.rtt.srtt().unwrap_or_default();
        // DCR 2.1: the retransmission timer must not expire.
        let tau = srtt.mul_f64(self.round_trips).min(rto.saturating_sub(BEFORE_RTO));
        // DCR 2.2: the window in segments, scaled to last for tau.
        let latest = view.rtt.latest().unwrap_or(srtt).as_secs_f64();
        let scale = if latest > 0.0 { srtt.as_secs_f64() / latest } else { 1.0 };
        let window = view.cwnd.scale(scale * self.round_trips).0 / view.smss.0.max(1);
        Wait { until: view.now + tau, left: window.max(FEWEST) }
    }
}

impl LossJudge for Dcr {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, out: &mut Raised) {
        if ack.acked > ByteCount::ZERO {
            // The hole is filled; the next hole has a deferral of its own.
            self.wait = None;
            self.advanced_at = Some(view.now);
            return;
        }
        if (!ack.duplicate && ack.delivered == ByteCount::ZERO)
            || view.slow_start
            || view.in_recovery
        {
            return;
        }
        if self.wait.is_none() {
            self.wait = Some(self.begin(view, view.rtt.rto()));
            // The response follows a round trip later, and the ACK of the retransmission another
            // round trip later.
            out.restart_rto();
        }
        let segments = ack.delivered.0.div_ceil(view.smss.0.max(1)).max(1);
        if let Some(wait) = self.wait.as_mut().filter(|wait| self.counts && wait.left > 0) {
            wait.left = wait.left.saturating_sub(segments);
            if wait.left == 0 {
                out.judge_again();
            }
        }
    }

    fn rule(
        &mut self,
        finding: &Finding,
        lost: &Transmission,
        view: &View<'_>,
        again: bool,
    ) -> Option<Ruling> {
        // DCR 2.2: slow start and further losses of the same window are handled as without DCR.
        if finding.certainty == Certainty::Suspect || view.slow_start || view.in_recovery {
            return None;
        }
        // The duplicates that started the deferral are for the hole at SND.UNA. A loss above it has
        // a deferral of its own, until it is the first and a duplicate starts the next deferral.
        let is_first = lost.range.start == view.board.snd_una();
        let wait = match self.wait.filter(|_| is_first) {
            Some(wait) => wait,
            None if again => return None,
            None => {
                // The retransmission timer runs for the hole at SND.UNA. It restarts when that hole
                // is filled, so it does not limit the deferral of a loss above it.
                let restarts = !is_first || self.advanced_at == Some(view.now);
                let left = view.rto_left.filter(|_| !restarts).unwrap_or_else(|| view.rtt.rto());
                self.begin(view, left)
            }
        };
        if is_first {
            self.wait = Some(wait);
        }
        let left = wait.until.since(view.now);
        if left.is_zero() || (self.counts && wait.left == 0) {
            return None;
        }
        let later = When::After(left);
        Some(Ruling { repair: later, reduce: later, cause: Cause::Reordering })
    }

    fn on_timeout(&mut self, _: &View<'_>) {
        self.wait = None;
    }
}

#[cfg(test)]
mod tests;
