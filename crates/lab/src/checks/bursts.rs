//! Checks the lengths of a link's loss bursts.

use airtcp_trace::figure::Style;
use serde::Serialize;

use crate::theory::{ChiSquare, geometric};
use crate::{Experiment, Findings, LabError, Run, draw, feed};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/bursts",
    what: "Lengths of loss runs and of the gaps between them, against theory",
    source: "geometric distributions of Bernoulli and Gilbert-Elliott losses; HACK 5.2 for bursts",
    seconds: 2,
    body,
    ..Experiment::CHECK
};

const PACKETS: u64 = 200_000;
const BINS: usize = 40;

/// Runs of a loss model that are geometrically distributed, in steps of so many packets.
struct Law {
    link: &'static str,
    what: &'static str,
    /// Runs of lost packets, or of those that come through.
    are_lost: bool,
    step: usize,
    /// The probability that a run ends after a step.
    stop: f64,
}

const LAWS: [Law; 6] = [
    Law { link: "loss 20%", what: "lost", are_lost: true, step: 1, stop: 0.8 },
    Law { link: "loss 20%", what: "between", are_lost: false, step: 1, stop: 0.2 },
    // In the bad state all are lost, in the good one none: runs are the states'.
    Law { link: "loss gemodel 2% 20%", what: "lost", are_lost: true, step: 1, stop: 0.2 },
    Law { link: "loss gemodel 2% 20%", what: "between", are_lost: false, step: 1, stop: 0.02 },
    // After a burst the next packet may start another, which touches it.
    Law { link: "burst 2% 5", what: "lost", are_lost: true, step: 5, stop: 0.98 },
    Law { link: "burst 10% 3", what: "lost", are_lost: true, step: 3, stop: 0.9 },
];

#[derive(Serialize)]
struct Record<'a> {
    seed: u64,
    link: &'a str,
    runs_of: &'a str,
    /// Packets in a step; a length is so many steps.
    step: usize,
    /// Runs of 1, 2, ... steps; the last is for it and all longer ones.
    runs: &'a [u64],
    /// Runs that are no whole number of steps: there are none.
    odd: u64,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let packets = run.scaled(PACKETS).max(20_000);
    let mut findings = Findings::new([
        "link",
        "runs of",
        "runs",
        "mean length",
        "theory",
        "not a whole number of bursts",
    ]);
    let mut series = Vec::new();
    for law in &LAWS {
        let (mut runs, mut odd) = (vec![0; BINS], 0);
        for seed in 1..=run.seeds {
            let lost = feed::losses(&format!("{} seed {seed}", law.link), packets)?;
            let (mut own, mut own_odd) = (vec![0; BINS], 0);
            for length in lengths(&lost, law.are_lost) {
                own[(length.div_ceil(law.step) - 1).min(BINS - 1)] += 1;
                own_odd += u64::from(!length.is_multiple_of(law.step));
            }
            runs.iter_mut().zip(&own).for_each(|(all, own)| *all += own);
            odd += own_odd;
            let (link, runs_of, step) = (law.link, law.what, law.step);
            findings.record(&Record { seed, link, runs_of, step, runs: &own, odd: own_odd })?;
        }
        let shares = geometric(law.stop, BINS);
        let test = ChiSquare::test(&runs, &shares)?;
        let total: u64 = runs.iter().sum();
        let steps: u64 = runs.iter().zip(1..).map(|(count, length)| count * length).sum();
        // The last bin counts as its shortest, in theory too.
        let mean = |steps: f64| format!("{:.3}", steps * law.step as f64);
        let theory: f64 = shares.iter().zip(1..).map(|(share, n)| share * f64::from(n)).sum();
        findings.table.row([
            law.link.to_owned(),
            law.what.to_owned(),
            total.to_string(),
            mean(steps as f64 / total as f64),
            mean(theory),
            odd.to_string(),
        ]);
        let verdict = if odd == 0 {
            test.verdict()
        } else {
            crate::Verdict::DoesNotHold(format!("{odd} runs are not a whole number of bursts"))
        };
        let what = format!("{}, runs of packets {}", law.link, law.what);
        findings.claim(what, format!("geometric, {} to end", law.stop), test.show(), verdict);
        if law.are_lost && law.step == 1 {
            let at = |index: usize, count: f64| draw::point((index + 1) as f64, count);
            let seen = runs.iter().enumerate().take(BINS - 1).filter(|(_, count)| **count > 0);
            let measured = seen.map(|(index, count)| at(index, *count as f64)).collect();
            let expected = shares.iter().map(|share| share * total as f64).enumerate();
            let expected = expected.take(BINS - 1).filter(|(_, count)| *count >= 1.0);
            let expected = expected.map(|(index, count)| at(index, count)).collect();
            series.push(draw::series(format!("{}, theory", law.link), Style::Line, expected));
            series.push(draw::series(law.link, Style::Marks, measured));
        }
    }
    let (x, y) = (draw::linear("length, packets"), draw::log("runs"));
    findings.picture("bursts", draw::figure("Runs of lost packets", x, y, series));
    Ok(findings)
}

/// The lengths of the runs of `wanted`. What runs into the end is left out.
fn lengths(lost: &[bool], wanted: bool) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut run = 0;
    for lost in lost {
        if *lost == wanted {
            run += 1;
        } else if run > 0 {
            lengths.push(run);
            run = 0;
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_to_the_last_whole_one() {
        let lost = [true, true, false, true, false, false, true];
        assert_eq!(lengths(&lost, true), [2, 1]);
        assert_eq!(lengths(&lost, false), [1, 2]);
    }
}
