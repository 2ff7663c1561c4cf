//! Prints the results as a table.

use std::fmt::Write;

use crate::link::LINKS;
use crate::transfer::{SENDERS, Sender, Transfer};

/// Student's t for 95 %, two-sided, by degrees of freedom from 1.
const T: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// Formats a row for each link and file and a column for each sender: the mean time in seconds with
/// the half-width of its 95 % confidence interval.
pub(crate) fn of(results: &[(Transfer, Option<f64>)]) -> String {
    let mut text = format!("| link | file | bytes alone |{}\n", SENDERS.map(column).concat());
    let _ = writeln!(text, "| --- | --- | --- |{}", " --- |".repeat(SENDERS.len()));
    let rows = LINKS.iter().flat_map(|link| link.sizes.iter().map(move |size| (link, size)));
    for (link, size) in rows {
        let of_row = |one: &&(Transfer, Option<f64>)| {
            (one.0.link.name, one.0.size.name) == (link.name, size.name)
        };
        let row: Vec<_> = results.iter().filter(of_row).collect();
        if row.is_empty() {
            continue;
        }
        let ideal = link.ideal(size.bytes).as_secs_f64();
        let _ = write!(text, "| {} | {} | {ideal:.1} s |", link.name, size.name);
        for sender in SENDERS {
            let runs: Vec<_> =
                row.iter().filter(|one| one.0.sender == sender).map(|one| one.1).collect();
            let _ = write!(text, " {} |", cell(&runs));
        }
        text.push('\n');
    }
    text
}

fn column(sender: Sender) -> String {
    format!(" {} |", sender.name())
}

fn cell(runs: &[Option<f64>]) -> String {
    let done: Vec<f64> = runs.iter().copied().flatten().collect();
    let failed = match runs.len() - done.len() {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    if done.is_empty() {
        return format!("-{failed}");
    }
    let count = done.len() as f64;
    let mean = done.iter().sum::<f64>() / count;
    let variance = done.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let interval = match T.get(done.len().wrapping_sub(2)) {
        Some(t) => format!(" ± {:.2}", t * (variance / count).sqrt()),
        None if done.len() == 1 => String::new(),
        None => format!(" ± {:.2}", 1.96 * (variance / count).sqrt()),
    };
    format!("{mean:.2}{interval} ({}{failed})", done.len())
}
