//! Prints an experiment, and writes its files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::paper::TOLERANCE;
use crate::results::{Drawing, SUMMARY_FILE, Summary};
use crate::{
    Claim, EXPERIMENTS, Experiment, Findings, Ground, Kind, LabError, Picture, Table, Verdict,
};

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
    /// The command line that repeats it.
    pub command: String,
    /// Repetitions.
    pub seeds: u64,
    /// What was found.
    pub findings: Findings,
}

/// A report as it is serialised.
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
    /// Whether it is a self-check one of whose claims does not hold: then our tools are wrong.
    pub fn is_failed_check(&self) -> bool {
        self.summary().is_failed_check()
    }

    /// What is kept of it beside its records: its claims and their verdicts.
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

    /// For a terminal of so many columns, or one without end: the table, and every claim with its
    /// verdict.
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
        for Drawing { file, title } in self.findings.pictures.iter().map(Picture::drawing) {
            let _ = writeln!(text, "\n![{title}]({file})");
        }
        text
    }

    /// Writes `records.jsonl`, `table.md`, the pictures, `scenario-1.toml` and so on where cases
    /// are scenario files, and [`SUMMARY_FILE`] below `dir`, in a folder of the experiment's name.
    /// The summary comes last: where there is one, everything is.
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
            files.push((picture.drawing().file, picture.figure.to_svg()));
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
            let Claim { what, claimed, measured, verdict, .. } = claim;
            let verdict = self.verdict(verdict).to_owned();
            table.row([what.clone(), claimed.clone(), measured.clone(), verdict]);
        }
        table
    }

    /// Whether it is an experiment of a user's own: its claims are what the user expects, and
    /// compare with no source.
    fn is_own(&self) -> bool {
        !EXPERIMENTS.iter().any(|experiment| experiment.name == self.experiment.name)
    }

    fn verdict(&self, verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::NotComparable(_) if self.is_own() => "undecided",
            other => other.name(),
        }
    }

    /// How near printed figures have to be, if there are any.
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
            Some(format!("{}: {}: {reason}", claim.what, self.verdict(&claim.verdict)))
        })
    }
}
