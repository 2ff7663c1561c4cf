//! A file sent over a link that corrupts data (HACK 4 and 5).

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::{App, FlowResult, FlowSpec, Interval, RunResult, Scenario};
use airtcp_types::ByteCount;
use serde::Serialize;

use super::trail::Trail;
use crate::{Findings, LabError, Run, feed, simulate};

/// As the paper calls a sender, and what it is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) name: &'static str,
    pub(super) combination: &'static str,
    /// Whether SACK is offered.
    pub(super) sack: bool,
}

pub(super) const NEWRENO: Sender =
    Sender { name: "NewReno", combination: "newreno/reno", sack: false };
pub(super) const SACK: Sender = Sender { name: "SACK", combination: "sack/reno", sack: true };
pub(super) const HACK: Sender =
    Sender { name: "HACK", combination: "newreno/reno/hack", sack: false };
/// SACK whose detection finds lost repairs too.
pub(super) const RACK: Sender = Sender { name: "RACK", combination: "rack/reno", sack: true };
/// SACK with one segment in flight.
pub(super) const ONE: Sender =
    Sender { name: "one segment at a time", combination: "sack/fixed:1", sack: true };
pub(super) const HACK_SACK: Sender =
    Sender { name: "HACK + SACK", combination: "sack/reno/hack", sack: true };
/// All four, in the order of tables.
pub(super) const SENDERS: [Sender; 4] = [NEWRENO, SACK, HACK, HACK_SACK];

/// Per cent of corrupted packets whose header is hit: HACK 5's two ends.
pub(super) const HEADERS: [u32; 2] = [0, 95];
/// A small form sends so much.
const SMALL: ByteCount = ByteCount(50_000);
/// The run ends when all has arrived, however many time-outs that takes; this is when it is given
/// up.
const PATIENCE: Duration = Duration::from_secs(900_000);

/// One transfer's set-up.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Course {
    /// One way, ms.
    pub(super) delay: u32,
    /// How much is sent.
    pub(super) size: ByteCount,
    /// Per cent of packets of data that are corrupted, or at which a burst starts.
    pub(super) share: f64,
    /// Packets of a burst; one is no burst.
    pub(super) burst: u32,
    /// Per cent of corrupted packets whose header is hit.
    pub(super) header: u32,
    /// The receiver's window, if it is to limit.
    pub(super) window: Option<ByteCount>,
}

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    sender: &'a str,
    combination: &'a str,
    profile: &'a str,
    #[serde(flatten)]
    course: Course,
    /// Until all had arrived; `None` if it was given up.
    seconds: Option<f64>,
    goodput: f64,
    timeouts: u64,
    /// Of these, those that waited for data that had been sent again already.
    #[serde(rename = "timeouts_of_repairs")]
    of_repairs: u64,
    /// Those in a recovery that waited for data that had not been sent again.
    #[serde(rename = "timeouts_of_holes")]
    of_holes: u64,
    reductions: u64,
    retransmissions: u64,
    corrupted: u64,
    corrupted_header: u64,
    /// Corrupted, and no checksum tells.
    unnoticed: u64,
    queue_dropped: u64,
}

/// What the runs of one sender came to.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// bit/s of each seed, from the begin to the end of the file.
    pub(super) goodputs: Vec<f64>,
    pub(super) goodput: Interval,
    pub(super) seconds: Interval,
    pub(super) timeouts: Interval,
    /// Of each seed.
    pub(super) timeouts_each: Vec<f64>,
    /// Time-outs of a transfer that waited for data that had been sent again already.
    pub(super) of_repairs: f64,
    /// Those in a recovery that waited for data that had not been sent again.
    pub(super) of_holes: f64,
    pub(super) reductions: u64,
    pub(super) corrupted: u64,
    /// Transfers that were given up.
    pub(super) unfinished: u64,
}

/// The reductions of the window in all transfers.
pub(super) fn reductions(of: &[Outcome]) -> u64 {
    of.iter().map(|outcome| outcome.reductions).sum()
}

impl Course {
    /// HACK 5.1's short path, without errors.
    pub(super) const SHORT: Self = Self {
        delay: 10,
        size: ByteCount(2_000_000),
        share: 0.0,
        burst: 1,
        header: 0,
        window: None,
    };
    /// HACK 5's long path, without errors.
    pub(super) const LONG: Self =
        Self { delay: 300, size: ByteCount::from_kib(256), ..Self::SHORT };

    /// The same path and file.
    pub(super) const fn without_errors(&self) -> Self {
        Self { share: 0.0, burst: 1, header: 0, ..*self }
    }

    /// Runs a sender with every seed, and keeps the records.
    pub(super) fn measure(
        &self,
        run: &Run,
        sender: &Sender,
        profile: &Profile,
        findings: &mut Findings,
    ) -> Result<Outcome, LabError> {
        Ok(self.watch(run, sender, profile, findings)?.0)
    }

    /// The same, with what each run was like.
    pub(super) fn watch(
        &self,
        run: &Run,
        sender: &Sender,
        profile: &Profile,
        findings: &mut Findings,
    ) -> Result<(Outcome, Vec<Trail>), LabError> {
        let scenario = self.scenario(run, sender, profile)?;
        let runs = simulate::watched(run, |_| scenario.clone(), |_| Trail::default())?;
        let bits = self.size(run).0 as f64 * 8.0;
        let records: Vec<_> = runs
            .iter()
            .map(|(result, trail)| self.record(run, sender, profile, result, trail))
            .collect();
        for record in &records {
            findings.record(record)?;
        }
        let of = |value: &dyn Fn(&Record<'_>) -> f64| -> Vec<f64> {
            records.iter().map(value).collect()
        };
        let (goodputs, timeouts) = (of(&|r| r.goodput), of(&|r| r.timeouts as f64));
        let outcome = Outcome {
            goodput: Interval::of(&goodputs),
            goodputs,
            seconds: Interval::of(&of(&|r| bits / r.goodput)),
            timeouts: Interval::of(&timeouts),
            timeouts_each: timeouts,
            of_repairs: Interval::of(&of(&|r| r.of_repairs as f64)).mean,
            of_holes: Interval::of(&of(&|r| r.of_holes as f64)).mean,
            reductions: records.iter().map(|r| r.reductions).sum(),
            corrupted: records.iter().map(|r| r.corrupted).sum(),
            unfinished: records.iter().filter(|r| r.seconds.is_none()).count() as u64,
        };
        Ok((outcome, runs.into_iter().map(|(_, trail)| trail).collect()))
    }

    /// The payload of a finished file in bit/s; of one that was given up, over all that time.
    pub(super) fn goodput(&self, run: &Run, flow: &FlowResult) -> f64 {
        self.size(run).0 as f64 * 8.0 / flow.finished.unwrap_or(PATIENCE.as_secs_f64())
    }

    /// What is to be sent, and arrive.
    pub(super) const fn size(&self, run: &Run) -> ByteCount {
        if run.is_small { SMALL } else { self.size }
    }

    fn record<'a>(
        &self,
        run: &Run,
        sender: &'a Sender,
        profile: &Profile,
        result: &RunResult,
        trail: &Trail,
    ) -> Record<'a> {
        let (flow, link) = (&result.flows[0], &result.links[0].counters);
        Record {
            seed: result.seed,
            sender: sender.name,
            combination: sender.combination,
            profile: profile.name,
            course: *self,
            seconds: flow.finished,
            goodput: self.goodput(run, flow),
            timeouts: flow.timeouts.unwrap_or(0),
            of_repairs: trail.timeouts_of_repairs,
            of_holes: trail.timeouts_of_holes,
            reductions: flow.reductions.unwrap_or(0),
            retransmissions: flow.retransmissions,
            corrupted: link.corrupted,
            corrupted_header: link.corrupted_header,
            unnoticed: link.corrupted_unnoticed,
            queue_dropped: link.queue_dropped,
        }
    }

    /// Errors befall packets of data alone, and only on the way forth (HACK 4).
    pub(super) fn links(&self) -> [String; 2] {
        let Self { delay, share, burst, header, .. } = self;
        let back = format!("rate 10mbit delay {delay}ms limit 1000");
        let run = if *burst > 1 { format!(" run {burst}") } else { String::new() };
        [format!("{back} corrupt {share}% header {header}%{run} only payload"), back]
    }

    fn scenario(
        &self,
        run: &Run,
        sender: &Sender,
        profile: &Profile,
    ) -> Result<Scenario, LabError> {
        self.over(&self.links(), run, sender, profile)
    }

    /// The same file over other links, forth and back.
    pub(super) fn over(
        &self,
        [forth, back]: &[String; 2],
        run: &Run,
        sender: &Sender,
        profile: &Profile,
    ) -> Result<Scenario, LabError> {
        let wire = feed::wire(forth, back)?;
        let flow = FlowSpec {
            sack: sender.sack,
            receive_buffer: self.window,
            user_timeout: Some(PATIENCE),
            app: App::Bulk { size: Some(self.size(run)) },
            ..simulate::flow(sender.combination, profile.clone())
        };
        Ok(Scenario { duration: PATIENCE, ..simulate::over("hack", wire, flow) })
    }
}
