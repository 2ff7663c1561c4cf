//! Compares one flow over random loss with the square-root law.

use airtcp_trace::figure::Series;
use airtcp_types::NodeId;

use crate::prelude::*;
use crate::progress::Progress;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "self/mathis",
    what: "Goodput of one sack/reno flow under random loss, against Mathis' law",
    source: "Mathis, Semke, Mahdavi, Ott 1997: MSS / RTT * sqrt(3 / (2 b p)), b = 1 as bytes are counted",
    seconds: 120,
    seeds: 10,
    body,
    ..Experiment::CHECK
};

/// The per cent of packets lost.
const LOSSES: [f64; 5] = [0.25, 0.5, 1.0, 1.5, 2.0];
const LINK: &str = "rate 100mbit delay 25ms limit 1000";
const SECONDS: u64 = 300;
const WARM_UP: u64 = 20;
/// The payload of a packet of 1500 bytes, without IP and TCP headers and timestamps.
const MSS: f64 = 1_448.0;
/// The maximum relative difference of the mean from a law.
const WITHIN: f64 = 0.1;
/// The left end of a chain.
const SENDER: NodeId = NodeId(0);

const NOTE: &str = "The cycle is that of the law plus a round without growth after each loss. It is compared with the goodput \
     outside of time-outs: RFC 6675 does not detect lost retransmissions, and waits for the timer. Other \
     differences between the law, the cycle and a flow: windows are whole segments, and losses are random, not at the end \
     of equal cycles.";

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | loss, % | goodput, Mbit/s | law | ratio | reductions per run | time-outs per run | \
         time in time-outs, % | goodput outside of time-outs, Mbit/s | cycle | goodput over the cycle",
    );
    let axes = vec![Axis::new("profile", ["modern", "paper"]), Axis::new("loss", LOSSES)];
    let grid = Grid::run(run, axes, |point, seed| {
        let scenario = scenario(point, run.is_small)?;
        let counted = (scenario.duration - scenario.warm_up).as_secs_f64();
        let progress = Progress::new(SENDER, scenario.warm_up);
        let (result, progress) = simulate::once_watched(scenario, seed, |_| progress)?;
        let flow = &result.flows[0];
        let (rtt, share) = (flow.rtt.mean, point.number("loss") / 100.0);
        let (law, cycle, free) = (mathis(rtt, share), cycle(rtt, share), progress.goodput());
        // `held` is the share of the time in which time-outs stopped the sender; `free` and `cycle`
        // are for the rest of the time.
        Ok(fields! {
            goodput: flow.goodput,
            rtt,
            law,
            ratio: flow.goodput / law,
            reductions: flow.reductions.unwrap_or(0),
            timeouts: flow.timeouts.unwrap_or(0),
            held: 1.0 - progress.time.as_secs_f64() / counted,
            free,
            cycle,
            free_ratio: free / cycle,
        })
    })?;
    grid.record(&mut findings, &["profile", "loss"])?;
    for row in grid.all().rows(&["profile", "loss"]) {
        let plain = |field, unit: f64, decimals: usize| {
            format!("{:.decimals$}", row.mean(field).mean * unit)
        };
        findings.table.row([
            row.text("profile"),
            row.text("loss"),
            row.show("goodput", 1e-6, 3),
            plain("law", 1e-6, 3),
            row.show("ratio", 1.0, 3),
            plain("reductions", 1.0, 1),
            plain("timeouts", 1.0, 1),
            plain("held", 100.0, 2),
            row.show("free", 1e-6, 3),
            plain("cycle", 1e-6, 3),
            row.show("free_ratio", 1.0, 3),
        ]);
        judge(&mut findings, &row);
    }
    let measured = |part: Slice<'_>| Series {
        style: Style::Marks,
        ..part.line(format!("measured, {}", part.text("profile")), "loss", 1e-6, |cell| {
            cell.mean("goodput")
        })
    };
    let mut series: Vec<_> = grid.all().each("profile").map(measured).collect();
    // Only for the paper's profile: the laws differ by the round-trip time, which delayed ACKs
    // increase by a few per cent.
    let paper = grid.all().at("profile", "paper");
    for (name, field) in [("Mathis' law", "law"), ("with a round of recovery", "cycle")] {
        let at = |cell: Slice<'_>| draw::point(cell.number("loss"), cell.mean(field).mean / 1e6);
        series.push(draw::series(name, Style::Line, paper.each("loss").map(at).collect()));
    }
    findings.note(NOTE);
    let title = "One sack/reno flow over random loss, RTT 50 ms";
    findings.plot("mathis", title, (draw::log("loss, %"), draw::log("goodput, Mbit/s")), series);
    Ok(findings)
}

fn judge(findings: &mut Findings, row: &Slice<'_>) {
    let case = format!("{} % loss, {} profile", row.text("loss"), row.text("profile"));
    let off = |ratio: f64| (ratio - 1.0) * 100.0;
    let mean = |field| row.mean(field).mean;
    let is_near = |field| (mean(field) - 1.0).abs() <= WITHIN;
    let law = Verdict::of(is_near("ratio"), || {
        format!(
            "{:+.1} %: {:+.1} % from the round without growth after each loss, {:+.1} % from time-outs of \
             lost repairs, and {:+.1} % from other causes",
            off(mean("ratio")),
            off(mean("cycle") / mean("law")),
            off(mean("goodput") / mean("free")),
            off(mean("free_ratio")),
        )
    });
    let range = "0.9 to 1.1";
    let what = format!("goodput over the law's, {case}");
    findings.claim_beside(what, range, row.show("ratio", 1.0, 3), law);
    let cycle = Verdict::of(is_near("free_ratio"), || {
        format!("{:+.1} % outside of time-outs", off(mean("free_ratio")))
    });
    let what = format!("without time-outs, over the cycle's, {case}");
    findings.claim(what, range, row.show("free_ratio", 1.0, 3), cycle);
}

/// Returns the goodput of Mathis' law in bit/s. `rtt` is the measured one, which includes
/// serialisation and queues.
fn mathis(rtt: f64, loss: f64) -> f64 {
    MSS * 8.0 / rtt * (1.5 / loss).sqrt()
}

/// Returns the goodput of the law with the round trip until a retransmission is acknowledged.
///
/// From w segments on, the window grows by one in each of w rounds; then it is halved, and does not
/// grow for a round. The cycle is 1.5 w^2 + w segments in w + 1 rounds, and one segment is lost.
fn cycle(rtt: f64, loss: f64) -> f64 {
    let window = ((1.0 + 6.0 / loss).sqrt() - 1.0) / 3.0;
    MSS * 8.0 / rtt / (loss * (window + 1.0))
}

fn scenario(point: &Point, is_small: bool) -> Result<Scenario, LabError> {
    let (warm_up, end) = if is_small { (2, 12) } else { (WARM_UP, WARM_UP + SECONDS) };
    let [warm_up, duration] = [warm_up, end].map(Duration::from_secs);
    let wire = feed::wire(&format!("{LINK} loss {}%", point.text("loss")), LINK)?;
    let flow = simulate::flow("sack/reno", point.profile());
    Ok(Scenario { warm_up, duration, ..simulate::over("mathis", wire, flow) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_of_recovery_costs_the_more_the_smaller_windows_are() {
        for (loss, share) in [(0.005, 0.945), (0.01, 0.924), (0.02, 0.895)] {
            assert!((cycle(0.05, loss) / mathis(0.05, loss) - share).abs() < 1e-3, "{loss}");
        }
        // Windows of 20 to 40: 620 segments in 21 rounds.
        let (cycle, expected) = (cycle(1.0, 1.0 / 620.0), MSS * 8.0 * 620.0 / 21.0);
        assert!((cycle / expected - 1.0).abs() < 1e-9);
    }
}
