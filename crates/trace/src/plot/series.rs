//! A value over time, for each pixel column.

/// A value that holds until it changes. For each column the first, the least, the greatest and the
/// last value are stored: they cover the same area as a line through all values.
#[derive(Clone, Debug)]
pub(super) struct Series {
    columns: Vec<Option<Column>>,
    /// The value at the start of the picture.
    held: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    first: f64,
    pub(super) least: f64,
    pub(super) greatest: f64,
    last: f64,
}

impl Series {
    pub(super) fn new(columns: usize) -> Self {
        Self { columns: vec![None; columns], held: None }
    }

    /// Sets the value before the first column.
    pub(super) fn hold(&mut self, value: f64) {
        self.held = Some(value);
    }

    pub(super) fn add(&mut self, column: usize, value: f64) {
        let Some(slot) = self.columns.get_mut(column) else { return };
        match slot {
            Some(column) => {
                column.least = column.least.min(value);
                column.greatest = column.greatest.max(value);
                column.last = value;
            }
            None => {
                *slot = Some(Column { first: value, least: value, greatest: value, last: value })
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_none() && self.columns.iter().all(Option::is_none)
    }

    pub(super) fn greatest(&self) -> Option<f64> {
        let columns = self.columns.iter().flatten().map(|column| column.greatest);
        columns.chain(self.held).reduce(f64::max)
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = (usize, Column)> {
        self.columns.iter().enumerate().filter_map(|(at, column)| column.map(|column| (at, column)))
    }

    /// Returns the corners of the line, as column and value.
    pub(super) fn steps(&self) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        let mut held = self.held;
        if let Some(value) = held {
            corners.push((0.0, value));
        }
        for (at, Column { first, least, greatest, last }) in self.columns() {
            let x = at as f64 + 0.5;
            for value in held.into_iter().chain([first, least, greatest, last]) {
                if corners.last() != Some(&(x, value)) {
                    corners.push((x, value));
                }
            }
            held = Some(last);
        }
        if let Some(value) = held {
            corners.push((self.columns.len() as f64, value));
        }
        corners
    }
}

/// Returns the parts of a line at or below `top`; a part that crosses `top` ends there.
pub(super) fn clip(corners: &[(f64, f64)], top: f64) -> Vec<Vec<(f64, f64)>> {
    let mut parts = vec![Vec::new()];
    for pair in corners.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if from.1 > top && to.1 > top {
            parts.push(Vec::new());
            continue;
        }
        // Lines are steps, so a line crosses the top vertically.
        let part = parts.last_mut().expect("there is one from the start");
        if part.is_empty() {
            part.push((from.0, from.1.min(top)));
        }
        part.push((to.0, to.1.min(top)));
    }
    parts.retain(|part| part.len() > 1);
    parts
}
