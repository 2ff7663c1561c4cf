//! The section of a sweep: its pictures, the means of each combination, and all runs.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::page::{Block, Section, Table};
use crate::records::{self, short};
use crate::{ReportError, inputs};

/// File names of `airtcp sweep --out`: the means of each combination, and a line for each run.
pub(crate) const MEANS: &str = "means.csv";
pub(crate) const RUNS: &str = "records.csv";

/// The ends of the names of the columns that follow the mean of a measure.
const ENDS: [&str; 3] = ["_low", "_high", "_runs"];
/// The maximum length in bytes of the first line of the means.
const LONGEST_HEAD: u64 = 1 << 16;

/// Whether `path` has the means of a sweep, and not those of a user.
pub(crate) fn is_means(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let mut head = String::new();
    let read = BufReader::new(file.take(LONGEST_HEAD)).read_line(&mut head);
    let columns = rows(&head).unwrap_or_default().pop().unwrap_or_default();
    read.is_ok() && (0..columns.len()).any(|index| is_measure(&columns, index))
}

/// Returns the section of the sweep in `directory`.
///
/// # Errors
/// A file cannot be read, or is damaged.
pub(crate) fn section(directory: &Path, pictures: Vec<Block>) -> Result<Section, ReportError> {
    let (means, most) = means(&directory.join(MEANS))?;
    let mut blocks = pictures;
    blocks.push(Block::Text(match most {
        1 => "One run of each combination, in bit/s and seconds.".to_owned(),
        _ => format!("Means of {most} runs with 95 % confidence intervals, in bit/s and seconds."),
    }));
    let count = means.rows.len();
    blocks.extend(records::cut(means, count));
    let (columns, rows) = table(&directory.join(RUNS))?;
    let count = rows.len();
    let shown = rows.into_iter().map(|row| row.iter().map(|cell| number(cell)).collect());
    let runs = Table { rows: shown.collect(), ..Table::of(columns) };
    let title = format!("All runs: {count}");
    let blocks_of_runs = records::cut(runs, count);
    blocks.push(Block::Fold { title, is_open: false, blocks: blocks_of_runs });
    Ok(Section { title: format!("Sweep: {}", directory.display()), blocks })
}

/// Returns the table of the means, and the largest number of runs of a mean.
fn means(path: &Path) -> Result<(Table, u64), ReportError> {
    let (columns, rows) = table(path)?;
    let is_measure: Vec<bool> =
        (0..columns.len()).map(|index| is_measure(&columns, index)).collect();
    // The other columns of a measure are shown in that of its mean.
    let kept: Vec<usize> = (0..columns.len())
        .filter(|index| !(1..=ENDS.len()).any(|back| *index >= back && is_measure[index - back]))
        .collect();
    let runs = |row: &[String], mean: usize| row[mean + 3].parse::<u64>().unwrap_or(0);
    let all = rows.iter().flat_map(|row| {
        kept.iter().filter(|index| is_measure[**index]).map(move |index| runs(row, *index))
    });
    let most = all.max().unwrap_or(0);
    let mut means = Table::of(kept.iter().map(|index| columns[*index].clone()).collect());
    for row in &rows {
        let cells = kept.iter().map(|index| match is_measure[*index] {
            true => {
                let mean = interval(&row[*index], &row[index + 1], &row[index + 2]);
                match runs(row, *index) {
                    0 => String::new(),
                    fewer if fewer < most => format!("{mean} ({fewer} of {most} runs)"),
                    _ => mean,
                }
            }
            false => row[*index].clone(),
        });
        means.rows.push(cells.collect());
    }
    Ok((means, most))
}

/// Whether the column `index` is the mean of a measure.
fn is_measure(columns: &[String], index: usize) -> bool {
    let name = &columns[index];
    ENDS.iter().enumerate().all(|(after, end)| {
        columns.get(index + 1 + after).is_some_and(|column| *column == format!("{name}{end}"))
    })
}

/// Formats a mean and its half-width with the decimals that the first two digits of the half-width
/// have.
fn interval(mean: &str, low: &str, high: &str) -> String {
    let (Ok(middle), Ok(low), Ok(high)) =
        (mean.parse::<f64>(), low.parse::<f64>(), high.parse::<f64>())
    else {
        return number(mean);
    };
    let half: f64 = (high - low) / 2.0;
    if half <= 0.0 || !half.is_finite() {
        return number(mean);
    }
    let decimals = usize::try_from(1 - half.log10().floor() as i32).unwrap_or(0).min(9);
    format!("{middle:.decimals$} ± {half:.decimals$}")
}

/// Shortens a number; other text stays.
fn number(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(value) if cell.contains('.') && value.is_finite() => short(value),
        _ => cell.to_owned(),
    }
}

/// Reads a file of comma-separated values: the columns, and rows with as many cells.
fn table(path: &Path) -> Result<(Vec<String>, Vec<Vec<String>>), ReportError> {
    let damaged = |line: usize, reason: &str| ReportError::Line {
        path: path.to_owned(),
        line,
        reason: reason.to_owned(),
    };
    let text = inputs::text(path)?;
    let all = rows(&text).ok_or_else(|| damaged(text.lines().count(), "a quote is not closed"))?;
    let mut all = all.into_iter();
    let columns = all.next().ok_or_else(|| damaged(1, "the file is empty"))?;
    let rows: Vec<Vec<String>> = all.collect();
    match rows.iter().position(|row| row.len() != columns.len()) {
        Some(index) => Err(damaged(
            index + 2,
            &format!("{} fields instead of {}", rows[index].len(), columns.len()),
        )),
        None => Ok((columns, rows)),
    }
}

/// Splits comma-separated values (RFC 4180); `None` if a quote is not closed.
fn rows(text: &str) -> Option<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut cell = String::new();
    let mut is_quoted = false;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if is_quoted && rest.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    if !(cell.is_empty() && row.is_empty()) {
        row.push(cell);
        rows.push(row);
    }
    (!is_quoted).then_some(rows)
}

/// Returns the pictures of `pictures` that are in `directory`.
pub(crate) fn pictures<'a>(
    directory: &'a Path,
    pictures: &'a [PathBuf],
) -> impl Iterator<Item = &'a PathBuf> {
    pictures.iter().filter(move |picture| picture.parent() == Some(directory))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HEAD: &str = "sender,link,goodput,goodput_low,goodput_high,goodput_runs";

    fn cells(text: &str) -> Result<Vec<Vec<String>>, ReportError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(MEANS);
        fs::write(&path, text).unwrap();
        means(&path).map(|(table, _)| [vec![table.columns], table.rows].concat())
    }

    #[test]
    fn means_are_shown_with_their_intervals() {
        let text = format!(
            "{HEAD}\nle/reno,\"rate \"\"x\"\", 1\",18084593.28,17898422.7,18270763.9,20\n\
             sack/reno,b,0.0440123,0.0439004,0.0441243,19\n\
             a,b,3.0,3.0,3.0,20\na,b,2.5,,,1\na,b,,,,0\n"
        );
        let shown = cells(&text).unwrap();
        assert_eq!(shown[0], ["sender", "link", "goodput"]);
        assert_eq!(shown[1], ["le/reno", "rate \"x\", 1", "18084593 ± 186171"]);
        assert_eq!(shown[2], ["sack/reno", "b", "0.04401 ± 0.00011 (19 of 20 runs)"]);
        let last: Vec<&String> = shown[3..].iter().map(|row| &row[2]).collect();
        assert_eq!(last, ["3", "2.5 (1 of 20 runs)", ""]);
    }

    #[test]
    fn damaged_means_are_errors_with_their_line() {
        let reason = |text: String| cells(&text).unwrap_err().to_string();
        let short = reason(format!("{HEAD}\na,b,1,1,1,2\na,b,1\n"));
        assert!(short.contains("means.csv:3: 3 fields instead of 6"), "{short}");
        let open = reason(format!("{HEAD}\n\"a,b,1,1,1,2\n"));
        assert!(open.contains("means.csv:2: a quote is not closed"), "{open}");
        assert!(reason(String::new()).contains("the file is empty"));
        // Not numbers.
        assert_eq!(cells(&format!("{HEAD}\na,b,x,y,z,2\n")).unwrap()[1], ["a", "b", "x"]);
        assert_eq!(cells(&format!("{HEAD}\na,b,1,2,inf,2\n")).unwrap()[1], ["a", "b", "1"]);
    }

    #[test]
    fn other_tables_are_not_the_means_of_a_sweep() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(MEANS);
        let is = |text: &str| {
            fs::write(&path, text).unwrap();
            is_means(&path)
        };
        assert!(is(HEAD) && is(&format!("{HEAD}\n")));
        assert!(!is("") && !is("goodput,loss\n1,2\n") && !is("goodput,goodput_low,x\n"));
    }
}
