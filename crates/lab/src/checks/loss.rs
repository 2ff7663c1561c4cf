//! Checks the share of packets that a link loses.

use crate::prelude::*;
use crate::theory::Trials;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/loss",
    what: "Share of lost packets, against the link's description",
    source: "binomial distribution; stationary loss rate of Gilbert-Elliott (netem(8), gemodel)",
    seconds: 2,
    body,
    ..Experiment::CHECK
};

const PACKETS: u64 = 200_000;

/// A loss model: its share of lost packets, and its variance per packet including the correlation
/// with neighbours.
struct Law {
    spec: String,
    share: f64,
    variance: f64,
}

impl Law {
    fn random(percent: f64) -> Self {
        let share = percent / 100.0;
        Self { spec: format!("loss {percent}%"), share, variance: share * (1.0 - share) }
    }

    /// The parameters are in netem's order, in per cent.
    fn gilbert_elliott([p, r, loss_bad, loss_good]: [f64; 4]) -> Self {
        let spec = format!("loss gemodel {p}% {r}% {loss_bad}% {loss_good}%");
        let [p, r, loss_bad, loss_good] = [p, r, loss_bad, loss_good].map(|x| x / 100.0);
        let bad = p / (p + r);
        let share = bad * loss_bad + (1.0 - bad) * loss_good;
        // The state's autocorrelation decreases by this factor with each packet: a geometric
        // series.
        let memory = 1.0 - p - r;
        let together = (loss_bad - loss_good).powi(2) * bad * (1.0 - bad);
        let variance = share * (1.0 - share) + 2.0 * together * memory / (1.0 - memory);
        Self { spec, share, variance }
    }
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let packets = run.scaled(PACKETS);
    let mut findings = Findings::new("link | lost, % | theory, %");
    let random = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0].map(Law::random);
    let bursty = [[2.0, 20.0, 100.0, 0.0], [1.0, 10.0, 75.0, 0.1]].map(Law::gilbert_elliott);
    let laws: Vec<_> = random.into_iter().chain(bursty).collect();
    let axes = vec![Axis::new("law", 0..laws.len())];
    let grid = Grid::run(run, axes, |point, seed| {
        let law = &laws[point.number("law") as usize];
        let lost = feed::losses(&format!("{} seed {seed}", law.spec), packets)?;
        let lost = lost.iter().filter(|lost| **lost).count() as u64;
        Ok(fields! {
            link: law.spec.as_str(),
            packets,
            lost,
            share: lost as f64 / packets as f64,
            theory: law.share,
        })
    })?;
    grid.record(&mut findings, &[])?;
    let mut points = Vec::new();
    for (law, row) in laws.iter().zip(grid.all().each("law")) {
        let trials = Trials {
            sum: row.values("lost").iter().sum(),
            count: (packets * run.seeds) as f64,
            mean: law.share,
            variance: law.variance,
        };
        let (share, expected) =
            (theory::show(&trials.estimate(), 100.0, 3), format!("{:.3}", law.share * 100.0));
        findings.table.row([law.spec.clone(), share.clone(), expected.clone()]);
        findings.claim(
            law.spec.clone(),
            format!("{expected} %"),
            format!("{share} %"),
            trials.verdict(),
        );
        points.push(draw::interval(law.share * 100.0, &trials.estimate(), 100.0));
    }
    let diagonal = [0.1, 20.0].map(|share| draw::point(share, share)).to_vec();
    let (x, y) = (draw::log("share described, %"), draw::log("share lost, %"));
    let theory = draw::series("theory", Style::Line, diagonal);
    let measured = draw::series("measured, 95 %", Style::Marks, points);
    findings.picture("loss", draw::figure("Lost packets", x, y, [theory, measured]));
    Ok(findings)
}
