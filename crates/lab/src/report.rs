//! Prints an experiment and writes its files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::paper::TOLERANCE;
use crate::results::{Drawing, SUMMARY_FILE, Summary};
use crate::{
    Claim, EXPERIMENTS, Experiment, Findings, Ground, Kind, LabError, Picture, Table, Verdict,
};

/// The file with the records in the folder of an experiment's results.
pub(crate) const RECORDS_FILE: &str = "records.jsonl";

/// The name, description and source of an experiment.
#[derive(Clone, Debug)]
pub struct Heading {
    /// `paper/figure`, or the name of a user's experiment.
    pub name: String,
    /// A description of the experiment in one line.
    pub what: String,
    /// The source of the description.
    pub source: String,
    /// The subject of its claims.
    pub kind: Kind,
    /// Whether it is simulated or real.
    pub ground: Ground,
}

impl From<&Experiment> for Heading {
    fn from(experiment: &Experiment) -> Self {
        let &Experiment { name, what, source, kind, ground, .. } = experiment;
        let [name, what, source] = [name, what, source].map(str::to_owned);
        Self { name, what, source, kind, ground }
    }
}

/// The report of an experiment that has run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The experiment.
    pub experiment: Heading,
    /// The command line that repeats the experiment.
    pub command: String,
    /// The number of repetitions.
    pub seeds: u64,
    /// The findings.
    pub findings: Findings,
}

/// The serialised form of a report.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    summary: Summary,
    records: &'a [Box<RawValue>],
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let document = Document { summary: self.summary(), records: &self.findings.records };
        document.serialize(serializer)
    }
}

impl Report {
    /// Returns whether this is a self-check with a claim that does not hold: then our tools are
    /// wrong.
    pub fn is_failed_check(&self) -> bool {
        self.summary().is_failed_check()
    }

    /// Returns the report without its records, as written to [`SUMMARY_FILE`].
    pub fn summary(&self) -> Summary {
        let Heading { name, what, source, kind, ground } = self.experiment.clone();
        Summary {
            experiment: name,
            what,
            source,
            kind,
            ground,
            command: self.command.clone(),
            seeds: self.seeds,
            table: self.findings.table.clone(),
            claims: self.findings.claims.clone(),
            notes: self.findings.notes.clone(),
            pictures: self.findings.pictures.iter().map(Picture::drawing).collect(),
        }
    }

    /// Renders the table and every claim with its verdict for a terminal of `width` columns;
    /// without a width, lines are not wrapped.
    pub fn to_text(&self, width: Option<u16>) -> String {
        let mut text = format!("{}: {}\n", self.experiment.name, self.experiment.what);
        let _ = writeln!(text, "{}\n", self.background());
        let _ = writeln!(text, "{}", self.findings.table.to_text(width));
        if !self.findings.claims.is_empty() {
            let _ = writeln!(text, "\n{}", self.claims().to_text(width));
        }
        for line in self
            .tolerance()
            .into_iter()
            .chain(self.reasons())
            .chain(self.findings.notes.iter().cloned())
        {
            let _ = writeln!(text, "\n{line}");
        }
        text
    }

    /// Renders the report as a Markdown page.
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
        for Drawing { file, title } in self.findings.pictures.iter().map(Picture::drawing) {
            let _ = writeln!(text, "\n![{title}]({file})");
        }
        text
    }

    /// Writes `records.jsonl`, `table.md`, the pictures, `scenario-1.toml` and so on if cases are
    /// scenario files, and [`SUMMARY_FILE`] to the folder of the experiment's name below `dir`. The
    /// summary is written last: if it exists, all files do.
    ///
    /// # Errors
    ///
    /// The first file that cannot be written.
    pub fn write(&self, dir: &Path) -> Result<Vec<PathBuf>, LabError> {
        let dir = dir.join(&self.experiment.name);
        std::fs::create_dir_all(&dir)
            .map_err(|source| LabError::Write { path: dir.clone(), source })?;
        let mut records = String::new();
        for record in &self.findings.records {
            let _ = writeln!(records, "{}", record.get());
        }
        let mut files =
            vec![(RECORDS_FILE.to_owned(), records), ("table.md".to_owned(), self.to_markdown())];
        for picture in &self.findings.pictures {
            files.push((picture.drawing().file, picture.graph.to_svg()));
        }
        for (number, scenario) in (1..).zip(&self.findings.scenarios) {
            files.push((format!("scenario-{number}.toml"), scenario.clone()));
        }
        let summary = serde_json::to_string(&self.summary())? + "\n";
        files.push((format!("{SUMMARY_FILE}.part"), summary));
        let mut written = Vec::new();
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| LabError::Write { path, source }
        };
        for (name, text) in files {
            let path = dir.join(name);
            std::fs::write(&path, text).map_err(failed(&path))?;
            written.push(path);
        }
        if let Some(part) = written.pop() {
            let path = dir.join(SUMMARY_FILE);
            std::fs::rename(&part, &path).map_err(failed(&path))?;
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
        let claimed = if self.is_own() { "expected" } else { "source says" };
        let mut table = Table::new(["claim", claimed, "measured", "verdict"]);
        for claim in &self.findings.claims {
            let Claim { what, claimed, measured, .. } = claim;
            let verdict = self.verdict(claim);
            table.row([what.clone(), claimed.clone(), measured.clone(), verdict]);
        }
        table
    }

    /// Returns whether this is a user's experiment. Its claims are the user's expectations, which
    /// are not compared with a source.
    fn is_own(&self) -> bool {
        !EXPERIMENTS.iter().any(|experiment| experiment.name == self.experiment.name)
    }

    fn verdict(&self, claim: &Claim) -> String {
        match claim.verdict {
            Verdict::NotComparable(_) if self.is_own() => "undecided".to_owned(),
            _ => claim.verdict_name(),
        }
    }

    /// Returns the tolerance for printed figures, if there are any.
    fn tolerance(&self) -> Option<String> {
        self.findings.has_printed.then(|| {
            format!(
                "A printed figure holds if the whole 95 % interval is within {:.0} % of it.",
                TOLERANCE * 100.0
            )
        })
    }

    fn reasons(&self) -> impl Iterator<Item = String> {
        self.findings.claims.iter().filter_map(|claim| {
            let reason = claim.verdict.reason().filter(|reason| !reason.is_empty())?;
            Some(format!("{}: {}: {reason}", claim.what, self.verdict(claim)))
        })
    }
}
