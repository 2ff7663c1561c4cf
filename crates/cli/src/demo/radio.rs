//! `airtcp demo --radio`: a Linux sender, a base station, and a mobile that is out of reach for a
//! while, once per policy of the base station.
//!
//! Packets are real. The policies run in parallel, each in network namespaces of its own: a radio
//! of 11 Mbit/s does not keep a processor busy.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use airtcp_basestation::station::{StationCounters, Status};
use airtcp_basestation::{Policy, Station, StationConfig};
use airtcp_link::{Link, LinkSpec, Way};
use airtcp_stack::HostConfig;
use airtcp_stack::tcp::MarkAware;
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{Arrivals, Course, Ended, requirements};
use airtcp_trace::NodeKind;
use airtcp_types::{Chain, Rate};
use anyhow::{Context, anyhow};
use tokio::runtime::Builder;

use super::directory;
use super::radio_report::{Report, Row};
use crate::args::DemoArgs;
use crate::output;
use crate::record::Recording;

/// The congestion control of the kernel's sender.
const CONGESTION: &str = "cubic";
/// The compared policies, with the same link-layer retransmission.
const POLICIES: [Policy; 3] = [Policy::Plain, Policy::Snoop, Policy::TcpEcn];
/// The link between the fixed host and the base station.
pub(super) const WIRE: &str = "rate 100mbit delay 20ms limit 1000";
/// The time at the start that is not measured: slow start fills the radio's queue.
const WARM_UP: Duration = Duration::from_secs(2);
/// How long before the outage the base station closes the senders' windows, about their
/// retransmission time-out: the ACK reaches the sender, and the data in flight the mobile.
pub(super) const LEAD: Duration = Duration::from_millis(500);
/// The share of the former rate, in per cent, at which a flow counts as recovered.
pub(super) const BACK: u64 = 90;
/// A station that delivers more than one packet in a hundred later than this does not match its
/// description.
const LATE: Duration = Duration::from_millis(4);

/// The node between the hosts.
type Middle = Chain<Link, Station>;

/// Runs the policies, and prints the results.
///
/// # Errors
/// Network namespaces are unavailable; a transfer fails; the picture cannot be written.
pub(super) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    // Before anything else: a process with several threads cannot enter a user namespace.
    airtcp_testbed::enter_user_namespace_if_needed()
        .and_then(|()| requirements())
        .context("--radio sends real packets")?;
    let mut runs = Vec::new();
    for policy in POLICIES {
        match Run::new(args, policy) {
            Ok(run) => runs.push(run),
            Err(error) => output::note(format_args!("note: left out: {}", output::explain(&error))),
        }
    }
    let directory = directory(args)?;
    let whole = WARM_UP + args.phase() * 2 + LEAD + args.away;
    output::note(format_args!(
        "{} policies side by side, for {:.0} s: {:.0} s over the radio, then the mobile is out of reach for {} s",
        runs.len(),
        whole.as_secs_f64(),
        (WARM_UP + args.phase()).as_secs_f64(),
        args.away.as_secs_f64(),
    ));
    let recording = match &args.trace {
        Some(directory) => {
            let nodes = [
                ("fixed host", NodeKind::Host),
                ("base station", NodeKind::Other),
                ("mobile", NodeKind::Host),
            ];
            Some(Recording::start(directory, "a base station", &nodes)?)
        }
        None => None,
    };
    let recorded = runs.last().map(|run| run.policy);
    let done = thread::scope(|scope| {
        let threads: Vec<_> = runs
            .into_iter()
            .map(|run| {
                // Only the last run is recorded.
                let is_recorded = Some(run.policy) == recorded;
                let recording = recording.as_ref().filter(|_| is_recorded);
                (run.policy, scope.spawn(move || run.make(recording)))
            })
            .collect();
        let joined = threads.into_iter().map(|(policy, thread)| {
            let made = thread.join().map_err(|_| anyhow!("its thread panicked"));
            made.flatten().with_context(|| format!("with the policy {}", policy.name()))
        });
        joined.collect::<anyhow::Result<Vec<_>>>()
    })?;
    if let Some(recording) = recording {
        recording.finish()?;
    }
    report(args, &directory, &done)
}

fn report(args: &DemoArgs, directory: &Path, done: &[Done]) -> anyhow::Result<()> {
    if let Some(late) = done.iter().map(|done| done.lateness).max().filter(|late| *late > LATE) {
        output::note(format_args!(
            "note: 1 % of the packets were late by {:.1} ms or more: this machine is busy, and the figures are \
             those of a slower path",
            late.as_secs_f64() * 1e3
        ));
    }
    let mut report = Report::new(args);
    report.rows = done.iter().map(Done::row).collect();
    let curves = done.iter().map(|done| (done.policy.name(), &done.arrivals));
    let path: PathBuf = directory.join("arrivals.svg");
    std::fs::write(&path, report.figure(curves, WARM_UP).to_svg())
        .with_context(|| format!("writing {}", path.display()))?;
    report.picture = path;
    output::print_result(&report, args.json)
}

/// A run with one policy, ready to start.
struct Run<'a> {
    policy: Policy,
    args: &'a DemoArgs,
    middle: Middle,
}

/// The results of a run.
struct Done {
    policy: Policy,
    /// After the warm-up.
    arrivals: Arrivals,
    before: Rate,
    back_after: Option<Duration>,
    ended: Ended,
    timeouts: u64,
    status: Status,
    lateness: Duration,
}

impl<'a> Run<'a> {
    fn new(args: &'a DemoArgs, policy: Policy) -> anyhow::Result<Self> {
        let config = StationConfig {
            radio: args.radio_spec(),
            arq: args.arq,
            policy,
            ..StationConfig::default()
        };
        let station = Station::new(&config)?;
        let wire: LinkSpec = WIRE.parse()?;
        Ok(Self { policy, args, middle: Chain::new(Link::new(&wire, &wire)?, station) })
    }

    /// Builds the network, runs the transfer, and removes the network.
    fn make(self, recording: Option<&Recording>) -> anyhow::Result<Done> {
        let mut config = HostConfig::new([]);
        config.tcp.mark_aware = (self.policy == Policy::TcpEcn).then(MarkAware::default);
        config.events = recording.is_some();
        let set_events = |middle: &mut Middle, on| {
            middle.near.set_events(on);
            middle.far.set_events(on);
        };
        let mobile = Host::Stack(Box::new(config));
        let Self { policy, args, middle } = self;
        let mut plan = Plan::over(Host::Kernel, middle, mobile, set_events);
        if let Some(recording) = recording {
            plan.clock = recording.clock();
            plan.observer = Some(recording.observer());
        }
        let dumbbell = Dumbbell::build(plan)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let done =
            runtime.block_on(send(&dumbbell, policy, args)).context("the transfer failed")?;
        dumbbell.stop()?;
        Ok(done)
    }
}

async fn send(
    dumbbell: &Dumbbell<Middle>,
    policy: Policy,
    args: &DemoArgs,
) -> anyhow::Result<Done> {
    let phase = args.phase();
    let course =
        Course { way: Way::Forth, is_ipv6: false, congestion: Some(CONGESTION.to_owned()) };
    let mut stream = dumbbell.stream(&course).await?;
    stream.wait(WARM_UP).await?;
    let mut arrivals = Arrivals::of(&stream);
    stream.follow(phase, &mut arrivals).await?;
    let before = arrivals.rate(Duration::ZERO, arrivals.now());
    dumbbell.act(|middle, now| middle.far.freeze(now));
    stream.follow(LEAD, &mut arrivals).await?;
    dumbbell.act(|middle, now| middle.far.disconnect(now));
    stream.follow(args.away, &mut arrivals).await?;
    dumbbell.act(|middle, now| middle.far.reconnect(now));
    let back = arrivals.now();
    stream.follow(phase, &mut arrivals).await?;
    let back_after =
        arrivals.has_rate_after(back, Rate::from_bits_per_sec(before.bits_per_sec() * BACK / 100));
    let status = dumbbell.act(|middle, now| middle.far.status(now));
    let ended = stream.end().await?;
    let timeouts = dumbbell.left().namespace().timeouts()?;
    let lateness = dumbbell.lateness().percentile(99.0);
    Ok(Done { policy, arrivals, before, back_after, ended, timeouts, status, lateness })
}

impl Done {
    fn row(&self) -> Row {
        let StationCounters { marked, hidden, sent_again, frozen, made, held, probes, .. } =
            self.status.counters;
        let radio = &self.status.radio[Way::Forth as usize];
        Row {
            policy: self.policy.name(),
            sender: self.ended.sender.clone(),
            goodput: self.before.bits_per_sec(),
            retransmissions: self.ended.retransmissions,
            timeouts: self.timeouts,
            lost: radio.channel_lost,
            lost_while_gone: radio.disconnected,
            queue_dropped: radio.queue_dropped,
            reordered: radio.reordered,
            back_after: self.back_after.map(|time| time.as_secs_f64()),
            marked,
            hidden,
            sent_again,
            frozen,
            made,
            held,
            probes,
            lateness: self.lateness.as_secs_f64(),
        }
    }
}
