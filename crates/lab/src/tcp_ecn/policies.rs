//! Compares the three policies at one point, and judges the paper's order of them.

use airtcp_basestation::Policy;
use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Style};

use super::course::{Course, Outcome};
use super::progress::Progress;
use super::senders::{SENDERS, Sender};
use super::tries::Tries;
use crate::{Findings, LabError, Run, draw, theory};

/// The policies in the order of the table.
pub(super) const POLICIES: [Policy; 3] = [Policy::Plain, Policy::Snoop, Policy::TcpEcn];
/// The per cent of loss and of reordering below which the radio has practically none.
const NOTHING: f64 = 0.01;

/// The relative difference below which two goodputs count as the same.
const ALIKE: f64 = 0.05;
/// The relative difference up to which a law explains a goodput.
const NEAR: f64 = 0.25;

/// Returns the policy of that name.
///
/// # Panics
///
/// Panics if there is none.
pub(super) fn named(name: &str) -> Policy {
    POLICIES.into_iter().find(|policy| policy.name() == name).expect("one of the policies")
}

/// The outcomes of a course with each policy.
pub(super) struct Point {
    pub(super) sender: Sender,
    pub(super) course: Course,
    outcomes: [Outcome; 3],
}

/// A sweep of one parameter by every sender, with several tries.
pub(super) struct Swept<X: 'static> {
    /// The label of the parameter, and its value.
    pub(super) x: &'static str,
    pub(super) at: fn(&Course) -> f64,
    /// Sets the parameter.
    pub(super) course: fn(Course, X) -> Course,
    pub(super) sweeps: &'static [(Tries, &'static [X])],
    /// The title of the pictures without the tries, and their names.
    pub(super) title: &'static str,
    pub(super) pictures: &'static [(&'static str, Tries)],
    /// Judges a sweep of one sender.
    pub(super) judge: fn(&Run, &mut Findings, &[Point]) -> Result<(), LabError>,
}

impl<X: Copy> Swept<X> {
    pub(super) fn run(&self, run: &Run) -> Result<Findings, LabError> {
        let mut findings = findings(self.x);
        let mut bench = Bench { run, findings: &mut findings, at: self.at };
        let mut all = Vec::new();
        for sender in &SENDERS {
            let judge =
                |findings: &mut Findings, points: &[Point]| (self.judge)(run, findings, points);
            all.extend(bench.sweeps(sender, self.sweeps, self.course, judge)?);
        }
        bench.pictures(self.pictures, (self.title, self.x), &all);
        findings.notes.extend(NOTES.map(str::to_owned));
        Ok(findings)
    }
}

/// The order of two policies' goodputs.
#[derive(Clone, Copy)]
pub(super) enum Order {
    MarkedlyAbove,
    Above,
    Same,
    Below,
}

/// Measures the points of an experiment.
pub(super) struct Bench<'a> {
    pub(super) run: &'a Run,
    pub(super) findings: &'a mut Findings,
    /// Returns the value of the swept parameter.
    pub(super) at: fn(&Course) -> f64,
}

/// Creates the findings with a table; `x` names the column of the swept parameter.
pub(super) fn findings(x: &str) -> Findings {
    Findings::new(&format!(
        "sender | pairs | tries x passes | {x} | policy | goodput of a pair, Mbit/s | lost after all tries, % | \
         reordered, % | sent again | in vain | time-outs"
    ))
}

/// The notes of every report.
pub(super) const NOTES: [&str; 3] = [
    "TCP-ECN has link retransmission (mac+link) with these tries x passes; plain and snoop have the tries of the MAC \
     alone. In the paper (7.1) link retransmission is a part of TCP-ECN, which replaces the link layer of the base \
     station. Here it is at both ends of the radio, for ACKs, too.",
    "The paper gives 7 x 3 as an example of tries x passes. We add fewer: with 2 x 3, frames of TCP-ECN overtake each \
     other; with 1 x 2, some are lost, too. 4 x 3 has the tries of ns-2's MAC, and a try fails \
     if the frame or its link ACK has an error: 36 % at 20 %. It loses more than ns-2, where a frame has arrived if only its \
     link ACK has an error. The paper does not state the limit of its MAC.",
    "The paper does not state its window. The default of ns-2 is 20 packets, which one of the senders has; the windows of \
     the others are never the limit.",
];

impl Bench<'_> {
    pub(super) fn point(&mut self, sender: &Sender, course: &Course) -> Result<Point, LabError> {
        let [plain, snoop, ecn] = POLICIES;
        let outcomes = [
            self.outcome(sender, course, plain)?,
            self.outcome(sender, course, snoop)?,
            self.outcome(sender, course, ecn)?,
        ];
        Ok(Point { sender: *sender, course: *course, outcomes })
    }

    /// Measures a sender at every point of some sweeps, each with its tries, and judges each sweep.
    pub(super) fn sweeps<X: Copy>(
        &mut self,
        sender: &Sender,
        sweeps: &[(Tries, &[X])],
        course: impl Fn(Course, X) -> Course,
        judge: impl Fn(&mut Findings, &[Point]) -> Result<(), LabError>,
    ) -> Result<Vec<Point>, LabError> {
        let mut all = Vec::new();
        for (tries, points) in sweeps {
            let base = Course::PAPER.with_tries(*tries);
            let points = self.run.points(points).into_iter();
            let own = points.map(|x| self.point(sender, &course(base, x)));
            let own = own.collect::<Result<Vec<_>, _>>()?;
            judge(self.findings, &own)?;
            all.extend(own);
        }
        Ok(all)
    }

    /// Draws the points with each of these tries. The title ends with the tries.
    pub(super) fn pictures(
        &mut self,
        pictures: &[(&'static str, Tries)],
        (title, x): (&str, &str),
        all: &[Point],
    ) {
        for (name, tries) in pictures {
            let title = format!("{title}, {} tries", Course::PAPER.with_tries(*tries).radio());
            let drawn = picture(title, x, all, |course| course.tries == *tries, self.at);
            self.findings.picture(*name, drawn);
        }
    }

    fn outcome(
        &mut self,
        sender: &Sender,
        course: &Course,
        policy: Policy,
    ) -> Result<Outcome, LabError> {
        let outcome = course.run(self.run, sender, policy, self.findings)?;
        self.row(sender, course, policy, &outcome);
        Ok(outcome)
    }

    /// Measures a point like [`point`](Self::point), and also returns the progress with every seed,
    /// in the order of the policies.
    pub(super) fn watched(
        &mut self,
        sender: &Sender,
        course: &Course,
    ) -> Result<(Point, [Vec<Progress>; 3]), LabError> {
        let mut watch = |policy| {
            let (outcome, progress) = course.watch(self.run, sender, policy, self.findings)?;
            self.row(sender, course, policy, &outcome);
            Ok::<_, LabError>((outcome, progress))
        };
        let [one, two, three] = POLICIES;
        let ((plain, a), (snoop, b), (ecn, c)) = (watch(one)?, watch(two)?, watch(three)?);
        let point = Point { sender: *sender, course: *course, outcomes: [plain, snoop, ecn] };
        Ok((point, [a, b, c]))
    }

    fn row(&mut self, sender: &Sender, course: &Course, policy: Policy, outcome: &Outcome) {
        let [goodput, lost, reordered, again, spurious, timeouts] = outcome.cells();
        self.findings.table.row([
            sender.name.to_owned(),
            course.pairs.to_string(),
            course.radio(),
            (self.at)(course).to_string(),
            policy.name().to_owned(),
            goodput,
            lost,
            reordered,
            again,
            spurious,
            timeouts,
        ]);
    }
}

impl Point {
    pub(super) fn of(&self, policy: Policy) -> &Outcome {
        let at = POLICIES.iter().position(|one| *one == policy);
        &self.outcomes[at.unwrap_or_default()]
    }

    /// Returns the ratio of two policies' goodputs. With the same seed, both lose the same packets
    /// on the wired side.
    fn ratio(&self, above: Policy, below: Policy) -> Interval {
        theory::paired(&self.of(above).goodputs, &self.of(below).goodputs)
    }

    /// Returns whether claims about the point are beside the paper, which does not have this sender
    /// or this radio.
    pub(super) fn is_beside(&self) -> bool {
        !self.sender.is_papers() || !self.course.tries.is_papers()
    }

    /// Returns the share of the payload that the radio carries with a policy.
    pub(super) fn of_radio(&self, run: &Run, policy: Policy) -> Result<Interval, LabError> {
        let station = self.course.station(run, policy)?;
        let bound = self.sender.bound(&station.radio, station.arq);
        Ok(theory::scaled(&self.of(policy).goodput, 1.0 / bound))
    }

    /// Claims that the goodputs have this order, as in the paper.
    pub(super) fn claim(
        &self,
        findings: &mut Findings,
        place: &str,
        above: Policy,
        order: Order,
        below: Policy,
    ) {
        let ratio = self.ratio(above, below);
        let why = || self.why(above, below);
        let (claimed, verdict) = match order {
            Order::MarkedlyAbove => ("markedly more (above 1.1)", theory::above(&ratio, 1.1, why)),
            Order::Above => ("more (above 1)", theory::above(&ratio, 1.0, why)),
            Order::Same => ("the same (0.9 to 1.1)", theory::within(&ratio, (0.9, 1.1), why)),
            Order::Below => ("less (below 1)", theory::below(&ratio, 1.0, why)),
        };
        let names = [above, below].map(Policy::name).join(" over ");
        let Course { pairs, .. } = self.course;
        let what = format!(
            "{names}, {place}, {} tries, {pairs} pair{}, {}",
            self.course.radio(),
            if pairs == 1 { "" } else { "s" },
            self.sender.name
        );
        findings.beside(self.is_beside(), |findings| {
            findings.claim(what, claimed, theory::show(&ratio, 1.0, 2), verdict);
        });
    }

    /// Returns the known reasons why the order differs.
    fn why(&self, one: Policy, other: Policy) -> String {
        let plain = self.of(Policy::Plain);
        let shown = |of: fn(&Outcome) -> Interval, decimals| {
            [one, other]
                .map(|policy| theory::show(&of(self.of(policy)), 1.0, decimals))
                .join(" and ")
        };
        let radio = with_plain(&plain.lost, &plain.reordered);
        let is_clean = is_clean(&plain.lost, &plain.reordered);
        let ratio = self.ratio(one, other).mean;
        let is_alike = (ratio - 1.0).abs() < ALIKE;
        let repairs = other == Policy::Plain && ratio > 1.0 && plain.lost.mean >= NOTHING;
        if is_clean && is_alike && self.course.gone.is_none() {
            return format!("{radio}: {NOTHING_LEFT}");
        }
        let sent = format!(
            "{} segments are retransmitted, {} spuriously, with {} time-outs",
            shown(|o| o.again, 0),
            shown(|o| o.spurious, 0),
            shown(|o| o.timeouts, 1)
        );
        let cached = theory::show(&self.of(Policy::Snoop).sent_again, 1.0, 0);
        let ecn = self.of(Policy::TcpEcn);
        let rtt = 2e-3 * f64::from(self.course.delay);
        let agrees = |law: &f64| (ecn.goodput.mean / law - 1.0).abs() < NEAR;
        let law = self.sender.law(ecn.lost.mean / 100.0, rtt).filter(agrees);
        let verdict = match law.filter(|_| one == Policy::TcpEcn && ecn.lost.mean >= NOTHING) {
            Some(law) => format!(
                "TCP-ECN cannot repair frames that link retransmission gives up: at the remaining loss Mathis' law allows {:.3} \
                 Mbit/s, and it has {:.3}",
                law / 1e6,
                ecn.goodput.mean / 1e6
            ),
            None if self.course.gone.is_some() && one == Policy::TcpEcn => {
                format!("Guess: {FREEZE_BIT}")
            }
            None if self.course.gone.is_some() && one == Policy::Snoop => format!(
                "Guess: our Snoop retransmits {cached} segments from its cache, also by its timer while the mobile is out of reach; the paper's \
                 ignores disconnections"
            ),
            None if repairs && one == Policy::Snoop => format!(
                "Guess: snoop repairs what plain loses on the radio, with {cached} segments from its cache"
            ),
            None if repairs => format!(
                "Guess: {} repairs what plain loses on the radio, and itself loses {} %",
                one.name(),
                theory::show(&self.of(one).lost, 1.0, 3)
            ),
            None if [one, other].contains(&Policy::Snoop) => format!(
                "Snoop retransmits {cached} segments from its cache; the cause was not determined"
            ),
            None => "The cause was not determined".to_owned(),
        };
        format!("{radio}; {sent}. {verdict}")
    }
}

/// The effect of a closed window on the sender's timer.
pub(super) const FREEZE_BIT: &str = "a closed window, unlike the paper's freeze bit, does not stop the timer of data that was sent before, as \
     tcp-ecn/disconnect shows with Linux";

/// Formats what the radio loses and reorders with `plain`.
pub(super) fn with_plain(lost: &Interval, reordered: &Interval) -> String {
    let [lost, reordered] = [lost, reordered].map(|of| theory::show(of, 1.0, 3));
    format!(
        "with plain {lost} % of the packets are lost after the MAC's tries and {reordered} % reordered"
    )
}

/// Returns whether the radio loses and reorders practically nothing.
pub(super) fn is_clean(lost: &Interval, reordered: &Interval) -> bool {
    lost.mean < NOTHING && reordered.mean < NOTHING
}

pub(super) const NOTHING_LEFT: &str = "the MAC's tries leave nothing for a policy to repair";

/// Draws goodput over the swept parameter, with a curve for each sender and policy.
pub(super) fn picture(
    title: String,
    x: &str,
    points: &[Point],
    is_of: impl Fn(&Course) -> bool,
    at: fn(&Course) -> f64,
) -> Figure {
    let series = SENDERS.iter().flat_map(|sender| POLICIES.map(|policy| (sender, policy)));
    let series = series.map(|(sender, policy)| {
        let own = points.iter().filter(|point| point.sender.name == sender.name);
        let own = own.filter(|point| is_of(&point.course));
        let drawn = own.map(|p| draw::interval(at(&p.course), &p.of(policy).goodput, 1e-6));
        let name = format!("{}, {}", policy.name(), sender.name);
        draw::series(name, Style::LineAndMarks, drawn.collect())
    });
    let (x, y) = (draw::linear(x), draw::linear(&draw::more("goodput of a pair, Mbit/s")));
    Figure { title, x, y, series: series.collect() }
}
