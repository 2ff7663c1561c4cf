//! Checks that the book includes every page, and that every link between pages has a target.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::page;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the Markdown files at `path` and below it, relative to the root.
pub(crate) fn pages(path: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(path)).unwrap() {
        let name = format!("{path}/{}", entry.unwrap().file_name().into_string().unwrap());
        if root().join(&name).is_dir() {
            found.extend(pages(&name));
        } else if name.ends_with(".md") {
            found.push(name);
        }
    }
    found.sort();
    found
}

/// Returns the lines of a page outside of code blocks.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the targets of the links `[text](target)`, outside of backticks.
fn targets(line: &str) -> Vec<String> {
    let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("");
    let parts = plain.split("](").skip(1);
    parts.filter_map(|part| Some(part.split_once(')')?.0.to_owned())).collect()
}

/// Returns the anchors of a page's headings, in the form of GitHub and mdBook.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let anchor = |line: &str| -> String {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// Returns `target`, a path relative to the folder of `page`, relative to the root.
fn resolved(page: &str, target: &str) -> String {
    let mut parts = PathBuf::new();
    let folder = Path::new(page).parent().unwrap();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => assert!(parts.pop(), "{page}: {target} leads out"),
            part => parts.push(part),
        }
    }
    parts.display().to_string()
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut all = pages("docs");
    all.extend(["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned));
    let mut checked = 0;
    for name in all {
        for target in prose(&page(&name)).flat_map(targets) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { name.clone() } else { resolved(&name, file) };
            assert!(root().join(&file).exists(), "{name}: {target}: there is no {file}");
            if !anchor.is_empty() {
                assert!(
                    anchors(&page(&file)).contains(anchor),
                    "{name}: {target}: no such heading"
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn every_page_is_in_the_book_once() {
    let summary = page("docs/SUMMARY.md");
    let mut listed: Vec<_> = prose(&summary)
        .flat_map(targets)
        .map(|target| resolved("docs/SUMMARY.md", &target))
        .collect();
    listed.sort();
    let there: Vec<_> =
        pages("docs").into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, there);
}
