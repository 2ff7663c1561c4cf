//! Parses scenario files from arbitrary text.

use airtcp_sim::SimError;
use airtcp_sim::toml::Source;

/// Checks that the text is parsed or that the error has a position. Returns whether it was parsed.
pub(crate) fn run(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let source = Source { name: "fuzzed", text, settings: &[] };
    match source.read(|name| Err(format!("no trace {name}"))) {
        Ok(_) => true,
        Err(SimError::File { place, what }) => {
            assert!(place.starts_with("fuzzed") && !what.is_empty(), "{place}: {what}");
            false
        }
        Err(other) => panic!("no place in the file: {other}"),
    }
}
