//! The common parts of all pictures: colours, units, text.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(crate) const FONT: &str = "sans-serif";

/// The message of `expect` for drawing into a string, which cannot fail.
pub(crate) const INFALLIBLE: &str = "an SVG is drawn into memory";

pub(crate) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(crate) const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);

/// The colours of Okabe and Ito, which are distinguishable on white, also for colour-blind people.
pub(crate) const OKABE_ITO: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x00, 0x00),
];

pub(crate) fn text<'a>(size: u32, color: &'a RGBColor, h: HPos, v: VPos) -> TextStyle<'a> {
    TextStyle::from((FONT, size).into_font()).color(color).pos(Pos::new(h, v))
}

/// Formats a number with the decimals that the step between labels requires; `span` is the range of
/// the axis.
pub(crate) fn number(value: f64, span: f64) -> String {
    let decimals = (1.5 - span.abs().max(1e-9).log10()).ceil().clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    // Avoids a negative zero.
    if text.trim_start_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { text }
}

/// Returns the approximate width of text in pixels.
pub(crate) fn width_of(text: &str, size: u32) -> i32 {
    (text.chars().count() as f64 * f64::from(size) * 0.56).ceil() as i32
}
