//! Profiles: the rules in which the senders of papers differ.

use airtcp_types::{ByteCount, Instant};

use crate::testkit::{RTT, SMSS, ack, ms, pump, segments, sender_of, supply};
use crate::{Profile, RtoForm, Sender};

fn out(profile: &str, combination: &str, window: u32) -> Sender {
    let profile: Profile = profile.parse().unwrap();
    let profile = Profile { initial_window: window, ..profile };
    let mut sender = sender_of(combination.parse().unwrap(), profile);
    let (sent, _) = pump(&mut sender, Instant::ZERO, &supply(100));
    assert_eq!(sent.len(), window as usize);
    sender
}

#[test]
fn every_name_is_a_profile_and_another_is_refused_with_all_of_them() {
    for profile in Profile::all() {
        assert_eq!(profile.name.parse().as_ref(), Ok(profile));
    }
    assert_eq!(Profile::all()[0], Profile::modern());
    let error = "ns-2.36".parse::<Profile>().unwrap_err().to_string();
    assert_eq!(
        error,
        "no profile `ns-2.36`: use one of modern, paper, ns-2.26, ns-2.35, linux-2.2; did you mean `ns-2.26`?"
    );
}

#[test]
fn the_profile_replaces_sack_and_no_other_detection() {
    let detection =
        |profile: &str, wanted: &str| out(profile, wanted, 2).combination().detection().to_string();
    for (profile, sack) in
        [("paper", "sack"), ("ns-2.26", "sack1"), ("ns-2.35", "sack1"), ("linux-2.2", "fack")]
    {
        assert_eq!(detection(profile, "sack/reno"), sack, "{profile}");
        assert_eq!(detection(profile, "newreno/reno"), "newreno", "{profile}");
    }
    // Also on a live connection.
    let mut sender = out("ns-2.35", "newreno/reno", 2);
    sender.set_combination(ms(1), &"sack/reno".parse().unwrap()).unwrap();
    assert_eq!(sender.combination().to_string(), "sack1/reno");
}

#[test]
fn lost_segments_never_leave_the_pipe_of_sack1() {
    // Ten are outstanding, the first four are lost, and each of six duplicates permits at most one
    // segment.
    let repaired = |profile| {
        let mut sender = out(profile, "sack/reno", 10);
        for upto in 5..=10 {
            sender.on_ack(ms(100), &ack(0, &[segments(4, upto)]));
            pump(&mut sender, ms(100), &supply(10));
        }
        sender.pipe()
    };
    assert!(repaired("ns-2.35") > repaired("paper"));
}

#[test]
fn a_halved_window_is_whole_segments_where_windows_are_counted_in_them() {
    for (profile, half) in [("ns-2.26", 3_000), ("ns-2.35", 3_500), ("linux-2.2", 3_000)] {
        let mut sender = out(profile, "newreno/reno", 7);
        for _ in 0..3 {
            sender.on_ack(ms(100), &ack(0, &[]));
        }
        assert_eq!(sender.control_state().ssthresh, Some(ByteCount(half)), "{profile}");
    }
}

#[test]
fn the_least_time_out_is_the_profiles() {
    let rto = |profile, window: u32| {
        let mut sender = out(profile, "newreno/reno", window);
        // On a stable path the variance decreases.
        for segment in 1..=100 {
            let now = Instant::ZERO + RTT * segment;
            sender.on_ack(now, &ack(segment.into(), &[]));
            pump(&mut sender, now, &supply(u64::from(segment) + 1));
        }
        (sender.rtt().rto(), sender.rtt().srtt().unwrap())
    };
    assert_eq!(rto("ns-2.26", 1).0.as_millis(), 1_000);
    assert_eq!(rto("ns-2.35", 1).0.as_millis(), 200);
    let (rto, srtt) = rto("linux-2.2", 1);
    assert!(rto >= srtt + srtt / 4, "{rto:?} {srtt:?}");
}

#[test]
fn the_back_off_of_linux_2_2_lasts_until_nothing_is_outstanding() {
    for (profile, kept) in [("linux-2.2", 1), ("ns-2.35", 0)] {
        let mut sender = out(profile, "newreno/reno", 4);
        let at = sender.poll_timeout().unwrap();
        sender.on_timeout(at);
        pump(&mut sender, at, &supply(4));
        // The first is retransmitted and arrives, and the echo of its time stamp is a sample.
        let arrives = at + RTT;
        let echo = crate::Ack { echo: Some(at), ..ack(1, &[]) };
        sender.on_ack(arrives, &echo);
        assert_eq!(sender.rtt().backoff(), kept, "{profile}");
        pump(&mut sender, arrives, &supply(4));
        sender.on_ack(arrives + RTT, &ack(4, &[]));
        assert_eq!(sender.rtt().backoff(), 0, "{profile}");
    }
}

#[test]
fn a_patient_sender_restarts_its_timer_on_every_partial_ack() {
    for (profile, moves) in [("linux-2.2", true), ("ns-2.35", false)] {
        let mut sender = out(profile, "newreno/reno", 10);
        for _ in 0..3 {
            sender.on_ack(ms(100), &ack(0, &[]));
        }
        pump(&mut sender, ms(100), &supply(10));
        for (at, segment) in [(150, 2), (200, 4)] {
            sender.on_ack(ms(at), &ack(segment, &[]));
            pump(&mut sender, ms(at), &supply(10));
        }
        let before = sender.poll_timeout();
        sender.on_ack(ms(250), &ack(6, &[]));
        pump(&mut sender, ms(250), &supply(10));
        assert_eq!(sender.poll_timeout() != before, moves, "{profile}");
    }
}

#[test]
fn an_ack_that_reports_nothing_leaves_the_pipe_of_sack1() {
    let mut sender = out("ns-2.35", "sack/reno", 10);
    for upto in 2..=4 {
        sender.on_ack(ms(100), &ack(0, &[segments(1, upto)]));
        pump(&mut sender, ms(100), &supply(100));
    }
    let pipe = sender.pipe();
    for _ in 0..10 {
        let blocks = [segments(1, 4)];
        sender.on_ack(ms(101), &crate::Ack { has_payload: true, ..ack(0, &blocks) });
    }
    assert_eq!(sender.pipe(), pipe);
}

#[test]
fn with_sack1_a_hole_waits_once() {
    let cut = |profile| {
        let mut sender = out(profile, "sack/fixed:12/dcr:timer", 12);
        for upto in [4, 5, 6] {
            sender.on_ack(ms(100), &ack(0, &[segments(3, upto), segments(1, 2)]));
        }
        for (millis, upto) in [(110, 7), (130, 8), (150, 9), (170, 10), (190, 11)] {
            sender.on_ack(ms(millis), &ack(0, &[segments(3, upto), segments(1, 2)]));
        }
        // The first hole is filled in time.
        sender.on_ack(ms(195), &ack(2, &[segments(3, 11)]));
        (195..400).find(|millis| {
            sender.on_timeout(ms(*millis));
            sender.stats().reductions > 0
        })
    };
    assert_eq!((cut("paper"), cut("ns-2.35")), (Some(200), Some(200)));
}

#[test]
fn a_clamp_bounds_the_window_and_its_growth() {
    let clamped = Profile { cwnd_clamp: Some(5), initial_window: 2, ..Profile::paper() };
    let mut sender = sender_of("newreno/reno".parse().unwrap(), clamped);
    let mut una = 0;
    for round in 1..=20 {
        pump(&mut sender, Instant::ZERO + RTT * round, &supply(1_000));
        while una < crate::testkit::index(sender.snd_nxt()) {
            una += 1;
            sender.on_ack(Instant::ZERO + RTT * (round + 1), &ack(una, &[]));
        }
    }
    assert_eq!(sender.cwnd(), ByteCount(5 * SMSS));
    assert_eq!(sender.control_window(), ByteCount(5 * SMSS));
}

#[test]
fn another_floor_leaves_the_form() {
    let floor = RTT * 7;
    for profile in Profile::all() {
        let form = profile.rto.with_floor(floor);
        assert_eq!(std::mem::discriminant(&form), std::mem::discriminant(&profile.rto));
        assert!(matches!(
            form,
            RtoForm::Linux { floor: f } | RtoForm::Rfc { floor: f } | RtoForm::Linux22 { floor: f }
            if f == floor
        ));
    }
}
