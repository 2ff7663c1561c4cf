//! Checks the results on the strategies' pages: commands, and the tables of their output.
//!
//! `AIRTCP_RECORD=1 cargo test --release --test readme results` runs all commands and rewrites the
//! tables, which takes some minutes (four on two busy cores). Otherwise each command runs for a
//! moment, and its output must have the rows of the table.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A column of a table: its heading, and the function that formats the cell of a combination.
type Column = (&'static str, fn(&Value) -> String);

const COLUMNS: [Column; 7] = [
    ("Strategies", |row| format!("`{}`", row["combination"].as_str().unwrap())),
    ("Goodput", |row| number(&row["goodput_bits_per_second"], 1e-6, 3) + " Mbit/s"),
    ("Sent again (%)", |row| number(&row["sent_again_share"], 100.0, 2)),
    ("Spurious (%)", |row| number(&row["spurious_share"], 100.0, 2)),
    ("Time-outs", |row| number(&row["timeouts"], 1.0, 1)),
    ("RTT (ms)", |row| number(&row["rtt_seconds"], 1e3, 2)),
    ("Jain", |row| number(&row["jain"], 1.0, 4)),
];

/// Formats the mean with its interval, if there is one.
fn number(interval: &Value, factor: f64, decimals: usize) -> String {
    let of = |field: &str| interval[field].as_f64().map(|value| value * factor);
    match (of("mean"), of("half_width")) {
        (None, _) => "-".to_owned(),
        (Some(0.0), None | Some(0.0)) => "0".to_owned(),
        // A count from one run is a whole number.
        (Some(mean), None) if mean.fract() == 0.0 => format!("{mean}"),
        (Some(mean), None) => format!("{mean:.decimals$}"),
        (Some(mean), Some(half)) => format!("{mean:.decimals$} ±{half:.decimals$}"),
    }
}

/// Returns the caption above the table, which describes the run.
fn caption(report: &Value) -> String {
    let flows = match report["flows"].as_u64().unwrap() {
        1 => "one flow alone".to_owned(),
        flows => format!("{flows} flows together"),
    };
    let runs = match report["seeds"].as_u64().unwrap() {
        _ if report["is_random"] == false => "one run, as nothing is random".to_owned(),
        1 => "seed 1".to_owned(),
        seeds => format!("seeds 1 to {seeds}, means with 95 % intervals"),
    };
    format!("{} s, {flows}, {runs}:", report["seconds"].as_f64().unwrap())
}

/// A command and the position of its table.
struct Comparison {
    words: Vec<String>,
    /// The line of the caption. It is followed by an empty line, the headings, a rule and the rows.
    caption: usize,
    end: usize,
}

impl Comparison {
    fn headings<'a>(&self, lines: &[&'a str]) -> Vec<&'a str> {
        lines[self.caption + 2].trim_matches('|').split('|').map(str::trim).collect()
    }

    fn rows<'a, 'b>(&self, lines: &'b [&'a str]) -> &'b [&'a str] {
        &lines[self.caption + 4..self.end]
    }
}

fn comparisons(lines: &[&str]) -> Vec<Comparison> {
    let mut found = Vec::new();
    let mut command = None;
    for (at, line) in lines.iter().enumerate() {
        if let Some(rest) = line.strip_prefix("airtcp ").filter(|rest| rest.starts_with("compare "))
        {
            command = Some(words(rest));
        }
        if line.starts_with("| Strategies |") {
            let words = command.take().expect("a command above the table");
            let rest = lines[at..].iter().position(|line| !line.starts_with('|'));
            let end = rest.map_or(lines.len(), |rest| at + rest);
            found.push(Comparison { words, caption: at - 2, end });
        }
    }
    found
}

/// Splits a command into words; a quoted link is one word.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('"').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn run(words: &[String]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_airtcp")).args(words).arg("--json").output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "airtcp {}: {said}", words.join(" "));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the command with a short duration.
fn shortened(words: &[String]) -> Vec<String> {
    let mut short = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" | "--seeds" => drop(words.next()),
            _ => short.push(word.clone()),
        }
    }
    short.extend(["--seconds", "0.5", "--seeds", "1"].map(str::to_owned));
    short
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/strategies");
    let directories = ["detection", "control", "judge"].map(|kind| fs::read_dir(root.join(kind)));
    let entries = directories.into_iter().flat_map(|directory| directory.unwrap());
    let mut pages: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages
}

/// Returns the page with the current output of its commands. `known` caches the output of commands
/// that several pages share.
fn recorded(text: &str, known: &mut BTreeMap<Vec<String>, Value>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut page = Vec::new();
    let mut from = 0;
    for comparison in comparisons(&lines) {
        let report =
            known.entry(comparison.words.clone()).or_insert_with(|| run(&comparison.words));
        page.extend(lines[from..comparison.caption].iter().map(ToString::to_string));
        page.push(caption(report));
        page.extend(
            lines[comparison.caption + 1..comparison.caption + 4].iter().map(ToString::to_string),
        );
        let headings = comparison.headings(&lines);
        for row in report["combinations"].as_array().unwrap() {
            let cell = |heading: &&str| {
                let (_, cell) = COLUMNS.iter().find(|(name, _)| name == heading).unwrap();
                cell(row)
            };
            let cells: Vec<_> = headings.iter().map(cell).collect();
            page.push(format!("| {} |", cells.join(" | ")));
        }
        from = comparison.end;
    }
    page.extend(lines[from..].iter().map(ToString::to_string));
    page.join("\n") + "\n"
}

#[test]
fn results_of_the_pages_have_the_rows_of_their_commands() {
    let is_recording = std::env::var_os("AIRTCP_RECORD").is_some();
    let mut known = BTreeMap::new();
    let mut found = 0;
    for path in pages() {
        let text = fs::read_to_string(&path).unwrap();
        if is_recording {
            fs::write(&path, recorded(&text, &mut known)).unwrap();
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        for comparison in comparisons(&lines) {
            let report = run(&shortened(&comparison.words));
            let mut ran: Vec<_> =
                report["combinations"].as_array().unwrap().iter().map(COLUMNS[0].1).collect();
            let first = |row: &&str| row.split('|').nth(1).unwrap().trim().to_owned();
            let mut shown: Vec<_> = comparison.rows(&lines).iter().map(first).collect();
            ran.sort();
            shown.sort();
            assert_eq!(shown, ran, "{}: {}", path.display(), comparison.words.join(" "));
            for heading in comparison.headings(&lines) {
                assert!(COLUMNS.iter().any(|(name, _)| *name == heading), "{heading}");
            }
            found += 1;
        }
    }
    assert!(is_recording || found > 15, "the pages' results are gone");
}

#[test]
fn results_are_written_in_the_place_of_the_old() {
    let page = "# p\n\n```sh\nairtcp compare \"rate 1mbit\" --with a,b\n```\n\n9 s, one:\n\n\
                | Strategies | Goodput | Jain |\n| --- | ---: | ---: |\n| `a` | 1 | 2 |\n\nAfter.\n";
    let words = words("compare \"rate 1mbit\" --with a,b");
    let report = serde_json::json!({
        "seconds": 20.0, "flows": 1, "seeds": 10, "is_random": true,
        "combinations": [
            { "combination": "b", "goodput_bits_per_second": { "mean": 2e6, "half_width": 5e4 }, "jain": null },
            { "combination": "a", "goodput_bits_per_second": { "mean": 0.0, "half_width": 0.0 }, "jain": { "mean": 0.5 } },
        ],
    });
    assert_eq!(words, ["compare", "rate 1mbit", "--with", "a,b"]);
    let page = recorded(page, &mut BTreeMap::from([(words, report)]));
    let (_, after) = page.split_once("```\n\n").unwrap();
    assert_eq!(
        after,
        "20 s, one flow alone, seeds 1 to 10, means with 95 % intervals:\n\n\
         | Strategies | Goodput | Jain |\n| --- | ---: | ---: |\n\
         | `b` | 2.000 ±0.050 Mbit/s | - |\n| `a` | 0 Mbit/s | 0.5000 |\n\nAfter.\n"
    );
}
