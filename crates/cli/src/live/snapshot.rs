//! What the page shows at a moment.

use std::borrow::Cow;

use hyper::body::Bytes;
use serde::Serialize;
use serde_json::Value;

/// A figure's or a series' name.
type Name = Cow<'static, str>;

/// What a command does now. The page keeps what came before.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Snapshot {
    pub(crate) charts: Vec<Chart>,
    /// Names and texts, as a list.
    pub(crate) figures: Vec<(Name, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table: Option<Table>,
}

/// Values that are drawn over time.
#[derive(Debug, Serialize)]
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    /// Of what is drawn: of a counter, that of its rate.
    pub(crate) unit: &'static str,
    pub(super) kind: Kind,
    /// `null` in JSON, and a gap on the page, where there is no value.
    pub(crate) series: Vec<(Name, f64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Drawn as it is.
    Gauge,
    /// Only grows: its increase per second is drawn.
    Counter,
}

/// What there are many of.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) rows: Vec<Vec<Value>>,
    /// Those that are not listed, too.
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

    /// Of what has been counted so far.
    pub(crate) fn counters<N: Into<Name>>(
        title: &'static str,
        unit: &'static str,
        series: impl IntoIterator<Item = (N, f64)>,
    ) -> Self {
        Self::new(title, unit, Kind::Counter, series)
    }

    /// Bytes so far, as rates in Mbit/s.
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

/// With three digits behind the point: more is not shown.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// What a viewer gets.
#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) title: &'a str,
    /// Since the start.
    pub(super) seconds: f64,
    #[serde(flatten)]
    pub(super) now: Snapshot,
}

impl Message<'_> {
    /// As a server-sent event.
    ///
    /// # Errors
    /// There is none; it is that of JSON.
    pub(super) fn event(&self) -> serde_json::Result<Bytes> {
        let mut event = b"data: ".to_vec();
        // JSON has no line ends, which end an event.
        serde_json::to_writer(&mut event, self)?;
        event.extend_from_slice(b"\n\n");
        Ok(event.into())
    }
}
