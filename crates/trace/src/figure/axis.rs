//! Axes: the positions of values, and the ticks.

use super::{Axis, Scale};

/// The largest number that is drawn; its reciprocal is the smallest on a logarithmic axis.
const MAX: f64 = 1e100;

/// A logarithmic axis with less than this factor between its ends has the ticks of a linear one,
/// because 1, 2, 5 would be too few.
const NARROW: f64 = 5.0;
/// An axis with more decades than this has ticks at powers of ten only.
const WIDE: f64 = 3.0;

/// A tick: its position and its label.
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) words: String,
}

impl Axis {
    /// Whether a value is drawn. Larger numbers would leave no room between labels.
    pub(super) fn shows(&self, value: f64) -> bool {
        let size = value.abs();
        size <= MAX && (self.scale == Scale::Linear || value >= 1.0 / MAX)
    }

    /// Returns the position of a value, in units of the axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        }
    }

    /// Returns the ends of the axis: distinct, and above zero on a logarithmic axis.
    pub(super) fn ends(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
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
            (Scale::Linear, Some((low, high))) if low == 0.0 && high == 0.0 => (0.0, 1.0),
            (Scale::Log, None) => (1.0, 10.0),
            (Scale::Log, Some((low, high))) => (low / 1.2, high * 1.2),
            (Scale::Linear, Some((low, high))) => {
                let room = ((high - low) * 0.05).max(low.abs().max(high.abs()) * 1e-3).max(1e-9);
                // An axis of non-negative values starts at zero if they come close to it.
                let low = if low >= 0.0 && low < high * 0.5 { 0.0 } else { low - room };
                (low, high + room)
            }
        }
    }

    /// Returns about `count` ticks between two ends, in rising order.
    pub(super) fn ticks(&self, (low, high): (f64, f64), count: f64) -> Vec<Tick> {
        if self.scale == Scale::Linear || high / low < NARROW {
            let step = nice((high - low) / count.max(1.0));
            return multiples(step, low, high)
                .map(|value| Tick { at: self.place(value), words: words(value, step) })
                .collect();
        }
        let (from, to) = (low.log10(), high.log10());
        let leads: &[f64] = if to - from > WIDE { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let every = ((to - from) / count.max(1.0)).ceil().max(1.0);
        multiples(every, from - every, to)
            .flat_map(|power| leads.iter().map(move |lead| lead * 10_f64.powf(power)))
            .filter(|value| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value))
            .map(|value| Tick { at: self.place(value), words: words(value, value) })
            .collect()
    }
}

/// Returns the integer multiples of `step` between two ends.
fn multiples(step: f64, low: f64, high: f64) -> impl Iterator<Item = f64> {
    let (first, last) = ((low / step - 1e-6).ceil(), (high / step + 1e-6).floor());
    // The ends are at least 10^-9 of their size apart, so the count is exact.
    (0..=(last - first).max(-1.0) as i64).map(move |index| (first + index as f64) * step)
}

/// Returns the smallest of 1, 2, 5 times a power of ten that is at least `step`.
fn nice(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let lead = [1.0, 2.0, 5.0].into_iter().find(|lead| lead * power >= step * (1.0 - 1e-9));
    lead.unwrap_or(10.0) * power
}

/// Formats a value with enough digits to distinguish it from the next, which is `step` away.
fn words(value: f64, step: f64) -> String {
    let (size, digit) = (value.abs().max(step), (step.log10() + 1e-9).floor());
    if value.abs() < step * 1e-3 {
        return "0".to_owned();
    }
    if size >= 1e7 || digit < -4.0 {
        let digits = (size.log10().floor() - digit).clamp(0.0, 12.0) as usize;
        return format!("{value:.digits$e}");
    }
    let decimals = (-digit).max(0.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ticks(scale: Scale, low: f64, high: f64) -> Vec<String> {
        let axis = Axis { label: String::new(), scale, range: None };
        axis.ticks((low, high), 8.0).into_iter().map(|tick| tick.words).collect()
    }

    #[test]
    fn an_axis_of_zeros_ends_at_one() {
        let axis = Axis { label: String::new(), scale: Scale::Linear, range: None };
        assert_eq!(axis.ends([0.0, 0.0].into_iter()), (0.0, 1.0));
        assert_eq!(axis.ends([].into_iter()), (0.0, 1.0));
    }

    #[test]
    fn ticks_are_round_and_distinct() {
        let linear = |low, high| ticks(Scale::Linear, low, high);
        assert_eq!(linear(0.0, 10.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(linear(-0.13, 0.11), ["-0.10", "-0.05", "0", "0.05", "0.10"]);
        assert_eq!(linear(1e9, 1.5e9)[0], "1.0e9");
        let log = |low, high| ticks(Scale::Log, low, high);
        assert_eq!(log(0.4, 2.4), ["0.5", "1", "2"]);
        assert_eq!(log(2.0, 4.0), ["2.0", "2.5", "3.0", "3.5", "4.0"]);
        assert_eq!(log(0.001, 10.0), ["0.001", "0.01", "0.1", "1", "10"]);
        assert_eq!(log(1e-7, 1e-5), ["1e-7", "2e-7", "5e-7", "1e-6", "2e-6", "5e-6", "1e-5"]);
    }

    proptest! {
        /// Every axis has some ticks, not too many, and all with different labels.
        #[test]
        fn every_axis_has_ticks(low in -1e100..1e100_f64, share in 1e-8..3.0_f64, log: bool, tiny in -90..1) {
            let low = low * 10_f64.powi(tiny);
            let scale = if log { Scale::Log } else { Scale::Linear };
            let axis = Axis { label: String::new(), scale, range: None };
            let low = if log { low.abs().max(1e-99) } else { low };
            let ends = axis.ends([low, low + low.abs() * share].into_iter());
            let mut found: Vec<_> = axis.ticks(ends, 8.0).into_iter().map(|tick| tick.words).collect();
            prop_assert!((2..=12).contains(&found.len()), "{ends:?}: {found:?}");
            found.sort_unstable();
            let count = found.len();
            found.dedup();
            prop_assert_eq!(count, found.len(), "{:?}: {:?}", ends, found);
        }
    }
}
