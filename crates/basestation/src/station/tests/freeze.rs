//! The mobile leaves, is out of reach, and returns.

use super::super::Reach;
use super::*;

const STAMP: (u32, u32) = (900, 40);

/// An ACK of the mobile with its own data up to 51, a window of 700, and timestamps.
fn ack(number: u32) -> Seg {
    Seg { window: 700, ts: Some(STAMP), ..Seg::ack(51, number) }
}

fn data(seq: u32) -> Seg {
    Seg { ts: Some((40, 900)), ..Seg::data(seq, 1_000) }
}

/// A flow in which the mobile has received everything up to 1001.
fn running() -> Script {
    running_with(|_| {})
}

fn running_with(change: impl FnOnce(&mut StationConfig)) -> Script {
    let mut script = Script::open_with("", change);
    script.fixed(data(1));
    script.run(40);
    script.mobile(Seg { seq: 1, len: 50, ..ack(1_001) });
    script.mobile(ack(1_001));
    script.run(50);
    script.out.clear();
    script
}

/// A frozen flow at 1 s, with one segment held.
fn stopped() -> Script {
    let mut script = running();
    script.station.disconnect(script.now);
    script.fixed(data(1_001));
    script.run(1_000);
    acks_sent(&mut script);
    script
}

/// Sequence number, acknowledgement and window of the segments sent to the fixed host.
fn acks_sent(script: &mut Script) -> Vec<(u32, u32, u16)> {
    let segments = script.take(Side::Wired);
    assert!(segments.iter().all(|segment| segment.is_intact && segment.data == 0));
    segments.iter().map(|segment| (segment.seq.0, segment.ack.0, segment.window)).collect()
}

fn counters(script: &Script) -> super::super::StationCounters {
    *script.station.counters()
}

#[test]
fn while_the_mobile_leaves_its_acks_have_no_window_and_what_was_sent_still_reaches_it() {
    let mut script = running();
    script.station.freeze(script.now);
    script.fixed(data(1_001));
    script.run(60);
    assert_eq!(script.marks(), [(1_001, false)]);
    script.mobile(ack(2_001));
    script.run(70);
    assert_eq!(acks_sent(&mut script), [(51, 2_001, 0)]);
    assert_eq!(counters(&script).frozen, 1);
    let record = script.station.flows(usize::MAX).remove(0);
    assert!(record.is_frozen && record.window == Some(700));
    // The mobile stays.
    script.station.reconnect(script.now);
    script.run(71);
    assert_eq!(acks_sent(&mut script), [(51, 2_001, 700)]);
    assert!(!script.station.flows(usize::MAX)[0].is_frozen);
    script.mobile(ack(2_001));
    script.run(75);
    assert_eq!(acks_sent(&mut script), [(51, 2_001, 700)]);
}

#[test]
fn what_comes_while_the_mobile_is_gone_is_held_and_answered_without_acknowledging_it() {
    let mut script = running();
    script.station.disconnect(script.now);
    (0..4).for_each(|n| script.fixed(data(1_001 + 1_000 * n)));
    script.run(60);
    let answers = script.take(Side::Wired);
    assert_eq!(answers.len(), 1, "more of the same would be duplicate ACKs");
    let answer = answers[0];
    assert!(answer.is_intact && answer.options.sack.is_empty());
    assert_eq!((answer.seq.0, answer.ack.0, answer.window), (51, 1_001, 0));
    let stamp = answer.options.timestamps.unwrap();
    assert_eq!((stamp.val, stamp.ecr), STAMP, "the mobile's last, and none newer");
    // The fixed host's time-out: the same segment again, with a newer timestamp.
    script.run(400);
    script.fixed(Seg { ts: Some((777, 900)), ..data(1_001) });
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 0)]);
    assert_eq!((counters(&script).held, counters(&script).held_again), (5, 1));
    assert!(script.take(Side::Wireless).is_empty());
    script.station.reconnect(script.now);
    script.run(500);
    assert_eq!(acks_sent(&mut script)[0], (51, 1_001, 700));
    let came = script.take(Side::Wireless);
    assert_eq!(came.iter().map(|s| s.seq.0).collect::<Vec<_>>(), [1_001, 2_001, 3_001, 4_001]);
    // RFC 7323 section 5.3: after the newer timestamp of the first segment, the mobile would drop
    // all others.
    let stamps: Vec<_> = came.iter().map(|s| s.options.timestamps.unwrap().val).collect();
    assert!(stamps.is_sorted() && !stamps.contains(&777), "{stamps:?}");
    assert_eq!(script.station.status(script.now).held_bytes, 0);
}

#[test]
fn probes_and_keepalives_are_answered_and_go_no_further() {
    let mut script = running();
    script.station.disconnect(script.now);
    let probe = || Seg { len: 0, ..data(1_000) };
    for ms in [100, 150, 400, 900] {
        script.run(ms);
        script.fixed(probe());
    }
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 0); 3], "150 ms is too soon");
    assert_eq!((counters(&script).probes, counters(&script).held), (4, 0));
    // A pure ACK of the fixed host is no probe.
    script.fixed(Seg { len: 0, ack: 51, ..data(1_001) });
    assert_eq!((acks_sent(&mut script).len(), counters(&script).held), (0, 1));
}

#[test]
fn a_flight_over_a_long_round_trip_is_answered_once() {
    let mut script = running();
    script.mobile(Seg { ts: Some((901, 40)), ..ack(1_001) });
    script.run(860);
    script.fixed(Seg { ts: Some((41, 901)), ..data(1_001) });
    script.run(900);
    script.out.clear();
    script.station.disconnect(script.now);
    for n in 0..7u32 {
        script.run(900 + 120 * u64::from(n));
        script.fixed(data(2_001 + 1_000 * n));
    }
    assert_eq!(acks_sent(&mut script).len(), 1);
    script.run(1_800);
    script.fixed(data(2_001));
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 0)]);
}

#[test]
fn a_sender_is_answered_though_there_is_no_room_to_hold_what_it_sends() {
    let mut script = running_with(|config| config.hold = airtcp_types::ByteCount(0));
    script.station.disconnect(script.now);
    script.fixed(data(1_001));
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 0)]);
    script.run(400);
    script.fixed(Seg { len: 0, ..data(1_000) });
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 0)], "a probe");
    script.run(800);
    script.fixed(Seg { flags: "R", ..Seg::data(1_001, 0) });
    assert!(acks_sent(&mut script).is_empty(), "nobody answers a reset");
    assert_eq!((counters(&script).probes, counters(&script).held_dropped), (1, 2));
}

#[test]
fn a_sender_that_nothing_would_resume_is_not_stopped() {
    let mut script = running_with(|config| config.flows = 1);
    script.station.freeze(script.now);
    script.mobile(ack(1_001));
    script.run(60);
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 0)]);
    // The table is full of pinned flows. The mobile has only answered the SYN of the next flow.
    let FlowKey { fixed, mobile } = super::super::testkit::key_of(2);
    script.put(Side::Wired, Seg { flags: "S", ack: 0, ..Seg::data(0, 0) }.packet(fixed, mobile));
    script.run(70);
    script.put(Side::Wireless, Seg { flags: "SA", ..Seg::ack(0, 1) }.packet(mobile, fixed));
    script.run(80);
    script.out.clear();
    script.station.disconnect(script.now);
    script.put(Side::Wired, Seg::data(1, 100).packet(fixed, mobile));
    assert!(acks_sent(&mut script).is_empty());
    assert_eq!(script.station.status(script.now).frozen, 1);
}

#[test]
fn what_the_radio_gives_back_goes_before_what_came_after_it() {
    let mut script = Script::open_with("queue 3", |_| {});
    script.mobile(ack(1));
    script.run(40);
    script.station.disconnect(script.now);
    (0..9).for_each(|n| script.fixed(data(1 + 1_000 * n)));
    script.run(1_000);
    // The radio has room for some of them, and the mobile is out of reach again before all are
    // sent.
    script.station.reconnect(script.now);
    script.run(1_001);
    script.station.disconnect(script.now);
    script.run(2_000);
    script.station.reconnect(script.now);
    script.run(3_000);
    let numbers: Vec<u32> = script.marks().into_iter().map(|mark| mark.0).collect();
    assert_eq!(numbers, (0..9).map(|n| 1 + 1_000 * n).collect::<Vec<_>>());
}

#[test]
fn what_the_radio_gives_back_is_as_new_for_the_filter_as_before() {
    // The mobile's duplicate ACK crosses in 0.4 ms, while the first packet is in transmission.
    let acks = |first: Packet| {
        let mut script = Script::open("plain rate 1mbit");
        script.mobile(ack(1));
        script.run(40);
        script.out.clear();
        script.put(Side::Wired, first);
        script.fixed(data(1));
        script.station.disconnect(script.now);
        assert_eq!(script.station.status(script.now).held, 1);
        script.station.reconnect(script.now);
        script.mobile(ack(1));
        script.run(42);
        script.acks()
    };
    assert!(acks(other(1_000)).is_empty(), "the radio repairs it");
    // The first copy was lost on the wired side.
    let lost_before = data(1_001).packet(key().fixed, key().mobile);
    assert_eq!(acks(lost_before), [1], "the fixed host repairs it");
}

#[test]
fn what_the_fixed_host_retransmits_while_it_is_held_is_not_new_for_the_filter() {
    let acks = |copies: usize| {
        let mut script = Script::open("plain rate 1mbit");
        script.mobile(ack(1));
        script.run(40);
        script.station.disconnect(script.now);
        (0..copies).for_each(|_| script.fixed(data(1)));
        script.out.clear();
        script.station.reconnect(script.now);
        // The duplicate ACK arrives while the packet is in transmission.
        script.mobile(ack(1));
        script.run(42);
        script.acks()
    };
    assert_eq!(acks(1), [1], "the station opens the window, and the duplicate ACK is hidden");
    assert_eq!(acks(2), [1, 1], "the fixed host needs the duplicate ACK");
}

#[test]
fn a_path_out_of_reach_costs_no_segment() {
    // In the middle of a flight, 250 m after 2 s.
    let mut script = Script::open("at 0s 230 at 2s 250 at 3s 260 at 5s 230");
    script.mobile(ack(1));
    script.run(1_980);
    script.out.clear();
    (0..20).for_each(|n| script.fixed(data(1 + 1_000 * n)));
    script.run(9_000);
    let numbers: Vec<u32> = script.marks().into_iter().map(|mark| mark.0).collect();
    assert_eq!(numbers, (0..20).map(|n| 1 + 1_000 * n).collect::<Vec<_>>());
    let radio = script.station.status(script.now).radio[0];
    assert_eq!((radio.disconnected, radio.channel_lost), (0, 0));
}

#[test]
fn what_waits_for_the_air_when_the_mobile_goes_is_kept_for_it() {
    let mut script = running();
    (0..10).for_each(|n| script.fixed(data(1_001 + 1_000 * n)));
    script.station.disconnect(script.now);
    script.run(3_000);
    let before = script.marks();
    assert_eq!(before.len(), 1, "the one on the air");
    script.station.reconnect(script.now);
    script.run(3_100);
    let numbers: Vec<u32> = before.into_iter().chain(script.marks()).map(|mark| mark.0).collect();
    assert_eq!(numbers, (0..10).map(|n| 1_001 + 1_000 * n).collect::<Vec<_>>());
}

#[test]
fn an_open_window_is_announced_until_data_comes_but_at_most_three_times() {
    let mut script = stopped();
    script.station.reconnect(script.now);
    script.run(20_000);
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 700); 3]);
    // The mobile has nothing new to send, and the fixed host answers the second window update.
    let mut script = stopped();
    script.station.reconnect(script.now);
    let rtt_later = script.now.as_millis() + 20;
    script.run(rtt_later);
    script.fixed(data(2_001));
    script.run(20_000);
    assert_eq!(acks_sent(&mut script).len(), 2);
}

#[test]
fn no_window_is_open_while_the_mobile_is_gone_again() {
    let mut script = stopped();
    script.station.reconnect(script.now);
    script.run(1_001);
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 700)]);
    script.station.disconnect(script.now);
    script.run(10_000);
    assert!(acks_sent(&mut script).is_empty());
    // The single window update may have been lost.
    script.station.reconnect(script.now);
    script.run(20_000);
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 700); 3]);
}

#[test]
fn what_cannot_be_held_was_not_seen() {
    let mut script = running();
    script.station = {
        let config = StationConfig {
            policy: Policy::TcpEcn,
            // Half of it is reserved for flows in which the mobile takes part.
            hold: airtcp_types::ByteCount(6_000),
            ..StationConfig::default()
        };
        Station::new(&config).unwrap()
    };
    script.station.disconnect(script.now);
    (0..4).for_each(|n| script.fixed(data(1_001 + 1_000 * n)));
    assert_eq!((counters(&script).held, counters(&script).held_dropped), (2, 2));
    script.station.reconnect(script.now);
    script.run(100);
    assert_eq!(script.marks(), [(1_001, false), (2_001, false)]);
    script.fixed(data(5_001));
    script.run(200);
    assert_eq!(script.marks(), [(5_001, true)]);
}

#[test]
fn a_path_out_of_reach_and_back_freezes_before_the_end_and_opens_after_it() {
    // 10 m/s: from 242 m on less than fz-thresh above rx-thresh, from 250 m on less than rx-thresh.
    let mut script = Script::open("at 1s 230 at 5s 270 at 9s 230");
    let (mut seen, mut next) = (Vec::new(), 1);
    for ms in (100..10_000).step_by(100) {
        script.run(ms);
        script.mobile(Seg { window: 700, ..Seg::ack(1, next) });
        if !script.take(Side::Wireless).is_empty() {
            next += 1_000;
        }
        if script.station.status(script.now).held == 0 {
            script.fixed(Seg::data(next, 1_000));
        }
        let windows = acks_sent(&mut script).iter().map(|ack| ack.2).collect::<Vec<_>>();
        seen.extend(windows.into_iter().map(|window| (ms, window)));
    }
    let closed: Vec<u64> = seen.iter().filter(|ack| ack.1 == 0).map(|ack| ack.0).collect();
    let (first, last) = (closed[0], *closed.last().unwrap());
    assert!((2_200..=2_500).contains(&first), "{first}");
    assert!((7_500..=8_000).contains(&last), "{last}");
    let reopened = seen.iter().find(|ack| ack.0 > last && ack.1 == 700).unwrap();
    assert!((7_700..=8_100).contains(&reopened.0), "{reopened:?}");
}

#[test]
fn senders_may_go_on_if_the_mobile_does_not_leave() {
    let mut script = running();
    script.station.freeze(script.now);
    script.mobile(ack(1_001));
    script.run(10_000);
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 0)]);
    // No packet arrives that would make the station look for the mobile.
    script.run(20_000);
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 700); 3]);
    script.mobile(ack(1_001));
    script.run(20_010);
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 700)]);
    // The mobile leaves.
    script.station.freeze(script.now);
    script.mobile(ack(1_001));
    script.run(20_020);
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 0)]);
}

#[test]
fn plain_holds_nothing() {
    let mut script = Script::new("", |config| config.policy = Policy::Plain);
    script.fixed(data(1));
    script.run(10);
    script.station.freeze(script.now);
    script.station.disconnect(script.now);
    assert_eq!(script.station.status(script.now).reach, Reach::Gone);
    script.fixed(data(1_001));
    script.run(1_000);
    script.station.reconnect(script.now);
    script.run(2_000);
    assert_eq!(script.marks(), [(1, false)]);
    assert!(acks_sent(&mut script).is_empty());
}

#[test]
fn a_flood_of_syns_and_of_data_leaves_a_frozen_flow_its_room() {
    let mut script = running_with(|config| config.hold = airtcp_types::ByteCount::from_kib(64));
    script.station.disconnect(script.now);
    script.fixed(data(1_001));
    for number in 2..20_000 {
        let FlowKey { fixed, mobile } = super::super::testkit::key_of(number);
        let flags = if number % 3 == 0 { "A" } else { "S" };
        script.put(Side::Wired, Seg { flags, ..Seg::data(1, 1_000) }.packet(fixed, mobile));
    }
    assert!(counters(&script).held_dropped > 0, "the flood is more than there is room for");
    script.run(400);
    script.fixed(data(2_001));
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 0); 2]);
    script.station.reconnect(script.now);
    script.run(5_000);
    assert_eq!(acks_sent(&mut script)[0], (51, 1_001, 700));
    let own: Vec<_> = script.marks().iter().map(|(seq, _)| *seq).filter(|seq| *seq > 1).collect();
    assert_eq!(own, [1_001, 2_001]);
    assert!(script.station.status(script.now).unproven <= 4_096);
}

#[test]
fn flows_of_a_mobile_that_stays_away_are_let_go() {
    let mut script = stopped();
    let probe = || Seg { len: 0, ..data(1_000) };
    script.run(899_000);
    script.fixed(probe());
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 0)]);
    let status = script.station.status(script.now);
    assert_eq!((status.reach, status.frozen, status.held), (Reach::Gone, 1, 1));
    script.run(901_000);
    let status = script.station.status(script.now);
    assert_eq!((status.reach, status.frozen, status.flows), (Reach::Lost, 0, 0));
    assert_eq!((status.held, status.held_bytes), (0, 0));
    assert_eq!((status.counters.let_go, status.counters.held_dropped), (1, 1));
    // From now on the station does nothing: no answers, and no packets held.
    for n in 0..60 {
        script.run(901_000 + 60_000 * n);
        script.fixed(probe());
        script.fixed(data(1_001));
    }
    script.run(5_000_000);
    assert!(acks_sent(&mut script).is_empty() && script.marks().is_empty());
    let status = script.station.status(script.now);
    assert_eq!((status.frozen, status.flows, status.held), (0, 0, 0));
    // The mobile returns: a window probe reaches it.
    script.station.reconnect(script.now);
    assert_eq!(script.station.status(script.now).reach, Reach::There);
    script.fixed(probe());
    script.run(5_000_100);
    assert_eq!(script.marks(), [(1_000, false)]);
    script.mobile(ack(1_001));
    script.run(5_000_200);
    assert_eq!(acks_sent(&mut script), [(51, 1_001, 700)]);
    // The mobile may leave again, for the same time.
    script.fixed(data(1_001));
    script.run(5_000_300);
    script.mobile(ack(2_001));
    script.run(5_000_400);
    script.out.clear();
    script.station.disconnect(script.now);
    script.run(5_800_000);
    script.fixed(data(2_001));
    assert_eq!(acks_sent(&mut script), [(51, 2_001, 0)]);
}
