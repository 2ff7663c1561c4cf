//! Shards: equal parts of a sweep, and their files.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use airtcp_sim::Simulation;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::order::in_order;
use super::{Cell, Sweep, hex, write_error};
use crate::LabError;
use crate::study::once;

/// The folder of the shards.
const FOLDER: &str = "shards";

/// The suffix of the file of an unfinished shard.
const PARTIAL: &str = ".partial";

/// The number of bytes that are read from a shard at a time. The file is closed between reads,
/// because a sweep can have more shards than a process may open files.
const BLOCK: u64 = 1 << 14;

/// The time between two attempts to lock a shard that another process runs.
const LOCK_INTERVAL: Duration = Duration::from_millis(100);

/// Each line of a shard ends with this field, a hash of the text before it. A damaged record is run
/// again.
const CHECK: &str = ",\"check\":\"";

/// The maximum length of a record.
const LONGEST_LINE: usize = 1 << 20;

/// One of several equal parts of a sweep: every `of`-th cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    number: u64,
    of: u64,
}

/// The result of running a shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// The shard's file.
    pub path: PathBuf,
    /// The number of cells.
    pub cells: u64,
    /// The number of cells that an earlier run had recorded.
    pub earlier: u64,
    /// Whether any scenario of the shard is random; if not, every seed gives the same result.
    pub is_random: bool,
}

/// The last line of a finished shard.
#[derive(Serialize, Deserialize)]
struct Footer {
    shard: String,
    cells: u64,
    /// The hash of all bytes before this line.
    sha256: String,
}

/// The fields that identify the cell of a line.
#[derive(Deserialize)]
struct Key {
    cell: u64,
    hash: String,
    seed: u64,
}

/// Adds the hash of a record's bytes as its last field. The record ends with `}` and optionally a
/// line break.
fn with_check(record: &str) -> String {
    let open = record.trim_end().strip_suffix('}').unwrap_or(record);
    format!("{open}{CHECK}{}\"}}\n", check(open))
}

/// Returns the record of a line, without the line break; `None` if the hash does not match.
fn without_check(line: &str) -> Option<String> {
    let (open, end) = line.rsplit_once(CHECK)?;
    (end.strip_suffix("\"}\n") == Some(&check(open))).then(|| format!("{open}}}"))
}

/// Ignores the error of a file system without locks, as some clusters have. Without locks, the same
/// shard must not run twice at the same time; everything else works.
pub(super) fn unless_unsupported(locked: io::Result<()>) -> io::Result<()> {
    /// ENOSYS and EOPNOTSUPP.
    const NO_LOCKS: [i32; 2] = [38, 95];
    let is_unsupported = |error: &io::Error| {
        let has_no_locks = |code| cfg!(target_os = "linux") && NO_LOCKS.contains(&code);
        error.kind() == io::ErrorKind::Unsupported || error.raw_os_error().is_some_and(has_no_locks)
    };
    locked.or_else(|error| if is_unsupported(&error) { Ok(()) } else { Err(error) })
}

fn check(text: &str) -> String {
    hex(&Sha256::digest(text)[..8])
}

impl Shard {
    /// The whole sweep.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// The maximum number of shards; more are a mistake.
    const MOST: u64 = 100_000;

    /// Returns shard `number` of `of`, counted from 1; `None` if there is no such shard.
    pub fn new(number: u64, of: u64) -> Option<Self> {
        ((1..=of).contains(&number) && of <= Self::MOST).then_some(Self { number, of })
    }

    /// Returns the numbers of the shard's cells in a sweep of `all` cells.
    pub fn cells(self, all: u64) -> impl Iterator<Item = u64> + Clone {
        (self.number..=all).step_by(self.of as usize)
    }

    fn path(self, dir: &Path) -> PathBuf {
        dir.join(FOLDER).join(format!("shard-{}-of-{}.jsonl", self.number, self.of))
    }

    /// Returns a pattern for the names of all files of a sweep with this number of shards.
    fn siblings(self) -> String {
        format!("shard-*-of-{}.jsonl*", self.of)
    }

    fn partial(self, dir: &Path) -> PathBuf {
        let mut path = self.path(dir).into_os_string();
        path.push(PARTIAL);
        path.into()
    }
}

/// The form of the `--shard` option: `3/100`.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(number, of)| number.parse().ok().zip(of.parse().ok()));
        numbers.and_then(|(number, of)| Self::new(number, of)).ok_or_else(|| {
            format!("expected K/N, K from 1 to N, N up to {}; for example 3/100", Self::MOST)
        })
    }
}

impl Sweep<'_> {
    /// Runs the cells of a shard that have no record yet, and writes the shard below `dir`. The run
    /// can be interrupted at any time: the next run keeps the existing records. If another process
    /// runs the shard, this one waits for it. `advance` receives the number of additional cells
    /// that have a record.
    ///
    /// # Errors
    ///
    /// A scenario that is invalid or cannot be run; a shard of another sweep; read and write
    /// errors; [`Cancelled`](airtcp_sim::SimError::Cancelled).
    pub fn run(
        &self,
        shard: Shard,
        dir: &Path,
        threads: Option<NonZero<usize>>,
        advance: impl Fn(u64),
    ) -> Result<Done, LabError> {
        let found = found(dir)?;
        if let Some((other, _)) = found.iter().find(|(other, _)| other.of != shard.of) {
            let what = format!(
                "it has files of {} shards, and this run is one of {}: to keep them, choose another directory with --out, \
                 or run --shard K/{}; else remove {}",
                other.of,
                shard.of,
                other.of,
                dir.join(FOLDER).join(other.siblings()).display()
            );
            return Err(LabError::Shard { path: dir.join(FOLDER), what });
        }
        let path = shard.path(dir);
        let numbers = shard.cells(self.cells());
        let cells = numbers.clone().count() as u64;
        let mut is_random = false;
        let mut reader = path.exists().then(|| Reader::new(self, shard, path.clone()));
        // A finished shard is checked; for an unfinished one, all scenarios are checked before
        // anything runs.
        for cell in self.cases(numbers.clone()) {
            let cell = cell?;
            let scenario = &cell.case.scenario;
            is_random |= scenario.is_random();
            match &mut reader {
                Some(reader) => _ = reader.expect(&cell)?,
                None => _ = Simulation::new(scenario)?,
            }
        }
        let earlier = match &mut reader {
            Some(reader) => {
                reader.end(cells)?;
                advance(cells);
                cells
            }
            None => self.write(shard, dir, threads, advance)?,
        };
        Ok(Done { path, cells, earlier, is_random })
    }

    /// Writes a shard; returns the number of cells that an earlier run had recorded.
    fn write(
        &self,
        shard: Shard,
        dir: &Path,
        threads: Option<NonZero<usize>>,
        advance: impl Fn(u64),
    ) -> Result<u64, LabError> {
        let (path, part) = (shard.path(dir), shard.partial(dir));
        let numbers = shard.cells(self.cells());
        let cells = numbers.clone().count() as u64;
        let folder = dir.join(FOLDER);
        fs::create_dir_all(&folder).map_err(write_error(&folder))?;
        let failed = write_error(&part);
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let mut file = options.open(&part).map_err(&failed)?;
        self.lock(&file, &failed)?;
        if path.exists() {
            // Another process finished the shard in the meantime. `file` is the finished shard, or
            // a new partial file without records.
            let _ = fs::remove_file(&part);
            advance(cells);
            return Ok(cells);
        }
        let mut reader = Reader::new(self, shard, part.clone());
        let mut earlier = 0;
        for cell in self.cases(numbers.clone()) {
            match reader.next(&cell?)? {
                Found::Record(_) => earlier += 1,
                // A process was killed while it wrote this line.
                Found::Damaged | Found::Footer(_) | Found::End => break,
                Found::Other(what) => return Err(reader.refuse(&what)),
                Found::Foreign(what) => return Err(reader.foreign(&what)),
            }
        }
        advance(earlier);
        let (kept, mut sum) = (reader.length, reader.sum);
        file.set_len(kept).and_then(|()| file.seek(SeekFrom::Start(kept))).map_err(&failed)?;
        in_order(
            threads,
            self.cases(numbers.skip(earlier as usize)),
            |cell| {
                let scenario = cell.case.scenario.clone();
                let fields = once(scenario, cell.seed, &self.asked, &self.cancel)?;
                Ok(with_check(&self.line(&cell, &fields)?))
            },
            |line| {
                sum.update(&line);
                file.write_all(line.as_bytes()).map_err(&failed)?;
                advance(1);
                Ok(())
            },
        )?;
        let footer = Footer { shard: shard.to_string(), cells, sha256: hex(&sum.finalize()) };
        let footer = serde_json::to_string(&footer)? + "\n";
        file.write_all(footer.as_bytes()).and_then(|()| file.sync_all()).map_err(&failed)?;
        fs::rename(&part, &path).map_err(write_error(&path))?;
        Ok(earlier)
    }

    /// Locks the file of a shard. If another process has locked it, waits for that process, until
    /// the sweep is cancelled.
    fn lock(&self, file: &File, failed: impl Fn(io::Error) -> LabError) -> Result<(), LabError> {
        loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    self.cancel.check()?;
                    thread::sleep(LOCK_INTERVAL);
                }
                Err(TryLockError::Error(error)) => {
                    return unless_unsupported(Err(error)).map_err(failed);
                }
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Returns the shards below `dir` that a merge needs and that are missing or unfinished.
    ///
    /// # Errors
    ///
    /// There are no shards, or shards of different totals; read errors.
    pub fn missing(&self, dir: &Path) -> Result<Vec<Shard>, LabError> {
        let found = found(dir)?;
        let refuse = |what: String| Err(LabError::Shard { path: dir.join(FOLDER), what });
        let Some((first, _)) = found.first() else {
            return refuse("there are no shards: run the sweep first".to_owned());
        };
        if let Some((other, _)) = found.iter().find(|(shard, _)| shard.of != first.of) {
            return refuse(format!(
                "there are files of {} shards and of {}: remove {} or {} there",
                first.of,
                other.of,
                first.siblings(),
                other.siblings()
            ));
        }
        let mut finished = found.iter().filter(|(_, is_finished)| *is_finished).peekable();
        let all = (1..=first.of).map(|number| Shard { number, of: first.of });
        Ok(all.filter(|shard| finished.next_if(|(known, _)| known == shard).is_none()).collect())
    }

    /// Returns the readers of all shards below `dir`, in the order of their numbers.
    pub(super) fn shards(&self, dir: &Path) -> Result<Vec<Reader<'_>>, LabError> {
        let missing = self.missing(dir)?;
        let found = found(dir)?;
        let of = found.first().map_or(0, |(shard, _)| shard.of);
        if missing.is_empty() {
            let all = (1..=of).map(|number| Shard { number, of });
            return Ok(all.map(|shard| Reader::new(self, shard, shard.path(dir))).collect());
        }
        let (begun, not_begun): (Vec<Shard>, Vec<Shard>) =
            missing.iter().partition(|shard| found.contains(&(**shard, false)));
        let lists = [("missing", not_begun), ("not finished", begun)];
        let lists = lists.iter().filter(|(_, shards)| !shards.is_empty());
        let lists: Vec<String> =
            lists.map(|(what, shards)| format!("{what}: {}", ranges(shards))).collect();
        let what = format!(
            "{} of {of} shards are not there ({}): run each of them, as in --shard {}",
            missing.len(),
            lists.join("; "),
            missing[0]
        );
        Err(LabError::Shard { path: dir.join(FOLDER), what })
    }
}

/// Returns the shards below `dir`, in the order of their numbers, and whether they are finished.
fn found(dir: &Path) -> Result<Vec<(Shard, bool)>, LabError> {
    let folder = dir.join(FOLDER);
    let failed = |source| LabError::Read { path: folder.clone(), source };
    let entries = match fs::read_dir(&folder) {
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) =>
        {
            return Ok(Vec::new());
        }
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix("shard-")) else {
            continue;
        };
        let (name, is_finished) = match name.strip_suffix(PARTIAL) {
            Some(name) => (name, false),
            None => (name, true),
        };
        let shard = name.strip_suffix(".jsonl").map(|name| name.replacen("-of-", "/", 1));
        let shard =
            shard.and_then(|name| name.parse::<Shard>().ok().filter(|s| s.to_string() == name));
        found.extend(shard.map(|shard| (shard, is_finished)));
    }
    found.sort_by_key(|(shard, is_finished)| (shard.of, shard.number, !is_finished));
    Ok(found)
}

/// Formats increasing shard numbers as Slurm array indices: `3,7,9-12`.
fn ranges(shards: &[Shard]) -> String {
    let runs = shards.chunk_by(|one, next| one.number + 1 == next.number);
    let text = |run: &[Shard]| match run {
        [first, .., last] => format!("{}-{}", first.number, last.number),
        one => one.iter().map(|shard| shard.number.to_string()).collect(),
    };
    runs.map(text).collect::<Vec<_>>().join(",")
}

/// Reads the lines of a shard.
pub(super) struct Reader<'a> {
    sweep: &'a Sweep<'a>,
    shard: Shard,
    path: PathBuf,
    /// Bytes that are read but not yet used.
    buffer: Vec<u8>,
    /// The number of bytes read.
    read: u64,
    /// The number of lines, the number of bytes and the hash of the valid records so far.
    lines: u64,
    length: u64,
    sum: Sha256,
}

/// The line found in the place of a record.
enum Found {
    Record(String),
    /// Not a record, or an incomplete one.
    Damaged,
    End,
    /// The last line of a finished shard.
    Footer(Footer),
    /// The record of another cell, and the mistake.
    Other(String),
    /// The record of another sweep, and its description.
    Foreign(String),
}

impl<'a> Reader<'a> {
    fn new(sweep: &'a Sweep<'a>, shard: Shard, path: PathBuf) -> Self {
        let sum = Sha256::new();
        Self { sweep, shard, path, buffer: Vec::new(), read: 0, lines: 0, length: 0, sum }
    }

    fn refuse(&self, what: &str) -> LabError {
        let what = format!(
            "line {}: {what}; remove the file and run --shard {} again, or choose another directory",
            self.lines + 1,
            self.shard
        );
        LabError::Shard { path: self.path.clone(), what }
    }

    /// Returns the error for a shard of another sweep.
    fn foreign(&self, what: &str) -> LabError {
        let what = format!(
            "choose another directory with --out: line {} is {what}; to discard what is in this one, remove its folder {FOLDER}",
            self.lines + 1
        );
        LabError::Shard { path: self.path.clone(), what }
    }

    /// Returns the next line with its line break. At the end of the file, returns the rest, which
    /// may be empty.
    fn line(&mut self) -> Result<Vec<u8>, LabError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return Ok(self.buffer.drain(..=end).collect());
            }
            let failed = |source| LabError::Read { path: self.path.clone(), source };
            let mut file = File::open(&self.path).map_err(failed)?;
            file.seek(SeekFrom::Start(self.read)).map_err(failed)?;
            let count = file.take(BLOCK).read_to_end(&mut self.buffer).map_err(failed)?;
            self.read += count as u64;
            if count == 0 || self.buffer.len() > LONGEST_LINE {
                return Ok(std::mem::take(&mut self.buffer));
            }
        }
    }

    /// Reads the line where the record of `cell` is expected.
    fn next(&mut self, cell: &Cell) -> Result<Found, LabError> {
        let line = self.line()?;
        if line.is_empty() {
            return Ok(Found::End);
        }
        let text = String::from_utf8(line).unwrap_or_default();
        let record = without_check(&text);
        let key = record.as_ref().and_then(|record| serde_json::from_str::<Key>(record).ok());
        let (Some(record), Some(key)) = (record, key) else {
            let footer = serde_json::from_str(&text).ok();
            return Ok(footer.map_or(Found::Damaged, Found::Footer));
        };
        let number = cell.number;
        if key.cell < number {
            return Ok(Found::Other(format!("cell {} is there twice", key.cell)));
        }
        if key.cell > number {
            return Ok(Found::Other(format!("cell {number} is missing")));
        }
        if key.hash != cell.hash {
            let what = match self.sweep.has_with_other_seeds(key.cell, key.seed, &key.hash) {
                true => "of the same sweep with another number of seeds".to_owned(),
                false => format!(
                    "of another sweep, or of another version of airtcp than {}",
                    env!("CARGO_PKG_VERSION")
                ),
            };
            return Ok(Found::Foreign(what));
        }
        self.lines += 1;
        self.length += text.len() as u64;
        self.sum.update(&text);
        Ok(Found::Record(record))
    }

    /// Returns the record of `cell`, without its line break and hash.
    pub(super) fn expect(&mut self, cell: &Cell) -> Result<String, LabError> {
        match self.next(cell)? {
            Found::Record(record) => Ok(record),
            Found::Damaged => {
                Err(self.refuse(&format!("no record of cell {}: damaged", cell.number)))
            }
            Found::Footer(footer) if footer.cells == self.lines => Err(self.foreign(
                "the end of a sweep of fewer cells: the number of seeds or of values differs",
            )),
            Found::Footer(_) | Found::End => {
                Err(self.refuse(&format!("it ends before cell {}", cell.number)))
            }
            Found::Other(what) => Err(self.refuse(&what)),
            Found::Foreign(what) => Err(self.foreign(&what)),
        }
    }

    /// Checks that the shard ends here after `cells` records, and that its hash matches.
    pub(super) fn end(&mut self, cells: u64) -> Result<(), LabError> {
        let line = self.line()?;
        let footer: Option<Footer> = serde_json::from_slice(&line).ok();
        let Some(footer) = footer.filter(|_| line.ends_with(b"\n")) else {
            if String::from_utf8(line).is_ok_and(|line| without_check(&line).is_some()) {
                return Err(self.foreign(
                    "of a sweep of more cells: the number of seeds or of values differs",
                ));
            }
            return Err(self.refuse("its last line, with the checksum, is missing or damaged"));
        };
        if footer.shard != self.shard.to_string() || footer.cells != cells {
            let what = format!("it ends as shard {} of {} cells", footer.shard, footer.cells);
            return Err(self.refuse(&what));
        }
        if footer.sha256 != hex(&self.sum.clone().finalize()) {
            return Err(self.refuse("the checksum is not that of the records: damaged"));
        }
        if !self.line()?.is_empty() {
            return Err(self.refuse("there are lines behind its end"));
        }
        Ok(())
    }

    /// Returns the number of the shard's cells in a sweep of `all` cells.
    pub(super) fn cells(&self, all: u64) -> u64 {
        self.shard.cells(all).count() as u64
    }
}
