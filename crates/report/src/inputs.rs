//! Finds the files to show in directories.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::{ReportError, lab, sweep};

/// The maximum size in bytes of a file that is read into memory.
const LONGEST: u64 = 64 << 20;

/// File names of `airtcp lab run --out`.
const SUMMARY: &str = "summary.json";
const SUMMARIES: &str = "summaries.jsonl";
/// File names of `--trace`.
const PACKETS: &str = "packets.pcapng";
const EVENTS: &str = "events.sqlog";
/// Names of `airtcp sweep --out` whose records are also in `records.csv`: a directory with parts of
/// them, and a file with all.
const SHARDS: &str = "shards";
const RECORDS: &str = "records.jsonl";
/// The file extensions of results.
const RESULTS: [&str; 8] = ["json", "jsonl", "toml", "svg", "pcap", "pcapng", "sqlog", "csv"];

/// The files to show; each list is in the order of the arguments and of names.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// Summaries of experiments, one per line.
    pub(crate) summaries: Vec<PathBuf>,
    /// Directories of sweeps.
    pub(crate) sweeps: Vec<PathBuf>,
    /// Directories of traces, and capture files.
    pub(crate) traces: Vec<PathBuf>,
    pub(crate) json: Vec<PathBuf>,
    pub(crate) lines: Vec<PathBuf>,
    pub(crate) scenarios: Vec<PathBuf>,
    pub(crate) pictures: Vec<PathBuf>,
}

impl Inputs {
    /// # Errors
    /// A path does not exist, a directory has nothing to show, or a file has another kind.
    pub(crate) fn find(paths: &[impl AsRef<Path>]) -> Result<Self, ReportError> {
        let mut inputs = Self::default();
        let mut seen = BTreeSet::new();
        for path in paths.iter().map(AsRef::as_ref) {
            // The path was given before.
            if !seen.insert(fs::canonicalize(path).map_err(ReportError::file(path))?) {
                continue;
            }
            let before = inputs.count();
            if fs::metadata(path).map_err(ReportError::file(path))?.is_dir() {
                inputs.directory(path)?;
                if inputs.count() == before {
                    return Err(ReportError::Empty(path.to_owned()));
                }
            } else if !inputs.file(path) {
                return Err(ReportError::Format(path.to_owned()));
            }
        }
        Ok(inputs)
    }

    fn count(&self) -> usize {
        let Self { summaries, sweeps, traces, json, lines, scenarios, pictures } = self;
        [summaries, sweeps, traces, json, lines, scenarios, pictures].map(Vec::len).iter().sum()
    }

    fn directory(&mut self, path: &Path) -> Result<(), ReportError> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(ReportError::file(path))? {
            let entry = entry.map_err(ReportError::file(path))?;
            // Symbolic links could lead outside or into a cycle, and reading a pipe would block.
            let kind = entry.file_type().map_err(ReportError::file(path))?;
            if kind.is_dir() || kind.is_file() {
                entries.push(entry.path());
            }
        }
        entries.sort();
        let has = |name: &str| entries.iter().any(|entry| entry.ends_with(name));
        let is_trace = has(PACKETS) || has(EVENTS);
        // A trace requires both of its files to be regular.
        let is_whole = [PACKETS, EVENTS]
            .iter()
            .all(|name| has(name) || fs::symlink_metadata(path.join(name)).is_err());
        let is_sweep =
            has(sweep::RUNS) && has(sweep::MEANS) && sweep::is_means(&path.join(sweep::MEANS));
        if has(SUMMARY) && lab::is_summary(&path.join(SUMMARY)) {
            // The records, table and pictures are part of the experiment.
            self.summaries.push(path.join(SUMMARY));
            entries.retain(|entry| entry.is_dir());
        }
        if is_trace {
            if is_whole {
                self.traces.push(path.to_owned());
            }
            entries.retain(|entry| !entry.ends_with(PACKETS) && !entry.ends_with(EVENTS));
        }
        if is_sweep {
            self.sweeps.push(path.to_owned());
            entries.retain(|entry| !entry.ends_with(SHARDS) && !entry.ends_with(RECORDS));
        }
        for entry in entries {
            if entry.is_dir() {
                self.directory(&entry)?;
            } else {
                self.file(&entry);
            }
        }
        Ok(())
    }

    /// Adds a file to the lists; returns whether its kind is shown.
    fn file(&mut self, path: &Path) -> bool {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let list = match extension {
            // The user's own records may have the same file names.
            Some("json" | "jsonl")
                if (path.ends_with(SUMMARY) || path.ends_with(SUMMARIES))
                    && lab::is_summary(path) =>
            {
                &mut self.summaries
            }
            Some("json") => &mut self.json,
            Some("jsonl") => &mut self.lines,
            Some("toml") => &mut self.scenarios,
            Some("svg") => &mut self.pictures,
            Some("pcap" | "pcapng" | "sqlog") => &mut self.traces,
            _ => return false,
        };
        list.push(path.to_owned());
        true
    }
}

/// # Errors
/// Writing to `output` would overwrite results: it is one of `paths`, or has an extension of
/// results and is below one of them.
pub(crate) fn check_output(paths: &[impl AsRef<Path>], output: &Path) -> Result<(), ReportError> {
    // A file that does not exist overwrites nothing.
    let Ok(target) = fs::canonicalize(output) else { return Ok(()) };
    let extension = target.extension().and_then(|extension| extension.to_str());
    let is_result = extension.is_some_and(|extension| RESULTS.contains(&extension));
    for path in paths.iter().map(AsRef::as_ref) {
        let path = fs::canonicalize(path).map_err(ReportError::file(path))?;
        // A summary is read with the files beside it.
        let is_summary = path.ends_with(SUMMARY) || path.ends_with(SUMMARIES);
        let directory = path.parent().filter(|_| is_summary).unwrap_or(&path);
        if target == path || (is_result && target.starts_with(directory)) {
            return Err(ReportError::Output(output.to_owned()));
        }
    }
    Ok(())
}

/// Whether `name` below `directory` is a regular file, without symbolic links in the path.
pub(crate) fn is_plain(directory: &Path, name: &Path) -> Result<bool, ReportError> {
    let mut path = directory.to_owned();
    let mut is_file = false;
    for part in name {
        path.push(part);
        let kind = fs::symlink_metadata(&path).map_err(ReportError::file(&path))?;
        if kind.is_symlink() {
            return Ok(false);
        }
        is_file = kind.is_file();
    }
    Ok(is_file)
}

/// Reads the text of a file.
///
/// # Errors
/// The file cannot be read, is too long, or is not UTF-8.
pub(crate) fn text(path: &Path) -> Result<String, ReportError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(ReportError::file(path))?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(ReportError::file(path))?;
    if bytes.len() as u64 > LONGEST {
        return Err(ReportError::Long { path: path.to_owned(), most: LONGEST });
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        ReportError::Line { path: path.to_owned(), line, reason: "not UTF-8 text".to_owned() }
    })
}
