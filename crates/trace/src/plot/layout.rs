//! Layout of a picture: three panels with a common time axis.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::svg::{FONT, GRID, INFALLIBLE, INK, SMALL, number, text, width_of};

use super::picture::Picture;
use super::raster::Raster;
use super::series::{Series, clip};

const WIDTH: u32 = 1_200;
const HEIGHT: u32 = 1_000;
const LEFT: u32 = 92;
const RIGHT: u32 = 18;
/// The margin left of the vertical axis' label.
const MARGIN: u32 = 12;
const TITLE: u32 = 46;
const LEGEND: u32 = 22;
const TOP: u32 = LEGEND + ROWS as u32;
const MIDDLE: u32 = 190;

/// The width of the time axis and the height of the top panel, in pixels.
pub(super) const COLUMNS: usize = (WIDTH - LEFT - RIGHT) as usize;
pub(super) const ROWS: usize = 480;

/// The maximum number of bars of one colour, to limit the size of the file.
const MOST_BARS: usize = 5_000;

/// tcptrace's colours, darker for a white background; its white is black here.
const DATA: RGBColor = RGBColor(0, 0, 0);
const ACK: RGBColor = RGBColor(0x00, 0xa0, 0x30);
const EDGE: RGBColor = RGBColor(0xe0, 0xb0, 0x00);
const SACK: RGBColor = RGBColor(0xa0, 0x20, 0xf0);
const AGAIN: RGBColor = RGBColor(0xe0, 0x00, 0x00);
const ORDER: RGBColor = RGBColor(0xff, 0x60, 0xa0);
const SYN_FIN: RGBColor = RGBColor(0xff, 0x80, 0x00);
const ZERO: RGBColor = RGBColor(0xd0, 0x00, 0xd0);

const CWND: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const SSTHRESH: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const IN_FLIGHT: RGBColor = RGBColor(0x00, 0x9e, 0x73);
const SAMPLE: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
const SRTT: RGBColor = RGBColor(0xd5, 0x5e, 0x00);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// An entry of a legend: its colour, its symbol, its text.
struct Key(RGBColor, Look, &'static str);

#[derive(Clone, Copy)]
enum Look {
    /// A line of this width.
    Line(u32),
    Bar,
    Dot,
    Letter(&'static str),
}

pub(super) fn to_svg(picture: &Picture) -> String {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        root.fill(&WHITE).expect(INFALLIBLE);
        let (head, rest) = root.split_vertically(TITLE);
        let (top, rest) = rest.split_vertically(TOP);
        let (middle, bottom) = rest.split_vertically(MIDDLE);
        title(picture, &head);
        sequence(picture, &top);
        windows(picture, &middle);
        round_trips(picture, &bottom);
        root.present().expect(INFALLIBLE);
    }
    svg
}

fn title(picture: &Picture, area: &Area<'_>) {
    let style = text(17, &INK, HPos::Left, VPos::Center);
    area.draw(&Text::new(picture.title.clone(), (LEFT as i32, 16), style)).expect(INFALLIBLE);
    let labels = [&picture.retransmitted, &picture.out_of_order, &picture.duplicates];
    let left_out: u64 = labels.iter().map(|labels| labels.left_out).sum();
    let mut note = format!(
        "time-sequence graph at the sender, {} data segments; sequence 0 is {} on the wire",
        picture.segments,
        picture.isn()
    );
    if picture.is_dense() {
        note.push_str(&format!(
            ". {COLUMNS} columns: bars merged, arrowheads left out, lines from least to greatest"
        ));
    }
    if left_out > 0 {
        note.push_str(&format!(". {left_out} letters and ticks that would overlap left out"));
    }
    let style = text(SMALL, &INK, HPos::Left, VPos::Center);
    area.draw(&Text::new(note, (LEFT as i32, 36), style)).expect(INFALLIBLE);
}

fn legend(area: &Area<'_>, keys: &[Key]) {
    let mut x = LEFT as i32;
    let y = LEGEND as i32 / 2;
    for Key(color, look, words) in keys {
        match look {
            Look::Line(width) => {
                let line = PathElement::new([(x, y), (x + 18, y)], color.stroke_width(*width));
                area.draw(&line).expect(INFALLIBLE);
            }
            Look::Bar => {
                let bar = PathElement::new([(x + 9, y - 7), (x + 9, y + 7)], color.stroke_width(2));
                area.draw(&bar).expect(INFALLIBLE);
            }
            Look::Dot => {
                area.draw(&Circle::new((x + 9, y), 2, color.filled())).expect(INFALLIBLE);
            }
            Look::Letter(letter) => {
                let style = text(SMALL, color, HPos::Center, VPos::Center);
                area.draw(&Text::new(*letter, (x + 9, y), style)).expect(INFALLIBLE);
            }
        }
        let style = text(SMALL, &INK, HPos::Left, VPos::Center);
        area.draw(&Text::new(*words, (x + 23, y), style)).expect(INFALLIBLE);
        x += 23 + width_of(words, SMALL) + 10;
    }
}

/// Draws a panel with its axes. `bottom` is the label of the time axis, which only the last panel
/// has.
fn panel<'a, 'b>(
    area: &'a Area<'b>,
    picture: &Picture,
    y: Range<f64>,
    words: &str,
    bottom: Option<&str>,
) -> Chart<'a, 'b> {
    let (from, to) = time(picture);
    let mut chart = ChartBuilder::on(area)
        .margin_right(RIGHT)
        .margin_left(MARGIN)
        .y_label_area_size(LEFT - MARGIN)
        .x_label_area_size(if bottom.is_some() { 44 } else { 0 })
        .margin_bottom(if bottom.is_some() { 0 } else { 8 })
        .build_cartesian_2d(from..to, y.clone())
        .expect(INFALLIBLE);
    let (height, span) = (y.end - y.start, to - from);
    let x_format = |value: &f64| number(*value, span);
    let y_format = |value: &f64| number(*value, height);
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(12)
        .y_labels(if bottom.is_some() || height == 0.0 { 5 } else { 8 })
        .x_label_formatter(&x_format)
        .y_label_formatter(&y_format)
        .label_style((FONT, SMALL))
        .axis_desc_style((FONT, 15))
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .y_desc(words);
    if let Some(words) = bottom {
        mesh.x_desc(words);
    }
    mesh.draw().expect(INFALLIBLE);
    chart
}

/// Returns the range of the time axis in seconds, which is never empty.
fn time(picture: &Picture) -> (f64, f64) {
    let (from, to) = (picture.extent.from.as_secs_f64(), picture.extent.to.as_secs_f64());
    if to > from { (from, to) } else { (from, from + 1e-3) }
}

/// Returns the time of a column in seconds.
fn at(picture: &Picture, column: f64) -> f64 {
    let (from, to) = time(picture);
    from + (to - from) * column / COLUMNS as f64
}

fn sequence(picture: &Picture, area: &Area<'_>) {
    let (head, body) = area.split_vertically(LEGEND);
    let mut keys = vec![
        Key(DATA, Look::Bar, "data"),
        Key(AGAIN, Look::Bar, "sent again (R)"),
        Key(ACK, Look::Line(1), "ACK, tick: duplicate"),
        Key(SACK, Look::Bar, "SACK"),
    ];
    let (low, high) = picture.extent.seq_range();
    let edge = clip(&picture.edge.steps(), high);
    let words = match (picture.edge.is_empty(), edge.is_empty()) {
        (true, _) => "window: its scale is not known",
        (_, true) => "window: above the picture",
        _ => "window",
    };
    keys.push(Key(EDGE, Look::Line(1), words));
    let optional = [
        (&picture.out_of_order, ORDER, "O", "out of order"),
        (&picture.zero_window, ZERO, "Z", "zero window"),
        (&picture.dropped, AGAIN, "\u{d7}", "dropped by the link"),
        (&picture.timeouts, INK, "T", "RTO"),
    ];
    for (labels, color, letter, words) in optional {
        if !labels.at.is_empty() {
            keys.push(Key(color, Look::Letter(letter), words));
        }
    }
    legend(&head, &keys);

    let (unit, name) = bytes_unit(high);
    let range = low / unit..high / unit;
    let words = format!("sequence number ({name}), steeper is faster");
    let mut chart = panel(&body, picture, range, &words, None);
    for part in edge {
        path(&mut chart, picture, &part, unit, EDGE, 1);
    }
    for part in clip(&picture.ack.steps(), high) {
        path(&mut chart, picture, &part, unit, ACK, 1);
    }
    bars(&mut chart, picture, &picture.sacked, unit, SACK);
    bars(&mut chart, picture, &picture.new, unit, DATA);
    bars(&mut chart, picture, &picture.again, unit, AGAIN);

    let place = |column: usize, row: usize| {
        let seq = low + (high - low) * (row as f64 + 0.5) / ROWS as f64;
        (at(picture, column as f64 + 0.5), seq / unit)
    };
    if !picture.is_dense() {
        for (arrows, color) in picture.arrows.iter().zip([DATA, AGAIN]) {
            let heads = arrows.iter().map(|&(column, row, up)| {
                let y = if up { 3 } else { -3 };
                EmptyElement::at(place(column, row))
                    + PathElement::new([(-2, y), (0, 0), (2, y)], color)
            });
            chart.draw_series(heads).expect(INFALLIBLE);
        }
    }
    let ticks = picture.duplicates.at.iter().map(|&(column, row)| {
        EmptyElement::at(place(column, row)) + PathElement::new([(0, 0), (0, 4)], ACK)
    });
    chart.draw_series(ticks).expect(INFALLIBLE);
    let letters = [
        (&picture.retransmitted, AGAIN, "R", -7),
        (&picture.out_of_order, ORDER, "O", -7),
        (&picture.zero_window, ZERO, "Z", -7),
        (&picture.timeouts, INK, "T", -16),
    ];
    for (labels, color, letter, up) in letters {
        let style = text(SMALL, &color, HPos::Center, VPos::Center);
        let letters = labels.at.iter().map(|&(column, row)| {
            EmptyElement::at(place(column, row)) + Text::new(letter, (0, up), style.clone())
        });
        chart.draw_series(letters).expect(INFALLIBLE);
    }
    let crosses = picture.dropped.at.iter().map(|&(column, row)| {
        EmptyElement::at(place(column, row)) + Cross::new((0, 0), 4, AGAIN.stroke_width(2))
    });
    chart.draw_series(crosses).expect(INFALLIBLE);
    for &(column, row, word) in &picture.ends {
        let y = if word.starts_with('R') { 9 } else { -8 };
        // At the right edge of the picture, the text is on the left.
        let fits = column as i32 + 5 + width_of(word, SMALL) < COLUMNS as i32;
        let (x, side) = if fits { (5, HPos::Left) } else { (-5, HPos::Right) };
        let end = EmptyElement::at(place(column, row))
            + Circle::new((0, 0), 3, SYN_FIN.filled())
            + Text::new(word, (x, y), text(SMALL, &SYN_FIN, side, VPos::Center));
        chart.draw_series([end]).expect(INFALLIBLE);
    }
}

fn bars(chart: &mut Chart<'_, '_>, picture: &Picture, raster: &Raster, unit: f64, color: RGBColor) {
    let (low, high) = picture.extent.seq_range();
    let seq = |row: usize| (low + (high - low) * row as f64 / ROWS as f64) / unit;
    let bars = raster.runs(MOST_BARS).into_iter().map(|(column, from, to)| {
        let x = at(picture, column as f64 + 0.5);
        PathElement::new([(x, seq(from)), (x, seq(to + 1))], color)
    });
    chart.draw_series(bars).expect(INFALLIBLE);
}

fn path(
    chart: &mut Chart<'_, '_>,
    picture: &Picture,
    corners: &[(f64, f64)],
    unit: f64,
    color: RGBColor,
    width: u32,
) {
    let corners: Vec<_> =
        corners.iter().map(|&(column, value)| (at(picture, column), value / unit)).collect();
    let line = PathElement::new(corners, color.stroke_width(width));
    chart.draw_series([line]).expect(INFALLIBLE);
}

fn bytes_unit(greatest: f64) -> (f64, &'static str) {
    match greatest {
        ..20e3 => (1.0, "bytes"),
        ..20e6 => (1e3, "kB"),
        ..20e9 => (1e6, "MB"),
        _ => (1e9, "GB"),
    }
}

fn windows(picture: &Picture, area: &Area<'_>) {
    let (head, body) = area.split_vertically(LEGEND);
    let has_cwnd = !picture.cwnd.is_empty();
    let in_flight = if has_cwnd { &picture.pipe } else { &picture.outstanding };
    let words = if has_cwnd { "in flight" } else { "outstanding, from the packets" };
    // cwnd is wide and drawn first, so that another line on top of it does not hide it.
    let mut lines = Vec::new();
    if has_cwnd {
        lines.push((&picture.cwnd, CWND, "cwnd", 4));
        lines.push((&picture.ssthresh, SSTHRESH, "ssthresh", 2));
    }
    lines.push((in_flight, IN_FLIGHT, words, 1));
    let keys: Vec<Key> = lines
        .iter()
        .map(|&(_, color, words, width)| Key(color, Look::Line(width), words))
        .collect();
    legend(&head, &keys);
    // The scale ignores ssthresh, whose initial value is high.
    let greatest = [in_flight, &picture.cwnd].into_iter().filter_map(Series::greatest);
    let top = greatest.fold(1.0, f64::max) * 1.08;
    let (unit, name) = bytes_unit(top);
    let words = format!("window ({name})");
    let mut chart = panel(&body, picture, 0.0..top / unit, &words, None);
    for (series, color, _, width) in lines {
        for part in clip(&series.steps(), top) {
            path(&mut chart, picture, &part, unit, color, width);
        }
    }
}

fn round_trips(picture: &Picture, area: &Area<'_>) {
    let (head, body) = area.split_vertically(LEGEND);
    let has_rtt = !picture.rtt.is_empty();
    let samples = if has_rtt { &picture.rtt } else { &picture.round_trips };
    let words = if has_rtt { "RTT sample" } else { "RTT sample, from the packets" };
    let mut keys = vec![Key(SAMPLE, Look::Dot, words)];
    if has_rtt {
        keys.push(Key(SRTT, Look::Line(1), "SRTT"));
    }
    legend(&head, &keys);
    let greatest = [samples, &picture.srtt].into_iter().filter_map(Series::greatest);
    let top = greatest.fold(0.0, f64::max).max(1e-3) * 1.08;
    let mut chart = panel(&body, picture, 0.0..top, "RTT (ms), less is better", Some("time (s)"));
    for (column, value) in samples.columns() {
        let x = at(picture, column as f64 + 0.5);
        let (least, greatest) = ((x, value.least), (x, value.greatest));
        if greatest.1 > least.1 {
            let line = PathElement::new([least, greatest], SAMPLE);
            chart.draw_series([line]).expect(INFALLIBLE);
        }
        let dots = [least, greatest].into_iter().take(if least == greatest { 1 } else { 2 });
        let dots = dots.map(|place| Circle::new(place, 2, SAMPLE.filled()));
        chart.draw_series(dots).expect(INFALLIBLE);
    }
    for part in clip(&picture.srtt.steps(), top) {
        path(&mut chart, picture, &part, 1.0, SRTT, 1);
    }
}
