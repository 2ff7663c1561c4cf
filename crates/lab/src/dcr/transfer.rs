//! The common parts of both forms of Table 20: a file transfer over a link whose delay varies from
//! packet to packet.

use crate::paper::{LINUX_2_4, Printed};
use crate::prelude::*;

/// The standard deviation of the delay in ms, and the paper's measurements: reordered packets in
/// per cent, and goodput in Mbit/s. The paper prints "Kbps", which must be kilobytes on a link of
/// 10 Mbit/s.
pub(super) const POINTS: [(u32, f64, f64); 4] = [
    (0, 0.0, 1127.29 * 0.008),
    (1, 13.90, 1106.52 * 0.008),
    (2, 30.38, 1087.45 * 0.008),
    (3, 39.87, 1093.90 * 0.008),
];
/// The duration of 33 MB at 1127 kB/s; slow senders stop at the same time.
const TIME: Duration = Duration::from_millis(29_300);
/// The ACK direction. The paper's round-trip time without variance is 16.3 ms, including the
/// emulator's delay of 10 ms.
pub(super) const BACK: &str = "rate 10mbit delay 6ms limit 100";
/// The combination that resembles the paper's sender: "modified to the current window size, upon
/// the receipt of the first dupack".
pub(super) const AS_THE_PAPER: &str = "sack/reno/dcr:count";

const WHY: &str = "guess: more packets are late by more than a smoothed round trip";

/// DCR 6: NICs of 10 Mbit/s, a queue of 100 packets, and 10 ms in the emulator.
pub(super) fn forth(deviation: u32) -> String {
    match deviation {
        0 => "rate 10mbit limit 100 delay 10ms".to_owned(),
        ms => format!("rate 10mbit limit 100 delay 10ms {ms}ms distribution normal"),
    }
}

pub(super) const fn time(run: &Run) -> Duration {
    if run.is_small { Duration::from_secs(1) } else { TIME }
}

/// The results of one sender at one point.
pub(super) struct Outcome {
    /// The standard deviation of the delay, in ms.
    pub(super) deviation: u32,
    /// In bit/s.
    pub(super) goodput: Interval,
    /// The per cent of packets that the link delivered after later ones.
    pub(super) disordered: Interval,
    /// The reason why the outcome is not a measurement.
    pub(super) unfit: Option<String>,
}

/// The results of one sender at all or some points; the first is the one without variance.
pub(super) struct Sender {
    pub(super) name: String,
    pub(super) combination: String,
    pub(super) outcomes: Vec<Outcome>,
}

impl Sender {
    /// Returns whether the paper does not have this sender.
    fn is_beside(&self) -> bool {
        self.combination != AS_THE_PAPER || !self.name.ends_with(LINUX_2_4)
    }

    fn at(&self, deviation: u32) -> Option<&Outcome> {
        self.outcomes.iter().find(|outcome| outcome.deviation == deviation)
    }
}

/// Creates the findings of either form.
pub(super) fn table() -> Findings {
    Findings::new("sender | 0 ms | 1 ms | 2 ms | 3 ms | 3 ms over 0 ms")
}

/// Shows and judges the results of all senders.
pub(super) fn show(findings: &mut Findings, senders: &[Sender], name: &'static str) {
    let figures = POINTS.map(|(_, _, goodput)| format!("{goodput:.2}"));
    let [a, b, c, d] = figures;
    let constant = format!("{:.2}", POINTS[3].2 / POINTS[0].2);
    findings.table.row(["DCR in the paper".to_owned(), a, b, c, d, constant]);
    let mut series = Vec::new();
    for sender in senders {
        let mut cells = POINTS.map(|_| "-".to_owned());
        let mut points = Vec::new();
        for (cell, (deviation, ..)) in cells.iter_mut().zip(POINTS) {
            let Some(outcome) = sender.at(deviation) else { continue };
            *cell = theory::show(&outcome.goodput, 1e-6, 2);
            points.push(draw::interval(f64::from(deviation), &outcome.goodput, 1e-6));
        }
        let shares = shares(sender);
        let last = shares.last().map_or_else(|| "-".to_owned(), |s| theory::show(s, 1.0, 2));
        let [a, b, c, d] = cells;
        findings.table.row([sender.name.clone(), a, b, c, d, last]);
        series.push(draw::series(sender.name.clone(), Style::LineAndMarks, points));
    }
    let printed = POINTS.map(|(deviation, _, goodput)| draw::point(f64::from(deviation), goodput));
    series.push(draw::series("DCR in the paper", Style::LineAndMarks, printed.to_vec()));
    for sender in senders {
        findings.beside(sender.is_beside(), |findings| claims(findings, sender));
    }
    let ours = senders.iter().find(|sender| !sender.is_beside());
    let pair = |(deviation, printed, _): (u32, f64, f64)| {
        let outcome = ours?.at(deviation)?;
        Some(format!("{} ({printed:.1})", theory::show(&outcome.disordered, 1.0, 1)))
    };
    let disordered: Vec<_> = POINTS.into_iter().filter_map(pair).collect();
    findings.note(format!(
        "out of order behind a later packet, in % (and in the paper, by another emulator whose distribution is its own): {}",
        disordered.join(", ")
    ));
    findings.note(
        "The paper's sender is Linux 2.4.20; the profile linux-2.4 is that kernel without its rate halving.",
    );
    findings.note(format!(
        "Mbit/s of payload over the first {} s, the time of 33 MB at the paper's rate; columns are the standard deviation of \
         the delay, normally distributed",
        TIME.as_secs_f64()
    ));
    let title = "Goodput over 10 Mbit/s and 10 ms, delay varies by packet";
    findings.plot(
        name,
        title,
        (draw::linear("standard deviation of the delay, ms"), draw::goodput()),
        series,
    );
}

/// Returns the goodputs divided by that without variance.
fn shares(sender: &Sender) -> Vec<Interval> {
    let Some(first) = sender.outcomes.first() else { return Vec::new() };
    sender.outcomes.iter().map(|o| theory::ratio(&o.goodput, &first.goodput)).collect()
}

fn claims(findings: &mut Findings, sender: &Sender) {
    let shares = shares(sender);
    let least = shares.iter().min_by(|a, b| a.mean.total_cmp(&b.mean)).copied().unwrap_or_default();
    let shown = theory::show(&least, 1.0, 2);
    if !sender.combination.contains("dcr") {
        findings.note(format!(
            "without DCR, {} keeps at least {shown} of its goodput without variance",
            sender.name
        ));
        return;
    }
    let unfit = sender.outcomes.iter().find_map(|outcome| outcome.unfit.clone());
    let verdict = match unfit {
        Some(unfit) => Verdict::NotComparable(unfit),
        None => theory::above(&least, 0.9, || WHY.to_owned()),
    };
    let what = format!("{}: least goodput over its own without variance", sender.name);
    findings.claim(what, "fairly constant (0.9 or more)", shown, verdict);
    if sender.combination != AS_THE_PAPER {
        return;
    }
    for (deviation, _, goodput) in POINTS {
        let Some(outcome) = sender.at(deviation) else { continue };
        let of = format!("{}, {deviation} ms", sender.name);
        let units = theory::scaled(&outcome.goodput, 1e-6);
        let printed = Printed { what: "goodput, Mbit/s", figure: goodput, decimals: 2 };
        if let Some(unfit) = &outcome.unfit {
            let verdict = Verdict::NotComparable(unfit.clone());
            findings.printed_as(&printed, &of, &units, verdict);
            continue;
        }
        findings.printed(
            &printed,
            &of,
            &units,
            "10 Mbit/s carry 9.65 Mbit/s of payload; the paper's transfer used 0.93 of it even without variance; the paper \
             does not give the reason",
        );
    }
}
