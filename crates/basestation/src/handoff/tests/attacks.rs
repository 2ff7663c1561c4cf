//! Messages and reports that are old, forged, or of a faulty station.

use super::*;
use crate::handoff::message::Item;

/// A message of the first station to the second one.
fn letter(epoch: u64, content: Content) -> Vec<u8> {
    Letter { home: home(), epoch, content }.seal(&secret(7))
}

fn packet(seq: u32, len: usize) -> Item {
    let data = Seg::data(seq, len).packet(key().fixed, key().mobile).data;
    Item::Packet { is_recorded: true, is_new: true, data }
}

#[test]
fn a_report_that_is_old_is_refused_and_one_that_is_repeated_has_no_effect() {
    let mut script = Script::new();
    script.lose();
    script.leave(0, 5);
    let first = script.messages(0);
    script.leave(0, 5);
    assert!(script.messages(0).is_empty());
    script.arrive(1, 5);
    script.give(1, &first);
    script.arrive(1, 5);
    script.run(100);
    assert_eq!((script.state(1), script.received(1)), (HandoffState::Here, vec![1_001]));
    let now = script.now;
    let old = &mut script.stations[0];
    for (epoch, is_here) in [(5, true), (4, true), (4, false), (u64::MAX - 9, true)] {
        let refused = match is_here {
            true => old.arrive(now, home(), epoch, Some(AT[1])),
            false => old.leave(now, home(), epoch, AT[1]),
        };
        assert_eq!(refused, Err(HandoffError::Stale { home: home(), epoch, last: 5 }));
    }
    let stranger = "198.51.100.9".parse().unwrap();
    assert_eq!(old.leave(now, home(), 6, stranger), Err(HandoffError::Peer(stranger)));
    let v6 = key_of(1).mobile.ip();
    let error = old.leave(now, v6, 6, AT[1]).unwrap_err();
    assert_eq!(error, HandoffError::Version { home: v6, station: AT[1] });
    assert_eq!(old.counters().departures, 1);
}

#[test]
fn messages_of_another_epoch_change_nothing_and_get_no_answer() {
    let mut script = Script::new();
    script.lose();
    script.leave(0, 5);
    let old = script.messages(0);
    script.give(1, &old);
    assert_eq!(script.stations[1].counters().stale, 3, "it has not arrived");
    script.arrive(1, 6);
    script.give(1, &old);
    assert_eq!(script.stations[1].counters().stale, 6);
    assert!(script.messages(1).is_empty());
    script.run(1_000);
    assert!(script.out[1].iter().all(Vec::is_empty));
    assert_eq!(script.kept(1), (0, 0));
    // An acknowledgement of another epoch, or one reflected.
    let later = letter(4, Content::Received { next: 3, later: 0 });
    script.give(0, &[later, old[0].clone()]);
    assert_eq!((script.stations[0].counters().stale, script.state(0)), (2, HandoffState::Leaving));
}

#[test]
fn messages_of_strangers_change_nothing() {
    let mut script = Script::new();
    script.lose();
    script.arrive(1, 5);
    script.leave(0, 5);
    let messages = script.messages(0);
    let now = script.now;
    let new = &mut script.stations[1];
    for message in &messages {
        new.handle_message(now, "198.51.100.9".parse().unwrap(), message);
        let mut changed = message.clone();
        changed[20] ^= 1;
        new.handle_message(now, AT[0], &changed);
    }
    new.handle_message(now, AT[0], &[]);
    let forged = Letter { home: home(), epoch: 5, content: Content::Item(0, Item::End) };
    new.handle_message(now, AT[0], &forged.seal(&secret(8)));
    let counters = new.counters();
    assert_eq!(counters.unauthenticated + counters.malformed, 8);
    assert_eq!((script.state(1), script.kept(1)), (HandoffState::Arriving, (0, 0)));
}

#[test]
fn a_faulty_station_cannot_reach_other_mobiles_or_use_more_than_the_room() {
    let mut script = Script::with_room(5_000);
    script.arrive(1, 5);
    // Records and packets of another address, and bytes that are neither.
    let mut other = script.stations[0].station().flows(1)[0].clone();
    other.key.mobile.set_ip("192.168.0.9".parse().unwrap());
    let mut records = Vec::new();
    other.encode(&mut records);
    records.push(0xff);
    let strange = Seg::data(1, 10).packet(key().fixed, other.key.mobile).data;
    let strange = Item::Packet { is_recorded: true, is_new: true, data: strange };
    let junk = Item::Packet { is_recorded: false, is_new: true, data: vec![0xff; 50] };
    let items = [Item::Part { parts: 1, records }, strange, junk];
    let messages = items.into_iter().zip(0..).map(|(item, no)| letter(5, Content::Item(no, item)));
    script.give(1, &messages.collect::<Vec<_>>());
    assert_eq!((script.stations[1].counters().refused, script.kept(1)), (4, (0, 0)));
    // More than fits, the later ones first, and fresh ones.
    for no in (4..64).rev() {
        script.give(1, &[letter(5, Content::Item(no, packet(no * 1_000, 1_000)))]);
        script.fixed(1, Seg::data(no * 1_000, 1_000));
    }
    assert_eq!(script.stations[1].counters().dropped_full, 120 - 4);
    // Numbers far above.
    for no in [67, u32::MAX, u32::MAX - 64, u32::MAX - 63, u32::MAX] {
        script.give(1, &[letter(5, Content::Item(no, packet(no, 1_000)))]);
    }
    assert_eq!(script.stations[1].counters().dropped_full, 120 - 4 + 3);
    assert_eq!(script.stations[1].counters().duplicates, 2);
    // Acknowledgements of what does not exist.
    script.leave(0, 5);
    for (next, later) in [(9, 0), (u32::MAX, u64::MAX), (0, u64::MAX << 3)] {
        script.give(0, &[letter(5, Content::Received { next, later })]);
    }
    assert_eq!((script.state(0), script.messages(0).len()), (HandoffState::Leaving, 2));
    // Packets that follow.
    for n in 0..100 {
        script.fixed(0, Seg::data(9_001 + n * 1_000, 1_000));
    }
    assert_eq!(script.stations[0].counters().followed, 4);
    script.run(9_000);
    assert_eq!((script.state(0), script.state(1)), (HandoffState::Left, HandoffState::Here));
    assert_eq!(script.kept(1).1, 0);
}

#[test]
fn mobiles_are_forgotten_but_not_those_on_the_move() {
    let mut script = Script::new();
    let now = script.now;
    let station = &mut script.stations[0];
    let mobile = |n: u8| IpAddr::from([192, 0, 2, n]);
    station.leave(now, mobile(1), 1, AT[1]).unwrap();
    station.arrive(now, mobile(2), 2, None).unwrap();
    station.arrive(now, mobile(3), 1, Some(AT[1])).unwrap();
    assert_eq!(station.state(mobile(2)), None);
    let full = station.arrive(now, mobile(4), 1, None);
    assert_eq!(full, Err(HandoffError::Full(mobile(4), 2)));
    station.handle_timeout(now + LIFETIME);
    station.arrive(now + LIFETIME, mobile(4), 1, None).unwrap();
    assert_eq!(station.mobiles.len(), 2);
}

#[test]
fn the_earliest_epoch_is_forgotten_also_after_epochs_have_wrapped() {
    let mut script = Script::new();
    let now = script.now;
    let station = &mut script.stations[0];
    let mobile = |n: u8| IpAddr::from([192, 0, 2, n]);
    for (n, epoch) in [(1, 3), (2, u64::MAX - 3), (3, 4)] {
        station.arrive(now, mobile(n), epoch, None).unwrap();
    }
    let known = [1, 2, 3].map(|n| station.state(mobile(n)).is_some());
    assert_eq!(known, [true, false, true]);
}

#[test]
fn the_old_station_makes_no_ack_after_the_mobile_has_left() {
    let mut script = Script::new();
    script.lose();
    script.leave(0, 5);
    let made = script.stations[0].station().counters().made;
    // Data, probes, the mobile's segments from before, and its return to this radio.
    for ms in 1..20 {
        script.fixed(0, Seg::data(1_000, 1));
        script.fixed(0, Seg::data(2_001, 100));
        script.mobile(0, Seg::ack(1, 1_001));
        script.mobile(0, Seg { flags: "S", ..Seg::data(9, 0) });
        script.run(40 + ms * 600);
        if ms == 10 {
            script.stations[0].station_mut().reconnect(script.now);
        }
    }
    assert_eq!(script.stations[0].station().counters().made, made);
    assert_eq!(script.kept(0), (0, 0));
}

#[test]
fn sequence_numbers_may_wrap() {
    let start = u32::MAX - 1_500;
    let at = |offset: u32| SeqNumber(start) + offset;
    let mut script = Script::new();
    let key = key_of(44);
    script.put(0, Side::Wired, Seg::data(at(0).0, 1_000).packet(key.fixed, key.mobile));
    script.run(60);
    script.put(0, Side::Wireless, Seg::ack(1, at(1_000).0).packet(key.mobile, key.fixed));
    script.run(80);
    script.stations[0].station_mut().disconnect(script.now);
    script.put(0, Side::Wired, Seg::data(at(1_000).0, 1_000).packet(key.fixed, key.mobile));
    script.out = Default::default();
    script.arrive(1, 5);
    script.leave(0, 5);
    script.exchange();
    script.run(200);
    assert_eq!(script.received(1), [at(1_000).0]);
    assert_eq!(script.take(1, Side::Wired)[0], (1, at(1_000).0, 1_000));
}
