//! A mobile that is out of reach for a while during a transfer from Linux, with real packets.

use std::sync::{Arc, Mutex, PoisonError};

use airtcp_basestation::Policy;
use airtcp_basestation::station::Status;
use airtcp_link::{Arq, Way};
use airtcp_testbed::dumbbell::Dumbbell;
use airtcp_testbed::{Arrivals, Course, Stream};
use airtcp_trace::figure::Point;
use airtcp_types::{Instant, Rate};
use serde::Serialize;

use super::fixed_host::{Left, SsFields, Watcher};
use super::real_path::{Middle, Mobile, Path, in_time, is_in_time, radio, side_by_side};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/disconnect",
    what: "Real packets from Linux to a mobile that is away for 10 and 30 s",
    source: "TCP-ECN 7.3, Fig. 20: the sender resumes at its former rate",
    ground: Ground::Real,
    seconds: 210,
    seeds: 5,
    body,
    ..Experiment::STUDY
};

/// 802.11b without errors: only the outage disturbs the transfer.
const RADIO: &str = "error 0%";
const CONGESTION: &str = "cubic";
const WARM_UP: Duration = Duration::from_secs(3);
/// The time over which the rate before the outage is measured.
const BEFORE: Duration = Duration::from_secs(4);
/// The times for which the mobile is out of reach, in seconds.
const AWAY: [u64; 2] = [10, 30];
/// The times between stopping the sender and the mobile's departure, in RTOs.
const LEADS: [f64; 5] = [0.0, 0.25, 0.5, 1.0, 2.0];
/// The maximum time to wait until the sender has recovered.
const PATIENCE: Duration = Duration::from_secs(45);
/// An idle application pauses for this time before the mobile leaves, and resumes this time after.
const PAUSED: Duration = Duration::from_secs(1);
/// The per cent of the rate before the outage at which the transfer has recovered.
const BACK: u64 = 90;
/// The time before the mobile's return at which the sender's state is read.
const LOOK: Duration = Duration::from_millis(200);

/// The way to handle the outage.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Stop {
    /// Nothing is done.
    Never,
    /// The sender is stopped this many RTOs ahead.
    Ahead(f64),
    /// The application pauses before the outage, so nothing is in flight; the policy may freeze the
    /// sender.
    Idle(Policy),
}

impl Stop {
    const fn policy(self) -> Policy {
        match self {
            Self::Never => Policy::Plain,
            Self::Ahead(_) => Policy::TcpEcn,
            Self::Idle(policy) => policy,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Never => "plain".to_owned(),
            Self::Ahead(rtos) => format!("tcp-ecn, {rtos} RTO ahead"),
            Self::Idle(policy) => format!("{}, idle", policy.name()),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    stop: Stop,
    away: u64,
    seed: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Record {
    seed: u64,
    stop: String,
    /// In seconds.
    away: u64,
    /// The goodput before the stop, in bit/s.
    goodput: u64,
    /// In seconds.
    lead: f64,
    /// The time from the mobile's return to nine tenths of the former rate, in seconds.
    back_after: Option<f64>,
    /// The same for new data that leaves the sender, which excludes the data that the station held.
    sender_back_after: Option<f64>,
    /// The number of retransmitted segments from the stop on.
    retransmissions: u64,
    timeouts: u64,
    loss_probes: u64,
    /// The sender's state before the outage, during it, and after the rate has recovered.
    before: SsFields,
    gone: SsFields,
    after: SsFields,
    /// The segments that left the sender during the outage: new ones, retransmissions, and probes.
    sent_new: u64,
    sent_again: u64,
    probes: u64,
    /// The times when the first retransmissions and probes left, in seconds after the mobile's
    /// departure.
    sent_at: Vec<f64>,
    lost: u64,
    /// Packets dropped because the radio's queue was full, from the stop on.
    queue_dropped: u64,
    /// Segments that the mobile rejected because of their timestamps.
    refused: u64,
    held: u64,
    frozen: u64,
    made: u64,
    /// In seconds.
    lateness: f64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let stops = std::iter::once(Stop::Never)
        .chain(LEADS.map(Stop::Ahead))
        .chain([Policy::Plain, Policy::TcpEcn].map(Stop::Idle));
    let stops: Vec<Stop> =
        if run.is_small { vec![Stop::Never, Stop::Ahead(1.0)] } else { stops.collect() };
    let away: &[u64] = if run.is_small { &[1] } else { &AWAY };
    // The longest cases run first, so that the lanes finish at about the same time.
    let mut cases = Vec::new();
    for away in away.iter().rev() {
        for stop in &stops {
            cases.extend((1..=run.seeds).map(|seed| Case { stop: *stop, away: *away, seed }));
        }
    }
    let records =
        side_by_side(run, &cases, |case| in_time(|| case.run(run), |record| record.lateness))?;
    let mut findings = Findings::new(
        "gone | sender stopped | back after, s | the sender, s | sent again | time-outs | tail probes | \
         sent while gone: new, again, probes | held | dropped by the radio's queue | timer while gone | \
         RTO before, gone, after, ms | cwnd before, gone, after | ssthresh after | rate, Mbit/s",
    );
    for record in &records {
        findings.record(record)?;
    }
    // A late path differs from its description, so late runs do not count. A small run makes no
    // claims and keeps them.
    let (records, late): (Vec<_>, Vec<_>) =
        records.into_iter().partition(|one| run.is_small || is_in_time(one.lateness));
    let late = late.len();
    let mut series = Vec::new();
    for (number, stop) in (1u32..).zip(&stops) {
        let mut points = Vec::new();
        for away in away {
            let name = stop.name();
            let of: Vec<&Record> = records
                .iter()
                .filter(|record| record.stop == name && record.away == *away)
                .collect();
            row(&mut findings, *away, &name, &of);
            if let Some(spread) = Spread::of(of.iter().map(|record| record.back_after)) {
                let Spread { low, median: y, high } = spread;
                let x = *away as f64 + f64::from(number) * 0.4;
                points.push(Point {
                    x,
                    y: y.max(FLOOR),
                    low: Some(low.max(FLOOR)),
                    high: Some(high),
                });
            }
        }
        series.push(draw::series(stop.name(), Style::Marks, points));
    }
    let (x, y) = (
        draw::linear("seconds that the mobile was gone (side by side)"),
        draw::log(&format!("seconds; median and range ({FLOOR} stands for less)")),
    );
    let title = "From the mobile's return to 90 % of the former rate";
    findings.picture("disconnect", draw::figure(title, x, y, series));
    if !run.is_small {
        claim(&mut findings, &records);
    }
    for away in away.iter().filter(|_| !run.is_small) {
        let is_clean = |lead: &f64| {
            let name = Stop::Ahead(*lead).name();
            let mut of = records.iter().filter(|r| r.stop == name && r.away == *away).peekable();
            of.peek().is_some() && of.all(|record| record.retransmissions == 0)
        };
        let least = LEADS.into_iter().find(is_clean);
        let least = least.map_or_else(|| "none".to_owned(), |lead| format!("{lead} RTO"));
        findings.note(format!(
            "The shortest lead of those tried with which no run sent anything again in {away} s: {least}."
        ));
    }
    findings.note(format!(
        "802.11b without errors, 20 ms of wire each way, Linux' {CONGESTION}, our mark-aware mobile with tcp-ecn. Medians of \
         {} runs, and their range. Back: 90 % of the rate of the 4 s before, over half a second; what the station held counts. The sender: the same of new data that leaves it. Sent again, time-outs and \
         tail probes (TCPLossProbes) are counted from the stop on. Idle: the application pauses, and goes on 1 s after the \
         mobile has gone. What ss says is of the first run. {late} runs were late and do not count.",
        run.seeds
    ));
    Ok(findings)
}

/// The position of zero on a logarithmic axis.
const FLOOR: f64 = 0.02;

/// The range and the median of several runs.
#[derive(Clone, Copy, Debug)]
struct Spread {
    low: f64,
    median: f64,
    high: f64,
}

impl Spread {
    /// Returns `None` if there are no runs. A run that did not recover counts with [`PATIENCE`].
    fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let mut values: Vec<f64> =
            values.map(|value| value.unwrap_or(PATIENCE.as_secs_f64())).collect();
        values.sort_by(f64::total_cmp);
        let median = *values.get(values.len() / 2)?;
        Some(Self { low: *values.first()?, median, high: *values.last()? })
    }
}

fn row(findings: &mut Findings, away: u64, name: &str, of: &[&Record]) {
    let Some(first) = of.first() else { return };
    let spread = |value: &dyn Fn(&Record) -> f64, decimals: usize| {
        let spread = Spread::of(of.iter().map(|record| Some(value(record))));
        spread.map_or_else(String::new, |Spread { low, median, high }| {
            format!("{median:.decimals$} ({low:.decimals$} to {high:.decimals$})")
        })
    };
    let median = |value: &dyn Fn(&Record) -> u64| {
        let spread = Spread::of(of.iter().map(|record| Some(value(record) as f64)));
        spread.map_or_else(String::new, |spread| format!("{:.0}", spread.median))
    };
    let Record { before, gone, after, .. } = first;
    findings.table.row([
        format!("{away} s"),
        name.to_owned(),
        spread(&|r| r.back_after.unwrap_or(PATIENCE.as_secs_f64()), 2),
        spread(&|r| r.sender_back_after.unwrap_or(PATIENCE.as_secs_f64()), 2),
        spread(&|r| r.retransmissions as f64, 0),
        spread(&|r| r.timeouts as f64, 0),
        median(&|r| r.loss_probes),
        format!(
            "{}, {}, {}",
            median(&|r| r.sent_new),
            median(&|r| r.sent_again),
            median(&|r| r.probes)
        ),
        median(&|r| r.held),
        median(&|r| r.queue_dropped),
        gone.text("timer").to_owned(),
        format!("{}, {}, {}", before.text("rto"), gone.text("rto"), after.text("rto")),
        format!("{}, {}, {}", before.text("cwnd"), gone.text("cwnd"), after.text("cwnd")),
        after.text("ssthresh").to_owned(),
        format!("{:.2}", first.goodput as f64 / 1e6),
    ]);
}

/// The paper has no such run: its claims about disconnections are beside it.
fn claim(findings: &mut Findings, records: &[Record]) {
    let back = |stop: Stop, away: u64| {
        let name = stop.name();
        let of = records.iter().filter(|record| record.stop == name && record.away == away);
        Spread::of(of.map(|record| record.back_after))
    };
    for away in AWAY {
        let pairs = [
            ("stopped one RTO ahead", Stop::Never, Stop::Ahead(1.0)),
            ("idle, held", Stop::Idle(Policy::Plain), Stop::Idle(Policy::TcpEcn)),
        ];
        for (what, without, with) in pairs {
            let (Some(without), Some(with)) = (back(without, away), back(with, away)) else {
                continue;
            };
            findings.claim_beside(
                format!("{what}: back sooner than without, after {away} s"),
                "sooner",
                format!("{:.2} s, and {:.2} s without", with.median, without.median),
                match (with.high < without.low, with.low > without.high) {
                    (true, _) => Verdict::Holds,
                    (_, true) => {
                        Verdict::DoesNotHold("every run without it resumed sooner".to_owned())
                    }
                    _ => Verdict::NotComparable("the ranges of the runs overlap".to_owned()),
                },
            );
        }
        let name = Stop::Ahead(1.0).name();
        let mut of =
            records.iter().filter(|record| record.stop == name && record.away == away).peekable();
        if of.peek().is_none() {
            continue;
        }
        let timeouts: u64 = of.clone().map(|record| record.timeouts).sum();
        let again: u64 = of.map(|record| record.retransmissions).sum();
        findings.claim_beside(
            format!("stopped one RTO ahead: the sender sees no loss in {away} s (7.3)"),
            "its window is not affected",
            format!("{timeouts} time-outs, {again} segments sent again, all runs together"),
            Verdict::of(timeouts + again == 0, || {
                "guess: segments were still in flight when the mobile left".to_owned()
            }),
        );
    }
}

impl Case {
    fn run(&self, run: &Run) -> Result<Record, LabError> {
        let path = Path {
            radio: radio(&format!("{RADIO} seed {}", self.seed))?,
            arq: Arq::MacLink,
            policy: self.stop.policy(),
            mobile: Mobile::Ours,
            is_bare: false,
        };
        let watcher = Arc::new(Mutex::new(Watcher::new(Dumbbell::LEFT)));
        let dumbbell = path.build(Some(watcher.clone()))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::Transfer)?;
        let (mut record, [gone, back]) = runtime.block_on(self.send(run, &dumbbell, &watcher))?;
        dumbbell.stop()?;
        let watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let while_gone: Vec<&Left> =
            watcher.left.iter().filter(|left| (gone..back).contains(&left.at)).collect();
        let count =
            |is: fn(&Left) -> bool| while_gone.iter().filter(|left| is(left)).count() as u64;
        record.sent_new = count(|left| left.is_new);
        record.probes = count(|left| left.is_probe);
        record.sent_again = count(|left| !left.is_new && !left.is_probe);
        let asking = while_gone.iter().filter(|left| !left.is_new);
        record.sent_at = asking.take(12).map(|left| left.at.since(gone).as_secs_f64()).collect();
        Ok(record)
    }

    /// Runs the transfer. Returns its record, and the times when the mobile left and returned.
    async fn send(
        &self,
        run: &Run,
        dumbbell: &Dumbbell<Middle>,
        watcher: &Mutex<Watcher>,
    ) -> Result<(Record, [Instant; 2]), LabError> {
        let (warm_up, before) = match run.is_small {
            true => (Duration::from_millis(200), Duration::from_millis(500)),
            false => (WARM_UP, BEFORE),
        };
        let sender = dumbbell.left().namespace();
        let counter = |name| sender.tcp_counter(name).map_err(LabError::Transfer);
        let course =
            Course { way: Way::Forth, is_ipv6: false, congestion: Some(CONGESTION.to_owned()) };
        let mut stream = dumbbell.stream(&course).await.map_err(LabError::Transfer)?;
        stream.wait(warm_up).await.map_err(LabError::Transfer)?;
        let mut arrivals = Arrivals::of(&stream);
        follow(&mut stream, &mut arrivals, before).await?;
        let rate = arrivals.rate(Duration::ZERO, arrivals.now());
        let ss_before = SsFields::of(sender)?;
        let rto = Duration::from_secs_f64(ss_before.number("rto").unwrap_or(0.0) / 1e3);
        if let Stop::Idle(_) = self.stop {
            stream.set_going(false);
            // Wait until the send buffer is empty; the radio's rate limits this.
            while stream.written() > stream.arrived() {
                follow(&mut stream, &mut arrivals, Duration::from_millis(100)).await?;
            }
            follow(&mut stream, &mut arrivals, PAUSED).await?;
        }
        let again = sender.retransmissions().map_err(LabError::Transfer)?;
        let timeouts = sender.timeouts().map_err(LabError::Transfer)?;
        let loss_probes = counter("TCPLossProbes")?;
        let drops = |middle: &mut Middle, _| middle.far.radio().counters(Way::Forth).queue_dropped;
        let queue_dropped = dumbbell.act(drops);
        let lead = match self.stop {
            Stop::Ahead(rtos) => rto.mul_f64(rtos),
            Stop::Never | Stop::Idle(_) => Duration::ZERO,
        };
        if !lead.is_zero() {
            dumbbell.act(|middle, now| middle.far.freeze(now));
            follow(&mut stream, &mut arrivals, lead).await?;
        }
        let gone = dumbbell.act(|middle, now| {
            middle.far.disconnect(now);
            now
        });
        let mut away = Duration::from_secs(self.away);
        if let Stop::Idle(_) = self.stop {
            follow(&mut stream, &mut arrivals, PAUSED).await?;
            stream.set_going(true);
            away -= PAUSED;
        }
        follow(&mut stream, &mut arrivals, away.saturating_sub(LOOK)).await?;
        let ss_gone = SsFields::of(sender)?;
        follow(&mut stream, &mut arrivals, LOOK).await?;
        let back = dumbbell.act(|middle, now| {
            middle.far.reconnect(now);
            now
        });
        let since = arrivals.now();
        let former = Rate::from_bits_per_sec(rate.bits_per_sec() * BACK / 100);
        let (mut back_after, mut sender_back_after) = (None, None);
        while (back_after.is_none() || sender_back_after.is_none())
            && arrivals.now() < since + PATIENCE
        {
            follow(&mut stream, &mut arrivals, Duration::from_millis(500)).await?;
            back_after = arrivals.has_rate_after(since, former);
            let now = dumbbell.act(|_, now| now);
            let watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
            sender_back_after = watcher.has_rate_after(back, former, now);
        }
        let ss_after = SsFields::of(sender)?;
        let status: Status = dumbbell.act(|middle, now| middle.far.status(now));
        let radio = &status.radio[Way::Forth as usize];
        let lateness = dumbbell.lateness().percentile(99.0).as_secs_f64();
        let record = Record {
            seed: self.seed,
            stop: self.stop.name(),
            away: self.away,
            goodput: rate.bits_per_sec(),
            lead: lead.as_secs_f64(),
            back_after: back_after.map(|time| time.as_secs_f64()),
            sender_back_after: sender_back_after.map(|time| time.as_secs_f64()),
            retransmissions: sender.retransmissions().map_err(LabError::Transfer)? - again,
            timeouts: sender.timeouts().map_err(LabError::Transfer)? - timeouts,
            loss_probes: counter("TCPLossProbes")? - loss_probes,
            before: ss_before,
            gone: ss_gone,
            after: ss_after,
            sent_new: 0,
            sent_again: 0,
            probes: 0,
            sent_at: Vec::new(),
            lost: radio.channel_lost + radio.disconnected,
            queue_dropped: radio.queue_dropped - queue_dropped,
            refused: dumbbell.right().stack().map_or(0, |s| s.counters().tcp_ext_paws_estab),
            held: status.counters.held,
            frozen: status.counters.frozen,
            made: status.counters.made,
            lateness,
        };
        Ok((record, [gone, back]))
    }
}

async fn follow(
    stream: &mut Stream,
    arrivals: &mut Arrivals,
    time: Duration,
) -> Result<(), LabError> {
    stream.follow(time, arrivals).await.map_err(LabError::Transfer)
}
