//! The elements of a page.

use serde::{Serialize, Serializer};

use crate::series::Drawn;

/// A section of the page, with a title.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Debug)]
pub(crate) enum Block {
    Text(String),
    /// A command or the text of a file.
    Code(String),
    Table(Table),
    /// An SVG picture.
    Picture {
        title: String,
        svg: String,
    },
    Chart(Chart),
    /// Collapsed until the reader opens it, unless `is_open`.
    Fold {
        title: String,
        is_open: bool,
        blocks: Vec<Block>,
    },
}

/// A table; each row has as many cells as there are columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Whether the cells contain sentences: then a narrow screen shows each row as a list.
    pub(crate) is_prose: bool,
}

impl Table {
    pub(crate) fn new<const N: usize>(columns: [&str; N]) -> Self {
        Self::of(columns.map(str::to_owned).to_vec())
    }

    pub(crate) fn of(columns: Vec<String>) -> Self {
        Self { columns, rows: Vec::new(), is_prose: false }
    }

    /// Removes the columns without text, except the first.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        let has_text = |index: usize| {
            self.rows.iter().any(|row| row.get(index).is_some_and(|cell| !cell.is_empty()))
        };
        let kept: Vec<bool> =
            (0..self.columns.len()).map(|index| index == 0 || has_text(index)).collect();
        let keep = |cells: &mut Vec<String>| {
            let mut kept = kept.iter();
            cells.retain(|_| kept.next().copied().unwrap_or(true));
        };
        keep(&mut self.columns);
        self.rows.iter_mut().for_each(keep);
        self
    }
}

/// A chart with zoom. Charts of the same group show the same range of `x`.
#[derive(Debug, Serialize)]
pub(crate) struct Chart {
    #[serde(skip)]
    pub(crate) title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// The height in pixels.
    pub(crate) height: u32,
    #[serde(serialize_with = "shown")]
    pub(crate) series: Vec<Drawn>,
}

/// The maximum number of series of a chart; further ones are left out.
pub(crate) const MOST_SERIES: usize = 40;

fn shown<S: Serializer>(series: &[Drawn], serializer: S) -> Result<S::Ok, S::Error> {
    series[..series.len().min(MOST_SERIES)].serialize(serializer)
}

/// An axis. A displayed value is an integer times `scale`, in `unit`.
#[derive(Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) scale: f64,
    /// Whether the axis starts at zero.
    pub(crate) zero: bool,
}

impl Axis {
    pub(crate) const TIME: Self = Self { label: "time", unit: "s", scale: 1e-6, zero: false };
    pub(crate) const RTT: Self =
        Self { label: "round-trip time", unit: "s", scale: 1e-6, zero: true };
    pub(crate) const BYTES: Self = Self { label: "bytes", unit: "B", scale: 1.0, zero: true };
    pub(crate) const RATE: Self = Self { label: "rate", unit: "bit/s", scale: 1.0, zero: true };
    /// A share of samples, in units of 1/10,000.
    pub(crate) const SHARE: Self =
        Self { label: "share of samples", unit: "", scale: 1e-4, zero: true };
}

/// Returns the colour class of the series `index`.
pub(crate) fn color(index: usize) -> String {
    format!("c{}", index % 8)
}
