//! Runs every sender in every case, and shows the results.

use std::num::NonZero;

use airtcp_link::Counters;
use airtcp_sim::Interval;
use airtcp_trace::figure::{Axis, Column, Dots, Graph, Style};
use serde::Serialize;

use super::Sender;
use crate::real::{self, Course, Done, FlowDone, Rtt, Tcp};
use crate::study::{Fields, Value, fields};
use crate::theory::{self, Bound};
use crate::timeline::Timeline;
use crate::{Findings, Ground, LabError, Run, Table, Verdict, draw, simulate};

/// Creates the course of a sender; the seed determines the losses.
type MakeCourse = Box<dyn Fn(&Tcp, u64) -> Result<Course, LabError> + Sync>;

/// One situation in which every sender is measured.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) course: MakeCourse,
}

impl Case {
    pub(super) fn new(
        name: impl Into<String>,
        course: impl Fn(&Tcp, u64) -> Result<Course, LabError> + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), course: Box::new(course) }
    }
}

/// The labels of a table and its picture.
pub(super) struct Shown {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) view: View,
    /// The unit of the table.
    pub(super) unit: &'static str,
    /// The number of decimals.
    pub(super) decimals: usize,
    /// Whether the table has a row for each case instead of for each sender.
    pub(super) is_by_case: bool,
}

/// The form of a picture.
pub(super) enum View {
    /// A line for each sender. The positions of the cases are numbers.
    Lines { x: Axis, y: Axis, at: Vec<f64> },
    /// A row for each sender, and a column for each case.
    Columns(Vec<Column>),
    /// A row for each case, with a dot for each sender.
    Rows(Column),
}

/// Every run of every sender in every case.
pub(super) struct Measured {
    senders: Vec<Sender>,
    cases: Vec<String>,
    /// By sender, case and run, each with whether its link was on time.
    runs: Vec<Vec<Vec<(Done, bool)>>>,
    ground: Ground,
}

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    case: &'a str,
    sender: &'a str,
    /// The first flow's goodput, in bit/s.
    goodput: f64,
    /// The first flow's goodput during the warm-up.
    start_up: f64,
    /// The goodputs of the other flows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<f64>,
    segments: u64,
    retransmissions: u64,
    rtt: Rtt,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished: Option<f64>,
    link: Counters,
    at_warm_up: Counters,
    /// The 99th percentile of the link's packet lateness, in seconds; only in real runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness: Option<f64>,
}

impl Measured {
    /// Runs every sender in every case with every seed, alternating the senders.
    ///
    /// By default, simulated courses run on all cores and real ones run one by one; `run.threads`
    /// overrides both.
    ///
    /// # Errors
    ///
    /// The error of the first run that failed.
    pub(super) fn new(
        findings: &mut Findings,
        run: &Run,
        senders: Vec<Sender>,
        cases: Vec<Case>,
    ) -> Result<Self, LabError> {
        let mut jobs = Vec::new();
        for seed in 1..=run.seeds {
            for (case, of) in cases.iter().enumerate() {
                for (sender, who) in senders.iter().enumerate() {
                    jobs.push((seed, case, sender, (of.course)(&who.tcp, seed)?));
                }
            }
        }
        // Real courses that share cores make each other's links late.
        let threads = match run.recorded {
            Some(_) => 1,
            None => run.threads.map_or(usize::from(run.ground == Ground::Real), NonZero::get),
        };
        let done = simulate::on_threads(threads, jobs.len(), |job| {
            let (seed, case, sender, course) = &jobs[job];
            match (&run.recorded, run.ground) {
                (None, Ground::Real) => course.run_in_time(run),
                (None, Ground::Simulated) => course.simulate(run, *seed),
                (Some(recorded), _) => {
                    let place = fields! { case: cases[*case].name.as_str() };
                    let place = place.with("sender", senders[*sender].name.as_str());
                    let records = recorded.take(*seed..=*seed, [place.iter()])?;
                    Ok(records.iter().map(outcome).next().unwrap_or_default())
                }
            }
        })?;
        let mut runs = vec![vec![Vec::new(); cases.len()]; senders.len()];
        for ((seed, case, sender, course), done) in jobs.into_iter().zip(done) {
            let first = done.flows.first().copied().unwrap_or_default();
            findings.record(&Record {
                seed,
                case: &cases[case].name,
                sender: &senders[sender].name,
                goodput: first.goodput,
                start_up: first.start_up,
                beside: done.flows.iter().skip(1).map(|flow| flow.goodput).collect(),
                segments: first.segments,
                retransmissions: first.retransmissions,
                rtt: first.rtt,
                finished: first.finished,
                link: done.link,
                at_warm_up: done.at_warm_up,
                lateness: (run.ground == Ground::Real).then_some(done.lateness),
            })?;
            let is_in_time = done.is_in_time(&course);
            runs[sender][case].push((done, is_in_time));
        }
        let cases = cases.into_iter().map(|case| case.name).collect();
        Ok(Self { senders, cases, runs, ground: run.ground })
    }

    /// Returns the index of a sender.
    pub(super) fn sender(&self, name: &str) -> Option<usize> {
        self.senders.iter().position(|sender| sender.name == name)
    }

    /// Returns the index of a kernel sender, or of its replacement in virtual time.
    pub(super) fn kernel(&self, congestion: &'static str) -> Option<usize> {
        self.sender(&Sender::kernel(congestion, self.ground).name)
    }

    pub(super) fn sender_name(&self, sender: usize) -> &str {
        &self.senders[sender].name
    }

    /// Returns the index of a case.
    pub(super) fn case(&self, name: &str) -> Option<usize> {
        self.cases.iter().position(|case| case == name)
    }

    pub(super) fn case_name(&self, case: usize) -> &str {
        &self.cases[case]
    }

    pub(super) fn case_names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.cases.iter().map(String::as_str).enumerate()
    }

    /// Returns a value of every run.
    pub(super) fn values(
        &self,
        sender: usize,
        case: usize,
        value: impl Fn(&Done) -> f64,
    ) -> Vec<f64> {
        self.runs[sender][case].iter().map(|(done, _)| value(done)).collect()
    }

    /// Returns the mean of a value over the runs.
    pub(super) fn mean(
        &self,
        sender: usize,
        case: usize,
        value: impl Fn(&Done) -> f64,
    ) -> Interval {
        Interval::of(&self.values(sender, case, value))
    }

    /// Returns the outcome with the first seed.
    pub(super) fn first_run(&self, sender: usize, case: usize) -> Option<&Done> {
        self.runs[sender][case].first().map(|(done, _)| done)
    }

    /// Adds a claim about a mean over the runs of these senders and cases, shown with this number
    /// of decimals. Late runs make it not comparable; `why` gives the reason if it does not hold.
    pub(super) fn claim(
        &self,
        findings: &mut Findings,
        of: &[(usize, usize)],
        what: impl Into<String>,
        claimed: impl Into<String>,
        (mean, decimals): (&Interval, usize),
        (bound, why): (Bound, impl FnOnce() -> String),
    ) {
        let shown = theory::show(mean, 1.0, decimals);
        let verdict = self.unless_late(of, || bound.verdict(mean, why));
        findings.claim(what, claimed, shown, verdict);
    }

    /// Returns `verdict`, or not comparable if the link was late in a run of these senders and
    /// cases.
    pub(super) fn unless_late(
        &self,
        of: &[(usize, usize)],
        verdict: impl FnOnce() -> Verdict,
    ) -> Verdict {
        let runs = || of.iter().flat_map(|(sender, case)| &self.runs[*sender][*case]);
        match runs().filter(|(_, is_in_time)| !is_in_time).count() {
            0 => verdict(),
            late => real::late(late as u64, runs().count() as u64),
        }
    }

    /// Adds the table and the picture of one figure for each sender and case.
    pub(super) fn show(
        &self,
        findings: &mut Findings,
        shown: Shown,
        figure: impl Fn(usize, usize) -> Interval,
    ) {
        let cell = |sender, case| theory::show(&figure(sender, case), 1.0, shown.decimals);
        let senders = self.senders.iter().map(|sender| sender.name.clone()).enumerate();
        let cases = self.cases.iter().cloned().enumerate();
        let corner =
            format!("{}, {}", if shown.is_by_case { "case" } else { "sender" }, shown.unit);
        let names = |of: &mut dyn Iterator<Item = (usize, String)>| -> Vec<String> {
            std::iter::once(corner.clone()).chain(of.map(|(_, name)| name)).collect()
        };
        findings.table = if shown.is_by_case {
            let mut table = Table::of(names(&mut senders.clone()));
            for (case, name) in cases {
                let cells = senders.clone().map(|(sender, _)| cell(sender, case));
                table.add(std::iter::once(name).chain(cells).collect());
            }
            table
        } else {
            let mut table = Table::of(names(&mut cases.clone()));
            for (sender, name) in senders {
                let cells = cases.clone().map(|(case, _)| cell(sender, case));
                table.add(std::iter::once(name).chain(cells).collect());
            }
            table
        };
        findings.picture(shown.name, self.graph(shown.title, shown.view, figure));
    }

    /// Returns the picture of one figure for each sender and case.
    fn graph(&self, title: &str, view: View, figure: impl Fn(usize, usize) -> Interval) -> Graph {
        let title = title.to_owned();
        let dot = |sender, case| draw::dot(&figure(sender, case));
        let (senders, cases) = (0..self.senders.len(), 0..self.cases.len());
        match view {
            View::Lines { x, y, at } => {
                let line = |sender| {
                    let points = at.iter().zip(cases.clone());
                    let points =
                        points.map(|(x, case)| draw::interval(*x, &figure(sender, case), 1.0));
                    draw::series(self.shown_name(sender), Style::LineAndMarks, points.collect())
                };
                draw::figure(title, x, y, senders.map(line)).into()
            }
            View::Columns(columns) => {
                let row = |sender| {
                    let cells = cases.clone().map(|case| vec![dot(sender, case)]);
                    (self.shown_name(sender), cells.collect())
                };
                let rows = senders.map(row).collect();
                Dots { title, columns, series: Vec::new(), rows }.into()
            }
            View::Rows(column) => {
                let row = |case: usize| {
                    let cell = senders.clone().map(|sender| dot(sender, case));
                    (self.cases[case].clone(), vec![cell.collect()])
                };
                let rows = cases.map(row).collect();
                let series = senders.clone().map(|sender| self.shown_name(sender)).collect();
                Dots { title, columns: vec![column], series, rows }.into()
            }
        }
    }

    /// Returns the name of a sender in pictures, which are also shown where senders of Linux are
    /// known better than ours.
    fn shown_name(&self, sender: usize) -> String {
        let Sender { name, tcp } = &self.senders[sender];
        match (self.ground, tcp) {
            (Ground::Real, Tcp::Ours(..)) => format!("airtcp {name}"),
            _ => name.clone(),
        }
    }
}

/// Returns the outcome of a recorded run, as far as records have it: no timeline, of the other
/// flows the goodput, and of the counters those below.
fn outcome(record: &Fields) -> Done {
    let number = |field: &str| record.number(field).unwrap_or_default();
    let any = |field: &str| record.get(field).and_then(Value::number);
    let rtt = |field: &str| number(&format!("rtt.{field}"));
    let counters = |of: &str| Counters {
        received: number(&format!("{of}.received")) as u64,
        queue_dropped: number(&format!("{of}.queue_dropped")) as u64,
        policed: any(&format!("{of}.policed")).unwrap_or_default() as u64,
        ..Counters::default()
    };
    let first = FlowDone {
        goodput: number("goodput"),
        start_up: number("start_up"),
        segments: number("segments") as u64,
        retransmissions: number("retransmissions") as u64,
        rtt: Rtt {
            samples: rtt("samples") as usize,
            min: rtt("min"),
            mean: rtt("mean"),
            p95: rtt("p95"),
        },
        finished: any("finished"),
    };
    let beside = record.get("beside").map_or(&[][..], |_| record.list("beside"));
    let beside = beside.iter().map(|&goodput| FlowDone { goodput, ..FlowDone::default() });
    Done {
        flows: std::iter::once(first).chain(beside).collect(),
        link: counters("link"),
        at_warm_up: counters("at_warm_up"),
        timeline: Timeline::default(),
        lateness: any("lateness").unwrap_or_default(),
    }
}

/// Returns the outcome of the first flow.
pub(super) fn first(done: &Done) -> FlowDone {
    done.flows.first().copied().unwrap_or_default()
}
