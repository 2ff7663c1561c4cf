//! The recommendation that `docs/compare.md` shows as JSON is the one of its command.

use std::process::Command;

use serde_json::Value;

use super::page;

#[test]
fn the_recommendation_of_compare_is_that_of_its_command() {
    let page = page("docs/compare.md");
    let (_, rest) = page.split_once("The recommendation of `airtcp ").expect("its command");
    let (command, rest) = rest.split_once('`').unwrap();
    let (_, rest) = rest.split_once("```json\n").expect("its JSON");
    let shown: Value = serde_json::from_str(rest.split_once("```").unwrap().0).unwrap();

    let mut compare = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    let output = compare.args(command.split(' ')).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["recommendation"], shown);
}
