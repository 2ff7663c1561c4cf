//! The emulated bottleneck of a real run, with a meter for every flow.

use std::collections::VecDeque;
use std::time::Duration;

use airtcp_link::{Counters, Link, LinkSpec, Way};
use airtcp_types::{Event, Instant, Node, Packet, PortId, SeqNumber};
use airtcp_wire::tcp::View;

use crate::LabError;
use crate::real::Rtt;
use crate::timeline::Timeline;

/// The port of the senders; the receivers are at port 1.
const SENDERS: PortId = PortId(0);

/// A link from senders at port 0 to receivers at port 1 that measures each flow where it enters the
/// link.
///
/// Our senders and the kernel's are measured in the same way. Flow `n` uses the TCP port
/// `first_port + n`. A flow can have its own delay, which is added to its ACKs behind the link.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    link: Link,
    first_port: u16,
    flows: Vec<Meter>,
    at_warm_up: Counters,
}

/// Measures the packets of a flow at the sender's end of the link.
#[derive(Debug)]
struct Meter {
    /// Delays the ACKs.
    delay: Option<Link>,
    /// One past the highest sequence number sent.
    highest: Option<SeqNumber>,
    segments: u64,
    retransmissions: u64,
    /// The latest timestamp sent.
    newest: Option<u32>,
    /// Timestamps that were not echoed yet, with the time when each was first sent.
    pending: VecDeque<(u32, Instant)>,
    rtts: Vec<f64>,
    /// The round-trip times and the payload that left the link, from the start on.
    timeline: Timeline,
}

/// The measurements of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Data segments, including retransmissions.
    pub(crate) segments: u64,
    /// Retransmitted data segments.
    pub(crate) retransmissions: u64,
    /// Round-trip times since the end of the warm-up.
    pub(crate) rtt: Rtt,
}

impl Bottleneck {
    /// Creates a link, and a meter for each flow with its own delay.
    ///
    /// # Errors
    ///
    /// [`LabError::Link`] if a description names a trace.
    pub(crate) fn new(
        forth: &LinkSpec,
        back: &LinkSpec,
        first_port: u16,
        delays: impl IntoIterator<Item = Duration>,
    ) -> Result<Self, LabError> {
        let flows = delays.into_iter().map(Meter::new).collect::<Result<_, _>>()?;
        let link = Link::new(forth, back)?;
        Ok(Self { link, first_port, flows, at_warm_up: Counters::default() })
    }

    /// Ends the warm-up: discards the round-trip times measured so far.
    pub(crate) fn end_warm_up(&mut self) {
        self.at_warm_up = *self.link.counters(Way::Forth);
        self.flows.iter_mut().for_each(|meter| meter.rtts.clear());
    }

    /// Returns the link's counters for data at the end of the warm-up, and now.
    pub(crate) fn counters(&self) -> [Counters; 2] {
        [self.at_warm_up, *self.link.counters(Way::Forth)]
    }

    /// Returns the measurements of each flow.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        let sent = |meter: &Meter| Sent {
            segments: meter.segments,
            retransmissions: meter.retransmissions,
            rtt: Rtt::of(meter.rtts.clone()),
        };
        self.flows.iter().map(sent).collect()
    }

    fn meter(&mut self, port: u16) -> Option<&mut Meter> {
        self.flows.get_mut(usize::from(port.checked_sub(self.first_port)?))
    }

    /// Returns the timeline of all flows together, from the start on.
    pub(crate) fn timeline(&self) -> Timeline {
        let mut all = Timeline::default();
        self.flows.iter().for_each(|meter| all.merge(&meter.timeline));
        all
    }

    fn on_data(&mut self, now: Instant, packet: &Packet) -> Option<()> {
        let segment = View::of(&packet.data)?;
        self.meter(segment.dst().port())?.on_data(now, &segment);
        Some(())
    }

    /// Records a packet that has crossed the link to the receivers.
    fn on_leaving(&mut self, now: Instant, packet: &Packet) -> Option<()> {
        let port = View::of(&packet.data)?.dst().port();
        self.meter(port)?.timeline.on_leaving(now, packet);
        Some(())
    }

    /// Handles an ACK that has crossed the link; returns it if the flow has no delay of its own.
    fn on_ack(&mut self, now: Instant, packet: Packet) -> Option<Packet> {
        let port = View::of(&packet.data).map(|segment| segment.src().port());
        let Some(meter) = port.and_then(|port| self.meter(port)) else { return Some(packet) };
        match &mut meter.delay {
            None => {
                meter.on_ack(now, &packet);
                Some(packet)
            }
            Some(delay) => {
                delay.handle_packet(now, SENDERS, packet);
                None
            }
        }
    }
}

impl Meter {
    fn new(delay: Duration) -> Result<Self, LabError> {
        let mut spec = LinkSpec::default();
        spec.delay.base = delay;
        let delay = if delay.is_zero() { None } else { Some(Link::new(&spec, &spec)?) };
        Ok(Self {
            delay,
            highest: None,
            segments: 0,
            retransmissions: 0,
            newest: None,
            pending: VecDeque::new(),
            rtts: Vec::new(),
            timeline: Timeline::default(),
        })
    }

    fn on_data(&mut self, now: Instant, segment: &View<'_>) {
        if segment.data_len() == 0 {
            return;
        }
        self.segments += 1;
        let (start, length) = (segment.fields().seq(), segment.data_len() as u32);
        match self.highest {
            Some(highest) if start < highest => self.retransmissions += 1,
            _ => self.highest = Some(start + length),
        }
        let Some(stamps) = segment.options().and_then(|options| options.timestamps) else { return };
        if self.newest.is_none_or(|newest| stamps.val.wrapping_sub(newest) as i32 > 0) {
            self.newest = Some(stamps.val);
            self.pending.push_back((stamps.val, now));
        }
    }

    /// Measures the round-trip time with the first echo of each timestamp.
    // RFC 7323 section 4.3: the echoed timestamp is that of the segment that advanced the window,
    // so an ACK for a filled hole echoes the retransmission.
    fn on_ack(&mut self, now: Instant, packet: &Packet) {
        let options = View::of(&packet.data).and_then(|segment| segment.options());
        let Some(stamps) = options.and_then(|options| options.timestamps) else { return };
        while let Some((stamp, at)) = self.pending.front().copied() {
            if (stamps.ecr.wrapping_sub(stamp) as i32) < 0 {
                break;
            }
            self.pending.pop_front();
            if stamp == stamps.ecr {
                let rtt = now.since(at).as_secs_f64();
                self.rtts.push(rtt);
                self.timeline.on_rtt(now.since(Instant::ZERO).as_secs_f64(), rtt);
            }
        }
    }
}

impl Node for Bottleneck {
    fn handle_packet(&mut self, now: Instant, port: PortId, packet: Packet) {
        if port == SENDERS {
            self.on_data(now, &packet);
        }
        self.link.handle_packet(now, port, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.link.handle_timeout(now);
        self.flows.iter_mut().filter_map(|m| m.delay.as_mut()).for_each(|d| d.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(PortId, Packet)> {
        while let Some((port, packet)) = self.link.poll_transmit(now) {
            if port != SENDERS {
                self.on_leaving(now, &packet);
                return Some((port, packet));
            }
            if let Some(packet) = self.on_ack(now, packet) {
                return Some((port, packet));
            }
        }
        self.flows.iter_mut().find_map(|meter| {
            let (_, packet) = meter.delay.as_mut()?.poll_transmit(now)?;
            meter.on_ack(now, &packet);
            Some((SENDERS, packet))
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let delays = self.flows.iter().filter_map(|meter| meter.delay.as_ref()?.poll_timeout());
        delays.chain(self.link.poll_timeout()).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.link.poll_event()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use airtcp_types::FlowId;
    use airtcp_wire::options::{TcpOptions, Timestamps};
    use airtcp_wire::tcp::{Header, emit};

    use super::*;
    use crate::feed;

    const PORT: u16 = 5001;

    fn bottleneck(delays: &[u64]) -> Bottleneck {
        let spec = feed::spec("delay 10ms").unwrap();
        let delays = delays.iter().copied().map(Duration::from_millis);
        Bottleneck::new(&spec, &spec, PORT, delays).unwrap()
    }

    fn segment(is_data: bool, flow: u16, seq: u32, stamps: (u32, u32)) -> Packet {
        let left: SocketAddr = "10.0.0.1:40000".parse().unwrap();
        let right = SocketAddr::new("10.0.0.2".parse().unwrap(), PORT + flow);
        let (local, remote) = if is_data { (left, right) } else { (right, left) };
        let timestamps = Some(Timestamps { val: stamps.0, ecr: stamps.1 });
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        let header = Header { seq: SeqNumber(seq), options, ..Header::default() };
        emit(&FlowId { local, remote }, 64, &header, if is_data { &[7; 100] } else { &[] })
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Returns the times of all packets that leave by port 0 until `end`.
    fn drain(node: &mut Bottleneck, end: Instant) -> Vec<Instant> {
        let mut times = Vec::new();
        while let Some(due) = node.poll_timeout().filter(|due| *due <= end) {
            node.handle_timeout(due);
            while let Some((port, _)) = node.poll_transmit(due) {
                times.extend((port == SENDERS).then_some(due));
            }
        }
        times
    }

    #[test]
    fn a_round_trip_is_measured_once_by_the_first_echo_of_a_stamp() {
        let mut node = bottleneck(&[0]);
        for (at, seq, stamp) in [(0, 0, 1), (0, 100, 1), (5, 200, 6)] {
            node.handle_packet(ms(at), PortId(0), segment(true, 0, seq, (stamp, 0)));
        }
        for (at, echo) in [(12, 1), (13, 1), (14, 6)] {
            node.handle_packet(ms(at), PortId(1), segment(false, 0, 0, (9, echo)));
        }
        assert_eq!(drain(&mut node, ms(100)), [ms(22), ms(23), ms(24)]);
        // A timestamp that was echoed already does not give another sample.
        node.handle_packet(ms(101), PortId(0), segment(true, 0, 300, (6, 0)));
        node.handle_packet(ms(102), PortId(1), segment(false, 0, 0, (9, 6)));
        drain(&mut node, ms(200));
        let rtt = node.sent()[0].rtt;
        assert_eq!((rtt.samples, rtt.min, rtt.p95), (2, 0.019, 0.022));
    }

    #[test]
    fn what_begins_below_the_highest_number_was_sent_again() {
        let mut node = bottleneck(&[0, 0]);
        // The sequence numbers wrap between the first two segments.
        for seq in [u32::MAX - 99, 0, u32::MAX - 99, 100, 0] {
            node.handle_packet(ms(0), PortId(0), segment(true, 1, seq, (1, 0)));
        }
        let sent = node.sent();
        assert_eq!([sent[0].segments, sent[1].segments, sent[1].retransmissions], [0, 5, 2]);
    }

    #[test]
    fn what_is_counted_begins_with_the_end_of_the_warm_up() {
        let mut node = bottleneck(&[0]);
        for at in [0, 100] {
            node.handle_packet(ms(at), PortId(0), segment(true, 0, 0, (at as u32 + 1, 0)));
            node.handle_packet(ms(at + 15), PortId(1), segment(false, 0, 0, (9, at as u32 + 1)));
            drain(&mut node, ms(at + 50));
            if at == 0 {
                assert_eq!(node.sent()[0].rtt.p95, 0.025);
                node.end_warm_up();
            }
        }
        assert_eq!(node.sent()[0].rtt.samples, 1);
        assert_eq!(node.counters().map(|counters| counters.received), [1, 2]);
    }

    #[test]
    fn acks_of_a_flow_wait_for_its_own_delay() {
        let mut node = bottleneck(&[0, 80]);
        for flow in [0, 1] {
            node.handle_packet(ms(0), PortId(0), segment(true, flow, 0, (1, 0)));
            node.handle_packet(ms(10), PortId(1), segment(false, flow, 0, (9, 1)));
        }
        assert_eq!(drain(&mut node, ms(200)), [ms(20), ms(100)]);
        assert_eq!(node.sent().iter().map(|sent| sent.rtt.p95).collect::<Vec<_>>(), [0.02, 0.1]);
    }

    #[test]
    fn what_is_no_segment_of_a_flow_passes() {
        let mut node = bottleneck(&[50]);
        node.handle_packet(ms(0), PortId(1), Packet::new(vec![7; 30]));
        node.handle_packet(ms(0), PortId(1), segment(false, 9, 0, (9, 1)));
        assert_eq!(drain(&mut node, ms(100)), [ms(10), ms(10)]);
    }
}
