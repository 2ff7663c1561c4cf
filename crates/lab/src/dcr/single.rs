//! One flow alone over a path with increasing reordering.

use airtcp_sim::Simulation;

use super::refused::Watch;
use super::room::Room;
use super::{ACCESS, COMBINATIONS, MTU, PAPERS, flow, papers, timed};
use crate::prelude::*;

/// The combinations that also run in the modern profile without timestamps, to show the effect of
/// PAWS (RFC 7323 section 5) on late packets.
const WITHOUT_TIMESTAMPS: [&str; 3] =
    ["sack/reno/dcr:timer", "sack/reno/dcr:count", "rack/reno/dcr:timer"];
const NO_TIMESTAMPS: &str = "modern, no timestamps";
/// DCR 3.1; only data is reordered.
const BACK: &str = "rate 8mbit delay 50ms limit 50";

pub(super) struct Sweep {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) x: &'static str,
    pub(super) points: &'static [u32],
    /// Returns the bottleneck's description in the data direction at a point.
    pub(super) forth: fn(u32) -> String,
}

/// The results of one sender at each point; goodput in bit/s.
pub(super) struct Curve {
    pub(super) combination: &'static str,
    pub(super) profile: &'static str,
    /// The measured points.
    points: Vec<u32>,
    pub(super) goodputs: Vec<Interval>,
    /// Goodput divided by the sender's own goodput at the first point.
    pub(super) shares: Vec<Interval>,
    reductions: Vec<Interval>,
    /// The per cent of the time in which the receiver's window limited the sender.
    held: Vec<Interval>,
    /// The segments with missing data that PAWS refused.
    refused: Vec<Interval>,
}

impl Curve {
    pub(super) fn waits(&self) -> bool {
        self.combination.contains("dcr")
    }

    pub(super) fn is_paper(&self) -> bool {
        self.profile == PAPERS
    }

    pub(super) fn has_timestamps(&self) -> bool {
        !self.is_paper() && self.profile != NO_TIMESTAMPS
    }

    /// Returns whether the paper does not have this sender in this set-up.
    pub(super) fn is_beside(&self) -> bool {
        !self.is_paper() || self.combination.starts_with("rack")
    }

    pub(super) fn name(&self) -> String {
        format!("{}, {}", self.combination, self.profile)
    }

    /// Returns the curve of the same sender without DCR.
    pub(super) fn without<'a>(&self, curves: &'a [Self]) -> Option<&'a Self> {
        let is_plain = |plain: &&Self| !plain.waits() && plain.profile == self.profile;
        let mut plain = curves.iter().filter(is_plain);
        plain.find(|plain| self.combination.starts_with(plain.combination))
    }

    /// Returns the lowest share of the sender's own goodput at the first point, over the points
    /// that `counts` picks.
    pub(super) fn least(&self, counts: impl Fn(u32) -> bool) -> Interval {
        self.worst(counts).map(|at| self.shares[at]).unwrap_or_default()
    }

    /// Returns the lowest ratio of the goodput to that of another sender, over all points but the
    /// first.
    pub(super) fn least_over(&self, other: &Self) -> Interval {
        let pairs = self.goodputs.iter().zip(&other.goodputs).skip(1);
        let ratios = pairs.map(|(own, other)| theory::ratio(own, other));
        ratios.min_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap_or_default()
    }

    /// Describes the point of the lowest share: the reductions, and the time in which the
    /// receiver's window limited the sender.
    pub(super) fn describe(&self, counts: impl Fn(u32) -> bool) -> String {
        let Some(at) = self.worst(counts) else { return "nothing was run".to_owned() };
        let [reductions, held, refused] =
            [&self.reductions, &self.held, &self.refused].map(|of| theory::show(&of[at], 1.0, 1));
        format!(
            "least at {}: {reductions} reductions, {refused} late segments refused by PAWS, and the receiver's window limits it in \
             {held} % of the time",
            self.points[at]
        )
    }

    /// Returns whether PAWS refused missing data at that point.
    pub(super) fn refuses(&self, counts: impl Fn(u32) -> bool) -> bool {
        self.worst(counts).is_some_and(|at| self.refused[at].mean > 0.0)
    }

    /// Returns whether the receiver's window limited the sender for most of the time at that point.
    pub(super) fn is_held(&self, counts: impl Fn(u32) -> bool) -> bool {
        self.worst(counts).is_some_and(|at| self.held[at].mean > 50.0)
    }

    fn worst(&self, counts: impl Fn(u32) -> bool) -> Option<usize> {
        let counted = (0..self.points.len()).filter(|at| counts(self.points[*at]));
        counted.min_by(|a, b| self.shares[*a].mean.total_cmp(&self.shares[*b].mean))
    }
}

impl Sweep {
    pub(super) fn run(&self, run: &Run) -> Result<(Findings, Vec<Curve>), LabError> {
        let mut findings = Findings::new(&format!(
            "sender | profile | {} | goodput, Mbit/s | of its own at the first | reductions | time-outs | dropped | \
             waits for the receiver, % | refused by PAWS",
            self.x
        ));
        let mut curves = Vec::new();
        for profile in [papers(), Profile::modern()] {
            for combination in COMBINATIONS {
                let flow = flow(combination, &profile);
                curves.push(self.curve(run, combination, profile.name, &flow, &mut findings)?);
            }
        }
        for combination in WITHOUT_TIMESTAMPS {
            let flow =
                FlowSpec { timestamps: false, mtu: MTU, ..flow(combination, &Profile::modern()) };
            curves.push(self.curve(run, combination, NO_TIMESTAMPS, &flow, &mut findings)?);
        }
        let series = curves.iter().map(|curve| {
            let points = curve.points.iter().zip(&curve.goodputs);
            let points = points.map(|(x, goodput)| draw::interval(f64::from(*x), goodput, 1e-6));
            draw::series(curve.name(), Style::LineAndMarks, points.collect())
        });
        findings.plot(self.name, self.title, (draw::linear(self.x), draw::goodput()), series);
        Ok((findings, curves))
    }

    pub(super) fn curve(
        &self,
        run: &Run,
        combination: &'static str,
        profile: &'static str,
        flow: &FlowSpec,
        findings: &mut Findings,
    ) -> Result<Curve, LabError> {
        let points = run.points(self.points);
        let measure = |x: &u32| {
            let place = fields! { combination, profile };
            findings.measure(run, &place.with("x", *x), |seed| self.one(run, flow, *x, seed))
        };
        let cells = points.iter().map(measure).collect::<Result<Vec<_>, _>>()?;
        let means = |field: &str| cells.iter().map(|cell| cell.mean(field)).collect::<Vec<_>>();
        let goodputs = means("goodput");
        let share = |goodput: &Interval| theory::ratio(goodput, &goodputs[0]);
        let shares: Vec<_> = goodputs.iter().map(share).collect();
        for ((x, cell), share) in points.iter().zip(&cells).zip(&shares) {
            findings.table.row([
                combination.to_owned(),
                profile.to_owned(),
                x.to_string(),
                cell.show("goodput", 1e-6, 3),
                theory::show(share, 1.0, 2),
                cell.show("reductions", 1.0, 1),
                cell.show("timeouts", 1.0, 1),
                cell.show("dropped", 1.0, 0),
                cell.show("held", 1.0, 1),
                cell.show("refused", 1.0, 1),
            ]);
        }
        Ok(Curve {
            combination,
            profile,
            points,
            shares,
            reductions: means("reductions"),
            held: means("held"),
            refused: means("refused"),
            goodputs,
        })
    }
    fn one(&self, run: &Run, flow: &FlowSpec, x: u32, seed: u64) -> Result<Fields, LabError> {
        let bottleneck = feed::wire(&(self.forth)(x), BACK)?;
        let access = Wire::both(feed::spec(ACCESS)?);
        let scenario = Scenario {
            flows: vec![flow.clone()],
            ..Scenario::new(self.name, Topology::Dumbbell { access, bottleneck })
        };
        let scenario = simulate::staggered(&timed(scenario, run.is_small), seed);
        let room = Room::new(scenario.warm_up);
        let watch = |dumbbell: &Simulation<'_>| Watch::new(room, dumbbell);
        let (result, watched) = simulate::once_watched(scenario, seed, watch)?;
        let flow = &result.flows[0];
        let dropped: u64 = result.links.iter().map(|link| link.counters.queue_dropped).sum();
        Ok(fields! {
            goodput: flow.goodput,
            retransmissions: flow.retransmissions,
            spurious: flow.spurious,
            reductions: flow.reductions.unwrap_or(0),
            timeouts: flow.timeouts.unwrap_or(0),
            dropped,
            // The per cent of the time in which the receiver's window limited the sender.
            held: watched.room.share() * 100.0,
            // Missing data that the receiver refused because of its timestamp.
            refused: watched.refused,
        })
    }
}
