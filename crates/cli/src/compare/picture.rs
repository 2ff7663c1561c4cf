//! Goodput over round-trip time: the best is in the upper left corner.

use airtcp_trace::figure::{Axis, Figure, Point, Scale, Series, Style};

use super::report::{Report, Row};

/// More would look alike: a figure has so many colours and marks.
const MOST: usize = 28;

/// The figure of a comparison, of its best if there are many.
pub(super) fn of(report: &Report) -> Figure {
    let axis = |label: &str, range| Axis { label: label.to_owned(), scale: Scale::Linear, range };
    let rows = || report.rows.iter().take(MOST);
    // From just below the lowest: points that are close shall be as far apart as they can.
    let (low, high) = rows()
        .map(|row| row.goodput.bounds())
        .fold((f64::MAX, 0.0), |(low, high), (from, to)| (from.min(low), to.max(high)));
    let room = (high - low) * 0.04;
    let range = Some(((low - room).max(0.0) / 1e6, (high + room) / 1e6));
    let best = if report.rows.len() > MOST { format!("the best {MOST}, ") } else { String::new() };
    let runs = match report.seeds {
        1 => "one run".to_owned(),
        seeds => format!("{seeds} seeds"),
    };
    Figure {
        title: format!("{best}{runs}, {}", report.link[0]),
        x: axis("mean RTT over the link's own", None),
        y: axis("goodput (Mbit/s)", range),
        series: rows().map(series).collect(),
    }
}

fn series(row: &Row) -> Series {
    let has_interval = row.goodput.half_width.is_some();
    let (low, high) = row.goodput.bounds();
    let end = |end: f64| has_interval.then_some(end.max(0.0) / 1e6);
    let point = Point {
        x: row.rtt_inflation.mean,
        y: row.goodput.mean / 1e6,
        low: end(low),
        high: end(high),
    };
    // Who never measured a round-trip time has no place on the axis.
    let points = if row.rtt_inflation.n > 0 { vec![point] } else { Vec::new() };
    Series { name: row.combination.clone(), points, style: Style::Marks }
}
