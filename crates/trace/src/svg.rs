//! The common parts of all pictures: colours, units, text.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(crate) const FONT: &str = "sans-serif";

/// The message of `expect` for drawing into a string, which cannot fail.
pub(crate) const INFALLIBLE: &str = "an SVG is drawn into memory";

/// The size of the smallest text, at least 11 pixels: plotters divides sizes by 1.24.
pub(crate) const SMALL: u32 = 14;

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

/// Breaks text between words into lines of at most `room` pixels. A longer word has a line of its
/// own.
pub(crate) fn lines(text: &str, size: u32, room: i32) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if line.is_empty() || width_of(&longer, size) <= room {
            *line = longer;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Returns the size of the smallest text of an SVG in pixels.
#[cfg(test)]
pub(crate) fn smallest_text(svg: &str) -> f64 {
    let sizes = svg.split("font-size=\"").skip(1).filter_map(|rest| rest.split('"').next());
    sizes.filter_map(|size| size.parse().ok()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words() {
        let room = width_of("one two", 14);
        assert_eq!(lines("one two three", 14, room), ["one two", "three"]);
        assert_eq!(lines("a-very-long-word b", 14, 10), ["a-very-long-word", "b"]);
        assert_eq!(lines("", 14, 10), [""]);
    }
}
