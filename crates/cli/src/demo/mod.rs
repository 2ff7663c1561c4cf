//! `airtcp demo`: transfers a file between the Linux kernel and this stack, in both directions and
//! over both IP versions, and verifies it.
//!
//! The TUN device is in a network namespace of its own and is removed with this process. If
//! namespaces are unavailable, two stacks exchange the file over a device in memory.

mod file;
mod gateway;
mod lossy;
mod meter;
mod network;
mod radio;
mod radio_report;
mod report;
mod transfer;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use airtcp_types::{ByteCount, Rate};
use anyhow::{Context, bail};
use tokio::time::timeout;

use crate::args::DemoArgs;
use crate::output;
use file::Sample;
use network::Network;
use report::{Report, Row};
use transfer::Course;

/// The time limit of a transfer is the longer of this and the time at this rate.
const LEAST_TIME: Duration = Duration::from_secs(20);
const LEAST_BYTES_PER_SECOND: u64 = 1 << 20;

/// Runs the transfers, and prints the results.
///
/// # Errors
/// A transfer fails, or the received file differs from the sent one.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    if args.lossy {
        return lossy::run(args);
    }
    if args.gateway {
        return gateway::run(args);
    }
    if args.radio.is_some() {
        return radio::run(args);
    }
    // Before anything else: a process with several threads cannot enter a user namespace.
    let tun = airtcp_testbed::enter_user_namespace_if_needed()
        .map_err(anyhow::Error::from)
        .and_then(|()| network::Tun::new(&args.sender));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let reason = match tun {
        Ok(tun) => {
            // The namespace is dropped here, outside of the runtime, because joining its thread
            // blocks.
            let (namespace, file) = tun.into_parts();
            return runtime.block_on(async {
                let network = Network::with_kernel(&namespace, file, args)?;
                demonstrate(args, network, None).await
            });
        }
        Err(error) => output::explain(&error),
    };
    output::note(format_args!("note: {reason}"));
    output::note(
        "note: no TUN device, so two airtcp stacks exchange the file over a device in memory",
    );
    runtime.block_on(async {
        let network = Network::in_memory(args)?;
        demonstrate(args, network, Some(reason)).await
    })
}

/// Returns the directory for the trace and the pictures of a demonstration.
fn directory(args: &DemoArgs) -> anyhow::Result<PathBuf> {
    match &args.trace {
        Some(directory) => Ok(directory.clone()),
        None => crate::file::make_new("airtcp-demo", "", |path| fs::create_dir(path)).context(
            "creating the directory airtcp-demo for the picture; --trace DIR selects another one",
        ),
    }
}

async fn demonstrate(
    args: &DemoArgs,
    network: Network<'_>,
    reason: Option<String>,
) -> anyhow::Result<()> {
    let size = args.size;
    output::note(format_args!("creating a file of {}", output::bytes(size.0)));
    let sample = tokio::task::spawn_blocking(move || Sample::make(size)).await??;
    let mut report = Report::new(&network, &sample, reason);
    let courses = network.courses();
    let mut broken = None;
    for (index, course) in courses.iter().enumerate() {
        let title = format!("[{}/{}] {course}", index + 1, courses.len());
        match one(&network, course, &sample, &title).await {
            Ok(row) => report.rows.push(row),
            Err(error) => {
                broken = Some(error.context(course.to_string()));
                break;
            }
        }
    }
    network.shutdown().await?;
    let asked = args.sender.combination()?.to_string();
    let is_other = |row: &&Row| row.strategy != asked && !row.strategy.starts_with("kernel");
    for row in report.rows.iter().filter(is_other) {
        output::note(format_args!(
            "note: {}, {}: {} instead of {asked}, which needs TCP options that the peer does not support",
            row.direction, row.ip, row.strategy
        ));
    }
    output::print_result(&report, args.json)?;
    if let Some(error) = broken {
        return Err(error);
    }
    let differing = report.rows.iter().filter(|row| !row.intact).count();
    if differing > 0 {
        bail!("{differing} of {} transfers arrived damaged", report.rows.len());
    }
    Ok(())
}

async fn one(
    network: &Network<'_>,
    course: &Course,
    sample: &Sample,
    title: &str,
) -> anyhow::Result<Row> {
    let patience = LEAST_TIME + Duration::from_secs(sample.size().0 / LEAST_BYTES_PER_SECOND);
    let progress = report::Progress::start(title, sample.size());
    let transfer = transfer::run(network, course, sample, progress.counter());
    let done = timeout(patience, transfer)
        .await
        .with_context(|| format!("stalled: not done after {} s", patience.as_secs()))??;
    drop(progress);
    let transfer::Done { strategy, duration, retransmissions, rtt, received } = done;
    let (length, sha256) = tokio::task::spawn_blocking(move || file::digest(received)).await??;
    let intact = sha256 == sample.sha256() && ByteCount(length) == sample.size();
    Ok(Row {
        direction: course.direction().to_owned(),
        ip: course.ip(),
        strategy,
        bytes: length,
        seconds: duration.as_secs_f64(),
        bits_per_second: Rate::from_bytes_over(ByteCount(length), duration).bits_per_sec(),
        retransmissions,
        rtt_ms: rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
        sha256,
        intact,
    })
}
