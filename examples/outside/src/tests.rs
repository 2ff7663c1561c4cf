//! Tests of each strategy alone, and of the laws for all strategies.

use airtcp::recovery::testkit::{Bottleneck, Net, RTT, SMSS, Scene, ack_view, laws, ms};
use airtcp::recovery::testkit::{segments, sender_of, seq};
use airtcp::recovery::{Cause, Certainty, Choice, Combination, CongestionControl};
use airtcp::recovery::{ControlParams, Entry, Finding, LossJudge, Notice, NoticeKind, Profile};
use airtcp::recovery::{Ruling, Transmission, View, When};
use airtcp::types::{ByteCount, Rate};

use crate::{calm, gentle, tolerant};

#[test]
fn tolerant_waits_for_its_distance() {
    let mut scene = Scene::new();
    scene.send(12);
    scene.pass(RTT);
    let mut tolerant = tolerant::Tolerant { segments: 10 };
    assert_eq!(scene.detect(&mut tolerant, 0, &[segments(1, 10)]), []);
    assert_eq!(scene.detect(&mut tolerant, 0, &[segments(10, 11)]), [(0, Certainty::Lost)]);
}

#[test]
fn tolerant_repairs_a_burst_without_a_timeout() {
    let combination = "rack/reno".parse::<Combination>().unwrap();
    let combination = combination.with_detection(Choice::plain(&tolerant::ENTRY).unwrap());
    let mut net = Net::new(sender_of(combination, Profile::modern()), 500, 64);
    // The first transmissions of two segments.
    net.losses.extend([(100, 0), (101, 0)]);
    net.run();
    assert_eq!([99, 100, 101].map(|segment| net.sendings(segment)), [1, 2, 2]);
    assert_eq!((net.sender.stats().reductions, net.sender.stats().timeouts), (1, 0));
}

/// A judge that defers every loss once.
static PATIENT: Entry<dyn LossJudge> = Entry {
    name: "patient",
    summary: "every loss is answered half a round trip later",
    source: "this test",
    make: |_, _| Ok(Box::new(Patient)),
    ..Entry::BLANK
};

#[derive(Debug)]
struct Patient;

impl LossJudge for Patient {
    fn rule(&mut self, _: &Finding, _: &Transmission, _: &View<'_>, again: bool) -> Option<Ruling> {
        let later = When::After(RTT / 2);
        let ruling = Ruling { repair: later, reduce: later, cause: Cause::Reordering };
        (!again).then_some(ruling)
    }
}

#[test]
fn tolerant_reports_a_loss_once_while_a_judge_waits() {
    let combination = "rack/reno".parse::<Combination>().unwrap();
    let combination = combination.with_detection(Choice::plain(&tolerant::ENTRY).unwrap());
    let combination = combination.with_judges(vec![Choice::plain(&PATIENT).unwrap()]);
    let mut net = Net::new(sender_of(combination, Profile::modern()), 500, 64);
    // A segment takes a millisecond, so that ACKs keep coming while the judge waits.
    let rate = Rate::from_bits_per_sec(8_000_000);
    net.bottleneck = Some(Bottleneck::new(rate, ByteCount(64 * SMSS)));
    net.losses.insert((300, 0));
    net.run();
    let of_lost = net.sent.iter().filter(|(_, sent)| sent.range.start == seq(300));
    let left: Vec<_> = of_lost.map(|(at, _)| *at).collect();
    // The wait is a round trip, ten segments and the judge's delay, not the rest of the window too.
    let wait = left[1].since(left[0]);
    assert!((RTT + RTT / 2..RTT * 2).contains(&wait), "{wait:?}");
    assert_eq!((left.len(), net.sender.stats().timeouts), (2, 0));
}

#[test]
fn gentle_takes_a_quarter() {
    let window = ByteCount(20 * SMSS);
    let mut gentle = gentle::Gentle::new(&ControlParams::new(ByteCount(SMSS), window));
    gentle.on_ack(&ack_view(ms(100), ByteCount(SMSS)));
    assert_eq!(gentle.window(), ByteCount(21 * SMSS));
    let reduce = NoticeKind::Reduce { flight_size: window, cause: Cause::Congestion };
    gentle.on_notice(&Notice::new(ms(100), window, reduce));
    assert_eq!(gentle.window(), ByteCount(15_750));
    let mut ack = ack_view(ms(200), ByteCount(SMSS));
    ack.round_start = true;
    gentle.on_ack(&ack);
    assert_eq!(gentle.window(), ByteCount(16_750));
    // The window is below the initial window, so it stays.
    gentle.on_notice(&Notice::new(ms(300), window, NoticeKind::Unused));
    assert_eq!(gentle.window(), ByteCount(16_750));
}

#[test]
fn gentle_continues_from_the_window_of_the_control_before_it() {
    let initial_window = ByteCount(20 * SMSS);
    let mut gentle = gentle::Gentle::new(&ControlParams::new(ByteCount(SMSS), initial_window));
    let mut notify = |kind| {
        gentle.on_notice(&Notice::new(ms(100), ByteCount::ZERO, kind));
        gentle.window()
    };
    let (cwnd, ssthresh) = (ByteCount(8 * SMSS), Some(ByteCount(8 * SMSS)));
    assert_eq!(notify(NoticeKind::TakeOver { cwnd, ssthresh }), cwnd);
    assert_eq!(notify(NoticeKind::Undo { resumes: false }), cwnd);
}

#[test]
fn gentle_restarts_with_the_initial_window_after_an_idle_time() {
    let initial_window = ByteCount(10 * SMSS);
    let mut gentle = gentle::Gentle::new(&ControlParams::new(ByteCount(SMSS), initial_window));
    gentle.on_ack(&ack_view(ms(100), ByteCount(SMSS)));
    for (restart, window) in [(false, 11 * SMSS), (true, 10 * SMSS)] {
        let idle = NoticeKind::Idle { time: RTT * 10, restart, app_limited: false };
        gentle.on_notice(&Notice::new(ms(1100), ByteCount::ZERO, idle));
        assert_eq!(gentle.window(), ByteCount(window));
    }
}

#[test]
fn calm_asks_the_round_trip() {
    let mut scene = Scene::new();
    scene.send(5);
    let rule = |scene: &Scene| scene.rule(&mut calm::Calm, 0, Certainty::Lost);
    assert_eq!(rule(&scene).unwrap().cause, Cause::Random);
    scene.rtt.on_sample(RTT * 2);
    assert_eq!(rule(&scene), None);
}

#[test]
fn the_laws_hold() {
    let combine = |text: &str| text.parse::<Combination>().unwrap();
    let tolerant = combine("rack/reno").with_detection(Choice::plain(&tolerant::ENTRY).unwrap());
    let gentle = combine("sack/reno").with_control(Choice::plain(&gentle::ENTRY).unwrap());
    let calm = combine("rack/cubic").with_judges(vec![Choice::plain(&calm::ENTRY).unwrap()]);
    for profile in [Profile::modern(), Profile::paper()] {
        for combination in [&tolerant, &gentle] {
            laws::fills_the_window(combination, &profile);
            laws::repairs_one_loss(combination, &profile);
        }
        for combination in [&tolerant, &gentle, &calm] {
            (0..20).for_each(|seed| laws::delivers_everything(combination, &profile, seed));
        }
    }
}
