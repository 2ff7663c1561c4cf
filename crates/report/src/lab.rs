//! Experiments: verdicts, tables, pictures, and the commands that repeat them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::command;
use crate::page::{Block, Section, Table};
use crate::{ReportError, inputs};

/// A line of a summary, as `airtcp lab run --out` writes it.
#[derive(Clone, Debug, Deserialize)]
struct Summary {
    experiment: String,
    what: String,
    source: String,
    ground: String,
    command: String,
    seeds: u64,
    table: Rows,
    claims: Vec<Claim>,
    notes: Vec<String>,
    pictures: Vec<Drawing>,
}

#[derive(Clone, Debug, Deserialize)]
struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Claim {
    what: String,
    claimed: String,
    measured: String,
    verdict: Verdict,
    #[serde(default)]
    reason: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Holds,
    DoesNotHold,
    NotComparable,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::NotComparable => "not comparable",
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Drawing {
    file: String,
    title: String,
}

/// Tables with more rows are closed at first.
const LONG: usize = 12;

/// The sections of all experiments, the verdicts first, and the pictures in them.
///
/// # Errors
/// A summary or a picture cannot be read.
pub(crate) fn sections(files: &[PathBuf]) -> Result<(Vec<Section>, Vec<PathBuf>), ReportError> {
    // A later result of an experiment replaces an earlier one.
    let mut all: BTreeMap<String, (Summary, PathBuf)> = BTreeMap::new();
    for path in files {
        for (index, line) in inputs::text(path)?.lines().enumerate() {
            let summary: Summary = serde_json::from_str(line)
                .map_err(|error| ReportError::json(path, index + 1, &error))?;
            let names = summary.pictures.iter().map(|picture| &picture.file);
            if let Some(name) = names.chain([&summary.experiment]).find(|name| !is_inside(name)) {
                let reason = format!("`{name}`: expected a path below the directory");
                return Err(ReportError::Line { path: path.clone(), line: index + 1, reason });
            }
            let mut directory = path.parent().unwrap_or(Path::new("")).to_owned();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                directory.push(&summary.experiment);
            }
            all.insert(summary.experiment.clone(), (summary, directory));
        }
    }
    let mut sections = Vec::new();
    if all.values().any(|(summary, _)| !summary.claims.is_empty()) {
        sections.push(verdicts(all.values().map(|(summary, _)| summary)));
    }
    let mut pictures = Vec::new();
    for (summary, directory) in all.values() {
        sections.push(experiment(summary, directory, &mut pictures)?);
    }
    Ok((sections, pictures))
}

/// Whether a path stays below the directory that it is joined to.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

const CLAIMS: [&str; 5] = ["claim", "source says", "measured", "verdict", "reason"];

fn row(claim: &Claim) -> [String; 5] {
    let Claim { what, claimed, measured, verdict, reason } = claim;
    [what, claimed, measured, verdict.name(), reason].map(|cell| cell.to_string())
}

fn verdicts<'a>(all: impl Iterator<Item = &'a Summary>) -> Section {
    let [first, rest @ ..] = CLAIMS;
    let mut table =
        Table::of(["experiment", first].into_iter().chain(rest).map(str::to_owned).collect());
    table.is_prose = true;
    let (mut holds, mut does_not, mut open) = (0, 0, 0);
    for summary in all {
        for claim in &summary.claims {
            match claim.verdict {
                Verdict::Holds => holds += 1,
                Verdict::DoesNotHold => does_not += 1,
                Verdict::NotComparable => open += 1,
            }
            table.rows.push([summary.experiment.clone()].into_iter().chain(row(claim)).collect());
        }
    }
    let text = format!(
        "{} claims: {holds} hold, {does_not} do not hold, {open} are not comparable. Intervals are of 95 % over the seeds.",
        table.rows.len()
    );
    Section { title: "Verdicts".to_owned(), blocks: vec![Block::Text(text), Block::Table(table)] }
}

fn experiment(
    summary: &Summary,
    directory: &Path,
    shown: &mut Vec<PathBuf>,
) -> Result<Section, ReportError> {
    let Summary { experiment, what, source, ground, seeds, notes, .. } = summary;
    let runs = if *seeds == 1 { "run" } else { "runs" };
    let text = format!("{what}. Source: {source}. {seeds} {runs} of each case, {ground}.");
    let mut blocks = vec![Block::Text(text)];
    if command::is_ours(&summary.command) {
        blocks.push(Block::Code(summary.command.clone()));
    }
    for Drawing { file, title } in &summary.pictures {
        let path = directory.join(file);
        let svg = inputs::text(&path)?;
        blocks.push(Block::Picture { title: title.clone(), svg });
        shown.push(path);
    }
    let Rows { columns, rows } = summary.table.clone();
    let table = Table { columns, rows, is_prose: false };
    let title = format!("Measurements ({} rows)", table.rows.len());
    let is_open = table.rows.len() <= LONG;
    blocks.push(Block::Fold { title, is_open, blocks: vec![Block::Table(table)] });
    blocks.extend(notes.iter().cloned().map(Block::Text));
    for path in scenarios(directory)? {
        let name = path.file_name().unwrap_or_default().display().to_string();
        let text = inputs::text(&path)?;
        blocks.push(Block::Fold { title: name, is_open: false, blocks: vec![Block::Code(text)] });
    }
    Ok(Section { title: experiment.clone(), blocks })
}

/// The scenario files of an experiment.
fn scenarios(directory: &Path) -> Result<Vec<PathBuf>, ReportError> {
    // Pages with published results have pictures alone, and some experiments none.
    let Ok(entries) = fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(ReportError::file(directory))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
