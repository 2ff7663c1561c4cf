//! Compares the kernel's senders with ours, over the same emulated link.

use crate::prelude::*;
use crate::real::{BACK, Course, LINK, Tcp, times};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/kernel-senders",
    what: "Goodput of Linux senders and of ours under random loss of 0 to 10 %",
    source: "no source: a comparison for users of the kernel's senders",
    ground: Ground::Real,
    seconds: 800,
    seeds: 3,
    body,
    ..Experiment::STUDY
};

/// The loss of data packets, in per cent.
const LOSSES: [f64; 7] = [0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0];
const WARM_UP: Duration = Duration::from_secs(2);
const END: Duration = Duration::from_secs(8);

fn senders() -> [(&'static str, Tcp); 5] {
    let ours = |text| Tcp::ours(text, Profile::modern());
    [
        ("Linux reno", Tcp::Kernel(Some("reno"))),
        ("ours sack/reno", ours("sack/reno")),
        ("Linux cubic", Tcp::Kernel(Some("cubic"))),
        ("ours sack/cubic", ours("sack/cubic")),
        ("Linux bbr", Tcp::Kernel(Some("bbr"))),
    ]
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("sender | 0 % | 0.1 % | 0.5 % | 1 % | 2 % | 5 % | 10 %");
    // A small run has only the first.
    let losses = if run.is_small { &LOSSES[..1] } else { &LOSSES[..] };
    let (mut series, mut late) = (Vec::new(), 0);
    for (name, tcp) in senders() {
        let (mut row, mut points) = (vec![name.to_owned()], Vec::new());
        for loss in losses.iter().copied() {
            let mut goodputs = Vec::new();
            for seed in 1..=run.seeds {
                let forth = format!("{LINK} loss {loss}% only payload seed {seed}");
                let course = Course::to_linux(&tcp, (&forth, BACK), times(run, WARM_UP, END))?;
                let place = fields! { sender: name, loss };
                let one = findings.transfer(run, seed, &place, &course, |done| {
                    fields! {
                        goodput: done.goodput(),
                        lost: done.link.channel_lost,
                        queue_dropped: done.link.queue_dropped,
                        lateness: done.lateness,
                    }
                })?;
                late += u64::from(course.was_late(&one));
                goodputs.extend(one.number("goodput"));
            }
            let goodput = Interval::of(&goodputs);
            row.push(theory::show(&goodput, 1e-6, 2));
            points.push(draw::interval(loss.max(draw::ZERO), &goodput, 1e-6));
        }
        row.resize(findings.table.columns().len(), "-".to_owned());
        findings.table.add(row);
        series.push(draw::series(name, Style::LineAndMarks, points));
    }
    findings.note(
        "Mbit/s of payload from 2 to 8 s after the begin, received by Linux; columns are the share of \
         data packets lost at random.",
    );
    findings.note(format!(
        "In {late} runs the link was late by more than a tenth of the RTT for more than 1 % of the packets, \
         after up to three tries each."
    ));
    let title = "Senders over random loss, 100 Mbit/s, 20 ms";
    findings.plot("kernel-senders", title, (draw::losses(), draw::log("goodput, Mbit/s")), series);
    Ok(findings)
}
