//! A table, rendered as text and Markdown.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle, presets};
use serde::{Deserialize, Serialize};

/// Named columns, and rows with the same number of cells.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
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

    /// Returns the names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Renders the table for a terminal of `width` columns, with longer texts wrapped. Without a
    /// width, lines are as long as necessary.
    pub fn to_text(&self, width: Option<u16>) -> String {
        let line = LineStyle::none().fill('─');
        let mut table = self.draw(TableStyle::new().header_separator(line), str::to_owned);
        if let Some(width) = width {
            table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
        }
        if let Some(first) = table.column_mut(0) {
            first.set_padding((0, 1));
        }
        lines(&table)
    }

    /// Renders the table for a Markdown file.
    pub fn to_markdown(&self) -> String {
        lines(&self.draw(presets::ASCII_MARKDOWN, |text| text.replace('|', "\\|")))
    }

    /// Renders lines as long as necessary: results in files must not depend on a terminal.
    fn draw(&self, style: TableStyle, escape: fn(&str) -> String) -> comfy_table::Table {
        let cell = |text: &String| escape(text);
        let mut table = comfy_table::Table::new();
        table.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.columns.iter().map(cell));
        for row in &self.rows {
            table.add_row(row.iter().map(cell));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            if self.rows.iter().all(|row| row.get(index).is_some_and(|cell| is_figure(cell))) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

/// Returns the lines without trailing blanks.
fn lines(table: &comfy_table::Table) -> String {
    let lines: Vec<_> = table.to_string().lines().map(|l| l.trim_end().to_owned()).collect();
    lines.join("\n")
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
        assert!(table.to_text(None).lines().any(|line| line.starts_with("a|b ")));
    }

    #[test]
    fn a_table_fits_the_terminal() {
        let mut table = Table::new(["claim", "figure"]);
        table.row(["goodput over that of another sender ".repeat(4), "1.00 ± 0.01".to_owned()]);
        let width = |text: &str| text.lines().map(|line| line.chars().count()).max();
        let text = table.to_text(Some(80));
        assert!(width(&text) <= Some(80) && text.contains("1.00 ± 0.01"), "{text}");
        assert!(width(&table.to_text(None)) > Some(100));
    }
}
