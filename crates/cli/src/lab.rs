//! `airtcp lab`: lists and runs experiments.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use airtcp_lab::{
    EXPERIMENTS, Experiment, Ground, Kind, LabError, Plan, Report, Results, RunCounter, Study,
    Summary, Table,
};
use airtcp_recovery::Combination;
use airtcp_testbed::TestbedError;
use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::live::{Aside, Work};
use crate::output::{self, Mistake};
use crate::{file, live, table, value};

/// The maximum size of an experiment file, in bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// `airtcp lab`.
#[derive(Args, Debug)]
pub(crate) struct LabArgs {
    /// The subcommand.
    #[command(subcommand)]
    command: LabCommand,
}

/// The commands of `airtcp lab`.
#[derive(Subcommand, Debug)]
enum LabCommand {
    /// List the experiments
    List(ListArgs),
    /// Run experiments, and compare the results with the claims of their sources
    Run(RunArgs),
    /// Count the verdicts in result directories, and write them as Markdown pages
    Results(ResultsArgs),
}

/// `airtcp lab list`.
#[derive(Args, Debug)]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `airtcp lab run`.
#[derive(Args, Debug)]
struct RunArgs {
    /// Names from `airtcp lab list`, patterns such as 'self/*', `all`, or experiment files,
    /// FILE.toml
    #[arg(value_name = "NAME", required = true, value_parser = name)]
    names: Vec<String>,
    /// Number of runs of each case [default: that of the experiment]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::seeds)]
    seeds: Option<u32>,
    /// Print all results, including raw records, as JSON
    #[arg(long)]
    json: bool,
    /// Write records, tables and pictures to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue in an --out directory that has results: skip listed experiments with results of the
    /// same command, and replace others
    #[arg(long, requires = "out")]
    resume: bool,
    /// Candidate of experiments that judge one combination [default: rack/bbr3/spike]
    #[arg(long, value_name = "COMBINATION", value_parser = value::parsed::<Combination>)]
    candidate: Option<Combination>,
    /// Length of each run in seconds, including the warm-up, of experiments with a candidate
    /// [default: 60]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::seconds)]
    seconds: Option<Duration>,
    /// Number of threads; simulated results do not depend on it, and real runs side by side may
    /// make links late [default: one per core, one for real runs]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::threads)]
    threads: Option<NonZero<usize>>,
    /// Judge stored records instead of running: DIR is the --out directory of an earlier run, whose
    /// settings apply
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["seeds", "candidate", "seconds", "resume", "live"]
    )]
    records: Option<PathBuf>,
    /// Show the progress on a page at http://ADDR/ while the command runs: a port of 127.0.0.1, or
    /// ADDRESS:PORT. No login
    #[arg(long, value_name = "ADDR", value_parser = live::address)]
    live: Option<SocketAddr>,
}

/// `airtcp lab results`.
#[derive(Args, Debug)]
struct ResultsArgs {
    /// Directories written by `airtcp lab run --out` or this command; later ones override earlier
    /// ones
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,
    /// Write Markdown pages and their data to this directory: claims, figures, verdicts, reasons,
    /// commands
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl LabArgs {
    /// Returns whether the command moves real packets, and thus needs network namespaces.
    fn is_real(&self) -> bool {
        match &self.command {
            LabCommand::List(_) | LabCommand::Results(_) => false,
            LabCommand::Run(args) if args.records.is_some() => false,
            LabCommand::Run(args) => args.names.iter().filter(|name| !is_file(name)).any(|name| {
                airtcp_lab::select(&[name])
                    .is_ok_and(|selected| selected.iter().any(|e| e.ground == Ground::Real))
            }),
        }
    }
}

/// Runs a command of `airtcp lab`.
///
/// # Errors
/// An experiment could not be run, a self-check failed, or the results could not be written.
pub(crate) fn run(args: &LabArgs) -> anyhow::Result<()> {
    if args.is_real()
        // Before anything else: a process with several threads cannot enter a user namespace.
        && let Err(error) = airtcp_testbed::enter_user_namespace_if_needed()
    {
        output::note(format_args!("note: {error}"));
    }
    match &args.command {
        LabCommand::List(args) => list(args),
        LabCommand::Run(args) => run_experiments(args),
        LabCommand::Results(args) => results(args),
    }
}

fn results(args: &ResultsArgs) -> anyhow::Result<()> {
    let results = Results::read(&args.dirs).map_err(|error| {
        output::if_missing(error.into(), "give a directory that `airtcp lab run --out DIR` wrote")
    })?;
    output::print(&results.table().to_text(table::width()))?;
    if let Some(dir) = &args.out {
        let files = results.write(dir)?;
        output::note(format_args!("{} files in {}", files.len(), dir.display()));
    }
    Ok(())
}

/// Returns whether `name` is a user's experiment file.
fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

fn name(text: &str) -> Result<String, String> {
    if is_file(text) {
        return Ok(text.to_owned());
    }
    match airtcp_lab::select(&[text]) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// An entry of the list.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    what: &'static str,
    source: &'static str,
    ground: Ground,
    /// Approximate run time on one core.
    seconds: u32,
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    if args.json {
        let listed = |e: &Experiment| Listed {
            name: e.name,
            what: e.what,
            source: e.source,
            ground: e.ground,
            seconds: e.seconds,
        };
        output::print_json(&EXPERIMENTS.iter().map(listed).collect::<Vec<_>>())?;
        return Ok(());
    }
    let mut table = Table::new(["name", "where", "takes", "what"]);
    for Experiment { name, what, ground, seconds, .. } in EXPERIMENTS {
        let about = duration(u64::from(*seconds));
        table.row([(*name).to_owned(), ground.name().to_owned(), about, (*what).to_owned()]);
    }
    // `list` also wraps for a pager or a filter, which usually writes to a terminal; programs use
    // --json.
    output::print(&table.to_text(Some(table::width().unwrap_or(table::WIDTH))))?;
    Ok(())
}

/// Formats an approximate run time: `40 s`, `12 min`, `2.5 h`.
fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

/// An experiment to run.
enum Job {
    /// A built-in experiment.
    Listed(&'static Experiment),
    /// A user's experiment.
    Own(Box<Study>),
}

impl Job {
    fn name(&self) -> &str {
        match self {
            Self::Listed(experiment) => experiment.name,
            Self::Own(study) => study.name(),
        }
    }

    /// Returns the approximate run time in seconds, if it is known.
    fn about(&self, plan: &Plan) -> Option<u64> {
        match self {
            Self::Listed(experiment) if plan.records.is_none() => Some(about(experiment, plan)),
            _ => None,
        }
    }

    /// Returns the results of this experiment in `dir`.
    fn earlier(&self, dir: &Path) -> Option<Summary> {
        Results::read(&[dir.join(self.name())]).ok()?.get(self.name()).cloned()
    }

    /// Returns whether `earlier` has the results of this plan. A user's file may have changed
    /// since, so that its results never count.
    fn is_done(&self, plan: &Plan, earlier: &Summary) -> bool {
        matches!(self, Self::Listed(_))
            && earlier.command == plan.command(self.name())
            && !earlier.is_failed_check()
    }

    fn run(&self, plan: &Plan) -> Result<Report, LabError> {
        match self {
            Self::Listed(experiment) => experiment.run(plan),
            Self::Own(study) => study.run(plan),
        }
    }
}

/// Returns the selected built-in experiments in the order of the list, and then the files.
fn jobs(names: &[String]) -> anyhow::Result<Vec<Job>> {
    let (files, listed): (Vec<_>, Vec<_>) = names.iter().partition(|name| is_file(name));
    let selected =
        airtcp_lab::select(&listed).map_err(|error| anyhow!(Mistake::new(error.to_string())))?;
    let mut jobs: Vec<Job> = selected.into_iter().map(Job::Listed).collect();
    for name in files {
        let study = Job::Own(Box::new(own(Path::new(name))?));
        if let Some(same) = jobs.iter().find(|job| job.name() == study.name()) {
            let what =
                format!("{name}: there are two experiments `{}`: change its `name`", same.name());
            return Err(anyhow!(Mistake::new(what)));
        }
        jobs.push(study);
    }
    Ok(jobs)
}

/// Reads a user's experiment file.
fn own(path: &Path) -> anyhow::Result<Study> {
    let name = path.display().to_string();
    let text = file::read(path, LONGEST_FILE).map_err(|error| {
        let advice =
            "give an experiment file, such as examples/lab.toml, or a name of `airtcp lab list`";
        output::if_missing(error.context(format!("reading {name}")), advice)
    })?;
    // The path of a trace is relative to the file that names it.
    let directory = path.parent().unwrap_or(Path::new(""));
    let study = Study::read(&name, &text, |trace| file::link_trace(&directory.join(trace)));
    study.map_err(|error| {
        let mistake = anyhow!(Mistake::new(error.to_string()));
        match file::is_experiment(&text) {
            true => mistake,
            false => output::with_advice(
                mistake,
                format_args!("to run a scenario file, type airtcp sim run {name}"),
            ),
        }
    })
}

fn run_experiments(args: &RunArgs) -> anyhow::Result<()> {
    let plan = Plan {
        seeds: args.seeds.map(u64::from),
        threads: args.threads,
        is_small: false,
        candidate: args.candidate.clone(),
        length: args.seconds,
        done: RunCounter::default(),
        records: args.records.clone(),
    };
    let jobs = jobs(&args.names)?;
    refuse_unused(&plan, &jobs)?;
    let todo = todo(args, &plan, &jobs)?;
    if let Some(dir) = &args.out {
        prepare(dir, &jobs)?;
    }
    if plan.seeds == Some(1) {
        output::note(
            "note: a single run has no confidence interval: use --seeds 2 or more for claims with random elements",
        );
    }
    let work = todo.iter().map(|job| (job.name().to_owned(), job.about(&plan)));
    let work = Arc::new(Work::of_experiments(plan.done.clone(), work));
    let show = |address| Aside::show(address, "airtcp lab run".to_owned(), work.clone());
    let _page = args.live.map(show).transpose()?;
    let (mut reports, mut unfit, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (number, job) in todo.iter().enumerate() {
        let name = job.name();
        let (seconds, of) = (job.about(&plan), todo.len());
        if seconds.is_some_and(|seconds| seconds >= 10) || of > 1 {
            let seconds =
                seconds.map_or(String::new(), |seconds| format!(", about {}", duration(seconds)));
            output::note(format_args!("{name} ({} of {of}{seconds})", number + 1));
        }
        work.begin(number);
        // If this machine cannot run an experiment, or cannot judge its records, the others still run.
        let report = match job.run(&plan) {
            Ok(report) => report,
            Err(
                error @ (LabError::Testbed(TestbedError::Unavailable { .. })
                | LabError::Records { .. }),
            ) => {
                output::print_stderr(format_args!("NOT RUN: {name}: {error}"));
                unfit.push(name);
                work.end(number, None);
                continue;
            }
            Err(error) => return Err(anyhow!(error).context(name.to_owned())),
        };
        work.end(number, Some(&report.findings.claims));
        if report.is_failed_check() {
            failed.push(name);
        }
        if !args.json {
            output::print(&report.to_text(table::width()))?;
        }
        if let Some(dir) = &args.out {
            write(&report, dir)?;
        }
        reports.push(report);
    }
    if args.json {
        output::print_json(&reports)?;
    }
    if !unfit.is_empty() {
        bail!("not run: {}: see the reasons above", unfit.join(", "));
    }
    if !failed.is_empty() {
        bail!("self-checks failed: {}: results are invalid until they pass", failed.join(", "));
    }
    Ok(())
}

/// Returns the experiments to run. Earlier results are replaced only with `--resume`.
fn todo<'a>(args: &RunArgs, plan: &Plan, jobs: &'a [Job]) -> Result<Vec<&'a Job>, Mistake> {
    let mut todo = Vec::new();
    for job in jobs {
        let name = job.name();
        let earlier = args.out.as_ref().and_then(|dir| Some((dir.join(name), job.earlier(dir)?)));
        match earlier {
            Some((folder, _)) if !args.resume => {
                return Err(Mistake::new(format!(
                    "{} has results already: choose another --out, or add --resume to continue there",
                    folder.display()
                )));
            }
            Some((folder, earlier)) if job.is_done(plan, &earlier) => {
                output::note(format_args!("{name}: done, in {}", folder.display()));
            }
            Some((folder, earlier)) => {
                output::note(format_args!(
                    "{name}: replaces the results of `{}` in {}",
                    earlier.command,
                    folder.display()
                ));
                todo.push(job);
            }
            None => todo.push(job),
        }
    }
    Ok(todo)
}

/// Rejects options that a selected experiment does not support.
fn refuse_unused(plan: &Plan, jobs: &[Job]) -> Result<(), Mistake> {
    let set = [("--candidate", plan.candidate.is_some()), ("--seconds", plan.length.is_some())];
    let set = set.into_iter().find(|(_, is_set)| *is_set);
    let other = jobs.iter().find(|job| match job {
        Job::Listed(experiment) => experiment.kind != Kind::Candidate,
        Job::Own(_) => true,
    });
    match set.zip(other) {
        Some(((option, _), other)) => {
            let name = other.name();
            let text = format!(
                "{option} is only for experiments with a candidate, which {name} does not have"
            );
            Err(Mistake::new(text))
        }
        None => Ok(()),
    }
}

/// Estimates the run time of an experiment in seconds, with its default seeds and length or those
/// of the plan.
fn about(experiment: &Experiment, plan: &Plan) -> u64 {
    let own = experiment.seeds.max(1);
    let seconds = (u64::from(experiment.seconds) * plan.seeds.unwrap_or(own)).div_ceil(own);
    plan.length.map_or(seconds, |length| {
        (seconds as f64 * length.as_secs_f64() / airtcp_lab::LENGTH.as_secs_f64()).ceil() as u64
    })
}

/// Checks that the results can be written, so that a long experiment does not fail at its end.
fn prepare(dir: &Path, jobs: &[Job]) -> anyhow::Result<()> {
    for job in jobs {
        file::check_directory(&dir.join(job.name()))
            .with_context(|| format!("--out {}", dir.display()))?;
    }
    Ok(())
}

fn write(report: &Report, dir: &Path) -> anyhow::Result<()> {
    let files = report.write(dir)?;
    let folder = dir.join(&report.experiment.name);
    output::note(format_args!("{} files in {}", files.len(), folder.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        lab: LabArgs,
    }

    fn parse(line: &str) -> Result<LabArgs, String> {
        let line = Line::try_parse_from(line.split(' ')).map(|line| line.lab);
        line.map_err(|error| error.to_string())
    }

    #[test]
    fn names_and_patterns_are_understood_and_others_refused() {
        let LabCommand::Run(args) =
            parse("lab run self/* dcr/table16 --seeds 3 --threads 2").unwrap().command
        else {
            panic!("that is run");
        };
        assert_eq!((args.names.len(), args.seeds), (2, Some(3)));
        let error = parse("lab run self/los").unwrap_err();
        assert!(error.contains("no experiment `self/los`"), "{error}");
        assert!(error.contains("airtcp lab list"), "{error}");
        assert!(parse("lab run self/loss --seeds 0").is_err());
        assert!(parse("lab run self/loss --threads 0").unwrap_err().contains("1 to 1024"));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_found_before_anything_runs() {
        let selected = jobs(&["self/packets".to_owned()]).unwrap();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let error = format!("{:#}", prepare(&file, &selected).unwrap_err());
        assert!(error.starts_with(&format!("--out {}: ", file.display())), "{error}");
    }

    #[test]
    fn the_time_goes_with_the_seeds() {
        let selected = airtcp_lab::select(&["self/loss"]).unwrap();
        let (own, seconds) = (selected[0].seeds, u64::from(selected[0].seconds));
        let plan = |seeds| Plan { seeds, ..Plan::default() };
        assert_eq!(about(selected[0], &plan(None)), seconds);
        assert_eq!(about(selected[0], &plan(Some(3 * own))), 3 * seconds);
        assert!(about(selected[0], &plan(Some(1))) >= 1);
        let third = Plan { length: Some(airtcp_lab::LENGTH / 3), ..Plan::default() };
        assert_eq!(about(selected[0], &third), seconds.div_ceil(3));
    }

    #[test]
    fn only_experiments_that_judge_a_candidate_take_one() {
        let LabCommand::Run(args) =
            parse("lab run senders/goodput --candidate le/bbr3/rr --seconds 20").unwrap().command
        else {
            panic!("that is run");
        };
        assert_eq!(args.seconds, Some(Duration::from_secs(20)));
        assert!(parse("lab run senders/goodput --candidate rack/bbr4").is_err());
        let plan = Plan { candidate: args.candidate, ..Plan::default() };
        let refuse = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            refuse_unused(&plan, &jobs(&names).unwrap())
        };
        assert!(refuse(&["senders/*"]).is_ok());
        let error = refuse(&["senders/harm", "self/loss"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "--candidate is only for experiments with a candidate, which self/loss does not have"
        );
    }

    #[test]
    fn only_real_experiments_want_namespaces() {
        assert!(!parse("lab list").unwrap().is_real());
        assert!(!parse("lab run self/loss le/fig?").unwrap().is_real());
        assert!(parse("lab run self/packets").unwrap().is_real());
    }
}
