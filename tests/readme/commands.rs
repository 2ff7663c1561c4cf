//! Runs the commands of the README and the tutorial as printed. Commands that start with `sudo`
//! need a network of their own; `tests/tools` and `tests/link.rs` test them.

use std::process::Command;

use crate::page;

/// Returns the lines of a page's shell blocks that run airtcp without root.
fn commands(text: &str) -> Vec<&str> {
    let mut is_shell = false;
    let inside = text.lines().filter(|line| {
        if line.starts_with("```") {
            is_shell = *line == "```sh";
        }
        is_shell
    });
    inside.filter(|line| line.starts_with("target/release/airtcp ")).collect()
}

/// Runs the commands one after the other in a temporary directory.
fn run(name: &str, at_least: usize) {
    let text = page(name);
    let commands = commands(&text);
    assert!(commands.len() >= at_least, "{name}: {commands:?}");
    let directory = tempfile::tempdir().unwrap();
    for command in commands {
        let airtcp = env!("CARGO_BIN_EXE_airtcp");
        let line = command.replacen("target/release/airtcp", airtcp, 1);
        let done =
            Command::new("sh").args(["-ec", &line]).current_dir(&directory).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{name}: {command}: {said}");
    }
}

#[test]
fn the_commands_of_the_tutorial_run() {
    run("docs/tutorial.md", 9);
}

#[test]
fn the_commands_of_the_readme_run() {
    run("README.md", 4);
}
