//! Plain pictures of measurements: points with error bars over linear or logarithmic axes.
//!
//! ```
//! use airtcp_trace::figure::{Axis, Figure, Point, Scale, Series, Style};
//!
//! let points = [(0.001, 9.0), (0.01, 3.0), (0.1, 0.8)];
//! let figure = Figure {
//!     title: "Goodput by loss".to_owned(),
//!     x: Axis { label: "loss".to_owned(), scale: Scale::Log, range: None },
//!     y: Axis { label: "goodput (Mbit/s)".to_owned(), scale: Scale::Linear, range: Some((0.0, 10.0)) },
//!     series: vec![Series {
//!         name: "sack/reno".to_owned(),
//!         points: points.map(|(x, y)| Point { x, y, low: Some(y * 0.9), high: Some(y * 1.1) }).to_vec(),
//!         style: Style::LineAndMarks,
//!     }],
//! };
//! assert!(figure.to_svg().starts_with("<svg"));
//! ```

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::svg::{FONT, GRID, INFALLIBLE, INK, OKABE_ITO, number, text};

/// Larger numbers are not drawn, nor on a logarithmic axis those below one part of it.
const MAX: f64 = 1e100;

const SIZE: (u32, u32) = (860, 540);

/// A picture of some series over common axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// What stands above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, in the order of the legend. Colours repeat after seven, with other marks.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The quantity and its unit.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// The ends; what the points need if not given.
    pub range: Option<(f64, f64)>,
}

/// How values are spread over an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm. What is not above zero is not drawn.
    Log,
}

/// One line of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its words in the legend.
    pub name: String,
    /// Its points, in the order in which they are joined. Those beyond 10^100 are left out.
    pub points: Vec<Point>,
    /// How they are drawn.
    pub style: Style,
}

/// One point, with the ends of its error bar if it has one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Horizontally.
    pub x: f64,
    /// Vertically.
    pub y: f64,
    /// The lower end of its error bar.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// A line without marks.
    Line,
    /// Marks without a line.
    Marks,
    /// Both.
    LineAndMarks,
    /// A line that holds each value until the next.
    Steps,
}

impl Figure {
    /// Draws it: the same figure gives the same bytes.
    pub fn to_svg(&self) -> String {
        let points =
            || self.series.iter().flat_map(|series| &series.points).filter(|p| self.shows(p));
        let (x, y) = (
            self.x.ends(points().map(|point| point.x)),
            self.y.ends(points().flat_map(|p| [Some(p.y), p.low, p.high]).flatten()),
        );
        let log = |(low, high): (f64, f64)| (low..high).log_scale();
        match (self.x.scale, self.y.scale) {
            (Scale::Linear, Scale::Linear) => self.draw(x, y, x.0..x.1, y.0..y.1),
            (Scale::Log, Scale::Linear) => self.draw(x, y, log(x), y.0..y.1),
            (Scale::Linear, Scale::Log) => self.draw(x, y, x.0..x.1, log(y)),
            (Scale::Log, Scale::Log) => self.draw(x, y, log(x), log(y)),
        }
    }

    fn shows(&self, point: &Point) -> bool {
        self.x.shows(point.x) && self.y.shows(point.y)
    }

    fn draw<X, Y>(&self, x_ends: (f64, f64), y_ends: (f64, f64), x: X, y: Y) -> String
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            root.fill(&WHITE).expect(INFALLIBLE);
            let mut chart = ChartBuilder::on(&root)
                .margin(14)
                .margin_right(24)
                .caption(&self.title, text(17, &INK, HPos::Left, VPos::Top))
                .x_label_area_size(46)
                .y_label_area_size(72)
                .build_cartesian_2d(x, y)
                .expect(INFALLIBLE);
            let (x_format, y_format) = (
                |value: &f64| self.x.number(*value, x_ends),
                |value: &f64| self.y.number(*value, y_ends),
            );
            chart
                .configure_mesh()
                .x_label_formatter(&x_format)
                .y_label_formatter(&y_format)
                .x_desc(&self.x.label)
                .y_desc(&self.y.label)
                .label_style((FONT, 12))
                .axis_desc_style((FONT, 14))
                .axis_style(INK)
                .bold_line_style(GRID)
                .light_line_style(TRANSPARENT)
                .draw()
                .expect(INFALLIBLE);
            let inside = |place: (f64, f64)| {
                place.0 >= x_ends.0
                    && place.0 <= x_ends.1
                    && place.1 >= y_ends.0
                    && place.1 <= y_ends.1
            };
            for (index, series) in self.series.iter().enumerate() {
                let color = OKABE_ITO[index % OKABE_ITO.len()];
                let points: Vec<&Point> = series.points.iter().filter(|p| self.shows(p)).collect();
                let lined = series.style != Style::Marks;
                let marked = matches!(series.style, Style::Marks | Style::LineAndMarks);
                if lined {
                    let mut corners: Vec<(f64, f64)> = Vec::new();
                    for point in &points {
                        if let Some(&(_, y)) = corners.last()
                            && series.style == Style::Steps
                        {
                            corners.push((point.x, y));
                        }
                        corners.push((point.x, point.y));
                    }
                    // What leaves the axes is cut at the point before.
                    for part in
                        corners.split(|&corner| !inside(corner)).filter(|part| part.len() > 1)
                    {
                        let line = PathElement::new(part.to_vec(), color.stroke_width(2));
                        chart.draw_series([line]).expect(INFALLIBLE);
                    }
                }
                for point in points.iter().filter(|point| inside((point.x, point.y))) {
                    let end = |end: Option<f64>| {
                        end.filter(|&end| self.y.shows(end))
                            .unwrap_or(point.y)
                            .clamp(y_ends.0, y_ends.1)
                    };
                    let (low, high) = (end(point.low), end(point.high));
                    if low < high {
                        let style = color.stroke_width(1);
                        let bar = ErrorBar::new_vertical(point.x, low, point.y, high, style, 8);
                        chart.draw_series([bar]).expect(INFALLIBLE);
                    }
                    if marked {
                        let mark = mark(index, color);
                        let mark = EmptyElement::at((point.x, point.y)) + mark;
                        chart.draw_series([mark]).expect(INFALLIBLE);
                    }
                }
                let empty = std::iter::empty::<PathElement<(f64, f64)>>();
                let entry = chart.draw_series(empty).expect(INFALLIBLE);
                entry.label(&series.name).legend(move |(x, y)| {
                    let width = if lined { 18 } else { 0 };
                    let line = [(x, y), (x + width, y)];
                    EmptyElement::at((0, 0))
                        + PathElement::new(line, color.stroke_width(2))
                        + mark_at(index, color, (x + 9, y), marked)
                });
            }
            if !self.series.is_empty() {
                chart
                    .configure_series_labels()
                    .position(SeriesLabelPosition::UpperRight)
                    .background_style(WHITE.mix(0.85))
                    .border_style(GRID)
                    .label_font((FONT, 12))
                    .draw()
                    .expect(INFALLIBLE);
            }
            root.present().expect(INFALLIBLE);
        }
        svg
    }
}

/// The mark of a series: a shape that the next ones of the same colour do not have.
fn mark(index: usize, color: RGBColor) -> Polygon<(i32, i32)> {
    mark_at(index, color, (0, 0), true)
}

fn mark_at(index: usize, color: RGBColor, (x, y): (i32, i32), shown: bool) -> Polygon<(i32, i32)> {
    const SHAPES: [&[(i32, i32)]; 4] = [
        &[(-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2), (-4, -2)],
        &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        &[(0, -5), (5, 4), (-5, 4)],
        &[(0, -5), (5, 0), (0, 5), (-5, 0)],
    ];
    let shape = if shown { SHAPES[index % SHAPES.len()] } else { &[(0, 0)] };
    let corners: Vec<_> = shape.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    Polygon::new(corners, color.filled())
}

impl Axis {
    /// An axis of larger numbers has no room between its labels.
    fn shows(&self, value: f64) -> bool {
        let size = value.abs();
        size <= MAX && (self.scale == Scale::Linear || value >= 1.0 / MAX)
    }

    /// Ends that are apart, and above zero where they must be.
    fn ends(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let given = self.range.filter(|&(low, high)| {
            let apart = high - low > 1e-9 * low.abs().max(high.abs());
            apart && self.shows(low) && self.shows(high)
        });
        if let Some(range) = given {
            return range;
        }
        let shown = values.filter(|&value| self.shows(value));
        let ends = shown.fold(None, |ends: Option<(f64, f64)>, value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        match (self.scale, ends) {
            (Scale::Linear, None) => (0.0, 1.0),
            (Scale::Log, None) => (1.0, 10.0),
            (Scale::Log, Some((low, high))) => (low / 1.2, high * 1.2),
            (Scale::Linear, Some((low, high))) => {
                let room = ((high - low) * 0.05).max(low.abs().max(high.abs()) * 1e-3).max(1e-9);
                // A quantity that is never negative starts at zero, if it comes near.
                let low = if low >= 0.0 && low < high * 0.5 { 0.0 } else { low - room };
                (low, high + room)
            }
        }
    }

    fn number(&self, value: f64, (low, high): (f64, f64)) -> String {
        match self.scale {
            Scale::Linear => number(value, high - low),
            Scale::Log => {
                let text = format!("{value:.9}");
                if value >= 1e-6 {
                    text.trim_end_matches('0').trim_end_matches('.').to_owned()
                } else {
                    format!("{value:e}")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn figure(points: Vec<Point>, x: Scale, y: Scale, style: Style) -> Figure {
        let axis = |scale| Axis { label: "a < b & c".to_owned(), scale, range: None };
        let series = Series { name: "one & <two>".to_owned(), points, style };
        Figure { title: "title".to_owned(), x: axis(x), y: axis(y), series: vec![series] }
    }

    proptest! {
        #[test]
        fn no_numbers_panic(
            points in prop::collection::vec((any::<f64>(), any::<f64>(), any::<Option<f64>>()), 0..6),
            log in any::<[bool; 2]>(),
            style in 0..4_usize,
        ) {
            let points = points.into_iter().map(|(x, y, low)| Point { x, y, low, high: low });
            let [x, y] = log.map(|log| if log { Scale::Log } else { Scale::Linear });
            let style = [Style::Line, Style::Marks, Style::LineAndMarks, Style::Steps][style];
            let figure = figure(points.collect(), x, y, style);
            let svg = figure.to_svg();
            prop_assert!(svg.contains("one &amp; &lt;two&gt;"));
            prop_assert_eq!(svg, figure.to_svg());
        }
    }
}
