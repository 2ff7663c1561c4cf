//! The points of a chart, reduced while they are collected, to limit the memory and the size of the
//! page.

use serde::Serialize;

/// A point, or a vertical bar from `low` to `high`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) x: i64,
    pub(crate) low: i64,
    pub(crate) high: i64,
}

/// The style of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Look {
    /// Straight lines between points.
    Line,
    /// Each value holds until the next point.
    Step,
    Dots,
    Bars,
    Crosses,
}

/// Collects a series of at most `most` marks.
#[derive(Debug)]
pub(crate) struct Series {
    look: Look,
    most: usize,
    marks: Vec<Mark>,
    seen: u64,
    width: i64,
}

/// The largest value; differences of such values are exact in JavaScript.
const LARGEST: i64 = 1 << 52;

/// The maximum number of marks kept per bin.
const KEPT: usize = 4;

impl Series {
    pub(crate) fn new(look: Look, most: usize) -> Self {
        Self { look, most: most.max(2 * KEPT), marks: Vec::new(), seen: 0, width: 0 }
    }

    pub(crate) fn point(&mut self, x: i64, y: i64) {
        self.bar(x, y, y);
    }

    /// Adds a point, unless the last one has the same value.
    pub(crate) fn change(&mut self, x: i64, y: i64) {
        if self.marks.last().is_none_or(|last| last.high != y) {
            self.point(x, y);
        }
    }

    pub(crate) fn bar(&mut self, x: i64, low: i64, high: i64) {
        self.seen += 1;
        let [x, low, high] = [x, low, high].map(|value| value.clamp(-LARGEST, LARGEST));
        self.marks.push(Mark { x, low, high });
        if self.marks.len() > 2 * self.most {
            self.reduce();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Whether no value is above `most`.
    pub(crate) fn is_at_most(&self, most: i64) -> bool {
        self.marks.iter().all(|mark| mark.high <= most)
    }

    /// Returns the marks in the order of `x`, with a name and a colour, which is a class of the
    /// page's style.
    pub(crate) fn named(mut self, name: impl Into<String>, color: impl Into<String>) -> Drawn {
        if self.marks.len() > self.most {
            self.reduce();
        }
        self.marks.sort_by_key(|mark| mark.x);
        let has_bars = self.look == Look::Bars || self.look == Look::Crosses;
        Drawn {
            name: name.into(),
            color: color.into(),
            look: self.look,
            seen: self.seen,
            x: differences(self.marks.iter().map(|mark| mark.x)),
            y: differences(self.marks.iter().map(|mark| mark.low)),
            h: has_bars.then(|| self.marks.iter().map(|mark| mark.high - mark.low).collect()),
        }
    }

    /// Divides the range of `x` into bins and keeps a few marks of each: for lines the first,
    /// lowest, highest and last; for bars at most [`KEPT`] bars that cover all.
    fn reduce(&mut self) {
        self.marks.sort_by_key(|mark| mark.x);
        let (Some(first), Some(last)) = (self.marks.first(), self.marks.last()) else { return };
        let (start, span) = (first.x, last.x.saturating_sub(first.x));
        let bins = i64::try_from(self.most / KEPT).unwrap_or(i64::MAX).max(2) - 1;
        self.width = (span / bins + 1).max(self.width.saturating_mul(2));
        let bin = |mark: &Mark| mark.x.saturating_sub(start) / self.width;
        let mut kept = Vec::with_capacity(self.most);
        for marks in self.marks.chunk_by(|a, b| bin(a) == bin(b)) {
            match self.look {
                Look::Bars | Look::Crosses => covered(marks, &mut kept),
                _ => corners(marks, &mut kept),
            }
        }
        self.marks = kept;
    }
}

/// Keeps the first, lowest, highest and last of `marks`, without duplicates.
fn corners(marks: &[Mark], kept: &mut Vec<Mark>) {
    let lowest = (0..marks.len()).min_by_key(|&index| marks[index].low);
    let highest = (0..marks.len()).max_by_key(|&index| marks[index].high);
    let mut indices = [Some(0), lowest, highest, marks.len().checked_sub(1)];
    indices.sort_unstable();
    let mut before = None;
    for index in indices.into_iter().flatten() {
        if before.replace(index) != Some(index) {
            kept.push(marks[index]);
        }
    }
}

/// Keeps at most [`KEPT`] bars that cover `marks`: the smallest gaps are closed.
fn covered(marks: &[Mark], kept: &mut Vec<Mark>) {
    let Some(x) = marks.first().map(|mark| mark.x) else { return };
    let mut sorted = marks.to_vec();
    sorted.sort_by_key(|mark| mark.low);
    let mut bars: Vec<Mark> = Vec::new();
    for mark in sorted {
        match bars.last_mut() {
            Some(last) if mark.low <= last.high => last.high = last.high.max(mark.high),
            _ => bars.push(Mark { x, ..mark }),
        }
    }
    let mut gaps: Vec<(i64, usize)> =
        (1..bars.len()).map(|index| (bars[index].low - bars[index - 1].high, index)).collect();
    gaps.sort_unstable_by_key(|&(gap, index)| (std::cmp::Reverse(gap), index));
    // The widest gaps stay open.
    let mut open: Vec<usize> = gaps.into_iter().take(KEPT - 1).map(|(_, index)| index).collect();
    open.sort_unstable();
    let mut start = 0;
    for end in open.into_iter().chain([bars.len()]) {
        let (low, high) = (bars[start].low, bars[end - 1].high);
        kept.push(Mark { x, low, high });
        start = end;
    }
}

/// A series in the form that the page's script reads: `x` and `y` as differences from the previous
/// value, and the heights of bars.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Drawn {
    pub(crate) name: String,
    pub(crate) color: String,
    look: Look,
    /// The number of points before the reduction.
    seen: u64,
    x: Vec<i64>,
    y: Vec<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    h: Option<Vec<i64>>,
}

fn differences(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut before = 0;
    values.map(|value| value - std::mem::replace(&mut before, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_stay_as_they_are() {
        let mut series = Series::new(Look::Line, 100);
        for (x, y) in [(10, 5), (20, 3), (15, 4)] {
            series.point(x, y);
        }
        let drawn = series.named("a", "c0");
        assert_eq!((drawn.x, drawn.y, drawn.h), (vec![10, 5, 5], vec![5, -1, -1], None));
        assert_eq!(drawn.seen, 3);
    }

    #[test]
    fn many_points_are_reduced_and_keep_their_extremes() {
        let mut series = Series::new(Look::Line, 100);
        for x in 0..100_000 {
            series.point(x, if x == 77_777 { 1_000 } else { x % 10 });
            assert!(series.marks.len() <= 201);
        }
        let drawn = series.named("a", "c0");
        assert!(drawn.x.len() <= 108, "{}", drawn.x.len());
        assert_eq!(drawn.seen, 100_000);
        let values: Vec<i64> = drawn
            .y
            .iter()
            .scan(0, |sum, y| {
                Some({
                    *sum += y;
                    *sum
                })
            })
            .collect();
        assert_eq!((values.iter().min(), values.iter().max()), (Some(&0), Some(&1_000)));
        assert_eq!(drawn.x.iter().sum::<i64>(), 99_999, "the last point stays");
    }

    #[test]
    fn bars_of_a_bin_are_merged_over_the_smallest_gaps() {
        let bar = |low, high| Mark { x: 1, low, high };
        let all = [
            bar(0, 10),
            bar(10, 20),
            bar(50, 60),
            bar(21, 30),
            bar(90, 99),
            bar(70, 80),
            bar(200, 201),
        ];
        let mut kept = Vec::new();
        covered(&all, &mut kept);
        assert_eq!(kept, [bar(0, 30), bar(50, 60), bar(70, 99), bar(200, 201)]);
    }

    #[test]
    fn points_at_one_time_and_at_the_ends_of_the_range_are_bounded() {
        for look in [Look::Line, Look::Bars] {
            let mut series = Series::new(look, 8);
            for value in 0..1_000 {
                series.point(if value % 2 == 0 { i64::MIN / 4 } else { i64::MAX / 4 }, 3 * value);
            }
            assert!(series.named("a", "c0").x.len() <= 16);
        }
    }
}
