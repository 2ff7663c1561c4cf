//! Rendering of the page as one HTML file. All text is escaped, and the content security policy
//! allows only the page's own script.

use std::fmt::Write as _;

use data_encoding::BASE64;
use sha2::{Digest, Sha256};

use crate::page::{Block, Chart, MOST_SERIES, Section, Table};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Renders the page.
///
/// # Errors
/// A chart cannot be serialised as JSON.
pub(crate) fn page(title: &str, sections: &[Section]) -> Result<String, serde_json::Error> {
    let title = escaped(title);
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"airtcp {}\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{title}</h1><button type=\"button\" class=\"theme\" hidden>Light or dark</button></header>\n\
         <noscript><p>The charts need JavaScript; the tables do not.</p></noscript>\n",
        env!("CARGO_PKG_VERSION"),
    );
    if sections.len() > 1 {
        out.push_str("<nav aria-label=\"Contents\"><ul>\n");
        for (number, section) in sections.iter().enumerate() {
            let _ =
                writeln!(out, "<li><a href=\"#s{number}\">{}</a></li>", escaped(&section.title));
        }
        out.push_str("</ul></nav>\n");
    }
    out.push_str("<main>\n");
    for (number, section) in sections.iter().enumerate() {
        let _ = writeln!(out, "<section id=\"s{number}\">\n<h2>{}</h2>", escaped(&section.title));
        blocks(&mut out, &section.blocks)?;
        out.push_str("</section>\n");
    }
    let _ = write!(out, "</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n");
    Ok(out)
}

/// Returns the hash of a script or style for the content security policy.
fn hash(text: &str) -> String {
    BASE64.encode(&Sha256::digest(text))
}

/// Whether a character changes the direction of the following text, by which a record could display
/// figures in another order.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Escapes text for HTML, also in attributes. Control characters, which HTML does not allow, and
/// characters that change the direction of text are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            c if c.is_control() || is_direction(c) => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

fn blocks(out: &mut String, all: &[Block]) -> Result<(), serde_json::Error> {
    for block in all {
        match block {
            Block::Text(text) => {
                let _ = writeln!(out, "<p>{}</p>", escaped(text));
            }
            Block::Code(text) => {
                let _ = writeln!(out, "<pre>{}</pre>", escaped(text));
            }
            Block::Table(of) => table(out, of),
            Block::Picture { title, svg } => {
                // An SVG in an image element runs no script and loads nothing.
                let (title, data) = (escaped(title), BASE64.encode(svg.as_bytes()));
                let _ = writeln!(
                    out,
                    "<figure><img alt=\"{title}\" src=\"data:image/svg+xml;base64,{data}\">\
                     <figcaption>{title}</figcaption></figure>"
                );
            }
            Block::Chart(of) => chart(out, of)?,
            Block::Fold { title, is_open, blocks: inner } => {
                let open = if *is_open { " open" } else { "" };
                let _ = writeln!(out, "<details{open}><summary>{}</summary>", escaped(title));
                blocks(out, inner)?;
                out.push_str("</details>\n");
            }
        }
    }
    Ok(())
}

fn chart(out: &mut String, chart: &Chart) -> Result<(), serde_json::Error> {
    // In JSON, these characters occur only in strings.
    let data = serde_json::to_string(chart)?;
    let data = data.replace('<', "\\u003c").replace(is_direction, "\u{FFFD}");
    let _ = writeln!(
        out,
        "<figure class=\"chart\"><figcaption>{}</figcaption><script type=\"application/json\">{data}</script></figure>",
        escaped(&chart.title)
    );
    let left = chart.series.len().saturating_sub(MOST_SERIES);
    if left > 0 {
        let _ = writeln!(out, "<p>{left} more series are left out.</p>");
    }
    Ok(())
}

fn table(out: &mut String, table: &Table) {
    let class = if table.is_prose { " class=\"prose\"" } else { "" };
    let _ = write!(out, "<div class=\"scroll\"><table{class}>\n<thead><tr>");
    let has_numbers = |column: usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.get(column));
        !table.is_prose && cells.all(|cell| cell.is_empty() || is_number(cell))
    };
    let attributes: Vec<String> = (table.columns.iter().enumerate())
        .map(|(index, column)| match has_numbers(index) {
            true => " class=\"n\"".to_owned(),
            // The style shows the column's name if rows are displayed as lists.
            false if table.is_prose => format!(" data-column=\"{}\"", escaped(column)),
            false => String::new(),
        })
        .collect();
    for (column, attribute) in table.columns.iter().zip(&attributes) {
        let _ = write!(out, "<th scope=\"col\"{attribute}>{}</th>", escaped(column));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for ((column, attribute), cell) in table.columns.iter().zip(&attributes).zip(row) {
            let text = escaped(cell);
            let _ = match verdict(column, cell) {
                Some(class) => write!(out, "<td{attribute}><b class=\"{class}\">{text}</b></td>"),
                None => write!(out, "<td{attribute}>{text}</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

/// Whether a cell starts with a number, as in `1.46 ± 0.12`; an address does not.
fn is_number(cell: &str) -> bool {
    let first = cell.split([' ', ',']).next().unwrap_or_default();
    first.parse::<f64>().is_ok()
}

/// Returns the CSS class of a verdict.
fn verdict(column: &str, cell: &str) -> Option<&'static str> {
    match (column, cell) {
        ("verdict", "holds") => Some("good"),
        ("verdict", "does not hold") => Some("bad"),
        ("verdict", "not comparable") => Some("open"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Axis;
    use crate::series::{Look, Series};

    const HOSTILE: &str = "</script><script>alert(1)</script>\"'\u{1b}<img src=x onerror=alert(2)>";

    #[test]
    fn text_of_a_record_never_becomes_markup() {
        let mut series = Series::new(Look::Dots, 10);
        series.point(1, 2);
        let mut table = Table::of(vec![HOSTILE.to_owned()]);
        table.rows.push(vec![HOSTILE.to_owned()]);
        let prose = Table { is_prose: true, ..table.clone() };
        let chart = Chart {
            title: HOSTILE.to_owned(),
            group: HOSTILE.to_owned(),
            x: Axis::TIME,
            y: Axis::BYTES,
            height: 300,
            series: vec![series.named(HOSTILE, HOSTILE)],
        };
        let text = || HOSTILE.to_owned();
        let all = vec![
            Block::Text(text()),
            Block::Code(text()),
            Block::Table(table),
            Block::Table(prose),
            Block::Picture { title: text(), svg: text() },
            Block::Chart(chart),
            Block::Fold { title: text(), is_open: true, blocks: vec![Block::Text(text())] },
        ];
        let html = page(HOSTILE, &[Section { title: text(), blocks: all }]).unwrap();
        // Only the page's script and the chart's data.
        assert_eq!(html.matches("<script").count(), 2);
        assert_eq!(html.matches("</script").count(), 2);
        assert!(!html.contains("<img src=x") && !html.contains('\u{1b}'));
        let data = html.split("application/json\">").nth(1).unwrap();
        let data = data.split("</script>").next().unwrap();
        let read: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(read["series"][0]["name"], HOSTILE);
    }

    #[test]
    fn the_policy_names_the_script_and_the_style_and_no_other_source() {
        let html = page("a", &[]).unwrap();
        for (tag, kind) in [("script", "script-src"), ("style", "style-src")] {
            let start = html.find(&format!("<{tag}>")).unwrap() + tag.len() + 2;
            let end = html.find(&format!("</{tag}>")).unwrap();
            assert!(html.contains(&format!("{kind} 'sha256-{}'", hash(&html[start..end]))));
        }
        assert!(html.contains("default-src 'none'"));
        for source in ["http:", "https:", "//cdn", "url(", "@import"] {
            let found = html.matches(source).count();
            // The namespace of SVG is a name, not a source.
            let allowed = html.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(found, if source == "http:" { allowed } else { 0 }, "{source}");
        }
    }

    #[test]
    fn ends_of_lines_are_kept_and_directions_of_text_replaced() {
        assert_eq!(escaped("a\r\nb\rc"), "a\nb\u{FFFD}c");
        assert_eq!(escaped("1\u{202E}2\u{2066}3\u{200F}"), "1\u{FFFD}2\u{FFFD}3\u{FFFD}");
    }

    #[test]
    fn a_chart_has_forty_series_and_says_how_many_it_leaves_out() {
        let all = |count: usize| {
            let series = (0..count).map(|number| {
                let mut series = Series::new(Look::Dots, 1);
                series.point(1, 2);
                series.named(format!("\u{202E}{number}"), "c0")
            });
            let (title, group) = ("a".to_owned(), String::new());
            let series = series.collect();
            let chart = Chart { title, group, x: Axis::TIME, y: Axis::BYTES, height: 300, series };
            let mut out = String::new();
            super::chart(&mut out, &chart).unwrap();
            out
        };
        assert!(!all(40).contains("left out"));
        let cut = all(43);
        assert!(cut.contains("<p>3 more series are left out.</p>") && !cut.contains('\u{202E}'));
        assert_eq!(cut.matches("\"name\"").count(), 40);
    }

    #[test]
    fn verdicts_have_a_colour_in_their_column_alone() {
        let mut table = Table::new(["claim", "verdict"]);
        table.rows.push(["holds", "does not hold"].map(str::to_owned).to_vec());
        let mut out = String::new();
        super::table(&mut out, &table);
        assert!(out.contains("<td>holds</td><td><b class=\"bad\">does not hold</b></td>"), "{out}");
    }
}
