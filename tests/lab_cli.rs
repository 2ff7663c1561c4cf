//! `airtcp lab` as a user types it: its output and exit codes.

use std::path::Path;
use std::process::{Command, Output};
use std::{fs, io};

use airtcp_testbed::{TestbedError, or_skip};

const AIRTCP: &str = env!("CARGO_BIN_EXE_airtcp");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_list_names_every_experiment_and_fits_a_terminal() -> io::Result<()> {
    let list = |columns: Option<&str>| {
        let mut command = Command::new(AIRTCP);
        match columns {
            Some(columns) => command.env("COLUMNS", columns),
            None => command.env_remove("COLUMNS"),
        };
        let output = command.args(["lab", "list"]).output()?;
        assert!(output.status.success() && output.stderr.is_empty());
        Ok::<_, io::Error>(text(&output.stdout))
    };
    let (wide, narrow) = (list(Some("300"))?, list(Some("80"))?);
    for experiment in airtcp_lab::EXPERIMENTS {
        assert!(wide.contains(experiment.name) && wide.contains(experiment.what));
        assert!(narrow.contains(experiment.name), "{}", experiment.name);
    }
    let long = narrow.lines().find(|line| line.chars().count() > 80);
    assert_eq!(long, None);
    // A pipe has no width of its own.
    assert_eq!(list(None)?, narrow);
    Ok(())
}

#[test]
fn a_name_that_is_none_is_refused_in_a_line() -> io::Result<()> {
    let output = Command::new(AIRTCP).args(["lab", "run", "self/los"]).output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("no experiment `self/los`"));
    Ok(())
}

/// Runs the command in a user namespace that allows no network namespaces. Any user can create one,
/// without an effect on other processes.
fn without_namespaces(arguments: &[&str]) -> Result<Output, TestbedError> {
    let forbid = "echo 0 > /proc/sys/user/max_net_namespaces || exit 99; exec \"$0\" \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", forbid, AIRTCP])
        .args(arguments)
        .output();
    let reason = match output {
        Ok(output)
            if !text(&output.stderr).starts_with("unshare:")
                && output.status.code() != Some(99) =>
        {
            return Ok(output);
        }
        Ok(output) => text(&output.stderr),
        Err(error) => format!("unshare: {error}"),
    };
    Err(TestbedError::Unavailable { reason })
}

#[test]
fn experiments_that_cannot_run_are_reported_and_the_others_run() {
    let arguments = ["lab", "run", "self/packets", "self/half-duplex"];
    let Some(output) = or_skip(without_namespaces(&arguments)) else { return };
    let (said, table) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(1), "{said}");
    let reason = "NOT RUN: self/packets: no network namespaces with TUN devices here: ";
    assert!(said.lines().any(|line| line.starts_with(reason)), "{said}");
    assert_eq!(said.lines().last(), Some("error: not run: self/packets: see the reasons above"));
    assert!(table.starts_with("self/half-duplex: ") && !table.contains("self/packets"), "{table}");
}

#[test]
fn a_stopped_run_is_resumed_and_its_results_become_pages() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let lab = |arguments: &[&str]| {
        let run = Command::new(AIRTCP).current_dir(dir.path()).arg("lab").args(arguments).output();
        run.map(|output| (output.status.code(), text(&output.stdout), text(&output.stderr)))
    };
    let first = ["run", "self/half-duplex", "--seeds", "2", "--out", "results"];
    let (code, _, said) = lab(&first)?;
    assert_eq!(code, Some(0), "{said}");
    let (code, table, said) = lab(&first)?;
    assert_eq!((code, table.as_str()), (Some(2), ""), "{said}");
    assert!(said.starts_with("error: results/self/half-duplex has results already: "), "{said}");
    let both = ["run", "self/half-duplex", "self/bit-errors", "--seeds", "2", "--out", "results"];
    let (code, table, said) = lab(&[&both[..], &["--resume"]].concat())?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("self/half-duplex: done, in results/self/half-duplex"), "{said}");
    assert!(table.starts_with("self/bit-errors: ") && !table.contains("self/half-duplex:"));
    // Other settings make another run.
    let other = ["run", "self/half-duplex", "--seeds", "3", "--out", "results", "--resume"];
    let (_, table, said) = lab(&other)?;
    assert!(table.starts_with("self/half-duplex: "), "{table}");
    assert!(
        said.starts_with("self/half-duplex: replaces the results of `airtcp lab run self/half"),
        "{said}"
    );

    let (code, table, said) = lab(&["results", "results", "--out", "pages"])?;
    assert_eq!(code, Some(0), "{said}");
    assert!(table.contains("The tools"), "{table}");
    let page = fs::read_to_string(dir.path().join("pages/self.md"))?;
    assert!(page.contains("`airtcp lab run self/half-duplex --seeds 3`"), "{page}");
    assert!(page.contains("`airtcp lab run self/bit-errors --seeds 2`"), "{page}");

    let (code, _, said) = lab(&["results", "nothing"])?;
    assert_eq!(code, Some(1));
    assert!(
        said.ends_with("nothing: No such file or directory; give a directory that `airtcp lab run --out DIR` wrote\n"),
        "{said}"
    );
    let (code, _, said) = lab(&["run", "self/half-duplex", "--resume"])?;
    assert_eq!(code, Some(2));
    assert!(said.contains("--out"), "{said}");
    Ok(())
}

#[test]
fn records_are_judged_again_without_a_run() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let lab = |arguments: &[&str]| {
        let run = Command::new(AIRTCP).current_dir(dir.path()).arg("lab").args(arguments).output();
        run.map(|output| (output.status.code(), text(&output.stdout), text(&output.stderr)))
    };
    let (code, first, said) = lab(&["run", "self/loss", "--seeds", "2", "--out", "results"])?;
    assert_eq!(code, Some(0), "{said}");
    let judge = ["run", "self/loss", "--records", "results", "--out", "again"];
    let (code, again, said) = lab(&judge)?;
    assert_eq!((code, &again), (Some(0), &first), "{said}");
    for file in ["records.jsonl", "table.md", "loss.svg", "summary.json"] {
        let read =
            |out: &str| fs::read_to_string(dir.path().join(out).join("self/loss").join(file));
        assert_eq!(read("again")?, read("results")?, "{file}");
    }
    // Without its last line, the records lack a run.
    let path = dir.path().join("results/self/loss/records.jsonl");
    let records = fs::read_to_string(&path)?;
    let lines: Vec<_> = records.lines().collect();
    fs::write(&path, lines[..lines.len() - 1].join("\n"))?;
    let (code, _, said) = lab(&["run", "self/loss", "--records", "results"])?;
    assert_eq!(code, Some(1), "{said}");
    let place = format!("results/self/loss/records.jsonl:{}: the record of ", lines.len());
    assert!(said.contains(&place) && said.contains("seed 2 is missing: run the"), "{said}");
    // Settings are those of the records.
    let (code, _, said) = lab(&["run", "self/loss", "--records", "results", "--seeds", "3"])?;
    assert_eq!(code, Some(2));
    assert!(said.contains("--records") && said.contains("--seeds"), "{said}");
    let (code, _, said) = lab(&["run", "self/loss", "--records", "nothing"])?;
    assert_eq!(code, Some(1));
    assert!(said.contains("nothing/self/loss: No such file or directory"), "{said}");
    Ok(())
}

#[test]
fn an_experiment_file_runs_and_its_mistakes_have_positions() -> io::Result<()> {
    let root = env!("CARGO_MANIFEST_DIR");
    let dir = tempfile::tempdir()?;
    let run = |file: &str| {
        let run = Command::new(AIRTCP)
            .current_dir(root)
            .args(["lab", "run", file, "--seeds", "2", "--out"])
            .arg(dir.path())
            .output();
        run.map(|output| (output.status.code(), text(&output.stdout), text(&output.stderr)))
    };
    let (code, table, said) = run("examples/lab.toml")?;
    assert_eq!(code, Some(0), "{said}");
    assert!(table.starts_with("mine/loss: Reno and CUBIC"), "{table}");
    assert!(table.contains("random loss, %"), "{table}");
    let results = dir.path().join("mine/loss");
    for file in ["records.jsonl", "table.md", "loss.svg", "scenario-6.toml", "summary.json"] {
        assert!(results.join(file).exists(), "{file}");
    }
    let case = results.join("scenario-1.toml");
    let simulated =
        Command::new(AIRTCP).args(["sim", "run"]).arg(case).args(["--seed", "2"]).output()?;
    assert!(simulated.status.success(), "{}", text(&simulated.stderr));

    let example = fs::read_to_string(Path::new(root).join("examples/lab.toml"))?;
    let path = dir.path().join("wrong.toml");
    fs::write(&path, example.replace("\"timeouts\"", "\"timeout\""))?;
    let path = path.display().to_string();
    let (code, table, said) = run(&path)?;
    assert_eq!((code, table.as_str()), (Some(2), ""));
    assert!(said.contains(&format!("{path}:8:")), "{said}");
    assert!(
        said.contains("unknown measure `timeout`") && said.contains("mean `timeouts`?"),
        "{said}"
    );
    // A file of the other command is rejected with advice.
    let scenario = dir.path().join("scenario.toml").display().to_string();
    fs::write(&scenario, airtcp_sim::toml::EXAMPLE)?;
    let (code, _, said) = run(&scenario)?;
    assert_eq!(code, Some(2), "{said}");
    let advice = format!("; to run a scenario file, type airtcp sim run {scenario}\n");
    assert!(said.ends_with(&advice), "{said}");
    let mut command = Command::new(AIRTCP);
    let experiment =
        command.args(["sim", "run", "examples/lab.toml"]).current_dir(root).output()?;
    assert_eq!(experiment.status.code(), Some(2));
    let said = text(&experiment.stderr);
    let advice = "; to run an experiment file, type airtcp lab run examples/lab.toml\n";
    assert!(said.ends_with(advice), "{said}");
    let (code, _, said) = run("nosuch.toml")?;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.ends_with("or a name of `airtcp lab list`\n"), "{said}");
    Ok(())
}
