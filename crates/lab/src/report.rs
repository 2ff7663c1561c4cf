//! What is shown of an experiment, and what is left of it in files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{Claim, Experiment, Findings, Ground, Kind, LabError, Table};

/// What an experiment is called, does, and where that is from.
#[derive(Clone, Debug)]
pub struct Heading {
    /// `paper/figure`, or the name of a user's own.
    pub name: String,
    /// What is done, in one line.
    pub what: String,
    /// Where it is described.
    pub source: String,
    /// What its claims are about.
    pub kind: Kind,
    /// Where it runs.
    pub ground: Ground,
}

impl From<&Experiment> for Heading {
    fn from(experiment: &Experiment) -> Self {
        let &Experiment { name, what, source, kind, ground, .. } = experiment;
        let [name, what, source] = [name, what, source].map(str::to_owned);
        Self { name, what, source, kind, ground }
    }
}

/// An experiment that ran.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which.
    pub experiment: Heading,
    /// Repetitions.
    pub seeds: u64,
    /// What was found.
    pub findings: Findings,
}

/// A report as it is serialised.
#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    what: &'a str,
    source: &'a str,
    kind: Kind,
    ground: Ground,
    seeds: u64,
    claims: &'a [Claim],
    notes: &'a [String],
    records: &'a [Box<RawValue>],
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { experiment, seeds, findings } = self;
        let document = Document {
            experiment: &experiment.name,
            what: &experiment.what,
            source: &experiment.source,
            kind: experiment.kind,
            ground: experiment.ground,
            seeds: *seeds,
            claims: &findings.claims,
            notes: &findings.notes,
            records: &findings.records,
        };
        document.serialize(serializer)
    }
}

impl Report {
    /// Whether it is a self-check one of whose claims does not hold: then our tools are wrong.
    pub fn is_failed_check(&self) -> bool {
        let mut refuted = self.findings.refuted();
        self.experiment.kind == Kind::SelfCheck && refuted.any(|claim| !claim.is_beside)
    }

    /// For a terminal: the table, and every claim with its verdict.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: {}\n", self.experiment.name, self.experiment.what);
        let _ = writeln!(text, "{}\n", self.background());
        let _ = writeln!(text, "{}", self.findings.table.to_text());
        if !self.findings.claims.is_empty() {
            let _ = writeln!(text, "\n{}", self.claims().to_text());
        }
        for line in self.reasons().chain(self.findings.notes.iter().cloned()) {
            let _ = writeln!(text, "\n{line}");
        }
        text
    }

    /// As a page in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n\n", self.experiment.name, self.experiment.what);
        let _ = writeln!(text, "{}", self.background());
        let _ = writeln!(text, "\n{}", self.findings.table.to_markdown());
        if !self.findings.claims.is_empty() {
            let _ = writeln!(text, "\n{}", self.claims().to_markdown());
        }
        for line in self.reasons().chain(self.findings.notes.iter().cloned()) {
            let _ = writeln!(text, "\n{line}");
        }
        for picture in &self.findings.pictures {
            let _ = writeln!(text, "\n![{}]({}.svg)", picture.figure.title, picture.name);
        }
        text
    }

    /// Writes `records.jsonl`, `table.md` and the pictures below `dir`, in a folder of the experiment's name.
    ///
    /// # Errors
    ///
    /// The first file that could not be written.
    pub fn write(&self, dir: &Path) -> Result<Vec<PathBuf>, LabError> {
        let dir = dir.join(&self.experiment.name);
        std::fs::create_dir_all(&dir)
            .map_err(|source| LabError::Write { path: dir.clone(), source })?;
        let mut records = String::new();
        for record in &self.findings.records {
            let _ = writeln!(records, "{}", record.get());
        }
        let mut files = vec![
            ("records.jsonl".to_owned(), records),
            ("table.md".to_owned(), self.to_markdown()),
        ];
        for picture in &self.findings.pictures {
            files.push((format!("{}.svg", picture.name), picture.figure.to_svg()));
        }
        let mut written = Vec::new();
        for (name, text) in files {
            let path = dir.join(name);
            std::fs::write(&path, text)
                .map_err(|source| LabError::Write { path: path.clone(), source })?;
            written.push(path);
        }
        Ok(written)
    }

    fn background(&self) -> String {
        let ground = self.experiment.ground.name();
        let s = if self.seeds == 1 { "" } else { "s" };
        format!("Source: {}. {} run{s} of each case, {ground}.", self.experiment.source, self.seeds)
    }

    fn claims(&self) -> Table {
        let mut table = Table::new(["claim", "source says", "measured", "verdict"]);
        for claim in &self.findings.claims {
            let Claim { what, claimed, measured, verdict, .. } = claim;
            let verdict = verdict.name().to_owned();
            table.row([what.clone(), claimed.clone(), measured.clone(), verdict]);
        }
        table
    }

    fn reasons(&self) -> impl Iterator<Item = String> {
        self.findings.claims.iter().filter_map(|claim| {
            let reason = claim.verdict.reason()?;
            Some(format!("{}: {}: {reason}", claim.what, claim.verdict.name()))
        })
    }
}
