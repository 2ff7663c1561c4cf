//! Measures the progress of the mobiles' streams.

use std::collections::BTreeMap;

use airtcp_sim::NodeKind;
use airtcp_trace::figure::{Figure, Point, Style};
use airtcp_types::{Event, EventKind, ExtSeq, Instant, NodeId, Observer};

use super::course::Course;
use crate::draw;

/// The time between two points, in seconds.
const STEP: f64 = 0.5;

/// The highest sequence number that each mobile has received, at every step.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    mobiles: BTreeMap<u32, Stream>,
}

#[derive(Clone, Debug, Default)]
struct Stream {
    begin: Option<ExtSeq>,
    highest: ExtSeq,
    /// The bytes received by the end of each step.
    steps: Vec<u64>,
}

impl Progress {
    /// Selects the mobiles: the hosts of `nodes` whose name starts with `mobile`.
    pub(super) fn new(nodes: &[(String, NodeKind)]) -> Self {
        let is_mobile = |(name, kind): &(String, NodeKind)| {
            *kind == NodeKind::Host && name.starts_with("mobile")
        };
        let mobiles = (0..).zip(nodes).filter(|(_, node)| is_mobile(node));
        Self { mobiles: mobiles.map(|(id, _)| (id, Stream::default())).collect() }
    }

    /// Returns the received MB of this mobile over seconds.
    pub(super) fn points(&self, mobile: usize) -> Vec<Point> {
        let Some(stream) = self.mobiles.values().nth(mobile) else { return Vec::new() };
        let point = |(step, bytes): (u32, &u64)| {
            draw::point(f64::from(step + 1) * STEP, *bytes as f64 / 1e6)
        };
        (0..).zip(&stream.steps).map(point).collect()
    }

    /// Returns the bytes that the first mobile received between two times.
    pub(super) fn grown(&self, from: f64, to: f64) -> f64 {
        let Some(stream) = self.mobiles.values().next() else { return 0.0 };
        let at = |time: f64| {
            let step = (time / STEP).round() as usize;
            let last = stream.steps.last().copied().unwrap_or_default();
            match step.checked_sub(1) {
                None => 0,
                Some(step) => stream.steps.get(step).copied().unwrap_or(last),
            }
        };
        at(to).saturating_sub(at(from)) as f64
    }
}

impl Observer for Progress {
    fn on_event(&mut self, node: NodeId, event: &Event) {
        let Some(stream) = self.mobiles.get_mut(&node.0) else { return };
        let EventKind::Received { range, .. } = event.kind else { return };
        if range.is_empty() {
            return;
        }
        let begin = *stream.begin.get_or_insert(range.start);
        stream.highest = stream.highest.max(range.end);
        let step = (event.at.since(Instant::ZERO).as_secs_f64() / STEP) as usize;
        let before = stream.steps.last().copied().unwrap_or_default();
        if step >= stream.steps.len() {
            stream.steps.resize(step + 1, before);
        }
        stream.steps[step] = stream.highest.since(begin).0;
    }
}

/// Draws the stream of one mobile with each policy, with the first seed.
pub(super) fn picture(course: &Course, progress: &[Vec<Progress>; 3], mobile: usize) -> Figure {
    let policies = ["plain", "snoop", "tcp-ecn"];
    let series = policies.iter().zip(progress).filter_map(|(name, seeds)| {
        Some(draw::series(*name, Style::Steps, seeds.first()?.points(mobile)))
    });
    let (mobile, error, radio) = (mobile + 1, course.error, course.radio());
    let title = format!("Mobile {mobile}, {error} % of frames hit, {radio} tries");
    let (x, y) = (draw::linear("time, s"), draw::linear("highest number at the mobile, MB"));
    draw::figure(title, x, y, series)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use airtcp_types::{ByteCount, SeqRange};

    use super::*;

    #[test]
    fn a_stream_grows_by_its_highest_number() {
        let nodes = [("fixed-1", NodeKind::Host), ("mobile-1", NodeKind::Host)];
        let mut progress = Progress::new(&nodes.map(|(name, kind)| (name.to_owned(), kind)));
        let mut receive = |node, ms, start: u64| {
            let start = ExtSeq(start);
            let range = SeqRange::new(start, start + ByteCount(100));
            let kind =
                EventKind::Received { range, ack: ExtSeq::default(), window: ByteCount::ZERO };
            let at = Instant::ZERO + Duration::from_millis(ms);
            progress.on_event(NodeId(node), &Event { at, flow: None, kind });
        };
        receive(1, 100, 1_000);
        receive(1, 400, 1_200);
        receive(0, 500, 9_000);
        receive(1, 600, 1_100);
        receive(1, 1_700, 1_300);
        let points: Vec<_> =
            progress.points(0).iter().map(|point| (point.x, point.y * 1e6)).collect();
        assert_eq!(points, [(0.5, 300.0), (1.0, 300.0), (1.5, 300.0), (2.0, 400.0)]);
        assert_eq!([progress.grown(0.0, 0.5), progress.grown(0.5, 9.0)], [300.0, 100.0]);
    }
}
