//! Formats tables of measurements and their numbers.

use airtcp_link::spec::Part;
use airtcp_sim::Interval;
use comfy_table::{CellAlignment, LineStyle, Row, Table, TableStyle};

/// The minimum width of a terminal, in columns.
pub(crate) const WIDTH: u16 = 80;

/// Returns the width from COLUMNS or of the terminal on stdout, at least 40; `None` if lines may
/// have any length, as in a file.
pub(crate) fn width() -> Option<u16> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    said.or_else(|| terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0))
        .map(|width: u16| width.max(40))
}

/// Creates a table whose columns from `numbers` on are right-aligned. It has no lines between
/// columns, to save width.
pub(crate) fn table(
    header: impl Into<Row>,
    numbers: usize,
    rows: impl Iterator<Item = impl Into<Row>>,
) -> Table {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─');
    table.load_style(TableStyle::new().header_separator(line)).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 1));
    }
    if let Some(last) = table.column_iter_mut().last() {
        last.set_padding((1, 0));
    }
    table
}

/// Draws the first layout that fits a terminal, with narrower padding if that makes it fit; the
/// last one if none does. Returns its text and the layout.
pub(crate) fn fitting<T: Copy>(widest: T, others: &[T], draw: impl Fn(T) -> Table) -> (String, T) {
    let fits = |text: &str| text.lines().all(|line| line.chars().count() <= usize::from(WIDTH));
    let mut last = (String::new(), widest);
    for layout in std::iter::once(&widest).chain(others) {
        let mut table = draw(*layout);
        last = (table.to_string(), *layout);
        if fits(&last.0) {
            break;
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((u16::from(index > 0), 0));
        }
        last.0 = table.to_string();
        if fits(&last.0) {
            break;
        }
    }
    last
}

/// Wraps a text to the width of a terminal. The first line keeps its indentation; further ones get
/// `indent` spaces.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let mut width = text.len() - text.trim_start().len();
    let mut lines = " ".repeat(width);
    let mut is_begun = false;
    for word in text.trim_start().split(' ') {
        let long = word.chars().count();
        if is_begun && width + 1 + long > usize::from(WIDTH) {
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            (width, is_begun) = (indent, false);
        }
        if is_begun {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        (width, is_begun) = (width + long, true);
    }
    lines
}

/// Formats the parts of a description for `--help`.
pub(crate) fn parts(parts: &[Part]) -> String {
    let shown = |part: &Part| {
        let meaning = wrapped(&format!("    {}", part.meaning), 4);
        format!("\n{}\n{meaning}\n    example: {}\n", part.words, part.example)
    };
    parts.iter().map(shown).collect()
}

/// Formats the links in the direction of the data and in the other.
pub(crate) fn link_lines([forth, back]: &[String; 2]) -> String {
    if forth == back {
        return wrapped(&format!("link:  {forth}"), 7);
    }
    wrapped(&format!("forth: {forth}"), 7) + "\n" + &wrapped(&format!("back:  {back}"), 7)
}

/// Formats `9.41 ±0.05`, without the interval if there is none; `-` without values.
pub(crate) fn shown(interval: &Interval, factor: f64, decimals: usize) -> String {
    let mean = interval.mean * factor;
    match interval.half_width {
        _ if interval.n == 0 => "-".to_owned(),
        None | Some(0.0) if mean == 0.0 => "0".to_owned(),
        // A whole number of a single run gets no decimals.
        None if mean.fract() == 0.0 && factor == 1.0 => format!("{mean}"),
        None => format!("{mean:.decimals$}"),
        Some(half) => format!("{mean:.decimals$} ±{:.decimals$}", half * factor),
    }
}

/// Formats the mean alone, for narrow layouts.
pub(crate) fn mean(interval: &Interval, factor: f64, decimals: usize) -> String {
    match interval.n {
        0 => "-".to_owned(),
        _ if interval.mean == 0.0 => "0".to_owned(),
        _ => format!("{:.decimals$}", interval.mean * factor),
    }
}

/// Returns the unit for a rate, and the factor that converts bit/s to it.
pub(crate) const fn rate_unit(rate: f64) -> (f64, &'static str) {
    match rate {
        1e9.. => (1e-9, "Gbit/s"),
        1e6.. => (1e-6, "Mbit/s"),
        _ => (1e-3, "kbit/s"),
    }
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
    fn lines_end_before_the_terminal_does() {
        let text = "a".repeat(70) + " bb cccccc dd";
        assert_eq!(wrapped(&text, 3), format!("{} bb cccccc\n   dd", "a".repeat(70)));
        assert_eq!(wrapped("  a b", 2), "  a b");
        let long = "a".repeat(100);
        assert_eq!(wrapped(&format!("{long} b"), 2), format!("{long}\n  b"));
        let link = |forth: &str, back: &str| link_lines(&[forth.to_owned(), back.to_owned()]);
        assert_eq!(link("loss 1%", "loss 1%"), "link:  loss 1%");
        assert_eq!(link("loss 1%", "seed 2"), "forth: loss 1%\nback:  seed 2");
    }

    #[test]
    fn the_widest_layout_that_fits_is_drawn() {
        let draw =
            |wide: usize| table(["a", "b"], 1, [["x".repeat(wide), "1".to_owned()]].into_iter());
        let width = |text: &str| text.lines().map(|line| line.chars().count()).max();
        let (text, layout) = fitting(90, &[77, 70, 60], draw);
        assert_eq!((width(&text), layout), (Some(80), 77));
        let (text, layout) = fitting(90, &[78, 70], draw);
        assert_eq!((width(&text), layout), (Some(80), 78), "with less room between");
        assert_eq!(fitting(90, &[85], draw).1, 85, "none does");
    }

    #[test]
    fn a_rate_has_the_unit_that_fits() {
        for (rate, unit) in [(0.0, "kbit/s"), (9.5e6, "Mbit/s"), (2e9, "Gbit/s")] {
            assert_eq!(rate_unit(rate).1, unit);
        }
        assert_eq!(mean(&Interval::of(&[9.4e6, 9.6e6]), rate_unit(9.5e6).0, 3), "9.500");
        assert_eq!(mean(&Interval::default(), 1.0, 1), "-");
        assert_eq!(mean(&Interval::of(&[1.0, 3.0]), 1.0, 1), "2.0");
    }
}
