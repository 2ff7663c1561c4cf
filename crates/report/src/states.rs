//! The output of `airtcp sim run --state`: windows, round-trip times, rates and queues over time.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::ReportError;
use crate::figures::{micros, whole};
use crate::page::{Axis, Block, Chart, color};
use crate::series::{Look, Series};

/// A line of the file: the state of a sender or of a queue.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum State {
    Sender {
        time: f64,
        flow: String,
        copy: u64,
        host: String,
        cwnd: Option<u64>,
        in_flight: Option<u64>,
        srtt: Option<f64>,
        pacing_rate: Option<u64>,
    },
    Queue {
        time: f64,
        link: String,
        way: String,
        packets: u64,
    },
}

const NO_STATE: &str = "not a state of `airtcp sim run --state`: expected a sender with time, flow, copy and host, or a queue \
    with time, link, way and packets";

/// A quantity of all senders or queues, by name, in the order in which they appear.
struct Measure {
    title: &'static str,
    y: Axis,
    series: Vec<(String, Series)>,
    places: BTreeMap<String, usize>,
}

/// The states of a run.
pub(crate) struct States {
    measures: [Measure; 5],
}

impl Measure {
    fn new(title: &'static str, y: Axis) -> Self {
        Self { title, y, series: Vec::new(), places: BTreeMap::new() }
    }

    fn add(&mut self, name: &str, most: usize, time: f64, value: Option<i64>) {
        let Some(value) = value else { return };
        let place = self.places.get(name).copied().unwrap_or_else(|| {
            self.places.insert(name.to_owned(), self.series.len());
            self.series.push((name.to_owned(), Series::new(Look::Line, most)));
            self.series.len() - 1
        });
        self.series[place].1.point(micros(time), value);
    }
}

/// Whether a line is a state.
pub(crate) fn is_state(line: &str) -> bool {
    serde_json::from_str::<State>(line).is_ok()
}

impl States {
    /// Parses the text of a file. Each series has at most `most` points.
    ///
    /// # Errors
    /// A line is not a state.
    pub(crate) fn read(path: &Path, text: &str, most: usize) -> Result<Self, ReportError> {
        let mut measures = [
            Measure::new("Congestion window", Axis { label: "cwnd", ..Axis::BYTES }),
            Measure::new("Bytes in flight (pipe)", Axis { label: "pipe", ..Axis::BYTES }),
            Measure::new("Smoothed round-trip time", Axis { label: "SRTT", ..Axis::RTT }),
            Measure::new("Pacing rate", Axis { label: "pacing rate", ..Axis::RATE }),
            Measure::new("Queues", Axis { label: "packets", unit: "", scale: 1.0, zero: true }),
        ];
        for (index, line) in text.lines().enumerate() {
            let state = serde_json::from_str(line).map_err(|_| ReportError::Line {
                path: path.to_owned(),
                line: index + 1,
                reason: NO_STATE.to_owned(),
            })?;
            match state {
                State::Sender { time, flow, copy, host, cwnd, in_flight, srtt, pacing_rate } => {
                    let name = format!("{flow} {} ({host})", copy.saturating_add(1));
                    let values = [
                        cwnd.map(whole),
                        in_flight.map(whole),
                        srtt.map(micros),
                        pacing_rate.map(whole),
                    ];
                    for (measure, value) in measures.iter_mut().zip(values) {
                        measure.add(&name, most, time, value);
                    }
                }
                State::Queue { time, link, way, packets } => {
                    measures[4].add(&format!("{link} {way}"), most, time, Some(whole(packets)));
                }
            }
        }
        Ok(Self { measures })
    }

    /// Returns the charts of all quantities with data, which zoom together.
    pub(crate) fn blocks(self, group: &str) -> Vec<Block> {
        let mut blocks = Vec::new();
        for Measure { title, y, series, .. } in self.measures {
            // The queues of access links are almost always empty.
            let series: Vec<_> =
                series.into_iter().filter(|(_, series)| !series.is_at_most(1)).collect();
            if series.is_empty() {
                continue;
            }
            let series = series.into_iter().enumerate();
            let series =
                series.map(|(index, (name, series))| series.named(name, color(index))).collect();
            let group = group.to_owned();
            blocks.push(Block::Chart(Chart {
                title: title.to_owned(),
                group,
                x: Axis::TIME,
                y,
                height: 260,
                series,
            }));
        }
        blocks
    }
}
