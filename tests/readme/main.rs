//! Checks that the README and the pages describe what the code does.

mod bbr3;
mod book;
mod capabilities;
mod commands;
mod compare;
mod gateways;
mod hosts;
mod link_page;
mod links;
mod papers;
mod picture;
mod results;
mod rfc;
mod sockets;
mod strategies;
mod words;
mod worlds;

use std::fs;
use std::path::Path;

use airtcp_recovery::{Combination, Profile, RtoForm};
use capabilities::{Row, is_there};

fn page(name: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    assert!(!text.contains("\n<<<<<<< ") && !text.contains("\n>>>>>>> "), "{name}: half a merge");
    text
}

/// Returns the texts between backticks, line by line.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

fn table(page: &str) -> Vec<Row<'_>> {
    let lines = page.lines().skip_while(|line| *line != "| What | There |").skip(2);
    lines
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let ["", what, there, ""] = cells[..] else { panic!("not two cells: {line}") };
            let there = match there {
                "yes" => true,
                "no" => false,
                other => panic!("neither yes nor no but `{other}`: {line}"),
            };
            Row { what, names: quoted(what).collect(), there }
        })
        .collect()
}

#[test]
fn every_row_of_the_table_is_what_the_code_says() {
    let capabilities = page("docs/capabilities.md");
    let rows = table(&capabilities);
    assert!(rows.len() > 20, "the table is gone");
    for row in &rows {
        assert_eq!(is_there(row), row.there, "{}", row.what);
    }
}

#[test]
fn the_readme_is_short_and_names_the_default() {
    let readme = page("README.md");
    assert!(readme.contains(&format!("`{}`", Combination::default())));
    assert!(readme.lines().count() <= 150, "{} lines", readme.lines().count());
}

#[test]
fn the_commands_to_copy_are_the_two_that_are_announced() {
    let readme = page("README.md");
    let commands: Vec<_> = readme
        .lines()
        .map(|line| line.trim_start().trim_start_matches("$ "))
        .filter(|line| line.starts_with("cargo "))
        .collect();
    assert_eq!(commands, ["cargo run --release -- demo", "cargo test --workspace"]);
    let manifest = page("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.unwrap().trim_matches('"');
    assert!(readme.contains(&format!("Rust {version}")), "{version}");
}

#[test]
fn every_file_that_is_named_is_there() {
    for name in [
        "README.md",
        "SECURITY.md",
        "docs/architecture.md",
        "docs/basestation.md",
        "docs/cut-a-link.md",
        "docs/deviations.md",
        "docs/experiment-files.md",
        "docs/lab.md",
        "docs/links.md",
        "docs/performance.md",
        "docs/profiles.md",
        "docs/repeat-experiments.md",
        "docs/rfc.md",
        "docs/rrtp.md",
        "docs/scenarios.md",
        "docs/security.md",
        "docs/simulate.md",
        "docs/strategies/README.md",
        "docs/sweep-in-rust.md",
        "docs/sweep-on-a-cluster.md",
        "docs/sweeps.md",
        "docs/test-a-program.md",
        "docs/tools.md",
        "docs/trace.md",
        "docs/watch.md",
        "docs/write-a-control.md",
        "docs/write-a-detection.md",
        "docs/write-your-own-strategy.md",
    ] {
        let text = page(name);
        let files = quoted(&text)
            .filter(|quote| quote.contains('/') && !quote.contains(' '))
            .filter(|quote| [".md", ".rs", "/run", "/"].iter().any(|end| quote.ends_with(end)));
        for file in files {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            assert!(root.join(file).exists(), "{name} names {file}");
        }
    }
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"] {
        assert!(!page(file).is_empty());
    }
}

#[test]
fn the_page_of_the_lab_lists_every_experiment() {
    let text = page("docs/lab.md");
    let (_, list) = text.split_once("\n## The experiments\n").unwrap();
    let (list, _) = list.split_once("\n## ").unwrap();
    let listed: Vec<_> = list.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |e: &airtcp_lab::Experiment| format!("| `{}` | {} |", e.name, e.what);
    assert_eq!(listed, airtcp_lab::EXPERIMENTS.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn the_page_of_profiles_has_their_values() {
    let text = page("docs/profiles.md");
    let row = |first: &str, of: fn(&Profile) -> String| {
        let values: Vec<_> = Profile::all().iter().map(of).collect();
        format!("| {first} | {} |", values.join(" | "))
    };
    fn yes(is_so: bool) -> String {
        if is_so { "yes" } else { "no" }.to_owned()
    }
    let mut rows: Vec<_> =
        Profile::all().iter().map(|p| format!("| `{}` | {} |", p.name, p.summary)).collect();
    rows.extend([
        row("", |p| format!("`{}`", p.name)).replacen("|  |", "| |", 1),
        row("Initial window (segments)", |p| p.initial_window.to_string()),
        row("Segments counted for an ACK in slow start", |p| p.byte_counting_limit.to_string()),
        row("Limited transmit", |p| yes(p.limited_transmit)),
        row("Reduced windows are whole segments", |p| yes(p.whole_segments)),
        row("Least RTO", |p| match p.rto {
            RtoForm::Linux { floor } => format!("RTT + {floor:?}").replace("ms", " ms"),
            RtoForm::Rfc { floor } | RtoForm::Linux22 { floor } => {
                format!("{floor:?}").replace("ms", " ms").replace("1s", "1 s")
            }
        }),
        row("Every partial ACK restarts the timer", |p| yes(p.patient)),
        row("`sack` is", |p| format!("`{}`", p.sack.map_or("sack", |entry| entry.name))),
        row("Delayed ACKs", |p| yes(p.delayed_acks)),
    ]);
    let together = "HyStart++, PRR, undo, F-RTO, tail loss probe, idle restart, window validation";
    rows.push(row(together, |p| {
        let all = [
            p.hystart,
            p.proportional_rate_reduction,
            p.undo,
            p.f_rto,
            p.tail_loss_probe,
            p.idle_restart,
            p.window_validation,
        ];
        assert!(all.iter().all(|is_on| *is_on == all[0]), "{p}");
        yes(all[0])
    }));
    for row in rows {
        assert!(text.lines().any(|line| line == row), "not in docs/profiles.md: {row}");
    }
}

#[test]
fn the_crates_of_the_architecture_page_are_the_crates() {
    let text = page("docs/architecture.md");
    let (_, table) = text.split_once("```text\n").unwrap();
    let (table, _) = table.split_once("```").unwrap();
    // The last row is not a crate in the directory.
    let rows = table.lines().filter(|line| !line.starts_with("  programs"));
    let mut named: Vec<_> =
        rows.filter_map(|row| row.get(13..)?.split_whitespace().next()).collect();
    let crates = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates")).unwrap();
    let mut crates: Vec<_> =
        crates.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    named.sort_unstable();
    crates.sort_unstable();
    assert_eq!(named, crates);
}

#[test]
fn the_pages_on_strategies_show_the_files_of_their_example() {
    let pages =
        ["write-your-own-strategy", "write-a-detection", "write-a-control", "test-a-strategy"];
    let text: String = pages.iter().map(|name| page(&format!("docs/{name}.md"))).collect();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/outside");
    let sources = fs::read_dir(example.join("src")).unwrap();
    let sources = sources.map(|file| format!("src/{}", file.unwrap().file_name().display()));
    let files: Vec<_> = sources.chain(["Cargo.toml".to_owned()]).collect();
    for file in &files {
        let language = if file.ends_with(".rs") { "rust" } else { "toml" };
        let content = page(&format!("examples/outside/{file}"));
        let block = format!("`examples/outside/{file}`:\n\n```{language}\n{content}```\n");
        assert!(text.contains(&block), "{file} is not on a page as it is");
    }
    let blocks = text.matches("```rust\n").count() + text.matches("```toml\n").count();
    assert_eq!(blocks, files.len(), "a block that no file has");
}

#[test]
fn an_own_strategy_on_a_connection_is_short() {
    assert!(page("examples/own_strategy.rs").lines().count() < 60);
}

#[test]
fn the_page_of_experiment_files_has_the_example_as_it_is() {
    let example = page("examples/lab.toml");
    assert!(page("docs/experiment-files.md").contains(&format!("```toml\n{example}```\n")));
}

#[test]
fn the_page_of_sweeps_has_the_examples_as_they_are() {
    for (name, file, language) in [
        ("docs/sweeps.md", "examples/sweep.toml", "toml"),
        ("docs/sweep-in-rust.md", "examples/sweep.rs", "rust"),
    ] {
        let example = page(file);
        assert!(page(name).contains(&format!("```{language}\n{example}```\n")), "{file}");
    }
}

#[test]
fn the_page_on_testing_a_program_has_the_tests_as_they_are() {
    for (name, test) in [
        ("docs/test-a-program.md", "tests/lossy_link.rs"),
        ("docs/cut-a-link.md", "tests/cut_link.rs"),
    ] {
        let (text, example) = (page(name), page(test));
        assert!(text.contains(&format!("```rust\n{example}```\n")), "{test}");
    }
}

#[test]
fn the_page_on_intercepting_shows_parts_of_the_example_as_they_are() {
    let (text, example) = (page("docs/intercept.md"), page("examples/intercept.rs"));
    let blocks: Vec<_> = text.split("```rust\n").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let (code, _) = block.split_once("```").unwrap();
        assert!(example.contains(code), "{code}");
    }
}

#[test]
fn the_pages_of_results_are_those_of_their_data() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/results");
    let results = airtcp_lab::Results::read(&[&dir]).unwrap();
    for (name, text) in results.pages() {
        assert_eq!(page(&format!("docs/results/{name}")), text, "{name}");
    }
    for summary in results.summaries() {
        let name = &summary.experiment;
        assert!(airtcp_lab::select(&[name]).is_ok(), "{name}: no experiment");
        assert!(summary.command.starts_with(&format!("airtcp lab run {name}")), "{name}");
    }
}
