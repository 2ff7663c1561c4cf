//! Checks the lengths of a link's loss bursts.

use crate::prelude::*;
use crate::theory::{ChiSquare, geometric};

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

/// Runs of a loss model whose lengths are geometrically distributed, in steps of `step` packets.
struct Law {
    link: &'static str,
    what: &'static str,
    /// Whether the runs are of lost packets or of delivered ones.
    are_lost: bool,
    step: usize,
    /// The probability that a run ends after a step.
    stop: f64,
}

const LAWS: [Law; 6] = [
    Law { link: "loss 20%", what: "lost", are_lost: true, step: 1, stop: 0.8 },
    Law { link: "loss 20%", what: "between", are_lost: false, step: 1, stop: 0.2 },
    // In the bad state all packets are lost, in the good state none, so runs are equal to the
    // states' durations.
    Law { link: "loss gemodel 2% 20%", what: "lost", are_lost: true, step: 1, stop: 0.2 },
    Law { link: "loss gemodel 2% 20%", what: "between", are_lost: false, step: 1, stop: 0.02 },
    // The packet after a burst can start another burst, which extends the run.
    Law { link: "burst 2% 5", what: "lost", are_lost: true, step: 5, stop: 0.98 },
    Law { link: "burst 10% 3", what: "lost", are_lost: true, step: 3, stop: 0.9 },
];

fn body(run: &Run) -> Result<Findings, LabError> {
    let packets = run.scaled(PACKETS).max(20_000);
    let mut findings = Findings::new(
        "link | runs of | runs | mean length | theory | not a whole number of bursts",
    );
    let grid = Grid::run(run, vec![Axis::new("law", 0..LAWS.len())], |point, seed| {
        let Law { link, what, are_lost, step, .. } = LAWS[point.number("law") as usize];
        let lost = feed::losses(&format!("{link} seed {seed}"), packets)?;
        // The counts of runs of 1, 2, ... steps, with all longer ones in the last bin; and the
        // count of runs that are not a whole number of steps.
        let (mut runs, mut odd) = (vec![0u64; BINS], 0);
        for length in lengths(&lost, are_lost) {
            runs[(length.div_ceil(step) - 1).min(BINS - 1)] += 1;
            odd += u64::from(!length.is_multiple_of(step));
        }
        let fields = fields! { link, runs_of: what, step };
        Ok(fields.with("runs", runs).with("odd", odd))
    })?;
    grid.record(&mut findings, &[])?;
    let mut series = Vec::new();
    for (law, cell) in LAWS.iter().zip(grid.all().each("law")) {
        let (runs, odd) = (cell.counts("runs"), cell.values("odd").iter().sum::<f64>());
        let shares = geometric(law.stop, BINS);
        let test = ChiSquare::test(&runs, &shares)?;
        let total: u64 = runs.iter().sum();
        let steps: u64 = runs.iter().zip(1..).map(|(count, length)| count * length).sum();
        // The last bin counts with its shortest length, in theory too.
        let mean = |steps: f64| format!("{:.3}", steps * law.step as f64);
        let theory: f64 = shares.iter().zip(1..).map(|(share, n)| share * f64::from(n)).sum();
        let lengths = [mean(steps as f64 / total as f64), mean(theory)];
        let place = [law.link, law.what].map(str::to_owned).into_iter();
        let counts = place.chain([total.to_string()]).chain(lengths).chain([odd.to_string()]);
        findings.table.add(counts.collect());
        let is_whole =
            Verdict::of(odd == 0.0, || format!("{odd} runs are not a whole number of bursts"));
        let verdict = Verdict::all([is_whole, test.verdict()]);
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
    findings.plot(
        "bursts",
        "Runs of lost packets",
        (draw::linear("length, packets"), draw::log("runs")),
        series,
    );
    Ok(findings)
}

/// Returns the lengths of the runs of `wanted`, without the run at the end.
fn lengths(lost: &[bool], wanted: bool) -> Vec<usize> {
    let mut runs: Vec<_> = lost.chunk_by(|one, next| one == next).collect();
    runs.pop();
    runs.into_iter().filter(|run| run[0] == wanted).map(<[bool]>::len).collect()
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
