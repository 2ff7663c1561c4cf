//! Tables of measurements, and the numbers in them.

use airtcp_sim::Interval;
use comfy_table::{CellAlignment, Row, Table, presets};

/// A table whose columns from `numbers` on stand right.
pub(crate) fn table(
    header: impl Into<Row>,
    numbers: usize,
    rows: impl Iterator<Item = impl Into<Row>>,
) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// `9.41 ±0.05`, without the interval if there is none; `-` of no values.
pub(crate) fn shown(interval: &Interval, factor: f64, decimals: usize) -> String {
    let mean = interval.mean * factor;
    match interval.half_width {
        _ if interval.n == 0 => "-".to_owned(),
        Some(0.0) if mean == 0.0 => "0".to_owned(),
        // A whole number of one run needs no point.
        None if mean.fract() == 0.0 && factor == 1.0 => format!("{mean}"),
        None => format!("{mean:.decimals$}"),
        Some(half) => format!("{mean:.decimals$} ±{:.decimals$}", half * factor),
    }
}

/// With the unit that fits.
pub(crate) fn rate(goodput: &Interval) -> String {
    rate_beside(goodput, goodput.mean)
}

/// With the unit that fits `other`, so that both can be compared at a glance.
pub(crate) fn rate_beside(goodput: &Interval, other: f64) -> String {
    let (factor, unit) = match other {
        1e9.. => (1e-9, "Gbit/s"),
        1e6.. => (1e-6, "Mbit/s"),
        _ => (1e-3, "kbit/s"),
    };
    format!("{} {unit}", shown(goodput, factor, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_shown_if_there_is_one() {
        let many = Interval { mean: 9.413, half_width: Some(0.052), sd: 0.1, n: 10 };
        assert_eq!(shown(&many, 1.0, 2), "9.41 ±0.05");
        assert_eq!(shown(&many, 1e3, 0), "9413 ±52");
        assert_eq!(shown(&Interval::of(&[3.0]), 1.0, 1), "3");
        assert_eq!(shown(&Interval::of(&[0.025]), 1e3, 2), "25.00");
        assert_eq!(shown(&Interval::of(&[0.0, 0.0]), 1.0, 1), "0");
        assert_eq!(shown(&Interval::default(), 1.0, 1), "-");
    }

    #[test]
    fn a_rate_has_the_unit_that_fits() {
        assert_eq!(rate(&Interval::of(&[9.4e6, 9.6e6])), "9.500 ±1.271 Mbit/s");
        assert_eq!(rate(&Interval::of(&[0.0])), "0.000 kbit/s");
        assert_eq!(rate(&Interval::of(&[2e9])), "2.000 Gbit/s");
        assert_eq!(rate_beside(&Interval::of(&[9e5]), 2e6), "0.900 Mbit/s");
    }
}
