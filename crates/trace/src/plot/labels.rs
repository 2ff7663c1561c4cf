//! Labels at segments, limited in number so that they stay readable.

use std::collections::BTreeSet;

/// The maximum number of labels of one kind; of overlapping labels only one is kept.
const MOST: usize = 400;
const CELL: (usize, usize) = (10, 13);

#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    cells: BTreeSet<(usize, usize)>,
    /// Column and row of each label.
    pub(super) at: Vec<(usize, usize)>,
    pub(super) left_out: u64,
}

impl Labels {
    pub(super) fn add(&mut self, column: usize, row: usize) {
        let fits = self.at.len() < MOST && self.cells.insert((column / CELL.0, row / CELL.1));
        if fits {
            self.at.push((column, row));
        } else {
            self.left_out += 1;
        }
    }
}
