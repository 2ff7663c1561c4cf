//! `airtcp names`: every strategy, its summary and where it is specified.

use std::fmt::Write;

use airtcp_recovery::Combination;
use airtcp_recovery::registry::{CONTROLS, DETECTIONS, Entry, JUDGES};
use serde::Serialize;

use crate::args::NamesArgs;
use crate::output;

/// Prints the registry.
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

/// The registry, by kind.
#[derive(Serialize)]
struct Names {
    default: String,
    recovery: Vec<Name>,
    congestion: Vec<Name>,
    judge: Vec<Name>,
}

#[derive(Serialize)]
struct Name {
    name: &'static str,
    /// What may follow the name, as `:N`.
    parameter: &'static str,
    summary: &'static str,
    source: &'static str,
}

impl Names {
    fn new() -> Self {
        Self {
            default: Combination::default().to_string(),
            recovery: list(DETECTIONS),
            congestion: list(CONTROLS),
            judge: list(JUDGES),
        }
    }

    fn to_text(&self) -> String {
        let kinds = [
            ("recovery", &self.recovery),
            ("congestion", &self.congestion),
            ("judge", &self.judge),
        ];
        let names = || kinds.iter().flat_map(|(_, names)| names.iter());
        let width = names().map(|n| n.name.len() + n.parameter.len()).max().unwrap_or(0);
        let summary_width = names().map(|n| n.summary.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (kind, names) in kinds {
            let _ = writeln!(text, "{kind} (--{kind} NAME)");
            for name in names {
                let _ = writeln!(
                    text,
                    "  {:width$}  {:summary_width$}  {}",
                    format!("{}{}", name.name, name.parameter),
                    name.summary,
                    name.source
                );
            }
            if names.is_empty() {
                text.push_str("  none yet\n");
            }
            text.push('\n');
        }
        let _ = writeln!(text, "default: {}", self.default);
        text
    }
}

fn list<T: ?Sized>(entries: &[Entry<T>]) -> Vec<Name> {
    let name = |entry: &Entry<T>| Name {
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
        for entry in DETECTIONS {
            assert!(
                text.lines().any(|line| line.trim_start().starts_with(entry.name)
                    && line.ends_with(entry.source)),
                "{text}"
            );
        }
        for entry in CONTROLS {
            assert!(text.contains(entry.source));
        }
        assert!(text.ends_with("default: rack/cubic\n"));
    }
}
