//! RRTP, Table 4.2: packets in 60 s, over the environments of Table 4.3.

use super::network::{
    CDMA, Environment, FAT_PIPE, LAN, NEW_RENO, QUEUES, RENO, SATELLITE, SETUP, TCP_HEADER, VEGAS,
    WESTWOOD, WIRELESS_LAN, delivered, header, is_seeded, named,
};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/table4.2",
    what: "Packets in 60 s over five kinds of links: RRTP and four TCPs",
    source: "RRTP (Wang 2009) 4.2, Tables 4.2 and 4.3",
    seconds: 300,
    body,
    ..Experiment::STUDY
};

/// The printed figures: RRTP, Reno, NewReno and Vegas.
struct Printed {
    environment: Environment,
    rrtp: f64,
    tcp: [f64; 3],
}

const TABLE: [Printed; 5] = [
    Printed { environment: CDMA, rrtp: 758.0, tcp: [473.0, 481.0, 589.0] },
    Printed { environment: WIRELESS_LAN, rrtp: 58_038.0, tcp: [55_671.0, 55_606.0, 56_933.0] },
    Printed { environment: SATELLITE, rrtp: 102.0, tcp: [51.0, 54.0, 79.0] },
    Printed { environment: LAN, rrtp: 514_563.0, tcp: [513_987.0, 514_198.0, 514_372.0] },
    Printed { environment: FAT_PIPE, rrtp: 1_290_696.0, tcp: [242_323.0, 241_245.0, 212_471.0] },
];
/// Westwood appears in the thesis' figures, but not in this table.
const TCP: [&str; 4] = [RENO, NEW_RENO, VEGAS, WESTWOOD];
/// The number of seeds on the fat pipe, where a run transfers five million packets.
const FAT_SEEDS: u64 = 2;

/// The results of a sender in an environment.
struct Row {
    sender: String,
    delivered: Interval,
    sent: Interval,
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "environment | sender | header, bytes | packets delivered | packets sent | thesis | link can carry",
    );
    let time = Duration::from_secs(if run.is_small { 6 } else { 60 });
    for printed in &TABLE[..if run.is_small { 2 } else { TABLE.len() }] {
        let mut rows = Vec::new();
        let environment = &printed.environment;
        let rrtp = [environment.native().to_owned(), environment.seeded()];
        for sender in TCP.map(str::to_owned).into_iter().chain(rrtp) {
            rows.push(measure(run, environment, sender, time, &mut findings)?);
        }
        for row in &rows {
            let header = header(&row.sender);
            findings.table.row([
                environment.name.to_owned(),
                named(&row.sender).to_owned(),
                header.to_string(),
                theory::show(&row.delivered, 1.0, 1),
                theory::show(&row.sent, 1.0, 1),
                thesis(printed, &row.sender).map_or("-".to_owned(), |figure| figure.to_string()),
                format!("{:.1}", environment.carries(header, time)),
            ]);
        }
        order(&mut findings, environment, &rows);
        if !run.is_small {
            possible(&mut findings, printed, time);
            figures(&mut findings, printed, &rows);
        }
    }
    findings.notes.extend([SETUP.to_owned(), QUEUES.to_owned()]);
    Ok(findings)
}

fn thesis(printed: &Printed, sender: &str) -> Option<f64> {
    let [reno, new_reno, vegas] = printed.tcp;
    match sender {
        RENO => Some(reno),
        NEW_RENO => Some(new_reno),
        VEGAS => Some(vegas),
        WESTWOOD => None,
        _ => Some(printed.rrtp),
    }
}

fn measure(
    run: &Run,
    environment: &Environment,
    sender: String,
    time: Duration,
    findings: &mut Findings,
) -> Result<Row, LabError> {
    let scenario = environment.scenario("table4.2", &sender, time)?;
    let is_fat = environment.rate == FAT_PIPE.rate;
    let run =
        Run { seeds: if is_fat { run.seeds.min(FAT_SEEDS) } else { run.seeds }, ..run.clone() };
    let place = fields! { environment: environment.name };
    let sample = findings.measure(&run, &place.with("sender", sender.as_str()), |seed| {
        let result = simulate::once(scenario.clone(), seed)?;
        let (flow, forth) = (&result.flows[0], &result.links[0].counters);
        Ok(fields! {
            delivered: delivered(flow, time),
            sent: flow.segments_sent,
            retransmissions: flow.retransmissions,
            timeouts: flow.timeouts,
            queue_dropped: forth.queue_dropped,
            link_lost: forth.channel_lost,
        })
    })?;
    Ok(Row { sender, delivered: sample.mean("delivered"), sent: sample.mean("sent") })
}

/// Claims the order of the thesis' rows: RRTP, Vegas, Reno; about equal on the LAN, and only RRTP
/// first on the fat pipe.
fn order(findings: &mut Findings, environment: &Environment, rows: &[Row]) {
    let of = |sender: &str| rows.iter().find(|row| row.sender == sender).map(|row| &row.delivered);
    let (Some(reno), Some(vegas)) = (of(RENO), of(VEGAS)) else { return };
    let is_lan = environment.rate == LAN.rate;
    let is_fat = environment.rate == FAT_PIPE.rate;
    let claim = |findings: &mut Findings, what: String, more: &Interval, less: &Interval| {
        let ratio = theory::ratio(more, less);
        let shown = theory::show(&ratio, 1.0, 3);
        let explain = || {
            let [more, less] = [more, less].map(|of| theory::show(of, 1.0, 1));
            let carries = environment.carries(TCP_HEADER, Duration::from_secs(60));
            format!(
                "{more} packets beside {less}; the link can carry {carries:.1} with TCP's header in 60 s"
            )
        };
        let (claimed, verdict) = match is_lan {
            true => ("0.95 to 1.05", theory::within(&ratio, (0.95, 1.05), explain)),
            false => ("1 or more", theory::above(&ratio, 1.0, explain)),
        };
        findings.claim(format!("{}: {what}", environment.name), claimed, shown, verdict);
    };
    for rrtp in rows.iter().filter(|row| row.sender.starts_with("rrtp")) {
        let name = named(&rrtp.sender);
        findings.beside(!is_seeded(&rrtp.sender), |findings| {
            claim(findings, format!("{name}, over Vegas"), &rrtp.delivered, vegas);
            claim(findings, format!("{name}, over Reno"), &rrtp.delivered, reno);
        });
    }
    if !is_fat {
        claim(findings, "Vegas over Reno".to_owned(), vegas, reno);
    }
}

/// Returns the packets that Reno delivers in 60 s at the environment's random loss, by Mathis' law,
/// and the window in segments.
fn law(environment: &Environment) -> (f64, f64) {
    let window = (1.5 / (environment.loss / 100.0)).sqrt();
    (window * 60.0 / (2.0 * environment.delay as f64 / 1e3), window)
}

/// Returns the reason why the thesis' figures of the fat pipe decide nothing.
fn impossible(printed: &Printed) -> String {
    let (packets, window) = law(&printed.environment);
    format!(
        "{FAT_SEEDS} runs are chance, and the thesis' link lost less than it states: a random loss of {} % allows a window of \
         {window:.1} segments, {packets:.0} packets in 60 s, and its Reno has {:.0} times as many",
        printed.environment.loss,
        printed.tcp[0] / packets
    )
}

/// Claims that the thesis' figures are possible.
fn possible(findings: &mut Findings, printed: &Printed, time: Duration) {
    let environment = &printed.environment;
    let Environment { rate, loss, .. } = environment;
    let [bare, full] = [0, TCP_HEADER].map(|header| environment.carries(header, time));
    let arrive = 1.0 - loss / 100.0;
    findings.claim(
        format!("{}: the thesis' RRTP can be sent, 40 bytes of header in each packet", environment.name),
        format!("{}", printed.rrtp),
        format!("the link carries {full:.1}"),
        Verdict::of(printed.rrtp <= full, || {
            format!(
                "{rate} bit/s x {} s / 8 / 1440 = {full:.1}, and {:.1} of them arrive; without any header it is {bare:.1} \
                 and {:.1}, so that the 1400 bytes are all of the packet, or it is impossible",
                time.as_secs(),
                full * arrive,
                bare * arrive
            )
        }),
    );
    // Mathis: at a random loss of p, Reno keeps a window of sqrt(3/2p) segments per round trip.
    let (law, window) = law(environment);
    let trip = 2.0 * environment.delay as f64 / 1e3;
    let reno = printed.tcp[0];
    let expected = law.min(full);
    findings.claim(
        format!("{}: the thesis' Reno reaches the limit at a random loss of {loss} %", environment.name),
        format!("{reno}"),
        format!("{expected:.1}"),
        Verdict::of((0.75 * expected..=1.1 * expected).contains(&reno), || {
            let product = environment.product();
            format!(
                "a random loss of p allows sqrt(1.5 / p) = {window:.1} segments per RTT of {trip} s, {law:.0} in 60 s; \
                 the path holds {product:.1}, and the link carries {full:.1}: the thesis has {:.2} times the smaller of the two",
                reno / expected
            )
        }),
    );
}

fn figures(findings: &mut Findings, printed: &Printed, rows: &[Row]) {
    for row in rows {
        let Some(figure) = thesis(printed, &row.sender) else { continue };
        let what = crate::paper::Printed { what: "packets in 60 s", figure, decimals: 0 };
        let setup = format!("{}, {}", printed.environment.name, named(&row.sender));
        let is_beside = row.sender.starts_with("rrtp") && !is_seeded(&row.sender);
        findings.beside(is_beside, |findings| {
            if printed.environment.rate == FAT_PIPE.rate {
                let verdict = Verdict::NotComparable(impossible(printed));
                findings.printed_as(&what, &setup, &row.delivered, verdict);
            } else {
                let why = "its queue, window and what it counts as sent are not stated";
                findings.printed(&what, &setup, &row.delivered, why);
            }
        });
    }
}
