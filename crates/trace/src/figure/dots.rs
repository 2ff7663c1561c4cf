//! A table of dots: rows with one dot in each of several columns.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::svg::{GRID, INFALLIBLE, INK, OKABE_ITO, text, width_of};

use super::Axis;

const WIDTH: i32 = 860;
/// The height of the title and the column headings.
const HEAD: i32 = 84;
const ROW: i32 = 22;
/// The height of the tick labels below the columns.
const FOOT: i32 = 34;
const MARGIN: i32 = 14;
/// The gap between two columns.
const GAP: i32 = 34;
const SMALL: u32 = 12;
/// The minimum width of a column, so that tick labels fit.
const NARROWEST: i32 = 90;
/// The width in pixels for each tick label.
const PIXELS_A_TICK: i32 = 40;

/// A table of dots: rows are compared, and each column has its own axis.
///
/// ```
/// use airtcp_trace::figure::{Axis, Column, Dot, Dots, Scale};
///
/// let goodput = Axis { label: "goodput (Mbit/s)".to_owned(), scale: Scale::Linear, range: None };
/// let dot = |at| Some(Dot { at, low: None, high: None });
/// let dots = Dots {
///     title: "loss 2%".to_owned(),
///     columns: vec![Column { axis: goodput, hint: "more is better".to_owned() }],
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
    /// The rows, from top to bottom: a name, and for each column a dot if there is a value.
    pub rows: Vec<(String, Vec<Option<Dot>>)>,
}

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

impl Dots {
    /// Draws the table as an SVG. The same dots give the same bytes.
    pub fn to_svg(&self) -> String {
        let height = HEAD + ROW * self.rows.len() as i32 + FOOT;
        let names = self.rows.iter().map(|(name, _)| width_of(name, SMALL)).max().unwrap_or(0);
        let left = MARGIN + names + MARGIN;
        let count = self.columns.len().max(1) as i32;
        let room = (WIDTH - left - MARGIN - (count - 1) * GAP) / count;
        let width = room.max(NARROWEST);
        let mut svg = String::new();
        {
            let size = (WIDTH.max(left + count * (width + GAP)) as u32, height as u32);
            let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            root.fill(&WHITE).expect(INFALLIBLE);
            write(&root, &self.title, (MARGIN, 20), 17, HPos::Left);
            for (index, (name, _)) in self.rows.iter().enumerate() {
                let y = middle(index);
                line(&root, [(MARGIN, y), (size.0 as i32 - MARGIN, y)], GRID);
                // A white background, so that the line starts behind the name.
                let back = [(0, y - ROW / 2), (left - MARGIN / 2, y + ROW / 2)];
                root.draw(&Rectangle::new(back, WHITE.filled())).expect(INFALLIBLE);
                write(&root, name, (left - MARGIN, y), SMALL, HPos::Right);
            }
            for (index, column) in self.columns.iter().enumerate() {
                let from = left + index as i32 * (width + GAP);
                let dots = self.rows.iter().map(|(_, dots)| dots.get(index).copied().flatten());
                column.draw(&root, (from, width, height - FOOT), OKABE_ITO[index % 6], dots);
            }
            root.present().expect(INFALLIBLE);
        }
        svg
    }
}

impl Column {
    fn draw(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        (from, width, bottom): (i32, i32, i32),
        color: RGBColor,
        dots: impl Iterator<Item = Option<Dot>> + Clone,
    ) {
        let shown = |dot: &Option<Dot>| dot.is_some_and(|dot| self.axis.shows(dot.at));
        let values = dots.clone().filter(shown).flatten();
        let values = values.flat_map(|dot| [Some(dot.at), dot.low, dot.high]).flatten();
        let ends = self.axis.ends(values);
        let (low, high) = (self.axis.place(ends.0), self.axis.place(ends.1));
        let x = |place: f64| {
            let share = ((place - low) / (high - low)).clamp(0.0, 1.0);
            from + (share * f64::from(width)).round() as i32
        };
        write(area, &self.axis.label, (from, HEAD - 38), 13, HPos::Left);
        write(area, &self.hint, (from, HEAD - 20), SMALL, HPos::Left);
        for tick in self.axis.ticks(ends, f64::from(width / PIXELS_A_TICK)) {
            let at = x(tick.at);
            line(area, [(at, HEAD - 8), (at, bottom)], GRID);
            write(area, &tick.words, (at, bottom + 12), SMALL, HPos::Center);
        }
        line(area, [(from, bottom), (from + width, bottom)], INK);
        for (index, dot) in dots.enumerate().filter(|(_, dot)| shown(dot)) {
            let Some(Dot { at, low, high }) = dot else { continue };
            let end = |end: Option<f64>| {
                x(self.axis.place(end.filter(|&end| self.axis.shows(end)).unwrap_or(at)))
            };
            let (y, low, high) = (middle(index), end(low), end(high));
            if low < high {
                line(area, [(low, y), (high, y)], color);
                line(area, [(low, y - 4), (low, y + 4)], color);
                line(area, [(high, y - 4), (high, y + 4)], color);
            }
            let place = (x(self.axis.place(at)), y);
            area.draw(&Circle::new(place, 4, color.filled())).expect(INFALLIBLE);
        }
    }
}

/// The vertical position of a row.
fn middle(row: usize) -> i32 {
    HEAD + ROW * row as i32 + ROW / 2
}

fn line(area: &DrawingArea<SVGBackend<'_>, Shift>, ends: [(i32, i32); 2], color: RGBColor) {
    area.draw(&PathElement::new(ends, color.stroke_width(1))).expect(INFALLIBLE);
}

fn write(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    words: &str,
    at: (i32, i32),
    size: u32,
    side: HPos,
) {
    let style = text(size, &INK, side, VPos::Center);
    area.draw(&Text::new(words.to_owned(), at, style)).expect(INFALLIBLE);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Scale;
    use super::*;

    fn dots(rows: Vec<Vec<Option<f64>>>, scale: Scale) -> Dots {
        let axis = || Axis { label: "a < b".to_owned(), scale, range: None };
        let column = || Column { axis: axis(), hint: "less is better".to_owned() };
        let dot = |at: f64| Dot { at, low: Some(at - 1.0), high: Some(at * 2.0) };
        let row = |dots: Vec<Option<f64>>| dots.into_iter().map(|at| at.map(dot)).collect();
        Dots {
            title: "title".to_owned(),
            columns: vec![column(), column()],
            rows: rows.into_iter().map(|dots| ("one & two".to_owned(), row(dots))).collect(),
        }
    }

    #[test]
    fn a_row_has_a_dot_where_it_has_a_value() {
        let svg = dots(vec![vec![Some(1.0), None], vec![Some(3.0), Some(2.0)]], Scale::Linear);
        assert_eq!(svg.to_svg().matches("<circle").count(), 3);
    }

    proptest! {
        #[test]
        fn no_numbers_panic(
            rows in prop::collection::vec(prop::collection::vec(any::<Option<f64>>(), 0..4), 0..5),
            log: bool,
        ) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let dots = dots(rows, scale);
            prop_assert_eq!(dots.to_svg(), dots.to_svg());
        }
    }
}
