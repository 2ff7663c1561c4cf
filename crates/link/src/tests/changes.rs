//! Changes while a link runs.

use super::*;
use crate::Trace;

/// When packets of 1,000 bytes, all sent at the start, leave, in microseconds.
fn out(link: &mut Link, count: u64) -> Vec<u64> {
    let out = send(link, (0..count).map(|number| (Instant::ZERO, numbered(number, 1_000))));
    assert!(out.iter().map(|(_, packet)| number_of(packet)).eq(0..count));
    out.iter().map(|(at, _)| at.as_nanos() / 1_000).collect()
}

#[test]
fn a_new_rate_begins_with_the_packet_that_is_next_and_the_queue_stays() {
    // 1 ms for each packet; the third is in transmission at 2.5 ms, and leaves at its original
    // time.
    let spec = "rate 8mbit at 2500us rate 80kbit at 150ms rate 16mbit 1000 at 204ms rate 8mbit";
    let mut link = link(spec);
    let times = out(&mut link, 8);
    // 100 ms for each, then 1 ms for a packet that counts twice; at the exact time of the last
    // change the new rate applies.
    assert_eq!(times, [1_000, 2_000, 3_000, 103_000, 203_000, 204_000, 205_000, 206_000]);
    assert_eq!(forth(&link).queue_dropped, 0);
}

#[test]
fn a_hundredfold_change_drops_nothing_that_the_queue_has_room_for() {
    for (first, then) in [("10mbit", "100kbit"), ("100kbit", "10mbit")] {
        let mut link = link(&format!("rate {first} limit 1000 at 10ms rate {then}"));
        assert_eq!(out(&mut link, 1_001).len(), 1_001, "one is on the wire");
    }
}

#[test]
fn what_has_no_rate_or_a_trace_can_be_given_one() {
    assert_eq!(out(&mut link("at 0s rate 8mbit"), 3), [1_000, 2_000, 3_000]);
    let spec: LinkSpec = "trace file at 5ms rate 4mbit".parse().unwrap();
    let trace = |_: &str| Ok(Trace::parse("3\n6\n").unwrap());
    let mut link = Link::with_traces(&spec, &spec, trace).unwrap();
    // 504 bytes of the first opportunity go to the second packet, which ends at the next one.
    assert_eq!(out(&mut link, 4), [3_000, 6_000, 8_000, 10_000]);
    assert!(spec.has_rate() && !LinkSpec::default().has_rate());
    assert!("at 0s rate 8mbit".parse::<LinkSpec>().unwrap().has_rate());
}

#[test]
fn both_directions_of_shared_air_change() {
    let mut link = link("rate 8mbit half 0s at 1500us rate 4mbit");
    for number in 0..4 {
        link.handle_packet(Instant::ZERO, PortId((number % 2) as u16), numbered(number, 1_000));
    }
    let mut out = vec![];
    drain(&mut link, Instant::MAX, &mut out);
    assert!(out.iter().map(|(at, _)| at.as_millis()).eq([1, 2, 4, 6]));
}

/// Packets sent at these times (ms) over a link: the numbers of those that arrive, and when.
fn arrivals(link: &mut Link, sent: &[u64]) -> Vec<(u64, u64)> {
    let packets = (0..).zip(sent).map(|(n, at)| (Instant::from_millis(*at), numbered(n, 100)));
    send(link, packets).iter().map(|(at, packet)| (number_of(packet), at.as_millis())).collect()
}

#[test]
fn a_new_delay_is_for_packets_that_come_and_a_shorter_one_overtakes_unless_in_order() {
    let sent = [0, 9, 10, 20, 30];
    let mut free = link("delay 50ms at 10ms delay 10ms at 30ms delay 60ms");
    assert_eq!(arrivals(&mut free, &sent), [(2, 20), (3, 30), (0, 50), (1, 59), (4, 90)]);
    assert_eq!(forth(&free).reordered, 2);
    let mut ordered = link("delay 50ms at 10ms delay 10ms inorder at 30ms delay 60ms");
    assert_eq!(arrivals(&mut ordered, &sent), [(0, 50), (1, 59), (2, 59), (3, 59), (4, 90)]);
    assert_eq!(forth(&ordered).reordered, 0);
}

#[test]
fn loss_begins_and_ends_at_its_time() {
    let mut lossy = link("at 10ms loss 100% at 30ms loss 0%");
    assert_eq!(arrivals(&mut lossy, &[0, 9, 10, 29, 30]), [(0, 0), (1, 9), (4, 30)]);
    assert_eq!(forth(&lossy).channel_lost, 2);
    // Loss draws from the start on, so the packets that a seed loses do not depend on when losses
    // start.
    let always = lost("loss 20% seed 3", 20_000);
    let later = lost("seed 3 at 10ms loss 20%", 20_000);
    assert!(later[..10_000].iter().all(|lost| !lost) && later[10_000..] == always[10_000..]);
    let spells = lost("loss gemodel 50% 1% at 10ms loss gemodel 0% 100%", 20_000);
    assert!(spells[..10_000].contains(&true), "a bad spell begins");
    assert!(!spells[10_000..].contains(&true), "and ends with the change");
}

/// Bursts of 60 packets of 100 bytes, one burst every 20 ms.
fn bursts() -> impl Iterator<Item = (Instant, Packet)> {
    (0..3_000).map(|number| (Instant::from_millis(number / 60 * 20), numbered(number, 100)))
}

#[test]
fn a_change_at_the_start_is_as_if_it_had_been_so_from_the_start() {
    let rest = "duplicate 20% limit 4000 red min 1 max 9 probability 30% seed 8";
    let run = |spec: String| {
        let mut link = link(&spec);
        (send(&mut link, bursts()), forth(&link))
    };
    for (first, then, others) in [
        ("rate 1mbit", "rate 20mbit 14", "delay 1ms loss 1%"),
        ("rate 1kbit", "rate 50mbit", "delay 1ms loss 1%"),
        ("delay 3ms", "delay 9ms 4ms distribution normal", "rate 20mbit loss 1%"),
        ("delay 3ms 1ms inorder", "delay 9ms inorder", "rate 20mbit loss 1%"),
        ("loss 30%", "loss gemodel 5% 20% 90% 1%", "rate 20mbit delay 1ms"),
    ] {
        let changed = run(format!("{first} {others} {rest} at 0s {then}"));
        assert!(changed == run(format!("{then} {others} {rest}")), "{then}");
        assert!(changed != run(format!("{first} {others} {rest}")), "{first}");
    }
}
