//! `spike`: a loss without a queue, at a share that does not depend on the load, is the link's.

mod departures;
mod shares;

use std::time::Duration;

use airtcp_types::Rate;

use super::{Cause, LossJudge, Raised, Ruling, When};
use crate::detection::{Certainty, Finding, earlier_arrived};
use crate::registry::{Entry, TakesOver, WireNeeds, no_parameter};
use crate::view::{AckView, View};

use departures::{Departures, Group};
use shares::Shares;

pub(crate) const SPIKE: Entry<dyn LossJudge> = Entry {
    name: "spike",
    parameter: "",
    example: None,
    summary: "losses without a queue, as frequent at low loads as at high ones, leave the window alone",
    source: "Cen, Cosman, Voelker 2003",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    make: |parameter, _| no_parameter(parameter).map(|()| Box::new(Spike::default()) as _),
};

const RANDOM: Ruling = Ruling { repair: When::Now, reduce: When::Never, cause: Cause::Random };

/// So many losses in excess of those expected are chance. With [`Shares::allowed`] a row of random
/// losses passes it once in 2^12, as a cumulative sum of log-likelihood ratios says.
const EXCESS: f64 = 12.0;
/// A queueing delay of so much comes from timers.
const NOISE: Duration = Duration::from_millis(1);
/// A queue of so many packets is nobody's fault.
const PACKETS: u64 = 3;

/// The sender's form of Spike: random losses are told from congestion by the round-trip times of
/// transmissions that left just before and after, and by the bytes in flight.
#[derive(Debug, Default)]
pub struct Spike {
    departures: Departures,
    shares: Shares,
    /// Losses that may still be ruled random.
    budget: f64,
    /// The share of random losses at the present load.
    share: f64,
    fastest: Rate,
}

impl Spike {
    /// The queueing delay in which the path counts as idle.
    fn idle(&self, view: &View<'_>, base: Duration) -> Duration {
        let packets = if self.fastest > Rate::ZERO {
            self.fastest.time_for(view.smss * PACKETS)
        } else {
            Duration::ZERO
        };
        (NOISE + packets).min(base / 8)
    }

    fn settle(&mut self, group: &Group, wait: Duration, view: &View<'_>, base: Duration) {
        if wait > base / 4 {
            return;
        }
        if wait <= self.idle(view, base) {
            self.shares.add(view.now, view.rtt.srtt().unwrap_or_default(), group);
        }
        let depth = EXCESS * self.shares.dispersion() * self.shares.confidence(group.load);
        let earned = self.shares.allowed(group.load) * f64::from(group.sent);
        self.budget = (self.budget + earned).min(depth);
        self.share = self.shares.share(group.load);
    }
}

impl LossJudge for Spike {
    fn on_ack(&mut self, ack: &AckView<'_>, view: &View<'_>, _: &mut Raised) {
        let Some(base) = view.rtt.min() else { return };
        if let Some(rate) = ack.rate.and_then(|rate| rate.rate()) {
            self.fastest = self.fastest.max(rate);
        }
        if view.slow_start {
            self.departures.slow_start(view.now);
        }
        for told in ack.newly {
            if !earlier_arrived(told, ack, view) {
                let rtt = (told.resent == 0).then(|| ack.now.since(told.sent_at));
                self.departures.on_delivered(told, rtt, view);
            }
        }
        while let Some((group, rtt)) = self.departures.next_settled(view) {
            if let Some(rtt) = rtt {
                self.settle(&group, rtt.saturating_sub(base), view, base);
            }
        }
    }

    fn rule(&mut self, finding: &Finding, view: &View<'_>, again: bool) -> Option<Ruling> {
        if finding.certainty == Certainty::Suspect {
            return None;
        }
        let lost = view.board.get(finding.tx)?;
        let base = view.rtt.min()?;
        let rtt = self.departures.on_lost(&lost, !again)?;
        if rtt.saturating_sub(base) > base / 4 || self.budget < 1.0 {
            return None;
        }
        self.budget -= 1.0;
        Some(RANDOM)
    }

    fn random_share(&self) -> f64 {
        if self.budget < 1.0 { 0.0 } else { self.share }
    }

    fn on_timeout(&mut self, _: &View<'_>) {
        self.departures.clear();
        self.budget = 0.0;
    }
}
