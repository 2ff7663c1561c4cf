//! The type of an experiment, and its run.

use std::fmt::Write as _;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use airtcp_recovery::Combination;
use serde::{Deserialize, Serialize};

use crate::{Findings, LabError, Report};

/// An experiment: one file that makes one of these, and a line in the
/// [registry](crate::EXPERIMENTS).
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// `paper/figure`, or `self/...` for what the tools are checked by.
    pub name: &'static str,
    /// What is done, in one line.
    pub what: &'static str,
    /// Where it is described: paper and section, RFC, or theory.
    pub source: &'static str,
    /// What its claims are about.
    pub kind: Kind,
    /// Where it runs.
    pub ground: Ground,
    /// About how long it takes on one core, in seconds.
    pub seconds: u32,
    /// Repetitions, each with a seed of its own, unless the plan says how many.
    pub seeds: u64,
    /// Does it.
    pub body: fn(&Run) -> Result<Findings, LabError>,
}

/// What the claims of an experiment are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The tools. Where a claim does not hold, nothing measured with them counts.
    SelfCheck,
    /// A source. A claim that does not hold is a result.
    Study,
    /// A candidate: one of our combinations, which the plan may name, with the length of a run. A
    /// claim that does not hold is a result.
    Candidate,
}

/// Where an experiment runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// In virtual time: a seed gives the same bytes always.
    Simulated,
    /// With real packets between network namespaces, in real time.
    Real,
}

impl Ground {
    /// As it is listed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Real => "real",
        }
    }
}

/// Counts runs that are done, simulated and real. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct RunCounter(Arc<AtomicU64>);

impl RunCounter {
    /// Counts one run.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of runs that are done.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is asked of every experiment of a call.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Repetitions; the experiment's own number if `None`.
    pub seeds: Option<u64>,
    /// Threads that repetitions are spread over; one per core if `None`. Results do not depend on
    /// it. How many real runs of [`Kind::Candidate`] run at once; one if `None`.
    pub threads: Option<NonZero<usize>>,
    /// Whether only the way is tried: a few short repetitions, whose figures mean little.
    pub is_small: bool,
    /// The candidate of [`Kind::Candidate`]; the experiment's default if `None`.
    pub candidate: Option<Combination>,
    /// How long a run of [`Kind::Candidate`] lasts, its warm-up included; [`LENGTH`](crate::LENGTH)
    /// if `None`.
    pub length: Option<Duration>,
    /// Counts the runs of the experiments: a clone shows how far a long one is.
    pub done: RunCounter,
}

impl Plan {
    /// The command line that runs experiment `name` by this plan. Threads are left out: results do
    /// not depend on them.
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

/// What one experiment is to do.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Repetitions, of the seeds 1 to this.
    pub seeds: u64,
    /// As in the [`Plan`].
    pub threads: Option<NonZero<usize>>,
    /// As in the [`Plan`].
    pub is_small: bool,
    /// As in the [`Plan`].
    pub candidate: Option<Combination>,
    /// As in the [`Plan`].
    pub length: Option<Duration>,
    /// As in the [`Plan`].
    pub done: RunCounter,
}

impl Run {
    /// By `plan`, of an experiment that has this number of repetitions.
    pub(crate) fn new(plan: &Plan, seeds: u64) -> Self {
        let seeds = plan.seeds.unwrap_or(seeds).max(1);
        let Plan { threads, is_small, candidate, length, done, .. } = plan.clone();
        Self { seeds, threads, is_small, candidate, length, done }
    }

    /// `full`, or a hundredth of it when the experiment is small.
    pub(crate) const fn scaled(&self, full: u64) -> u64 {
        if self.is_small { full.div_ceil(100) } else { full }
    }

    /// All values of a sweep, or the first and the last when the experiment is small.
    pub(crate) fn points<T: Copy>(&self, of: &[T]) -> Vec<T> {
        match of {
            [first, .., last] if self.is_small => vec![*first, *last],
            all => all.to_vec(),
        }
    }
}

impl Experiment {
    /// A study in virtual time with ten seeds. Its name, description, source, duration and body are
    /// to be set.
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

    /// A self-check in virtual time with five seeds. The same is to be set.
    pub(crate) const CHECK: Self = Self { kind: Kind::SelfCheck, seeds: 5, ..Self::STUDY };

    /// Repetitions of a small run.
    const SMALL_SEEDS: u64 = 2;

    /// Runs it and judges its claims.
    ///
    /// # Errors
    ///
    /// Those that keep it from running to its end. A claim that does not hold is none.
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
