//! RRTP, Figs. 4.1 and 4.2: throughput over the loss rate, CDMA and satellite.

use super::network::{
    CDMA, Environment, QUEUES, RENO, SATELLITE, SETUP, VEGAS, WESTWOOD, delivered, is_seeded, named,
};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/fig4.1",
    what: "Throughput over CDMA and satellite by loss rate: RRTP and three TCPs",
    source: "RRTP (Wang 2009) 4.2.1, Figs. 4.1 and 4.2; the figures' values are not in the text",
    seconds: 60,
    body,
    ..Experiment::STUDY
};

/// The loss rates, in per cent. The thesis has its own only in its pictures.
const LOSSES: [f64; 7] = [0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0];
const TCP: [&str; 3] = [RENO, VEGAS, WESTWOOD];
const TIME: Duration = Duration::from_secs(60);
/// The name of [`Environment::seeded`] for every loss rate.
const SEEDED: &str = "rrtp+";
const ENVIRONMENTS: [(Environment, &str); 2] = [(CDMA, "fig4.1"), (SATELLITE, "fig4.2")];
/// Both links are the last hop in the thesis.
const RRTP: [&str; 2] = ["rrtp:wireless-last-hop", SEEDED];

/// The reason why RRTP is not faster without losses.
const SAME: &str = "guess: it has 16 bytes more of headers, which is 1 % of the link, and begins after two round trips; \
                    the queue of 50 packets keeps TCP's link busy";

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new("environment | loss, % | sender | throughput, kbit/s | share of the maximum");
    let losses = if run.is_small { &LOSSES[3..=4] } else { &LOSSES[..] };
    let axes = vec![
        Axis::new("environment", ENVIRONMENTS.map(|(environment, _)| environment.name)),
        Axis::new("kind", TCP.into_iter().chain(RRTP)),
        Axis::new("loss", losses.iter().copied()),
    ];
    let grid = Grid::run(run, axes, |point, seed| {
        let environment = environment(&point.text("environment"), point.number("loss"));
        let sender = point.text("kind");
        let sender = if sender == SEEDED { environment.seeded() } else { sender };
        let result = simulate::once(environment.scenario("fig4.1", &sender, TIME)?, seed)?;
        let flow = &result.flows[0];
        Ok(fields! {
            environment: environment.name,
            sender,
            loss: environment.loss,
            throughput: flow.goodput,
            delivered: delivered(flow, TIME),
            timeouts: flow.timeouts,
        })
    })?;
    grid.record(&mut findings, &[])?;
    for row in grid.all().rows(&["environment", "kind", "loss"]) {
        let [name, loss, sender] = ["environment", "loss", "kind"].map(|axis| row.text(axis));
        let most = environment(&name, row.number("loss")).most(&sender);
        let share = format!("{:.3}", row.mean("throughput").mean / most);
        let throughput = row.show("throughput", 1e-3, 2);
        findings.table.row([name, loss, named(&sender).to_owned(), throughput, share]);
    }
    for (part, (environment, picture)) in grid.all().each("environment").zip(ENVIRONMENTS) {
        claims(&mut findings, &part, losses);
        let series = part.each("kind").map(|of| {
            let name = named(&of.text("kind"));
            of.line(name, "loss", 1e-3, |cell| cell.mean("throughput"))
        });
        let title = format!("Throughput over the loss rate, {}", environment.name);
        findings.plot(
            picture,
            title,
            (draw::linear("loss, %"), draw::linear(&draw::more("throughput, kbit/s"))),
            series,
        );
    }
    findings.notes.extend([SETUP.to_owned(), QUEUES.to_owned()]);
    Ok(findings)
}

fn environment(name: &str, loss: f64) -> Environment {
    let found = ENVIRONMENTS.into_iter().find(|(environment, _)| environment.name == name);
    let (environment, _) = found.expect("one of the environments");
    Environment { loss, ..environment }
}

/// RRTP is faster than each TCP, also without losses, and its lead grows with the loss rate.
fn claims(findings: &mut Findings, part: &Slice<'_>, losses: &[f64]) {
    let place = part.text("environment");
    let [least, most] = [losses[0], losses[losses.len() - 1]];
    for (own, other) in RRTP.into_iter().flat_map(|own| TCP.map(|other| (own, other))) {
        let [first, last] = [least, most].map(|loss| {
            let [own, other] =
                [own, other].map(|of| part.at("kind", of).at("loss", loss).values("throughput"));
            theory::paired(&own, &other)
        });
        findings.beside(!is_seeded(own), |findings| {
            let [own, other] = [own, other].map(named);
            let what = format!("{place}: {own} over {other} at {least} % loss");
            findings.mean(what, "above 1", (&first, 3), Bound::Above(1.0), || SAME.to_owned());
            let growth = theory::difference(&last, &first);
            let what = format!("{place}: {own} over {other}, gain from {least} to {most} % loss");
            findings.mean(what, "above 0", (&growth, 3), Bound::Above(0.0), || {
                let [first, last] = [first, last].map(|ratio| theory::show(&ratio, 1.0, 3));
                format!("the advantage goes from {first} to {last}")
            });
        });
    }
}
