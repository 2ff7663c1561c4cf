//! A mobile moves.

use super::*;

#[test]
fn a_frozen_flow_moves_with_its_data_and_its_sender_gets_the_true_window() {
    let mut script = Script::new();
    script.lose();
    script.run(100);
    script.arrive(1, 5);
    script.fixed(1, Seg::data(2_001, 1_000));
    assert_eq!((script.state(1), script.received(1)), (HandoffState::Arriving, vec![]));
    script.leave(0, 5);
    assert_eq!((script.state(0), script.kept(0)), (HandoffState::Leaving, (0, 0)));
    script.exchange();
    assert_eq!(script.take(1, Side::Wired), [(1, 1_001, 700)]);
    script.run(200);
    assert_eq!(script.received(1), [1_001, 2_001]);
    assert_eq!((script.state(0), script.state(1)), (HandoffState::Left, HandoffState::Here));
    let counters = script.stations[0].counters();
    assert_eq!((counters.completed, counters.repeated, script.kept(1)), (1, 0, (1, 0)));
    // The sender goes on: the window is not opened once more.
    script.run(3_000);
    assert!(script.take(1, Side::Wired).is_empty());
    // The new station knows the flow: it marks after a loss.
    script.mobile(1, Seg { ts: Some((20, 8)), ..Seg::ack(1, 3_001) });
    script.fixed(1, Seg::data(4_001, 1_000));
    script.run(3_100);
    assert_eq!(script.stations[1].station().counters().marked, 1);
    assert!(script.out[0].iter().all(Vec::is_empty), "the old one is silent");
}

#[test]
fn segments_in_the_queue_of_the_radio_move_and_none_crosses_twice() {
    let mut script = Script::new();
    for n in 0..20 {
        script.fixed(0, Seg::data(1_001 + n * 1_000, 1_000));
    }
    script.arrive(1, 5);
    script.leave(0, 5);
    script.exchange();
    script.run(500);
    let [old, new] = [0, 1].map(|of| script.received(of));
    let all: Vec<u32> = (0..20).map(|n| 1_001 + n * 1_000).collect();
    assert!(!old.is_empty() && old.len() < 5, "what was on the air arrives: {old:?}");
    assert_eq!([old, new].concat(), all);
    assert!(script.take(1, Side::Wired).is_empty(), "the window was never closed");
}

#[test]
fn packets_of_others_stay_in_their_order() {
    let mut script = Script::new();
    let mut other = key_of(4);
    other.mobile.set_ip("192.168.0.9".parse().unwrap());
    for n in 0..10 {
        script.fixed(0, Seg::data(1_001 + n * 1_000, 1_000));
        let packet = Seg::data(7 + n * 10, 10).packet(other.fixed, other.mobile);
        script.put(0, Side::Wired, packet);
    }
    script.leave(0, 5);
    script.run(500);
    let theirs: Vec<u32> = script.received(0).into_iter().filter(|seq| *seq < 1_000).collect();
    assert_eq!(theirs, (0..10).map(|n| 7 + n * 10).collect::<Vec<_>>());
}

#[test]
fn messages_may_come_in_any_order_and_twice() {
    let mut script = Script::new();
    // 60 flows are several parts.
    for number in 1..60 {
        let key = key_of(number * 2);
        let syn = Seg { flags: "S", ack: 0, ..Seg::data(0, 0) };
        script.put(0, Side::Wired, syn.packet(key.fixed, key.mobile));
        script.run(40 + u64::from(number) * 10);
        let answer = Seg { flags: "SA", ..Seg::ack(0, 1) };
        script.put(0, Side::Wireless, answer.packet(key.mobile, key.fixed));
        script.run(45 + u64::from(number) * 10);
        let ack = Seg::ack(1, 1);
        script.put(0, Side::Wireless, ack.packet(key.mobile, key.fixed));
    }
    script.run(1_000);
    script.out = Default::default();
    script.lose();
    let before = script.stations[0].station().flows(100);
    assert_eq!(before.len(), 60);
    script.arrive(1, 5);
    script.leave(0, 5);
    let mut messages = script.messages(0);
    assert!(messages.len() > 4, "{}", messages.len());
    messages.reverse();
    script.give(1, &messages);
    script.give(1, &messages);
    assert_eq!(script.stations[1].counters().duplicates, messages.len() as u64);
    script.exchange();
    script.run(1_400);
    assert_eq!((script.state(0), script.received(1)), (HandoffState::Left, vec![1_001]));
    let sorted = |of: usize| {
        let mut flows = script.stations[of].station().flows(100);
        flows.sort_by_key(|flow| flow.key);
        flows
    };
    let mut before = before;
    before.sort_by_key(|flow| flow.key);
    for (before, after) in before.iter().zip(&sorted(1)) {
        assert_eq!((before.acked, before.seq, &before.seen), (after.acked, after.seq, &after.seen));
        assert_eq!(before.transfer.fixed, after.transfer.fixed);
    }
    assert_eq!((sorted(1).len(), sorted(0).len()), (60, 0));
}

#[test]
fn what_is_lost_is_sent_again_for_seven_seconds() {
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.leave(0, 5);
    let first = script.messages(0);
    let mut times = Vec::new();
    for ms in (41..9_000).step_by(10) {
        script.run(ms);
        let again = script.messages(0);
        if !again.is_empty() {
            assert_eq!(again, first);
            times.push(ms);
        }
    }
    assert_eq!(times.len(), 8, "{times:?}");
    assert_eq!((script.state(0), script.state(1)), (HandoffState::Left, HandoffState::Here));
    // An acknowledgement in between is enough for the rest.
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.leave(0, 5);
    let items = script.messages(0);
    assert_eq!(items.len(), 3, "flows, packet, end");
    script.give(1, &items[1..2]);
    let received = script.messages(1);
    script.give(0, &received);
    script.run(400);
    assert_eq!(script.messages(0), [items[0].clone(), items[2].clone()]);
    script.give(1, &[items[0].clone(), items[2].clone()]);
    script.exchange();
    script.run(450);
    assert_eq!((script.received(1), script.state(0)), (vec![1_001], HandoffState::Left));
}

#[test]
fn a_packet_that_comes_to_the_old_station_later_follows() {
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.leave(0, 5);
    script.fixed(0, Seg::data(2_001, 1_000));
    script.exchange();
    script.fixed(0, Seg::data(3_001, 1_000));
    script.exchange();
    script.run(200);
    assert_eq!(script.received(1), [1_001, 2_001, 3_001]);
    assert_eq!(script.stations[0].counters().followed, 2);
    assert_eq!(script.stations[1].station().flows(9)[0].seen, [(1_001, 4_001)]);
}

#[test]
fn an_old_station_that_does_not_answer_costs_half_a_second() {
    let mut script = Script::new();
    script.arrive(1, 5);
    script.fixed(1, Seg::data(2_001, 1_000));
    script.mobile(1, Seg { ts: Some((20, 8)), window: 600, ..Seg::ack(1, 2_001) });
    script.run(539);
    assert_eq!((script.state(1), script.received(1)), (HandoffState::Arriving, vec![]));
    script.run(600);
    assert_eq!((script.state(1), script.received(1)), (HandoffState::Here, vec![2_001]));
    // The flow is adopted, and works as any other one.
    let flows = script.stations[1].station().flows(9);
    assert_eq!(
        (flows.len(), flows[0].acked, &flows[0].seen[..]),
        (1, Some(2_001), &[(2_001, 3_001)][..])
    );
    assert_eq!(script.take(1, Side::Wired), [(1, 2_001, 600)], "only what the mobile sent");
    script.stations[1].station_mut().disconnect(script.now);
    script.fixed(1, Seg::data(3_001, 1_000));
    assert_eq!(script.take(1, Side::Wired), [(1, 2_001, 0)]);
    // The old one is only slow.
    script.leave(0, 5);
    script.exchange();
    let acked = script.stations[1].station().flows(9)[0].acked;
    assert_eq!((acked, script.stations[1].counters().timed_out), (Some(2_001), 1));
}

#[test]
fn acknowledgements_only_rise() {
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.mobile(1, Seg { ts: Some((20, 8)), window: 600, ..Seg::ack(1, 2_001) });
    script.run(60);
    script.leave(0, 5);
    script.exchange();
    script.run(5_000);
    // The mobile had received the segment; the station neither sends it nor an older ACK.
    assert!(script.received(1).is_empty());
    assert_eq!(script.take(1, Side::Wired), [(1, 2_001, 600)]);
    let flows = script.stations[1].station().flows(9);
    assert_eq!((flows[0].acked, flows[0].window), (Some(2_001), Some(600)));
}

#[test]
fn a_mobile_that_is_out_of_reach_again_gets_its_window_when_it_returns() {
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.stations[1].station_mut().disconnect(script.now);
    script.leave(0, 5);
    script.exchange();
    script.run(300);
    assert!(script.take(1, Side::Wired).is_empty() && script.received(1).is_empty());
    assert_eq!(script.kept(1), (1, 1));
    script.stations[1].station_mut().reconnect(script.now);
    script.run(400);
    assert_eq!(script.take(1, Side::Wired)[0], (1, 1_001, 700));
    assert_eq!(script.received(1), [1_001]);
}

#[test]
fn a_mobile_that_comes_back_gets_what_was_not_acknowledged() {
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.leave(0, 5);
    script.fixed(0, Seg::data(2_001, 1_000));
    drop(script.messages(0));
    script.stations[0].station_mut().reconnect(script.now);
    script.arrive(0, 6);
    // The other station never had anything, and sends an end.
    script.leave(1, 6);
    script.exchange();
    script.run(200);
    assert_eq!(script.take(0, Side::Wired), [(1, 1_001, 700)]);
    assert_eq!(script.received(0), [1_001, 2_001]);
    assert_eq!((script.state(0), script.state(1)), (HandoffState::Here, HandoffState::Left));
    assert_eq!(script.kept(0), (1, 0));
}

#[test]
fn ping_pong_moves_a_flow_each_time() {
    let mut script = Script::new();
    let mut seq = 1_001;
    for epoch in 1..=20_u64 {
        let [old, new] = if epoch % 2 == 1 { [0, 1] } else { [1, 0] };
        script.stations[old].station_mut().disconnect(script.now);
        script.fixed(old, Seg::data(seq, 1_000));
        script.stations[new].station_mut().reconnect(script.now);
        script.arrive(new, epoch);
        script.leave(old, epoch);
        script.fixed(new, Seg::data(seq + 1_000, 1_000));
        script.exchange();
        script.run(100 * epoch);
        assert_eq!(script.received(new), [seq, seq + 1_000], "epoch {epoch}");
        seq += 2_000;
        script.mobile(new, Seg { ts: Some((20 + epoch as u32, 8)), ..Seg::ack(1, seq) });
        script.run(100 * epoch + 50);
        assert_eq!((script.kept(new), script.kept(old)), ((1, 0), (0, 0)));
        assert_eq!(script.stations[new].station().flows(1)[0].acked, Some(seq));
    }
}

#[test]
fn a_mobile_that_moves_on_takes_what_had_not_reached_the_second_station() {
    let mut script = Script::new();
    script.lose();
    script.leave(0, 5);
    drop(script.messages(0));
    // It goes on to the same station in a later epoch, as after a registration that was refused.
    script.leave(0, 6);
    script.arrive(1, 6);
    script.exchange();
    script.run(200);
    assert_eq!((script.received(1), script.kept(1)), (vec![1_001], (1, 0)));
}

#[test]
fn a_mobile_without_an_old_station_waits_for_nothing() {
    let mut script = Script::new();
    let stations = &mut script.stations;
    stations[1].arrive(script.now, home(), 9, None).unwrap();
    assert_eq!(script.state(1), HandoffState::Here);
    script.fixed(1, Seg::data(1, 1_000));
    script.run(60);
    assert_eq!(script.received(1), [1]);
}

#[test]
fn a_mobile_that_comes_back_has_the_window_of_its_last_ack() {
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.leave(0, 5);
    let items = script.messages(0);
    script.give(1, &items);
    assert_eq!(script.take(1, Side::Wired), [(1, 1_001, 700)]);
    // The acknowledgements of the messages are lost: the first station keeps its record.
    assert!(!script.messages(1).is_empty());
    script.run(100);
    script.mobile(1, Seg { ts: Some((20, 8)), window: 800, ..Seg::ack(1, 2_001) });
    script.run(150);
    script.stations[1].station_mut().disconnect(script.now);
    script.fixed(1, Seg::data(2_001, 1_000));
    assert_eq!(script.take(1, Side::Wired), [(1, 2_001, 800), (1, 2_001, 0)]);
    script.stations[0].station_mut().reconnect(script.now);
    script.arrive(0, 6);
    script.leave(1, 6);
    script.exchange();
    assert_eq!(script.take(0, Side::Wired), [(1, 2_001, 800)]);
}

#[test]
fn a_mobile_that_leaves_while_it_arrives_gets_no_ack_here() {
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.leave(0, 5);
    script.fixed(1, Seg::data(2_001, 1_000));
    let items = script.messages(0);
    script.give(1, &items[..2]);
    let received = script.messages(1);
    script.give(0, &received);
    assert_eq!(script.state(1), HandoffState::Arriving);
    script.stations[1].station_mut().disconnect(script.now);
    script.leave(1, 6);
    script.run(3_000);
    assert!(script.out[1].iter().all(Vec::is_empty), "{:?}", script.out[1]);
    assert_eq!(script.kept(1), (0, 0));
    script.stations[0].station_mut().reconnect(script.now);
    script.arrive(0, 6);
    script.exchange();
    script.run(3_200);
    assert_eq!(script.take(0, Side::Wired), [(1, 1_001, 700)]);
    assert_eq!(script.received(0), [1_001, 2_001]);
}

#[test]
fn a_new_station_that_crashes_gets_what_it_had_not_acknowledged_in_order() {
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.leave(0, 5);
    // It has the flows, crashes, and hears again of the same move.
    let items = script.messages(0);
    script.give(1, &items[..1]);
    let received = script.messages(1);
    script.give(0, &received);
    script.stations[1] = station(0, 1 << 20);
    script.arrive(1, 5);
    script.fixed(0, Seg::data(2_001, 1_000));
    script.run(300);
    script.exchange();
    script.run(900);
    assert_eq!(script.received(1), [1_001, 2_001]);
    script.fixed(0, Seg::data(3_001, 1_000));
    script.exchange();
    script.run(1_000);
    assert_eq!(script.received(1), [3_001], "it does not wait for what cannot come");
}

#[test]
fn what_was_put_back_takes_no_room_of_the_other_station() {
    let mut script = Script::with_room(3_000);
    script.lose();
    script.arrive(1, 5);
    script.leave(0, 5);
    script.fixed(0, Seg::data(2_001, 900));
    script.fixed(1, Seg::data(2_901, 1_100));
    script.fixed(1, Seg::data(4_001, 500));
    drop(script.messages(0));
    script.stations[0].station_mut().reconnect(script.now);
    script.arrive(0, 6);
    script.leave(1, 6);
    script.exchange();
    script.run(300);
    assert_eq!(script.stations[0].counters().dropped_full, 0);
    assert_eq!(script.received(0), [1_001, 2_001, 2_901, 4_001]);
}

#[test]
fn a_new_station_that_crashes_after_many_items_gets_those_that_follow() {
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.leave(0, 5);
    script.exchange();
    let follow = |script: &mut Script, n: u32| script.fixed(0, Seg::data(2_001 + n * 100, 100));
    let numbers = |range: std::ops::Range<u32>| range.map(|n| 2_001 + n * 100).collect::<Vec<_>>();
    for n in 0..70 {
        follow(&mut script, n);
        script.exchange();
        script.run(100 + u64::from(n) * 5);
    }
    script.run(500);
    assert_eq!(script.received(1)[1..], numbers(0..70));
    script.stations[1] = station(0, 1 << 20);
    script.arrive(1, 5);
    (70..80).for_each(|n| follow(&mut script, n));
    let mut items = script.messages(0);
    items.rotate_left(3);
    script.give(1, &items);
    script.exchange();
    script.run(1_100);
    assert_eq!(script.received(1), numbers(70..80));
    for n in 80..200 {
        follow(&mut script, n);
        script.exchange();
        script.run(1_200 + u64::from(n) * 5);
    }
    script.run(2_300);
    assert_eq!(script.received(1), numbers(80..200));
    let [old, new] = [0, 1].map(|of| *script.stations[of].counters());
    assert_eq!((old.repeated, new.duplicates, new.malformed), (0, 0, 0));
}
