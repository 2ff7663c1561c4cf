//! A long transfer with each new strategy over random loss; every byte is compared.

use airtcp_link::{Link, Way};
use airtcp_recovery::Combination;
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use serde::Serialize;

use crate::prelude::*;
use crate::real::{self, Tcp, host};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/long-haul",
    what: "256 MiB to Linux through 1 % loss, five senders, every byte compared",
    source: "all data arrives unchanged, and at most 1.5 times the lost bytes are retransmitted",
    ground: Ground::Real,
    seconds: 180,
    seeds: 1,
    body,
    ..Experiment::CHECK
};

/// `le:echo` falls back to `le`, because Linux does not echo transmission numbers.
const SENDERS: [&str; 5] =
    ["le/cubic", "le:echo/cubic", "sack/reno/dcr:timer", "sack/westwood", "rack/cubic"];
/// The path is short, so that the small windows under random loss still carry much data.
const LINK: &str = "rate 100mbit delay 1ms limit 100 loss 1% only payload";
const BACK: &str = "rate 100mbit delay 1ms limit 1000";
const SIZE: ByteCount = ByteCount(256 << 20);
/// The maximum ratio of retransmitted bytes to lost bytes.
const MOST: f64 = 1.5;
/// Ten times the usual duration.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    sender: &'a str,
    /// The combination after the negotiation.
    combination: &'a str,
    bytes: u64,
    seconds: f64,
    goodput: f64,
    /// The packets that were lost at random, and those that the queue dropped.
    lost: u64,
    queue_dropped: u64,
    /// The payload of a full segment.
    smss: u64,
    retransmitted_bytes: u64,
    timeouts: u64,
    /// The 99th percentile of the link's packet lateness, in seconds.
    lateness: f64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    run.may_run()?;
    let mut findings = Findings::new(
        "sender | combination | s | Mbit/s | lost, KiB | sent again, KiB | over lost | time-outs",
    );
    let size = ByteCount(run.scaled(SIZE.0));
    let mut points = Vec::new();
    for (number, sender) in (1u32..).zip(SENDERS) {
        for seed in 1..=run.seeds {
            let hauled = haul(sender, size, seed)?;
            findings.record(&hauled.record(sender, size, seed))?;
            let ratio = hauled.ratio();
            findings.table.row([
                sender.to_owned(),
                hauled.combination.clone(),
                format!("{:.1}", hauled.time.as_secs_f64()),
                format!("{:.2}", hauled.goodput(size) * 1e-6),
                (hauled.lost_bytes() / 1024).to_string(),
                (hauled.retransmitted.0 / 1024).to_string(),
                format!("{ratio:.3}"),
                hauled.timeouts.to_string(),
            ]);
            findings.claim(
                format!("{sender}: bytes sent again over bytes lost, seed {seed}"),
                "under 1.5",
                format!("{ratio:.3}"),
                if ratio >= MOST && !hauled.is_in_time {
                    // Lateness can cause additional retransmissions.
                    real::late(1, 1)
                } else {
                    Verdict::of(ratio < MOST, theory::unknown)
                },
            );
            points.push(draw::point(f64::from(number), ratio));
        }
    }
    findings.note(format!(
        "{size} bytes each, over {LINK}, seeds apart. The receiver is the kernel's TCP, and the application behind it compares \
         every byte: one that differs ends the experiment with an error. Lost are the packets that the channel lost or \
         its queue dropped, each taken as a full segment."
    ));
    let names: Vec<_> = (1..).zip(SENDERS).map(|(n, sender)| format!("{n} {sender}")).collect();
    let (x, y) = (draw::linear(&names.join(", ")), draw::linear("ratio"));
    let title = "Bytes sent again over bytes lost";
    let series = [draw::series("256 MiB, 1 % loss", Style::Marks, points)];
    findings.picture("long-haul", draw::figure(title, x, y, series));
    Ok(findings)
}

/// The results of one transfer.
struct Hauled {
    combination: String,
    time: Duration,
    retransmitted: ByteCount,
    smss: ByteCount,
    timeouts: u64,
    lost: u64,
    queue_dropped: u64,
    lateness: f64,
    is_in_time: bool,
}

impl Hauled {
    fn lost_bytes(&self) -> u64 {
        (self.lost + self.queue_dropped) * self.smss.0
    }

    fn ratio(&self) -> f64 {
        self.retransmitted.0 as f64 / self.lost_bytes().max(1) as f64
    }

    fn goodput(&self, size: ByteCount) -> f64 {
        size.0 as f64 * 8.0 / self.time.as_secs_f64()
    }

    fn record<'a>(&'a self, sender: &'a str, size: ByteCount, seed: u64) -> Record<'a> {
        Record {
            seed,
            sender,
            combination: &self.combination,
            bytes: size.0,
            seconds: self.time.as_secs_f64(),
            goodput: self.goodput(size),
            lost: self.lost,
            queue_dropped: self.queue_dropped,
            smss: self.smss.0,
            retransmitted_bytes: self.retransmitted.0,
            timeouts: self.timeouts,
            lateness: self.lateness,
        }
    }
}

fn haul(sender: &str, size: ByteCount, seed: u64) -> Result<Hauled, LabError> {
    let combination: Combination = sender.parse().expect("a name of the registry");
    let [forth, back] = [feed::spec(&format!("{LINK} seed {seed}"))?, feed::spec(BACK)?];
    let link = Link::new(&forth, &back)?;
    let left = host(&Tcp::Ours(combination, Profile::modern()));
    let dumbbell = Dumbbell::build(Plan::new(left, link, Host::Kernel))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LabError::Transfer)?;
    let delivered = runtime
        .block_on(async { tokio::time::timeout(PATIENCE, dumbbell.deliver(size)).await? })
        .map_err(LabError::Transfer)?;
    let link = dumbbell.counters(Way::Forth);
    let timeouts = dumbbell.left().stack().map_or(0, |stack| stack.counters().tcp_ext_timeouts);
    let lateness = dumbbell.lateness().percentile(99.0).as_secs_f64();
    dumbbell.stop()?;
    Ok(Hauled {
        combination: delivered.info.combination,
        time: delivered.time,
        retransmitted: delivered.info.bytes_retrans,
        smss: delivered.info.mss,
        timeouts,
        lost: link.channel_lost,
        queue_dropped: link.queue_dropped,
        lateness,
        is_in_time: real::is_in_time(lateness, &forth, &back),
    })
}
