//! RRTP, Tables 4.6 to 4.8 and Figs. 4.4 and 4.5: file transfers to a moving mobile over three
//! cellular networks.

use std::fmt::Write as _;

use airtcp_sim::Sender;

use super::network::{PAYLOAD, flow};
use crate::paper::{LINUX_2_6, Printed, profile};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/table4.6",
    what: "Files over CDMA 1X, EVDO and EDGE at 0 to 100 km/h: RRTP over TCP",
    source: "RRTP (Wang 2009) 4.4, Tables 4.6 to 4.8 and Figs. 4.4 and 4.5, on real networks",
    seconds: 100,
    body,
    ..Experiment::STUDY
};

/// The thesis' peak rates down and up in bit/s, and the per cent of packets that remain lost after
/// link retransmission: that of Table 4.3, and that of 2.4.2 for such a protocol.
const NETWORKS: [(&str, [u64; 2], f64); 3] = [
    ("CDMA 1X", [144_000, 144_000], 1.0),
    ("EVDO", [3_100_000, 1_800_000], 0.1),
    ("EDGE", [3_600_000, 384_000], 0.1),
];
/// The one-way delay in ms: that of CDMA 1X in Table 4.3, used for all networks.
const DELAY: u64 = 75;
/// The thesis' hosts had Fedora 7, which is Linux 2.6.21 with FACK and CUBIC, and Windows XP, for
/// which `sack/reno` stands. It does not say over which of them it measured a gain: both count.
const TCP: [&str; 2] = ["fack/cubic", "sack/reno"];
const RRTP: [&str; 2] = ["RRTP", "RRTP, seeded"];
const SENDERS: [&str; 4] = [TCP[0], TCP[1], RRTP[0], RRTP[1]];
/// The speeds in km/h, and the file sizes in kB.
const SPEEDS: [u32; 4] = [0, 5, 60, 100];
const SIZES: [u64; 3] = [100, 1_000, 10_000];
/// The printed gains in per cent at each speed; if there are three, the third speed is missing.
const PRINTED: [(&str, &str, u64, &[f64]); 11] = [
    ("CDMA 1X", "RRTP", 100, &[29.31, 31.63, 36.59, 38.12]),
    ("CDMA 1X", "RRTP", 1_000, &[16.24, 17.46, 21.97, 26.97]),
    ("CDMA 1X", "RRTP", 10_000, &[10.82, 11.34, 14.91, 18.17]),
    ("EVDO", "RRTP", 1_000, &[6.46, 6.50, 8.98]),
    ("EVDO", "RRTP", 10_000, &[1.31, 1.43, 1.73]),
    ("EVDO", "RRTP, seeded", 1_000, &[13.84, 14.28, 17.50]),
    ("EVDO", "RRTP, seeded", 10_000, &[3.89, 4.34, 6.68]),
    ("EDGE", "RRTP", 1_000, &[6.93, 8.04, 9.65]),
    ("EDGE", "RRTP", 10_000, &[1.35, 1.57, 2.15]),
    ("EDGE", "RRTP, seeded", 1_000, &[13.99, 14.13, 16.02]),
    ("EDGE", "RRTP, seeded", 10_000, &[4.50, 4.81, 5.58]),
];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "network | file, kB | km/h | sender | throughput, kbit/s | its deviation | over fack/cubic, % | \
         over sack/reno, %",
    );
    let sizes = if run.is_small { &SIZES[..1] } else { &SIZES[..] };
    let axes = vec![
        Axis::new("network", NETWORKS.map(|(name, ..)| name)),
        Axis::new("size", sizes.iter().copied()),
        Axis::new("speed", SPEEDS),
        Axis::new("sender", SENDERS),
    ];
    let names = ["network", "size", "speed", "sender"];
    let grid = Grid::run(run, axes, |point, seed| {
        let result = simulate::once(scenario(point)?, seed)?;
        let finished = result.flows[0].finished;
        let rate = finished.map_or(0.0, |seconds| point.number("size") * 8e3 / seconds);
        Ok(fields! { finished, throughput: rate })
    })?;
    grid.record(&mut findings, &names)?;
    for row in grid.all().rows(&names[..3]) {
        for cell in row.each("sender") {
            let [network, size, speed, sender] = names.map(|axis| cell.text(axis));
            let deviation = format!("{:.2}", cell.mean("throughput").sd * 1e-3);
            let [cubic, reno] = TCP.map(|tcp| theory::show(&gain(&row, &sender, tcp), 1.0, 2));
            let rate = cell.show("throughput", 1e-3, 2);
            findings.table.row([network, size, speed, sender, rate, deviation, cubic, reno]);
        }
    }
    for (network, ..) in NETWORKS {
        let part = grid.all().at("network", network);
        judge(&mut findings, network, &part);
        let last = part.at("size", *sizes.last().unwrap_or(&SIZES[0]));
        let line = |(sender, tcp): (&str, &str)| {
            last.line(format!("{sender} over {tcp}"), "speed", 1.0, |cell| gain(cell, sender, tcp))
        };
        let pairs = RRTP.into_iter().flat_map(|sender| TCP.map(|tcp| (sender, tcp)));
        let series = pairs.map(line);
        let title = format!("{network}: gain over TCP, {} kB", last.text("size"));
        findings.plot(
            network.to_lowercase().replace(' ', "-"),
            title,
            (draw::linear("speed, km/h"), draw::linear(&draw::more("gain, %"))),
            series,
        );
        let line = |sender: &&str| {
            last.at("sender", *sender).line(*sender, "speed", 1e-3, |cell| {
                let of = cell.mean("throughput");
                Interval { mean: of.sd, half_width: None, ..of }
            })
        };
        let series = SENDERS.iter().map(line);
        let title = format!("{network}: deviation of the throughput, {} kB", last.text("size"));
        let name = format!("{}-deviation", network.to_lowercase().replace(' ', "-"));
        findings.plot(
            name,
            title,
            (
                draw::linear("speed, km/h"),
                draw::linear(&draw::less("deviation of the throughput, kbit/s")),
            ),
            series,
        );
    }
    findings.note(
        "The thesis' hosts are Fedora 7 and Windows XP, and it does not say over which of them it measured: both count. fack/cubic with \
         the profile linux-2.6 is the former, without its rate halving; sack/reno stands for the latter. TCP has timestamps, and \
         headers of 52 bytes; RRTP has 56 bytes of headers; both carry 1400 bytes of payload in a packet",
    );
    let note = "The thesis has real networks and states no delay, loss or handoffs. Here a direction has 75 ms and 50 packets; a mobile \
                at v km/h starts a fade at v / 100 % of the packets, of 4 packets on average, with half of them lost; it changes cells \
                after 250 m and then every 2 km, with an outage of 200 ms.";
    findings.note(note);
    Ok(findings)
}

/// Returns the gain of a sender over a TCP, in per cent.
fn gain(row: &Slice<'_>, sender: &str, tcp: &str) -> Interval {
    let [own, tcp] = [sender, tcp].map(|of| row.at("sender", of).values("throughput"));
    let percent = theory::scaled(&theory::paired(&own, &tcp), 100.0);
    Interval { mean: percent.mean - 100.0, ..percent }
}

/// Formats a figure for each TCP.
fn over_each(figures: &[Interval; 2]) -> String {
    let one = |(figure, tcp)| format!("{} over {tcp}", theory::show(figure, 1.0, 2));
    figures.iter().zip(TCP).map(one).collect::<Vec<_>>().join(", ")
}

/// Judges the gains over both TCPs. Only the CDMA network at rest is known: the thesis has a delay
/// and a loss rate for it in its Table 4.3, and none for the others, nor any handoffs.
fn judge(findings: &mut Findings, network: &str, part: &Slice<'_>) {
    let unknown = || {
        Verdict::NotComparable(
            "the thesis states no delay, loss or handoffs of this network".to_owned(),
        )
    };
    let is_known = |speed: u32| network == NETWORKS[0].0 && speed == 0;
    for (_, sender, size, gains) in PRINTED.iter().filter(|(name, ..)| *name == network) {
        let Some(part) = part.get("size", *size) else { continue };
        let speeds = SPEEDS.iter().filter(|speed| gains.len() == SPEEDS.len() || **speed != 60);
        for (speed, figure) in speeds.zip(*gains) {
            let printed = Printed { what: "gain over TCP, %", figure: *figure, decimals: 2 };
            let ours = TCP.map(|tcp| gain(&part.at("speed", *speed), sender, tcp));
            let why = "the thesis states no queue of its network";
            let verdict = match is_known(*speed) {
                true => theory::agreed(&ours.map(|ours| printed.verdict(&ours, why))),
                false => unknown(),
            };
            findings.has_printed |= is_known(*speed);
            findings.claim(
                format!("{}, {network}, {size} kB, {speed} km/h, {sender}", printed.what),
                format!("{figure:.2}"),
                over_each(&ours),
                verdict,
            );
        }
    }
    let sizes: Vec<_> = part.each("size").collect();
    let (Some(short), Some(long)) = (sizes.first(), sizes.last()) else { return };
    let at = |part: &Slice<'_>, speed: u32, sender| {
        TCP.map(|tcp| gain(&part.at("speed", speed), sender, tcp))
    };
    for sender in RRTP {
        let [rest, fast] = [0, 100].map(|speed| at(long, speed, sender));
        for (what, more, speed) in [
            ("the smallest file less that of the largest, stationary", at(short, 0, sender), 0),
            ("the largest file at 100 km/h less that of it stationary", fast, 100),
        ] {
            let differences = [0, 1].map(|tcp| theory::difference(&more[tcp], &rest[tcp]));
            let above = |by: Interval| theory::above(&by, 0.0, theory::unknown);
            let verdict = match is_known(speed) {
                true => theory::agreed(&differences.map(above)),
                false => unknown(),
            };
            let what = format!("{network}, {sender}: gain over TCP of {what}");
            findings.claim(what, "above 0", over_each(&differences), verdict);
        }
        let seeds = long.at("speed", 0_u32).at("sender", sender).values("throughput").len();
        let ratio = |tcp| {
            let of = |left_out| deviation(long, tcp, left_out) / deviation(long, sender, left_out);
            let ratio = theory::show(&theory::jackknife(seeds, of), 1.0, 2);
            format!("{tcp} {ratio} ({:.2} kbit/s)", deviation(long, tcp, None) * 1e-3)
        };
        let own = deviation(long, sender, None) * 1e-3;
        findings.claim(
            format!("{network}: deviation of TCP's throughput over that of {sender}, largest file"),
            "above 1",
            format!("{}, {sender} {own:.2} kbit/s", TCP.map(ratio).join(", ")),
            unknown(),
        );
    }
}

/// Returns the sum of the deviations of a sender's throughput at all speeds, without one seed.
fn deviation(part: &Slice<'_>, sender: &str, left_out: Option<usize>) -> f64 {
    let deviation = |cell: Slice<'_>| {
        let mut values = cell.at("sender", sender).values("throughput");
        left_out.map(|seed| values.remove(seed));
        Interval::of(&values).sd
    };
    part.each("speed").map(deviation).sum()
}

fn scenario(point: &Point) -> Result<Scenario, LabError> {
    let network = point.text("network");
    let found = NETWORKS.iter().find(|(name, ..)| *name == network);
    let (_, [down, up], loss) = found.expect("one of the networks");
    let (speed, bytes) = (point.number("speed"), point.number("size") * 1e3);
    let duration = 60.0 + 3.0 * bytes * 8.0 / *down as f64;
    let fades = format!("loss gemodel {}% 25% 50% {loss}%", speed / 100.0);
    let fades = if speed > 0.0 { fades } else { format!("loss {loss}%") };
    let wire = Wire {
        forth: feed::spec(&way(*down, &fades, speed, duration))?,
        back: feed::spec(&way(*up, "loss 0%", speed, duration))?,
    };
    let sender = match point.text("sender").as_str() {
        "RRTP" => "rrtp:wireless-last-hop".to_owned(),
        "RRTP, seeded" => {
            let trip = 2 * DELAY;
            format!("rrtp:wireless-last-hop+rate={down}bit+rtt={trip}ms+loss={loss}%")
        }
        tcp => tcp.to_owned(),
    };
    let app = App::Bulk { size: Some(ByteCount(bytes as u64)) };
    let buffer = Some(ByteCount::from_mib(4));
    let usual = flow(&sender);
    let flow = match usual.sender {
        // As Linux, with timestamps.
        Sender::Tcp(_) => {
            FlowSpec { mtu: PAYLOAD as u16 + 52, ..simulate::flow(&sender, profile(LINUX_2_6)) }
        }
        _ => usual,
    };
    let flow = FlowSpec { app, receive_buffer: buffer, send_buffer: buffer, ..flow };
    Ok(Scenario {
        duration: Duration::from_secs_f64(duration),
        flows: vec![flow],
        ..Scenario::new("table4.6", Topology::Chain { wires: vec![wire] })
    })
}

/// Returns the link description of one direction of a network. A handoff loses all packets for 200
/// ms.
fn way(rate: u64, loss: &str, speed: f64, duration: f64) -> String {
    let mut text = format!("rate {rate}bit delay {DELAY}ms limit 50 {loss}");
    let after = |metres: f64| metres / (speed / 3.6);
    let handoffs = (0..).map(|number| after(250.0 + 2e3 * f64::from(number)));
    for at in handoffs.take_while(|at| at + 0.2 < duration) {
        let _ = write!(text, " at {at:.3}s loss 100% at {:.3}s {loss}", at + 0.2);
    }
    text
}
