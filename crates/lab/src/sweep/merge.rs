//! Merges shards into records, means and pictures.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use airtcp_sim::Interval;
use serde_json::value::RawValue;

use super::picture::Plot;
use super::{Sweep, write_error};
use crate::LabError;
use crate::study::Point;

/// The output of a merge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merged {
    /// The files.
    pub files: Vec<PathBuf>,
    /// The reason why there are no pictures, if there are none.
    pub note: Option<String>,
}

impl Sweep<'_> {
    /// Checks all shards below `dir`, and writes `records.jsonl` and `records.csv` with a line for
    /// each cell, `means.csv` with a line for each combination, and pictures. The bytes do not
    /// depend on the number of shards.
    ///
    /// # Errors
    ///
    /// [`LabError::Shard`] for a shard that is missing, unfinished, damaged, or of another sweep;
    /// then no output is written.
    pub fn merge(&self, dir: &Path) -> Result<Merged, LabError> {
        let mut shards = self.shards(dir)?;
        let names: Vec<String> = self.asked.iter().map(|asked| asked.name()).collect();
        let (plots, note) = match Plot::all(&self.design) {
            Ok(plots) => (plots, None),
            Err(note) => (Vec::new(), Some(note)),
        };
        let mut lines = Output::new(dir.join("records.jsonl"))?;
        let mut table = Output::new(dir.join("records.csv"))?;
        let mut means = Means::new(self, &names, plots, Output::new(dir.join("means.csv"))?)?;
        let axes = self.design.axes.iter().map(|axis| axis.name.clone());
        let head: Vec<String> =
            ["seed".to_owned()].into_iter().chain(axes).chain(names.iter().cloned()).collect();
        table.row(&head)?;
        let of = shards.len() as u64;
        for cell in self.cases(1..=self.cells()) {
            let cell = cell?;
            let shard = &mut shards[((cell.number - 1) % of) as usize];
            let line = shard.expect(&cell)?;
            let record: BTreeMap<String, &RawValue> = serde_json::from_str(&line)?;
            lines.write(&line)?;
            let point = cell.case.point.iter().map(|(_, value)| value.to_string());
            // The text of the record; empty where nothing was measured.
            let figure =
                |name: &String| record.get(name).map(|raw| raw.get()).filter(|raw| *raw != "null");
            let figures: Vec<&str> = names.iter().map(|name| figure(name).unwrap_or("")).collect();
            let measured = figures.iter().map(|figure| (*figure).to_owned());
            let row = [cell.seed.to_string()].into_iter().chain(point).chain(measured);
            table.row(&row.collect::<Vec<_>>())?;
            means.add(&figures);
            if cell.seed == self.seeds {
                means.end(&cell.case.point)?;
            }
        }
        let all = self.cells();
        shards.iter_mut().try_for_each(|shard| shard.end(shard.cells(all)))?;
        let Means { plots, table: means, .. } = means;
        let mut files = vec![lines.finish()?, table.finish()?, means.finish()?];
        for plot in plots {
            let (name, figure) = plot.figure(&self.design);
            let mut picture = Output::new(dir.join(name))?;
            picture.write(figure.to_svg().trim_end())?;
            files.push(picture.finish()?);
        }
        Ok(Merged { files, note })
    }
}

/// The means of each combination, and their pictures.
struct Means<'a> {
    sweep: &'a Sweep<'a>,
    names: &'a [String],
    /// For each measure, the figures of the current combination, one for each seed that has a
    /// figure.
    figures: Vec<Vec<f64>>,
    plots: Vec<Plot>,
    table: Output,
}

impl<'a> Means<'a> {
    fn new(
        sweep: &'a Sweep<'a>,
        names: &'a [String],
        plots: Vec<Plot>,
        mut table: Output,
    ) -> Result<Self, LabError> {
        let columns =
            |name: &String| ["", "_low", "_high", "_runs"].map(|end| format!("{name}{end}"));
        let axes = sweep.design.axes.iter().map(|axis| axis.name.clone());
        table.row(&axes.chain(names.iter().flat_map(columns)).collect::<Vec<_>>())?;
        Ok(Self { sweep, names, figures: vec![Vec::new(); names.len()], plots, table })
    }

    fn add(&mut self, figures: &[&str]) {
        for (all, figure) in self.figures.iter_mut().zip(figures) {
            all.extend(figure.parse::<f64>());
        }
    }

    fn end(&mut self, point: &Point) -> Result<(), LabError> {
        let means: Vec<Interval> =
            self.figures.iter().map(|figures| Interval::of(figures)).collect();
        self.figures.iter_mut().for_each(Vec::clear);
        let columns = means.iter().flat_map(|mean| {
            let (low, high) = mean.bounds();
            let with = |is_there: bool, figure: f64| {
                if is_there { figure.to_string() } else { String::new() }
            };
            let has_interval = mean.half_width.is_some();
            [
                with(mean.n > 0, mean.mean),
                with(has_interval, low),
                with(has_interval, high),
                mean.n.to_string(),
            ]
        });
        let values = point.iter().map(|(_, value)| value.to_string());
        self.table.row(&values.chain(columns).collect::<Vec<_>>())?;
        for plot in &mut self.plots {
            plot.add(&self.sweep.design, point, |measure| {
                let index = self.names.iter().position(|name| name == measure);
                index.map_or_else(Interval::default, |index| means[index])
            });
        }
        Ok(())
    }
}

/// A file that is replaced only when its new content is complete.
struct Output {
    path: PathBuf,
    part: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    fn new(path: PathBuf) -> Result<Self, LabError> {
        let part = path.with_added_extension("part");
        let file = BufWriter::new(File::create(&part).map_err(write_error(&part))?);
        Ok(Self { path, part, file })
    }

    /// Writes a line.
    fn write(&mut self, line: &str) -> Result<(), LabError> {
        writeln!(self.file, "{line}").map_err(write_error(&self.part))
    }

    /// Writes a line of CSV (RFC 4180).
    fn row(&mut self, fields: &[String]) -> Result<(), LabError> {
        let quoted = |field: &String| match field.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", field.replace('"', "\"\"")),
            false => field.clone(),
        };
        self.write(&fields.iter().map(quoted).collect::<Vec<_>>().join(","))
    }

    fn finish(mut self) -> Result<PathBuf, LabError> {
        let done = self.file.flush().and_then(|()| fs::rename(&self.part, &self.path));
        done.map_err(write_error(&self.path))?;
        Ok(self.path.clone())
    }
}

/// Removes the unfinished file.
impl Drop for Output {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part);
    }
}
