//! Vertical bars on the pixels of a panel.

/// The pixels of a panel, each covered or not. Bars on the same pixels are merged, so their number
/// is bounded.
#[derive(Clone, Debug)]
pub(super) struct Raster {
    columns: Vec<Box<[u64]>>,
}

/// A bar: its column, its lowest and its highest row.
pub(super) type Run = (usize, usize, usize);

impl Raster {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self { columns: vec![vec![0; rows.div_ceil(64)].into_boxed_slice(); columns] }
    }

    /// Covers the rows from `low` to `high`, both included.
    pub(super) fn cover(&mut self, column: usize, low: usize, high: usize) {
        let Some(words) = self.columns.get_mut(column) else { return };
        for (index, word) in words.iter_mut().enumerate() {
            let (first, last) = (index * 64, index * 64 + 63);
            if low <= last && high >= first {
                let from = low.max(first) - first;
                let to = high.min(last) - first;
                *word |= (u64::MAX >> (63 - (to - from))) << from;
            }
        }
    }

    /// Returns the covered pixels as at most `most` bars; to reach that, gaps of a few pixels are
    /// closed.
    pub(super) fn runs(&self, most: usize) -> Vec<Run> {
        let mut gap = 1;
        loop {
            let runs: Vec<Run> = (0..self.columns.len())
                .flat_map(|column| self.column_runs(column, gap).into_iter())
                .collect();
            if runs.len() <= most || gap > 64 {
                return runs;
            }
            gap *= 2;
        }
    }

    fn column_runs(&self, column: usize, gap: usize) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (index, &word) in self.columns[column].iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let row = index * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                match runs.last_mut() {
                    Some((_, _, high)) if row - *high <= gap => *high = row,
                    _ => runs.push((column, row, row)),
                }
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_covered_is_drawn(bars in prop::collection::vec((0..200_usize, 0..200_usize), 0..20)) {
            let mut raster = Raster::new(1, 200);
            let mut expected = [false; 200];
            for (a, b) in bars {
                let (low, high) = (a.min(b), a.max(b));
                raster.cover(0, low, high);
                expected[low..=high].fill(true);
            }
            let mut drawn = [false; 200];
            for (_, low, high) in raster.runs(usize::MAX) {
                drawn[low..=high].fill(true);
            }
            prop_assert_eq!(drawn, expected);
        }
    }

    #[test]
    fn the_number_of_bars_has_a_bound() {
        let mut raster = Raster::new(10, 400);
        for column in 0..10 {
            for row in (0..400).step_by(2) {
                raster.cover(column, row, row);
            }
        }
        assert_eq!(raster.runs(usize::MAX).len(), 2_000);
        assert_eq!(raster.runs(100), (0..10).map(|column| (column, 0, 398)).collect::<Vec<_>>());
    }
}
