//! Published results: the claims of many experiments with their verdicts, as Markdown pages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Claim, EXPERIMENTS, Experiment, Ground, Kind, LabError, Table, Verdict};

/// The file with the [`Summary`] in the folder of an experiment's results.
pub const SUMMARY_FILE: &str = "summary.json";

/// The file beside the pages that contains all summaries, one per line.
const ALL_FILE: &str = "summaries.jsonl";

/// The maximum number of bytes that are read from a file.
const LONGEST: u64 = 64 << 20;

/// The first part of the names of experiments, the title of their page, and the citation on that
/// page.
type Family = (&'static str, &'static str, &'static str);

/// The families of the experiments in [`EXPERIMENTS`].
const FAMILIES: [Family; 9] = [
    (
        "hack",
        "HACK",
        "R. K. Balan and others, *TCP HACK: a mechanism to improve performance over lossy links*, Computer Networks 39 (2002)",
    ),
    (
        "rrtp",
        "RRTP",
        "T. Wang, *A User-level, Reliable and Reconfigurable Transport Layer Protocol*, Waterloo (2009)",
    ),
    (
        "dcr",
        "DCR",
        "S. Bhandarkar and A. L. N. Reddy, *TCP-DCR: Making TCP Robust to Non-Congestion Events*, Networking (2004)",
    ),
    (
        "le",
        "LE",
        "*Implementation and evaluation of a new TCP loss recovery architecture*, EURASIP JWCN 2012:149",
    ),
    (
        "tcp-ecn",
        "TCP-ECN",
        "S. B. Krishnan, *Enhancing TCP Performance In Wired-Cum-Wireless Networks*, San Jose State University (2006)",
    ),
    ("westwood", "Westwood", "S. Mascolo and others (2001); L. A. Grieco and S. Mascolo (2004)"),
    ("senders", "Our senders beside Linux", "Bounds set by this project"),
    ("grid", "All combinations", "Comparisons of this project"),
    ("self", "The tools", "Theory, and the same stack with real packets"),
];

/// The family of all other experiments, which users describe in files.
const OWN: Family = ("own", "Your own experiments", "Experiment files that are not part of airtcp");

/// An experiment's claims and verdicts, without its records.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The experiment's name: `paper/figure`.
    pub experiment: String,
    /// A description of the experiment in one line.
    pub what: String,
    /// The source of the description.
    pub source: String,
    /// The subject of its claims.
    pub kind: Kind,
    /// Whether it is simulated or real.
    pub ground: Ground,
    /// The command line that repeats the experiment.
    pub command: String,
    /// The number of repetitions of each case.
    pub seeds: u64,
    /// The measured figures.
    pub table: Table,
    /// The source's figures beside the measured ones.
    pub claims: Vec<Claim>,
    /// Notes: how the set-up differs from the source's, and why.
    pub notes: Vec<String>,
    /// The pictures.
    pub pictures: Vec<Drawing>,
}

/// A picture in the folder of an experiment's results.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Drawing {
    /// The file's name.
    pub file: String,
    /// The picture's title.
    pub title: String,
}

impl Summary {
    /// Returns whether this is a self-check with a claim that does not hold: then our tools are
    /// wrong.
    pub fn is_failed_check(&self) -> bool {
        let is_refuted = |claim: &Claim| matches!(claim.verdict, Verdict::DoesNotHold(_));
        self.kind == Kind::SelfCheck
            && self.claims.iter().any(|claim| is_refuted(claim) && !claim.is_beside)
    }
}

/// The summaries of many experiments, one per experiment.
///
/// ```
/// use airtcp_lab::{Plan, Results};
///
/// let dir = tempfile::tempdir()?;
/// let plan = Plan { is_small: true, ..Plan::default() };
/// airtcp_lab::select(&["self/half-duplex"])?[0].run(&plan)?.write(dir.path())?;
///
/// let results = Results::read(&[dir.path()])?;
/// let (_, page) = &results.pages()[1];
/// assert!(page.contains("airtcp lab run self/half-duplex"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    /// By the position in the list of experiments, and then by name.
    kept: BTreeMap<(usize, String), Kept>,
}

/// A summary and the folder of its pictures.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Kept {
    summary: Summary,
    dir: PathBuf,
}

/// The number of the source's claims with each verdict, and of those beside the source.
#[derive(Clone, Copy, Default)]
struct Count {
    holds: usize,
    does_not: usize,
    not_comparable: usize,
    beside: usize,
}

impl Count {
    fn of<'a>(claims: impl Iterator<Item = &'a Claim>) -> Self {
        claims.fold(Self::default(), |mut count, claim| {
            match claim.verdict {
                _ if claim.is_beside => count.beside += 1,
                Verdict::Holds => count.holds += 1,
                Verdict::DoesNotHold(_) => count.does_not += 1,
                Verdict::NotComparable(_) => count.not_comparable += 1,
            }
            count
        })
    }

    fn cells(self) -> [String; 5] {
        let Self { holds, does_not, not_comparable, beside } = self;
        [holds + does_not + not_comparable, holds, does_not, not_comparable, beside]
            .map(|count| count.to_string())
    }
}

impl Results {
    /// Reads the summaries below `paths`: folders that [`Report::write`](crate::Report::write) or
    /// [`write`](Self::write) wrote. A later summary of the same experiment replaces an earlier
    /// one.
    ///
    /// # Errors
    ///
    /// [`LabError::Read`] with the first file that cannot be read; [`LabError::Summary`] with the
    /// first line that is not a summary; [`LabError::NoResults`] for a path without summaries.
    pub fn read(paths: &[impl AsRef<Path>]) -> Result<Self, LabError> {
        let mut results = Self::default();
        for path in paths.iter().map(AsRef::as_ref) {
            let mut files = Vec::new();
            find(path, &mut files)?;
            if files.is_empty() {
                return Err(LabError::NoResults { path: path.to_owned() });
            }
            for file in files {
                for kept in read_file(&file)? {
                    results.add(kept);
                }
            }
        }
        Ok(results)
    }

    /// Returns the summary of an experiment.
    pub fn get(&self, experiment: &str) -> Option<&Summary> {
        self.summaries().find(|summary| summary.experiment == experiment)
    }

    /// Returns all summaries, in the order of the list of experiments.
    pub fn summaries(&self) -> impl Iterator<Item = &Summary> {
        self.kept.values().map(|kept| &kept.summary)
    }

    /// Returns the file name and text of every page. The first is `README.md`, the index.
    pub fn pages(&self) -> Vec<(String, String)> {
        let index = self.counts(|name, title| format!("[{title}]({name}.md)")).to_markdown();
        let is_missing = |e: &&Experiment| e.kind == Kind::Study && self.get(e.name).is_none();
        let missing = EXPERIMENTS.iter().filter(is_missing).map(|e| format!("`{}`", e.name));
        let missing = missing.collect::<Vec<_>>().join(", ");
        // Results of users' experiments alone do not say what this version lacks.
        let is_of_ours = self.families().any(|(family, _)| *family != OWN);
        let missing = if is_of_ours && !missing.is_empty() {
            format!("No run is recorded of {missing}.\n\n")
        } else {
            String::new()
        };
        let index = format!("{INDEX_BEGIN}\n{index}\n\n{missing}{INDEX_END}");
        let pages = self
            .families()
            .map(|((name, title, cites), all)| (format!("{name}.md"), page(title, cites, &all)));
        [("README.md".to_owned(), index)].into_iter().chain(pages).collect()
    }

    /// Returns the number of claims with each verdict, by source. Claims that are beside the source
    /// ([`Claim::is_beside`]) are counted apart.
    pub fn table(&self) -> Table {
        self.counts(|_, title| title.to_owned())
    }

    fn counts(&self, source: impl Fn(&str, &str) -> String) -> Table {
        let mut table = Table::new([
            "source",
            "experiments",
            "claims",
            "hold",
            "do not hold",
            "not comparable",
            "beside",
        ]);
        for ((name, title, _), all) in self.families() {
            let count = Count::of(all.iter().flat_map(|summary| &summary.claims));
            let [claims, holds, does_not, other, beside] = count.cells();
            let experiments = all.len().to_string();
            table.row([source(name, title), experiments, claims, holds, does_not, other, beside]);
        }
        table
    }

    /// Writes the pages, their summaries and their pictures to the folder `dir`.
    ///
    /// # Errors
    ///
    /// [`LabError::Write`] with the first file that cannot be written, [`LabError::Read`] with the
    /// first picture that cannot be read.
    pub fn write(&self, dir: &Path) -> Result<Vec<PathBuf>, LabError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| LabError::Write { path, source }
        };
        fs::create_dir_all(dir).map_err(failed(dir))?;
        let mut lines = String::new();
        let mut written = Vec::new();
        for Kept { summary, dir: from } in self.kept.values() {
            let _ = writeln!(lines, "{}", serde_json::to_string(summary)?);
            let to = dir.join(&summary.experiment);
            for Drawing { file, .. } in &summary.pictures {
                fs::create_dir_all(&to).map_err(failed(&to))?;
                let (from, to) = (from.join(file), to.join(file));
                let picture =
                    fs::read(&from).map_err(|source| LabError::Read { path: from, source })?;
                fs::write(&to, picture).map_err(failed(&to))?;
                written.push(to);
            }
        }
        for (name, text) in [(ALL_FILE.to_owned(), lines)].into_iter().chain(self.pages()) {
            let path = dir.join(name);
            fs::write(&path, text).map_err(failed(&path))?;
            written.push(path);
        }
        Ok(written)
    }

    fn add(&mut self, kept: Kept) {
        let name = &kept.summary.experiment;
        let place = EXPERIMENTS.iter().position(|e| e.name == name);
        self.kept.insert((place.unwrap_or(usize::MAX), name.clone()), kept);
    }

    /// Returns the families that have results, with their summaries.
    fn families(&self) -> impl Iterator<Item = (&'static Family, Vec<&Summary>)> {
        let all = FAMILIES.iter().chain([&OWN]).map(|family| {
            let is_of = |summary: &&Summary| family_of(&summary.experiment) == family;
            (family, self.summaries().filter(is_of).collect::<Vec<_>>())
        });
        all.filter(|(_, summaries)| !summaries.is_empty())
    }
}

/// Returns the family of an experiment.
fn family_of(experiment: &str) -> &'static Family {
    let first = experiment.split('/').next().unwrap_or_default();
    FAMILIES.iter().find(|family| family.0 == first).unwrap_or(&OWN)
}

/// The start of the index.
const INDEX_BEGIN: &str = "\
# Results

Every claim of the last recorded run of each experiment, with the source's figure, the measured one and the verdict.
The records do not name the version or the date of a run, and airtcp may have changed since. Each page has a table for
each experiment, and the command that repeats it with your version.

A claim counts once for each profile and set-up in which it was measured. Claims about senders or set-ups that the
source does not have are marked *beside* and counted apart.
";

/// The end of the index.
const INDEX_END: &str = "\
A claim that does not hold is a result: nothing is tuned to approach a figure. *Not comparable* means that the figures
do not decide it, and the page says why. [The lab](../lab.md#what-a-verdict-means) has the rules.

Intervals are of 95 % over the seeds. Simulated experiments give the same figures on any machine; real ones move packets
between network namespaces and depend on the machine.
";

/// Renders the page of a family.
fn page(title: &str, cites: &str, summaries: &[&Summary]) -> String {
    let mut text = format!("# {title}\n\n{cites}.\n");
    for summary in summaries {
        let Summary { experiment, what, source, ground, command, seeds, claims, .. } = summary;
        let runs = if *seeds == 1 { "run" } else { "runs" };
        let _ = write!(
            text,
            "\n## {experiment}\n\n{what}.\nSource: {source}. {seeds} {runs} of each case, {}: `{command}`\n\n",
            ground.name(),
        );
        if !claims.is_empty() {
            let mut table = Table::new(["claim", "source says", "measured", "verdict", "reason"]);
            for claim in claims {
                let Claim { what, claimed, measured, verdict, .. } = claim;
                let reason = verdict.reason().unwrap_or_default();
                let verdict = claim.verdict_name();
                table.row([what, claimed, measured, &verdict, reason].map(str::to_owned));
            }
            let _ = writeln!(text, "{}\n", table.to_markdown());
        }
        for note in &summary.notes {
            let _ = writeln!(text, "{note}\n");
        }
        for Drawing { file, title } in &summary.pictures {
            let _ = writeln!(text, "![{title}]({experiment}/{file})\n");
        }
        // The table is often long, so it is collapsed.
        let table = summary.table.to_markdown();
        let _ =
            writeln!(text, "<details>\n<summary>All figures</summary>\n\n{table}\n\n</details>");
    }
    text
}

/// Appends the files with summaries at `path` and below it, sorted by name in each folder.
fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), LabError> {
    let failed = |source| LabError::Read { path: path.to_owned(), source };
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    for entry in entries {
        // Links are not followed, because they can form a loop.
        if entry.is_dir() && !entry.is_symlink() {
            find(&entry, files)?;
        } else if entry.file_name().is_some_and(|name| name == SUMMARY_FILE || name == ALL_FILE) {
            files.push(entry);
        }
    }
    Ok(())
}

/// Returns whether a path stays inside the folder that it is joined to.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Reads the summaries of a file, one per line.
fn read_file(path: &Path) -> Result<Vec<Kept>, LabError> {
    let failed = |source| LabError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LONGEST {
        let what = format!("more than {LONGEST} bytes: this is not a file of summaries");
        return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, what)));
    }
    let beside = path.parent().unwrap_or(Path::new(""));
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let refuse = |source| LabError::Summary { path: path.to_owned(), line: number + 1, source };
        let summary: Summary = serde_json::from_str(line).map_err(refuse)?;
        let names = summary.pictures.iter().map(|picture| &picture.file);
        if let Some(name) = names.chain([&summary.experiment]).find(|name| !is_inside(name)) {
            let what = format!("`{name}`: expected a path below the folder");
            return Err(refuse(serde::de::Error::custom(what)));
        }
        let is_one = path.ends_with(SUMMARY_FILE);
        let dir = if is_one { beside.to_owned() } else { beside.join(&summary.experiment) };
        all.push(Kept { summary, dir });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(experiment: &str, verdict: Verdict) -> Summary {
        let [what, claimed, measured] = ["goodput", "2.0", "1.0 ± 0.1"].map(str::to_owned);
        let mut table = Table::new(["loss", "goodput"]);
        table.row(["1 %", "1.0 ± 0.1"].map(str::to_owned));
        Summary {
            experiment: experiment.to_owned(),
            what: "A flow over a link".to_owned(),
            source: "A paper 3.1".to_owned(),
            kind: Kind::Study,
            ground: Ground::Simulated,
            command: format!("airtcp lab run {experiment}"),
            seeds: 10,
            table,
            claims: vec![Claim { what, claimed, measured, is_beside: false, verdict }],
            notes: vec!["The link is slower here.".to_owned()],
            pictures: vec![Drawing { file: "time.svg".to_owned(), title: "Time".to_owned() }],
        }
    }

    fn put(dir: &Path, summary: &Summary) {
        let dir = dir.join(&summary.experiment);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("time.svg"), &summary.experiment).unwrap();
        fs::write(dir.join(SUMMARY_FILE), serde_json::to_string(summary).unwrap() + "\n").unwrap();
    }

    #[test]
    fn pages_count_verdicts_and_give_claim_reason_and_command() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &summary("le/fig4", Verdict::Holds));
        let mut fig7 = summary("hack/fig7", Verdict::DoesNotHold("a|b".to_owned()));
        fig7.claims.push(Claim {
            is_beside: true,
            ..summary("hack/fig7", Verdict::Holds).claims.swap_remove(0)
        });
        put(dir.path(), &fig7);
        put(dir.path(), &summary("hack/table1", Verdict::NotComparable("wide".to_owned())));
        let pages = Results::read(&[dir.path()]).unwrap().pages();
        let names: Vec<_> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["README.md", "hack.md", "le.md"]);
        let cells = |line: &str| -> Vec<String> {
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let row = pages[0].1.lines().find(|line| line.contains("hack.md")).unwrap();
        assert_eq!(cells(row)[1..8], ["[HACK](hack.md)", "2", "2", "0", "1", "1", "1"]);
        let hack = &pages[1].1;
        assert!(hack.contains("`airtcp lab run hack/fig7`"), "{hack}");
        let row = hack.lines().find(|line| line.contains("a\\")).unwrap();
        assert_eq!(cells(row)[1..5], ["goodput", "2.0", "1.0 ± 0.1", "does not hold"]);
        assert!(hack.contains("| holds, beside |"), "{hack}");
        assert!(hack.find("hack/fig7") < hack.find("hack/table1"));
        assert!(hack.contains("\nThe link is slower here.\n"), "{hack}");
        assert!(hack.contains("\n![Time](hack/fig7/time.svg)\n"), "{hack}");
    }

    #[test]
    fn claims_beside_the_source_are_counted_apart() {
        let dir = tempfile::tempdir().unwrap();
        let mut beside = summary("le/fig4", Verdict::Holds);
        beside.claims[0].is_beside = true;
        put(dir.path(), &beside);
        put(dir.path(), &summary("le/fig5", Verdict::Holds));
        let table = Results::read(&[dir.path()]).unwrap().table();
        assert_eq!(table.rows(), [["LE", "2", "1", "1", "0", "0", "1"]]);
    }

    #[test]
    fn experiments_of_the_user_have_a_page_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &summary("mine/loss", Verdict::Holds));
        put(dir.path(), &summary("README", Verdict::Holds));
        let own = Results::read(&[dir.path()]).unwrap();
        let pages = own.pages();
        assert_eq!(pages.len(), 2);
        let (name, text) = &pages[1];
        assert_eq!(name, "own.md");
        assert!(text.contains("\n## README\n") && text.contains("\n## mine/loss\n"), "{text}");
        assert!(pages[0].1.contains("[Your own experiments](own.md)"), "{}", pages[0].1);
        assert!(!pages[0].1.contains("No run is recorded"), "{}", pages[0].1);
        assert!(own.table().to_markdown().contains("| Your own experiments"));
        put(dir.path(), &summary("le/fig4", Verdict::Holds));
        let pages = Results::read(&[dir.path()]).unwrap().pages();
        let names: Vec<_> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["README.md", "le.md", "own.md"]);
        assert!(pages[0].1.contains("No run is recorded of `"), "{}", pages[0].1);
    }

    #[test]
    fn what_is_written_reads_back_and_a_later_path_replaces_an_earlier_one() {
        let [old, new, out] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        put(old.path(), &summary("le/fig4", Verdict::Holds));
        put(old.path(), &summary("le/fig5", Verdict::Holds));
        put(new.path(), &summary("le/fig4", Verdict::NotComparable("wide".to_owned())));
        let results = Results::read(&[old.path(), new.path()]).unwrap();
        let verdict = |name| results.get(name).unwrap().claims[0].verdict.name();
        assert_eq!((verdict("le/fig4"), verdict("le/fig5")), ("not comparable", "holds"));
        let again = tempfile::tempdir().unwrap();
        results.write(out.path()).unwrap();
        let read = Results::read(&[out.path()]).unwrap();
        assert!(read.summaries().eq(results.summaries()));
        assert_eq!(read.pages(), results.pages());
        read.write(again.path()).unwrap();
        assert_eq!(fs::read_to_string(again.path().join("le/fig5/time.svg")).unwrap(), "le/fig5");
    }

    #[test]
    fn mistakes_name_the_file_and_the_line() {
        let dir = tempfile::tempdir().unwrap();
        let error = Results::read(&[dir.path()]).unwrap_err().to_string();
        assert!(error.contains("no results of `airtcp lab run --out`"), "{error}");
        let file = dir.path().join(ALL_FILE);
        let line = serde_json::to_string(&summary("le/fig4", Verdict::Holds)).unwrap();
        fs::write(&file, format!("{line}\n{{}}\n")).unwrap();
        let error = Results::read(&[dir.path()]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}:2: ", file.display())), "{error}");
        fs::write(&file, line.replace("time.svg", "../../../etc/passwd")).unwrap();
        let error = Results::read(&[dir.path()]).unwrap_err().to_string();
        assert!(error.contains("expected a path below the folder"), "{error}");
    }
}
