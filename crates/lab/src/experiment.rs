//! The experiment type and the settings of a run.

use std::fmt::Write as _;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use airtcp_recovery::Combination;
use serde::{Deserialize, Serialize};

use crate::report::{Heading, RECORDS_FILE};
use crate::study::Recorded;
use crate::{Findings, LabError, Report, Results};

/// An experiment: one file that defines one of these constants, and a line in the
/// [registry](crate::EXPERIMENTS).
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// `paper/figure`, or `self/...` for a check of the tools.
    pub name: &'static str,
    /// A description of the experiment in one line.
    pub what: &'static str,
    /// The description's source: paper and section, RFC, or theory.
    pub source: &'static str,
    /// The subject of its claims.
    pub kind: Kind,
    /// Whether it is simulated or real.
    pub ground: Ground,
    /// The approximate duration on one core, in seconds.
    pub seconds: u32,
    /// The number of repetitions, each with its own seed; a plan can override it.
    pub seeds: u64,
    /// The function that runs the experiment.
    pub body: fn(&Run) -> Result<Findings, LabError>,
}

/// The subject of an experiment's claims.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The tools. If a claim does not hold, nothing measured with the tools counts.
    SelfCheck,
    /// A source. A claim that does not hold is a result.
    Study,
    /// One of our combinations, the candidate. The plan can set the candidate and the length of a
    /// run. A claim that does not hold is a result.
    Candidate,
}

/// Whether an experiment is simulated or real.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// In virtual time: the same seed always gives the same bytes.
    #[default]
    Simulated,
    /// With real packets between network namespaces, in real time.
    Real,
}

impl Ground {
    /// Returns the name in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Real => "real",
        }
    }
}

/// A counter of completed runs, simulated and real. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct RunCounter(Arc<AtomicU64>);

impl RunCounter {
    /// Counts one run.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of completed runs.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The settings for every experiment of an invocation.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The number of repetitions; the experiment's own number if `None`.
    pub seeds: Option<u64>,
    /// The number of threads that run the repetitions; one per core if `None`. Results do not
    /// depend on it. For [`Kind::Candidate`], the number of simultaneous real runs; one if `None`.
    pub threads: Option<NonZero<usize>>,
    /// Whether to run only a quick trial: a few short repetitions, whose figures mean little.
    pub is_small: bool,
    /// The candidate of [`Kind::Candidate`]; the experiment's default if `None`.
    pub candidate: Option<Combination>,
    /// The length of a run of [`Kind::Candidate`], including its warm-up; [`LENGTH`](crate::LENGTH)
    /// if `None`.
    pub length: Option<Duration>,
    /// Counts the runs of the experiments. A clone shows the progress of a long experiment.
    pub done: RunCounter,
    /// A folder that [`Report::write`] wrote to: nothing runs, and the records there are judged.
    /// The number of repetitions, the candidate and the length are theirs.
    pub records: Option<PathBuf>,
}

impl Plan {
    /// Returns the command line that runs experiment `name` with this plan. It omits the threads,
    /// because results do not depend on them.
    pub fn command(&self, name: &str) -> String {
        let mut command = format!("airtcp lab run {name}");
        let options = [
            ("--seeds", self.seeds.map(|seeds| seeds.to_string())),
            ("--candidate", self.candidate.as_ref().map(ToString::to_string)),
            ("--seconds", self.length.map(|length| length.as_secs_f64().to_string())),
        ];
        for (option, value) in options {
            if let Some(value) = value {
                let _ = write!(command, " {option} {value}");
            }
        }
        command
    }

    /// Sets the repetitions, the candidate and the length to those of a command line of
    /// [`command`](Self::command).
    fn with_settings(self, command: &str) -> Self {
        let mut plan = Self { seeds: None, candidate: None, length: None, ..self };
        let words: Vec<&str> = command.split_whitespace().collect();
        for words in words.windows(2) {
            match words[0] {
                "--seeds" => plan.seeds = words[1].parse().ok(),
                "--candidate" => plan.candidate = words[1].parse().ok(),
                "--seconds" => {
                    let seconds = words[1].parse().ok();
                    plan.length = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
                }
                _ => {}
            }
        }
        plan
    }
}

/// The settings for the run of one experiment.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The number of repetitions; their seeds are 1 to this number.
    pub seeds: u64,
    /// See [`Plan::threads`].
    pub threads: Option<NonZero<usize>>,
    /// See [`Plan::is_small`].
    pub is_small: bool,
    /// See [`Plan::candidate`].
    pub candidate: Option<Combination>,
    /// See [`Plan::length`].
    pub length: Option<Duration>,
    /// See [`Plan::done`].
    pub done: RunCounter,
    /// Whether the experiment is simulated or real.
    pub ground: Ground,
    /// The records to judge.
    pub(crate) recorded: Option<Arc<Recorded>>,
}

impl Run {
    /// Returns the settings of `plan` for an experiment that has `seeds` repetitions by default.
    fn new(plan: &Plan, ground: Ground, seeds: u64) -> Self {
        let seeds = plan.seeds.unwrap_or(seeds).max(1);
        let Plan { threads, is_small, candidate, length, done, .. } = plan.clone();
        Self { seeds, threads, is_small, candidate, length, done, ground, recorded: None }
    }

    /// Runs `body` with the settings of `plan`, or judges the records that the plan names.
    ///
    /// # Errors
    ///
    /// The error of `body`; there are no records, or they are not those of this experiment.
    pub(crate) fn report(
        plan: &Plan,
        experiment: Heading,
        (command, seeds): (String, u64),
        body: impl FnOnce(&Self) -> Result<Findings, LabError>,
    ) -> Result<Report, LabError> {
        let Some(dir) = plan.records.as_ref().map(|dir| dir.join(&experiment.name)) else {
            let run = Self::new(plan, experiment.ground, seeds);
            return Ok(Report { command, seeds: run.seeds, findings: body(&run)?, experiment });
        };
        let results = Results::read(&[&dir])?;
        let missing = || LabError::NoResults { path: dir.clone() };
        let earlier = results.get(&experiment.name).ok_or_else(missing)?;
        let recorded = Arc::new(Recorded::read(&dir.join(RECORDS_FILE))?);
        let plan = plan.clone().with_settings(&earlier.command);
        let run = Self {
            recorded: Some(recorded.clone()),
            ..Self::new(&plan, experiment.ground, earlier.seeds)
        };
        let mut findings = body(&run)?;
        findings.records = recorded.end()?;
        Ok(Report { experiment, command: earlier.command.clone(), seeds: run.seeds, findings })
    }

    /// Returns an error if the experiment is judged from records, and thus runs nothing.
    pub(crate) fn may_run(&self) -> Result<(), LabError> {
        self.recorded.as_ref().map_or(Ok(()), |recorded| Err(recorded.incomplete()))
    }

    /// Returns `full`, or a hundredth of it, rounded up, in a small run.
    pub(crate) const fn scaled(&self, full: u64) -> u64 {
        if self.is_small { full.div_ceil(100) } else { full }
    }

    /// Returns all values of a sweep, or the first and the last in a small run.
    pub(crate) fn points<T: Copy>(&self, of: &[T]) -> Vec<T> {
        match of {
            [first, .., last] if self.is_small => vec![*first, *last],
            all => all.to_vec(),
        }
    }
}

impl Experiment {
    /// A study in virtual time with ten seeds. An experiment sets the name, the description, the
    /// source, the duration and the body.
    pub(crate) const STUDY: Self = Self {
        name: "",
        what: "",
        source: "",
        kind: Kind::Study,
        ground: Ground::Simulated,
        seconds: 0,
        seeds: 10,
        body: |_| Ok(Findings::new("")),
    };

    /// A self-check in virtual time with five seeds. An experiment sets the same fields as for
    /// [`STUDY`](Self::STUDY).
    pub(crate) const CHECK: Self = Self { kind: Kind::SelfCheck, seeds: 5, ..Self::STUDY };

    /// The number of repetitions of a small run.
    const SMALL_SEEDS: u64 = 2;

    /// Runs the experiment and judges its claims.
    ///
    /// # Errors
    ///
    /// The experiment cannot be completed. A claim that does not hold is not an error.
    pub fn run(&self, plan: &Plan) -> Result<Report, LabError> {
        let own = if plan.is_small { Self::SMALL_SEEDS } else { self.seeds };
        Run::report(plan, self.into(), (plan.command(self.name), own), self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_the_settings_that_are_not_the_defaults() {
        let plan = Plan { threads: NonZero::new(2), ..Plan::default() };
        assert_eq!(plan.command("le/fig4"), "airtcp lab run le/fig4");
        let plan = Plan {
            seeds: Some(5),
            candidate: Some("le/bbr3/rr".parse().unwrap()),
            length: Some(Duration::from_millis(12_500)),
            ..Plan::default()
        };
        assert_eq!(
            plan.command("senders/goodput"),
            "airtcp lab run senders/goodput --seeds 5 --candidate le/bbr3/rr --seconds 12.5"
        );
        let again = Plan::default().with_settings(&plan.command("senders/goodput"));
        assert_eq!(again.command("senders/goodput"), plan.command("senders/goodput"));
        let own =
            Plan { seeds: Some(9), ..Plan::default() }.with_settings("airtcp lab run le/fig4");
        assert_eq!(own.command("le/fig4"), "airtcp lab run le/fig4");
    }
}
