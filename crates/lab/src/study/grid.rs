//! Runs every combination of some axes' values with every seed.

use airtcp_recovery::Profile;
use airtcp_sim::Interval;
use airtcp_trace::figure::{self, Series, Style};

use super::{Fields, Runs, Value};
use crate::{Findings, LabError, Run, draw, simulate};

/// The name of an axis and its values.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) values: Vec<Value>,
}

impl Axis {
    pub(crate) fn new<V: Into<Value>>(name: &str, values: impl IntoIterator<Item = V>) -> Self {
        Self { name: name.to_owned(), values: values.into_iter().map(Into::into).collect() }
    }
}

/// A value for each axis, which all runs of a cell share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Point {
    values: Vec<(String, Value)>,
    /// The point's index in the grid.
    pub(super) index: usize,
}

impl Point {
    /// Returns the value of an axis.
    ///
    /// # Panics
    ///
    /// Panics if there is no such axis.
    pub(crate) fn value(&self, axis: &str) -> &Value {
        let found = self.values.iter().find(|(name, _)| name == axis);
        let Some((_, value)) = found else { panic!("no axis `{axis}` in {self:?}") };
        value
    }

    /// Returns the value of an axis as text.
    pub(crate) fn text(&self, axis: &str) -> String {
        self.value(axis).to_string()
    }

    /// Returns the value of an axis as a number.
    ///
    /// # Panics
    ///
    /// Panics if the value is not a number, or if there is no such axis.
    pub(crate) fn number(&self, axis: &str) -> f64 {
        let value = self.value(axis);
        value.number().unwrap_or_else(|| panic!("`{axis}` is no number: {value:?}"))
    }

    /// Returns the profile on the axis `profile`.
    ///
    /// # Panics
    ///
    /// Panics if there is no such profile or no such axis.
    pub(crate) fn profile(&self) -> Profile {
        crate::paper::profile(&self.text("profile"))
    }

    /// Returns the values of these axes, as a part of a record.
    pub(crate) fn fields(&self, axes: &[&str]) -> Fields {
        let add =
            |fields: Fields, axis: &&str| fields.with((*axis).to_owned(), self.value(axis).clone());
        axes.iter().fold(Fields::default(), add)
    }

    /// Returns the index of the point's value on an axis. `axes` are the axes of the point's grid.
    pub(crate) fn place(&self, axes: &[Axis], name: &str) -> Option<usize> {
        let at = axes.iter().position(|axis| axis.name == name)?;
        let behind: usize = axes[at + 1..].iter().map(|axis| axis.values.len()).product();
        Some(self.index / behind % axes[at].values.len())
    }

    /// Returns names and values in the order of the axes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// All runs of one point, in the order of the seeds.
#[derive(Clone, Debug)]
struct Cell {
    point: Point,
    runs: Vec<Fields>,
}

/// Every point with its runs; the first axis changes slowest.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    axes: Vec<Axis>,
    cells: Vec<Cell>,
}

impl Grid {
    /// Calls `one` for every point and seed, on all cores. The result does not depend on the number
    /// of cores or on the order of the runs. If the experiment is judged from records, takes them
    /// instead.
    ///
    /// # Errors
    ///
    /// The error of the first run that failed, in the order of the points.
    pub(crate) fn run(
        run: &Run,
        axes: Vec<Axis>,
        one: impl Fn(&Point, u64) -> Result<Fields, LabError> + Sync,
    ) -> Result<Self, LabError> {
        let points = points(&axes);
        let seeds = run.seeds as usize;
        let done = match &run.recorded {
            None => simulate::spread(run, points.len() * seeds, |job| {
                one(&points[job / seeds], (job % seeds) as u64 + 1)
            })?,
            Some(recorded) => recorded.take(1..=run.seeds, points.iter().map(Point::iter))?,
        };
        let mut done = done.into_iter();
        let cell = |point| Cell { point, runs: done.by_ref().take(seeds).collect() };
        Ok(Self { axes, cells: points.into_iter().map(cell).collect() })
    }

    /// Adds a record of every run to `findings`: the seed, the values of `axes`, and the
    /// measurements.
    ///
    /// # Errors
    ///
    /// None: every value can be encoded as JSON.
    pub(crate) fn record(&self, findings: &mut Findings, axes: &[&str]) -> Result<(), LabError> {
        for Cell { point, runs } in &self.cells {
            for (index, fields) in runs.iter().enumerate() {
                findings
                    .record_fields(index as u64 + 1, &point.fields(axes).and(fields.clone()))?;
            }
        }
        Ok(())
    }

    pub(crate) fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// Returns the whole grid.
    pub(crate) fn all(&self) -> Slice<'_> {
        Slice { grid: self, at: Point::default(), cells: self.cells.iter().collect() }
    }
}

/// Returns every combination of the axes' values.
pub(super) fn points(axes: &[Axis]) -> Vec<Point> {
    let count = axes.iter().map(|axis| axis.values.len()).product();
    (0..count).map(|index| point(axes, index)).collect()
}

/// Returns the combination of the axes' values with this index, from 0; the first axis changes
/// slowest.
pub(crate) fn point(axes: &[Axis], index: usize) -> Point {
    let mut values = Vec::with_capacity(axes.len());
    let mut rest = index;
    for Axis { name, values: all } in axes.iter().rev() {
        values.push((name.clone(), all[rest % all.len()].clone()));
        rest /= all.len();
    }
    values.reverse();
    Point { values, index }
}

/// A part of a grid: the cells in which some axes have a fixed value.
#[derive(Clone, Debug)]
pub(crate) struct Slice<'a> {
    grid: &'a Grid,
    /// The values that all cells share.
    at: Point,
    cells: Vec<&'a Cell>,
}

impl Runs for Slice<'_> {
    fn runs(&self) -> impl Iterator<Item = &Fields> {
        self.cells.iter().flat_map(|cell| &cell.runs)
    }
}

impl<'a> Slice<'a> {
    /// Returns the part in which `axis` is `value`; `None` if no such cell was run.
    ///
    /// # Panics
    ///
    /// Panics if there is no such axis.
    pub(crate) fn get(&self, axis: &str, value: impl Into<Value>) -> Option<Self> {
        let value = value.into();
        let cells = self.cells.iter().copied();
        let cells: Vec<_> = cells.filter(|cell| *cell.point.value(axis) == value).collect();
        let mut at = self.at.clone();
        at.values.push((axis.to_owned(), value));
        (!cells.is_empty()).then_some(Self { grid: self.grid, at, cells })
    }

    /// Returns the part in which `axis` is `value`, for values that small runs contain too; see
    /// [`get`](Self::get).
    ///
    /// # Panics
    ///
    /// Panics if no such cell was run.
    pub(crate) fn at(&self, axis: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.get(axis, value.clone()).unwrap_or_else(|| panic!("no {axis} {value} was run"))
    }

    /// Returns the part for each value of an axis, in the order of the values.
    pub(crate) fn each(&self, axis: &str) -> impl Iterator<Item = Self> + use<'a> {
        let values = self.grid.axis(axis).map(|axis| axis.values.clone());
        let values = values.unwrap_or_else(|| panic!("no axis `{axis}`"));
        let (part, axis) = (self.clone(), axis.to_owned());
        values.into_iter().filter_map(move |value| part.get(&axis, value))
    }

    /// Returns the part for each combination of the values of some axes: the rows of a table.
    pub(crate) fn rows(&self, axes: &[&str]) -> Vec<Self> {
        axes.iter().fold(vec![self.clone()], |rows, axis| {
            rows.iter().flat_map(|row| row.each(axis).collect::<Vec<_>>()).collect()
        })
    }

    /// Returns the value of an axis that all cells share.
    pub(crate) fn value(&self, axis: &str) -> &Value {
        self.at.value(axis)
    }

    /// Returns the shared value of an axis as text.
    pub(crate) fn text(&self, axis: &str) -> String {
        self.at.text(axis)
    }

    /// Returns the shared value of an axis as a number.
    pub(crate) fn number(&self, axis: &str) -> f64 {
        self.at.number(axis)
    }

    /// Returns the sums over the runs of a field of counts, such as one for each bin.
    pub(crate) fn counts(&self, field: &str) -> Vec<u64> {
        let mut sums = Vec::new();
        for run in self.runs() {
            let Value::Counts(counts) = run.value(field) else { continue };
            sums.resize(counts.len(), 0);
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        sums
    }

    /// Returns a line of a picture for each value of `axis`, named after the value: the mean of a
    /// field, multiplied by its unit, at each value of the axis `x`.
    pub(crate) fn lines(&self, axis: &str, x: &str, (field, unit): (&str, f64)) -> Vec<Series> {
        let line = |part: Self| part.line(part.text(axis), x, unit, |cell| cell.mean(field));
        self.each(axis).map(line).collect()
    }

    /// Returns a line of a picture: a figure at each value of the axis `x`, multiplied by `unit`.
    pub(crate) fn line(
        &self,
        name: impl Into<String>,
        x: &str,
        unit: f64,
        figure: impl Fn(&Self) -> Interval,
    ) -> Series {
        let points: Vec<figure::Point> = self
            .each(x)
            .map(|part| (part.number(x), figure(&part)))
            // Points without samples are omitted.
            .filter(|(_, figure)| figure.n > 0)
            .map(|(x, figure)| draw::interval(x, &figure, unit))
            .collect();
        draw::series(name, Style::LineAndMarks, points)
    }
}
