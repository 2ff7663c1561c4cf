//! `airtcp report`: writes results as one HTML page.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use crate::{file, output};

/// `airtcp report`.
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// Directories with results, and single .json, .jsonl, .toml, .svg, .pcap and .pcapng files
    #[arg(value_name = "DIR", required = true)]
    paths: Vec<PathBuf>,
    /// Write the page to this file, or - for stdout; an existing file is replaced
    #[arg(short, long, value_name = "FILE.html", default_value = "report.html")]
    output: PathBuf,
    /// Title of the page
    #[arg(long, value_name = "TEXT", default_value = "airtcp report")]
    title: String,
}

/// Writes the page.
///
/// # Errors
/// A result cannot be read or is damaged; the page cannot be written.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let path = &args.output;
    let is_file = path != Path::new("-");
    if is_file {
        airtcp_report::check_output(&args.paths, path)?;
    }
    let page = airtcp_report::html(&args.title, &args.paths).map_err(|error| {
        let advice = "give a directory with results or a trace, or a single file of them";
        output::if_missing(error.into(), advice)
    })?;
    if !is_file {
        return output::print(page.trim_end());
    }
    let written = fs::write(path, &page).map_err(|error| file::not_made(path, error));
    written.with_context(|| format!("writing {}", path.display()))?;
    output::note(format_args!("wrote {}, {} kB", path.display(), page.len().div_ceil(1000)));
    Ok(())
}
