//! Throughput and round-trip time over time.

use std::time::Duration;

use airtcp_trace::figure::Point;
use airtcp_types::{Crossing, Instant, NodeId, Observer, Packet};
use airtcp_wire::tcp::View;

use crate::draw;

/// The length of a bin, in seconds: each point is the mean over a bin.
pub(crate) const BIN: f64 = 0.2;
/// The bottleneck of a simulated dumbbell: it is created right after the left router.
const BOTTLENECK: NodeId = NodeId(1);

/// The payload that left a link, and the round-trip times, from the start on.
///
/// As an observer, it counts the packets that leave the bottleneck of a simulated dumbbell.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Timeline {
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Bin {
    bytes: u64,
    rtts: u32,
    /// Seconds.
    sum_of_rtts: f64,
}

impl Timeline {
    /// Counts the payload of a packet that left the link.
    pub(crate) fn on_leaving(&mut self, now: Instant, packet: &Packet) {
        let payload = View::of(&packet.data).map_or(0, |segment| segment.data_len());
        if payload > 0 {
            self.bin(now.since(Instant::ZERO).as_secs_f64()).bytes += payload as u64;
        }
    }

    /// Counts a round-trip time; both arguments are in seconds.
    pub(crate) fn on_rtt(&mut self, at: f64, rtt: f64) {
        let bin = self.bin(at);
        bin.rtts += 1;
        bin.sum_of_rtts += rtt;
    }

    /// Adds the counts of another timeline.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.bins.resize(self.bins.len().max(other.bins.len()), Bin::default());
        for (bin, other) in self.bins.iter_mut().zip(&other.bins) {
            bin.bytes += other.bytes;
            bin.rtts += other.rtts;
            bin.sum_of_rtts += other.sum_of_rtts;
        }
    }

    /// Returns the throughput in Mbit/s over the time in seconds.
    pub(crate) fn throughput(&self) -> Vec<Point> {
        self.points(|bin| Some(bin.bytes as f64 * 8e-6 / BIN))
    }

    /// Returns the mean round-trip time in ms over the time in seconds; bins without samples give
    /// no point.
    pub(crate) fn rtt(&self) -> Vec<Point> {
        self.points(|bin| (bin.rtts > 0).then(|| bin.sum_of_rtts * 1e3 / f64::from(bin.rtts)))
    }

    /// Returns the mean round-trip time in ms from `from` on, averaged over time, not over samples:
    /// a sender has more samples when packets are reordered.
    pub(crate) fn mean_rtt(&self, from: Duration) -> f64 {
        let counted = self.rtt().into_iter().filter(|point| point.x >= from.as_secs_f64());
        let values: Vec<_> = counted.map(|point| point.y).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }

    /// Each point is in the middle of its bin.
    fn points(&self, value: impl Fn(&Bin) -> Option<f64>) -> Vec<Point> {
        let bins = (0u32..).zip(&self.bins);
        bins.filter_map(|(n, bin)| Some(draw::point((f64::from(n) + 0.5) * BIN, value(bin)?)))
            .collect()
    }

    fn bin(&mut self, at: f64) -> &mut Bin {
        let index = (at / BIN) as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, Bin::default());
        }
        &mut self.bins[index]
    }
}

impl Observer for Timeline {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        if node == BOTTLENECK && crossing == Crossing::Out {
            self.on_leaving(now, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use airtcp_sim::{Scenario, Topology, Wire};
    use airtcp_types::FlowId;
    use airtcp_wire::tcp::{Header, emit};

    use super::*;

    fn packet(payload: usize) -> Packet {
        let [local, remote] =
            ["10.0.0.1:40000", "10.0.0.2:5001"].map(|at| at.parse::<SocketAddr>().unwrap());
        emit(&FlowId { local, remote }, 64, &Header::default(), &vec![7; payload])
    }

    fn values(points: &[Point]) -> Vec<(f64, f64)> {
        let round = |value: f64| (value * 1e6).round() / 1e6;
        points.iter().map(|point| (round(point.x), round(point.y))).collect()
    }

    #[test]
    fn a_point_is_the_mean_of_its_bin() {
        let (mut one, mut other) = (Timeline::default(), Timeline::default());
        // ACKs are not counted.
        for (millis, payload) in [(0, 1_000), (199, 1_000), (450, 500), (450, 0)] {
            one.on_leaving(Instant::from_millis(millis), &packet(payload));
        }
        other.on_leaving(Instant::from_millis(700), &packet(250));
        for (at, rtt) in [(0.1, 0.020), (0.19, 0.040), (0.5, 0.050)] {
            other.on_rtt(at, rtt);
        }
        one.merge(&other);
        assert_eq!(values(&one.throughput()), [(0.1, 0.08), (0.3, 0.0), (0.5, 0.02), (0.7, 0.01)]);
        assert_eq!(values(&one.rtt()), [(0.1, 30.0), (0.5, 50.0)]);
        let means = [0, 400, 600].map(|from| one.mean_rtt(Duration::from_millis(from)).round());
        assert_eq!(means, [40.0, 50.0, 0.0]);
    }

    #[test]
    fn the_bottleneck_of_a_dumbbell_is_where_it_is_looked_for() {
        let bottleneck = Wire::both("rate 1mbit delay 1ms".parse().unwrap());
        let topology = Topology::Dumbbell { access: Wire::default(), bottleneck };
        let mut scenario = Scenario::new("one", topology);
        scenario.flows.push(airtcp_sim::FlowSpec::new("rack/cubic".parse().unwrap()));
        let simulation = airtcp_sim::Simulation::new(&scenario).unwrap();
        assert_eq!(simulation.nodes()[BOTTLENECK.0 as usize].0, "bottleneck");
    }
}
