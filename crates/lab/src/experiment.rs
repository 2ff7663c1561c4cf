//! The experiment type and the settings of a run.

use std::fmt::Write as _;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use airtcp_recovery::Combination;
use serde::{Deserialize, Serialize};

use crate::{Findings, LabError, Report};

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// In virtual time: the same seed always gives the same bytes.
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
}

impl Run {
    /// Returns the settings of `plan` for an experiment that has `seeds` repetitions by default.
    pub(crate) fn new(plan: &Plan, seeds: u64) -> Self {
        let seeds = plan.seeds.unwrap_or(seeds).max(1);
        let Plan { threads, is_small, candidate, length, done, .. } = plan.clone();
        Self { seeds, threads, is_small, candidate, length, done }
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
        let run = Run::new(plan, own);
        let command = plan.command(self.name);
        let findings = (self.body)(&run)?;
        Ok(Report { experiment: self.into(), command, seeds: run.seeds, findings })
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
    }
}
