//! `airtcp lab` as a user types it: what it prints, and the exit code.

use std::path::Path;
use std::process::{Command, Output};
use std::{fs, io};

use airtcp_testbed::{TestbedError, or_skip};

const AIRTCP: &str = env!("CARGO_BIN_EXE_airtcp");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_list_names_every_experiment_with_its_source_and_its_time() -> io::Result<()> {
    let output = Command::new(AIRTCP).args(["lab", "list"]).output()?;
    assert!(output.status.success() && output.stderr.is_empty());
    let listed = text(&output.stdout);
    for experiment in airtcp_lab::EXPERIMENTS {
        assert!(listed.contains(experiment.name) && listed.contains(experiment.source));
    }
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

/// In a user namespace that allows no network namespaces, which a user can make and nobody else notices.
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
fn what_cannot_run_here_is_said_and_keeps_nothing_else_from_running() {
    let arguments = ["lab", "run", "self/packets", "self/half-duplex"];
    let Some(output) = or_skip(without_namespaces(&arguments)) else { return };
    let (said, table) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(1), "{said}");
    let reason = "NOT RUN: self/packets: no network namespaces with TUN devices here: ";
    assert!(said.lines().any(|line| line.starts_with(reason)), "{said}");
    assert_eq!(said.lines().last(), Some("error: not run: self/packets: the reason is above"));
    assert!(table.starts_with("self/half-duplex: ") && !table.contains("self/packets"), "{table}");
}

#[test]
fn an_experiment_in_a_file_is_run_and_its_mistakes_are_told_with_their_place() -> io::Result<()> {
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
    for file in ["records.jsonl", "table.md", "loss.svg"] {
        assert!(dir.path().join("mine/loss").join(file).exists(), "{file}");
    }

    let example = fs::read_to_string(Path::new(root).join("examples/lab.toml"))?;
    let path = dir.path().join("wrong.toml");
    fs::write(&path, example.replace("\"timeouts\"", "\"timeout\""))?;
    let path = path.display().to_string();
    let (code, table, said) = run(&path)?;
    assert_eq!((code, table.as_str()), (Some(1), ""));
    assert!(said.contains(&format!("{path}:8:")), "{said}");
    assert!(
        said.contains("unknown measure `timeout`") && said.contains("mean `timeouts`?"),
        "{said}"
    );
    Ok(())
}
