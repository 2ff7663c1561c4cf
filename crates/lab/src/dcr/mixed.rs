//! Flows with and without DCR on one bottleneck.

use airtcp_sim::{FlowResult, RunResult};

use super::{ACCESS, ACCESS_AT_RANDOM, PAPERS, flow, papers, timed};
use crate::prelude::*;

const BACK: &str = "rate 10mbit delay 10ms limit 50";
/// The shortest and the longest queue to choose from for a share of drops, in packets.
const QUEUES: (u32, u32) = (5, 470);
const NO_UNDO: &str = "modern, no undo";

/// Returns the pairs: a flow with DCR and one without, and their profile.
pub(super) fn pairs() -> [([&'static str; 2], Profile); 4] {
    [
        (["sack/reno/dcr:timer", "sack/reno"], papers()),
        (["sack/reno/dcr:count", "sack/reno"], papers()),
        (["sack/reno/dcr:timer", "sack/reno"], Profile::modern()),
        (["rack/reno/dcr:timer", "rack/reno"], Profile::modern()),
    ]
}

/// A point of a sweep.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) x: u32,
    /// The number of flows of each kind.
    pub(super) flows: u32,
    /// The late packets, in per cent.
    pub(super) late: u32,
    pub(super) queue: Queue,
}

#[derive(Clone, Copy)]
pub(super) enum Queue {
    /// This many packets.
    Packets(u32),
    /// The queue whose share of drops, in per cent, is nearest to this value in one run.
    ForDrops(f64),
}

pub(super) struct Sweep {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) x: &'static str,
    pub(super) cases: Vec<Case>,
    /// Whether the picture is over the share of dropped packets instead of `x`.
    pub(super) is_over_drops: bool,
    /// Whether the pairs of the modern profile run once more at the last case, without undo.
    pub(super) isolates_undo: bool,
}

/// The results of one pair in one case.
pub(super) struct Outcome {
    /// The value of the swept parameter.
    pub(super) x: u32,
    /// The queue of the bottleneck, in packets.
    pub(super) queue: u32,
    /// The mean goodput of each kind.
    pub(super) means: [Interval; 2],
    /// The mean goodput of a flow with DCR divided by that of one without.
    pub(super) ratio: Interval,
    /// The difference of these two divided by the mean of all flows.
    pub(super) difference: Interval,
    /// Drops at the bottleneck, in per cent.
    pub(super) dropped: Interval,
}

impl Outcome {
    pub(super) fn of(x: u32, sample: &Sample) -> Self {
        let side = |run: &Fields, side: usize| run.list("means").get(side).copied();
        let both =
            |value: fn(f64, f64) -> f64| sample.of(|run| Some(value(side(run, 0)?, side(run, 1)?)));
        let queue = sample.runs().next().and_then(|run| run.number("queue"));
        Self {
            x,
            queue: queue.unwrap_or_default() as u32,
            means: [0, 1].map(|of| Interval::of(&sample.of(|run| side(run, of)))),
            ratio: Interval::of(&both(|own, other| own / other.max(1.0))),
            difference: Interval::of(&both(|own, other| {
                2.0 * (own - other) / (own + other).max(1.0)
            })),
            dropped: sample.mean("dropped"),
        }
    }

    /// Formats the drops, the goodput of each kind, and their ratio.
    pub(super) fn cells(&self) -> [String; 4] {
        let Self { means: [own, other], ratio, dropped, .. } = self;
        [(dropped, 1.0, 2), (own, 1e-6, 3), (other, 1e-6, 3), (ratio, 1.0, 2)]
            .map(|(of, unit, decimals)| theory::show(of, unit, decimals))
    }
}

pub(super) struct Curve {
    pub(super) name: String,
    pair: [&'static str; 2],
    profile: Profile,
    pub(super) outcomes: Vec<Outcome>,
}

impl Curve {
    pub(super) fn is_modern(&self) -> bool {
        self.profile == Profile::modern()
    }

    /// Returns whether the paper does not have these flows.
    pub(super) fn is_beside(&self) -> bool {
        self.profile.name != PAPERS
    }

    /// Returns whether its flows wait by a timer; the paper's count ACKs from its section 5 on.
    pub(super) fn is_timer(&self) -> bool {
        self.pair[0].contains("dcr:timer")
    }

    /// Returns whether the curve exists to isolate the effect of undo.
    pub(super) fn is_isolating(&self) -> bool {
        self.profile.name == NO_UNDO
    }

    /// Returns whether `other` is the same pair without undo, which isolates the effect of undo.
    pub(super) fn is_isolated_by(&self, other: &Self) -> bool {
        self.is_modern() && other.is_isolating() && self.pair == other.pair
    }
}

impl Sweep {
    pub(super) fn run(&self, run: &Run) -> Result<(Findings, Vec<Curve>), LabError> {
        let mut findings = Findings::new(&format!(
            "waits | beside | profile | {} | queue | dropped, % | waits: Mbit/s | beside: Mbit/s | ratio",
            self.x
        ));
        let (mut curves, mut series) = (Vec::new(), Vec::new());
        let cases = run.points(&self.cases);
        for ([waits, beside], profile, cases) in self.courses(&cases) {
            let mut outcomes = Vec::new();
            let mut points = [Vec::new(), Vec::new()];
            for case in &cases {
                let queue = match case.queue {
                    Queue::Packets(queue) => queue,
                    Queue::ForDrops(share) => {
                        self.queue(case, [waits, beside], &profile, run, share)?
                    }
                };
                let scenario = self.scenario(case, queue, [waits, beside], &profile, run)?;
                let place = fields! { waits, beside };
                let place = place.with("profile", profile.name).with("x", case.x);
                let sample = findings.measure(run, &place, |seed| {
                    let result = simulate::once(simulate::staggered(&scenario, seed), seed)?;
                    Ok(fields(&result, queue))
                })?;
                let outcome = Outcome::of(case.x, &sample);
                let row = [waits, beside, profile.name].map(str::to_owned).into_iter();
                let row = row.chain([case.x, queue].map(|number| number.to_string()));
                findings.table.add(row.chain(outcome.cells()).collect());
                let x = if self.is_over_drops { outcome.dropped.mean } else { case.x.into() };
                for (points, mean) in points.iter_mut().zip(&outcome.means) {
                    points.push(draw::interval(x, mean, 1e-6));
                }
                outcomes.push(outcome);
            }
            let name = format!("{waits} beside {beside}, {}", profile.name);
            let [one, other] = points;
            series.push(draw::series(name.clone(), Style::LineAndMarks, one));
            let plain = format!("{beside} beside {waits}, {}", profile.name);
            series.push(draw::series(plain, Style::LineAndMarks, other));
            curves.push(Curve { name, pair: [waits, beside], profile, outcomes });
        }
        let x = draw::linear(if self.is_over_drops { "dropped, %" } else { self.x });
        let y = draw::linear(&draw::more("mean goodput of a flow, Mbit/s"));
        findings.picture(self.name, Figure { title: self.title.to_owned(), x, y, series });
        findings.note(super::SHORTER);
        findings.note(
            "packets wait at random for up to 0.8 ms before the bottleneck, which is not in the paper; without, flows \
             keep in step with the queue",
        );
        Ok((findings, curves))
    }

    /// Returns every pair with its profile and its cases. Pairs beside the paper have the first and
    /// the last case.
    fn courses(&self, cases: &[Case]) -> Vec<([&'static str; 2], Profile, Vec<Case>)> {
        let ends = match cases {
            [first, .., last] => vec![*first, *last],
            all => all.to_vec(),
        };
        let with_cases = |(pair, profile): ([&'static str; 2], Profile)| {
            let is_papers = profile.name == PAPERS;
            (pair, profile, if is_papers { cases.to_vec() } else { ends.clone() })
        };
        let mut courses: Vec<_> = pairs().into_iter().map(with_cases).collect();
        if self.isolates_undo {
            let last: Vec<Case> = cases.last().copied().into_iter().collect();
            let modern = pairs().into_iter().filter(|(_, profile)| *profile == Profile::modern());
            let without = Profile { name: NO_UNDO, undo: false, ..Profile::modern() };
            courses.extend(modern.map(|(pair, _)| (pair, without.clone(), last.clone())));
        }
        courses
    }

    fn queue(
        &self,
        case: &Case,
        pair: [&str; 2],
        profile: &Profile,
        run: &Run,
        share: f64,
    ) -> Result<u32, LabError> {
        queue_for(run, share, |queue| self.scenario(case, queue, pair, profile, run))
    }

    fn scenario(
        &self,
        case: &Case,
        queue: u32,
        pair: [&str; 2],
        profile: &Profile,
        run: &Run,
    ) -> Result<Scenario, LabError> {
        let late = match case.late {
            0 => String::new(),
            late => format!(" delayed {late}% 25ms 8ms"),
        };
        let forth = format!("rate 10mbit delay 10ms limit {queue}{late}");
        let access = feed::wire(ACCESS_AT_RANDOM, ACCESS)?;
        let bottleneck = feed::wire(&forth, BACK)?;
        let scenario = Scenario {
            flows: flows(pair, profile, case.flows),
            ..Scenario::new(self.name, Topology::Dumbbell { access, bottleneck })
        };
        Ok(timed(scenario, run.is_small))
    }
}

/// Returns the flows of each kind, numbered from 1.
pub(super) fn flows(pair: [&str; 2], profile: &Profile, of_a_kind: u32) -> Vec<FlowSpec> {
    let numbered = |(kind, number): (&str, u32)| FlowSpec {
        name: format!("{kind} {number}"),
        ..flow(kind, profile)
    };
    let both = pair.into_iter().flat_map(|kind| (1..=of_a_kind).map(move |number| (kind, number)));
    both.map(numbered).collect()
}

/// Returns the queue in packets whose share of drops, in per cent, is nearest to `sought` in one
/// run, or that of the next record.
pub(super) fn queue_for(
    run: &Run,
    sought: f64,
    scenario: impl Fn(u32) -> Result<Scenario, LabError>,
) -> Result<u32, LabError> {
    if let Some(recorded) = &run.recorded {
        return Ok(recorded.peek("queue").unwrap_or_default() as u32);
    }
    // A small run tries one queue.
    let (shortest, longest) = QUEUES;
    let longest = if run.is_small { shortest } else { longest };
    bisect((shortest, longest), sought, |queue| {
        let scenario = scenario(queue)?;
        let duration = scenario.duration.min(Duration::from_secs(60));
        let scenario = Scenario { duration, ..scenario };
        let result = simulate::once(simulate::staggered(&scenario, 1), 1)?;
        run.done.add();
        Ok(dropped(&result))
    })
}

/// Returns the queue, from the shortest to the longest, whose share of drops is nearest to
/// `sought`. A longer queue drops less.
fn bisect(
    (mut from, mut to): (u32, u32),
    sought: f64,
    mut dropped: impl FnMut(u32) -> Result<f64, LabError>,
) -> Result<u32, LabError> {
    let mut nearest = (f64::INFINITY, from);
    while from <= to {
        let queue = u32::midpoint(from, to);
        let share = dropped(queue)?;
        let off = (share - sought).abs();
        if off < nearest.0 {
            nearest = (off, queue);
        }
        (from, to) = if share > sought { (queue + 1, to) } else { (from, queue - 1) };
    }
    Ok(nearest.1)
}

/// Returns the verdict where the drops with the queue found, in per cent, are not those of the
/// paper.
pub(super) fn outside(
    paper: &str,
    (from, to): (f64, f64),
    dropped: &Interval,
    queue: u32,
) -> Option<Verdict> {
    (!(from..=to).contains(&dropped.mean)).then(|| {
        Verdict::NotComparable(format!(
            "the queue found ({queue} packets) drops {} %; the paper has {paper}",
            theory::show(dropped, 1.0, 2)
        ))
    })
}

/// Returns the measurements of a run of as many flows of one kind as of the other: goodputs in
/// bit/s, and the means and the time-outs of each kind.
pub(super) fn fields(result: &RunResult, queue: u32) -> Fields {
    let (waits, beside) = result.flows.split_at(result.flows.len() / 2);
    let goodputs = |of: &[FlowResult]| of.iter().map(|flow| flow.goodput).collect::<Vec<_>>();
    let mean =
        |of: &[FlowResult]| goodputs(of).iter().sum::<f64>() / goodputs(of).len().max(1) as f64;
    let timeouts =
        |of: &[FlowResult]| of.iter().map(|flow| flow.timeouts.unwrap_or(0)).sum::<u64>();
    fields! {
        queue,
        goodputs: goodputs(&result.flows),
        means: vec![mean(waits), mean(beside)],
        timeouts: vec![timeouts(waits), timeouts(beside)],
        dropped: dropped(result),
    }
}

/// Returns the per cent of packets that the bottleneck's queue drops.
pub(super) fn dropped(result: &RunResult) -> f64 {
    let link = result.links.iter().find(|link| link.name == "bottleneck" && link.way == "forth");
    link.map_or(0.0, |link| {
        link.counters.queue_dropped as f64 / link.counters.received.max(1) as f64 * 100.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_the_one_with_the_nearest_share_of_drops() {
        let found = |sought| {
            let mut tries = 0;
            let queue = bisect(QUEUES, sought, |queue| {
                tries += 1;
                Ok(100.0 / f64::from(queue))
            });
            assert!(tries <= 9, "{tries}");
            queue.unwrap()
        };
        assert_eq!([1.5, 1.0, 50.0, 0.01].map(found), [67, 100, 5, 470]);
        let one = bisect((5, 5), 1.0, |queue| Ok(f64::from(queue)));
        assert_eq!(one.unwrap(), 5);
    }

    #[test]
    fn drops_that_are_not_the_papers_decide_nothing() {
        let judged = |mean: f64| outside("1.5 %", (1.35, 1.65), &Interval::of(&[mean; 2]), 67);
        assert_eq!(judged(1.4), None);
        let reason = "the queue found (67 packets) drops 1.70 ± 0.00 %; the paper has 1.5 %";
        assert_eq!(judged(1.7).as_ref().and_then(Verdict::reason), Some(reason));
    }
}
