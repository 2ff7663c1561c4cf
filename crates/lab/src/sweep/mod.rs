//! Sweeps: every combination of the axes' values with every seed, on one machine or in shards on
//! several.
//!
//! A cell is one combination with one seed. Its record does not depend on the host, the threads or
//! the time: the bytes are always the same.

mod merge;
mod order;
mod picture;
mod shard;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};

use airtcp_link::Trace;
use airtcp_sim::toml::{Setting, Source, Template};
use airtcp_sim::{Cancel, Scenario, Simulation};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::LabError;
use crate::study::{Asked, Axis, Design, Fields, Point, Value, fields, measure_names, point};

use order::in_order;

pub use merge::Merged;
pub use shard::{Done, Shard};

/// The maximum number of cells; a sweep with more is a mistake.
const MOST_CELLS: u64 = 100_000_000;

/// The default number of seeds of a varied scenario.
const SEEDS: u64 = 10;

/// Every combination of the axes' values with every seed.
///
/// ```
/// use airtcp_lab::{Shard, Sweep};
///
/// let text = r#"
///     measures = ["goodput", "timeouts"]
///     [[axis]]
///     name = "loss"
///     values = [0.1, 5]
///     [scenario]
///     duration = "2s"
///     wire = ["rate 10mbit delay 10ms loss {loss}% limit 50"]
///     flow = [{ strategies = "sack/reno" }]
/// "#;
/// let sweep = Sweep::read("mine.toml", text, Some(2), |_| Err("no traces here".into()))?;
/// assert_eq!(sweep.cells(), 4);
/// let dir = tempfile::tempdir()?;
/// sweep.run(Shard::WHOLE, dir.path(), None, |_| ())?;
/// sweep.merge(dir.path())?;
/// let records = std::fs::read_to_string(dir.path().join("records.csv"))?;
/// assert!(records.starts_with("seed,loss,goodput,timeouts\n1,0.1,"), "{records}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sweep<'s> {
    source: Source<'s>,
    form: Form<'s>,
    design: Design,
    /// All measures, in the order of the columns.
    asked: Vec<Asked>,
    seeds: u64,
    traces: Mutex<Traces>,
    cancel: Cancel,
}

/// The way to turn a point into a scenario.
enum Form<'s> {
    /// The point's values replace the placeholders of an experiment file.
    Filled(Template<'s>),
    /// The point's values replace keys of a scenario file.
    Varied,
}

/// Reads the trace that a link names.
type Load = Box<dyn FnMut(&str) -> Result<Trace, String> + Send>;

/// The traces of links, each read once, with its hash.
struct Traces {
    load: Load,
    known: BTreeMap<String, (Trace, [u8; 32])>,
}

/// The data that the cells of one point share.
struct Case {
    point: Point,
    scenario: Scenario,
    /// The hash of everything that their records depend on, except the seed.
    hash: Sha256,
}

/// One run.
struct Cell {
    /// From 1; the seed changes fastest, and the first axis slowest.
    number: u64,
    seed: u64,
    hash: String,
    case: Arc<Case>,
}

/// A line of a plan or a shard.
#[derive(Serialize)]
struct Line<'a> {
    cell: u64,
    hash: &'a str,
    #[serde(flatten)]
    record: Fields,
}

impl<'s> Sweep<'s> {
    /// Reads an experiment file, as [`Study`](crate::Study) does, but does not judge its claims.
    /// Every combination runs with the seeds 1 to `seeds`, or with the number of seeds in the file.
    ///
    /// # Errors
    ///
    /// The first mistake in the file, with its line and column; too many cells; an axis whose name
    /// is reserved.
    pub fn read(
        name: &'s str,
        text: &'s str,
        seeds: Option<u64>,
        load: impl FnMut(&str) -> Result<Trace, String> + Send + 'static,
    ) -> Result<Self, LabError> {
        let source = Source { name, text, settings: &[] };
        let design = Design::read(&source)?;
        Self::new(source, Form::Filled(source.template("scenario")?), design, seeds, load)
    }

    /// Varies keys of a scenario file. An axis is the path of a key, such as `flow.0.count`, and
    /// its values in the form of a [`Setting`]. The sweep records all measures.
    ///
    /// # Errors
    ///
    /// The first invalid axis; too many cells; an experiment file instead of a scenario file.
    pub fn vary(
        name: &'s str,
        text: &'s str,
        axes: &[(String, Vec<String>)],
        seeds: Option<u64>,
        load: impl FnMut(&str) -> Result<Trace, String> + Send + 'static,
    ) -> Result<Self, LabError> {
        let is_table = |line: &str| line.starts_with("[[axis]]") || line.starts_with("[scenario");
        if text.lines().any(|line| is_table(line.trim_start())) {
            let what = "this is an experiment file, and --vary takes a scenario file: leave out --vary and add an [[axis]] to the file";
            return Err(LabError::Sweep(format!("{name}: {what}")));
        }
        let mut design = Design::of_scenario(name, SEEDS);
        design.labels = axes.iter().map(|(path, _)| path.clone()).collect();
        for (path, values) in axes {
            let refuse =
                |what: &str| Err(LabError::Axis { axis: path.clone(), what: what.to_owned() });
            if design.axes.iter().any(|axis| axis.name == *path) {
                return refuse("it is varied twice: write all its values in one list");
            }
            if path == "seed" {
                return refuse("the seeds of a sweep are 1 to N: give their number with --seeds N");
            }
            if measure_names().any(|measure| measure == path) {
                return refuse(
                    "it is measured, and records have a field of that name: vary a key of the scenario",
                );
            }
            let axis = Axis::new(path, values.iter().map(|text| Value::of_text(text)));
            let all = &axis.values;
            let mut seen = BTreeSet::new();
            if all.is_empty() || !all.iter().all(|value| seen.insert(value.key())) {
                return refuse("expected one value or more, each of them once");
            }
            design.axes.push(axis);
        }
        let source = Source { name, text, settings: &[] };
        Self::new(source, Form::Varied, design, seeds, load)
    }

    fn new(
        source: Source<'s>,
        form: Form<'s>,
        design: Design,
        seeds: Option<u64>,
        load: impl FnMut(&str) -> Result<Trace, String> + Send + 'static,
    ) -> Result<Self, LabError> {
        if let Some(axis) = design.axes.iter().find(|axis| ["cell", "hash"].contains(&&*axis.name))
        {
            let what = "records have a field of that name: use another name".to_owned();
            return Err(LabError::Axis { axis: axis.name.clone(), what });
        }
        let seeds = seeds.unwrap_or(design.seeds).max(1);
        let mut lengths = design.axes.iter().map(|axis| axis.values.len() as u64);
        let cells = lengths.try_fold(seeds, u64::checked_mul);
        if cells.is_none_or(|cells| cells > MOST_CELLS) {
            let what = format!(
                "{}: the axes and the seeds make more than {MOST_CELLS} cells: use fewer values, or split the file",
                source.name
            );
            return Err(LabError::Sweep(what));
        }
        let asked = design.asked();
        let traces = Mutex::new(Traces { load: Box::new(load), known: BTreeMap::new() });
        let cancel = Cancel::default();
        Ok(Self { source, form, design, asked, seeds, traces, cancel })
    }

    /// Makes [`run`](Self::run) and [`merge`](Self::merge) end with an error as soon as `cancel` is
    /// set. Finished records are kept.
    #[must_use]
    pub fn with_cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> u64 {
        self.points() * self.seeds
    }

    fn points(&self) -> u64 {
        self.design.axes.iter().map(|axis| axis.values.len() as u64).product()
    }

    /// Writes a line of JSON for each cell: its number, the hash of everything that its record
    /// depends on, its seed, and the values of the axes.
    ///
    /// # Errors
    ///
    /// The first scenario that is invalid or cannot be run, before anything is written; write
    /// errors.
    pub fn plan(
        &self,
        threads: Option<NonZero<usize>>,
        out: &mut dyn Write,
    ) -> Result<(), LabError> {
        let points = || (0..self.points()).map(Ok);
        // Mistakes are reported before anything is written.
        let check = |index: u64| Ok(_ = Simulation::new(&self.case(index)?.scenario)?);
        in_order(threads, points(), check, |()| Ok(()))?;
        let of_point = |index: u64| {
            let mut lines = String::new();
            let first = index * self.seeds + 1;
            for cell in self.cases(first..first + self.seeds) {
                lines += &self.line(&cell?, &Fields::default())?;
            }
            Ok(lines)
        };
        in_order(threads, points(), of_point, |lines| {
            out.write_all(lines.as_bytes()).map_err(LabError::Output)
        })?;
        out.flush().map_err(LabError::Output)
    }

    /// Returns the cells of increasing `numbers`.
    fn cases(
        &self,
        numbers: impl Iterator<Item = u64>,
    ) -> impl Iterator<Item = Result<Cell, LabError>> {
        let mut last: Option<(u64, Arc<Case>)> = None;
        numbers.map(move |number| {
            self.cancel.check()?;
            let (index, seed) = ((number - 1) / self.seeds, (number - 1) % self.seeds + 1);
            let case = match &last {
                Some((known, case)) if *known == index => Arc::clone(case),
                _ => Arc::new(self.case(index)?),
            };
            let hash = case.hash_of(seed);
            last = Some((index, Arc::clone(&case)));
            Ok(Cell { number, seed, hash, case })
        })
    }

    /// Returns whether cell `number` with this seed and hash would belong to this sweep if the
    /// sweep had another number of seeds.
    fn has_with_other_seeds(&self, number: u64, seed: u64, hash: &str) -> bool {
        let Some(before) = number.checked_sub(seed) else { return false };
        // If the cell is of point `index`, each earlier point has `before / index` seeds.
        let is_possible = |index: &u64| match before.checked_rem(*index) {
            Some(rest) => rest == 0 && before / index >= seed,
            None => before == 0,
        };
        let points = (0..self.points().min(before + 1)).filter(is_possible);
        let mut cases = points.map(|index| self.case(index));
        cases.any(|case| case.is_ok_and(|case| case.hash_of(seed) == hash))
    }

    /// Returns the line of a cell with its measurements.
    fn line(&self, cell: &Cell, fields: &Fields) -> Result<String, LabError> {
        let Cell { number, seed, hash, case } = cell;
        let axes: Vec<&str> = self.design.axes.iter().map(|axis| axis.name.as_str()).collect();
        let place = fields! { seed: *seed }.and(case.point.fields(&axes));
        let record = place.and(fields.clone());
        Ok(serde_json::to_string(&Line { cell: *number, hash, record })? + "\n")
    }

    fn case(&self, index: u64) -> Result<Case, LabError> {
        let point = point(&self.design.axes, index as usize);
        let traces = || self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        let load = |name: &str| traces().load(name);
        let (scenario, text) = match &self.form {
            Form::Filled(template) => self.design.case(&self.source, template, &point, load)?,
            Form::Varied => {
                let settings: Vec<Setting> = point
                    .iter()
                    .map(|(path, value)| format!("{path}={value}").parse())
                    .collect::<Result<_, _>>()
                    .map_err(|error| LabError::Sweep(format!("{}: {error}", self.source.name)))?;
                let source = Source { settings: &settings, ..self.source };
                (source.read(load)?, source.settled_text()?)
            }
        };
        let mut hash = Sha256::new();
        feed(&mut hash, env!("CARGO_PKG_VERSION").as_bytes());
        feed(&mut hash, text.as_bytes());
        for name in scenario.traces.keys() {
            feed(&mut hash, name.as_bytes());
            hash.update(traces().known[name].1);
        }
        for (axis, value) in point.iter() {
            feed(&mut hash, axis.as_bytes());
            feed(&mut hash, &serde_json::to_vec(value)?);
        }
        for asked in &self.asked {
            feed(&mut hash, asked.name().as_bytes());
        }
        Ok(Case { point, scenario, hash })
    }
}

impl Case {
    fn hash_of(&self, seed: u64) -> String {
        let hash = self.hash.clone().chain_update(seed.to_le_bytes()).finalize();
        // Half of the hash suffices to distinguish cells.
        hex(&hash[..16])
    }
}

impl Traces {
    fn load(&mut self, name: &str) -> Result<Trace, String> {
        if let Some((trace, _)) = self.known.get(name) {
            return Ok(trace.clone());
        }
        let trace = (self.load)(name)?;
        let hash = Sha256::digest(format!("{trace:?}"));
        self.known.insert(name.to_owned(), (trace.clone(), hash.into()));
        Ok(trace)
    }
}

/// Adds a part with its length, so that different lists of parts give different bytes.
fn feed(hash: &mut Sha256, part: &[u8]) {
    hash.update((part.len() as u64).to_le_bytes());
    hash.update(part);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a function that wraps an error of writing `path`.
fn write_error(path: &std::path::Path) -> impl Fn(io::Error) -> LabError + use<> {
    let path = path.to_owned();
    move |source| LabError::Write { path: path.clone(), source }
}
