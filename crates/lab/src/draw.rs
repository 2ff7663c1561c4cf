//! Short constructors for pictures, axes, series and points.

use airtcp_sim::Interval;
use airtcp_trace::figure::{Axis, Column, Dot, Figure, Point, Scale, Series, Style};

pub(crate) fn figure(
    title: impl Into<String>,
    x: Axis,
    y: Axis,
    series: impl IntoIterator<Item = Series>,
) -> Figure {
    Figure { title: title.into(), x, y, series: series.into_iter().collect() }
}

pub(crate) fn linear(label: &str) -> Axis {
    Axis { label: label.to_owned(), scale: Scale::Linear, range: None }
}

pub(crate) fn log(label: &str) -> Axis {
    Axis { label: label.to_owned(), scale: Scale::Log, range: None }
}

/// The label of an axis on which more is better.
pub(crate) fn more(label: &str) -> String {
    format!("{label} (more is better)")
}

/// The label of an axis on which less is better.
pub(crate) fn less(label: &str) -> String {
    format!("{label} (less is better)")
}

/// An axis of goodput in Mbit/s.
pub(crate) fn goodput() -> Axis {
    linear(&more("goodput, Mbit/s"))
}

/// A column of a table of dots. The hint says which direction is better.
pub(crate) fn column(axis: Axis, hint: &str) -> Column {
    Column { axis, hint: hint.to_owned() }
}

/// The hint of a column in which more is better.
pub(crate) const MORE: &str = "more is better →";
/// The hint of a column in which less is better.
pub(crate) const LESS: &str = "← less is better";

/// Returns a mean with its 95 % interval; `None` if no run measured it.
pub(crate) fn dot(interval: &Interval) -> Option<Dot> {
    let (low, high) = interval.bounds();
    let has_interval = interval.half_width.is_some();
    (interval.n > 0).then(|| Dot {
        at: interval.mean,
        low: has_interval.then_some(low),
        high: has_interval.then_some(high),
    })
}

/// The position of zero on a logarithmic axis of losses, in per cent.
pub(crate) const ZERO: f64 = 0.05;

/// A logarithmic axis of losses in per cent, with a position for zero.
pub(crate) fn losses() -> Axis {
    log(&format!("loss, % ({ZERO} stands for 0)"))
}

pub(crate) fn point(x: f64, y: f64) -> Point {
    Point { x, y, low: None, high: None }
}

/// Returns a point with its 95 % interval, multiplied by `unit`.
pub(crate) fn interval(x: f64, interval: &Interval, unit: f64) -> Point {
    let (low, high) = interval.bounds();
    Point { x, y: interval.mean * unit, low: Some(low * unit), high: Some(high * unit) }
}

pub(crate) fn series(name: impl Into<String>, style: Style, points: Vec<Point>) -> Series {
    Series { name: name.into(), points, style }
}
