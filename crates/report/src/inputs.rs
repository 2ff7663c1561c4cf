//! Finds what the directories have to show.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::ReportError;

/// The longest file that is read whole, in bytes.
const LONGEST: u64 = 64 << 20;

/// The names of `airtcp lab run --out`.
const SUMMARY: &str = "summary.json";
const SUMMARIES: &str = "summaries.jsonl";
/// The names of `--trace`.
const PACKETS: &str = "packets.pcapng";
const EVENTS: &str = "events.sqlog";

/// The files to show, each list in the order of the arguments and of names.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// Summaries of experiments, one a line.
    pub(crate) summaries: Vec<PathBuf>,
    /// Directories of traces, and captures.
    pub(crate) traces: Vec<PathBuf>,
    pub(crate) json: Vec<PathBuf>,
    pub(crate) lines: Vec<PathBuf>,
    pub(crate) scenarios: Vec<PathBuf>,
    pub(crate) pictures: Vec<PathBuf>,
}

impl Inputs {
    /// # Errors
    /// A path does not exist, has nothing to show, or is a file of another kind.
    pub(crate) fn find(paths: &[impl AsRef<Path>]) -> Result<Self, ReportError> {
        let mut inputs = Self::default();
        for path in paths.iter().map(AsRef::as_ref) {
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
        let Self { summaries, traces, json, lines, scenarios, pictures } = self;
        [summaries, traces, json, lines, scenarios, pictures].map(Vec::len).iter().sum()
    }

    fn directory(&mut self, path: &Path) -> Result<(), ReportError> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(ReportError::file(path))? {
            entries.push(entry.map_err(ReportError::file(path))?.path());
        }
        entries.sort();
        let has = |name: &str| entries.iter().any(|entry| entry.ends_with(name));
        let (is_experiment, is_trace) = (has(SUMMARY), has(PACKETS) || has(EVENTS));
        if is_experiment {
            // Its records, table and pictures are part of the experiment.
            self.summaries.push(path.join(SUMMARY));
            entries.retain(|entry| entry.is_dir());
        }
        if is_trace {
            self.traces.push(path.to_owned());
            entries.retain(|entry| !entry.ends_with(PACKETS) && !entry.ends_with(EVENTS));
        }
        for entry in entries {
            // A link could lead round in a circle.
            if entry.is_dir() && !entry.is_symlink() {
                self.directory(&entry)?;
            } else if entry.is_file() {
                self.file(&entry);
            }
        }
        Ok(())
    }

    /// Whether it is of a kind that is shown.
    fn file(&mut self, path: &Path) -> bool {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let list = match extension {
            Some("json") if path.ends_with(SUMMARY) => &mut self.summaries,
            Some("jsonl") if path.ends_with(SUMMARIES) => &mut self.summaries,
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

/// The text of a file.
///
/// # Errors
/// It cannot be read, is too long, or is not UTF-8.
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
