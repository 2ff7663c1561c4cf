//! Results of a run.

use std::collections::BTreeMap;

use airtcp_basestation::Policy;
use airtcp_basestation::station::StationCounters;
use airtcp_link::Counters;
use airtcp_link::radio::AirCounters;
use serde::Serialize;

/// The result of one run. Its JSON is the same, byte for byte, for the same scenario and seed.
///
/// Times are in seconds, rates in bit/s.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunResult {
    /// The scenario's name.
    pub name: String,
    /// The seed of the run.
    pub seed: u64,
    /// All flows and their copies, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// All directions of all links.
    pub links: Vec<LinkResult>,
    /// The base station, if there is one; with several, the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub station: Option<StationResult>,
    /// Jain's index of the flows' goodput: 1 if all are equal, 1/n if one flow has all goodput.
    pub jain: f64,
    /// The number of timers and packets that were processed.
    pub events: u64,
    /// The number of packets that hosts sent.
    pub packets: u64,
    /// The time of the last packet.
    pub end: f64,
}

/// The result of one flow; the sum over its connections.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowResult {
    /// The name in the scenario.
    pub name: String,
    /// The number of the copy, starting from zero.
    pub copy: u32,
    /// The sender: TCP's strategies, or RRTP's kind and profile.
    pub combination: String,
    /// Payload bytes that either end received and read in order.
    pub bytes: u64,
    /// The goodput in bit/s: payload that arrived between the end of the warm-up and the end of the
    /// run, in any order, each byte counted once.
    pub goodput: f64,
    /// Data segments sent by both ends, including retransmissions.
    pub segments_sent: u64,
    /// The number of retransmissions in `segments_sent`.
    pub retransmissions: u64,
    /// The number of spurious retransmissions: see [the crate's page](crate#figures).
    pub spurious: u64,
    /// Retransmission time-outs; `None` for RRTP, which does not count them.
    pub timeouts: Option<u64>,
    /// Transmissions marked as lost, except by time-outs.
    pub lost: u64,
    /// Reductions of the congestion window, except by time-outs; `None` for RRTP.
    pub reductions: Option<u64>,
    /// The duration of recoveries: see [the crate's page](crate#figures).
    pub recoveries: Option<Summary>,
    /// Round-trip times as measured by the sender.
    pub rtt: Summary,
    /// When all data had arrived, since the flow's start; `None` for a flow without an end, and for
    /// one that did not finish.
    pub finished: Option<f64>,
    /// The duration of exchanges: a request with its response, a message with its echo, or a short
    /// flow.
    pub exchanges: Summary,
    /// Connections that ended abnormally.
    pub broken: u64,
    /// Results of RRTP; `None` for TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rrtp: Option<RrtpResult>,
    /// The raw samples, if the scenario requests them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

/// Results of RRTP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RrtpResult {
    /// Received data packets, each counted once.
    pub packets_received: u64,
    /// Losses that the receiver classified as congestion.
    pub congestive_losses: u64,
    /// Losses that the receiver classified as wireless.
    pub wireless_losses: u64,
    /// The rate limit of the sender at the end, in bit/s of IP packets.
    pub rate: f64,
}

/// The samples behind the summaries.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Samples {
    /// Round-trip times: the time of the measurement, and the value.
    pub rtt: Vec<(f64, f64)>,
    /// Recoveries: their start and their duration.
    pub recoveries: Vec<(f64, f64)>,
    /// Exchanges: their start and their duration.
    pub exchanges: Vec<(f64, f64)>,
}

/// The result of one direction of a link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkResult {
    /// The link's name.
    pub name: String,
    /// `forth` or `back`.
    pub way: &'static str,
    /// Its packet counters.
    pub counters: Counters,
    /// Its packet counters at the end of the warm-up.
    #[serde(skip)]
    pub at_warm_up: Counters,
    /// Dropped and lost packets, by cause.
    pub drops: BTreeMap<&'static str, u64>,
    /// The mean queue length in packets, over time.
    pub queue_mean: f64,
    /// The maximum queue length in packets.
    pub queue_max: u64,
    /// The utilization of its rate; `None` without a rate.
    pub utilisation: Option<f64>,
}

/// The result of a base station.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StationResult {
    /// Its policy.
    pub policy: Policy,
    /// Its link-layer retransmission.
    pub arq: &'static str,
    /// Its counters.
    pub counters: StationCounters,
    /// The radio's results: towards the mobiles, and from them.
    pub radio: [RadioResult; 2],
    /// Its peak memory.
    pub memory: StationMemory,
}

/// The result of one direction of a radio.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RadioResult {
    /// `forth`, towards the mobiles, or `back`.
    pub way: &'static str,
    /// Its packet counters, after all tries.
    pub counters: Counters,
    /// The frame counters of its end.
    pub air: AirCounters,
    /// The loss rate after all tries while the mobile was in reach.
    pub residual_loss: f64,
    /// The share of reordered packets.
    pub reordered: f64,
}

impl RadioResult {
    /// Calculates the result from the counters of one end.
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
    /// Packets queued for the radio.
    pub queued: u64,
    /// Packets held until a mobile returns.
    pub held: u64,
    /// The total.
    pub all: u64,
}

impl StationMemory {
    /// The sum of each field: an upper bound of the simultaneous use of both stations.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            flows: self.flows + other.flows,
            cached: self.cached + other.cached,
            queued: self.queued + other.queued,
            held: self.held + other.held,
            all: self.all + other.all,
        }
    }

    /// The maximum of each field.
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

/// A summary of values.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Summary {
    /// The number of values; if zero, all fields are zero.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their sample standard deviation; zero for one value.
    pub sd: f64,
}

/// Returns Jain's fairness index: the square of the sum over n times the sum of squares; 1 if all
/// values are zero.
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
