//! Watches the sequence numbers that a host sends, and the ACKs that reach it.

use airtcp_trace::figure::{Figure, Point, Style};
use airtcp_types::{Crossing, Instant, NodeId, Observer, Packet};
use airtcp_wire::tcp::{View, flag};

use crate::draw;

/// The time between two points of a line, in seconds.
const STEP: f64 = 0.02;

/// The sequence numbers of one connection that a host opens over IPv4, over time. It has less than
/// 4 GiB of data.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    host: NodeId,
    /// The time of the SYN, and the number of the first byte of data.
    begin: Option<(Instant, u32)>,
    /// The bytes sent and acknowledged at the end of each step.
    sent: Vec<u32>,
    acked: Vec<u32>,
    /// The time in seconds and the end of each retransmission.
    again: Vec<(f64, u32)>,
}

impl Sequence {
    pub(super) const fn new(host: NodeId) -> Self {
        Self { host, begin: None, sent: Vec::new(), acked: Vec::new(), again: Vec::new() }
    }

    /// Draws the time-sequence graph of the first `seconds`.
    pub(super) fn graph(&self, title: String, seconds: f64) -> Figure {
        let mb = |bytes: u32| f64::from(bytes) / 1e6;
        let line = |steps: &[u32]| -> Vec<Point> {
            let points = (1u32..).zip(steps).map(|(step, to)| (f64::from(step) * STEP, *to));
            let drawn = points.take_while(|(at, _)| *at <= seconds);
            drawn.map(|(at, to)| draw::point(at, mb(to))).collect()
        };
        let again = self.again.iter().filter(|(at, _)| *at <= seconds);
        let again = again.map(|(at, end)| draw::point(*at, mb(*end))).collect();
        let series = [
            draw::series("acknowledged", Style::Steps, line(&self.acked)),
            draw::series("sent", Style::Steps, line(&self.sent)),
            draw::series("sent again", Style::Marks, again),
        ];
        draw::figure(title, draw::linear("time, s"), draw::linear("sequence number, MB"), series)
    }

    fn see(&mut self, now: Instant, crossing: Crossing, data: &[u8]) -> Option<()> {
        let segment = View::of(data)?;
        let fields = segment.fields();
        let Some((start, first)) = self.begin else {
            if crossing == Crossing::Out && fields.has(flag::SYN) {
                self.begin = Some((now, fields.seq().0.wrapping_add(1)));
            }
            return None;
        };
        let at = now.since(start).as_secs_f64();
        let length = segment.data_len() as u32;
        match crossing {
            Crossing::Out if length > 0 => {
                let end = fields.seq().0.wrapping_sub(first).wrapping_add(length);
                if self.sent.last().is_some_and(|highest| end <= *highest) {
                    self.again.push((at, end));
                } else {
                    raise(&mut self.sent, at, end);
                }
            }
            Crossing::In if fields.has(flag::ACK) => {
                raise(&mut self.acked, at, fields.ack().0.wrapping_sub(first));
            }
            _ => {}
        }
        Some(())
    }
}

/// Raises a line to `to` from the step of a time in seconds on.
fn raise(steps: &mut Vec<u32>, at: f64, to: u32) {
    let step = (at / STEP) as usize;
    let before = steps.last().copied().unwrap_or_default();
    if step >= steps.len() {
        steps.resize(step + 1, before);
    }
    steps[step] = before.max(to);
}

impl Observer for Sequence {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        if node == self.host {
            self.see(now, crossing, &packet.data);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use airtcp_types::{FlowId, SeqNumber};
    use airtcp_wire::tcp::{Flags, Header, emit};

    use super::*;

    #[test]
    fn data_acks_and_retransmissions_are_drawn_apart() {
        let [local, remote] =
            ["10.0.0.1:40000", "10.0.0.2:5001"].map(|at| at.parse::<SocketAddr>().unwrap());
        let mut sequence = Sequence::new(NodeId(0));
        let mut see = |millis, node, crossing, header: Header, length: usize| {
            let packet = emit(&FlowId { local, remote }, 64, &header, &vec![7; length]);
            sequence.on_packet(Instant::from_millis(millis), NodeId(node), crossing, &packet);
        };
        let number = |offset: u32| SeqNumber((u32::MAX - 100).wrapping_add(offset));
        let data =
            |offset| Header { seq: number(offset), ack: Some(SeqNumber(5)), ..Header::default() };
        let ack = |offset| Header { ack: Some(number(offset)), ..Header::default() };
        let syn = Flags { syn: true, ..Flags::default() };
        see(50, 0, Crossing::Out, Header { seq: number(0), flags: syn, ..Header::default() }, 0);
        see(100, 0, Crossing::Out, data(1), 100);
        see(105, 0, Crossing::Out, data(101), 100);
        see(125, 0, Crossing::In, ack(101), 0);
        see(135, 1, Crossing::In, ack(201), 0);
        see(140, 0, Crossing::Out, data(101), 100);
        see(900, 0, Crossing::Out, data(201), 100);
        let figure = sequence.graph(String::new(), 0.5);
        let points = |series: usize| -> Vec<(f64, f64)> {
            let of = figure.series[series].points.iter();
            of.map(|point| ((point.x * 1e3).round(), (point.y * 1e6).round())).collect()
        };
        assert_eq!(points(0), [(20.0, 0.0), (40.0, 0.0), (60.0, 0.0), (80.0, 100.0)]);
        assert_eq!(points(1)[..4], [(20.0, 0.0), (40.0, 0.0), (60.0, 200.0), (80.0, 200.0)]);
        assert_eq!(points(1).len(), 25, "the graph ends after half a second");
        assert_eq!(points(2), [(90.0, 200.0)]);
    }
}
