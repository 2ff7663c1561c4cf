//! Fig. 18: long transfers beside 500 users of the web.

use super::delivery::Arrivals;
use super::{ACCESS, ACCESS_AT_RANDOM, PAPERS, SHORTER, flow, mixed, timed};
use crate::paper::Printed;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "dcr/fig18",
    what: "Shares of eight long transfers, with or without DCR, and 500 web users",
    source: "DCR 5.5, Fig. 18",
    seconds: 40,
    body,
    ..Experiment::STUDY
};

const SACK: &str = "sack/reno";
const DCR: &str = "sack/reno/dcr:count";
/// The long transfers, and the printed rates of these and of the web traffic, in Mbit/s.
const PRINTED: [(&str, [f64; 2]); 2] = [(SACK, [4.76, 4.84]), (DCR, [4.73, 4.82])];
const SIDES: [(&str, &str); 2] = [("ftp", "ftp, Mbit/s"), ("web", "web, Mbit/s")];
const BOTTLENECK: &str = "rate 10mbit delay 10ms limit 50";
const LONG: u32 = 8;
const USERS: u32 = 500;
/// The range of the transfer sizes in packets of 1000 bytes, and the mean pause.
const PACKETS: (u64, u64) = (10, 20);
const PAUSE: Duration = Duration::from_secs(15);

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings =
        Findings::new("profile | long transfers | ftp, Mbit/s | web, Mbit/s | dropped, %");
    let senders = [SACK, DCR, "sack/reno/dcr:timer"];
    let axes = vec![Axis::new("profile", [PAPERS, "modern"]), Axis::new("sender", senders)];
    let grid = Grid::run(run, axes, |point, seed| {
        let scenario = scenario(run, &point.text("profile"), &point.text("sender"))?;
        let result = simulate::once(scenario, seed)?;
        let (long, web) = result.flows.split_at(LONG as usize);
        let [ftp, web] = [long, web].map(|of| of.iter().map(|flow| flow.goodput).sum::<f64>());
        let dropped = mixed::dropped(&result);
        Ok(fields! { ftp, web, dropped })
    })?;
    grid.record(&mut findings, &["profile", "sender"])?;
    let fields = [("ftp", 1e-6, 2), ("web", 1e-6, 2), ("dropped", 1.0, 2)];
    findings.rows(&grid, &["profile", "sender"], &fields);
    judge(&mut findings, &grid.all().at("profile", PAPERS));
    let mut series = Vec::new();
    for sender in [SACK, DCR] {
        let scenario = scenario(run, PAPERS, sender)?;
        let (_, arrivals) = simulate::once_watched(scenario, 1, |dumbbell| {
            Arrivals::new(dumbbell, LONG as usize, Duration::from_secs(1))
        })?;
        series
            .extend(arrivals.lines(1, SIDES.map(|(side, _)| format!("{side}, ftp with {sender}"))));
    }
    let title = format!("Eight long transfers and 500 users on 10 Mbit/s, {PAPERS} profile");
    findings.plot("fig18", title, (draw::linear("time, s"), draw::goodput()), series);
    findings.note(SHORTER);
    findings.note(
        "A user's pause counts from the end of a transfer, the paper's from its start; pauses have the shape 1.5, \
                which the paper does not say, and users begin within the first 15 s.",
    );
    Ok(findings)
}

fn scenario(run: &Run, profile: &str, sender: &str) -> Result<Scenario, LabError> {
    let profile = profile.parse().expect("a profile");
    let access = feed::wire(ACCESS_AT_RANDOM, ACCESS)?;
    let topology = Topology::Dumbbell { access, bottleneck: Wire::both(feed::spec(BOTTLENECK)?) };
    let stagger = Duration::from_millis(1);
    let size = (ByteCount(PACKETS.0 * 1_000), ByteCount(PACKETS.1 * 1_000));
    let users = if run.is_small { 20 } else { USERS };
    let web = App::ShortFlows { size, gap: PAUSE, pareto: true, users: 1 };
    let flows = vec![
        FlowSpec { count: LONG, stagger, ..flow(sender, &profile) },
        FlowSpec { count: users, stagger, app: web, ..flow(SACK, &profile) },
    ];
    Ok(timed(Scenario { flows, ..Scenario::new("fig18", topology) }, run.is_small))
}

fn judge(findings: &mut Findings, paper: &Slice<'_>) {
    let packets = (PACKETS.0 + PACKETS.1) as f64 / 2.0;
    let offered = f64::from(USERS) * packets * 8e3 / PAUSE.as_secs_f64() / 1e6;
    let of = |sender: &str, side| theory::scaled(&paper.at("sender", sender).mean(side), 1e-6);
    for (sender, figures) in PRINTED {
        let why = format!(
            "{USERS} users of {packets} packets every {} s ask for {offered:.2} Mbit/s, and the paper's got {:.2}; {} % are \
             dropped here, 3 % there",
            PAUSE.as_secs(),
            figures[1],
            paper.at("sender", sender).show("dropped", 1.0, 2)
        );
        for ((side, what), figure) in SIDES.into_iter().zip(figures) {
            let printed = Printed { what, figure, decimals: 2 };
            findings.printed(&printed, sender, &of(sender, side), &why);
        }
    }
    for (side, _) in SIDES {
        let ratio = theory::ratio(&of(DCR, side), &of(SACK, side));
        let what = format!("{side} where the long transfers have DCR, over where they have not");
        let (claimed, bound) = ("similar (0.9 to 1.1)", Bound::Within(0.9, 1.1));
        findings.mean(what, claimed, (&ratio, 2), bound, theory::unknown);
    }
}
