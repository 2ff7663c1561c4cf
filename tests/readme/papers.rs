//! Checks that the page of the papers names the experiments of the lab.

use std::collections::BTreeSet;

use airtcp_lab::EXPERIMENTS;

use crate::{page, quoted};

/// The papers' parts of experiment names: `dcr` of `dcr/fig10`.
const PAPERS: [&str; 5] = ["hack", "rrtp", "dcr", "le", "tcp-ecn"];

/// Returns whether `name` has the form of an experiment of one of the papers.
fn is_of_a_paper(name: &str) -> bool {
    name.split_once('/').is_some_and(|(paper, _)| PAPERS.contains(&paper))
}

#[test]
fn the_page_of_the_papers_names_every_experiment_of_them_and_no_other() {
    let text = page("docs/papers.md");
    let named: BTreeSet<_> = quoted(&text).filter(|quote| is_of_a_paper(quote)).collect();
    let there: BTreeSet<_> =
        EXPERIMENTS.iter().map(|e| e.name).filter(|name| is_of_a_paper(name)).collect();
    let unknown: Vec<_> = named.difference(&there).collect();
    let missing: Vec<_> = there.difference(&named).collect();
    assert!(unknown.is_empty(), "docs/papers.md names experiments that do not exist: {unknown:?}");
    assert!(missing.is_empty(), "docs/papers.md does not name {missing:?}: add a row");
}

#[test]
fn the_commands_of_the_page_of_the_papers_run_experiments() {
    let text = page("docs/papers.md");
    let commands: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("airtcp lab run ")).collect();
    assert!(!commands.is_empty(), "no command");
    for command in commands {
        let pattern = command.split_whitespace().next().unwrap().trim_matches('\'');
        assert!(airtcp_lab::select(&[pattern]).is_ok(), "{command}");
    }
}
