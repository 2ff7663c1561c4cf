//! `airtcp plot`: draws the time-sequence graph of a flow, from a trace or any capture.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airtcp_trace::TraceError;
use airtcp_trace::plot::{self, Flow, Trace, Window};
use anyhow::Context;
use clap::Args;
use serde::Serialize;

use crate::call::Call;
use crate::output::{self, Mistake};
use crate::table::table;
use crate::{file, value};

/// `airtcp plot`.
#[derive(Args, Debug)]
pub(crate) struct PlotArgs {
    /// Directory written by --trace, its events.sqlog, or a .pcap or .pcapng file
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Output file: .svg, .xpl for xplot, or - for an SVG on stdout [default: a new file in the
    /// current directory, named after the flow]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Number of the flow in --list; flow 1 has the most bytes
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "1",
          value_parser = value::whole(1_usize, 1_000_000, "--flow 2"))]
    flow: usize,
    /// Start of the picture, in seconds since the start of the trace
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = value::moment)]
    from: Option<Duration>,
    /// End of the picture
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = value::moment)]
    to: Option<Duration>,
    /// List the flows, without a picture
    #[arg(long, conflicts_with_all = ["output", "from", "to"])]
    list: bool,
    /// Print the list as JSON
    #[arg(long, requires = "list")]
    json: bool,
}

/// Draws a flow, or lists the flows.
///
/// # Errors
/// The trace cannot be read, with the position of a mistake in it; the picture cannot be written.
pub(crate) fn run(args: &PlotArgs, call: &Call) -> anyhow::Result<()> {
    if let Some(path) = &args.output {
        check_kind(path)?;
    }
    let trace = plot::read(&args.trace).map_err(|error| unread(&args.trace, error))?;
    for cut in trace.cuts() {
        call.note(cut);
    }
    if args.list {
        return list(&trace, args.json, call);
    }
    let flow = trace.flows().get(args.flow - 1);
    let flow = flow.ok_or_else(|| {
        mistake(TraceError::NoSuchFlow { number: args.flow, count: trace.flows().len() })
    })?;
    let is_xpl = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "xpl");
    let path = if let Some(path) = args.output.as_ref().filter(is_xpl) {
        if args.from.or(args.to).is_some() {
            let what = "--from and --to are only for SVG pictures: xplot zooms itself; for example -o flow.svg";
            return Err(Mistake::new(what.to_owned()).into());
        }
        trace.xpl(args.flow, path)?;
        path.clone()
    } else {
        let window = Window { from: args.from, to: args.to };
        let picture = trace.svg(args.flow, window).map_err(|error| match error {
            TraceError::Window { .. } => mistake(error),
            other => other.into(),
        })?;
        match &args.output {
            Some(path) if path == Path::new("-") => {
                return call.print(picture.trim_end());
            }
            Some(path) => {
                write(path, &picture)?;
                path.clone()
            }
            None => {
                let name = flow.file_name();
                let make = |path: &Path| File::create_new(path)?.write_all(picture.as_bytes());
                let made = file::make_new(&name, ".svg", make);
                made.with_context(|| format!("writing {name}.svg"))?
            }
        }
    };
    output::note(format_args!("wrote {}", path.display()));
    Ok(())
}

/// Explains why a trace was not read; lists the supported files unless the path is one.
fn unread(path: &Path, error: TraceError) -> anyhow::Error {
    let of_plot = ["sqlog", "pcap", "pcapng"];
    let has_name = path.extension().is_some_and(|name| of_plot.iter().any(|one| name == *one));
    match path.is_file() && has_name {
        true => error.into(),
        false => output::with_advice(
            error.into(),
            "specify a directory written by --trace, its events.sqlog, or a .pcap or .pcapng capture",
        ),
    }
}

/// Rejects a file name whose extension is none of the supported picture formats.
fn check_kind(path: &Path) -> Result<(), Mistake> {
    match path.extension() {
        Some(extension) if extension != "svg" && extension != "xpl" => Err(Mistake::new(format!(
            "--output {}: the name must end in .svg or .xpl; for example -o flow.svg, and for a PNG of it: rsvg-convert -o \
             flow.png flow.svg",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn mistake(error: TraceError) -> anyhow::Error {
    Mistake::new(format!("{error}; --list shows the flows")).into()
}

fn write(path: &Path, picture: &str) -> anyhow::Result<()> {
    let written = fs::write(path, picture).map_err(|error| file::not_made(path, error));
    written.with_context(|| format!("writing {}", path.display()))
}

/// An entry of the list of flows.
#[derive(Serialize)]
struct Line {
    number: usize,
    sender: String,
    receiver: String,
    bytes: u64,
    packets: u64,
    begin: f64,
    end: f64,
}

impl Line {
    fn new(index: usize, flow: &Flow) -> Self {
        Self {
            number: index + 1,
            sender: flow.sender.to_string(),
            receiver: flow.receiver.to_string(),
            bytes: flow.bytes.0,
            packets: flow.packets,
            begin: flow.first.as_secs_f64(),
            end: flow.last.as_secs_f64(),
        }
    }
}

fn list(trace: &Trace, json: bool, call: &Call) -> anyhow::Result<()> {
    let lines: Vec<_> =
        trace.flows().iter().enumerate().map(|(i, flow)| Line::new(i, flow)).collect();
    if json {
        return call.print_json(&lines);
    }
    let row = |line: Line| {
        let (begin, end) = (format!("{:.3}", line.begin), format!("{:.3}", line.end));
        let (number, bytes) = (line.number.to_string(), line.bytes.to_string());
        [number, line.sender, line.receiver, bytes, line.packets.to_string(), begin, end]
    };
    let header = ["flow", "sender", "receiver", "bytes", "packets", "begin s", "end s"];
    let table = table(header, 3, lines.into_iter().map(row));
    call.print(&table.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_trace_is_refused_with_the_readable_formats() {
        let directory = tempfile::tempdir().unwrap();
        let files = ["s.toml", "damaged.pcap"].map(|name| directory.path().join(name));
        let [none, damaged] = files.each_ref().map(|path| {
            fs::write(path, "no packets").unwrap();
            output::explain(&unread(path, plot::read(path).unwrap_err()))
        });
        assert!(none.ends_with("its events.sqlog, or a .pcap or .pcapng capture"), "{none}");
        assert!(!damaged.contains("specify"), "{damaged}");
    }

    #[test]
    fn only_names_of_svg_and_xpl_files_are_accepted() {
        for path in ["flow.svg", "flow.xpl", "-", "/dev/stdout"] {
            assert!(check_kind(Path::new(path)).is_ok(), "{path}");
        }
        let error = check_kind(Path::new("flow.png")).unwrap_err().to_string();
        assert!(error.contains("flow.png: the name must end in .svg or .xpl"), "{error}");
        assert!(error.contains("rsvg-convert"), "{error}");
    }
}
