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

mod axis;
mod dots;
mod draw;

pub use dots::{Column, Dot, Dots};

/// A picture of several series over common axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The title above the picture.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in the order of the legend. Colours repeat after seven, with other marks and
    /// dashed lines.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The quantity and its unit.
    pub label: String,
    /// The scale.
    pub scale: Scale,
    /// The ends of the axis; `None` for the range of the points.
    pub range: Option<(f64, f64)>,
}

/// The scale of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic. Values that are not above zero are not drawn.
    Log,
}

/// A series of points in a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points, in the order in which they are joined. Points beyond 10^100 are left out.
    pub points: Vec<Point>,
    /// The style.
    pub style: Style,
}

/// A point, optionally with an error bar.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// The horizontal position.
    pub x: f64,
    /// The vertical position.
    pub y: f64,
    /// The lower end of its error bar.
    pub low: Option<f64>,
    /// The upper end of its error bar.
    pub high: Option<f64>,
}

/// The style of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// A line without marks.
    Line,
    /// Marks without a line.
    Marks,
    /// A line with marks.
    LineAndMarks,
    /// A line that holds each value until the next.
    Steps,
}

impl Figure {
    /// Draws the figure as an SVG. The same figure gives the same bytes. The legend is above the
    /// axes and never covers data.
    pub fn to_svg(&self) -> String {
        draw::to_svg(self)
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
