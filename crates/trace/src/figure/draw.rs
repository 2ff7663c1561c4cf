//! Drawing of a figure as an SVG.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::svg::{FONT, GRID, INFALLIBLE, INK, OKABE_ITO, SMALL, lines, text, width_of};

use super::axis::Tick;
use super::names::{self, Named};
use super::{Axis, Figure, Point, Scale, Series, Style};

/// The width of a picture. The book's pages show it without reduction.
pub(super) const WIDTH: u32 = 760;
/// The height of the axes with their labels.
const HEIGHT: u32 = 440;
const TITLE_SIZE: u32 = 18;
const TITLE_LINE: u32 = 24;
const TITLE_MARGIN: u32 = 14;
const LEGEND_LINE: u32 = 22;
const LEFT: u32 = 78;
const RIGHT: u32 = 24;
/// The margin left of the vertical axis' label.
const MARGIN: u32 = 12;
/// The approximate number of ticks per axis.
const TICKS: f64 = 8.0;
/// The number of marks on a line without a mark at each point.
const SPARSE: f64 = 8.0;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
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
    let frame = Frame::of(figure);
    let names = frame.names_at_ends(figure);
    let keys = if names.is_some() { Vec::new() } else { keys(figure) };
    let legend_height = legend_height(&keys);
    let head = title_height(&figure.title);
    let mut svg = String::new();
    {
        let size = (WIDTH, head + legend_height + HEIGHT);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).expect(INFALLIBLE);
        title(&figure.title, LEFT as i32, &root);
        let (_, rest) = root.split_vertically(head);
        let (above, body) = rest.split_vertically(legend_height);
        legend(&keys, LEFT as i32, &above);
        let right = names.map_or(RIGHT, |width| names::LEADER + width);
        let (ends, heights) = axes(figure, frame, right, &body);
        if names.is_some() {
            names::draw(&root, ends, heights);
        }
        root.present().expect(INFALLIBLE);
    }
    svg
}

/// Returns the height of a title.
pub(super) fn title_height(title: &str) -> u32 {
    TITLE_MARGIN + TITLE_LINE * title_lines(title).len() as u32
}

fn title_lines(title: &str) -> Vec<String> {
    lines(title, TITLE_SIZE, (WIDTH - LEFT - RIGHT) as i32)
}

/// Draws a title at the top of `area`.
pub(super) fn title(title: &str, left: i32, area: &Area<'_>) {
    for (line, words) in title_lines(title).into_iter().enumerate() {
        let at = (left, (TITLE_MARGIN + TITLE_LINE * line as u32 + 6) as i32);
        let style = text(TITLE_SIZE, &INK, HPos::Left, VPos::Center);
        area.draw(&Text::new(words, at, style)).expect(INFALLIBLE);
    }
}

/// An entry of the legend.
pub(super) struct Key<'a> {
    pub(super) name: &'a str,
    pub(super) is_lined: bool,
    pub(super) is_marked: bool,
}

fn keys(figure: &Figure) -> Vec<Key<'_>> {
    let has_several = has_several_lines(figure);
    let keys = figure.series.iter().map(|series| {
        let (is_lined, is_marked) = (is_lined(series.style), is_marked(series.style));
        Key { name: &series.name, is_lined, is_marked: is_marked || (is_lined && has_several) }
    });
    keys.collect()
}

/// Returns the height of a legend.
pub(super) fn legend_height(keys: &[Key<'_>]) -> u32 {
    legend_places(keys).last().map_or(0, |(_, y)| *y as u32 + LEGEND_LINE - 8)
}

/// Returns the positions of the entries. A legend of several lines has columns.
fn legend_places(keys: &[Key<'_>]) -> Vec<(i32, i32)> {
    let room = (WIDTH - LEFT - RIGHT) as i32;
    let (mut x, mut line) = (0, 0);
    let mut places = Vec::new();
    let widths = || keys.iter().map(|key| 24 + width_of(key.name, SMALL) + 18);
    let has_columns = widths().sum::<i32>() > room;
    let column = widths().max().filter(|_| has_columns).unwrap_or(0);
    for width in widths().map(|width| width.max(column)) {
        if x > 0 && x + width > room {
            (x, line) = (0, line + 1);
        }
        places.push((x, line * LEGEND_LINE as i32 + 8));
        x += width;
    }
    places
}

/// Draws a legend whose entries begin at `left`.
pub(super) fn legend(keys: &[Key<'_>], left: i32, area: &Area<'_>) {
    for (index, (key, (x, y))) in keys.iter().zip(legend_places(keys)).enumerate() {
        let (x, color) = (left + x, color(index));
        if key.is_lined {
            line(area, index, vec![(x, y), (x + 19, y)], color);
        }
        if key.is_marked {
            area.draw(&mark(index, (x + 9, y))).expect(INFALLIBLE);
        }
        let style = text(SMALL, &INK, HPos::Left, VPos::Center);
        area.draw(&Text::new(key.name.to_owned(), (x + 24, y), style)).expect(INFALLIBLE);
    }
}

fn line(area: &Area<'_>, index: usize, corners: Vec<(i32, i32)>, color: RGBColor) {
    let style = color.stroke_width(2);
    match is_dashed(index) {
        false => area.draw(&PathElement::new(corners, style)),
        true => area.draw(&DashedPathElement::new(corners, 7, 5, style)),
    }
    .expect(INFALLIBLE);
}

/// The ends of the axes, as values and in the units of the axes.
#[derive(Clone, Copy)]
struct Frame {
    values: [(f64, f64); 2],
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    fn of(figure: &Figure) -> Self {
        let points = || figure.series.iter().flat_map(|s| &s.points).filter(|p| shows(figure, p));
        let x_ends = figure.x.ends(points().map(|point| point.x));
        let y_ends = figure.y.ends(points().flat_map(|p| [Some(p.y), p.low, p.high]).flatten());
        let placed = |axis: &Axis, ends: (f64, f64)| (axis.place(ends.0), axis.place(ends.1));
        Self {
            values: [x_ends, y_ends],
            x: placed(&figure.x, x_ends),
            y: placed(&figure.y, y_ends),
        }
    }

    fn has(&self, (x, y): (f64, f64)) -> bool {
        (self.x.0..=self.x.1).contains(&x) && (self.y.0..=self.y.1).contains(&y)
    }

    /// Returns the width of the names if each series is a line that can have its name at its right
    /// end: the lines end at the same place, and there are a few.
    fn names_at_ends(&self, figure: &Figure) -> Option<u32> {
        if !(2..=names::MOST).contains(&figure.series.len()) {
            return None;
        }
        let end = |series: &Series| {
            let last = series.points.iter().rfind(|point| shows(figure, point))?;
            let at = (figure.x.place(last.x), figure.y.place(last.y));
            (is_lined(series.style) && self.has(at)).then_some(at.0)
        };
        let ends = figure.series.iter().map(end).collect::<Option<Vec<f64>>>()?;
        let last = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let near = (self.x.1 - self.x.0) * 0.02;
        let widths = figure.series.iter().map(|series| width_of(&series.name, SMALL) as u32);
        let width = widths.max().filter(|width| *width <= names::WIDEST)?;
        ends.iter().all(|end| last - end <= near).then_some(width)
    }
}

fn shows(figure: &Figure, point: &Point) -> bool {
    figure.x.shows(point.x) && figure.y.shows(point.y)
}

/// Returns the label of an axis, which names a logarithmic scale.
pub(super) fn label(axis: &Axis) -> String {
    match axis.scale {
        Scale::Linear => axis.label.clone(),
        Scale::Log => format!("{}, log scale", axis.label),
    }
}

/// Draws the axes and the series; returns the ends of the lines, and the top and the bottom of the
/// axes in pixels.
fn axes(figure: &Figure, frame: Frame, right: u32, area: &Area<'_>) -> (Vec<Named>, (i32, i32)) {
    let ticked = |axis: &Axis, values, (from, to): (f64, f64)| Ticked {
        inner: (from..to).into(),
        ticks: axis.ticks(values, TICKS),
    };
    let x = ticked(&figure.x, frame.values[0], frame.x);
    let y = ticked(&figure.y, frame.values[1], frame.y);
    let mut chart = ChartBuilder::on(area)
        .margin_left(MARGIN)
        .margin_right(right)
        .margin_top(6)
        .margin_bottom(8)
        .x_label_area_size(50)
        .y_label_area_size(LEFT - MARGIN)
        .build_cartesian_2d(x, y)
        .expect(INFALLIBLE);
    chart
        .configure_mesh()
        .x_desc(label(&figure.x))
        .y_desc(label(&figure.y))
        .label_style((FONT, SMALL))
        .axis_desc_style((FONT, 15))
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .draw()
        .expect(INFALLIBLE);
    let mut ends = Vec::new();
    let has_several = has_several_lines(figure);
    for (index, series) in figure.series.iter().enumerate() {
        let points = series.points.iter().filter(|point| shows(figure, point));
        let points = points.map(|point| Placed::new(figure, point, frame.y)).collect::<Vec<_>>();
        draw_series(&mut chart, index, series.style, &points, frame);
        if is_lined(series.style) && !is_marked(series.style) && has_several {
            for point in sparse(&points, index, frame) {
                let mark = EmptyElement::at(point.at) + mark(index, (0, 0));
                chart.draw_series([mark]).expect(INFALLIBLE);
            }
        }
        if let Some(last) = points.last() {
            let at = chart.backend_coord(&last.at);
            ends.push(Named { index, name: series.name.clone(), at });
        }
    }
    let (_, heights) = chart.plotting_area().get_pixel_range();
    (ends, (heights.start, heights.end))
}

/// Returns the points of a line that have a mark: a few, at other places than those of the next
/// line.
fn sparse(points: &[Placed], index: usize, frame: Frame) -> impl Iterator<Item = &Placed> {
    let step = (frame.x.1 - frame.x.0) / SPARSE;
    let mut next = frame.x.0 + step * (0.25 + 0.37 * index as f64).fract();
    points.iter().filter(move |point| {
        let is_due = frame.has(point.at) && point.at.0 >= next;
        if is_due {
            next += step * (((point.at.0 - next) / step).floor() + 1.0);
        }
        is_due
    })
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
    frame: Frame,
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
        for part in corners.split(|&corner| !frame.has(corner)).filter(|part| part.len() > 1) {
            let style = color.stroke_width(2);
            if is_dashed(index) {
                let line = DashedPathElement::new(part.to_vec(), 7, 5, style);
                chart.draw_series([line]).expect(INFALLIBLE);
            } else {
                let line = PathElement::new(part.to_vec(), style);
                chart.draw_series([line]).expect(INFALLIBLE);
            }
        }
    }
    for point in points.iter().filter(|point| frame.has(point.at)) {
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

/// Whether lines need marks beside colours, which not everybody can distinguish.
fn has_several_lines(figure: &Figure) -> bool {
    figure.series.iter().filter(|series| is_lined(series.style)).count() > 1
}

/// Whether the lines of a series are dashed, because an earlier one has the same colour.
fn is_dashed(index: usize) -> bool {
    index >= OKABE_ITO.len()
}

pub(super) fn color(index: usize) -> RGBColor {
    OKABE_ITO[index % OKABE_ITO.len()]
}

/// The mark of a series: its shape differs from those of the next series with the same colour.
pub(super) fn mark(index: usize, (x, y): (i32, i32)) -> Polygon<(i32, i32)> {
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
