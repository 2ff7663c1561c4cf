//! What the pages tell the reader to type is understood.

use std::fs;
use std::path::{Path, PathBuf};

use crate::args::parse;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Markdown file below a directory, and its text.
fn below(directory: &Path, pages: &mut Vec<(PathBuf, String)>) {
    let mut entries: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            below(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).unwrap();
            pages.push((path, text));
        }
    }
}

/// The commands of ours that stand in a shell's blocks of code, up to a comment, a pipe or a redirection.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code && line == "```sh";
        } else if in_code {
            let mut words = words(line);
            if words.first().is_some_and(|word| word == "sudo") {
                words.remove(0);
            }
            if words.first().is_some_and(|word| word == "airtcp" || word.ends_with("/airtcp")) {
                found.push(words);
            }
        }
    }
    found
}

/// The words of a line, as a shell reads them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None if word.is_none() && "#|>;&".contains(c) => break,
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn every_command_is_understood() {
    let mut pages = Vec::new();
    below(&root().join("docs"), &mut pages);
    let readme = root().join("README.md");
    let text = fs::read_to_string(&readme).unwrap();
    pages.push((readme, text));
    let mut compared = 0;
    for (page, text) in pages {
        for command in commands(&text) {
            // Whether there is such a directory to serve is another matter.
            if command.iter().any(|word| word == "serve") {
                continue;
            }
            if let Err(refusal) = parse(&command) {
                panic!("{}: {}: {}", page.display(), command.join(" "), refusal.text);
            }
            compared += usize::from(command.iter().any(|word| word == "compare"));
        }
    }
    assert!(compared > 10, "the pages' comparisons are gone");
}

#[test]
fn a_line_is_read_as_a_shell_does() {
    let read = words(r#"  sudo target/airtcp link "rate 1mbit" --set a='b c' '' x # why | not"#);
    assert_eq!(read, ["sudo", "target/airtcp", "link", "rate 1mbit", "--set", "a=b c", "", "x"]);
    assert_eq!(words("airtcp sim init > a.toml"), ["airtcp", "sim", "init"]);
    let page = "airtcp nonsense\n```sh\nls\nsudo airtcp names\n```\nairtcp nonsense\n";
    assert_eq!(commands(page), [["airtcp", "names"]]);
}
