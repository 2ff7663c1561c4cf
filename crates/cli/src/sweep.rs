//! `airtcp sweep`: simulates every combination of values with every seed, here or in shards on
//! other machines.

use std::env;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use airtcp_lab::{LabError, Shard, Sweep};
use airtcp_sim::SimError;
use anyhow::bail;
use clap::{Args, Subcommand};

use crate::call::Call;
use crate::output::{self, Mistake};
use crate::{file, value};

/// The maximum size of a sweep's file, in bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// `airtcp sweep`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SweepArgs {
    #[command(subcommand)]
    command: Option<SweepCommand>,
    #[command(flatten)]
    here: HereArgs,
}

/// The commands of `airtcp sweep`: one sweep on several machines.
#[derive(Subcommand, Debug)]
enum SweepCommand {
    /// List all cells, with the hash of everything that a cell's record depends on, as JSON lines
    Plan(GridArgs),
    /// Run one shard of a sweep; a shard that was interrupted is resumed
    Run(RunArgs),
    /// Check all shards, and write records, means and pictures
    Merge(MergeArgs),
}

/// The axes of the sweep.
#[derive(Args, Debug)]
struct GridArgs {
    /// Experiment file with axes, or - for stdin; with --vary a scenario file
    // Optional only in its type: clap requires it unless a subcommand is given, which has its own.
    #[arg(value_name = "FILE.toml", required = true)]
    file: Option<PathBuf>,
    /// Key of the scenario to vary and its values, as in flow.0.strategies=rack/cubic,sack/reno;
    /// may be repeated
    #[arg(long, value_name = "KEY=A,B", value_parser = axis)]
    vary: Vec<(String, Vec<String>)>,
    /// Number of seeds of each combination, starting from 1 [default: that of the file; with
    /// --vary: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::seeds)]
    seeds: Option<u32>,
}

impl GridArgs {
    fn path(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(""))
    }
}

/// The whole sweep on this machine.
#[derive(Args, Debug)]
struct HereArgs {
    #[command(flatten)]
    grid: GridArgs,
    /// Write records, means and pictures to this directory; a sweep that was interrupted is resumed
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,
    /// Number of threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::threads)]
    threads: Option<NonZero<usize>>,
}

/// `airtcp sweep run`.
#[derive(Args, Debug)]
struct RunArgs {
    #[command(flatten)]
    grid: GridArgs,
    /// Directory of the sweep, the same for all shards
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Shard to run: the K-th of N [default: the task of a Slurm array 1-N]
    #[arg(long, value_name = "K/N", value_parser = value::parsed::<Shard>)]
    shard: Option<Shard>,
    /// Number of shards, if a cluster sets K: HQ_TASK_ID or SLURM_ARRAY_TASK_ID, from 1 to N, or
    /// JOB_COMPLETION_INDEX, from 0
    #[arg(long, value_name = "N", conflicts_with = "shard", allow_negative_numbers = true,
          value_parser = value::whole(1_u64, 100_000, "--shards 100"))]
    shards: Option<u64>,
    /// Number of threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::threads)]
    threads: Option<NonZero<usize>>,
}

/// `airtcp sweep merge`.
#[derive(Args, Debug)]
struct MergeArgs {
    #[command(flatten)]
    grid: GridArgs,
    /// Directory of the sweep
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Parses `--vary`.
fn axis(text: &str) -> Result<(String, Vec<String>), String> {
    let (key, values) = text
        .split_once('=')
        .ok_or("expected KEY=A,B; for example --vary flow.0.strategies=rack/cubic,sack/reno")?;
    let values = values.split(',').map(|value| value.trim().to_owned()).collect();
    Ok((key.trim().to_owned(), values))
}

/// Runs the sweep, or one of its commands. A signal ends it at once; finished records are kept.
///
/// # Errors
/// The file cannot be read or run; a shard is missing or damaged; a result cannot be written.
pub(crate) fn run(args: &SweepArgs, call: &Call) -> anyhow::Result<()> {
    let HereArgs { grid, out, threads } = &args.here;
    let (grid, task) = match (&args.command, out) {
        (Some(SweepCommand::Plan(grid)), _) => (grid, Task::Plan),
        (Some(SweepCommand::Run(args)), _) => {
            let shard = shard(args, |name| env::var(name).ok())?;
            (&args.grid, Task::Run(shard, &args.out, args.threads))
        }
        (Some(SweepCommand::Merge(args)), _) => (&args.grid, Task::Merge(&args.out)),
        (None, Some(out)) => (grid, Task::All(out, *threads)),
        (None, None) => bail!(Mistake::new("expected --out DIR".to_owned())),
    };
    let file = read(grid, call)?;
    let sweep = sweep(grid, &file)?.with_cancel(call.flag());
    match task {
        Task::Plan => match call.print_lines(|out| sweep.plan(None, out)) {
            // The reader, for example `head`, has closed the pipe.
            Err(LabError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            planned => planned.map_err(as_mistake),
        },
        Task::Run(shard, out, threads) => run_shard(&sweep, shard, out, threads, call),
        Task::Merge(out) => merge(&sweep, grid, out, call),
        Task::All(out, threads) => {
            run_shard(&sweep, Shard::WHOLE, out, threads, call)?;
            merge(&sweep, grid, out, call)
        }
    }
}

/// The task of the command.
enum Task<'a> {
    Plan,
    Run(Shard, &'a Path, Option<NonZero<usize>>),
    Merge(&'a Path),
    All(&'a Path, Option<NonZero<usize>>),
}

/// Reads the file of a sweep; returns its name and text.
fn read(args: &GridArgs, call: &Call) -> anyhow::Result<(String, String)> {
    if args.path().as_os_str() == "-" {
        return call.input(LONGEST_FILE);
    }
    let name = args.path().display().to_string();
    let text = file::read(args.path(), LONGEST_FILE).map_err(|error| {
        let advice = "give an experiment file, such as examples/sweep.toml, or a scenario file with --vary KEY=A,B";
        output::if_missing(error.context(format!("reading {name}")), advice)
    })?;
    Ok((name, text))
}

fn sweep<'s>(args: &GridArgs, (name, text): &'s (String, String)) -> anyhow::Result<Sweep<'s>> {
    // The path of a trace is relative to the file that names it.
    let directory = args.path().parent().unwrap_or(Path::new("")).to_owned();
    let load = move |trace: &str| file::link_trace(&directory.join(trace));
    let seeds = args.seeds.map(u64::from);
    let sweep = match args.vary.as_slice() {
        [] => Sweep::read(name, text, seeds, load),
        axes => Sweep::vary(name, text, axes, seeds, load),
    };
    sweep.map_err(as_mistake).map_err(|error| {
        match args.vary.is_empty() && !file::is_experiment(text) {
            true => output::with_advice(error, "to sweep over a scenario file, add --vary KEY=A,B"),
            false => error,
        }
    })
}

/// Converts an error, which is a mistake if the command line or the file causes it.
fn as_mistake(error: LabError) -> anyhow::Error {
    match error {
        LabError::Sim(error @ SimError::Setting { .. }) => {
            Mistake::new(format!("--vary {error}")).into()
        }
        error @ (LabError::Axis { .. }
        | LabError::Sweep(_)
        | LabError::Sim(
            SimError::File { .. } | SimError::Senseless { .. } | SimError::Link { .. },
        )) => Mistake::new(error.to_string()).into(),
        error => error.into(),
    }
}

/// Returns the shard to run, from the command line or the environment of a cluster.
fn shard(args: &RunArgs, variable: impl Fn(&str) -> Option<String>) -> Result<Shard, Mistake> {
    if let Some(shard) = args.shard {
        return Ok(shard);
    }
    let number = |name: &'static str| {
        let text = variable(name)?;
        Some((name, text.parse::<u64>().ok()))
    };
    // HyperQueue may run within a Slurm job, so that its variable has precedence.
    let found = ["HQ_TASK_ID", "SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];
    let Some((name, task)) = found.into_iter().find_map(number) else {
        let what = match args.shards {
            Some(of) => format!("which of the {of} shards? For example --shard 1/{of}"),
            None => "which shard? For example --shard 1/100; the whole sweep on this machine: airtcp sweep FILE.toml --out DIR"
                .to_owned(),
        };
        return Err(Mistake::new(what));
    };
    let is_array = name == "SLURM_ARRAY_TASK_ID";
    let of = args.shards.or_else(|| {
        // Only an array 1-N certainly has all shards: the tasks of another array may be a part of
        // them.
        let [count, least, most] = ["COUNT", "MIN", "MAX"]
            .map(|what| number_of(&variable, &format!("SLURM_ARRAY_TASK_{what}")));
        count.filter(|_| is_array && least == Some(1) && most == count)
    });
    let Some(of) = of else {
        return Err(Mistake::new(format!(
            "{name} is set, but not the number of shards: add --shards N{}",
            if is_array { ", or submit the array 1-N" } else { "" }
        )));
    };
    if Shard::new(1, of).is_none() {
        let what = format!(
            "SLURM_ARRAY_TASK_COUNT is {of}: a sweep has at most 100000 shards: give their number with --shards N"
        );
        return Err(Mistake::new(what));
    }
    let (first, last) = if name == "JOB_COMPLETION_INDEX" { (0, of - 1) } else { (1, of) };
    let shard = task.and_then(|task| Shard::new(task.checked_add(1 - first)?, of));
    shard.ok_or_else(|| {
        Mistake::new(format!(
            "{name} is {}: expected a number from {first} to {last}; use --shard K/{of} instead of --shards",
            variable(name).unwrap_or_default(),
        ))
    })
}

fn number_of(variable: &impl Fn(&str) -> Option<String>, name: &str) -> Option<u64> {
    variable(name)?.parse().ok()
}

fn run_shard(
    sweep: &Sweep<'_>,
    shard: Shard,
    out: &Path,
    threads: Option<NonZero<usize>>,
    call: &Call,
) -> anyhow::Result<()> {
    let done = {
        let count = call.count(shard.cells(sweep.cells()).count() as u64);
        sweep.run(shard, out, threads, |cells| count.advance_by(cells)).map_err(as_mistake)?
    };
    let what = format!("shard {shard}: {} cells", done.cells);
    match done.earlier {
        0 => output::note(format_args!("{what} in {}", done.path.display())),
        earlier => output::note(format_args!(
            "{what}, {earlier} of them from an earlier run, in {}",
            done.path.display()
        )),
    }
    if !done.is_random && done.cells > 0 {
        call.note("note: nothing is random: every seed gives the same");
    }
    Ok(())
}

fn merge(sweep: &Sweep<'_>, grid: &GridArgs, out: &Path, call: &Call) -> anyhow::Result<()> {
    let merged = sweep.merge(out).map_err(|error| match sweep.missing(out).as_deref() {
        Ok([first, ..]) => {
            let line = run_line(grid, *first, out);
            output::with_advice(error.into(), format_args!("for the first, type {line}"))
        }
        _ => error.into(),
    })?;
    if let Some(note) = merged.note {
        call.note(format_args!("note: {note}"));
    }
    for file in merged.files {
        output::note(format_args!("wrote {}", file.display()));
    }
    Ok(())
}

/// Returns the command line that runs a shard.
fn run_line(grid: &GridArgs, shard: Shard, out: &Path) -> String {
    let quoted =
        |word: String| match word.chars().all(|c| c.is_alphanumeric() || "._-/=,:".contains(c)) {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        };
    let mut line = format!("airtcp sweep run {}", quoted(grid.path().display().to_string()));
    for (key, values) in &grid.vary {
        line += &format!(" --vary {}", quoted(format!("{key}={}", values.join(","))));
    }
    if let Some(seeds) = grid.seeds {
        line += &format!(" --seeds {seeds}");
    }
    line + &format!(" --shard {shard} --out {}", quoted(out.display().to_string()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        sweep: SweepArgs,
    }

    fn parse(line: &str) -> Result<SweepArgs, String> {
        let line = Line::try_parse_from(line.split(' ')).map(|line| line.sweep);
        line.map_err(|error| error.to_string())
    }

    /// Returns the shard of `run` with these options and environment variables.
    fn of(options: &str, environment: &[(&str, &str)]) -> Result<String, String> {
        let line = format!("sweep run a.toml --out d{options}");
        let Some(SweepCommand::Run(args)) = parse(&line)?.command else { panic!("{line}") };
        let variable = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        shard(&args, variable).map(|shard| shard.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_sweep_is_of_one_machine_or_has_commands() {
        assert!(parse("sweep a.toml --out d --threads 2").unwrap().here.out.is_some());
        assert!(
            parse("sweep a.toml --vary mtu=1,2 --vary b=3 --out d").unwrap().here.out.is_some()
        );
        assert!(parse("sweep plan a.toml --seeds 5").unwrap().command.is_some());
        assert!(parse("sweep merge a.toml --out d").unwrap().command.is_some());
        for wrong in ["sweep", "sweep a.toml", "sweep run a.toml", "sweep a.toml --out d --vary a"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(axis("a.0.b=x, y").unwrap(), ("a.0.b".into(), vec!["x".into(), "y".into()]));
    }

    #[test]
    fn a_line_to_type_has_all_options() {
        let args = parse("sweep merge a.toml --vary mtu=1,2 --seeds 5 --out d").unwrap();
        let Some(SweepCommand::Merge(args)) = args.command else { panic!("no merge") };
        let line = run_line(&args.grid, Shard::WHOLE, Path::new("my results"));
        let expected =
            "airtcp sweep run a.toml --vary mtu=1,2 --seeds 5 --shard 1/1 --out 'my results'";
        assert_eq!(line, expected);
    }

    #[test]
    fn the_shard_is_that_of_the_command_line_or_of_the_cluster() {
        let slurm = |task, least, most, count| {
            [
                ("SLURM_ARRAY_TASK_ID", task),
                ("SLURM_ARRAY_TASK_MIN", least),
                ("SLURM_ARRAY_TASK_MAX", most),
                ("SLURM_ARRAY_TASK_COUNT", count),
            ]
        };
        let array = slurm("3", "1", "8", "8");
        assert_eq!(of(" --shard 2/5", &array), Ok("2/5".to_owned()));
        assert_eq!(of("", &array), Ok("3/8".to_owned()));
        assert_eq!(of(" --shards 10", &array), Ok("3/10".to_owned()));
        // A repeated part of the tasks does not give the number of shards.
        let again = slurm("7", "3", "7", "2");
        assert!(of("", &again).unwrap_err().contains("add --shards N, or submit the array 1-N"));
        assert_eq!(of(" --shards 8", &again), Ok("7/8".to_owned()));
        let both = [array.as_slice(), &[("HQ_TASK_ID", "5")]].concat();
        assert_eq!(of(" --shards 9", &both), Ok("5/9".to_owned()));
        assert!(of("", &both).unwrap_err().starts_with("HQ_TASK_ID is set, but not the number"));
        let index = |text| [("JOB_COMPLETION_INDEX", text)];
        assert_eq!(of(" --shards 4", &index("0")), Ok("1/4".to_owned()));
        assert_eq!(of(" --shards 4", &index("3")), Ok("4/4".to_owned()));
        let error = of(" --shards 4", &index("4")).unwrap_err();
        assert!(error.starts_with("JOB_COMPLETION_INDEX is 4: expected a number from 0 to 3;"));
        let error = of(" --shards 4", &[("HQ_TASK_ID", "0")]).unwrap_err();
        // HyperQueue's Python package numbers the tasks from 0.
        let typed =
            "HQ_TASK_ID is 0: expected a number from 1 to 4; use --shard K/4 instead of --shards";
        assert_eq!(error, typed);
        let most = u64::MAX.to_string();
        for name in ["HQ_TASK_ID", "JOB_COMPLETION_INDEX"] {
            let error = of(" --shards 4", &[(name, &most)]).unwrap_err();
            assert!(error.starts_with(&format!("{name} is {most}: expected a number")), "{error}");
        }
        let error = of("", &slurm("1", "1", &most, &most)).unwrap_err();
        assert!(
            error.starts_with("SLURM_ARRAY_TASK_COUNT is 18446744073709551615: a sweep"),
            "{error}"
        );
        assert!(of("", &[]).unwrap_err().starts_with("which shard? For example --shard 1/100"));
        assert!(of(" --shard 0/5", &[]).is_err());
        assert!(of(" --shard 1/5 --shards 5", &[]).is_err());
    }
}
