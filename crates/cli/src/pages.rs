//! Checks that the pages name commands and metrics that exist.

use std::fs;
use std::path::{Path, PathBuf};

use crate::args::parse;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Collects every Markdown file below a directory, with its text.
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

/// Returns the commands of this project in the `sh` code blocks of a page, each up to a comment, a
/// pipe or a redirection.
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

/// Splits a line into words as a shell does.
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
            // The served directory need not exist.
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

/// Returns the rows of a table of metrics: name, kind and meaning, as exported.
fn rows(exported: &str) -> Vec<String> {
    let fields = |line: &str, what: &str| {
        let (name, rest) = line.strip_prefix(what)?.split_once(' ')?;
        Some((name.to_owned(), rest.to_owned()))
    };
    let helps = exported.lines().filter_map(|line| fields(line, "# HELP "));
    let kinds = exported.lines().filter_map(|line| fields(line, "# TYPE "));
    let row = |((name, help), (_, kind)): ((String, String), (String, String))| {
        let ending = match kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        format!("| `{name}{ending}` | {kind} | {help} |")
    };
    helps.zip(kinds).map(row).collect()
}

#[test]
fn the_page_of_metrics_has_every_metric_with_its_meaning() {
    let [station, bridge] = crate::station::exported();
    let exported = [
        ("Stack", vec![crate::serve::exported()]),
        ("Gateway", vec![crate::gateway::exported()]),
        ("Base station", vec![station, bridge]),
    ];
    let path = root().join("docs/metrics.md");
    let mut page = fs::read_to_string(&path).unwrap();
    for (section, texts) in exported {
        let mut table: Vec<_> = texts.iter().flat_map(|text| rows(text)).collect();
        let mut known = std::collections::BTreeSet::new();
        table.retain(|row| known.insert(row.clone()));
        assert!(
            table.len() > 10 && !table.iter().any(|row| row.contains("A counter of ctl status"))
        );
        let heading = format!("\n## {section}\n");
        let begin = page.find(&heading).expect("the section") + heading.len();
        let end = page[begin..].find("\n## ").map_or(page.len(), |end| begin + end);
        let start = begin + page[begin..end].find("| --- | --- | --- |\n").expect("a table") + 20;
        let there: Vec<_> = page[start..end].lines().filter(|line| !line.is_empty()).collect();
        if there == table {
            continue;
        }
        assert!(
            std::env::var_os("AIRTCP_RECORD").is_some(),
            "docs/metrics.md, {section}: AIRTCP_RECORD=1 cargo test -p airtcp-cli pages"
        );
        page.replace_range(start..end, &(table.join("\n") + "\n"));
        fs::write(&path, &page).unwrap();
    }
}
