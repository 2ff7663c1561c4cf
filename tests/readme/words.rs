//! Checks that the pages and the help do not use certain phrases that readers of RFCs do not know.

use std::fs;
use std::process::Command;

use crate::book::{pages, prose};
use crate::page;

/// A phrase and its replacement.
const AVOIDED: [(&str, &str); 20] = [
    ("laid down", "specified, fixed"),
    ("put off", "deferred, delayed"),
    ("word of", "a report of, an ACK of"),
    ("come to an end", "end"),
    ("comes to an end", "ends"),
    ("goes on with", "continues, resumes"),
    ("breaks off", "is interrupted"),
    ("anew", "again"),
    ("the begin", "the start"),
    ("lets go", "releases"),
    ("hears", "receives"),
    ("makes of", "does with"),
    ("what is due", "expired timers"),
    ("told", "notified, reported, configured"),
    ("tells", "reports, shows"),
    ("whoever", "a process, a peer, every task"),
    ("so many", "the number, or a sentence of its own"),
    ("for want of", "without, for lack of"),
    ("of which", "a sentence of its own, including, whose"),
    ("who has", "the noun"),
];

/// Returns the words of a text in lower case, each between two blanks.
fn words(text: &str) -> String {
    let words =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    format!(" {} ", words.map(str::to_lowercase).collect::<Vec<_>>().join(" "))
}

/// Returns the phrases that a text contains.
fn found(text: &str) -> Vec<String> {
    let text = words(text);
    let has = |(phrase, _): &&(&str, &str)| text.contains(&format!(" {phrase} "));
    AVOIDED
        .iter()
        .filter(has)
        .map(|(phrase, better)| format!("`{phrase}`; write: {better}"))
        .collect()
}

/// Returns the manual of a program, which contains the help of each command: names and texts.
fn manual(program: &str) -> Vec<(String, String)> {
    let directory = tempfile::tempdir().unwrap();
    let written = Command::new(program).args(["man", "--out"]).arg(directory.path()).status();
    assert!(written.unwrap().success());
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().display().to_string(), fs::read_to_string(path).unwrap())
    };
    fs::read_dir(&directory).unwrap().map(read).collect()
}

#[test]
fn the_pages_and_the_help_use_the_words_of_the_field() {
    // The pages of results quote their sources.
    let pages = pages("docs").into_iter().filter(|name| !name.starts_with("docs/results/"));
    let crates = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/crates")).unwrap();
    let crates = crates.map(|one| one.unwrap().file_name().into_string().unwrap());
    // The shared library for packetdrill has no README.
    let readmes =
        crates.filter(|name| name != "packetdrill").map(|name| format!("crates/{name}/README.md"));
    let pages = pages.chain(readmes).chain(["README.md", "SECURITY.md"].map(str::to_owned));
    let of_page = |text: &str| prose(text).collect::<Vec<_>>().join("\n");
    let mut texts: Vec<_> = pages
        .map(|name| {
            let text = of_page(&page(&name));
            (name, text)
        })
        .collect();
    let changes = page("CHANGELOG.md");
    let (_, unreleased) = changes.split_once("\n## [Unreleased]\n").unwrap();
    let unreleased = unreleased.split("\n## ").next().unwrap();
    texts.push(("CHANGELOG.md".to_owned(), of_page(unreleased)));
    for program in [env!("CARGO_BIN_EXE_airtcp"), env!("CARGO_BIN_EXE_basestation")] {
        texts.extend(manual(program));
    }
    assert!(texts.iter().any(|(name, _)| name == "airtcp-sim-run.1"), "no manual");
    let complaints: Vec<_> = texts
        .iter()
        .flat_map(|(name, text)| found(text).into_iter().map(move |what| format!("{name}: {what}")))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn a_phrase_is_found_over_the_end_of_a_line_and_as_whole_words_alone() {
    assert_eq!(found("It is Laid\ndown.").len(), 1);
    assert_eq!(found("a sword of steel, overlaid down there").len(), 0);
}
