//! Results as one HTML page: verdicts, tables, time series, and time-sequence graphs with zoom.
//!
//! [`html`] reads the files that the commands of airtcp wrote to directories. The page contains its
//! style, script and data: it works offline, makes no request, and its content security policy
//! allows no other script. All text of the records is escaped. The same files give the same bytes.
//!
//! A script of this crate draws the charts as SVG. A charting library would add several megabytes
//! to each page, such as plotly.js, which the crate plotly embeds.
//!
//! ```
//! let dir = tempfile::tempdir()?;
//! std::fs::write(dir.path().join("mine.json"), r#"{"goodput": 1.5}"#)?;
//! let page = airtcp_report::html("An example", &[dir.path()])?;
//! assert!(page.contains("<td>goodput</td>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod command;
mod compare;
mod distribution;
mod error;
mod figures;
mod html;
mod inputs;
mod lab;
mod page;
mod records;
mod series;
mod simulation;
mod states;
mod sweep;
mod trace;

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use error::ReportError;

use compare::Comparison;
use inputs::Inputs;
use page::{Block, Section};
use simulation::Simulation;
use states::States;

/// The maximum number of points of all series of a page: about 4 MB.
const MOST_POINTS: usize = 400_000;
/// The maximum number of points of a series of states.
const MOST_OF_STATES: usize = 2_000;
/// The maximum number of points of a series of a trace; the series of segments may have several
/// times as many.
const MOST_OF_TRACE: usize = 4_000;
/// The maximum size of a picture in bytes.
const LONGEST_PICTURE: usize = 2 << 20;

/// Returns the page of all results in `paths`: directories that the commands wrote to, and single
/// files.
///
/// Directories are read recursively. The page shows results of `airtcp lab run --out` and `airtcp
/// sweep --out`; traces and captures; `.json` and `.jsonl` files, where those of `compare`, `sim run` and `sim run --state`
/// have sections of their own; scenarios in `.toml` files; and pictures in `.svg` files. Other
/// files are ignored.
///
/// # Errors
///
/// A path or a file in it cannot be read, or a file is invalid; [`ReportError::Empty`] for a
/// directory without results, and [`ReportError::Format`] for a file of another kind.
pub fn html(title: &str, paths: &[impl AsRef<Path>]) -> Result<String, ReportError> {
    let inputs = Inputs::find(paths)?;
    let (mut sections, mut shown) = lab::sections(&inputs.summaries)?;
    let scenarios = &inputs.scenarios;
    let mut others = Vec::new();
    for path in &inputs.json {
        let text = inputs::text(path)?;
        let value: Value = from_json(path, &text)?;
        let has = |keys: &[&str]| keys.iter().all(|key| value.get(key).is_some());
        if has(&["combinations", "warm_up_seconds"]) {
            let comparison: Comparison = from_json(path, &text)?;
            sections.push(Section { title: comparison.title(), blocks: comparison.blocks() });
        } else if has(&["scenario", "runs", "aggregate"]) {
            let simulation: Simulation = from_json(path, &text)?;
            let beside: Vec<&PathBuf> =
                scenarios.iter().filter(|scenario| scenario.parent() == path.parent()).collect();
            let scenario = match beside[..] {
                [one] => one.display().to_string(),
                _ => "SCENARIO.toml".to_owned(),
            };
            sections
                .push(Section { title: simulation.title(), blocks: simulation.blocks(&scenario) });
        } else {
            others.push(Section {
                title: path.display().to_string(),
                blocks: records::document(&value),
            });
        }
    }
    for directory in &inputs.sweeps {
        let mut pictures = Vec::new();
        for path in sweep::pictures(directory, &inputs.pictures) {
            pictures.push(picture(path)?);
            shown.push(path.clone());
        }
        sections.push(sweep::section(directory, pictures)?);
    }
    let mut traces = Vec::new();
    for path in &inputs.traces {
        traces.push(trace::open(path)?);
    }
    let weight: usize = traces.iter().map(trace::Opened::weight).sum();
    let mut states = Vec::new();
    for path in &inputs.lines {
        let text = inputs::text(path)?;
        if text.lines().next().is_some_and(states::is_state) {
            // Assumes that each file has twenty senders with five series.
            let most = MOST_POINTS / (weight + 100 * inputs.lines.len());
            let most = most.min(MOST_OF_STATES);
            let blocks = States::read(path, &text, most)?.blocks(&path.display().to_string());
            states.push(Section { title: format!("Over time: {}", path.display()), blocks });
        } else {
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            let records: Result<Vec<Value>, _> = lines
                .map(|(index, line)| {
                    serde_json::from_str(line)
                        .map_err(|error| ReportError::json(path, index + 1, &error))
                })
                .collect();
            others.push(Section {
                title: path.display().to_string(),
                blocks: records::table(&records?),
            });
        }
    }
    sections.extend(states);
    let most = (MOST_POINTS / weight.max(1)).min(MOST_OF_TRACE);
    for (number, trace) in traces.iter().enumerate() {
        sections.push(trace.section(most, &format!("trace {number}"))?);
    }
    sections.extend(others);
    shown.sort();
    for path in &inputs.pictures {
        if shown.binary_search(path).is_err() && !traces.iter().any(|trace| trace.has_picture(path))
        {
            let title = format!("Picture: {}", path.display());
            sections.push(Section { title, blocks: vec![picture(path)?] });
        }
    }
    for path in scenarios {
        let blocks = vec![Block::Code(inputs::text(path)?)];
        sections.push(Section { title: format!("Scenario: {}", path.display()), blocks });
    }
    html::page(title, &sections).map_err(|error| ReportError::json(Path::new(title), 1, &error))
}

/// Checks that writing the page of [`html`] to the file `output` does not overwrite a result in
/// `paths`. An earlier page may be replaced.
///
/// # Errors
///
/// [`ReportError::Output`] if it would overwrite a result; a path does not exist.
pub fn check_output(paths: &[impl AsRef<Path>], output: &Path) -> Result<(), ReportError> {
    inputs::check_output(paths, output)
}

/// # Errors
/// The text is not JSON of this type; the error contains the line.
fn from_json<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ReportError> {
    serde_json::from_str(text).map_err(|error| ReportError::json(path, 1, &error))
}

fn picture(path: &Path) -> Result<Block, ReportError> {
    let svg = inputs::text(path)?;
    let title = path.display().to_string();
    Ok(match svg.len() <= LONGEST_PICTURE {
        true => Block::Picture { title, svg },
        false => {
            Block::Text(format!("{title} is larger than {} MiB: not shown.", LONGEST_PICTURE >> 20))
        }
    })
}
