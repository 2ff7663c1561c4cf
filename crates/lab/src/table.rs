//! A table, as text and as Markdown.

use comfy_table::{CellAlignment, ContentArrangement, TableStyle, presets};
use serde::Serialize;

/// Columns with their names, and rows of as many cells.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new<const N: usize>(columns: [&str; N]) -> Self {
        Self { columns: columns.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    /// A table of any number of columns, without rows.
    pub fn of(columns: Vec<String>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.add(cells.to_vec());
    }

    /// Adds a row of as many cells as there are columns.
    pub fn add(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Its rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        self.draw(presets::UTF8_FULL_CONDENSED, str::to_owned)
    }

    /// For a Markdown file.
    pub fn to_markdown(&self) -> String {
        self.draw(presets::ASCII_MARKDOWN, |text| text.replace('|', "\\|"))
    }

    fn draw(&self, style: TableStyle, escape: fn(&str) -> String) -> String {
        let cell = |text: &String| escape(text);
        let mut table = comfy_table::Table::new();
        // As wide as it needs to be: a result must not depend on someone's terminal.
        table.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.columns.iter().map(cell));
        for row in &self.rows {
            table.add_row(row.iter().map(cell));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            if self.rows.iter().all(|row| is_figure(&row[index])) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines: Vec<_> = table.to_string().lines().map(|l| l.trim_end().to_owned()).collect();
        lines.join("\n")
    }
}

fn is_figure(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_in_a_cell_does_not_end_it_in_markdown() {
        let mut table = Table::new(["what", "how much"]);
        table.row(["a|b".to_owned(), "1".to_owned()]);
        assert_eq!(
            table.to_markdown(),
            "| what | how much |\n|------|----------|\n| a\\|b |        1 |"
        );
        assert!(table.to_text().lines().any(|line| line.contains(" a|b ")));
    }
}
