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
mod names;

pub use dots::{Cell, Column, Dot, Dots};

/// A picture.
#[derive(Clone, PartialEq, Debug)]
pub enum Graph {
    /// Series over common axes.
    Figure(Figure),
    /// A table of dots.
    Dots(Dots),
}

impl Graph {
    /// Returns the title.
    pub fn title(&self) -> &str {
        match self {
            Self::Figure(figure) => &figure.title,
            Self::Dots(dots) => &dots.title,
        }
    }

    /// Draws the picture as an SVG. The same picture gives the same bytes.
    pub fn to_svg(&self) -> String {
        match self {
            Self::Figure(figure) => figure.to_svg(),
            Self::Dots(dots) => dots.to_svg(),
        }
    }
}

impl From<Figure> for Graph {
    fn from(figure: Figure) -> Self {
        Self::Figure(figure)
    }
}

impl From<Dots> for Graph {
    fn from(dots: Dots) -> Self {
        Self::Dots(dots)
    }
}

/// A picture of several series over common axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The title above the picture.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in the order of the legend. Each has a mark beside its colour. Colours repeat
    /// after seven, with other marks and dashed lines.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The quantity and its unit, and if one is better, the direction. A logarithmic scale is added.
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
    /// Draws the figure as an SVG. The same figure gives the same bytes. Two to eight lines that end
    /// together have their names at their ends, others a legend above the axes.
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

    /// Series of two points each, the second at `x` and `y`.
    fn lines(ends: &[(f64, f64)], style: Style) -> Figure {
        let first = Point { x: 0.0, y: 1.0, low: None, high: None };
        let mut figure = figure(Vec::new(), Scale::Linear, Scale::Linear, style);
        figure.series = ends
            .iter()
            .zip(1..)
            .map(|(&(x, y), number)| Series {
                name: format!("line {number}"),
                points: vec![first, Point { x, y, ..first }],
                style,
            })
            .collect();
        figure
    }

    /// Returns the vertical position of a text.
    fn height_of(svg: &str, text: &str) -> i32 {
        let (before, _) = svg.split_once(&format!("\n{text}\n")).expect(text);
        let (_, y) = before.rsplit_once(" y=\"").unwrap();
        y.split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn lines_that_end_together_have_their_names_at_their_ends() {
        let svg = lines(&[(1.0, 0.0), (1.0, 1.0)], Style::LineAndMarks).to_svg();
        // The first line falls to the bottom.
        assert!(height_of(&svg, "line 1") > height_of(&svg, "line 2") + 200, "{svg}");
        let legend = |svg: &str| height_of(svg, "line 1") == height_of(svg, "line 2");
        assert!(legend(&lines(&[(1.0, 0.0), (0.5, 1.0)], Style::LineAndMarks).to_svg()));
        assert!(legend(&lines(&[(1.0, 0.0), (1.0, 1.0)], Style::Marks).to_svg()));
        let many: Vec<_> = (0..9).map(|y| (1.0, f64::from(y))).collect();
        assert!(height_of(&lines(&many, Style::Line).to_svg(), "line 9") < 100);
    }

    #[test]
    fn lines_differ_by_more_than_their_colours() {
        let marks = |count: usize, style| {
            let ends: Vec<_> = (0..count).map(|y| (1.0, y as f64)).collect();
            lines(&ends, style).to_svg().matches("<polygon").count()
        };
        // One at the name of each line, and one on it at least.
        assert!(marks(3, Style::Line) >= 6 && marks(3, Style::Steps) >= 6);
        assert_eq!(marks(1, Style::Line), 0);
    }

    #[test]
    fn a_log_scale_is_named_and_all_text_can_be_read() {
        let one = Point { x: 1.0, y: 1.0, low: None, high: None };
        let mut figure = figure(vec![one], Scale::Log, Scale::Linear, Style::Marks);
        figure.title = "a long title ".repeat(12);
        let svg = figure.to_svg();
        assert_eq!(svg.matches("a &lt; b &amp; c, log scale").count(), 1);
        assert_eq!(svg.matches("a &lt; b &amp; c").count(), 2);
        // The widest column of the book has 750 pixels.
        let shown = 750.0 / f64::from(draw::WIDTH);
        assert!(crate::svg::smallest_text(&svg) * shown >= 11.0, "{svg}");
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
