//! Checks that the page of `bbr3`'s test cases names the tests, in the order of their sources.

use crate::{page, quoted};

const SOURCES: [&str; 4] = ["draft.rs", "draft_paths.rs", "quiche.rs", "quiche_flows.rs"];

#[test]
fn the_page_of_the_test_cases_of_bbr3_has_a_row_for_each_test() {
    let text = page("docs/strategies/bbr3-tests.md");
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let named: Vec<_> = rows
        .filter_map(|row| quoted(row.split('|').nth(2).expect("a second cell")).next())
        .collect();
    let sources = SOURCES.map(|source| page(&format!("tests/sim/bbr3/{source}")));
    let there: Vec<_> = sources
        .iter()
        .flat_map(|source| source.split("#[test]\nfn ").skip(1))
        .map(|test| test.split('(').next().unwrap_or_default())
        .collect();
    assert_eq!(named, there);
    assert!(text.contains("the 22 example test cases") && text.contains("24 of the simulator"));
    assert_eq!(there.len(), 22 + 24);
}
