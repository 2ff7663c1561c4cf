//! `airtcp link`: emulates a link between two TUN devices in real time.

mod args;
mod report;

use std::path::Path;
use std::time::Duration;

use airtcp_device::{Clock, Tun, TunOptions};
use airtcp_link::Link;
use airtcp_net::Driver;
use airtcp_trace::NodeKind;

use crate::file;
use crate::output;
use crate::record::Recording;
use crate::signals::Runner;
pub(crate) use args::LinkArgs;
use report::Report;

/// Runs the link until Ctrl-C, SIGTERM or the end of its time.
///
/// # Errors
/// A trace cannot be read; a device cannot be opened, or is removed.
pub(crate) fn run(args: &LinkArgs) -> anyhow::Result<()> {
    let [forth, back] = args.specs();
    let link = Link::with_traces(forth, back, |trace| file::link_trace(Path::new(trace)))?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(args, link))
}

async fn serve(args: &LinkArgs, mut link: Link) -> anyhow::Result<()> {
    let mut runner = Runner::new()?;
    let options = TunOptions { offload: args.offload, ..TunOptions::default() };
    let devices = [Tun::open_with(&args.a, options)?, Tun::open_with(&args.b, options)?];
    link.set_events(args.trace.is_some());
    // The trace shows whatever is behind a device as a host.
    let nodes = [(&*args.a, NodeKind::Host), ("link", NodeKind::Link), (&*args.b, NodeKind::Host)];
    let recording = args.trace.as_deref();
    let recording = recording
        .map(|directory| Recording::start(directory, "airtcp link", &nodes))
        .transpose()?;
    let clock = recording.as_ref().map_or_else(Clock::start, Recording::clock);
    let mut driver = Driver::new(link, devices, clock)?;
    if let Some(recording) = &recording {
        recording.watch_between(&mut driver);
    }
    let how = if args.offload {
        "with offload: super-segments are segmented before the link"
    } else {
        "without offload: packets of at most the MTU, with complete checksums"
    };
    output::note(format_args!("note: {} and {} are open {how}", args.a, args.b));
    if args.persist {
        // Only now: a link that fails to start leaves no device.
        [0, 1].into_iter().try_for_each(|port| driver.device(port).persist())?;
        let (a, b) = (&args.a, &args.b);
        output::note(format_args!(
            "note: {a} and {b} stay at exit; `ip link delete {a}` and `ip link delete {b}` remove them"
        ));
    }
    output::note("ready");
    let so_far = |driver: &Driver<_, _>| {
        print(&Report::new(driver, args.specs()).without_histogram(), args.json)
    };
    let outcome = tokio::select! {
        ended = runner.run(&mut driver, so_far) => ended,
        () = over(args.seconds) => Ok(()),
    };
    let outcome = outcome.and(print(&Report::new(&driver, args.specs()), args.json));
    // Finish the trace even if printing failed.
    let recorded = recording.map(Recording::finish).transpose();
    outcome.and(recorded.map(drop))
}

async fn over(after: Option<Duration>) {
    match after {
        Some(after) => tokio::time::sleep(after).await,
        None => std::future::pending().await,
    }
}

fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    output::print_counters(report, json, || Ok(report.to_string()))
}
