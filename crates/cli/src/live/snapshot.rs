//! The content of the live page at a point in time.

use std::borrow::Cow;

use hyper::body::Bytes;
use serde::Serialize;
use serde_json::Value;

/// The name of a figure or a series.
type Name = Cow<'static, str>;

/// The current state of a command. The page itself keeps the history.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Snapshot {
    pub(crate) charts: Vec<Chart>,
    /// Names and values, shown as a list.
    pub(crate) figures: Vec<(Name, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table: Option<Table>,
}

/// Values that the page draws over time.
#[derive(Debug, Serialize)]
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    /// The unit of the drawn values; for a counter, that of its rate.
    pub(crate) unit: &'static str,
    pub(super) kind: Kind,
    /// The current values. A value that is not finite is `null` in JSON and a gap on the page.
    pub(crate) series: Vec<(Name, f64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// The value is drawn.
    Gauge,
    /// The value only increases, and its rate per second is drawn.
    Counter,
}

/// A table of flows or similar items.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) rows: Vec<Vec<Value>>,
    /// The number of items, including those without a row.
    pub(crate) total: usize,
}

impl Chart {
    pub(crate) fn gauges<N: Into<Name>>(
        title: &'static str,
        unit: &'static str,
        series: impl IntoIterator<Item = (N, f64)>,
    ) -> Self {
        Self::new(title, unit, Kind::Gauge, series)
    }

    /// Creates a chart of counters.
    pub(crate) fn counters<N: Into<Name>>(
        title: &'static str,
        unit: &'static str,
        series: impl IntoIterator<Item = (N, f64)>,
    ) -> Self {
        Self::new(title, unit, Kind::Counter, series)
    }

    /// Creates a chart of byte counters, drawn as rates in Mbit/s.
    pub(crate) fn rates(
        title: &'static str,
        bytes: impl IntoIterator<Item = (&'static str, u64)>,
    ) -> Self {
        Self::counters(
            title,
            "Mbit/s",
            bytes.into_iter().map(|(name, bytes)| (name, megabits(bytes))),
        )
    }

    fn new<N: Into<Name>>(
        title: &'static str,
        unit: &'static str,
        kind: Kind,
        series: impl IntoIterator<Item = (N, f64)>,
    ) -> Self {
        let series = series.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Self { title, unit, kind, series }
    }
}

fn megabits(bytes: u64) -> f64 {
    bytes as f64 * 8.0 / 1e6
}

impl Snapshot {
    /// Adds a figure to the list.
    pub(crate) fn figure(&mut self, name: impl Into<Name>, text: impl ToString) {
        self.figures.push((name.into(), text.to_string()));
    }
}

/// Rounds to three decimals, which is the precision of the page.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The message to a viewer.
#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) title: &'a str,
    /// Since the start.
    pub(super) seconds: f64,
    #[serde(flatten)]
    pub(super) now: Snapshot,
}

impl Message<'_> {
    /// Encodes the message as a server-sent event.
    ///
    /// # Errors
    /// None in practice: only those of JSON encoding.
    pub(super) fn event(&self) -> serde_json::Result<Bytes> {
        let mut event = b"data: ".to_vec();
        // JSON contains no line breaks, which would end the event.
        serde_json::to_writer(&mut event, self)?;
        event.extend_from_slice(b"\n\n");
        Ok(event.into())
    }
}
