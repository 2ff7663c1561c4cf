//! Two points with real packets, compared with the simulator.

use airtcp_link::{Link, Way};
use airtcp_stack::HostConfig;
use airtcp_testbed::dumbbell::{Dumbbell, End, Host, Plan};
use airtcp_trace::figure::Axis;
use serde::Serialize;
use tokio::time::timeout;

use super::course::{Course, HACK, HACK_SACK, SACK, Sender};
use super::factor::NOT_ISOLATED;
use super::fig20;
use crate::prelude::*;
use crate::real;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/wire",
    what: "Points of hack/fig7 and fig20 with real packets and in the simulator",
    source: "HACK 3 and 5: the same stack over the same link in simulated and in real time",
    ground: Ground::Real,
    seconds: 400,
    seeds: 3,
    body,
    ..Experiment::STUDY
};

const POINTS: [(&str, Course); 2] = [
    ("random 6 %, 10 ms, header hit 0 %", Course { share: 6.0, ..Course::SHORT }),
    ("bursts of five at 5 %, 300 ms, header hit 95 %", fig20::COURSE),
];
const SENDERS: [Sender; 3] = [SACK, HACK, HACK_SACK];
/// The maximum number of runs of a transfer until its link is on time.
const TRIES: u32 = 3;
/// The maximum duration of a transfer, enough for several long time-outs.
const PATIENCE: Duration = Duration::from_secs(600);
/// The range of real over simulated durations.
const RATIO: (f64, f64) = (0.9, 1.1);

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    point: &'a str,
    sender: &'a str,
    profile: &'a str,
    /// `simulator` or `packets`.
    ground: &'static str,
    seconds: f64,
    goodput: f64,
    timeouts: f64,
    #[serde(flatten)]
    counted: Option<Counted>,
    /// The 99th percentile of the link's packet lateness, in seconds; only in real runs.
    lateness: Option<f64>,
}

/// The counters of the link and of the receiver.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counted {
    corrupted: u64,
    corrupted_header: u64,
    /// Corrupted packets that no checksum detects.
    unnoticed: u64,
    /// Corrupted packets that the receiver counted. The link also carries the kernels' ICMP, and
    /// the kernels drop packets with a bad IP header.
    arrived: u64,
    special_acks: u64,
    /// Corrupted segments whose data had already arrived in another copy.
    unanswered: u64,
}

/// One transfer with real packets.
struct Done {
    seconds: f64,
    timeouts: f64,
    counted: Counted,
    lateness: f64,
    is_in_time: bool,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    run.may_run()?;
    let mut findings = Findings::new(
        "link | sender | simulator, s | time-outs | packets, s | time-outs | ratio of seconds | corrupted | \
         header hit | special ACKs",
    );
    let mut series = Vec::new();
    // A small run has only the first point, which is short.
    for (point, course) in &POINTS[..if run.is_small { 1 } else { POINTS.len() }] {
        let (mut packets, mut simulator) = (Vec::new(), Vec::new());
        let mut total = Counted::default();
        for (number, sender) in (1u32..).zip(&SENDERS) {
            let pair = Pair::measure(run, point, course, sender, &mut findings)?;
            pair.report(point, sender, &mut findings);
            if sender.name != SACK.name {
                total.add(&pair.counted);
            }
            packets.push(draw::interval(f64::from(number), &pair.packets, 1.0));
            simulator.push(draw::interval(f64::from(number) + 0.1, &pair.simulator, 1.0));
        }
        total.claim(point, &mut findings);
        series.push(draw::series(format!("packets, {point}"), Style::Marks, packets));
        series.push(draw::series(format!("simulator, {point}"), Style::Marks, simulator));
    }
    findings.plot(
        "wire",
        "Transfer time, s",
        (
            Axis { range: Some((0.5, 3.5)), ..draw::linear("1 SACK, 2 HACK, 3 HACK + SACK") },
            draw::log(&draw::less("time, s")),
        ),
        series,
    );
    Ok(findings)
}

/// All runs of one sender at one point, simulated and real.
struct Pair {
    simulator: Interval,
    simulator_timeouts: f64,
    packets: Interval,
    timeouts: f64,
    counted: Counted,
    runs: f64,
    late: u64,
}

impl Pair {
    fn measure(
        run: &Run,
        point: &str,
        course: &Course,
        sender: &Sender,
        findings: &mut Findings,
    ) -> Result<Self, LabError> {
        let profile = Profile::paper();
        let bits = course.size(run).0 as f64 * 8.0;
        let record = |ground, seed, seconds, timeouts| Record {
            seed,
            point,
            sender: sender.name,
            profile: profile.name,
            ground,
            seconds,
            goodput: bits / seconds,
            timeouts,
            counted: None,
            lateness: None,
        };
        // The records of `measure` contain more fields than needed here.
        let simulated = course.measure(run, sender, &profile, &mut Findings::new(""))?;
        let each = simulated.goodputs.iter().zip(&simulated.timeouts_each);
        for (seed, (goodput, timeouts)) in (1..).zip(each) {
            findings.record(&record("simulator", seed, bits / goodput, *timeouts))?;
        }
        let mut done = Vec::new();
        let mut counted = Counted::default();
        for seed in 1..=run.seeds {
            let mut one = transfer(run, course, sender, &profile, seed)?;
            for _ in 1..TRIES {
                if one.is_in_time {
                    break;
                }
                one = transfer(run, course, sender, &profile, seed)?;
            }
            findings.record(&Record {
                counted: Some(one.counted),
                lateness: Some(one.lateness),
                ..record("packets", seed, one.seconds, one.timeouts)
            })?;
            counted.add(&one.counted);
            done.push(one);
        }
        let of =
            |value: fn(&Done) -> f64| Interval::of(&done.iter().map(value).collect::<Vec<_>>());
        Ok(Self {
            simulator: simulated.seconds,
            simulator_timeouts: simulated.timeouts.mean,
            packets: of(|done| done.seconds),
            timeouts: of(|done| done.timeouts).mean,
            counted,
            runs: run.seeds as f64,
            late: done.iter().filter(|done| !done.is_in_time).count() as u64,
        })
    }

    fn report(&self, point: &str, sender: &Sender, findings: &mut Findings) {
        let Self { simulator, simulator_timeouts, packets, timeouts, counted, runs, late } = self;
        let ratio = theory::ratio(packets, simulator);
        let mean = |count: u64| format!("{:.1}", count as f64 / runs);
        findings.table.row([
            point.to_owned(),
            sender.name.to_owned(),
            theory::show(simulator, 1.0, 2),
            format!("{simulator_timeouts:.1}"),
            theory::show(packets, 1.0, 2),
            format!("{timeouts:.1}"),
            theory::show(&ratio, 1.0, 2),
            mean(counted.corrupted),
            mean(counted.corrupted_header),
            mean(counted.special_acks),
        ]);
        let verdict = if *late > 0 {
            real::late(*late, *runs as u64)
        } else {
            theory::within(&ratio, RATIO, || {
                format!(
                    "{timeouts:.1} time-outs a run, {simulator_timeouts:.1} in the simulator; {NOT_ISOLATED}"
                )
            })
        };
        findings.claim_beside(
            format!("seconds of packets over the simulator's, {}, {point}", sender.name),
            "0.9 to 1.1",
            theory::show(&ratio, 1.0, 2),
            verdict,
        );
    }
}

impl Counted {
    fn add(&mut self, other: &Self) {
        let Self { corrupted, corrupted_header, unnoticed, arrived, special_acks, unanswered } =
            other;
        self.corrupted += corrupted;
        self.corrupted_header += corrupted_header;
        self.unnoticed += unnoticed;
        self.arrived += arrived;
        self.special_acks += special_acks;
        self.unanswered += unanswered;
    }

    /// HACK 3.2. A corrupted header may still prove intact if the corruption is in the TCP checksum
    /// itself. So if headers are corrupted, only bounds of the number of answerable segments are
    /// known.
    fn claim(&self, point: &str, findings: &mut Findings) {
        let Self { arrived, corrupted_header, special_acks, unanswered, .. } = self;
        let answerable = arrived.saturating_sub(*corrupted_header)..=*arrived;
        let of = match corrupted_header {
            0 => format!("{arrived}"),
            _ => format!("{} to {arrived}", answerable.start()),
        };
        findings.claim(
            format!("special ACKs for corrupted segments whose header is whole, {point}"),
            "one each, where the data had not come before",
            format!("{special_acks}, and {unanswered} had, of {of}"),
            Verdict::of(answerable.contains(&(special_acks + unanswered)), || {
                format!("{arrived} corrupted ones arrived")
            }),
        );
    }
}

/// Builds the network, sends the file and removes the network. Both ends are our stack, because the
/// kernel has no HACK.
fn transfer(
    run: &Run,
    course: &Course,
    sender: &Sender,
    profile: &Profile,
    seed: u64,
) -> Result<Done, LabError> {
    let [forth, back] = course.links();
    let [forth, back] = [feed::spec(&format!("{forth} seed {seed}"))?, feed::spec(&back)?];
    let link = Link::new(&forth, &back)?;
    let mut config = HostConfig::new([]);
    config.tcp.sender.combination = sender.combination.parse().expect("a name of the registry");
    config.tcp.sender.profile = profile.clone();
    config.tcp.sack = sender.sack;
    config.tcp.user_timeout = Some(PATIENCE);
    let host = || Host::Stack(Box::new(config.clone()));
    let dumbbell = Dumbbell::build(Plan::new(host(), link, host()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LabError::Transfer)?;
    let sending = dumbbell.deliver(course.size(run));
    let sent = runtime.block_on(async { timeout(PATIENCE, sending).await? });
    let time = sent.map_err(LabError::Transfer)?.time;
    let stacks = [dumbbell.left(), dumbbell.right()].map(End::stack);
    let [Some(left), Some(right)] = stacks else { unreachable!("both are the plan's") };
    // Each end answers the other's FIN.
    runtime.block_on(async { tokio::join!(left.shutdown(), right.shutdown()) });
    let [left, right] = [left.counters(), right.counters()];
    let link = dumbbell.counters(Way::Forth);
    let lateness = dumbbell.lateness().percentile(99.0).as_secs_f64();
    dumbbell.stop()?;
    Ok(Done {
        seconds: time.as_secs_f64(),
        timeouts: left.tcp_ext_timeouts as f64,
        counted: Counted {
            corrupted: link.corrupted,
            corrupted_header: link.corrupted_header,
            unnoticed: link.corrupted_unnoticed,
            arrived: right.tcp_in_csum_errors,
            special_acks: right.tcp_ext_hack_acks_sent,
            unanswered: right.tcp_ext_hack_unanswered,
        },
        lateness,
        is_in_time: real::is_in_time(lateness, &forth, &back),
    })
}
