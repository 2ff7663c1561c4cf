//! Experiments: verdicts, tables, pictures, and the commands that repeat the experiments.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use airtcp_lab::{Claim, Drawing, Summary, Verdict};

use crate::command;
use crate::page::{Block, Section, Table};
use crate::{ReportError, inputs};

/// The location of an experiment's files.
struct Place {
    /// The directory of the summary.
    root: PathBuf,
    /// The path of the experiment's directory, relative to `root`.
    below: PathBuf,
}

impl Place {
    fn directory(&self) -> PathBuf {
        self.root.join(&self.below)
    }

    fn has_plain(&self, name: &Path) -> Result<bool, ReportError> {
        inputs::is_plain(&self.root, &self.below.join(name))
    }
}

/// The maximum number of rows of a table that is open at first.
const LONG: usize = 12;

/// Returns the sections of all experiments, the verdicts first, and the pictures in them.
///
/// # Errors
/// A summary or a picture cannot be read.
pub(crate) fn sections(files: &[PathBuf]) -> Result<(Vec<Section>, Vec<PathBuf>), ReportError> {
    // A later result of the same experiment replaces an earlier one.
    let mut all: BTreeMap<String, (Summary, Place)> = BTreeMap::new();
    for path in files {
        let text = inputs::text(path)?;
        for (index, line) in lines(&text) {
            let summary: Summary = serde_json::from_str(line)
                .map_err(|error| ReportError::json(path, index + 1, &error))?;
            let names = summary.pictures.iter().map(|picture| &picture.file);
            if let Some(name) = names.chain([&summary.experiment]).find(|name| !is_inside(name)) {
                let reason = format!("`{name}`: expected a path below the directory");
                return Err(ReportError::Line { path: path.clone(), line: index + 1, reason });
            }
            let root = path.parent().unwrap_or(Path::new("")).to_owned();
            let is_list = path.extension().is_some_and(|extension| extension == "jsonl");
            let below = PathBuf::from(if is_list { summary.experiment.as_str() } else { "" });
            all.insert(summary.experiment.clone(), (summary, Place { root, below }));
        }
    }
    let mut sections = Vec::new();
    if all.values().any(|(summary, _)| !summary.claims.is_empty()) {
        sections.push(verdicts(all.values().map(|(summary, _)| summary)));
    }
    let mut pictures = Vec::new();
    for (summary, place) in all.values() {
        sections.push(experiment(summary, place, &mut pictures)?);
    }
    Ok((sections, pictures))
}

/// Returns the non-empty lines with their indices.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty())
}

/// Whether a file is a summary of `airtcp lab`, according to its first line.
pub(crate) fn is_summary(path: &Path) -> bool {
    inputs::text(path).is_ok_and(|text| {
        let first = lines(&text).next();
        first.is_some_and(|(_, line)| serde_json::from_str::<Summary>(line).is_ok())
    })
}

/// Whether a relative path stays below its base directory.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

const CLAIMS: [&str; 5] = ["claim", "source says", "measured", "verdict", "reason"];

fn row(claim: &Claim) -> [String; 5] {
    let Claim { what, claimed, measured, verdict, .. } = claim;
    let reason = verdict.reason().unwrap_or_default();
    [what, claimed, measured, &claim.verdict_name(), reason].map(str::to_owned)
}

fn verdicts<'a>(all: impl Iterator<Item = &'a Summary>) -> Section {
    let [first, rest @ ..] = CLAIMS;
    let mut table =
        Table::of(["experiment", first].into_iter().chain(rest).map(str::to_owned).collect());
    table.is_prose = true;
    let (mut holds, mut does_not, mut open, mut beside) = (0, 0, 0, 0);
    for summary in all {
        for claim in &summary.claims {
            match claim.verdict {
                _ if claim.is_beside => beside += 1,
                Verdict::Holds => holds += 1,
                Verdict::DoesNotHold(_) => does_not += 1,
                Verdict::NotComparable(_) => open += 1,
            }
            table.rows.push([summary.experiment.clone()].into_iter().chain(row(claim)).collect());
        }
    }
    let text = format!(
        "{} claims: {holds} hold, {does_not} do not hold, {open} are not comparable. {}Intervals are of 95 % over the seeds.",
        holds + does_not + open,
        match beside {
            0 => String::new(),
            _ => format!(
                "{beside} more are beside their source, which does not have the sender or the set-up. "
            ),
        }
    );
    Section { title: "Verdicts".to_owned(), blocks: vec![Block::Text(text), Block::Table(table)] }
}

fn experiment(
    summary: &Summary,
    place: &Place,
    shown: &mut Vec<PathBuf>,
) -> Result<Section, ReportError> {
    let Summary { experiment, what, source, ground, seeds, notes, .. } = summary;
    let ground = ground.name();
    let runs = if *seeds == 1 { "run" } else { "runs" };
    let text = format!("{what}. Source: {source}. {seeds} {runs} of each case, {ground}.");
    let mut blocks = vec![Block::Text(text)];
    if command::is_ours(&summary.command) {
        blocks.push(Block::Code(summary.command.clone()));
    }
    for Drawing { file, title } in &summary.pictures {
        let path = place.directory().join(file);
        if !place.has_plain(Path::new(file))? {
            blocks.push(Block::Text(format!("{title}: {file} is no regular file: not shown.")));
            continue;
        }
        let svg = inputs::text(&path)?;
        blocks.push(Block::Picture { title: title.clone(), svg });
        shown.push(path);
    }
    let (columns, rows) = (summary.table.columns().to_vec(), summary.table.rows().to_vec());
    let table = Table { columns, rows, is_prose: false };
    let title = format!("Measurements ({} rows)", table.rows.len());
    let is_open = table.rows.len() <= LONG;
    blocks.push(Block::Fold { title, is_open, blocks: vec![Block::Table(table)] });
    blocks.extend(notes.iter().cloned().map(Block::Text));
    for path in scenarios(place)? {
        let name = path.file_name().unwrap_or_default().display().to_string();
        let text = inputs::text(&path)?;
        blocks.push(Block::Fold { title: name, is_open: false, blocks: vec![Block::Code(text)] });
    }
    Ok(Section { title: experiment.clone(), blocks })
}

/// Returns the scenario files of an experiment.
fn scenarios(place: &Place) -> Result<Vec<PathBuf>, ReportError> {
    // Published results have only pictures, and some experiments have no directory.
    let directory = place.directory();
    let Ok(entries) = fs::read_dir(&directory) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(ReportError::file(&directory))?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "toml")
            && place.has_plain(Path::new(&entry.file_name()))?
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
