//! Pictures of the pages that are made from results.
//!
//! `AIRTCP_RECORD=1 cargo test --test readme picture` draws them again.

use std::fs;
use std::path::Path;
use std::process::Command;

use airtcp_lab::Results;
use airtcp_trace::figure::{Axis, Figure, Point, Scale, Series, Style};

use super::page;

/// README's picture, and the pages that show it.
const GOODPUT: &str = "docs/goodput.svg";
const PAGES: [(&str, &str); 2] =
    [("README.md", "](docs/goodput.svg)"), ("docs/introduction.md", "](goodput.svg)")];
/// The experiment with its figures, and the names of its senders in the picture.
const EXPERIMENT: &str = "senders/goodput";
const SENDERS: [(&str, &str); 4] = [
    ("rack/bbr3/spike", "airtcp, the default"),
    ("Linux bbr", "Linux bbr"),
    ("Linux cubic", "Linux cubic"),
    ("Linux reno", "Linux reno"),
];

/// The picture of `docs/compare.md`.
const COMPARE: &str = "docs/compare.svg";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn is_recording() -> bool {
    std::env::var_os("AIRTCP_RECORD").is_some()
}

/// Parses a mean with its interval, such as `91.74 ± 0.65`.
fn point(loss: &str, cell: &str) -> Point {
    let x = loss.trim_end_matches(" %").parse().expect(loss);
    let (mean, half) = cell.split_once(" ± ").expect(cell);
    let [y, half]: [f64; 2] = [mean, half].map(|number| number.parse().expect(cell));
    Point { x, y, low: Some(y - half), high: Some(y + half) }
}

/// Draws goodput over loss from the recorded table.
fn goodput() -> String {
    let results = Results::read(&[root().join("docs/results")]).unwrap();
    let table = &results.get(EXPERIMENT).expect(EXPERIMENT).table;
    let line = |(sender, name): (&str, &str)| {
        let row = table.rows().iter().find(|row| row[0] == sender).expect(sender);
        let points = table.columns().iter().zip(row).skip(1);
        Series {
            name: name.to_owned(),
            points: points.map(|(loss, cell)| point(loss, cell)).collect(),
            style: Style::LineAndMarks,
        }
    };
    let axis = |label: &str, range| Axis {
        label: label.to_owned(),
        scale: Scale::Linear,
        range: Some(range),
    };
    let figure = Figure {
        title: "One flow over 100 Mbit/s with random loss".to_owned(),
        x: axis("lost packets, %", (0.0, 10.2)),
        y: axis("goodput, Mbit/s (more is better)", (0.0, 100.0)),
        series: SENDERS.map(line).to_vec(),
    };
    figure.to_svg()
}

#[test]
fn the_picture_of_the_readme_has_the_recorded_results() {
    let (path, drawn) = (root().join(GOODPUT), goodput());
    if is_recording() {
        fs::write(&path, &drawn).unwrap();
    }
    let hint = "AIRTCP_RECORD=1 cargo test --test readme picture";
    assert!(fs::read_to_string(path).unwrap() == drawn, "{GOODPUT} is behind: {hint} draws it");
    for (name, target) in PAGES {
        assert!(page(name).contains(target), "{name} has no picture {target}");
    }
}

/// Returns the words of the command of `docs/compare.md` that makes its picture.
fn command() -> Vec<String> {
    let page = page("docs/compare.md");
    let (before, _) = page.split_once("](compare.svg)").expect("the picture");
    let line = before.lines().rfind(|line| line.starts_with("airtcp compare ")).expect("a command");
    let (command, _) = line.split_once(" --picture compare.svg").expect("--picture compare.svg");
    command.split(' ').skip(1).map(str::to_owned).collect()
}

#[test]
fn the_picture_of_compare_is_that_of_its_command() {
    let (path, words) = (root().join(COMPARE), command());
    if is_recording() {
        let mut compare = Command::new(env!("CARGO_BIN_EXE_airtcp"));
        let output = compare.args(&words).arg("--picture").arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let svg = fs::read_to_string(path).unwrap();
    let with = words.iter().position(|word| word == "--with").expect("--with") + 1;
    for sender in words[with].split(',') {
        assert!(svg.contains(&format!("\n{sender}\n")), "{COMPARE} has no row `{sender}`");
    }
    for axis in ["goodput (", "mean RTT ", "more is better", "less is better"] {
        assert!(svg.contains(axis), "{COMPARE} has no `{axis}`");
    }
}
