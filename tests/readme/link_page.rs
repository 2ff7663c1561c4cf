//! Checks the lists of link parts and named links on their page.
//!
//! `AIRTCP_RECORD=1 cargo test --test readme` rewrites the lists.

use std::fmt::Write as _;

use airtcp_link::named::LINKS;
use airtcp_link::radio;
use airtcp_link::spec::{PARTS, Part};

use crate::strategies::assert_list;

/// Returns a table with a row for each part.
fn rows(parts: &[Part]) -> String {
    let mut rows = "| Words | Meaning | Example |\n| --- | --- | --- |\n".to_owned();
    for part in parts {
        // A vertical bar would end the cell.
        let words = part.words.replace('|', "\\|");
        writeln!(rows, "| `{words}` | {} | `{}` |", part.meaning, part.example).unwrap();
    }
    rows
}

#[test]
fn the_base_station_page_has_every_word_of_a_radio() {
    assert_list("docs/basestation.md", &rows(radio::PARTS));
}

#[test]
fn the_lists_of_the_page_are_what_the_emulator_knows() {
    let mut list = format!("## Words\n\n{}", rows(PARTS));
    list.push_str(
        "\n## Links by name\n\n| Name | Down, to the user | Up | Where the numbers are from |\n",
    );
    list.push_str("| --- | --- | --- | --- |\n");
    for link in LINKS {
        let up =
            if link.up == link.down { "the same".to_owned() } else { format!("`{}`", link.up) };
        writeln!(list, "| `{}` | `{}` | {up} | {} |", link.name, link.down, link.source).unwrap();
    }
    assert_list("docs/links.md", &list);
}
