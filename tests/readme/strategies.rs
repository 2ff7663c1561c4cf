//! Checks the list of strategies in the README, and that each strategy has a page.
//!
//! `AIRTCP_RECORD=1 cargo test --test readme` rewrites both lists from the registry and the pages'
//! headings.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use airtcp_recovery::registry::{Entry, controls, detections, judges};

use crate::{page, quoted};

const INDEX: &str = "docs/strategies/README.md";
const BEGIN: &str = "<!-- written by AIRTCP_RECORD=1 cargo test --test readme -->\n";
const END: &str = "<!-- up to here -->\n";

/// A kind of strategy.
struct Kind {
    /// The directory of the pages.
    directory: &'static str,
    question: &'static str,
    strategies: Vec<Strategy>,
}

struct Strategy {
    name: &'static str,
    parameter: &'static str,
    summary: &'static str,
    source: &'static str,
}

fn strategies<T: ?Sized>(entries: &[&Entry<T>]) -> Vec<Strategy> {
    let strategy = |entry: &&Entry<T>| Strategy {
        name: entry.name,
        parameter: entry.parameter,
        summary: entry.summary,
        source: entry.source,
    };
    entries.iter().map(strategy).collect()
}

fn kinds() -> [Kind; 3] {
    let kind = |directory, question, strategies| Kind { directory, question, strategies };
    [
        kind("detection", "What is lost?", strategies(detections())),
        kind("control", "How much is sent?", strategies(controls())),
        kind("judge", "What does a loss mean?", strategies(judges())),
    ]
}

/// Returns the pages of a kind, relative to the root, and the names in their headings.
fn pages(kind: &Kind) -> Vec<(PathBuf, Vec<String>)> {
    let directory = Path::new("docs/strategies").join(kind.directory);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = fs::read_dir(root.join(&directory))
        .unwrap()
        .map(|entry| directory.join(entry.unwrap().file_name()))
        .collect();
    files.sort();
    let names = |file: &PathBuf| {
        let text = page(file.to_str().unwrap());
        let (heading, _) = text.split_once(": ").unwrap();
        quoted(heading).map(str::to_owned).collect()
    };
    files.into_iter().map(|file| (file.clone(), names(&file))).collect()
}

/// Calls `row` for each strategy, in the registry's order, with the link to its page, relative to
/// `directory`.
fn rows(directory: &str, mut row: impl FnMut(&Kind, &Strategy, &str)) {
    for kind in kinds() {
        let pages = pages(&kind);
        for strategy in &kind.strategies {
            let of = |(_, names): &&(PathBuf, Vec<String>)| {
                names.iter().any(|name| name == strategy.name)
            };
            let (file, _) = pages.iter().find(of).unwrap_or_else(|| {
                panic!("`{}` has no page in docs/strategies/{}", strategy.name, kind.directory)
            });
            let file = file.strip_prefix(directory).unwrap_or(file).display();
            let link = format!("[`{}{}`]({file})", strategy.name, strategy.parameter);
            row(&kind, strategy, &link);
        }
    }
}

fn readme_list() -> String {
    let mut answers: Vec<(&str, Vec<String>)> = Vec::new();
    rows("", |kind, _, link| match answers.last_mut() {
        Some((question, links)) if *question == kind.question => links.push(link.to_owned()),
        _ => answers.push((kind.question, vec![link.to_owned()])),
    });
    let mut list = "| Question | Strategies |\n| --- | --- |\n".to_owned();
    for (question, links) in answers {
        writeln!(list, "| {question} | {} |", links.join(", ")).unwrap();
    }
    list
}

fn index() -> String {
    let mut list =
        "| Name | Question | In a line | Source |\n| --- | --- | --- | --- |\n".to_owned();
    rows("docs/strategies", |kind, strategy, link| {
        let Strategy { summary, source, .. } = strategy;
        writeln!(list, "| {link} | {} | {summary} | {source} |", kind.question).unwrap();
    });
    list
}

/// Asserts that the file contains `list` between the marks. With `AIRTCP_RECORD`, writes it there
/// instead.
#[track_caller]
pub(crate) fn assert_list(file: &str, list: &str) {
    let text = page(file);
    let (before, rest) = text.split_once(BEGIN).expect("a mark where the list begins");
    let (found, after) = rest.split_once(END).expect("a mark where the list ends");
    if std::env::var_os("AIRTCP_RECORD").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        fs::write(path, [before, BEGIN, list, END, after].concat()).unwrap();
        return;
    }
    assert_eq!(found, list, "{file} is behind: AIRTCP_RECORD=1 cargo test --test readme writes it");
}

#[test]
fn the_lists_of_strategies_are_the_registry() {
    assert_list("README.md", &readme_list());
    assert_list(INDEX, &index());
}

#[test]
fn every_strategy_has_one_page_and_every_page_its_strategies() {
    for kind in kinds() {
        let pages = pages(&kind);
        assert!(pages.iter().all(|(_, names)| !names.is_empty()));
        let mut headings: Vec<_> = pages.into_iter().flat_map(|(_, names)| names).collect();
        // A variant that a parameter selects can be on the page of its strategy.
        let mut known: Vec<_> = kind.strategies.iter().map(|s| s.name.to_owned()).collect();
        headings.retain(|name| {
            let plain = name.split(':').next().unwrap_or_default();
            known.contains(name) || !kind.strategies.iter().any(|s| s.name == plain)
        });
        headings.sort();
        known.sort();
        assert_eq!(headings, known, "headings of docs/strategies/{}", kind.directory);
    }
}

#[test]
fn every_page_has_the_same_parts() {
    let parts = [
        "What it does",
        "When it helps",
        "When it hurts",
        "Parameters",
        "In a trace",
        "Try it",
        "Source and deviations",
    ];
    let mut files = vec!["docs/strategies/prr.md".to_owned()];
    for kind in kinds() {
        files.extend(pages(&kind).iter().map(|(file, _)| file.display().to_string()));
    }
    for file in files {
        let text = page(&file);
        let found: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(found, parts, "{file}");
        assert!(text.contains("seed"), "{file} has no result");
    }
}
