//! Checks that each requirement of an RFC names its test.
//!
//! The requirements are listed in `docs/rfc/`, one file for each RFC. A test names the requirements
//! that it shows in the lines above it: `Shows:` in a comment, followed by their names, such as
//! RFC9293-MUST-17. `AIRTCP_RECORD=1 cargo test --test readme rfc` writes the requirements and
//! their tests to `docs/rfc.md`. A MUST without a test and without an exception is an error.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::strategies::assert_list;

/// An RFC and its requirements.
struct List {
    /// The prefix of the requirements' names: `RFC9293`.
    name: String,
    title: String,
    requirements: Vec<Requirement>,
}

struct Requirement {
    id: String,
    level: Level,
    section: String,
    text: String,
    /// The reason why the requirement does not hold, or cannot be tested.
    except: Option<String>,
    /// A remark on how the requirement is met.
    note: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Must,
    Should,
}

/// A test and the requirements that it names.
#[derive(Debug, PartialEq, Eq)]
struct Showing {
    file: String,
    test: String,
    names: Vec<String>,
}

/// Parses a list: its title, then requirements as `ID LEVEL SECTION: TEXT`, each optionally
/// followed by indented lines: `Except: REASON`, or `Note: TEXT`.
fn read_list(name: &str, text: &str) -> Result<List, String> {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let title = lines.next().ok_or("an empty list")?.to_owned();
    let mut requirements: Vec<Requirement> = Vec::new();
    for line in lines {
        let bad = || format!("{name}: not a requirement, nor what may follow one: {line}");
        let last = requirements.last_mut();
        if let Some(reason) = line.strip_prefix("    Except: ") {
            last.ok_or_else(bad)?.except = Some(reason.to_owned());
        } else if let Some(note) = line.strip_prefix("    Note: ") {
            last.ok_or_else(bad)?.note = Some(note.to_owned());
        } else {
            let (head, text) = line.split_once(": ").ok_or_else(bad)?;
            let [id, level, section] = head.split(' ').collect::<Vec<_>>()[..] else {
                return Err(bad());
            };
            let level = match level {
                "MUST" => Level::Must,
                "SHOULD" => Level::Should,
                _ => return Err(bad()),
            };
            if requirements.iter().any(|other| other.id == id) {
                return Err(format!("{name}-{id} is listed twice"));
            }
            let (id, section, text) = (id.to_owned(), section.to_owned(), text.to_owned());
            requirements.push(Requirement { id, level, section, text, except: None, note: None });
        }
    }
    Ok(List { name: name.to_owned(), title, requirements })
}

/// Parses the requirements that the tests of a file name.
fn read_showings(file: &str, text: &str) -> Result<Vec<Showing>, String> {
    let (mut showings, mut names, mut is_test) = (Vec::new(), Vec::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(shown) = line.strip_prefix("// Shows: ") {
            names.extend(shown.split(", ").map(str::to_owned));
        } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if !line.starts_with("//") && !line.starts_with("#[") {
            let function = line.trim_start_matches("async ").strip_prefix("fn ");
            let function = function.and_then(|rest| rest.split(['(', '<']).next());
            match function.filter(|_| is_test) {
                _ if names.is_empty() => {}
                Some(test) => showings.push(Showing {
                    file: file.to_owned(),
                    test: test.to_owned(),
                    names: std::mem::take(&mut names),
                }),
                None => return Err(format!("{file}: `Shows:` with no test below it: {names:?}")),
            }
            is_test = false;
        }
    }
    Ok(showings)
}

/// The tests of each requirement, by the requirement's name.
type Shown<'a> = BTreeMap<&'a str, Vec<&'a Showing>>;

fn by_name(showings: &[Showing]) -> Shown<'_> {
    let mut shown = Shown::new();
    for showing in showings {
        for name in &showing.names {
            shown.entry(name).or_default().push(showing);
        }
    }
    shown
}

/// Returns all errors.
fn faults(lists: &[List], shown: &Shown<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut unknown = shown.clone();
    for list in lists {
        for requirement in &list.requirements {
            let name = format!("{}-{}", list.name, requirement.id);
            let is_shown = unknown.remove(&name[..]).is_some();
            match &requirement.except {
                Some(reason) if is_shown => {
                    faults.push(format!("{name} is shown, and yet an exception: {reason}"));
                }
                None if !is_shown && requirement.level == Level::Must => {
                    faults.push(format!("{name} has no test and no reason: {}", requirement.text));
                }
                _ => {}
            }
        }
    }
    for (name, tests) in unknown {
        let Showing { file, test, .. } = tests[0];
        faults.push(format!("{file}: {test} shows {name}, which no list in docs/rfc has"));
    }
    faults
}

/// Returns the number of requirements of a level: with a test, with an exception, and with neither.
fn count(list: &List, level: Level, shown: &Shown<'_>) -> [usize; 3] {
    let mut counts = [0; 3];
    for requirement in list.requirements.iter().filter(|requirement| requirement.level == level) {
        let is_shown = shown.contains_key(&format!("{}-{}", list.name, requirement.id)[..]);
        counts[if is_shown { 0 } else { 1 + usize::from(requirement.except.is_none()) }] += 1;
    }
    counts
}

fn tables(lists: &[List], shown: &Shown<'_>) -> String {
    let mut text = "| RFC | MUST: shown | exceptions | SHOULD: shown | exceptions | not shown |\n\
                    | --- | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for list in lists {
        let [must, must_except, _] = count(list, Level::Must, shown);
        let [should, except, neither] = count(list, Level::Should, shown);
        let title = &list.title;
        writeln!(text, "| {title} | {must} | {must_except} | {should} | {except} | {neither} |")
            .unwrap();
    }
    for list in lists {
        write!(text, "\n## {}\n\n", list.title).unwrap();
        text.push_str("| | Level | Section | What | Shown by |\n| --- | --- | --- | --- | --- |\n");
        for requirement in &list.requirements {
            let Requirement { id, section, text: what, except, note, .. } = requirement;
            let level = if requirement.level == Level::Must { "MUST" } else { "SHOULD" };
            let mut cell: Vec<_> = shown
                .get(&format!("{}-{id}", list.name)[..])
                .into_iter()
                .flatten()
                .map(|Showing { file, test, .. }| format!("[{test}](../{file})"))
                .collect();
            cell.extend(except.iter().map(|reason| format!("*Exception:* {reason}")));
            if cell.is_empty() {
                cell.push("not shown".to_owned());
            }
            let note = note.iter().map(|note| format!(" *{note}*")).collect::<String>();
            let cell = cell.join(", ");
            writeln!(text, "| {id} | {level} | {section} | {what}{note} | {cell} |").unwrap();
        }
    }
    text
}

/// Returns the files with this extension below a directory, in order.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_must_of_an_rfc_has_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let lists: Vec<_> = files(&root.join("docs/rfc"), "txt")
        .iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_uppercase();
            read_list(&name, &read(path)).unwrap()
        })
        .collect();
    let code = ["crates", "tests"].into_iter().flat_map(|name| files(&root.join(name), "rs"));
    let showings: Vec<_> = code
        .flat_map(|path| {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            read_showings(name, &read(&path)).unwrap()
        })
        .collect();
    let shown = by_name(&showings);
    let faults = faults(&lists, &shown);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_list("docs/rfc.md", &tables(&lists, &shown));
}

#[test]
fn an_rfcs_list_and_the_tests_have_to_agree() {
    let list = "RFC 1: One\n\na MUST 2.1: It works.\nb MUST 2.2: It flies.\n    Except: no wings.\n\
                c SHOULD 3: It sings.\n    Note: softly.\n";
    let lists = [read_list("RFC1", list).unwrap()];
    let test = |names: &str| {
        let text = format!("    // {names}\n    /// Why.\n    #[test]\n    fn it_works() {{\n");
        read_showings("x.rs", &text)
    };
    let said = |names: &str| {
        let showings = test(names).unwrap();
        faults(&lists, &by_name(&showings))
    };
    assert_eq!(said("Nothing."), ["RFC1-a has no test and no reason: It works."]);
    assert_eq!(said("Shows: RFC1-a, RFC1-c"), [""; 0]);
    assert_eq!(
        said("Shows: RFC1-a, RFC1-b, RFC1-d"),
        [
            "RFC1-b is shown, and yet an exception: no wings.",
            "x.rs: it_works shows RFC1-d, which no list in docs/rfc has",
        ]
    );
    let no_test = format!("{} RFC1-a\nfn helper() {{\n", "// Shows:");
    assert!(read_showings("x.rs", &no_test).is_err());
    for bad in ["x\n    Except: y\n", "x\na MAY 2: It dreams.\n", "x\na MUST 1: y\na MUST 1: z\n"] {
        assert!(read_list("RFC1", bad).is_err(), "{bad}");
    }
    let showings = test("Shows: RFC1-a").unwrap();
    let tables = tables(&lists, &by_name(&showings));
    for row in [
        "| RFC 1: One | 1 | 1 | 0 | 0 | 1 |",
        "| a | MUST | 2.1 | It works. | [it_works](../x.rs) |",
        "| b | MUST | 2.2 | It flies. | *Exception:* no wings. |",
        "| c | SHOULD | 3 | It sings. *softly.* | not shown |",
    ] {
        assert!(tables.lines().any(|line| line == row), "{row}\n{tables}");
    }
}
