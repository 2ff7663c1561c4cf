//! `airtcp sweep` as a user types it: its files and errors, and that every way to run it gives the
//! same bytes.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

type Outcome = Result<(), Box<dyn Error>>;

const GRID: &str = r#"seeds = 4
measures = ["goodput", "retransmissions"]

[[axis]]
name = "sender"
values = ["sack/reno", "sack/cubic"]

[[axis]]
name = "loss"
values = [1, 5]

[scenario]
duration = "500ms"
wire = ["rate 2mbit delay 5ms limit 20 loss {loss}%"]

[[scenario.flow]]
strategies = "{sender}"
"#;

/// A directory with a `grid.toml`.
fn directory() -> Result<TempDir, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("grid.toml"), GRID)?;
    Ok(directory)
}

/// The command in a directory, without the variables of a cluster.
fn airtcp(directory: &TempDir, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    command.current_dir(directory).args(line.split(' '));
    for name in ["HQ_TASK_ID", "SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"] {
        command.env_remove(name);
    }
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command that must succeed, and returns its stderr.
#[track_caller]
fn said(mut command: Command) -> Result<String, Box<dyn Error>> {
    let output = command.output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    Ok(stderr(&output))
}

/// Runs a command that must fail with one line, and returns the line without `error: `.
#[track_caller]
fn refused(mut command: Command, code: i32) -> Result<String, Box<dyn Error>> {
    let output = command.output()?;
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    Ok(text.trim_end().strip_prefix("error: ").expect("it begins so").to_owned())
}

/// The files of a sweep, without its shards.
fn files(path: &Path) -> Result<BTreeMap<String, Vec<u8>>, Box<dyn Error>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_file() {
            files.insert(path.file_name().expect("a name").display().to_string(), fs::read(path)?);
        }
    }
    Ok(files)
}

#[test]
fn a_sweep_writes_tables_and_pictures_and_is_not_run_twice() -> Outcome {
    let directory = directory()?;
    let whole = || airtcp(&directory, "sweep grid.toml --out results");
    let text = said(whole())?;
    assert!(text.starts_with("shard 1/1: 16 cells in results/shards/"), "{text}");
    let written = files(&directory.path().join("results"))?;
    let names: Vec<_> = written.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["goodput.svg", "means.csv", "records.csv", "records.jsonl", "retransmissions.svg"]
    );
    let csv = String::from_utf8(written["records.csv"].clone())?;
    assert_eq!(csv.lines().count(), 17);
    assert!(csv.starts_with("seed,sender,loss,goodput,retransmissions\n1,sack/reno,1,"), "{csv}");
    let again = said(whole())?;
    assert!(again.starts_with("shard 1/1: 16 cells, 16 of them from an earlier run"), "{again}");
    assert!(written == files(&directory.path().join("results"))?);

    let plan = airtcp(&directory, "sweep plan grid.toml").output()?;
    let plan = String::from_utf8(plan.stdout)?;
    let records = String::from_utf8(written["records.jsonl"].clone())?;
    assert_eq!(plan.lines().count(), 16);
    for (planned, record) in plan.lines().zip(records.lines()) {
        let [planned, record]: [serde_json::Value; 2] =
            [serde_json::from_str(planned)?, serde_json::from_str(record)?];
        for key in ["cell", "hash", "seed", "sender", "loss"] {
            assert_eq!(planned[key], record[key], "{key}");
        }
    }

    fs::write(directory.path().join("grid.toml"), GRID.replace("500ms", "400ms"))?;
    let error = refused(whole(), 1)?;
    assert!(error.contains("shard-1-of-1.jsonl: choose another directory with --out"), "{error}");
    Ok(())
}

#[test]
fn clusters_name_the_shard_and_the_merge_is_the_same() -> Outcome {
    let directory = directory()?;
    said(airtcp(&directory, "sweep grid.toml --out whole --threads 1"))?;
    let merge = || airtcp(&directory, "sweep merge grid.toml --out parts");
    let slurm = |task: &str| {
        let mut command = airtcp(&directory, "sweep run grid.toml --out parts");
        command.env("SLURM_ARRAY_TASK_ID", task).env("SLURM_ARRAY_TASK_MIN", "1");
        command.env("SLURM_ARRAY_TASK_MAX", "3").env("SLURM_ARRAY_TASK_COUNT", "3");
        command
    };
    assert!(said(slurm("2"))?.starts_with("shard 2/3: 5 cells"));
    let error = refused(merge(), 1)?;
    assert!(error.contains("2 of 3 shards are not there (missing: 1,3): run each"), "{error}");
    let typed = "; for the first, type airtcp sweep run grid.toml --shard 1/3 --out parts";
    assert!(error.ends_with(typed), "{error}");
    let error = refused(airtcp(&directory, "sweep grid.toml --out parts"), 1)?;
    assert!(error.contains("it has files of 3 shards, and this run is one of 1"), "{error}");
    let mut queue = airtcp(&directory, "sweep run grid.toml --shards 3 --out parts");
    queue.env("HQ_TASK_ID", "3");
    assert!(said(queue)?.starts_with("shard 3/3: 5 cells"));
    let mut index = airtcp(&directory, "sweep run grid.toml --shards 3 --out parts");
    index.env("JOB_COMPLETION_INDEX", "0");
    assert!(said(index)?.starts_with("shard 1/3: 6 cells"));
    said(merge())?;
    assert!(files(&directory.path().join("whole"))? == files(&directory.path().join("parts"))?);

    let damaged = directory.path().join("parts/shards/shard-2-of-3.jsonl");
    fs::write(&damaged, fs::read_to_string(&damaged)?.replacen("\"seed\":2", "\"seed\":3", 1))?;
    let error = refused(merge(), 1)?;
    assert!(error.contains("shard-2-of-3.jsonl: line 1: no record of cell 2: damaged"), "{error}");
    let error = refused(slurm("2"), 1)?;
    assert!(error.contains("remove the file and run --shard 2/3 again"), "{error}");
    Ok(())
}

#[test]
fn a_killed_run_is_resumed() -> Outcome {
    let directory = directory()?;
    said(airtcp(&directory, "sweep grid.toml --seeds 300 --out whole"))?;
    let line = "sweep grid.toml --seeds 300 --out killed --threads 1";
    let mut killed = airtcp(&directory, line).stderr(Stdio::null()).spawn()?;
    let partial = directory.path().join("killed/shards/shard-1-of-1.jsonl.partial");
    // Wait until it has written some records or, on a fast machine, all.
    while killed.try_wait()?.is_none() {
        let mut text = Vec::new();
        let read = fs::File::open(&partial).and_then(|mut file| file.read_to_end(&mut text));
        if read.is_ok_and(|count| count > 2_000) {
            killed.kill()?;
            killed.wait()?;
            break;
        }
        std::thread::yield_now();
    }
    let text = said(airtcp(&directory, line))?;
    assert!(text.contains("of them from an earlier run"), "{text}");
    assert!(files(&directory.path().join("whole"))? == files(&directory.path().join("killed"))?);
    Ok(())
}

#[test]
fn keys_of_a_scenario_are_varied() -> Outcome {
    let directory = directory()?;
    let scenario = "duration = \"300ms\"\nwire = [\"rate 2mbit delay 5ms loss 2%\"]\n[[flow]]\n";
    fs::write(directory.path().join("s.toml"), scenario)?;
    let vary = "sweep s.toml --vary flow.0.congestion=reno,cubic --vary flow.0.count=1,2 --seeds 2";
    said(airtcp(&directory, &format!("{vary} --out results")))?;
    let csv = fs::read_to_string(directory.path().join("results/means.csv"))?;
    assert!(csv.starts_with("flow.0.congestion,flow.0.count,goodput,goodput_low,"), "{csv}");
    assert_eq!(csv.lines().count(), 5);
    let error = refused(airtcp(&directory, "sweep plan s.toml --vary flow.0.congestion=cubci"), 2)?;
    assert!(
        error.starts_with("--vary `flow.0.congestion=cubci`: no congestion control `cubci`"),
        "{error}"
    );
    let error = refused(airtcp(&directory, "sweep plan s.toml --vary mtu"), 2)?;
    assert!(error.contains("expected KEY=A,B"), "{error}");
    let error = refused(airtcp(&directory, "sweep s.toml --out results"), 2)?;
    assert!(error.starts_with("s.toml:") && error.ends_with("add --vary KEY=A,B"), "{error}");
    let error = refused(airtcp(&directory, "sweep plan grid.toml --vary mtu=1,2"), 2)?;
    assert!(
        error.starts_with("grid.toml: this is an experiment file, and --vary takes"),
        "{error}"
    );
    fs::write(directory.path().join("file"), "")?;
    let error = refused(airtcp(&directory, "sweep grid.toml --out file"), 1)?;
    assert_eq!(error, "file/shards: Not a directory; specify a directory");
    let error = refused(airtcp(&directory, "sweep plan s.toml --vary seed=1,2"), 2)?;
    assert!(error.starts_with("axis `seed`: the seeds of a sweep are 1 to N"), "{error}");
    let error = refused(airtcp(&directory, "sweep run grid.toml --out results"), 2)?;
    assert!(error.starts_with("which shard? For example --shard 1/100"), "{error}");
    Ok(())
}
