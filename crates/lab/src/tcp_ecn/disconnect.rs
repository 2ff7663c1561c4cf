//! A mobile that is out of reach for a while during a transfer from Linux, with real packets.

use std::sync::{Arc, Mutex, PoisonError};

use airtcp_basestation::Policy;
use airtcp_basestation::station::Status;
use airtcp_link::{Arq, Way};
use airtcp_testbed::dumbbell::Dumbbell;
use airtcp_testbed::{Arrivals, Course, Stream};
use airtcp_trace::figure::Point;
use airtcp_types::{Instant, Rate};

use super::fixed_host::{Left, SsFields, Watcher};
use super::real_path::{Middle, Mobile, Path, measure, radio, timely};
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
            cases.push(Case { stop: *stop, away: *away });
        }
    }
    let mut findings = Findings::new(
        "gone | sender stopped | back after, s | the sender, s | sent again | time-outs | tail probes | \
         sent while gone: new, again, probes | held | dropped by the radio's queue | timer while gone | \
         RTO before, gone, after, ms | cwnd before, gone, after | ssthresh after | rate, Mbit/s",
    );
    let place = |case: &Case| fields! { stop: case.stop.name(), away: case.away };
    let samples = measure(run, &mut findings, &cases, place, |case, seed| case.run(run, seed))?;
    let count = |of: &[Sample]| of.iter().map(|of| of.runs().count()).sum::<usize>();
    let all = count(&samples);
    // Late runs do not count. A small run makes no claims and keeps them.
    let samples: Vec<_> =
        samples.into_iter().map(|of| if run.is_small { of } else { timely(&of) }).collect();
    let late = all - count(&samples);
    let sample = |stop: Stop, away: u64| {
        let at = cases.iter().position(|case| (case.stop, case.away) == (stop, away));
        at.map_or_else(|| Sample(Vec::new()), |at| samples[at].clone())
    };
    let mut series = Vec::new();
    for (number, stop) in (1u32..).zip(&stops) {
        let mut points = Vec::new();
        for away in away {
            let of = sample(*stop, *away);
            row(&mut findings, *away, &stop.name(), &of);
            if let Some(spread) = Spread::late(&of, "back_after") {
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
    let title = "From the mobile's return to 90 % of the former rate";
    findings.plot(
        "disconnect",
        title,
        (
            draw::linear("seconds that the mobile was gone (side by side)"),
            draw::log(&format!("seconds; median and range ({FLOOR} stands for less)")),
        ),
        series,
    );
    if !run.is_small {
        claim(&mut findings, sample);
    }
    for away in away.iter().filter(|_| !run.is_small) {
        let is_clean = |lead: &f64| {
            let of = sample(Stop::Ahead(*lead), *away).values("retransmissions");
            !of.is_empty() && of.iter().all(|count| *count == 0.0)
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
    /// Returns the spread of a time; a run without one, which did not recover, counts with
    /// [`PATIENCE`].
    fn late(of: &Sample, field: &str) -> Option<Self> {
        Self::of(of.of(|run| run.number(field).or(Some(PATIENCE.as_secs_f64()))))
    }

    /// Returns `None` if there are no runs.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let median = *values.get(values.len() / 2)?;
        Some(Self { low: *values.first()?, median, high: *values.last()? })
    }
}

fn row(findings: &mut Findings, away: u64, name: &str, of: &Sample) {
    let Some(first) = of.runs().next() else { return };
    let show = |spread: Option<Spread>, decimals: usize| {
        spread.map_or_else(String::new, |Spread { low, median, high }| {
            format!("{median:.decimals$} ({low:.decimals$} to {high:.decimals$})")
        })
    };
    let spread = |field| show(Spread::of(of.values(field)), 0);
    let median = |field| {
        let spread = Spread::of(of.values(field));
        spread.map_or_else(String::new, |spread| format!("{:.0}", spread.median))
    };
    // `ss` leaves out what is zero.
    let ss = |when: &str, name: &str| {
        let value = first.get(&format!("{when}.{name}"));
        value.map_or_else(|| "-".to_owned(), ToString::to_string)
    };
    let each = |name| ["before", "gone", "after"].map(|when| ss(when, name)).join(", ");
    findings.table.row([
        format!("{away} s"),
        name.to_owned(),
        show(Spread::late(of, "back_after"), 2),
        show(Spread::late(of, "sender_back_after"), 2),
        spread("retransmissions"),
        spread("timeouts"),
        median("loss_probes"),
        ["sent_new", "sent_again", "probes"].map(median).join(", "),
        median("held"),
        median("queue_dropped"),
        ss("gone", "timer"),
        each("rto"),
        each("cwnd"),
        ss("after", "ssthresh"),
        format!("{:.2}", first.number("goodput").unwrap_or_default() / 1e6),
    ]);
}

/// The paper has no such run: its claims about disconnections are beside it.
fn claim(findings: &mut Findings, sample: impl Fn(Stop, u64) -> Sample) {
    let back = |stop: Stop, away: u64| Spread::late(&sample(stop, away), "back_after");
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
        let of = sample(Stop::Ahead(1.0), away);
        if of.runs().next().is_none() {
            continue;
        }
        let [timeouts, again] = ["timeouts", "retransmissions"].map(|field| of.sum(field));
        findings.claim_beside(
            format!("stopped one RTO ahead: the sender sees no loss in {away} s (7.3)"),
            "its window is not affected",
            format!("{timeouts} time-outs, {again} segments sent again, all runs together"),
            Verdict::of(timeouts + again == 0.0, || {
                "guess: segments were still in flight when the mobile left".to_owned()
            }),
        );
    }
}

impl Case {
    fn run(&self, run: &Run, seed: u64) -> Result<Fields, LabError> {
        let path = Path {
            radio: radio(&format!("{RADIO} seed {seed}"))?,
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
        let ([first, rest], [gone, back]) =
            runtime.block_on(self.send(run, &dumbbell, &watcher))?;
        dumbbell.stop()?;
        let watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let while_gone: Vec<&Left> =
            watcher.left.iter().filter(|left| (gone..back).contains(&left.at)).collect();
        let count =
            |is: fn(&Left) -> bool| while_gone.iter().filter(|left| is(left)).count() as u64;
        let asking = while_gone.iter().filter(|left| !left.is_new);
        let sent = fields! {
            sent_new: count(|left| left.is_new),
            sent_again: count(|left| !left.is_new && !left.is_probe),
            probes: count(|left| left.is_probe),
            // The times of the first retransmissions and probes, after the mobile's departure.
            sent_at: asking
                .take(12)
                .map(|left| left.at.since(gone).as_secs_f64())
                .collect::<Vec<_>>(),
        };
        Ok(first.and(sent).and(rest))
    }

    /// Runs the transfer. Returns the first and the last part of its record, and the times when the
    /// mobile left and returned. Times are in seconds, and counts are from the stop on.
    async fn send(
        &self,
        run: &Run,
        dumbbell: &Dumbbell<Middle>,
        watcher: &Mutex<Watcher>,
    ) -> Result<([Fields; 2], [Instant; 2]), LabError> {
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
        let first = fields! {
            goodput: rate.bits_per_sec(),
            lead: lead.as_secs_f64(),
            back_after: back_after.map(|time| time.as_secs_f64()),
            // The same for new data that leaves the sender: without what the station held.
            sender_back_after: sender_back_after.map(|time| time.as_secs_f64()),
            retransmissions: sender.retransmissions().map_err(LabError::Transfer)? - again,
            timeouts: sender.timeouts().map_err(LabError::Transfer)? - timeouts,
            loss_probes: counter("TCPLossProbes")? - loss_probes,
            before: ss_before.fields(),
            gone: ss_gone.fields(),
            after: ss_after.fields(),
        };
        let rest = fields! {
            lost: radio.channel_lost + radio.disconnected,
            queue_dropped: radio.queue_dropped - queue_dropped,
            // Segments that the mobile refused because of their timestamps.
            refused: dumbbell.right().stack().map_or(0, |s| s.counters().tcp_ext_paws_estab),
            held: status.counters.held,
            frozen: status.counters.frozen,
            made: status.counters.made,
            lateness: dumbbell.lateness().percentile(99.0).as_secs_f64(),
        };
        Ok(([first, rest], [gone, back]))
    }
}

async fn follow(
    stream: &mut Stream,
    arrivals: &mut Arrivals,
    time: Duration,
) -> Result<(), LabError> {
    stream.follow(time, arrivals).await.map_err(LabError::Transfer)
}
