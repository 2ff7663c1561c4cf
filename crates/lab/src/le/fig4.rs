//! Figure 4: the time to recover from k losses in one window.

use std::fmt::Write as _;

use airtcp_recovery::{Choice, Combination, RtoForm, SACK1 as SACK1_OF_NS2};
use airtcp_sim::Simulation;
use airtcp_types::NodeId;

use super::claims;
use super::clamped::{self, MAXIMUM};
use super::curve::{Curve, Point};
use super::network::{OWN_TIMER, combine};
use super::window::{Recovery, draw as draw_losses};
use crate::paper;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "le/fig4",
    what: "Recovery time after 1 to 30 random losses in a window of 32 segments",
    source: "LE 3.1, Fig. 4 and note a",
    seconds: 120,
    seeds: 50,
    body,
    ..Experiment::STUDY
};

/// Our detections, and two variants that only experiments use.
const SENDERS: [&str; 9] =
    ["reno", "newreno", "sack", SACK1, "fack", "le", OWN_TIMER, "le:echo", "rack"];
pub(super) const SACK1: &str = "sack1 of ns-2";
const MOST: u64 = 30;
const PAYLOAD: u64 = 1_000;
/// The paper states no rates or delays. At this rate, a window of 32 segments is a packet train
/// followed by a gap, as 3.1 requires.
const LINK: &str = "rate 10mbit delay 20ms limit 1000";
/// The same with a round-trip time of a quarter of the time-out.
const LONGER: &str = "rate 10mbit delay 25ms limit 1000";
/// The number of the first packet that can be lost. It is ten windows after slow start, so that the
/// timer has RTT samples: 30 segments, 10 windows, and two packets of the handshake. The window is
/// full: 32 packets leave before the first ACK, so that no retransmission is among them. One packet
/// more aligns the window with an ACK if ACKs are delayed.
const FIRST: u64 = 30 + 10 * MAXIMUM + 2 + 1 + 1;
const SENDER: NodeId = NodeId(0);
/// Longer than any recovery.
const LIMIT: Duration = Duration::from_secs(120);

/// The set-up that all senders share.
struct Setup {
    name: &'static str,
    picture: &'static str,
    link: &'static str,
    profile: Profile,
}

/// The paper's sender is that of ns-2, whose minimum time-out is 200 ms. The paper does not state
/// its delay: the time-out is five and four round trips, as note a suggests, and 25 with the
/// minimum of ns-2 until 2004.
fn setups() -> [Setup; 4] {
    let of = |name, picture, link, profile| Setup { name, picture, link, profile };
    let long = Profile { rto: RtoForm::RFC, ..ns2() };
    [
        of(claims::PAPERS, "fig4", LINK, ns2()),
        of(claims::FOUR_TRIPS, "fig4-50ms", LONGER, ns2()),
        of("ns-2.35, RTO 1 s", "fig4-rto1s", LINK, long),
        of(claims::MODERN, "fig4-modern", LINK, Profile::modern()),
    ]
}

/// The profile's `sack` is [`SACK1`], which is a sender of its own here; `sack` is RFC 6675.
fn ns2() -> Profile {
    Profile { sack: None, ..paper::profile("ns-2.35") }
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let columns = SENDERS.map(|sender| format!("{sender}, ms"));
    let columns = columns.join(" | ");
    let mut findings = Findings::new(&format!("set-up | lost | {columns} | le less fack, ms"));
    for setup in setups() {
        let mut curves = Vec::new();
        for sender in SENDERS {
            curves.push(curve(run, &mut findings, sender, &setup)?);
        }
        rows(&mut findings, &setup, &curves);
        claims::state(&mut findings, setup.name, &curves);
        findings.picture(setup.picture, figure(&setup, &curves));
    }
    findings.notes.extend(claims::NOTES.map(str::to_owned));
    Ok(findings)
}

fn losses(run: &Run) -> impl Iterator<Item = u64> + use<> {
    (1..=MOST).step_by(if run.is_small { 14 } else { 1 })
}

fn curve(
    run: &Run,
    findings: &mut Findings,
    sender: &'static str,
    setup: &Setup,
) -> Result<Curve, LabError> {
    let mut points = Vec::new();
    for lost in losses(run) {
        let place = fields! { setup: setup.name };
        let place = place.with("sender", sender).with("lost", lost);
        let sample = findings.measure(run, &place, |seed| {
            let scenario = scenario(sender, &setup.profile, wire_of(setup.link, seed, lost)?);
            let recovery = |_: &Simulation<'_>| Recovery::new(SENDER);
            let (_, watched) = simulate::once_watched(scenario, seed, recovery)?;
            Ok(fields! {
                // Whether exactly the drawn segments were dropped, and no retransmission.
                as_drawn: watched.is_as_drawn(lost, MAXIMUM, PAYLOAD),
                time: watched.time.unwrap_or(LIMIT).as_secs_f64(),
                timeouts: watched.timeouts,
                reductions: watched.reductions,
                // The retransmissions before the first time-out.
                repairs: watched.repairs,
                single: watched.is_single(),
            })
        })?;
        points.push(Point::of(lost, &sample));
    }
    Ok(Curve { name: sender, points })
}

fn rows(findings: &mut Findings, setup: &Setup, curves: &[Curve]) {
    for (index, point) in curves[0].points.iter().enumerate() {
        let mut row = vec![setup.name.to_owned(), point.lost.to_string()];
        for curve in curves {
            let point = &curve.points[index];
            let mut cell = theory::show(&point.time, 1e3, 0);
            if point.timeouts > 0.0 {
                let _ = write!(cell, ", {:.1} RTO", point.timeouts);
            }
            row.push(cell);
        }
        let by = claims::named(curves, "le").zip(claims::named(curves, "fack"));
        let by = by.map(|(le, fack)| le.points[index].less(&fack.points[index]));
        row.push(by.map_or("-".to_owned(), |by| theory::show(&by, 1e3, 1)));
        findings.table.add(row);
    }
}

fn figure(setup: &Setup, curves: &[Curve]) -> Figure {
    // These curves coincide with that of `le` and would hide it.
    let shown = curves.iter().filter(|curve| !["le:echo", OWN_TIMER].contains(&curve.name));
    let series = shown.map(|curve| {
        let points = curve.points.iter().map(|p| draw::interval(p.lost as f64, &p.time, 1e3));
        draw::series(curve.name, Style::LineAndMarks, points.collect())
    });
    Figure {
        title: format!("Recovery from losses in a window of 32, {}", setup.name),
        x: draw::linear("lost segments"),
        y: draw::linear(&draw::less("recovery time, ms")),
        series: series.collect(),
    }
}

fn wire_of(link: &str, seed: u64, lost: u64) -> Result<Wire, LabError> {
    let lost = draw_losses(seed, lost, MAXIMUM);
    let numbers: Vec<_> = lost.iter().map(|segment| (FIRST + segment).to_string()).collect();
    let forth = feed::spec(&format!("{link} drop {}", numbers.join(",")))?;
    Ok(Wire { forth, back: feed::spec(link)? })
}

fn combination(sender: &str) -> Combination {
    let combination = match sender {
        SACK1 => combine("sack/reno")
            .with_detection(Choice::plain(&SACK1_OF_NS2).expect("it takes no parameter")),
        named => combine(named),
    };
    combination.with_control(clamped::control())
}

fn scenario(sender: &str, profile: &Profile, wire: Wire) -> Scenario {
    let flow = FlowSpec {
        profile: profile.clone(),
        app: App::Bulk { size: Some(ByteCount(PAYLOAD * 600)) },
        mtu: PAYLOAD as u16 + 40,
        // As in ns-2.
        timestamps: false,
        ..FlowSpec::new(combination(sender).into())
    };
    Scenario {
        duration: LIMIT,
        flows: vec![flow],
        ..Scenario::new("fig4", Topology::Chain { wires: vec![wire] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recover(sender: &str, profile: &Profile, lost: u64) -> Recovery {
        let mut watched = Recovery::new(SENDER);
        let scenario = scenario(sender, profile, wire_of(LINK, 1, lost).unwrap());
        airtcp_sim::run(&scenario, Some(&mut watched)).unwrap();
        assert!(watched.is_as_drawn(lost, MAXIMUM, PAYLOAD), "{sender}, {lost} lost");
        watched
    }

    #[test]
    fn lost_segments_stay_in_the_pipe_of_ns2_and_in_no_other() {
        for (sender, lost, timeouts) in
            [(SACK1, 17, 0), (SACK1, 18, 1), ("sack", 18, 0), ("le", 30, 0)]
        {
            assert_eq!(recover(sender, &ns2(), lost).timeouts, timeouts, "{sender}, {lost} lost");
        }
        assert!(recover(SACK1, &ns2(), 8).is_single());
        assert!(!recover(SACK1, &ns2(), 9).is_single());
    }

    #[test]
    fn what_the_first_repair_does_to_the_timer_matters_on_long_paths_only() {
        let times = |link| {
            ["le", OWN_TIMER].map(|sender| {
                let mut watched = Recovery::new(SENDER);
                let scenario = scenario(sender, &ns2(), wire_of(link, 1, 4).unwrap());
                airtcp_sim::run(&scenario, Some(&mut watched)).unwrap();
                watched.timeouts
            })
        };
        for link in [LINK, LONGER] {
            assert_eq!(times(link), [0, 0], "{link}");
        }
        assert_eq!(times("rate 10mbit delay 150ms limit 1000"), [0, 1]);
    }

    #[test]
    fn le_cuts_once() {
        for lost in [8, 16, 24, 30] {
            assert_eq!(recover("le", &ns2(), lost).reductions, 1, "{lost} lost");
        }
    }

    #[test]
    fn no_repair_is_lost_where_acks_are_delayed_either() {
        for sender in ["fack", "rack"] {
            for lost in [14, 22, 30] {
                assert!(recover(sender, &Profile::modern(), lost).time.is_some());
            }
        }
    }
}
