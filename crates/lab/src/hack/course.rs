//! A file transfer over a link that corrupts data (HACK 4 and 5).

use airtcp_sim::{FlowResult, RunResult, Simulation};

use super::trail::Trail;
use crate::prelude::*;

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
#[derive(Clone, Copy, PartialEq, Debug)]
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
        let scenario = self.scenario(run, sender, profile)?;
        let sample = findings.measure(run, &self.place(sender, profile), |seed| {
            let trail = |_: &Simulation<'_>| Trail::default();
            let (result, trail) = simulate::once_watched(scenario.clone(), seed, trail)?;
            Ok(self.fields(run, &result, &trail))
        })?;
        Ok(self.outcome(run, &sample))
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
        let fields = runs.iter().map(|(result, trail)| self.fields(run, result, trail));
        let fields = || Ok(fields.collect());
        let sample = findings.sample(run, 1..=run.seeds, &self.place(sender, profile), fields)?;
        Ok((self.outcome(run, &sample), runs.into_iter().map(|(_, trail)| trail).collect()))
    }

    fn outcome(&self, run: &Run, sample: &Sample) -> Outcome {
        let bits = self.size(run).0 as f64 * 8.0;
        let (goodputs, timeouts) = (sample.values("goodput"), sample.values("timeouts"));
        let seconds: Vec<_> = goodputs.iter().map(|goodput| bits / goodput).collect();
        let finished = sample.values("seconds").len();
        Outcome {
            goodput: Interval::of(&goodputs),
            seconds: Interval::of(&seconds),
            timeouts: Interval::of(&timeouts),
            of_repairs: sample.mean("timeouts_of_repairs").mean,
            of_holes: sample.mean("timeouts_of_holes").mean,
            reductions: sample.sum("reductions") as u64,
            corrupted: sample.sum("corrupted") as u64,
            unfinished: (goodputs.len() - finished) as u64,
            goodputs,
            timeouts_each: timeouts,
        }
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

    /// Returns the part of a record that says what was run.
    fn place(&self, sender: &Sender, profile: &Profile) -> Fields {
        fields! {
            sender: sender.name,
            combination: sender.combination,
            profile: profile.name,
            delay: self.delay,
            size: self.size.0,
            share: self.share,
            burst: self.burst,
            header: self.header,
            window: self.window.map(|window| window.0),
        }
    }

    /// Returns the measurements of a run: a transfer that did not finish has no `seconds`, and
    /// `unnoticed` are corrupted packets that no checksum detects. A time-out of a repair waits for
    /// data that was retransmitted already; one of a hole, in a recovery, for other data.
    fn fields(&self, run: &Run, result: &RunResult, trail: &Trail) -> Fields {
        let (flow, link) = (&result.flows[0], &result.links[0].counters);
        fields! {
            seconds: flow.finished,
            goodput: self.goodput(run, flow),
            timeouts: flow.timeouts.unwrap_or(0),
            timeouts_of_repairs: trail.timeouts_of_repairs,
            timeouts_of_holes: trail.timeouts_of_holes,
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
