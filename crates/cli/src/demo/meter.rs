//! Measures the data segments and round-trip times of a sender of any stack from its packets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airtcp_testbed::dumbbell::Dumbbell;
use airtcp_types::{Crossing, Event, Instant, NodeId, Observer, Packet, SeqNumber};
use airtcp_wire::{ip, tcp};

/// The maximum number of remembered clock values. At a millisecond each, these are minutes.
const MOST: usize = 1 << 18;
/// The minimum interval between two points of the progress.
const LOOK: Duration = Duration::from_millis(20);

/// Observes the left host of a dumbbell, which sends, and passes all packets and events on to
/// another observer.
#[derive(Default)]
pub(super) struct Meter {
    other: Option<Arc<Mutex<dyn Observer + Send>>>,
    data: u64,
    /// The time at which each value of the sender's clock was first sent.
    left: BTreeMap<u32, Instant>,
    acknowledged: Option<SeqNumber>,
    /// Bytes acknowledged since the first ACK, and when; points are at least [`LOOK`] apart.
    progress: Vec<(Instant, u64)>,
    bytes: u64,
    samples: u32,
    sum: Duration,
    smallest: Option<Duration>,
}

impl Meter {
    pub(super) fn new(other: Option<Arc<Mutex<dyn Observer + Send>>>) -> Self {
        Self { other, ..Self::default() }
    }

    /// Returns the number of data segments sent, including retransmissions.
    pub(super) const fn data_segments(&self) -> u64 {
        self.data
    }

    /// Returns the mean and the smallest round-trip time.
    ///
    /// An ACK of new data gives a sample: the time since the echoed clock value was first sent (RFC
    /// 7323 section 4.1). The resolution is that of the sender's clock.
    pub(super) fn rtt(&self) -> Option<(Duration, Duration)> {
        Some((self.sum.checked_div(self.samples)?, self.smallest?))
    }

    /// Returns times, and the bytes acknowledged by then.
    pub(super) fn progress(&self) -> &[(Instant, u64)] {
        &self.progress
    }

    fn look(&mut self, now: Instant, crossing: Crossing, packet: &Packet) -> Option<()> {
        let datagram = ip::parse(&packet.data).ok().filter(|d| d.protocol == ip::TCP)?;
        let (_, _, segment) = tcp::parse(datagram.payload).ok()?;
        self.data += u64::from(crossing == Crossing::Out && !segment.payload.is_empty());
        let is_new = crossing == Crossing::In && segment.flags.ack && self.is_new(now, segment.ack);
        let stamps = segment.options.timestamps?;
        if crossing == Crossing::Out {
            if self.left.len() < MOST {
                self.left.entry(stamps.val).or_insert(now);
            }
            return Some(());
        }
        if is_new {
            let rtt = now.since(*self.left.get(&stamps.ecr)?);
            self.samples += 1;
            self.sum += rtt;
            self.smallest = Some(self.smallest.map_or(rtt, |smallest| smallest.min(rtt)));
        }
        Some(())
    }

    /// Counts the acknowledged bytes, and returns whether there are new ones.
    fn is_new(&mut self, now: Instant, ack: SeqNumber) -> bool {
        let news = self.acknowledged.map_or(1, |before| ack.distance(before));
        if news <= 0 {
            return false;
        }
        // The first ACK acknowledges the SYN.
        self.bytes += if self.acknowledged.is_some() { u64::from(news.unsigned_abs()) } else { 0 };
        self.acknowledged = Some(ack);
        if self.progress.last().is_none_or(|(last, _)| now.since(*last) >= LOOK) {
            self.progress.push((now, self.bytes));
        }
        true
    }
}

impl Observer for Meter {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        if node == Dumbbell::LEFT {
            self.look(now, crossing, packet);
        }
        if let Some(other) = &self.other
            && let Ok(mut other) = other.lock()
        {
            other.on_packet(now, node, crossing, packet);
        }
    }

    fn on_event(&mut self, node: NodeId, event: &Event) {
        if let Some(other) = &self.other
            && let Ok(mut other) = other.lock()
        {
            other.on_event(node, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::FlowId;
    use airtcp_wire::options::{TcpOptions, Timestamps};
    use airtcp_wire::tcp::{Flags, Header, emit};

    use super::*;

    #[test]
    fn data_is_counted_and_an_ack_of_new_data_gives_a_round_trip_time() {
        let (left, right) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        let mut meter = Meter::default();
        let mut see = |at, crossing, ack, (val, ecr), length| {
            let flow = match crossing {
                Crossing::Out => FlowId { local: left, remote: right },
                _ => FlowId { local: right, remote: left },
            };
            let options =
                TcpOptions { timestamps: Some(Timestamps { val, ecr }), ..TcpOptions::default() };
            let header = Header {
                seq: SeqNumber(7),
                ack: Some(SeqNumber(ack)),
                flags: Flags::ACK,
                window: 100,
                options,
            };
            let packet = emit(&flow, 64, &header, &vec![0; length]);
            meter.on_packet(Instant::from_millis(at), Dumbbell::LEFT, crossing, &packet);
        };
        see(10, Crossing::Out, 1, (500, 0), 100);
        see(20, Crossing::Out, 1, (510, 0), 100);
        see(50, Crossing::In, 100, (9, 500), 0);
        // A duplicate ACK, an unknown echo, and an ACK that wraps.
        see(60, Crossing::In, 100, (9, 500), 0);
        see(60, Crossing::In, 200, (9, 501), 0);
        see(80, Crossing::In, 207, (9, 510), 0);
        assert_eq!(meter.data_segments(), 2);
        // Points within 20 ms of the last one are left out.
        assert_eq!(
            meter.progress(),
            [(Instant::from_millis(50), 0), (Instant::from_millis(80), 107)]
        );
        let (mean, smallest) = meter.rtt().unwrap();
        assert_eq!((mean, smallest), (Duration::from_millis(50), Duration::from_millis(40)));
        assert_eq!(Meter::default().rtt(), None);
    }
}
