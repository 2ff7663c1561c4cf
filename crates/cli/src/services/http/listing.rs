//! The HTML page that lists a directory.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use super::{held, path};
use crate::output;

/// The maximum number of entries of a page.
const MOST: usize = 10_000;

/// Returns the page of `directory`, whose path in URLs is `below`: sorted names, directories with a
/// slash.
///
/// # Errors
/// The directory cannot be read.
pub(super) async fn page(directory: &Path, below: &Path) -> io::Result<String> {
    let directory: PathBuf = directory.to_owned();
    let title = escape(&format!("/{}", below.display()));
    let is_root = below.as_os_str().is_empty();
    // One blocking task for the whole directory instead of one per entry.
    let read = tokio::task::spawn_blocking(move || read(&directory));
    let entries = read.await.map_err(io::Error::other)??;
    let mut page = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<h1>{title}</h1>\n<ul>\n"
    );
    if !is_root {
        page.push_str("<li><a href=\"../\">../</a>\n");
    }
    for Entry { name, length } in entries {
        let (slash, size) = match length {
            None => ("/", String::new()),
            Some(length) => ("", format!(" ({})", output::bytes(length))),
        };
        let shown = escape(&String::from_utf8_lossy(&name));
        let link = path::encode(&name);
        let _ = writeln!(page, "<li><a href=\"{link}{slash}\">{shown}{slash}</a>{size}");
    }
    page.push_str("</ul>\n");
    Ok(page)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    name: Vec<u8>,
    /// Of a file, in bytes.
    length: Option<u64>,
}

fn read(directory: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory)?.take(MOST) {
        let entry = entry?;
        if held::is_name(entry.file_name().as_encoded_bytes()) {
            continue;
        }
        // A link is listed as its target; a broken one is left out.
        let Ok(metadata) = std::fs::metadata(entry.path()) else { continue };
        let name = entry.file_name().into_encoded_bytes();
        entries.push(Entry { name, length: (!metadata.is_dir()).then_some(metadata.len()) });
    }
    entries.sort_unstable();
    Ok(entries)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
