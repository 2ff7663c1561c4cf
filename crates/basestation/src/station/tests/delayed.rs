//! Delayed duplicate ACKs, for comparison. Segments have 1000 bytes, the first starts at 1.

use airtcp_types::{ByteCount, EventKind, Fate};

use super::*;

/// The flow of [`Script::open`] after ten segments.
fn delayed(change: impl FnOnce(&mut StationConfig)) -> Script {
    let mut script = Script::open_with("", |config| {
        config.policy = Policy::DelayedDupack;
        change(config);
    });
    (0..10).for_each(|n| script.fixed(Seg::data(1 + 1_000 * n, 1_000)));
    later(&mut script, 50);
    script.out.clear();
    script
}

fn later(script: &mut Script, ms: u64) {
    script.run(script.now.as_nanos() / 1_000_000 + ms);
}

/// An ACK with this acknowledgement; it reports a segment that the mobile has above it.
fn ack(number: u32) -> Seg {
    Seg { sack: vec![(number + 2_000, number + 3_000)], ..Seg::ack(1, number) }
}

/// Lets the mobile repeat its first ACK.
fn repeat(script: &mut Script, count: usize) {
    (0..count).for_each(|_| script.mobile(ack(1)));
    later(script, 10);
}

/// The numbers of delayed and of dropped duplicate ACKs.
fn counted(script: &Script) -> (u64, u64) {
    let counters = script.station.counters();
    (counters.delayed, counters.hidden)
}

#[test]
fn the_third_duplicate_and_later_ones_wait_and_a_repair_in_time_drops_them() {
    let mut script = delayed(|_| {});
    repeat(&mut script, 6);
    assert_eq!((script.acks(), counted(&script)), (vec![1, 1], (4, 0)));
    let status = script.station.status(script.now);
    assert!(status.cached > 0 && status.memory > status.cached);
    script.mobile(Seg::ack(1, 4_001));
    later(&mut script, 10);
    assert_eq!((script.acks(), counted(&script)), (vec![4_001], (4, 4)));
    assert_eq!(script.station.status(script.now).cached, 0);
    later(&mut script, 1_000_000);
    assert!(script.out.is_empty() && script.station.poll_timeout().is_none());
    // The next loss is counted anew.
    (0..3).for_each(|_| script.mobile(ack(4_001)));
    later(&mut script, 10);
    assert_eq!((script.acks(), counted(&script)), (vec![4_001; 2], (5, 4)));
}

#[test]
fn without_a_repair_they_are_forwarded_after_the_delay_and_later_ones_at_once() {
    let delay = Duration::from_millis(90);
    let mut script = delayed(|config| config.dupack_delay = delay);
    repeat(&mut script, 2);
    later(&mut script, 40);
    assert_eq!(script.acks(), [1, 1]);
    // The delay is that of the third.
    let start = script.now;
    repeat(&mut script, 3);
    let due = script.station.poll_timeout().unwrap();
    assert!(due > start + delay && due < script.now + delay);
    later(&mut script, 79);
    assert!(script.acks().is_empty());
    later(&mut script, 11);
    assert!(script.out.iter().all(|(at, _, _)| *at == due));
    let acks = script.take(Side::Wired);
    assert_eq!(acks.iter().map(|ack| ack.ack.0).collect::<Vec<_>>(), [1, 1, 1]);
    assert!(acks.iter().all(|ack| ack.is_intact && ack.options.sack.len() == 1));
    repeat(&mut script, 2);
    assert_eq!((script.acks(), counted(&script)), (vec![1, 1], (3, 0)));
}

#[test]
fn what_says_more_is_not_delayed_and_does_not_overtake_those_that_are() {
    let mut script = delayed(|_| {});
    repeat(&mut script, 4);
    assert_eq!(script.acks(), [1, 1]);
    script.mobile(Seg { len: 10, ..ack(1) });
    later(&mut script, 10);
    let out = script.take(Side::Wired);
    assert_eq!(out.iter().map(|segment| segment.data).collect::<Vec<_>>(), [0, 0, 10]);
    // The sender has seen the duplicates, and repairs the loss.
    script.mobile(Seg { seq: 11, ..ack(1) });
    later(&mut script, 10);
    assert_eq!((script.acks(), counted(&script)), (vec![1], (2, 0)));
}

#[test]
fn an_old_ack_that_was_overtaken_on_the_radio_changes_nothing() {
    let mut script = delayed(|_| {});
    script.mobile(Seg::ack(1, 2_001));
    (0..3).for_each(|_| script.mobile(ack(2_001)));
    script.mobile(Seg::ack(1, 1_001));
    later(&mut script, 10);
    assert_eq!((script.acks(), counted(&script)), (vec![2_001, 2_001, 2_001, 1_001], (1, 0)));
}

#[test]
fn acks_of_a_mobile_that_has_everything_are_no_duplicates() {
    let mut script = delayed(|_| {});
    // As answers to keep-alives.
    (0..5).for_each(|_| script.mobile(Seg::ack(1, 10_001)));
    later(&mut script, 10);
    assert_eq!((script.acks(), counted(&script)), (vec![10_001; 5], (0, 0)));
}

#[test]
fn without_room_all_pass_at_once_in_order() {
    let mut script = delayed(|config| config.cache = ByteCount(600));
    let stamped = |number| Seg { ts: Some((number, 9)), ..ack(1) };
    (1..40).for_each(|number| script.mobile(stamped(number)));
    later(&mut script, 100);
    let (delayed_acks, hidden) = counted(&script);
    assert!((1..10).contains(&delayed_acks) && hidden == 0, "{delayed_acks}");
    let out = script.take(Side::Wired);
    let stamps: Vec<_> = out.iter().map(|ack| ack.options.timestamps.unwrap().val).collect();
    assert_eq!(stamps, (1..40).collect::<Vec<_>>());
    // Without room for a count nothing is delayed.
    let mut script = delayed(|config| config.cache = ByteCount(100));
    repeat(&mut script, 9);
    assert_eq!((script.acks(), counted(&script)), (vec![1; 9], (0, 0)));
    assert_eq!(script.station.status(script.now).cached, 0);
}

#[test]
fn acks_of_a_flow_that_was_evicted_are_forwarded() {
    let mut script = delayed(|config| config.flows = 1);
    repeat(&mut script, 4);
    assert_eq!(script.acks(), [1, 1]);
    let FlowKey { fixed, mobile } = super::super::testkit::key_of(2);
    script.put(Side::Wired, Seg::data(1, 100).packet(fixed, mobile));
    later(&mut script, 10);
    script.put(Side::Wireless, Seg::ack(1, 101).packet(mobile, fixed));
    later(&mut script, 10);
    assert_eq!((script.acks(), script.station.status(script.now).evicted), (vec![101], 1));
    later(&mut script, 200);
    assert_eq!(script.acks(), [1, 1]);
    later(&mut script, 1_000_000);
    let status = script.station.status(script.now);
    assert_eq!((status.cached, script.station.poll_timeout()), (0, None));
}

#[test]
fn an_observer_hears_of_delayed_and_of_dropped_acks() {
    let mut script = delayed(|_| {});
    script.station.set_events(true);
    repeat(&mut script, 4);
    script.mobile(Seg::ack(1, 10_001));
    later(&mut script, 10);
    let dropped = Fate::Dropped { cause: "duplicate ACK" };
    let events = std::iter::from_fn(|| script.station.poll_event());
    let fates = events.filter_map(|event| match event.kind {
        EventKind::Packet { fate, .. } if fate == Fate::Held || fate == dropped => Some(fate),
        _ => None,
    });
    assert_eq!(fates.collect::<Vec<_>>(), [Fate::Held, Fate::Held, dropped, dropped]);
}
