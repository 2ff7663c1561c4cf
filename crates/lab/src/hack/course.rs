//! A file transfer over a link that corrupts data (HACK 4 and 5).

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::{App, FlowResult, FlowSpec, Interval, RunResult, Scenario};
use airtcp_types::ByteCount;
use serde::Serialize;

use super::trail::Trail;
use crate::{Findings, LabError, Run, feed, simulate};

/// A sender: the paper's name and our combination.
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
/// SACK with a detection that also finds lost retransmissions.
pub(super) const RACK: Sender = Sender { name: "RACK", combination: "rack/reno", sack: true };
/// SACK with one segment in flight.
pub(super) const ONE: Sender =
    Sender { name: "one segment at a time", combination: "sack/fixed:1", sack: true };
pub(super) const HACK_SACK: Sender =
    Sender { name: "HACK + SACK", combination: "sack/reno/hack", sack: true };
/// The paper's four senders, in the order of tables.
pub(super) const SENDERS: [Sender; 4] = [NEWRENO, SACK, HACK, HACK_SACK];

/// The profile of the paper's hosts, which have Linux 2.2.10 (HACK 4).
pub(super) const PAPERS: &str = "linux-2.2";
/// The profiles in the order of tables. Claims about the other two are beside the paper.
pub(super) const PROFILES: [&str; 3] = [PAPERS, "paper", "modern"];

/// The per cent of corrupted packets whose header is corrupted: the two extremes of HACK 5.
pub(super) const HEADERS: [u32; 2] = [0, 95];
/// The file size of a small run.
const SMALL: ByteCount = ByteCount(50_000);
/// The maximum duration of a run. Otherwise a run ends when all data has arrived, after any number
/// of time-outs.
const PATIENCE: Duration = Duration::from_secs(900_000);

/// The set-up of one transfer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Course {
    /// The one-way delay, in ms.
    pub(super) delay: u32,
    /// The file size.
    pub(super) size: ByteCount,
    /// The per cent of data packets that are corrupted, or at which a burst starts.
    pub(super) share: f64,
    /// The number of packets in a burst; 1 means no bursts.
    pub(super) burst: u32,
    /// The per cent of corrupted packets whose header is corrupted.
    pub(super) header: u32,
    /// The receiver's window, if it limits the transfer.
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
    /// The time until all data had arrived; `None` if the transfer did not finish.
    seconds: Option<f64>,
    goodput: f64,
    timeouts: u64,
    /// Time-outs while waiting for data that had been retransmitted already.
    #[serde(rename = "timeouts_of_repairs")]
    of_repairs: u64,
    /// Time-outs in a recovery while waiting for data that had not been retransmitted.
    #[serde(rename = "timeouts_of_holes")]
    of_holes: u64,
    reductions: u64,
    retransmissions: u64,
    corrupted: u64,
    corrupted_header: u64,
    /// Corrupted packets that no checksum detects.
    unnoticed: u64,
    queue_dropped: u64,
}

/// The results of one sender's runs.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// The goodput of the file transfer with each seed, in bit/s.
    pub(super) goodputs: Vec<f64>,
    pub(super) goodput: Interval,
    pub(super) seconds: Interval,
    pub(super) timeouts: Interval,
    /// The time-outs with each seed.
    pub(super) timeouts_each: Vec<f64>,
    /// Time-outs per transfer while waiting for data that had been retransmitted already.
    pub(super) of_repairs: f64,
    /// Time-outs per transfer in a recovery while waiting for data that had not been retransmitted.
    pub(super) of_holes: f64,
    pub(super) reductions: u64,
    pub(super) corrupted: u64,
    /// The number of transfers that did not finish.
    pub(super) unfinished: u64,
}

/// Returns whether a profile is that of the paper's hosts.
pub(super) fn is_papers(profile: &Profile) -> bool {
    profile.name == PAPERS
}

/// Runs an experiment with each profile. Claims about profiles that are not the paper's are beside
/// the paper.
pub(super) fn each_profile(
    findings: &mut Findings,
    mut one: impl FnMut(&Profile, &mut Findings) -> Result<(), LabError>,
) -> Result<(), LabError> {
    PROFILES.iter().try_for_each(|name| {
        let profile = name.parse().expect("a profile");
        let mut done = Ok(());
        findings.beside(!is_papers(&profile), |findings| done = one(&profile, findings));
        done
    })
}

/// Returns the number of window reductions in all transfers.
pub(super) fn reductions(of: &[Outcome]) -> u64 {
    of.iter().map(|outcome| outcome.reductions).sum()
}

impl Course {
    /// The short path of HACK 5.1, without errors.
    pub(super) const SHORT: Self = Self {
        delay: 10,
        size: ByteCount(2_000_000),
        share: 0.0,
        burst: 1,
        header: 0,
        window: None,
    };
    /// The long path of HACK 5, without errors.
    pub(super) const LONG: Self =
        Self { delay: 300, size: ByteCount::from_kib(256), ..Self::SHORT };

    /// Returns the same path and file without errors.
    pub(super) const fn without_errors(&self) -> Self {
        Self { share: 0.0, burst: 1, header: 0, ..*self }
    }

    /// Runs a sender with every seed, and adds the records to `findings`.
    pub(super) fn measure(
        &self,
        run: &Run,
        sender: &Sender,
        profile: &Profile,
        findings: &mut Findings,
    ) -> Result<Outcome, LabError> {
        Ok(self.watch(run, sender, profile, findings)?.0)
    }

    /// Runs a sender like [`measure`](Self::measure), and also returns the trail of each run.
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

    /// Returns the goodput of the file transfer in bit/s; if the transfer did not finish, over
    /// [`PATIENCE`].
    pub(super) fn goodput(&self, run: &Run, flow: &FlowResult) -> f64 {
        self.size(run).0 as f64 * 8.0 / flow.finished.unwrap_or(PATIENCE.as_secs_f64())
    }

    /// Returns the file size.
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

    /// Returns the links forth and back. Only data packets on the way forth are corrupted (HACK 4).
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

    /// Returns the scenario of the same file over other links, forth and back.
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
