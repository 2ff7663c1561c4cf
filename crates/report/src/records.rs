//! Other JSON as tables: the output of `demo`, `link`, `serve` and `gateway`, and a user's own
//! records.

use std::fmt::Write as _;

use serde_json::Value;

use crate::page::{Block, Table};

/// The maximum numbers of rows and columns; further ones are left out.
const MOST_ROWS: usize = 1_000;
const MOST_COLUMNS: usize = 60;

/// Returns a document as tables: its plain values in one table, and each list of objects in
/// another.
pub(crate) fn document(value: &Value) -> Vec<Block> {
    let mut plain = Table::new(["", "value"]);
    let mut lists = Vec::new();
    collect("", value, &mut plain, &mut lists);
    let rows = std::mem::take(&mut plain.rows);
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        let left = rows.len().saturating_sub(MOST_ROWS);
        plain.rows = rows.into_iter().take(MOST_ROWS).collect();
        blocks.push(Block::Table(plain));
        blocks.extend(left_out(left, "values"));
    }
    for (name, list) in lists {
        if !name.is_empty() {
            blocks.push(Block::Text(name));
        }
        blocks.extend(table(list));
    }
    blocks
}

/// Returns records with the same keys as a table, one row each.
pub(crate) fn table(records: &[Value]) -> Vec<Block> {
    let mut columns: Vec<String> = Vec::new();
    let rows: Vec<Table> = records
        .iter()
        .take(MOST_ROWS)
        .map(|record| {
            let mut cells = Table::new(["", "value"]);
            collect("", record, &mut cells, &mut Vec::new());
            for row in &cells.rows {
                if columns.len() < MOST_COLUMNS && !columns.contains(&row[0]) {
                    columns.push(row[0].clone());
                }
            }
            cells
        })
        .collect();
    let mut table = Table::of(columns);
    for cells in &rows {
        let cell = |column: &String| {
            let found = cells.rows.iter().find(|row| row[0] == *column);
            found.map_or(String::new(), |row| row[1].clone())
        };
        table.rows.push(table.columns.iter().map(cell).collect());
    }
    cut(table, records.len())
}

/// Returns a table without the rows beyond the maximum, and how many of `count` rows it lacks.
pub(crate) fn cut(mut table: Table, count: usize) -> Vec<Block> {
    table.rows.truncate(MOST_ROWS);
    let left = count - table.rows.len();
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(left_out(left, "rows"));
    blocks
}

fn left_out(count: usize, what: &str) -> Option<Block> {
    (count > 0).then(|| Block::Text(format!("{count} more {what} are left out.")))
}

/// Adds the plain values in `value` with their paths to `plain`, and lists of objects to `lists`.
fn collect<'a>(
    path: &str,
    value: &'a Value,
    plain: &mut Table,
    lists: &mut Vec<(String, &'a [Value])>,
) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(&path, value, plain, lists);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            lists.push((path.to_owned(), items));
        }
        Value::Array(items) => {
            let mut text = String::new();
            for (index, item) in items.iter().take(MOST_ROWS).enumerate() {
                let _ = write!(text, "{}{}", if index > 0 { ", " } else { "" }, scalar(item));
            }
            plain.rows.push(vec![path.to_owned(), text]);
        }
        other => plain.rows.push(vec![path.to_owned(), scalar(other)]),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(value) if number.is_f64() => short(value),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// Formats a number with six significant digits; the record has all of them.
pub(crate) fn short(value: f64) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:e}");
    }
    let digits = 5 - value.abs().max(1e-9).log10().floor() as i32;
    let text = format!("{value:.*}", usize::try_from(digits.clamp(0, 9)).unwrap_or(0));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(blocks: &[Block]) -> Vec<&Table> {
        let tables = blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        tables.collect()
    }

    #[test]
    fn plain_values_have_their_paths_and_lists_tables_of_their_own() {
        let json = r#"{"link": ["a", "b"], "near": {"open": 3}, "senders": [{"name": "x", "rtt": 0.0442763861}, {"name": "y", "ok": true}]}"#;
        let blocks = document(&serde_json::from_str(json).unwrap());
        let tables = tables(&blocks);
        assert_eq!(tables[0].rows, [["link", "a, b"], ["near.open", "3"]]);
        assert_eq!(tables[1].columns, ["name", "rtt", "ok"]);
        assert_eq!(tables[1].rows, [["x", "0.0442764", ""], ["y", "", "yes"]]);
    }

    #[test]
    fn long_lists_are_cut_and_say_so() {
        let records: Vec<Value> =
            (0..MOST_ROWS + 7).map(|n| serde_json::json!({ "n": n })).collect();
        let blocks = table(&records);
        assert_eq!(tables(&blocks)[0].rows.len(), MOST_ROWS);
        assert!(matches!(&blocks[1], Block::Text(text) if text.starts_with("7 more rows")));
    }

    #[test]
    fn numbers_are_short() {
        let shown = |text: &str| scalar(&serde_json::from_str(text).unwrap());
        let short = ["0.5", "12345678.0", "1e-30", "1e300", "-0.25"].map(shown);
        assert_eq!(short, ["0.5", "12345678", "0", "1e300", "-0.25"]);
        assert_eq!(shown("100.0"), "100");
        assert_eq!(shown("18446744073709551615"), "18446744073709551615");
    }
}
