//! `airtcp link`: emulates a link between two TUN devices in real time.

mod args;
mod report;

use std::path::Path;
use std::time::Duration;

use airtcp_device::{Clock, Tun, TunOptions};
use airtcp_link::Link;
use airtcp_net::Driver;
use airtcp_trace::NodeKind;
use airtcp_types::NodeId;
use anyhow::anyhow;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::file;
use crate::output;
use crate::record::Recording;
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
    // Before `ready`, so that a process that waits for it can then send signals.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut report = signal(SignalKind::user_defined1())?;
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
        driver.watch_host(0, recording.watch(NodeId(0)));
        driver.watch(recording.watch(NodeId(1)));
        driver.watch_host(1, recording.watch(NodeId(2)));
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
    let mut time_over = std::pin::pin!(over(args.seconds));
    let outcome = loop {
        tokio::select! {
            Err(gone) = driver.run() => break Err(anyhow!("{gone}; restart to create it again")),
            () = caught(&mut interrupt) => break Ok(()),
            () = caught(&mut terminate) => break Ok(()),
            () = &mut time_over => break Ok(()),
            () = caught(&mut report) => {
                let so_far = Report::new(&driver, args.specs()).without_histogram();
                if let Err(error) = print(&so_far, args.json) {
                    break Err(error);
                }
            }
        }
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

/// Waits for the signal.
pub(crate) async fn caught(signal: &mut Signal) {
    if signal.recv().await.is_none() {
        // The signal can no longer be received. That must not count as a signal.
        std::future::pending().await
    }
}

fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    let text = if json { serde_json::to_string(report)? } else { report.to_string() };
    output::print(&text)
}
