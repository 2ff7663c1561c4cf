//! `airtcp names`: lists the strategies with summary and source, and the named links.

use std::fmt::Write;

use airtcp_link::named::{LINKS, NamedLink};
use airtcp_recovery::Combination;
use airtcp_recovery::registry::{Entry, controls, detections, judges};
use serde::Serialize;

use crate::args::NamesArgs;
use crate::output;
use crate::table::wrapped;

/// Prints the strategies and links.
///
/// # Errors
/// Those of printing.
pub(crate) fn run(args: &NamesArgs) -> anyhow::Result<()> {
    let names = Names::new();
    if args.json {
        output::print_json(&names)?;
    } else {
        output::print(names.to_text().trim_end())?;
    }
    Ok(())
}

/// All strategies, by kind, and the links.
#[derive(Serialize)]
struct Names {
    default: String,
    detection: Vec<Name>,
    congestion: Vec<Name>,
    judge: Vec<Name>,
    links: Vec<Link>,
}

/// A named link, with both directions in words.
#[derive(Serialize)]
struct Link {
    name: &'static str,
    down: &'static str,
    up: &'static str,
    source: &'static str,
}

#[derive(Clone, Serialize)]
struct Name {
    name: &'static str,
    /// The parameter that may follow the name, as `:N`.
    parameter: &'static str,
    summary: &'static str,
    source: &'static str,
}

impl Names {
    fn new() -> Self {
        Self {
            default: Combination::default().to_string(),
            detection: list(detections()),
            congestion: list(controls()),
            judge: list(judges()),
            links: LINKS
                .iter()
                .map(|&NamedLink { name, down, up, source }| Link { name, down, up, source })
                .collect(),
        }
    }

    fn to_text(&self) -> String {
        let kinds = [
            ("detection", &self.detection),
            ("congestion", &self.congestion),
            ("judge", &self.judge),
        ];
        let names = || kinds.iter().flat_map(|(_, names)| names.iter());
        let width = names().map(|n| n.name.len() + n.parameter.len()).max().unwrap_or(0);
        let line =
            |name: String, text: String| wrapped(&format!("  {name:width$}  {text}"), width + 4);
        let mut text = String::new();
        for (kind, names) in kinds {
            let _ = writeln!(text, "{kind} (--{kind} NAME)");
            for name in names {
                let Name { name, parameter, summary, source } = name;
                let about = format!("{summary} ({source})");
                let _ = writeln!(text, "{}", line(format!("{name}{parameter}"), about));
            }
            if names.is_empty() {
                text.push_str("  none yet\n");
            }
            text.push('\n');
        }
        text.push_str("named links (`airtcp link --help` and docs/links.md explain them)\n");
        for link in &self.links {
            let _ = writeln!(text, "{}", line(link.name.to_owned(), link.source.to_owned()));
        }
        let _ = writeln!(text, "\ndefault: {}", self.default);
        text
    }
}

fn list<T: ?Sized>(entries: &[&Entry<T>]) -> Vec<Name> {
    let name = |entry: &&Entry<T>| Name {
        name: entry.name,
        parameter: entry.parameter,
        summary: entry.summary,
        source: entry.source,
    };
    entries.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_line_with_its_source() {
        let text = Names::new().to_text();
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        // Undo the line breaks.
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for Name { name, parameter, summary, source } in
            [list(detections()), list(controls()), list(judges())].concat()
        {
            assert!(words.contains(&format!("{name}{parameter} {summary} ({source})")), "{text}");
        }
        for link in LINKS {
            assert!(text.lines().any(|line| line.trim_start().starts_with(link.name)), "{text}");
        }
        assert!(text.ends_with("default: rack/bbr3/spike\n"));
    }
}
