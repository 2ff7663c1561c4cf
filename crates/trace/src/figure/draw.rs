//! Drawing of a figure as an SVG.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::svg::{FONT, GRID, INFALLIBLE, INK, OKABE_ITO, text, width_of};

use super::axis::Tick;
use super::{Figure, Point, Style};

const WIDTH: u32 = 860;
/// The height of the axes with their labels.
const HEIGHT: u32 = 480;
const TITLE: u32 = 36;
const LEGEND_LINE: u32 = 20;
const LEFT: u32 = 78;
const RIGHT: u32 = 24;
/// The margin left of the vertical axis' label.
const MARGIN: u32 = 12;
const SMALL: u32 = 12;
/// The approximate number of ticks per axis.
const TICKS: f64 = 8.0;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ticked, Ticked>>;

/// An axis in its own units, with its ticks.
struct Ticked {
    inner: RangedCoordf64,
    ticks: Vec<Tick>,
}

impl Ranged for Ticked {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.inner.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let ticks = if hint.weight().allow_light_points() { &[] } else { &self.ticks[..] };
        ticks.iter().map(|tick| tick.at).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.inner.range()
    }
}

impl ValueFormatter<f64> for Ticked {
    fn format(value: &f64) -> String {
        value.to_string()
    }

    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|tick| tick.at == *value);
        tick.map_or_else(|| Self::format(value), |tick| tick.words.clone())
    }
}

pub(super) fn to_svg(figure: &Figure) -> String {
    let (places, lines) = legend_places(figure);
    let legend_height = lines * LEGEND_LINE;
    let mut svg = String::new();
    {
        let size = (WIDTH, TITLE + legend_height + HEIGHT);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).expect(INFALLIBLE);
        let (head, rest) = root.split_vertically(TITLE);
        let (legend, body) = rest.split_vertically(legend_height);
        title(figure, &head);
        for (index, place) in places.into_iter().enumerate() {
            legend_entry(figure, index, place, &legend);
        }
        axes(figure, &body);
        root.present().expect(INFALLIBLE);
    }
    svg
}

fn title(figure: &Figure, area: &Area<'_>) {
    let (room, wanted) = (WIDTH - LEFT - RIGHT, width_of(&figure.title, 17) as u32);
    let size = if wanted > room { (17 * room / wanted).max(8) } else { 17 };
    let style = text(size, &INK, HPos::Left, VPos::Center);
    area.draw(&Text::new(figure.title.clone(), (LEFT as i32, 20), style)).expect(INFALLIBLE);
}

/// Returns the positions of the series in the legend, and the number of lines. A legend of several
/// lines has columns.
fn legend_places(figure: &Figure) -> (Vec<(i32, i32)>, u32) {
    let (mut x, mut line) = (LEFT as i32, 0);
    let mut places = Vec::new();
    let widths = || figure.series.iter().map(|series| 24 + width_of(&series.name, SMALL) + 18);
    let has_columns = widths().sum::<i32>() > (WIDTH - LEFT - RIGHT) as i32;
    let column = widths().max().filter(|_| has_columns).unwrap_or(0);
    for width in widths().map(|width| width.max(column)) {
        if x > LEFT as i32 && x + width > (WIDTH - RIGHT) as i32 {
            (x, line) = (LEFT as i32, line + 1);
        }
        places.push((x, line * LEGEND_LINE as i32 + 8));
        x += width;
    }
    (places, line as u32 + 1)
}

fn legend_entry(figure: &Figure, index: usize, (x, y): (i32, i32), area: &Area<'_>) {
    let series = &figure.series[index];
    let color = color(index);
    if is_lined(series.style) {
        let (ends, style) = ([(x, y), (x + 19, y)], color.stroke_width(2));
        if index < OKABE_ITO.len() {
            area.draw(&PathElement::new(ends, style)).expect(INFALLIBLE);
        } else {
            area.draw(&DashedPathElement::new(ends, 7, 5, style)).expect(INFALLIBLE);
        }
    }
    if is_marked(series.style) {
        area.draw(&mark(index, (x + 9, y))).expect(INFALLIBLE);
    }
    let style = text(SMALL, &INK, HPos::Left, VPos::Center);
    area.draw(&Text::new(series.name.clone(), (x + 24, y), style)).expect(INFALLIBLE);
}

fn axes(figure: &Figure, area: &Area<'_>) {
    let shows = |point: &&Point| figure.x.shows(point.x) && figure.y.shows(point.y);
    let points = || figure.series.iter().flat_map(|series| &series.points).filter(shows);
    let x_ends = figure.x.ends(points().map(|point| point.x));
    let y_ends = figure.y.ends(points().flat_map(|p| [Some(p.y), p.low, p.high]).flatten());
    let (x_ticks, y_ticks) = (figure.x.ticks(x_ends, TICKS), figure.y.ticks(y_ends, TICKS));
    let x_ends = (figure.x.place(x_ends.0), figure.x.place(x_ends.1));
    let y_ends = (figure.y.place(y_ends.0), figure.y.place(y_ends.1));
    let axis = |ends: (f64, f64), ticks| Ticked { inner: (ends.0..ends.1).into(), ticks };
    let mut chart = ChartBuilder::on(area)
        .margin_left(MARGIN)
        .margin_right(RIGHT)
        .margin_top(6)
        .margin_bottom(8)
        .x_label_area_size(46)
        .y_label_area_size(LEFT - MARGIN)
        .build_cartesian_2d(axis(x_ends, x_ticks), axis(y_ends, y_ticks))
        .expect(INFALLIBLE);
    chart
        .configure_mesh()
        .x_desc(&figure.x.label)
        .y_desc(&figure.y.label)
        .label_style((FONT, 12))
        .axis_desc_style((FONT, 14))
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .draw()
        .expect(INFALLIBLE);
    for (index, series) in figure.series.iter().enumerate() {
        let points = series.points.iter().filter(shows);
        let points = points.map(|point| Placed::new(figure, point, y_ends)).collect::<Vec<_>>();
        let inside = |(x, y): (f64, f64)| {
            (x_ends.0..=x_ends.1).contains(&x) && (y_ends.0..=y_ends.1).contains(&y)
        };
        draw_series(&mut chart, index, series.style, &points, inside);
    }
}

/// A point in the units of the axes.
struct Placed {
    at: (f64, f64),
    /// The ends of its error bar, clipped to the axes.
    bar: (f64, f64),
}

impl Placed {
    fn new(figure: &Figure, point: &Point, (bottom, top): (f64, f64)) -> Self {
        let y = figure.y.place(point.y);
        let end = |end: Option<f64>| match end {
            Some(end) if figure.y.shows(end) => figure.y.place(end).clamp(bottom, top),
            // An interval down to zero or below extends to the bottom of a logarithmic axis.
            Some(end) if end < point.y => bottom,
            _ => y,
        };
        Self { at: (figure.x.place(point.x), y), bar: (end(point.low), end(point.high)) }
    }
}

fn draw_series(
    chart: &mut Chart<'_, '_>,
    index: usize,
    style: Style,
    points: &[Placed],
    inside: impl Fn((f64, f64)) -> bool,
) {
    let color = color(index);
    if is_lined(style) {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for point in points {
            if let Some(&(_, y)) = corners.last()
                && style == Style::Steps
            {
                corners.push((point.at.0, y));
            }
            corners.push(point.at);
        }
        // A line that leaves the axes ends at its last point inside.
        for part in corners.split(|&corner| !inside(corner)).filter(|part| part.len() > 1) {
            let style = color.stroke_width(2);
            if index < OKABE_ITO.len() {
                let line = PathElement::new(part.to_vec(), style);
                chart.draw_series([line]).expect(INFALLIBLE);
            } else {
                let line = DashedPathElement::new(part.to_vec(), 7, 5, style);
                chart.draw_series([line]).expect(INFALLIBLE);
            }
        }
    }
    for point in points.iter().filter(|point| inside(point.at)) {
        let ((x, y), (low, high)) = (point.at, point.bar);
        if low < high {
            chart.draw_series([PathElement::new([(x, low), (x, high)], color)]).expect(INFALLIBLE);
            let ends = [low, high]
                .map(|end| EmptyElement::at((x, end)) + PathElement::new([(-5, 0), (5, 0)], color));
            chart.draw_series(ends).expect(INFALLIBLE);
        }
        if is_marked(style) {
            let mark = EmptyElement::at((x, y)) + mark(index, (0, 0));
            chart.draw_series([mark]).expect(INFALLIBLE);
        }
    }
}

fn is_lined(style: Style) -> bool {
    style != Style::Marks
}

fn is_marked(style: Style) -> bool {
    matches!(style, Style::Marks | Style::LineAndMarks)
}

fn color(index: usize) -> RGBColor {
    OKABE_ITO[index % OKABE_ITO.len()]
}

/// The mark of a series: its shape differs from those of the next series with the same colour.
fn mark(index: usize, (x, y): (i32, i32)) -> Polygon<(i32, i32)> {
    const SHAPES: [&[(i32, i32)]; 4] = [
        &[(-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2), (-4, -2)],
        &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        &[(0, -5), (5, 4), (-5, 4)],
        &[(0, -5), (5, 0), (0, 5), (-5, 0)],
    ];
    let shape = SHAPES[index % SHAPES.len()];
    let corners: Vec<_> = shape.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    Polygon::new(corners, color(index).filled())
}
