//! Draws a row per combination: goodput, round-trip time, and the goodput of a competing flow of
//! `rack/cubic`.

use airtcp_sim::Interval;
use airtcp_trace::figure::{Axis, Column, Dot, Dots, Scale};

use super::report::{Report, Row};

/// Returns the picture of a comparison.
pub(super) fn of(report: &Report) -> Dots {
    let (factor, unit) = report.rate_unit();
    let mut columns = vec![
        column(format!("goodput ({unit})"), "more is better →"),
        column("mean RTT relative to the idle link".to_owned(), "← less is better"),
    ];
    if let Some(other) = &report.beside {
        columns.push(column(format!("goodput of {other} beside it ({unit})"), "more is fairer →"));
    }
    let dots = |row: &Row| {
        let mut dots = vec![dot(&row.goodput, factor), dot(&row.rtt_inflation, 1.0)];
        dots.extend(report.beside.as_ref().map(|_| dot(&row.cubic_beside, factor)));
        (row.combination.clone(), dots.into_iter().map(|dot| vec![dot]).collect())
    };
    let runs = match report.seeds {
        1 => "one run".to_owned(),
        seeds => format!("{seeds} seeds, 95 % intervals"),
    };
    Dots {
        title: format!("{}, {runs}", report.link[0]),
        columns,
        series: Vec::new(),
        rows: report.rows.iter().map(dots).collect(),
    }
}

fn column(label: String, hint: &str) -> Column {
    Column { axis: Axis { label, scale: Scale::Linear, range: None }, hint: hint.to_owned() }
}

/// Returns `None` if no run measured the value.
fn dot(value: &Interval, factor: f64) -> Option<Dot> {
    let (low, high) = value.bounds();
    let end = |end: f64| value.half_width.map(|_| end.max(0.0) * factor);
    (value.n > 0).then(|| Dot { at: value.mean * factor, low: end(low), high: end(high) })
}
