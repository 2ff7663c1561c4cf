//! One flow to a mobile whose base station retransmits frames that the radio loses.

use airtcp_basestation::StationConfig;
use airtcp_link::{Arq, RadioSpec};
use airtcp_sim::{RadioResult, Radios, RunResult};
use airtcp_trace::figure::Point;

use super::room::Room;
use super::{COMBINATIONS, PAPERS, flow, papers, timed};
use crate::prelude::*;

/// The payload of a segment, in bytes.
const PAYLOAD: usize = 1_000;
/// DCR 3.1: the limit of every queue, in packets.
const QUEUE: u32 = 50;
/// The minimum window, in round trips at the radio's rate. It has room for the data behind a hole
/// while one frame is lost three times, so that it does not limit the sender.
const ROUND_TRIPS: f64 = 4.0;
/// The air time of a packet, and the one-way delay of the wire, in ms.
const FRAME: f64 = 8.32;
const WIRED: f64 = 6.0;
/// The share of a goodput that an equation allows from which the equation explains the goodput.
const NEAR: f64 = 0.75;

/// A point of a sweep.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Place {
    pub(super) radio: Air,
    /// Frames with errors, in per cent.
    pub(super) error: u32,
    /// The radio's one-way delay, in ms.
    pub(super) delay: u32,
}

/// The model of the radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Air {
    /// DCR 4.1, as far as described: a link in each direction.
    Plain,
    /// 802.11 with all its air times, which is our addition.
    Wifi,
}

/// A sender.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sender {
    pub(super) combination: &'static str,
    pub(super) profile: Profile,
}

/// The results of one sender at one place, over the seeds.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) place: Place,
    /// In bit/s.
    pub(super) goodput: Interval,
    /// The maximum goodput that the radio carries, in bit/s.
    pub(super) bound: f64,
    reductions: Interval,
    /// The per cent of the time in which the receiver's window limited the sender.
    held: Interval,
}

/// The results of a sender at each place of a sweep.
pub(super) type Curve = (Sender, Vec<Outcome>);

/// Adds the notes of every report.
pub(super) fn notes(findings: &mut Findings) {
    findings.note(super::SHORTER);
    findings.note(
        "the radio is a plain full-duplex link of 1 Mbit/s: no preamble, no frame header, no link ACKs, no contention. The \
         frame error rate is the same in both directions and for all lengths, so ACKs have errors, too; in the paper \
         possibly only data has. A frame with errors takes its air time, and is retransmitted one round trip of the \
         radio later, at the head of the queue",
    );
    findings.note(
        "no congestion: the receiver's window is four bandwidth-delay products of the radio, at least 50 packets, and no \
         queue is shorter, because a sender without losses would fill any queue. Packets that a queue still drops are \
         spurious retransmissions. A sender at the bound is limited by the receiver's window without loss of goodput",
    );
    findings.note(
        "the bound is the capacity of the radio: 1000 bytes of payload per packet, less the retransmitted frames",
    );
}

/// The columns of a table of places.
pub(super) const COLUMNS: &str = "sender | profile | radio | frames hit, % | delay, ms | window, packets | \
     goodput, Mbit/s | of the bound | reductions | time-outs | lost on the radio, % | \
     reordered on the radio, % | dropped | waits for the receiver, %";

impl Place {
    pub(super) const fn plain(error: u32, delay: u32) -> Self {
        Self { radio: Air::Plain, error, delay }
    }

    fn fields(&self) -> Fields {
        let radio = match self.radio {
            Air::Plain => "plain",
            Air::Wifi => "wifi",
        };
        fields! { radio, error: self.error, delay: self.delay }
    }

    /// Returns the receiver's window and the limit of every queue, in packets.
    fn window(&self) -> u32 {
        QUEUE.max((ROUND_TRIPS * self.round_trip() / FRAME).ceil() as u32)
    }

    /// Returns the round-trip time without queues, in ms.
    fn round_trip(&self) -> f64 {
        2.0 * (WIRED + f64::from(self.delay)) + FRAME
    }

    fn spec(&self) -> Result<RadioSpec, LabError> {
        let Self { radio, error, delay } = self;
        let words = match radio {
            Air::Plain => "plain",
            Air::Wifi => "control 1mbit",
        };
        let queue = self.window();
        let text = format!("{words} rate 1mbit delay {delay}ms error {error}% queue {queue}");
        text.parse().map_err(|source| LabError::Spec { text, source })
    }
}

impl Air {
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Wifi => "802.11",
        }
    }
}

impl Sender {
    pub(super) fn new(combination: &'static str, profile: Profile) -> Self {
        Self { combination, profile }
    }

    pub(super) fn is_paper(&self) -> bool {
        self.profile.name == PAPERS
    }

    /// Returns whether claims about this sender are beside the paper, which has DCR with SACK.
    pub(super) fn is_beside(&self) -> bool {
        !self.is_paper() || !self.combination.starts_with(COMBINATIONS[0])
    }

    pub(super) fn waits(&self) -> bool {
        self.combination.contains("dcr")
    }

    pub(super) fn name(&self) -> String {
        format!("{}, {}", self.combination, self.profile.name)
    }

    pub(super) fn run(
        &self,
        run: &Run,
        place: Place,
        findings: &mut Findings,
    ) -> Result<Outcome, LabError> {
        let radio = place.spec()?;
        let (window, combination, profile) = (place.window(), self.combination, self.profile.name);
        let flow = FlowSpec {
            receive_buffer: Some(ByteCount::from(PAYLOAD) * u64::from(window)),
            ..flow(combination, &self.profile)
        };
        let per_ack = if self.profile.delayed_acks { 2 } else { 1 };
        let packet = usize::from(flow.mtu);
        let bound = radio.bound_with(Arq::Head, PAYLOAD, packet, packet - PAYLOAD, per_ack);
        let bound = bound.bits_per_sec() as f64;
        let wire = |text: &str| feed::spec(&format!("{text} limit {window}"));
        let scenario = Scenario {
            flows: vec![flow],
            ..Scenario::new(
                "radio",
                Topology::Wireless {
                    access: Wire::both(wire("rate 10mbit delay 1ms")?),
                    bottleneck: Wire::both(wire("rate 100mbit delay 5ms")?),
                    station: StationConfig { radio, arq: Arq::Head, ..StationConfig::default() },
                    radios: Radios::Own,
                },
            )
        };
        let scenario = timed(scenario, run.is_small);
        let fields = fields! { sender: combination, profile };
        let fields = fields.and(place.fields()).with("window", window);
        let sample = findings.measure(run, &fields, |seed| {
            let scenario = simulate::staggered(&scenario, seed);
            let room = Room::new(scenario.warm_up);
            let (result, room) = simulate::once_watched(scenario, seed, |_| room)?;
            let flow = &result.flows[0];
            let forth = towards(&result);
            Ok(fields! {
                goodput: flow.goodput,
                bound,
                retransmissions: flow.retransmissions,
                spurious: flow.spurious,
                reductions: flow.reductions.unwrap_or(0),
                timeouts: flow.timeouts.unwrap_or(0),
                dropped: dropped(&result),
                lost: forth.map(|radio| radio.residual_loss * 100.0),
                reordered: forth.map(|radio| radio.reordered * 100.0),
                held: room.share() * 100.0,
            })
        })?;
        let [goodput, reductions, held] =
            ["goodput", "reductions", "held"].map(|field| sample.mean(field));
        let outcome = Outcome { place, goodput, bound, reductions, held };
        let Place { radio, error, delay } = place;
        let numbers = [error, delay, window].map(|number| number.to_string());
        let row = [combination, profile, radio.name()].map(str::to_owned).into_iter();
        let row = row.chain(numbers).chain(sample.cells(&[("goodput", 1e-6, 3)]));
        let rest = [("timeouts", 1), ("lost", 3), ("reordered", 2), ("dropped", 1), ("held", 1)];
        let of_bound = theory::show(&outcome.of_bound(), 1.0, 3);
        let row = row.chain([of_bound, sample.show("reductions", 1.0, 1)]);
        let rest = rest.map(|(field, decimals)| sample.show(field, 1.0, decimals));
        findings.table.add(row.chain(rest).collect());
        Ok(outcome)
    }
}

impl Outcome {
    pub(super) fn of_bound(&self) -> Interval {
        theory::scaled(&self.goodput, 1.0 / self.bound)
    }

    /// Describes the known causes of a low goodput.
    pub(super) fn describe(&self) -> String {
        let [reductions, held] = [&self.reductions, &self.held].map(|of| theory::show(of, 1.0, 1));
        format!(
            "{} of the radio's capacity, {reductions} reductions, and the receiver's window limits it in {held} \
             % of the time",
            theory::show(&self.of_bound(), 1.0, 2)
        )
    }

    /// Compares the goodput with what equation (6) of DCR allows a sender that reduces its window
    /// for each frame that is hit twice.
    pub(super) fn lost_twice(&self) -> String {
        let hit = f64::from(self.place.error) / 100.0;
        let packets = 1.5f64.sqrt() / (self.place.round_trip() * 1e-3 * hit);
        let share = packets * (PAYLOAD * 8) as f64 / self.bound;
        let is_less = self.of_bound().mean < NEAR * share.min(1.0);
        format!(
            "guess: one frame in {:.0} is hit twice, and is later than DCR waits; if the window is reduced for each of them, \
             equation (6) allows {:.2} of the capacity{}",
            1.0 / (hit * hit),
            share.min(1.0),
            if is_less { ", so there is another cause, which was not determined" } else { "" }
        )
    }
}

/// Returns all combinations, in the paper's profile and in the modern one.
pub(super) fn all_senders() -> impl Iterator<Item = Sender> {
    let profiles = [papers(), Profile::modern()].into_iter();
    profiles.flat_map(|p| COMBINATIONS.map(|combination| Sender::new(combination, p.clone())))
}

/// Runs every sender at every place.
pub(super) fn sweep(
    run: &Run,
    findings: &mut Findings,
    senders: impl IntoIterator<Item = Sender>,
    places: &[Place],
) -> Result<Vec<Curve>, LabError> {
    let curve = |sender: Sender| -> Result<Curve, LabError> {
        let outcomes = places.iter().map(|place| sender.run(run, *place, findings));
        let outcomes = outcomes.collect::<Result<_, _>>()?;
        Ok((sender, outcomes))
    };
    senders.into_iter().map(curve).collect()
}

/// Returns the curve of the same sender without DCR.
pub(super) fn without<'a>(curves: &'a [Curve], sender: &Sender) -> Option<&'a Curve> {
    curves.iter().find(|(other, _)| {
        other.profile == sender.profile
            && !other.waits()
            && sender.combination.starts_with(other.combination)
    })
}

/// DCR 4.1: claims that a sender is faster than another at the last place of a sweep.
pub(super) fn claim_over(
    findings: &mut Findings,
    place: &str,
    (claimed, least): (&str, f64),
    (sender, own): &Curve,
    (beside, theirs): &Curve,
) {
    let (Some(own), Some(theirs)) = (own.last(), theirs.last()) else { return };
    let ratio = theory::ratio(&own.goodput, &theirs.goodput);
    let what = format!("{}: goodput {place} over that of {}", sender.name(), beside.combination);
    let verdict = theory::above(&ratio, least, || {
        format!("it has {}; {} has {}", own.describe(), beside.combination, theirs.describe())
    });
    let shown = theory::show(&ratio, 1.0, 2);
    findings.claim(what, format!("{claimed} (above {least})"), shown, verdict);
}

/// Returns the radio towards the mobiles, or the sum of all radios.
pub(super) fn towards(result: &RunResult) -> Option<&RadioResult> {
    Some(&result.station.as_ref()?.radio[0])
}

fn dropped(result: &RunResult) -> u64 {
    let wires = result.links.iter().map(|link| link.counters.queue_dropped);
    let radio = result.station.iter().flat_map(|station| &station.radio);
    wires.chain(radio.map(|way| way.counters.queue_dropped)).sum()
}

/// Draws goodput over the swept parameter, and the radio's capacity, at the places that `is_shown`
/// picks.
pub(super) fn picture(
    title: impl Into<String>,
    x: &str,
    at: fn(&Place) -> u32,
    curves: &[Curve],
    is_shown: impl Fn(&Place) -> bool,
) -> Figure {
    let points = |outcomes: &[Outcome], of: fn(f64, &Outcome) -> Point| {
        let shown = outcomes.iter().filter(|outcome| is_shown(&outcome.place));
        shown.map(|outcome| of(at(&outcome.place).into(), outcome)).collect()
    };
    let line = |(sender, outcomes): &Curve| {
        let points = points(outcomes, |x, outcome| draw::interval(x, &outcome.goodput, 1e-6));
        draw::series(sender.name(), Style::LineAndMarks, points)
    };
    let bound = curves.first().map(|(_, outcomes)| {
        let points = points(outcomes, |x, outcome| draw::point(x, outcome.bound * 1e-6));
        draw::series("what the radio carries", Style::Line, points)
    });
    let (x, y) = (draw::linear(x), draw::goodput());
    draw::figure(title, x, y, curves.iter().map(line).chain(bound))
}
