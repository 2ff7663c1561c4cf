//! Short constructors for pictures, axes, series and points.

use airtcp_sim::Interval;
use airtcp_trace::figure::{Axis, Figure, Point, Scale, Series, Style};

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
