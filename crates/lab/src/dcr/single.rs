//! One flow alone over a path with increasing reordering.

use airtcp_recovery::Profile;
use airtcp_sim::{FlowSpec, Interval, Scenario, Simulation, Topology, Wire};
use airtcp_trace::figure::{Figure, Style};

use super::refused::Watch;
use super::room::Room;
use super::{ACCESS, COMBINATIONS, MTU, PAPERS, flow, papers, timed};
use crate::study::{Axis, Fields, Grid};
use crate::{Findings, LabError, Run, draw, feed, simulate, theory};

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
        let (title, series) = (self.title.to_owned(), series.collect());
        let (x, y) = (draw::linear(self.x), draw::linear(&draw::more("goodput, Mbit/s")));
        findings.picture(self.name, Figure { title, x, y, series });
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
        let grid = Grid::run(run, vec![Axis::new("x", run.points(self.points))], |point, seed| {
            let forth = (self.forth)(point.number("x") as u32);
            let bottleneck = feed::wire(&forth, BACK)?;
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
            Ok(Fields::default()
                .with("combination", combination)
                .with("profile", profile)
                .with("x", point.value("x").clone())
                .with("goodput", flow.goodput)
                .with("retransmissions", flow.retransmissions)
                .with("spurious", flow.spurious)
                .with("reductions", flow.reductions.unwrap_or(0))
                .with("timeouts", flow.timeouts.unwrap_or(0))
                .with("dropped", dropped)
                // The per cent of the time in which the receiver's window limited the sender.
                .with("held", watched.room.share() * 100.0)
                // Missing data that the receiver refused because of its timestamp.
                .with("refused", watched.refused))
        })?;
        grid.record(findings, &[])?;
        let cells: Vec<_> = grid.all().each("x").collect();
        let means = |field: &str| cells.iter().map(|cell| cell.mean(field)).collect::<Vec<_>>();
        let goodputs = means("goodput");
        let share = |goodput: &Interval| theory::ratio(goodput, &goodputs[0]);
        let shares: Vec<_> = goodputs.iter().map(share).collect();
        for (cell, share) in cells.iter().zip(&shares) {
            findings.table.row([
                combination.to_owned(),
                profile.to_owned(),
                cell.text("x"),
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
            points: cells.iter().map(|cell| cell.number("x") as u32).collect(),
            shares,
            reductions: means("reductions"),
            held: means("held"),
            refused: means("refused"),
            goodputs,
        })
    }
}
