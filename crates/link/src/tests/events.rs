//! Events for an observer, and the occupancy of a link.

use std::collections::BTreeMap;

use airtcp_types::{Event, EventKind, Fate};
use airtcp_wire::is_accepted;

use super::*;
use crate::Occupancy;

/// The events while packets are sent, one per 100 us.
fn events_of(spec: &str, packet: &Packet, count: u64) -> (Link, Vec<Event>) {
    let mut link = link(spec);
    link.set_events(true);
    let mut events = Vec::new();
    for number in 0..count {
        let now = Instant::from_nanos(number * 100_000);
        link.handle_packet(now, PortId(0), packet.clone());
        while link.poll_transmit(now).is_some() {}
        events.extend(std::iter::from_fn(|| link.poll_event()));
    }
    (link, events)
}

fn fate(event: &Event) -> (Fate, &Packet) {
    match &event.kind {
        EventKind::Packet { fate, packet } => (*fate, packet),
        other => panic!("a link reports packets, not {other:?}"),
    }
}

fn dropped(cause: &'static str) -> Fate {
    Fate::Dropped { cause }
}

#[test]
fn every_drop_is_reported_and_counted_with_its_cause() {
    // A packet of 125 bytes takes 1 ms at 1 Mbit/s, ten times the interval between arrivals.
    for (spec, cause) in [
        ("police rate 1mbit burst 250b", "policed"),
        ("rate 1mbit limit 3", "queue full"),
        ("rate 1mbit codel target 1ms interval 2ms", "codel"),
        ("rate 1mbit red min 1 max 2 probability 50%", "red"),
        ("rate 1mbit mark 3", "threshold"),
        ("loss 50%", "random loss"),
        ("loss gemodel 10% 20%", "gilbert-elliott"),
        ("burst 5% 5", "burst"),
        ("drop 3,9", "by number"),
        ("duty 5ms 3ms", "duty cycle"),
        ("down 5ms 3ms", "link down"),
    ] {
        let packet = ipv4_tcp(85, 0);
        let (link, events) = events_of(spec, &packet, 2_000);
        assert!(!events.is_empty(), "{spec}");
        assert!(events.iter().all(|event| fate(event) == (dropped(cause), &packet)), "{spec}");
        assert!(events.iter().all(|event| event.flow.is_none()));
        assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at), "{spec}");
        let drops: Vec<_> = link.drops(Way::Forth).collect();
        assert_eq!(drops, [(cause, events.len() as u64)]);
        let c = forth(&link);
        let dropped = c.policed + c.queue_dropped + c.channel_lost + c.disconnected;
        assert_eq!(dropped, events.len() as u64);
    }
}

#[test]
fn a_full_delay_line_is_reported() {
    let mut link = link("delay 1000s");
    link.set_events(true);
    for _ in 0..17 {
        link.handle_packet(Instant::ZERO, PortId(0), Packet::new(Vec::with_capacity(16 << 20)));
    }
    let reported: Vec<_> = std::iter::from_fn(|| link.poll_event()).collect();
    assert_eq!(
        reported.iter().map(|event| fate(event).0).collect::<Vec<_>>(),
        [dropped("delay line full"); 2]
    );
    assert_eq!(link.drops(Way::Forth).collect::<Vec<_>>(), [("delay line full", 2)]);
}

#[test]
fn marks_are_reported_with_the_marked_packet() {
    for (spec, cause) in [
        ("rate 1mbit codel target 1ms interval 2ms ecn", "codel"),
        ("rate 1mbit red min 1 max 2 probability 50%", "red"),
        ("rate 1mbit mark 3", "threshold"),
    ] {
        let (link, events) = events_of(spec, &ipv4_tcp(85, 2), 300);
        assert_eq!((events.len() as u64, forth(&link).queue_dropped), (forth(&link).marked, 0));
        for (fate, packet) in events.iter().map(fate) {
            assert_eq!(fate, Fate::Marked { cause });
            assert_eq!(packet.data[1] & 3, 3);
        }
        assert!(!events.is_empty(), "{spec}");
    }
}

#[test]
fn corruption_is_reported_with_the_flipped_bits() {
    let packet = ipv4_tcp(100, 0);
    let (link, events) = events_of("corrupt 50% header 40% bits 12 seed 3", &packet, 2_000);
    let (mut headers, mut unnoticed) = (0, 0);
    for (fate, hit) in events.iter().map(fate) {
        let Fate::Corrupted { bits, header, unnoticed: passes } = fate else { panic!("{fate}") };
        let flipped = |range: std::ops::Range<usize>| -> u32 {
            let pairs = packet.data[range.clone()].iter().zip(&hit.data[range]);
            pairs.map(|(one, other)| (one ^ other).count_ones()).sum()
        };
        assert!((2..=12).contains(&bits) && bits == flipped(0..140), "{bits}");
        assert_eq!(header, flipped(0..40) > 0);
        assert_eq!(passes, is_accepted(&hit.data));
        headers += u64::from(header);
        unnoticed += u64::from(passes);
    }
    let c = forth(&link);
    assert_eq!(
        (events.len() as u64, headers, unnoticed),
        (c.corrupted, c.corrupted_header, c.corrupted_unnoticed)
    );
    assert_share(headers, c.corrupted, 0.4);
}

#[test]
fn copies_are_reported() {
    let packet = ipv4_tcp(10, 0);
    let (link, events) = events_of("duplicate 20% seed 3", &packet, 500);
    assert_eq!(events.len() as u64, forth(&link).duplicated);
    assert!(events.iter().all(|event| fate(event) == (Fate::Duplicated, &packet)));
}

#[test]
fn both_directions_are_reported_in_the_order_of_time() {
    let mut link = link("rate 1mbit limit 2 loss 30% seed 2");
    link.set_events(true);
    for number in 0..300u64 {
        let port = PortId((number % 2) as u16);
        link.handle_packet(Instant::from_nanos(number * 300_000), port, numbered(number, 125));
    }
    let end = Instant::from_millis(1_000);
    link.handle_timeout(end);
    let events: Vec<_> = std::iter::from_fn(|| link.poll_event()).collect();
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    let mut causes = BTreeMap::new();
    for (fate, _) in events.iter().map(fate) {
        *causes.entry(fate.to_string()).or_insert(0) += 1;
    }
    let mut counted = BTreeMap::new();
    for (cause, count) in Way::BOTH.into_iter().flat_map(|way| link.drops(way)) {
        *counted.entry(format!("dropped: {cause}")).or_insert(0) += count;
    }
    assert_eq!(causes, counted);
    assert_eq!(causes.len(), 2);
}

#[test]
fn without_an_observer_there_are_no_events() {
    let mut link = link("loss 50%");
    send(&mut link, stream(100));
    assert!(link.poll_event().is_none());
}

#[test]
fn the_use_of_a_link_is_what_is_computed_by_hand() {
    // 1 ms in transmission for each of three: one is sent from 0 to 1 ms, one waits until 1 ms, one
    // until 2 ms.
    let mut link = link("rate 8mbit delay 50ms");
    for number in 0..3 {
        link.handle_packet(Instant::ZERO, PortId(0), numbered(number, 1_000));
    }
    let occupancy = |link: &mut Link, micros: u64| {
        let Occupancy { mean, max, busy } =
            link.occupancy(Way::Forth, Instant::from_nanos(micros * 1_000));
        (mean, max, busy)
    };
    assert_eq!(occupancy(&mut link, 0), (0.0, 0, 0.0));
    assert_eq!(occupancy(&mut link, 1_000), (2.0, 2, 1.0));
    assert_eq!(occupancy(&mut link, 1_500), (5.0 / 3.0, 2, 1.0));
    assert_eq!(occupancy(&mut link, 4_000), (0.75, 2, 0.75));
    // A packet that finds the wire idle does not wait.
    link.handle_packet(Instant::from_millis(6), PortId(0), numbered(3, 1_000));
    assert_eq!(occupancy(&mut link, 6_500), (3.0 / 6.5, 2, 3.5 / 6.5));
    assert_eq!(occupancy(&mut link, 10_000), (0.3, 2, 0.4));
    assert_eq!(link.occupancy(Way::Back, Instant::from_millis(10)), Occupancy::default());
}

#[test]
fn the_air_is_busy_for_the_frames_and_what_they_cost_beside() {
    let mut link = link("rate 8mbit half 250us");
    for port in [0, 1, 1] {
        link.handle_packet(Instant::ZERO, PortId(port), numbered(0, 1_000));
    }
    // 1.25 ms forth, then twice back.
    let end = Instant::from_millis(5);
    let uses = Way::BOTH.map(|way| link.occupancy(way, end));
    assert_eq!(uses.map(|used| (used.busy, used.max)), [(0.25, 0), (0.5, 2)]);
    assert_eq!(uses.map(|used| used.mean), [0.0, (2.0 * 1.25 + 1.25) / 5.0]);
}
