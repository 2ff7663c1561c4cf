//! Mobiles that share the radio.

use std::collections::BTreeMap;

use super::*;

/// Keeps the queues of ten mobiles filled for 20 s; the first one has the words `first`.
/// Returns for each the number of arrivals and the share of the air time.
fn ten_saturated(first: &str) -> Vec<(u32, f64)> {
    let mut radio = radio("seed 3", Arq::MacLink);
    let mobiles: Vec<_> = (1..=10).map(MobileNo).collect();
    for mobile in &mobiles {
        let words = if mobile.0 == 1 { first } else { "" };
        radio.join(Instant::ZERO, *mobile, words).unwrap();
    }
    let mut arrived = BTreeMap::<_, u32>::new();
    let mut now = Instant::ZERO;
    while now < Instant::from_millis(20_000) {
        for mobile in &mobiles {
            while radio.queued(Way::Forth, Some(*mobile)).0 < 5 {
                assert!(radio.pass(now, *mobile, numbered(0, 1_460)).is_some());
            }
        }
        now = radio.poll_timeout().expect("it has work");
        while let Some((_, mobile, _)) = radio.poll_delivered(now) {
            *arrived.entry(mobile).or_default() += 1;
        }
    }
    let air = |of| radio.air_counters(Way::Forth, of).air_time.as_secs_f64();
    mobiles.iter().map(|of| (arrived[of], air(Some(*of)) / air(None))).collect()
}

#[test]
fn air_time_is_shared_one_with_half_of_its_frames_lost_leaves_nine_their_share() {
    let whole = ten_saturated("");
    let hit = ten_saturated("error 50%");
    for ((before, _), (after, share)) in whole.iter().zip(&hit).skip(1) {
        assert!(f64::from(*after) >= 0.9 * f64::from(*before), "{after} of {before}");
        assert!((share - 0.1).abs() < 0.002, "{share}");
    }
    // The first one pays for its retransmissions.
    let (arrived, share) = hit[0];
    assert!((share - 0.1).abs() < 0.002, "{share}");
    let ratio = f64::from(arrived) / f64::from(whole[0].0);
    assert!((0.40..0.55).contains(&ratio), "{ratio}");
}

#[test]
fn short_frames_do_not_cost_a_mobile_its_share() {
    let mut radio = radio("plain rate 8mbit", Arq::Off);
    let sizes = [(MobileNo(1), 1_460), (MobileNo(2), 160)];
    for (mobile, _) in sizes {
        radio.join(Instant::ZERO, mobile, "").unwrap();
    }
    let mut now = Instant::ZERO;
    while now < Instant::from_millis(5_000) {
        for (mobile, size) in sizes {
            while radio.queued(Way::Forth, Some(mobile)).0 < 5 {
                radio.pass(now, mobile, numbered(0, size));
            }
        }
        now = radio.poll_timeout().expect("it has work");
        while radio.poll_delivered(now).is_some() {}
    }
    let air = sizes.map(|(of, _)| radio.air_counters(Way::Forth, Some(of)).air_time);
    assert!((air[0].as_secs_f64() / air[1].as_secs_f64() - 1.0).abs() < 0.01, "{air:?}");
}

#[test]
fn each_mobile_has_its_own_queue_and_channel() {
    let mut radio = radio("queue 2 error 100% at 0s 100", Arq::Mac);
    let now = Instant::from_millis(5);
    let [near, far] = [1, 2].map(MobileNo);
    radio.join(now, near, "error 0%").unwrap();
    radio.join(now, far, "at 0s 245 deliver-corrupt").unwrap();
    radio.set_connected(now, ALL, false);
    let [near_by, at_edge, others] = [near, far, ALL].map(|of| radio.reception(now, of));
    assert!(near_by.is_connected && !near_by.is_fading && near_by.power > at_edge.power);
    assert!(at_edge.is_connected && at_edge.is_fading);
    assert!(!others.is_connected && !others.is_in_reach);
    assert_eq!(radio.reception(now, MobileNo(3)), others);
    for mobile in [far, ALL, near] {
        while radio.has_room(now, mobile) {
            radio.pass(now, mobile, numbered(mobile.0.into(), 100));
        }
        assert!(radio.pass(now, mobile, numbered(9, 100)).is_none());
    }
    assert_eq!(radio.queued(Way::Forth, Some(far)), (3, 2 * numbered(0, 100).len()));
    assert_eq!(radio.queued(Way::Forth, Some(MobileNo(3))), radio.queued(Way::Forth, Some(ALL)));
    radio.receive(now, near, numbered(8, 100));
    let mut arrived = Vec::new();
    while let Some(due) = radio.poll_timeout() {
        while let Some((way, mobile, packet)) = radio.poll_delivered(due) {
            arrived.push((way, mobile, number(&packet)));
        }
    }
    arrived.retain(|(_, mobile, _)| *mobile != far);
    let forth = (Way::Forth, near, 1);
    assert!(arrived.contains(&(Way::Back, near, 8)), "{arrived:?}");
    assert_eq!(arrived.iter().filter(|one| **one == forth).count(), 2, "{arrived:?}");
    assert_eq!(arrived.len(), 3, "{arrived:?}");
    assert_eq!(radio.counters(Way::Forth).disconnected, 2);
}

#[test]
fn a_number_that_is_given_again_has_no_packets_of_its_former_mobile() {
    let mut radio = radio("plain rate 1mbit delay 50ms", Arq::Off);
    let mobile = MobileNo(1);
    radio.join(Instant::ZERO, mobile, "").unwrap();
    radio.pass(Instant::ZERO, mobile, numbered(1, 100));
    radio.receive(Instant::ZERO, mobile, numbered(2, 100));
    // Both frames are sent, and propagate.
    let now = Instant::from_millis(20);
    radio.handle_timeout(now);
    assert!(Way::BOTH.iter().all(|way| radio.queued(*way, Some(mobile)) == (0, 0)));
    assert!(radio.leave(now, mobile).is_empty());
    radio.join(now, mobile, "").unwrap();
    let tries = [ALL, mobile].map(|of| radio.air_counters(Way::Forth, Some(of)).tries);
    assert_eq!(tries, [1, 0]);
    let mut arrived = Vec::new();
    while let Some(due) = radio.poll_timeout() {
        while let Some((_, of, packet)) = radio.poll_delivered(due) {
            arrived.push((of, number(&packet)));
        }
    }
    arrived.sort_unstable();
    assert_eq!(arrived, [(ALL, 1), (ALL, 2)]);
}

#[test]
fn only_the_words_of_a_mobile_are_accepted() {
    let mut radio = radio("error 100%", Arq::Mac);
    let mut join = |words| radio.join(Instant::ZERO, MobileNo(1), words).map_err(|e| e.to_string());
    assert_eq!(join("at 0s 50 at 9s 60 down 5s 2s biterror 1e-6 rx-thresh 1e-9"), Ok(()));
    assert_eq!(
        join("error 5% rate 5mbit").unwrap_err(),
        "at byte 9, `rate`: expected error, biterror, deliver-corrupt, at, rx-thresh, fz-thresh or \
         down, the words of one mobile, such as `at 0s 50 at 20s 300`"
    );
    assert!(join("down 5s").is_err() && join("at 9s 50 at 8s 60").is_err());
}

#[test]
fn a_long_queue_marks_and_a_short_one_beside_it_does_not() {
    let mut radio = radio("seed 4", Arq::Mac);
    radio.mark_congestion();
    let backlogs = [(MobileNo(1), 20), (MobileNo(2), 1)];
    for (mobile, _) in backlogs {
        radio.join(Instant::ZERO, mobile, "").unwrap();
    }
    let mut marked = BTreeMap::<_, u32>::new();
    let mut now = Instant::ZERO;
    while now < Instant::from_millis(2_000) {
        for (mobile, backlog) in backlogs {
            while radio.queued(Way::Forth, Some(mobile)).0 < backlog {
                radio.pass(now, mobile, ipv4_tcp(1_460, 2));
            }
        }
        now = radio.poll_timeout().expect("it has work");
        while let Some((_, mobile, packet)) = radio.poll_delivered(now) {
            *marked.entry(mobile).or_default() += u32::from(packet.data[1] & 3 == 3);
        }
    }
    assert!(marked[&MobileNo(1)] > 50 && marked[&MobileNo(2)] == 0, "{marked:?}");
}
