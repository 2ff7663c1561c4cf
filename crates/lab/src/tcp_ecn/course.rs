//! A network of fixed hosts, the wired Internet, a base station, and mobiles.

use airtcp_basestation::{Policy, StationConfig};
use airtcp_link::Arq;
use airtcp_sim::{FlowResult, Radios, RunResult};

use super::progress::Progress;
use super::senders::Sender;
use super::tries::{self, Tries};
use crate::prelude::*;

/// TCP-ECN 7.2, the constant part: 802.11 at 11 Mbit/s with ns-2's queue of 50 packets, and 100
/// Mbit/s on the wired side with a queue that is never full.
const RADIO: &str = "rate 11mbit queue 50";
const WIRED: &str = "rate 100mbit limit 10000";
/// TCP-ECN 7.3.1: the distance between the two base stations, in metres, without the 250 m that
/// each reaches.
const GAP: f64 = 382.5;
/// The time when the mobile leaves this station's reach, in seconds. The paper does not state the
/// time.
const LEAVES_AT: f64 = 40.0;
/// The mobile's initial distance from the station, and the station's reach, in metres.
const NEAR: f64 = 100.0;
const REACH: f64 = 250.0;

/// A point of a sweep.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Course {
    /// The number of fixed hosts, each with its own mobile.
    pub(super) pairs: u32,
    pub(super) tries: Tries,
    /// The per cent of data frames with errors.
    pub(super) error: u32,
    /// The one-way delay of the wired side, in ms.
    pub(super) delay: u32,
    /// The loss of data packets on the wired side, in per cent.
    pub(super) loss: f64,
    /// The time for which the mobile is out of reach, in seconds.
    pub(super) gone: Option<f64>,
    pub(super) seconds: u64,
}

impl Course {
    /// The set-up of TCP-ECN 7.2, Fig. 10.
    pub(super) const PAPER: Self = Self {
        pairs: 1,
        tries: tries::PAPER,
        error: 20,
        delay: 500,
        loss: 0.0,
        gone: None,
        seconds: 250,
    };

    /// Returns the course with other tries.
    pub(super) const fn with_tries(self, tries: Tries) -> Self {
        Self { tries, ..self }
    }

    /// Formats the radio's tries and passes for tables.
    pub(super) fn radio(&self) -> String {
        format!("{} x {}", self.tries.tries, self.tries.passes)
    }

    /// Returns the per cent of tries that fail.
    fn failing(&self) -> f64 {
        let arrives = 1.0 - f64::from(self.error) / 100.0;
        let arrives = if self.tries.are_acks_hit { arrives * arrives } else { arrives };
        (1.0 - arrives) * 100.0
    }
}

/// The results of a course with one policy, over the seeds.
pub(super) struct Outcome {
    /// The goodput per pair, in bit/s.
    pub(super) goodput: Interval,
    /// The goodput per pair with each seed.
    pub(super) goodputs: Vec<f64>,
    /// The loss towards the mobiles after all tries, in per cent.
    pub(super) lost: Interval,
    pub(super) reordered: Interval,
    pub(super) again: Interval,
    pub(super) spurious: Interval,
    pub(super) timeouts: Interval,
    /// Segments retransmitted from the station's cache.
    pub(super) sent_again: Interval,
    /// The maxima of memory in bytes: flow state, copies, the radio's queue, held segments, and the
    /// total at one time.
    pub(super) memory: [Interval; 5],
}

impl Course {
    pub(super) fn run(
        &self,
        run: &Run,
        sender: &Sender,
        policy: Policy,
        findings: &mut Findings,
    ) -> Result<Outcome, LabError> {
        let scenario = self.scenario(run, sender, policy)?;
        let one = |seed| Ok(fields(&simulate::once(scenario.clone(), seed)?));
        Ok(Outcome::of(&findings.measure(run, &self.place(sender, policy), one)?))
    }

    /// Runs the course like [`run`](Self::run), and also returns the progress of the mobiles'
    /// streams with each seed.
    pub(super) fn watch(
        &self,
        run: &Run,
        sender: &Sender,
        policy: Policy,
        findings: &mut Findings,
    ) -> Result<(Outcome, Vec<Progress>), LabError> {
        let scenario = self.scenario(run, sender, policy)?;
        let results = simulate::watched(
            run,
            |_| scenario.clone(),
            |simulation| Progress::new(simulation.nodes()),
        )?;
        let fields = || Ok(results.iter().map(|(result, _)| fields(result)).collect());
        let sample = findings.sample(run, 1..=run.seeds, &self.place(sender, policy), fields)?;
        Ok((Outcome::of(&sample), results.into_iter().map(|(_, progress)| progress).collect()))
    }

    /// Returns the part of a record that says what was run.
    fn place(&self, sender: &Sender, policy: Policy) -> Fields {
        let Tries { tries, passes, are_acks_hit } = self.tries;
        fields! {
            sender: sender.name,
            policy: policy.name(),
            pairs: self.pairs,
            tries,
            passes,
            are_acks_hit,
            error: self.error,
            delay: self.delay,
            loss: self.loss,
            gone: self.gone,
            seconds: self.seconds,
        }
    }

    /// Returns the times when the mobile leaves and when it returns, in seconds.
    pub(super) fn away(&self, run: &Run) -> Option<(f64, f64)> {
        let (leaves, at_most) = if run.is_small { (2.0, 2.0) } else { (LEAVES_AT, f64::INFINITY) };
        self.gone.map(|gone| (leaves, leaves + gone.min(at_most)))
    }

    /// Returns the mobile's path out of reach and back, at the speed that crosses the paper's gap
    /// in the time out of reach.
    fn path(&self, run: &Run) -> String {
        let Some((leaves, back)) = self.away(run) else { return String::new() };
        let speed = GAP / (back - leaves);
        let walk = (REACH - NEAR) / speed;
        let farthest = REACH + GAP / 2.0;
        let turn = (leaves + back) / 2.0;
        let [begin, end] = [(leaves - walk).max(0.0), back + walk];
        format!(
            "at {begin:.6}s {NEAR} at {leaves:.6}s {REACH} at {turn:.6}s {farthest} at {back:.6}s {REACH} at {end:.6}s {NEAR}"
        )
    }

    pub(super) fn station(&self, run: &Run, policy: Policy) -> Result<StationConfig, LabError> {
        let Tries { tries, passes, .. } = self.tries;
        let (failing, path) = (self.failing(), self.path(run));
        let radio = format!("{RADIO} error {failing:.2}% tries {tries} passes {passes} {path}");
        let radio = radio.parse().map_err(|source| LabError::Spec { text: radio, source })?;
        // TCP-ECN 7.1: LLTcpEcn, which passes a frame to the MAC again, replaces the link layer.
        // The other policies have the tries of the MAC alone.
        let arq = if policy == Policy::TcpEcn { Arq::MacLink } else { Arq::Mac };
        Ok(StationConfig { radio, arq, policy, ..StationConfig::default() })
    }

    pub(super) fn scenario(
        &self,
        run: &Run,
        sender: &Sender,
        policy: Policy,
    ) -> Result<Scenario, LabError> {
        let Self { pairs, delay, loss, .. } = self;
        let wired = format!("{WIRED} delay {delay}ms");
        let bottleneck = Wire {
            forth: feed::spec(&format!("{wired} loss {loss}% only payload"))?,
            back: feed::spec(&wired)?,
        };
        let topology = Topology::Wireless {
            access: Wire::default(),
            bottleneck,
            station: self.station(run, policy)?,
            radios: Radios::Shared,
        };
        let seconds = if run.is_small { 6 } else { self.seconds };
        let flow = airtcp_sim::FlowSpec { count: *pairs, ..sender.flow(policy) };
        Ok(Scenario {
            duration: Duration::from_secs(seconds),
            flows: vec![flow],
            ..Scenario::new("tcp-ecn", topology)
        })
    }
}

/// Returns the measurements of a run: goodputs in bit/s, `lost` and `reordered` in per cent.
fn fields(result: &RunResult) -> Fields {
    let Some(station) = &result.station else { return Fields::default() };
    let sum = |of: fn(&FlowResult) -> u64| result.flows.iter().map(of).sum::<u64>();
    let (counters, memory) = (&station.counters, &station.memory);
    let memory = fields! {
        flows: memory.flows,
        cached: memory.cached,
        queued: memory.queued,
        held: memory.held,
        all: memory.all,
    };
    fields! {
        goodputs: result.flows.iter().map(|flow| flow.goodput).collect::<Vec<_>>(),
        lost: station.radio[0].residual_loss * 100.0,
        reordered: station.radio[0].reordered * 100.0,
        retransmissions: sum(|flow| flow.retransmissions),
        spurious: sum(|flow| flow.spurious),
        timeouts: sum(|flow| flow.timeouts.unwrap_or(0)),
        marked: counters.marked,
        hidden: counters.hidden,
        sent_again: counters.sent_again,
        frozen: counters.frozen,
        held: counters.held,
        memory,
    }
}

impl Outcome {
    fn of(sample: &Sample) -> Self {
        let goodput = |run: &Fields| {
            let goodputs = run.list("goodputs");
            Some(goodputs.iter().sum::<f64>() / goodputs.len().max(1) as f64)
        };
        let goodputs = sample.of(goodput);
        let memory = ["flows", "cached", "queued", "held", "all"];
        Self {
            goodput: Interval::of(&goodputs),
            goodputs,
            lost: sample.mean("lost"),
            reordered: sample.mean("reordered"),
            again: sample.mean("retransmissions"),
            spurious: sample.mean("spurious"),
            timeouts: sample.mean("timeouts"),
            sent_again: sample.mean("sent_again"),
            memory: memory.map(|of| sample.mean(&format!("memory.{of}"))),
        }
    }

    /// Formats the common columns of a row.
    pub(super) fn cells(&self) -> [String; 6] {
        [
            theory::show(&self.goodput, 1e-6, 3),
            theory::show(&self.lost, 1.0, 3),
            theory::show(&self.reordered, 1.0, 2),
            theory::show(&self.again, 1.0, 1),
            theory::show(&self.spurious, 1.0, 1),
            theory::show(&self.timeouts, 1.0, 1),
        ]
    }
}
