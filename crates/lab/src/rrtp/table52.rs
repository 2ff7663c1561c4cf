//! RRTP, Table 5.2: five protocols on one link of 54 Mbit/s.

use super::network::{NEW_RENO, PAYLOAD, RENO, SETUP, VEGAS, WESTWOOD, flow, shared, short};
use crate::paper::Printed;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/table5.2",
    what: "Shares of Reno, NewReno, Vegas, Westwood and RRTP, error 0 to 5 %",
    source: "RRTP (Wang 2009) 5.2, Table 5.2; delay, queue and time are not stated",
    seconds: 190,
    body,
    ..Experiment::STUDY
};

/// The error rate in per cent, and the printed rates in hundredths of Mbit/s.
const TABLE: [(f64, [u32; 5]); 5] = [
    (0.0, [896, 896, 896, 896, 896]),
    (0.1, [628, 633, 837, 738, 882]),
    (0.5, [408, 422, 509, 721, 789]),
    (1.0, [298, 302, 306, 586, 697]),
    (5.0, [116, 116, 97, 223, 245]),
];
const SENDERS: [&str; 5] = [RENO, NEW_RENO, VEGAS, WESTWOOD, "rrtp"];
/// The senders that fill a queue until it drops.
const LOSS_BASED: [&str; 3] = [RENO, NEW_RENO, WESTWOOD];
/// The queues in packets: one BDP (54 Mbit/s x 20 ms / 8 / 1440), a quarter of it, and four times
/// it.
const QUEUES: [u64; 3] = [94, 24, 376];
const RATE: f64 = 54e6;
/// The network of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Network {
    /// The link is shared, and loses packets; with this queue in packets and this delay in ms.
    Shared(u64, u64),
    /// Every flow has a link of 54 Mbit/s of its own, which loses packets.
    Own,
}
/// A network, and a row of the table.
type Case = (Network, (f64, [u32; 5]));
const USUAL: Network = Network::Shared(QUEUES[0], 10);
/// A round-trip time of 46 ms, with which Mathis' law gives the thesis' Reno at 1 %.
const LONGER: Network = Network::Shared(216, 23);

fn cases() -> Vec<Case> {
    let usual = TABLE.map(|row| (USUAL, row));
    // Random losses hide the effect of the queue's size, so other queues only run with the first
    // row.
    let queues = [QUEUES[1], QUEUES[2]].map(|queue| (Network::Shared(queue, 10), TABLE[0]));
    // Two rows are enough to show whether the flows disturb each other.
    let others = [Network::Own, LONGER].map(|network| [3, 4].map(|row| (network, TABLE[row])));
    usual.into_iter().chain(queues).chain(others.concat()).collect()
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new("error, % | network | sender | Mbit/s | of the fair share | thesis, Mbit/s");
    let cases = cases();
    let cases = if run.is_small { &cases[..1] } else { &cases[..] };
    let times = if run.is_small { [2, 6] } else { [20, 80] }.map(Duration::from_secs);
    let grid = Grid::run(run, vec![Axis::new("case", 0..cases.len())], |point, seed| {
        let (network, (error, _)) = cases[point.number("case") as usize];
        let scenario = network.scenario(error, times)?;
        let result = simulate::once(simulate::staggered(&scenario, seed), seed)?;
        let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput).collect();
        let dropped: u64 = result.links.iter().map(|link| link.counters.queue_dropped).sum();
        let fields = fields! { error, network: network.name() };
        Ok(fields.with("goodputs", goodputs).with("queue_dropped", dropped))
    })?;
    grid.record(&mut findings, &[])?;
    let cells: Vec<_> = grid.all().each("case").zip(cases).collect();
    cells.iter().for_each(|(cell, case)| report(&mut findings, cell, case));
    let sum = |printed: [u32; 5]| f64::from(printed.iter().sum::<u32>()) / 100.0;
    let sums = TABLE.map(|(error, printed)| format!("{error} %: {:.1}", sum(printed)));
    findings.note(SETUP);
    findings.note(format!(
        "the thesis' rows add up to (Mbit/s of 54) {}: from 0.5 % on the link is half empty, so that each flow is limited \
         by its losses and not by the others; and its first row shows Vegas equal to Reno, which contradicts its text",
        sums.join(", ")
    ));
    // At a random loss of p, Reno keeps a window of sqrt(3/2p) segments per round trip.
    let trips = TABLE[1..].iter().map(|(error, printed)| {
        let trip = (1.5 / (error / 100.0)).sqrt() * PAYLOAD * 8.0 / (f64::from(printed[0]) * 1e4);
        format!("{:.0} ms at {error} %", trip * 1e3)
    });
    findings.note(format!(
        "by Mathis' law the thesis' Reno has a round-trip time of {}, which the thesis does not state",
        trips.collect::<Vec<_>>().join(", ")
    ));
    let series = SENDERS.iter().enumerate().map(|(flow, sender)| {
        let own = cells.iter().filter(|(_, (network, _))| *network == USUAL);
        let points = own.map(|(cell, (_, (x, _)))| draw::interval(*x, &goodput(cell, flow), 1e-6));
        draw::series(short(sender), Style::LineAndMarks, points.collect())
    });
    findings.plot(
        "table5.2",
        "Five protocols on 54 Mbit/s",
        (draw::linear("error, %"), draw::goodput()),
        series,
    );
    Ok(findings)
}

impl Network {
    fn name(self) -> String {
        match self {
            Self::Shared(queue, delay) => format!("shared, queue of {queue}, {delay} ms"),
            Self::Own => "a link for each flow, 10 ms".to_owned(),
        }
    }

    fn scenario(self, error: f64, times: [Duration; 2]) -> Result<Scenario, LabError> {
        let flows = SENDERS.map(flow).to_vec();
        match self {
            Self::Shared(queue, delay) => {
                let link = format!("rate 54mbit delay {delay}ms limit {queue}");
                shared("table5.2", &link, &error.to_string(), flows, times)
            }
            Self::Own => {
                let link = format!("rate 54mbit delay 10ms limit {}", QUEUES[0]);
                let access = feed::wire(&format!("{link} loss {error}%"), &link)?;
                let topology = Topology::Dumbbell { access, bottleneck: Wire::default() };
                let [warm_up, duration] = times;
                let named = Scenario::new("table5.2", topology);
                Ok(Scenario { warm_up, duration, flows, ..named })
            }
        }
    }
}

/// Returns the goodput of the flow with this index in the table, in bit/s.
fn goodput(cell: &Slice<'_>, flow: usize) -> Interval {
    Interval::of(&cell.of(|run| run.list("goodputs").get(flow).copied()))
}

fn report(findings: &mut Findings, cell: &Slice<'_>, (network, (error, printed)): &Case) {
    let case = format!("error {error} %, {}", network.name());
    for (flow, (sender, thesis)) in SENDERS.iter().zip(printed).enumerate() {
        let goodput = goodput(cell, flow);
        let share = theory::scaled(&goodput, 1.0 / (RATE / SENDERS.len() as f64));
        let shown = [theory::show(&goodput, 1e-6, 2), theory::show(&share, 1.0, 2)].into_iter();
        let place = [error.to_string(), network.name(), short(sender).to_owned()];
        let thesis = format!("{:.2}", f64::from(*thesis) / 100.0);
        findings.table.add(place.into_iter().chain(shown).chain([thesis]).collect());
        let why = match (*error == 0.0, LOSS_BASED.contains(sender)) {
            (true, true) => "the others have the rest: see the table",
            (true, false) => "guess: it is delay-based, and yields while others fill the queue",
            (false, _) => "guess: the thesis has another delay, which it does not state",
        };
        let figure = f64::from(printed[flow]) / 100.0;
        let printed = Printed { what: "goodput, Mbit/s", figure, decimals: 2 };
        let place = format!("{}, {case}", short(sender));
        let ours = theory::scaled(&goodput, 1e-6);
        // The thesis does not state its delay and its queue: 20 ms and one BDP count.
        findings.beside(*network != USUAL, |findings| {
            findings.printed(&printed, &place, &ours, why);
        });
    }
    let of = |run: &Fields, flow: usize| run.list("goodputs").get(flow).copied();
    findings.beside(*network != USUAL, |findings| {
        if *error == 0.0 {
            let sum = Interval::of(&cell.of(|run| Some(run.list("goodputs").iter().sum())));
            let why = "guess: five flows that fill a queue keep the link busy";
            let printed =
                Printed { what: "goodput of all five, Mbit/s", figure: 44.8, decimals: 1 };
            findings.printed(&printed, &network.name(), &theory::scaled(&sum, 1e-6), why);
            return;
        }
        // Thesis 5.2: RRTP acquires bandwidth more aggressively where packets are lost; it has the
        // most in each of these rows.
        let rrtp = cell.of(|run| of(run, SENDERS.len() - 1));
        let others = (0..SENDERS.len() - 1).map(|flow| cell.of(|run| of(run, flow)));
        let ratios = others.map(|other| theory::paired(&rrtp, &other));
        let least = ratios.min_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap_or_default();
        let what = format!("{case}: RRTP over the best of the others");
        findings.mean(what, "above 1", (&least, 2), Bound::Above(1.0), theory::unknown);
    });
}
