//! The kernel's senders beside ours, over the same emulated link.

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Style};
use serde::Serialize;

use crate::real::{BACK, Course, LINK, Tcp, times};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, draw, theory};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/kernel-senders",
    what: "Goodput of Linux senders and of ours under random loss of 0 to 10 %",
    source: "no source: a comparison for users of the kernel's senders",
    kind: Kind::Study,
    ground: Ground::Real,
    seconds: 800,
    seeds: 3,
    body,
};

/// Per cent, of data alone.
const LOSSES: [f64; 7] = [0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0];
const WARM_UP: Duration = Duration::from_secs(2);
const END: Duration = Duration::from_secs(8);
/// Where logarithmic axes have no zero, it is drawn here.
const ZERO: f64 = 0.05;

fn senders() -> [(&'static str, Tcp); 5] {
    let ours =
        |text: &str| Tcp::Ours(text.parse().expect("a name of the registry"), Profile::modern());
    [
        ("Linux reno", Tcp::Kernel(Some("reno"))),
        ("ours sack/reno", ours("sack/reno")),
        ("Linux cubic", Tcp::Kernel(Some("cubic"))),
        ("ours sack/cubic", ours("sack/cubic")),
        ("Linux bbr", Tcp::Kernel(Some("bbr"))),
    ]
}

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    sender: &'a str,
    /// Per cent.
    loss: f64,
    goodput: f64,
    lost: u64,
    queue_dropped: u64,
    /// Seconds that 99 % of the packets were not exceeding.
    lateness: f64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new(["sender", "0 %", "0.1 %", "0.5 %", "1 %", "2 %", "5 %", "10 %"]);
    let (warm_up, end) = times(run, WARM_UP, END);
    let mut series = Vec::new();
    let mut late = 0;
    for (name, tcp) in senders() {
        let mut points = Vec::new();
        let mut cells = LOSSES.map(|_| "-".to_owned());
        // A small form only has the first.
        let cases = if run.is_small { 1 } else { LOSSES.len() };
        for (loss, cell) in LOSSES.into_iter().zip(&mut cells).take(cases) {
            let mut goodputs = Vec::new();
            for seed in 1..=run.seeds {
                let forth = format!("{LINK} loss {loss}% only payload seed {seed}");
                let course = Course::to_linux(&tcp, (&forth, BACK), (warm_up, end))?;
                let done = course.run_in_time()?;
                late += u64::from(!done.is_in_time(&course));
                findings.record(&Record {
                    seed,
                    sender: name,
                    loss,
                    goodput: done.goodput(),
                    lost: done.link.channel_lost,
                    queue_dropped: done.link.queue_dropped,
                    lateness: done.lateness,
                })?;
                goodputs.push(done.goodput());
            }
            let goodput = Interval::of(&goodputs);
            *cell = theory::show(&goodput, 1e-6, 2);
            points.push(draw::interval(loss.max(ZERO), &goodput, 1e-6));
        }
        let [a, b, c, d, e, f, g] = cells;
        findings.table.row([name.to_owned(), a, b, c, d, e, f, g]);
        series.push(draw::series(name, Style::LineAndMarks, points));
    }
    findings.notes.push(
        "Mbit/s of payload from 2 to 8 s after the begin, received by Linux; columns are the share of \
         data packets lost at random."
            .to_owned(),
    );
    findings.notes.push(format!(
        "In {late} runs the link was late by more than a tenth of the RTT for more than 1 % of the packets, \
         after up to three tries each."
    ));
    findings.picture(
        "kernel-senders",
        Figure {
            title: "Senders over random loss, 100 Mbit/s, 20 ms".to_owned(),
            x: draw::log(&format!("loss, % ({ZERO} stands for 0)")),
            y: draw::log("goodput, Mbit/s"),
            series,
        },
    );
    Ok(findings)
}
