//! RRTP, Figs. 4.6 to 4.8: the gain from configuring the rate, the round-trip time and the loss
//! rate.

use super::network::{CDMA, PAYLOAD, QUEUES, RRTP_HEADER, SETUP};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/fig4.6",
    what: "Files over CDMA: RRTP with correct, 20 % low and no path parameters",
    source: "RRTP (Wang 2009) 4.5, Figs. 4.6 to 4.8, on a real network and without values in the text",
    seconds: 60,
    body,
    ..Experiment::STUDY
};

const KINDS: [&str; 2] = ["rrtp:wireless-last-hop", "rrtp"];
/// The file sizes in kB; the last is the thesis' file.
const SIZES: [u64; 3] = [100, 1_000, 10_000];
/// The configured parameters, correct and 20 % low.
const SEEDS: [&str; 3] = ["rate", "rtt", "loss"];
const ACCURACIES: [(&str, f64); 2] = [("right", 1.0), ("20 % low", 0.8)];

/// Returns the configuration of a parameter of [`CDMA`]. The round-trip time is that of a full
/// packet without queueing.
fn describe(what: &str, share: f64) -> String {
    match what {
        "rate" => format!("+rate={}bit", (CDMA.rate as f64 * share) as u64),
        "rtt" => {
            let packet = (PAYLOAD + f64::from(RRTP_HEADER)) * 8.0 / CDMA.rate as f64;
            let trip = 2.0 * CDMA.delay as f64 / 1e3 + packet;
            format!("+rtt={}us", (trip * share * 1e6) as u64)
        }
        _ => format!("+loss={}%", CDMA.loss * share),
    }
}

/// Returns the configurations: none, and each parameter with both values. Each has its name in the
/// table and the suffix of the sender's name.
fn configurations() -> Vec<(String, String)> {
    let each = SEEDS.into_iter().flat_map(|what| ACCURACIES.map(|(how, share)| (what, how, share)));
    let each = each.map(|(what, how, share)| (format!("{what}, {how}"), describe(what, share)));
    [("nothing".to_owned(), String::new())].into_iter().chain(each).collect()
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new("kind | file, kB | given | throughput, kbit/s | over none given");
    let sizes = if run.is_small { &SIZES[..1] } else { &SIZES[..] };
    let configurations = configurations();
    let axes = vec![
        Axis::new("kind", KINDS),
        Axis::new("kilobytes", sizes.iter().copied()),
        Axis::new("given", configurations.iter().map(|(name, _)| name.as_str())),
    ];
    let grid = Grid::run(run, axes, |point, seed| {
        let given = configurations.iter().find(|(name, _)| *name == point.text("given"));
        let sender = format!("{}{}", point.text("kind"), given.map_or("", |(_, suffix)| suffix));
        let kilobytes = point.number("kilobytes") as u64;
        let result = simulate::once(scenario(&sender, kilobytes)?, seed)?;
        let finished = result.flows[0].finished;
        Ok(fields! {
            sender,
            kilobytes,
            // For the whole file, including the handshake; missing if the transfer did not finish.
            finished,
            throughput: finished.map_or(0.0, |finished| kilobytes as f64 * 8e3 / finished),
        })
    })?;
    grid.record(&mut findings, &[])?;
    for row in grid.all().rows(&["kind", "kilobytes"]) {
        for cell in row.each("given") {
            let over = theory::show(&over(&row, &cell.text("given"), "nothing"), 1.0, 4);
            let place = ["kind", "kilobytes", "given"].map(|axis| cell.text(axis));
            let [kind, size, given] = place;
            findings.table.row([kind, size, given, cell.show("throughput", 1e-3, 2), over]);
        }
        // The thesis has a file of 10 MB, over the last hop.
        let is_papers = row.text("kind") == KINDS[0] && row.number("kilobytes") == SIZES[2] as f64;
        findings.beside(!is_papers, |findings| claims(findings, &row));
    }
    for part in grid.all().each("kind") {
        let kind = part.text("kind");
        let series = part.each("given").map(|of| {
            let given = of.text("given");
            let name = if given == "nothing" { "none given".to_owned() } else { given };
            of.line(name, "kilobytes", 1e-3, |cell| cell.mean("throughput"))
        });
        let title = format!("Files over CDMA 1X, {kind}");
        findings.plot(
            if kind == KINDS[0] { "wireless-last-hop" } else { "general" },
            title,
            (draw::log("file, kB"), draw::linear(&draw::more("throughput, kbit/s"))),
            series,
        );
    }
    findings.notes.extend([SETUP.to_owned(), QUEUES.to_owned()]);
    findings.note("the link is Table 4.3's CDMA 1X, 1 % loss; throughput is the file over the time from the first SYN");
    Ok(findings)
}

fn scenario(sender: &str, kilobytes: u64) -> Result<Scenario, LabError> {
    let bytes = ByteCount(kilobytes * 1_000);
    let flow = FlowSpec { app: App::Bulk { size: Some(bytes) }, ..CDMA.flow(sender) };
    // Three times the duration that the link needs.
    let time = Duration::from_secs_f64(20.0 + 3.0 * (kilobytes as f64 * 8e3) / CDMA.rate as f64);
    Ok(Scenario { flows: vec![flow], ..CDMA.scenario("fig4.6", sender, time)? })
}

/// Returns the throughput with one configuration divided by that with another.
fn over(row: &Slice<'_>, own: &str, other: &str) -> Interval {
    let [own, other] = [own, other].map(|given| row.at("given", given).values("throughput"));
    theory::paired(&own, &other)
}

/// The correct value is best, and 20 % low is better than none.
fn claims(findings: &mut Findings, row: &Slice<'_>) {
    let (kind, size) = (row.text("kind"), row.text("kilobytes"));
    for what in SEEDS {
        let [right, low] = ACCURACIES.map(|(how, _)| format!("{what}, {how}"));
        for (claimed, own, other, than) in [
            ("right over nothing", &right, "nothing", "without parameters"),
            ("20 % low over nothing", &low, "nothing", "without parameters"),
            ("right over 20 % low", &right, &low, "20 % low"),
        ] {
            let ratio = over(row, own, other);
            findings.mean(
                format!("{kind}, {size} kB, {what}: {claimed}"),
                "above 1",
                (&ratio, 4),
                Bound::Above(1.0),
                || {
                    let [own, other] = [own.as_str(), other]
                        .map(|given| row.at("given", given).show("throughput", 1e-3, 2));
                    format!("{own} kbit/s, and {other} {than}: {}", reason(what))
                },
            );
        }
    }
}

fn reason(what: &str) -> &'static str {
    match what {
        "rate" => {
            "guess: the first pair of packets measures the link's rate, so that the parameter saves one round trip at most; a low value costs \
                   until three trains have measured more"
        }
        "rtt" => {
            "guess: the handshake measures the RTT, so that the parameter is refined before data flows"
        }
        _ => {
            "guess: it changes the time-out of unanswered probes and the threshold of congestion before a loss \
              is measured: neither occurs on this link"
        }
    }
}
