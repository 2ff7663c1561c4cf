//! Letters at segments, so few that they can be read.

use std::collections::BTreeSet;

/// Of letters that would cover each other one is kept, and of one kind no more than this.
const MOST: usize = 400;
const CELL: (usize, usize) = (10, 13);

#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    cells: BTreeSet<(usize, usize)>,
    /// Column and row.
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
