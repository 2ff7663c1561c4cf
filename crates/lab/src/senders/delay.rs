//! Measures the queueing delay and the loss that a sender causes itself.

use airtcp_trace::figure::Column;

use super::measured::first;
use super::{
    Case, Measured, REAL, Shown, View, course, note, senders, simulated, why, window, words,
};
use crate::prelude::*;
use crate::real::{Done, Flow};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "senders/delay",
    what: "p95 of the RTT at a queue of 4 BDP; loss at 1 BDP and at policers",
    source: "our own bounds: 1.5 times the base RTT; 2 % loss at 1 BDP; at a policer 5 % and no more than Linux bbr",
    seconds: 6_100,
    body,
    ..REAL
};

pub(crate) const SIMULATED: Experiment = Experiment {
    name: "senders/delay-sim",
    what: "senders/delay in the simulator",
    seconds: 67,
    ..simulated(EXPERIMENT)
};

/// The round-trip time without queueing, in seconds.
pub(super) const BASE: f64 = 0.02;
/// The 95th percentile of the RTT divided by [`BASE`].
const DELAY: &str = "RTT p95 / base, 4 BDP";
const MOST_DELAY: f64 = 1.5;
/// The maximum per cent of data packets that the queue drops, and that a policer drops.
const MOST_LOST: [f64; 2] = [2.0, 5.0];
/// The reasons why the default candidate has more delay, in the simulator and with real packets.
const PROBES: &str = "guess: the length of bandwidth probes";
const JITTER: &str = "guess: jitter of the emulated link, whose effect senders/jitter-sim has";

/// A case with its figure and the figure's maximum.
type Judged = (Case, fn(&Done) -> f64, f64);

fn cases(times: (Duration, Duration)) -> [Judged; 4] {
    let case = |name: &str, forth: String| {
        Case::new(name, move |tcp, seed| {
            let forth = format!("{forth} seed {seed}");
            course(vec![Flow::new(tcp.clone())], &forth, times)
        })
    };
    // The bucket holds 10 ms at its rate.
    let police = |rate: u32, burst: u32| {
        format!("police rate {rate}mbit burst {burst}b {}", words(100.0, 20.0, 1.0))
    };
    let [most_lost, most_policed] = MOST_LOST;
    [
        (case(DELAY, words(100.0, 20.0, 4.0)), |done| first(done).rtt.p95 / BASE, MOST_DELAY),
        (case("lost %, 1 BDP", words(100.0, 20.0, 1.0)), lost, most_lost),
        (case("lost %, policed at 50", police(50, 62_500)), lost, most_policed),
        (case("lost %, policed at 80", police(80, 100_000)), lost, most_policed),
    ]
}

/// Returns the per cent of the packets offered to the link after the warm-up that were dropped.
pub(super) fn lost(done: &Done) -> f64 {
    let Done { link, at_warm_up, .. } = done;
    let dropped =
        (link.policed - at_warm_up.policed) + (link.queue_dropped - at_warm_up.queue_dropped);
    100.0 * dropped as f64 / (link.received - at_warm_up.received).max(1) as f64
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new("sender");
    let times = window(run, 10);
    let (mut cases, mut figures) = (Vec::new(), Vec::new());
    for (case, figure, most) in self::cases(times) {
        cases.push(case);
        figures.push((figure, most));
    }
    let measured = Measured::new(&mut findings, run, senders(run)?, cases)?;
    let values = |sender, case: usize| measured.values(sender, case, figures[case].0);
    let shown = Shown {
        name: "delay",
        title: "Delay and loss that a sender makes for itself",
        view: View::Columns(columns()),
        unit: "figure of the case",
        decimals: 2,
        is_by_case: false,
    };
    measured.show(&mut findings, shown, |sender, case| Interval::of(&values(sender, case)));
    let cause = if run.ground == Ground::Real { JITTER } else { PROBES };
    for (case, name) in measured.case_names() {
        let (own, most) = (values(0, case), figures[case].1);
        let (figure, what) = (Interval::of(&own), format!("{}: {name}", measured.sender_name(0)));
        let why = || why(run, (name == DELAY).then_some(cause));
        let (claimed, bound) = (format!("below {most}"), (Bound::Below(most), why));
        measured.claim(&mut findings, &[(0, case)], what.clone(), claimed, (&figure, 2), bound);
        let Some(bbr) = measured.kernel("bbr").filter(|_| name.contains("policed")) else {
            continue;
        };
        let other = values(bbr, case);
        let verdict = measured
            .unless_late(&[(0, case), (bbr, case)], || theory::less(&own, &other, theory::unknown));
        let claimed = format!("less than {}", measured.sender_name(bbr));
        let both = [&figure, &Interval::of(&other)].map(|of| theory::show(of, 1.0, 2)).join(" to ");
        findings.claim(what, claimed, both, verdict);
    }
    findings.note(note(run, times));
    Ok(findings)
}

/// Returns the columns of the picture, in the order of the cases.
fn columns() -> Vec<Column> {
    let labels = [
        "p95 of the RTT relative to the base RTT, queue of 4 BDP",
        "dropped packets, %, queue of 1 BDP",
        "dropped packets, %, policed at 50 Mbit/s",
        "dropped packets, %, policed at 80 Mbit/s",
    ];
    labels.map(|label| draw::column(draw::linear(label), draw::LESS)).to_vec()
}

#[cfg(test)]
mod tests {
    use airtcp_link::Counters;

    use super::*;
    use crate::timeline::Timeline;

    #[test]
    fn what_is_lost_in_the_warm_up_or_at_random_does_not_count() {
        let before =
            Counters { received: 100, policed: 50, queue_dropped: 10, ..Counters::default() };
        let link = Counters {
            received: 300,
            policed: 52,
            queue_dropped: 14,
            channel_lost: 90,
            ..Counters::default()
        };
        let timeline = Timeline::default();
        let done = Done { flows: Vec::new(), link, at_warm_up: before, timeline, lateness: 0.0 };
        assert_eq!(lost(&done), 3.0);
        assert_eq!(lost(&Done { link: before, ..done }), 0.0);
    }
}
