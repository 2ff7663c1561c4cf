//! The environment of a simulating command: a terminal, or a program that calls the command.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::{self, Display};
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use airtcp_sim::Cancel;
use anyhow::Context;
use serde::Serialize;

use crate::args::{self, Command};
use crate::output::{self, Mistake};
use crate::progress::Progress;
use crate::{compare, file, plot, sim, sweep};

/// A call of `compare`, `sim`, `sweep` or `plot` by a program, which takes the results that the
/// command prints on a terminal. The Python package is such a program.
///
/// [`run`](Self::run) returns at the end. Meanwhile other threads can read the progress, and cancel
/// the call.
///
/// ```
/// use airtcp_cli::Call;
///
/// let link = "rate 5mbit delay 5ms limit 20 loss 1%";
/// let options = ["--with", "sack/reno", "--seeds", "2", "--seconds", "1", "--json"];
/// let call = Call::new(None);
/// let json = call.run(["compare", link].into_iter().chain(options))?;
/// assert!(json.contains("goodput_bits_per_second"));
/// assert_eq!(call.progress(), (6, 6));
/// # Ok::<(), airtcp_cli::CallError>(())
/// ```
#[derive(Debug)]
pub struct Call {
    /// The name and the text of the file `-`; otherwise it is stdin.
    input: Option<(String, String)>,
    /// Whether results go to `output` and notes to `notes`, and not to the terminal.
    is_captured: bool,
    output: Mutex<String>,
    notes: Mutex<Vec<String>>,
    cancel: Cancel,
    runs: AtomicU64,
    done: AtomicU64,
}

impl Call {
    /// Creates a call. `input` is the name and the text of the file that the arguments call `-`.
    pub fn new(input: Option<(String, String)>) -> Self {
        Self { input, is_captured: true, ..Self::of_terminal() }
    }

    /// Creates the call of a command line.
    pub(crate) fn of_terminal() -> Self {
        Self {
            input: None,
            is_captured: false,
            output: Mutex::default(),
            notes: Mutex::default(),
            cancel: Cancel::default(),
            runs: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// Runs a command with the arguments of its command line, without the name of the program, and
    /// returns what it prints to stdout.
    ///
    /// # Errors
    ///
    /// The error that the command prints on a terminal; the call was cancelled; the command is none
    /// of `compare`, `sim`, `sweep` and `plot`.
    pub fn run(
        &self,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<String, CallError> {
        let arguments = arguments.into_iter().map(Into::<OsString>::into);
        let program = ["airtcp", "--quiet"].map(OsString::from);
        let cli = args::parse(program.into_iter().chain(arguments)).map_err(|refusal| {
            let text = refusal.text.strip_prefix("error: ").unwrap_or(&refusal.text);
            CallError { text: text.to_owned(), kind: None }
        })?;
        cli.global.install();
        let result = match &cli.command {
            Command::Compare(args) => compare::run(args, self),
            Command::Sim(args) => sim::run(args, self),
            Command::Sweep(args) => sweep::run(args, self),
            Command::Plot(args) => plot::run(args, self),
            _ => Err(Mistake::new("expected compare, sim, sweep or plot".to_owned()).into()),
        };
        result.map_err(|error| CallError::of(&error))?;
        Ok(std::mem::take(&mut *self.output.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Ends the call with an error. Simulations end before their next event; finished records of a
    /// sweep are kept.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns the number of finished runs, and of all runs: 0 before it is known.
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.runs.load(Ordering::Relaxed))
    }

    /// Returns the notes about the results, for example that nothing in a sweep is random.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the flag that [`cancel`](Self::cancel) sets.
    pub(crate) const fn flag(&self) -> &Cancel {
        &self.cancel
    }

    /// Reads the file `-`; returns its name and its text of at most `longest` bytes.
    pub(crate) fn input(&self, longest: u64) -> anyhow::Result<(String, String)> {
        match &self.input {
            Some((name, text)) if text.len() as u64 > longest => {
                Err(Mistake::new(format!("{name}: larger than {} MiB", longest >> 20)).into())
            }
            Some(input) => Ok(input.clone()),
            None => {
                let text = file::text(io::stdin(), longest).context("reading stdin")?;
                Ok(("stdin".to_owned(), text))
            }
        }
    }

    /// Prints a result.
    pub(crate) fn print(&self, text: &str) -> anyhow::Result<()> {
        if !self.is_captured {
            return output::print(text);
        }
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.push_str(text);
        output.push('\n');
        Ok(())
    }

    /// Prints a result as JSON.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        self.print(&serde_json::to_string_pretty(value)?)
    }

    /// Prints a result that `write` writes in parts, with a line break after each line.
    pub(crate) fn print_lines<E>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.is_captured {
            return write(&mut BufWriter::new(io::stdout().lock()));
        }
        let mut text = Vec::new();
        write(&mut text)?;
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.push_str(&String::from_utf8_lossy(&text));
        Ok(())
    }

    /// Prints a note about the results.
    pub(crate) fn note(&self, text: impl Display) {
        if self.is_captured {
            let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            notes.push(text.to_string());
        } else {
            output::note(text);
        }
    }

    /// Starts to count runs, of `runs` more.
    pub(crate) fn count(&self, runs: u64) -> Count<'_> {
        self.runs.fetch_add(runs, Ordering::Relaxed);
        Count { call: self, shown: (!self.is_captured).then(|| Progress::start(runs)) }
    }
}

/// Counts runs, and shows their progress on a terminal until it is dropped.
pub(crate) struct Count<'a> {
    call: &'a Call,
    shown: Option<Progress>,
}

impl Count<'_> {
    /// Adds `runs` finished runs.
    pub(crate) fn advance_by(&self, runs: u64) {
        self.call.done.fetch_add(runs, Ordering::Relaxed);
        if let Some(shown) = &self.shown {
            shown.advance_by(runs);
        }
    }
}

/// The reason why a call has no result, as the command prints it on a terminal.
#[derive(Debug)]
pub struct CallError {
    text: String,
    kind: Option<io::ErrorKind>,
}

impl CallError {
    fn of(error: &anyhow::Error) -> Self {
        let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
        let kind = causes.next().filter(|_| !error.is::<Mistake>()).map(io::Error::kind);
        Self { text: output::explain(error), kind }
    }

    /// Returns the kind of the input or output error; `None` for a mistake in the arguments or in a
    /// file.
    pub const fn kind(&self) -> Option<io::ErrorKind> {
        self.kind
    }
}

impl Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"name = "one"
duration = "1s"
wire = ["rate 5mbit delay 5ms limit 20 loss 1%"]
flow = [{ strategies = "sack/reno" }]
"#;

    fn call() -> Call {
        Call::new(Some(("dict".to_owned(), SCENARIO.to_owned())))
    }

    #[test]
    fn a_call_returns_the_json_and_counts_its_runs() {
        let call = call();
        let json = call.run(["sim", "run", "-", "--seeds", "3", "--json"]).unwrap();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["seeds"], serde_json::json!([1, 2, 3]));
        assert_eq!((call.progress(), call.notes()), ((3, 3), Vec::new()));
    }

    #[test]
    fn a_sweep_of_the_input_writes_its_files_and_returns_its_notes() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().to_str().unwrap();
        let call = call();
        let line = ["sweep", "-", "--vary", "flow.0.strategies=sack/reno", "--seeds", "2"];
        assert_eq!(call.run(line.into_iter().chain(["--out", out])).unwrap(), "");
        assert_eq!(call.progress(), (2, 2));
        assert_eq!(call.notes(), ["note: no pictures: no axis has several numbers"]);
        let records = std::fs::read_to_string(dir.path().join("records.jsonl")).unwrap();
        assert_eq!(records.lines().count(), 2);
    }

    #[test]
    fn the_plan_of_a_sweep_is_returned() {
        let line = ["sweep", "plan", "-", "--vary", "flow.0.strategies=sack/reno", "--seeds", "2"];
        let plan = call().run(line).unwrap();
        assert_eq!(plan.lines().count(), 2);
        let first: serde_json::Value = serde_json::from_str(plan.lines().next().unwrap()).unwrap();
        assert_eq!(first["seed"], 1);
    }

    #[test]
    fn errors_are_those_of_the_command_line() {
        let error = |line: &[&str]| call().run(line).unwrap_err();
        let wrong = error(&["compare", "weak-4g", "--seeds", "0"]);
        assert!(wrong.to_string().contains("for example --seeds 10"), "{wrong}");
        assert!(!wrong.to_string().starts_with("error"), "{wrong}");
        assert_eq!(wrong.kind(), None);
        let missing = error(&["sim", "run", "/no/such/file.toml"]);
        assert!(missing.to_string().contains("airtcp sim init"), "{missing}");
        assert_eq!(missing.kind(), Some(io::ErrorKind::NotFound));
        let setting = error(&["sim", "run", "-", "--set", "duratio=1s"]);
        assert!(setting.to_string().contains("duratio"), "{setting}");
        assert_eq!(error(&["names"]).to_string(), "expected compare, sim, sweep or plot");
    }

    #[test]
    fn a_cancelled_call_ends_with_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().to_str().unwrap();
        let lines: [&[&str]; 4] = [
            &["compare", "weak-4g"],
            &["sim", "run", "-", "--set", "duration=900000s"],
            &["sim", "run", "-", "--set", "duration=900000s", "--state", "/dev/null"],
            &["sweep", "-", "--vary", "duration=900000s", "--out", out],
        ];
        for line in lines {
            let call = call();
            call.cancel();
            assert_eq!(call.run(line).unwrap_err().to_string(), "cancelled", "{line:?}");
        }
    }
}
