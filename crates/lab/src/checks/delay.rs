//! Checks the delay of packets on the delay line.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::prelude::*;
use crate::theory::{ChiSquare, Trials};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/delay",
    what: "Distribution and mean of the delay, against the link's description",
    source: "uniform, normal and Pareto (shape 3) distributions; DCR 3.1 for delayed packets",
    seconds: 2,
    body,
    ..Experiment::CHECK
};

const PACKETS: u64 = 50_000;
const BINS: usize = 20;

/// A link description, and the distribution of its delay: mean and deviation in milliseconds, and
/// the quantile function.
struct Law {
    link: &'static str,
    mean: f64,
    deviation: f64,
    quantile: fn(f64) -> f64,
}

const LAWS: [Law; 3] = [
    Law {
        link: "delay 20ms 4ms",
        mean: 20.0,
        deviation: 2.309_401,
        quantile: |q| 20.0 + 4.0 * (2.0 * q - 1.0),
    },
    Law {
        link: "delay 20ms 4ms distribution normal",
        mean: 20.0,
        deviation: 4.0,
        quantile: |q| 20.0 + 4.0 * Normal::standard().inverse_cdf(q),
    },
    Law {
        link: "delay 20ms 4ms distribution pareto",
        mean: 20.0,
        deviation: 4.0,
        // Pareto with shape 3: mean 3/2 and variance 3/4, shifted and scaled.
        quantile: |q| 20.0 + 4.0 * (libm::pow(1.0 - q, -1.0 / 3.0) - 1.5) / 0.75f64.sqrt(),
    },
];

/// A share of the packets has an additional normally distributed delay.
const DELAYED: &str = "delay 50ms delayed 10% 25ms 8ms";

fn body(run: &Run) -> Result<Findings, LabError> {
    let packets = run.scaled(PACKETS);
    let mut findings = Findings::new("link | mean, ms | theory | distribution");
    let mut series = Vec::new();
    for law in &LAWS {
        let (mut all, mut bins) = (Vec::new(), vec![0; BINS]);
        for seed in 1..=run.seeds {
            let delays = delays(&format!("{} seed {seed}", law.link), packets)?;
            let own = histogram(&delays, law.quantile);
            bins.iter_mut().zip(&own).for_each(|(all, own)| *all += own);
            findings.record_fields(seed, &fields(law.link, &delays, own))?;
            all.extend(delays);
        }
        let trials = Trials {
            sum: all.iter().sum(),
            count: all.len() as f64,
            mean: law.mean,
            variance: law.deviation * law.deviation,
        };
        let test = ChiSquare::test(&bins, &[1.0 / BINS as f64; BINS])?;
        let mean = theory::show(&trials.estimate(), 1.0, 3);
        let row = [law.link.to_owned(), mean.clone(), format!("{:.3}", law.mean), test.show()];
        findings.table.row(row);
        let (what, claimed) = (format!("{}, mean", law.link), format!("{} ms", law.mean));
        findings.claim(what, claimed, format!("{mean} ms"), trials.verdict());
        let what = format!("{}, {BINS} quantiles", law.link);
        findings.claim(what, "even", test.show(), test.verdict());
        series.extend(curves(law, all));
    }
    delayed(run, packets, &mut findings)?;
    findings.plot(
        "delay",
        "Delay of packets",
        (draw::linear("delay, ms"), draw::linear("share of packets up to it")),
        series,
    );
    Ok(findings)
}

/// Checks the packets with additional delay: their number, and the delay.
fn delayed(run: &Run, packets: u64, findings: &mut Findings) -> Result<(), LabError> {
    let later = |q| 25.0 + 8.0 * Normal::standard().inverse_cdf(q);
    let (mut all, mut bins) = (Vec::new(), vec![0; BINS]);
    for seed in 1..=run.seeds {
        let delays = delays(&format!("{DELAYED} seed {seed}"), packets)?;
        let late: Vec<f64> = delays.iter().filter(|d| **d > 50.0).map(|d| d - 50.0).collect();
        let own = histogram(&late, later);
        bins.iter_mut().zip(&own).for_each(|(all, own)| *all += own);
        findings.record_fields(seed, &fields(DELAYED, &late, own))?;
        all.extend(late);
    }
    let share = Trials::share(all.len() as u64, packets * run.seeds, 0.1);
    let (count, variance) = (all.len() as f64, 64.0);
    let mean = Trials { sum: all.iter().sum(), count, mean: 25.0, variance };
    let test = ChiSquare::test(&bins, &[1.0 / BINS as f64; BINS])?;
    let shown = theory::show(&mean.estimate(), 1.0, 3);
    findings.table.row([DELAYED.to_owned(), shown, "25.000".to_owned(), test.show()]);
    let shown = format!("{} %", theory::show(&share.estimate(), 100.0, 2));
    findings.claim(format!("{DELAYED}, share"), "10 %", shown, share.verdict());
    findings.claim(format!("{DELAYED}, {BINS} quantiles"), "even", test.show(), test.verdict());
    Ok(())
}

/// Returns the measurements of some delays in ms: `bins` are the numbers between the theoretical
/// quantiles, which contain equal shares.
fn fields(link: &str, delays: &[f64], bins: Vec<u64>) -> Fields {
    fields! {
        link,
        packets: delays.len(),
        mean: delays.iter().sum::<f64>() / delays.len() as f64,
        min: delays.iter().copied().fold(f64::INFINITY, f64::min),
        max: delays.iter().copied().fold(0.0, f64::max),
        bins,
    }
}

/// Returns the delays of `packets` packets, in milliseconds.
fn delays(text: &str, packets: u64) -> Result<Vec<f64>, LabError> {
    let mut delays = Vec::with_capacity(packets as usize);
    feed::send(&mut feed::link(text)?, feed::stream(packets), |at, packet| {
        let sent = airtcp_types::Instant::from_nanos(feed::number_of(packet) * 1_000);
        delays.push(at.since(sent).as_nanos() as f64 / 1e6);
    });
    Ok(delays)
}

fn histogram(delays: &[f64], quantile: impl Fn(f64) -> f64) -> Vec<u64> {
    let edges: Vec<f64> = (1..BINS).map(|n| quantile(n as f64 / BINS as f64)).collect();
    let mut bins = vec![0; BINS];
    delays.iter().for_each(|delay| bins[edges.partition_point(|edge| edge <= delay)] += 1);
    bins
}

/// Returns the distribution function, measured and theoretical.
fn curves(law: &Law, mut delays: Vec<f64>) -> [airtcp_trace::figure::Series; 2] {
    delays.sort_by(f64::total_cmp);
    let shares = (1..100).map(|n| f64::from(n) / 100.0);
    let theory = shares.clone().map(|q| draw::point((law.quantile)(q), q)).collect();
    let measured = shares.step_by(3).map(|q| {
        draw::point(delays[((delays.len() as f64 * q) as usize).min(delays.len() - 1)], q)
    });
    [
        draw::series(format!("{}, theory", law.link), Style::Line, theory),
        draw::series(law.link, Style::Marks, measured.collect()),
    ]
}
