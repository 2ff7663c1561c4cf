//! What came of a run.

use std::collections::BTreeMap;

use airtcp_basestation::Policy;
use airtcp_basestation::station::StationCounters;
use airtcp_link::Counters;
use airtcp_link::radio::AirCounters;
use serde::Serialize;

/// What came of one run. Its JSON is the same, byte for byte, for the same scenario and seed.
///
/// Times are in seconds, rates in bit/s.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunResult {
    /// The scenario.
    pub name: String,
    /// The seed it ran with.
    pub seed: u64,
    /// Every flow and copy, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// Every direction of every link.
    pub links: Vec<LinkResult>,
    /// The base station, if there is one; of several, the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub station: Option<StationResult>,
    /// Jain's index of the flows' goodput: 1 if all are equal, 1/n if one has everything.
    pub jain: f64,
    /// Deadlines worked and packets handed from node to node.
    pub events: u64,
    /// Packets that hosts sent.
    pub packets: u64,
    /// When a packet last moved.
    pub end: f64,
}

/// What came of one flow. Where it had several connections, this is their sum.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowResult {
    /// The name in the scenario.
    pub name: String,
    /// Which copy, from zero.
    pub copy: u32,
    /// The sender: TCP's strategies, or RRTP's kind and profile.
    pub combination: String,
    /// Payload bytes that arrived and were read in order, at either end.
    pub bytes: u64,
    /// Payload bytes that arrived from the warm-up's end to the run's, each once and in any order, over that interval:
    /// bit/s.
    pub goodput: f64,
    /// Data segments sent by both ends, those sent again included.
    pub segments_sent: u64,
    /// Of these, those sent again.
    pub retransmissions: u64,
    /// Of these, those that were not needed: see [the crate's page](crate#figures).
    pub spurious: u64,
    /// Times the retransmission timer ran out; `None` of RRTP, as are the two others of TCP.
    pub timeouts: Option<u64>,
    /// Transmissions found lost, time-outs apart.
    pub lost: u64,
    /// Reductions of the congestion window, time-outs apart.
    pub reductions: Option<u64>,
    /// How long recoveries took: see [the crate's page](crate#figures).
    pub recoveries: Option<Summary>,
    /// Round-trip times, as the sender measured them.
    pub rtt: Summary,
    /// When all of it had arrived, from the flow's start; `None` for one that has no end or did not come
    /// to it.
    pub finished: Option<f64>,
    /// How long exchanges took: a request with its response, a message back and forth, a short flow.
    pub exchanges: Summary,
    /// Connections that ended otherwise than they should.
    pub broken: u64,
    /// What only RRTP has; `None` of TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rrtp: Option<RrtpResult>,
    /// Everything that was summed up, if the scenario asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

/// What only RRTP has.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RrtpResult {
    /// Data packets that came, each once.
    pub packets_received: u64,
    /// Losses that the receiver judged to be of congestion.
    pub congestive_losses: u64,
    /// Losses that the receiver judged to be of the link.
    pub wireless_losses: u64,
    /// What the sender sent at most at the end, counted in IP packets: bit/s.
    pub rate: f64,
}

/// What summaries are made of.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Samples {
    /// Round-trip times: when measured, and the value.
    pub rtt: Vec<(f64, f64)>,
    /// Recoveries: when begun, and how long they took.
    pub recoveries: Vec<(f64, f64)>,
    /// Exchanges: when begun, and how long they took.
    pub exchanges: Vec<(f64, f64)>,
}

/// What one direction of a link did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkResult {
    /// The link's name.
    pub name: String,
    /// `forth` or `back`.
    pub way: &'static str,
    /// What became of its packets.
    pub counters: Counters,
    /// Of this, what had become of them when the warm-up ended.
    #[serde(skip)]
    pub at_warm_up: Counters,
    /// Packets that are no more, by cause.
    pub drops: BTreeMap<&'static str, u64>,
    /// Packets that waited, on average over time.
    pub queue_mean: f64,
    /// The most packets that waited.
    pub queue_max: u64,
    /// The share of the time in which its rate was in use; `None` without a rate.
    pub utilisation: Option<f64>,
}

/// What a base station did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StationResult {
    /// What it made of flows.
    pub policy: Policy,
    /// What was done about lost frames.
    pub arq: &'static str,
    /// What it counted.
    pub counters: StationCounters,
    /// Its radio: towards the mobiles, and from them.
    pub radio: [RadioResult; 2],
    /// The most memory it took.
    pub memory: StationMemory,
}

/// What one direction of a radio did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RadioResult {
    /// `forth`, towards the mobiles, or `back`.
    pub way: &'static str,
    /// What became of its packets, all tries made.
    pub counters: Counters,
    /// What its end did on the air.
    pub air: AirCounters,
    /// The share of the packets that had their tries while the mobile was in reach, and were lost all the same.
    pub residual_loss: f64,
    /// The share of the packets that arrived behind one that came later.
    pub reordered: f64,
}

impl RadioResult {
    /// Of what one end counted.
    pub(crate) fn of(way: &'static str, counters: Counters, air: AirCounters) -> Self {
        let tried = counters.forwarded + counters.channel_lost;
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        let residual_loss = share(counters.channel_lost, tried);
        let reordered = share(counters.reordered, counters.forwarded);
        Self { way, counters, air, residual_loss, reordered }
    }
}

/// Memory of a base station, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct StationMemory {
    /// The state of flows.
    pub flows: u64,
    /// Copies of packets.
    pub cached: u64,
    /// Packets that wait for the air.
    pub queued: u64,
    /// Packets that wait for a mobile to come back.
    pub held: u64,
    /// All of it together.
    pub all: u64,
}

impl StationMemory {
    /// The sum of each: no less than what both ever took at one time.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            flows: self.flows + other.flows,
            cached: self.cached + other.cached,
            queued: self.queued + other.queued,
            held: self.held + other.held,
            all: self.all + other.all,
        }
    }

    /// The larger of each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            flows: self.flows.max(other.flows),
            cached: self.cached.max(other.cached),
            queued: self.queued.max(other.queued),
            held: self.held.max(other.held),
            all: self.all.max(other.all),
        }
    }
}

/// Some values in short.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Summary {
    /// How many; the others are zero if this is.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their standard deviation, as of a sample; zero for one.
    pub sd: f64,
}

/// Jain's fairness index: the square of the sum over n times the sum of squares. Nobody having anything is fair.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_goes_from_one_nth_to_one() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
    }
}
