//! A table of dots: rows with dots in each of several columns.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::svg::{GRID, INFALLIBLE, INK, SMALL, lines, text, width_of};

use super::Axis;
use super::draw::{self, Area, Key, color, label, mark};

/// The height of the column headings without their labels, and of a line of these.
const HEAD: i32 = 44;
const LABEL: i32 = 18;
/// The height of a row, and of a dot in a row with several.
const ROW: i32 = 24;
const DOT: i32 = 11;
/// The height of the tick labels below the columns.
const FOOT: i32 = 34;
const MARGIN: i32 = 14;
/// The gap between two columns.
const GAP: i32 = 34;
/// The minimum width of a column, so that tick labels fit.
const NARROWEST: i32 = 90;
/// The width in pixels for each tick label.
const PIXELS_A_TICK: i32 = 46;

/// A table of dots: rows are compared, and each column has its own axis.
///
/// ```
/// use airtcp_trace::figure::{Axis, Column, Dot, Dots, Scale};
///
/// let goodput = Axis { label: "goodput (Mbit/s)".to_owned(), scale: Scale::Linear, range: None };
/// let dot = |at| vec![Some(Dot { at, low: None, high: None })];
/// let dots = Dots {
///     title: "loss 2%".to_owned(),
///     columns: vec![Column { axis: goodput, hint: "more is better".to_owned() }],
///     series: Vec::new(),
///     rows: vec![("rack/bbr3".to_owned(), vec![dot(91.5)]), ("rack/cubic".to_owned(), vec![dot(3.8)])],
/// };
/// assert!(dots.to_svg().contains("rack/cubic"));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Dots {
    /// The title above the table.
    pub title: String,
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The names of the dots of a cell, for the legend; empty if cells have one dot.
    pub series: Vec<String>,
    /// The rows, from top to bottom: a name, and a cell for each column.
    pub rows: Vec<(String, Vec<Cell>)>,
}

/// The dots of a row in a column, by series; `None` where there is no value.
pub type Cell = Vec<Option<Dot>>;

/// A column of [`Dots`].
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Its axis.
    pub axis: Axis,
    /// A text that says which direction is better.
    pub hint: String,
}

/// A measured value, optionally with an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dot {
    /// The value.
    pub at: f64,
    /// The lower end of the interval.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
}

/// The vertical positions in the table.
#[derive(Clone, Copy)]
struct Heights {
    /// The height of the column headings.
    head: i32,
    /// The height of a row, and the number of its dots.
    row: i32,
    dots: i32,
    bottom: i32,
}

impl Heights {
    /// The middle of a row.
    const fn middle(self, row: usize) -> i32 {
        self.head + self.row * row as i32 + self.row / 2
    }

    /// The position of a dot in a row.
    const fn dot(self, row: usize, series: usize) -> i32 {
        self.middle(row) + (DOT * (2 * series as i32 + 1 - self.dots)) / 2
    }
}

impl Dots {
    /// Draws the table as an SVG. The same dots give the same bytes.
    pub fn to_svg(&self) -> String {
        let keys = self.series.iter().map(|name| Key { name, is_lined: false, is_marked: true });
        let keys: Vec<Key<'_>> = keys.collect();
        let above = draw::title_height(&self.title) + draw::legend_height(&keys);
        let names = self.rows.iter().map(|(name, _)| width_of(name, SMALL)).max().unwrap_or(0);
        let left = MARGIN + names + MARGIN;
        let count = self.columns.len().max(1) as i32;
        let room = (draw::WIDTH as i32 - left - MARGIN - (count - 1) * GAP) / count;
        let width = room.max(NARROWEST);
        let lines = self.columns.iter().map(|column| column.label(width).len() as i32).max();
        let head = HEAD + LABEL * lines.unwrap_or(0);
        let dots = self.series.len().max(1) as i32;
        let row = ROW.max(DOT * dots + 8);
        let heights = Heights { head, row, dots, bottom: head + row * self.rows.len() as i32 };
        let mut svg = String::new();
        {
            let size = (
                draw::WIDTH.max((left + count * (width + GAP)) as u32),
                above + (heights.bottom + FOOT) as u32,
            );
            let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            root.fill(&WHITE).expect(INFALLIBLE);
            draw::title(&self.title, MARGIN, &root);
            let (_, rest) = root.split_vertically(draw::title_height(&self.title));
            let (legend, body) = rest.split_vertically(draw::legend_height(&keys));
            draw::legend(&keys, MARGIN, &legend);
            self.names(&body, left, size.0 as i32, heights);
            for (index, column) in self.columns.iter().enumerate() {
                let from = left + index as i32 * (width + GAP);
                let cells: Vec<&[Option<Dot>]> = self
                    .rows
                    .iter()
                    .map(|(_, cells)| cells.get(index).map_or(&[][..], Vec::as_slice))
                    .collect();
                // Dots of one series have the colour of their column.
                let first = if self.series.is_empty() { index } else { 0 };
                column.draw(&body, (from, width), heights, first, &cells);
            }
            root.present().expect(INFALLIBLE);
        }
        svg
    }

    /// Draws the names of the rows, and a line for each row: through a single dot, or above several.
    fn names(&self, area: &Area<'_>, left: i32, width: i32, heights: Heights) {
        for (index, (name, _)) in self.rows.iter().enumerate() {
            let y = heights.middle(index);
            let rule = if heights.dots == 1 { y } else { y - heights.row / 2 };
            line(area, [(MARGIN, rule), (width - MARGIN, rule)], GRID);
            // A white background, so that the line starts behind the name.
            let back = [(0, y - ROW / 2), (left - MARGIN / 2, y + ROW / 2)];
            area.draw(&Rectangle::new(back, WHITE.filled())).expect(INFALLIBLE);
            write(area, name, (left - MARGIN, y), HPos::Right);
        }
    }
}

impl Column {
    /// Returns the lines of its label.
    fn label(&self, width: i32) -> Vec<String> {
        lines(&label(&self.axis), SMALL, width + GAP / 2)
    }

    /// Draws the axis and the dots. `first` is the index of the colour and mark of the first series.
    fn draw(
        &self,
        area: &Area<'_>,
        (from, width): (i32, i32),
        heights: Heights,
        first: usize,
        cells: &[&[Option<Dot>]],
    ) {
        let shown = |dot: &Dot| self.axis.shows(dot.at);
        let dots = cells.iter().copied().flatten().flatten().filter(|dot| shown(dot));
        let values = dots.flat_map(|dot| [Some(dot.at), dot.low, dot.high]).flatten();
        let ends = self.axis.ends(values);
        let (low, high) = (self.axis.place(ends.0), self.axis.place(ends.1));
        let x = |place: f64| {
            let share = ((place - low) / (high - low)).clamp(0.0, 1.0);
            from + (share * f64::from(width)).round() as i32
        };
        let (head, bottom) = (heights.head, heights.bottom);
        let labels = self.label(width).into_iter().rev().zip(1..);
        for (words, line) in labels {
            write(area, &words, (from, head - 24 - LABEL * line), HPos::Left);
        }
        write(area, &self.hint, (from, head - 24), HPos::Left);
        for tick in self.axis.ticks(ends, f64::from(width / PIXELS_A_TICK)) {
            let at = x(tick.at);
            line(area, [(at, head - 8), (at, bottom)], GRID);
            write(area, &tick.words, (at, bottom + 14), HPos::Center);
        }
        line(area, [(from, bottom), (from + width, bottom)], INK);
        for (row, cell) in cells.iter().enumerate() {
            for (series, dot) in cell.iter().enumerate() {
                let Some(dot) = dot.filter(shown) else { continue };
                let end = |end: Option<f64>| {
                    let end = end.filter(|&end| self.axis.shows(end)).unwrap_or(dot.at);
                    x(self.axis.place(end))
                };
                let (y, low, high) = (heights.dot(row, series), end(dot.low), end(dot.high));
                let color = color(first + series);
                if low < high {
                    line(area, [(low, y), (high, y)], color);
                    line(area, [(low, y - 4), (low, y + 4)], color);
                    line(area, [(high, y - 4), (high, y + 4)], color);
                }
                let place = (x(self.axis.place(dot.at)), y);
                area.draw(&mark(first + series, place)).expect(INFALLIBLE);
            }
        }
    }
}

fn line(area: &Area<'_>, ends: [(i32, i32); 2], color: RGBColor) {
    area.draw(&PathElement::new(ends, color.stroke_width(1))).expect(INFALLIBLE);
}

fn write(area: &Area<'_>, words: &str, at: (i32, i32), side: HPos) {
    let style = text(SMALL, &INK, side, VPos::Center);
    area.draw(&Text::new(words.to_owned(), at, style)).expect(INFALLIBLE);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Scale;
    use super::*;

    /// Dots of two columns; a cell has as many dots as there are series.
    fn dots(series: usize, rows: Vec<Vec<Option<f64>>>, scale: Scale) -> Dots {
        let axis = || Axis { label: "a < b".to_owned(), scale, range: None };
        let column = || Column { axis: axis(), hint: "less is better".to_owned() };
        let dot = |at: f64| Dot { at, low: Some(at - 1.0), high: Some(at * 2.0) };
        let cell = |at: Option<f64>| vec![at.map(dot); series.max(1)];
        let row = |values: Vec<Option<f64>>| values.into_iter().map(cell).collect();
        Dots {
            title: "title".to_owned(),
            columns: vec![column(), column()],
            series: (0..series).map(|number| format!("series {number}")).collect(),
            rows: rows.into_iter().map(|values| ("one & two".to_owned(), row(values))).collect(),
        }
    }

    #[test]
    fn a_row_has_a_dot_where_it_has_a_value() {
        let rows = vec![vec![Some(1.0), None], vec![Some(3.0), Some(2.0)]];
        let one = dots(0, rows.clone(), Scale::Linear).to_svg();
        assert_eq!(one.matches("<polygon").count(), 3);
        assert!(crate::svg::smallest_text(&one) >= 11.0, "{one}");
        // Three dots in each of three cells, and three in the legend.
        let three = dots(3, rows, Scale::Log).to_svg();
        assert_eq!(three.matches("<polygon").count(), 12);
        assert!(three.contains("series 2") && three.contains("a &lt; b, log scale"), "{three}");
    }

    #[test]
    fn the_dots_of_a_row_are_one_below_the_other() {
        let heights = Heights { head: HEAD, row: 4 * DOT, dots: 3, bottom: 0 };
        let [one, two, three] = [0, 1, 2].map(|series| heights.dot(1, series));
        assert_eq!((two, one, three), (heights.middle(1), two - DOT, two + DOT));
        assert_eq!(
            Heights { head: HEAD, row: ROW, dots: 1, bottom: 0 }.dot(2, 0),
            HEAD + 2 * ROW + ROW / 2
        );
    }

    proptest! {
        #[test]
        fn no_numbers_panic(
            rows in prop::collection::vec(prop::collection::vec(any::<Option<f64>>(), 0..4), 0..5),
            series in 0..4_usize,
            log: bool,
        ) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let dots = dots(series, rows, scale);
            prop_assert_eq!(dots.to_svg(), dots.to_svg());
        }
    }
}
