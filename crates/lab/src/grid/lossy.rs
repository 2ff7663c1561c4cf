//! Runs every combination over random loss with real packets, beside Linux' bbr and cubic.

use airtcp_recovery::Combination;
use airtcp_recovery::registry::WireNeeds;

use crate::prelude::*;
use crate::real::{self, BACK, Course, Done, Flow, LINK, Tcp, times};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "grid/lossy",
    what: "All combinations, Linux bbr and cubic under random loss of 0.1 to 10 %",
    source: "no source: a comparison of senders on a link with random loss, and their fairness",
    ground: Ground::Real,
    seconds: 1770,
    seeds: 1,
    body,
    ..Experiment::STUDY
};

/// The loss of data packets, in per cent.
const LOSSES: [f64; 5] = [0.1, 1.0, 2.0, 5.0, 10.0];
const WARM_UP: Duration = Duration::from_secs(1);
const END: Duration = Duration::from_secs(5);
/// The times beside another flow, which are longer because the shares of the link take longer to
/// settle.
const SHARED: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(20));
/// The minimum number of runs beside another flow.
const SHARED_RUNS: u64 = 10;
/// The maximum share of a link that two flows fill.
const SHARE: f64 = 0.6;
/// The options that a Linux receiver grants.
const LINUX: WireNeeds = WireNeeds { sack: true, timestamps: true, ..WireNeeds::NONE };
const KERNEL: [&str; 2] = ["bbr", "cubic"];

/// A sender and its results.
struct Row {
    name: String,
    tcp: Tcp,
    /// The goodput in bit/s of every run, for each loss rate.
    goodputs: [Vec<f64>; LOSSES.len()],
}

impl Row {
    fn new(name: String, tcp: Tcp) -> Self {
        Self { name, tcp, goodputs: [const { Vec::new() }; LOSSES.len()] }
    }

    /// Returns the geometric mean over the loss rates: a factor of two counts the same at each
    /// rate.
    fn mean(&self) -> f64 {
        let run: Vec<_> = self.goodputs.iter().filter(|of| !of.is_empty()).collect();
        let logs: f64 = run.iter().map(|of| Interval::of(of).mean.max(1.0).ln()).sum();
        (logs / run.len().max(1) as f64).exp()
    }

    /// Returns whether the sender adapts to congestion: its window is not fixed, and its judge is
    /// not `rr`, which never reduces the window.
    fn is_adaptive(&self) -> bool {
        let Tcp::Ours(combination, _) = &self.tcp else { return false };
        let text = combination.to_string();
        let is_rr = text.split(['/', '+']).skip(2).any(|judge| judge == "rr");
        combination.control().entry().name != "fixed" && !is_rr
    }

    fn points(&self) -> Vec<airtcp_trace::figure::Point> {
        let run = LOSSES.iter().zip(&self.goodputs).filter(|(_, of)| !of.is_empty());
        run.map(|(&loss, of)| draw::interval(loss, &Interval::of(of), 1e-6)).collect()
    }
}

/// Returns all senders that keep their combination when the receiver is Linux.
fn rows(run: &Run) -> Vec<Row> {
    let all = Combination::all().into_iter().chain(Combination::all_judged());
    let all = std::iter::once(Combination::default()).chain(all);
    let ours = all.filter(|combination| combination.granted(LINUX) == *combination);
    let ours = ours.map(|c| Row::new(c.to_string(), Tcp::Ours(c, Profile::modern())));
    let kernel = KERNEL.map(|name| Row::new(format!("Linux {name}"), Tcp::Kernel(Some(name))));
    // A small run has a few of them.
    let step = if run.is_small { 16 } else { 1 };
    ours.step_by(step).chain(kernel).collect()
}

/// Returns the measurements of a run: its first flow is the sender, and `beside` is the goodput of
/// the cubic flow of Linux beside it, if there is one.
fn fields(done: &Done) -> Fields {
    fields! {
        beside: done.flows.get(1).map(|flow| flow.goodput),
        goodput: done.goodput(),
        retransmissions: done.retransmissions(),
        lost: done.link.channel_lost,
        queue_dropped: done.link.queue_dropped,
        lateness: done.lateness,
    }
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new("sender, Mbit/s | 0.1 % | 1 % | 2 % | 5 % | 10 % | geometric mean");
    let mut rows = rows(run);
    let late = measure(&mut findings, run, &mut rows)?;
    rows.sort_by(|a, b| b.mean().total_cmp(&a.mean()));
    for row in &rows {
        let [a, b, c, d, e] = row.goodputs.each_ref().map(|of| match &of[..] {
            [] => "-".to_owned(),
            of => theory::show(&Interval::of(of), 1e-6, 2),
        });
        let mean = format!("{:.2}", row.mean() * 1e-6);
        findings.table.row([row.name.clone(), a, b, c, d, e, mean]);
    }
    findings.note(format!(
        "Payload from {} to {} s after the begin, received by Linux; columns are the share of data packets lost at random, \
         by the same seed for all. At each loss the senders take turns. Judges are with the control reno. One \
         run a point shows only large differences: neighbours in this list are in no order. What needs \
         more of a receiver than Linux grants is left out: it would run as what it falls back on.",
        WARM_UP.as_secs(),
        END.as_secs()
    ));
    findings.note(format!(
        "In {late} runs the link was late by more than a tenth of the RTT for more than 1 % of the packets, \
         after up to three tries each."
    ));
    if let Some(best) = rows.iter().find(|row| row.is_adaptive()) {
        share(&mut findings, run, best)?;
    }
    if let Some(default) = rows.iter().find(|row| row.name == Combination::default().to_string()) {
        share(&mut findings, run, default)?;
    }
    pictures(&mut findings, &rows);
    Ok(findings)
}

/// Runs every sender at every loss rate; returns the number of late runs.
fn measure(findings: &mut Findings, run: &Run, rows: &mut [Row]) -> Result<u64, LabError> {
    let (warm_up, end) = times(run, WARM_UP, END);
    let cases = if run.is_small { 1 } else { LOSSES.len() };
    let mut late = 0;
    for seed in 1..=run.seeds {
        for (index, loss) in LOSSES.into_iter().enumerate().take(cases) {
            for row in &mut *rows {
                let forth = format!("{LINK} loss {loss}% only payload seed {seed}");
                let course = Course::to_linux(&row.tcp, (&forth, BACK), (warm_up, end))?;
                let place = fields! { sender: row.name.as_str(), loss };
                let one = findings.transfer(run, seed, &place, &course, fields)?;
                late += u64::from(course.was_late(&one));
                row.goodputs[index].extend(one.number("goodput"));
            }
        }
    }
    Ok(late)
}

/// Runs a sender beside a cubic flow of Linux on a link that drops packets only at its queue.
fn share(findings: &mut Findings, run: &Run, row: &Row) -> Result<(), LabError> {
    let (warm_up, end) = times(run, SHARED.0, SHARED.1);
    let runs = if run.is_small { 1 } else { run.seeds.max(SHARED_RUNS) };
    let mut shares = Vec::new();
    let mut late = 0;
    for seed in 1..=runs {
        let forth = format!("{LINK} seed {seed}");
        let mut course = Course::to_linux(&row.tcp, (&forth, BACK), (warm_up, end))?;
        course.flows.push(Flow::new(Tcp::Kernel(Some("cubic"))));
        let place = fields! { sender: row.name.as_str(), loss: 0.0 };
        let one = findings.transfer(run, seed, &place, &course, fields)?;
        late += u64::from(course.was_late(&one));
        let own = one.number("goodput").unwrap_or_default();
        shares.push(own / (own + one.number("beside").unwrap_or_default()));
    }
    let share = Interval::of(&shares);
    findings.claim(
        format!("share of {} beside a Linux cubic flow, no random loss, {runs} runs", row.name),
        "under 60 %",
        format!("{} %", theory::show(&share, 100.0, 1)),
        if late > 0 {
            real::late(late, runs)
        } else {
            theory::below(&share, SHARE, theory::unknown)
        },
    );
    Ok(())
}

/// Draws the controls and judges with one detection, and the detections with one control, beside
/// the kernel's senders.
fn pictures(findings: &mut Findings, rows: &[Row]) {
    let mut picture = |name, title: &str, is_shown: &dyn Fn(&str) -> bool| {
        let shown = rows.iter().filter(|row| is_shown(&row.name));
        let series =
            shown.map(|row| draw::series(row.name.as_str(), Style::LineAndMarks, row.points()));
        let figure = Figure {
            title: format!("{title}, 100 Mbit/s, 20 ms"),
            x: draw::log("loss, %"),
            y: draw::log("goodput, Mbit/s"),
            series: series.collect(),
        };
        findings.picture(name, figure);
    };
    picture("controls", "Controls and judges with rack", &|name| {
        name.starts_with("rack/") || name.starts_with("Linux")
    });
    picture("detections", "Detections with cubic", &|name| {
        name.ends_with("/cubic") || name == "Linux cubic"
    });
}
