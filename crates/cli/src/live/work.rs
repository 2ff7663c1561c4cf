//! The progress of `sim run` and `lab run` on the live page.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use airtcp_lab::{Claim, RunCounter, Verdict};
use serde_json::Value;

use super::{Chart, Snapshot, Table};

const COLUMNS: [&str; 5] = ["experiment", "state", "holds", "does not hold", "not comparable"];

/// The runs of a command, and its experiments if it has any.
#[derive(Debug)]
pub(crate) struct Work {
    start: Instant,
    /// The total number of runs, if known.
    runs: Option<u64>,
    /// The finished runs.
    done: RunCounter,
    experiments: Mutex<Vec<Task>>,
}

/// An experiment.
#[derive(Debug)]
struct Task {
    name: String,
    /// The approximate run time, if known.
    seconds: Option<u64>,
    state: &'static str,
    /// Claims that hold, that do not hold, and that are not comparable.
    verdicts: [u64; 3],
}

impl Work {
    /// Shows a number of runs, which [`advance`](Self::advance) counts.
    pub(crate) fn of_runs(runs: u64) -> Self {
        Self::new(Some(runs), RunCounter::default(), Vec::new())
    }

    /// Shows experiments, each with its approximate run time in seconds. The lab counts their runs
    /// in `done`.
    pub(crate) fn of_experiments(
        done: RunCounter,
        experiments: impl IntoIterator<Item = (String, Option<u64>)>,
    ) -> Self {
        let task = |(name, seconds)| Task { name, seconds, state: "waits", verdicts: [0; 3] };
        Self::new(None, done, experiments.into_iter().map(task).collect())
    }

    fn new(runs: Option<u64>, done: RunCounter, experiments: Vec<Task>) -> Self {
        Self { start: Instant::now(), runs, done, experiments: Mutex::new(experiments) }
    }

    /// Counts a finished run.
    pub(crate) fn advance(&self) {
        self.done.add();
    }

    /// Marks an experiment, by its index, as running.
    pub(crate) fn begin(&self, experiment: usize) {
        self.set(experiment, |task| task.state = "runs");
    }

    /// Marks an experiment as ended with these claims, or as not run with `None`.
    pub(crate) fn end(&self, experiment: usize, claims: Option<&[Claim]>) {
        self.set(experiment, |task| {
            task.state = if claims.is_some() { "done" } else { "not run" };
            for claim in claims.into_iter().flatten() {
                let place = match claim.verdict {
                    Verdict::Holds => 0,
                    Verdict::DoesNotHold(_) => 1,
                    Verdict::NotComparable(_) => 2,
                };
                task.verdicts[place] += 1;
            }
        });
    }

    fn set(&self, experiment: usize, change: impl FnOnce(&mut Task)) {
        if let Some(task) = self.experiments().get_mut(experiment) {
            change(task);
        }
    }

    fn experiments(&self) -> MutexGuard<'_, Vec<Task>> {
        // A panic elsewhere does not damage the list.
        self.experiments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current state.
    pub(super) fn snapshot(&self) -> Snapshot {
        let (done, elapsed) = (self.done.get(), self.start.elapsed());
        let experiments = self.experiments();
        let mut snapshot = Snapshot::default();
        snapshot.charts.push(Chart::counters("Runs", "1/s", [("done", done as f64)]));
        snapshot.figure(
            "Runs done",
            self.runs.map_or(done.to_string(), |runs| format!("{done} of {runs}")),
        );
        let mut share = self.runs.map(|runs| done as f64 / runs.max(1) as f64);
        if !experiments.is_empty() {
            let ended = experiments.iter().filter(|task| !["waits", "runs"].contains(&task.state));
            snapshot.figure(
                "Experiments done",
                format!("{} of {}", ended.clone().count(), experiments.len()),
            );
            if let Some(task) = experiments.iter().find(|task| task.state == "runs") {
                snapshot.figure("Experiment at work", &task.name);
            }
            let all: Option<u64> = experiments.iter().map(|task| task.seconds).sum();
            let ended: Option<u64> = ended.map(|task| task.seconds).sum();
            share = all.zip(ended).map(|(all, ended)| ended as f64 / all.max(1) as f64);
            for (place, name) in
                ["Claims that hold", "Claims that do not", "Not comparable"].into_iter().enumerate()
            {
                let count: u64 = experiments.iter().map(|task| task.verdicts[place]).sum();
                snapshot.figure(name, count);
            }
            snapshot.table = Some(table(&experiments));
        }
        snapshot.figure("Elapsed", seconds(elapsed.as_secs_f64()));
        let left = share
            .filter(|share| *share > 0.0)
            .map(|share| elapsed.as_secs_f64() * (1.0 - share) / share);
        snapshot.figure(
            "Remaining",
            left.map_or("not known yet".to_owned(), |left| format!("about {}", seconds(left))),
        );
        if let Some(share) = share {
            snapshot.charts.push(Chart::gauges("Progress", "%", [("done", share * 1e2)]));
        }
        snapshot
    }
}

fn table(experiments: &[Task]) -> Table {
    let row = |task: &Task| {
        let mut row: Vec<Value> = vec![task.name.as_str().into(), task.state.into()];
        if task.state == "done" {
            row.extend(task.verdicts.map(Value::from));
        }
        row
    };
    let rows = experiments.iter().map(row).collect();
    Table { title: "Experiments", columns: &COLUMNS, rows, total: experiments.len() }
}

/// Formats a time as `75 s`, `12 min` or `2.5 h`.
fn seconds(seconds: f64) -> String {
    let rounded = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).as_secs();
    match rounded {
        0..120 => format!("{rounded} s"),
        120..7_200 => format!("{} min", rounded / 60),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure<'a>(snapshot: &'a Snapshot, name: &str) -> &'a str {
        let found = snapshot.figures.iter().find(|(of, _)| of == name);
        found.map_or("", |(_, text)| text)
    }

    #[test]
    fn runs_are_counted_of_all() {
        let work = Work::of_runs(4);
        let begun = work.snapshot();
        assert_eq!(figure(&begun, "Runs done"), "0 of 4");
        assert_eq!(figure(&begun, "Remaining"), "not known yet");
        assert!(begun.table.is_none());
        work.advance();
        let snapshot = work.snapshot();
        assert_eq!(figure(&snapshot, "Runs done"), "1 of 4");
        assert!(figure(&snapshot, "Remaining").starts_with("about "));
        assert_eq!(snapshot.charts[1].series[0].1, 25.0);
    }

    #[test]
    fn experiments_have_their_state_and_their_verdicts() {
        let names = ["self/loss", "le/fig4", "self/packets"];
        let done = RunCounter::default();
        let experiments = names.map(|name| (name.to_owned(), Some(10)));
        let work = Work::of_experiments(done.clone(), experiments);
        done.add();
        let verdicts = [Verdict::Holds, Verdict::Holds, Verdict::NotComparable(String::new())];
        let claims = verdicts.map(|verdict| Claim {
            what: String::new(),
            claimed: String::new(),
            measured: String::new(),
            is_beside: false,
            verdict,
        });
        work.begin(0);
        work.end(0, Some(&claims));
        work.begin(1);
        let snapshot = work.snapshot();
        assert_eq!(figure(&snapshot, "Runs done"), "1");
        assert_eq!(figure(&snapshot, "Experiments done"), "1 of 3");
        assert_eq!(figure(&snapshot, "Experiment at work"), "le/fig4");
        assert_eq!(figure(&snapshot, "Claims that hold"), "2");
        let rows = serde_json::to_value(snapshot.table.unwrap().rows).unwrap();
        let expected = serde_json::json!([
            ["self/loss", "done", 2, 0, 1],
            ["le/fig4", "runs"],
            ["self/packets", "waits"],
        ]);
        assert_eq!(rows, expected);
        work.end(1, None);
        assert_eq!(figure(&work.snapshot(), "Experiments done"), "2 of 3");
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let texts = [0.4, 119.9, 720.0, 9_000.0].map(seconds);
        assert_eq!(texts, ["0 s", "119 s", "12 min", "2.5 h"]);
        assert!(seconds(f64::MAX).ends_with(" h"));
    }
}
