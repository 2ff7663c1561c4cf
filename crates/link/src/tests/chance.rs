//! `is_random` is true exactly if two seeds give different results.

use crate::named::{LINKS, NamedLink};
use crate::spec::PARTS;
use crate::{LinkSpec, Trace};

use super::*;

/// The arrivals, with their times, of 2,000 full packets that are sent in bursts from the side of
/// `way`.
fn arrivals(spec: &LinkSpec, way: Way, seed: u64) -> Vec<(Instant, Vec<u8>)> {
    let seeded = LinkSpec { seed, ..spec.clone() };
    let trace = |_: &str| Ok(Trace::parse("3\n5\n9\n").unwrap());
    let mut link = Link::with_traces(&seeded, &seeded, trace).unwrap();
    let mut out = Vec::new();
    for number in 0..2_000 {
        let at = Instant::from_millis(number / 40 * 30);
        drain(&mut link, at, &mut out);
        link.handle_packet(at, PortId(way as u16), ipv4_tcp(1_400, 0));
    }
    drain(&mut link, Instant::MAX, &mut out);
    out.into_iter().map(|(at, packet)| (at, packet.data)).collect()
}

#[track_caller]
fn assert_randomness(text: &str) {
    let spec: LinkSpec = text.parse().unwrap();
    for way in Way::BOTH {
        let differ = arrivals(&spec, way, 1) != arrivals(&spec, way, 2);
        assert_eq!(spec.is_random(way), differ, "{text}, {way:?}");
    }
}

#[test]
fn a_part_is_random_if_seeds_differ() {
    for part in PARTS {
        assert_randomness(part.example);
    }
}

#[test]
fn named_links_are_distinguished() {
    let random = |link: &&NamedLink| {
        let (down, up) = link.specs();
        down.is_random(Way::Forth) || up.is_random(Way::Back)
    };
    let names: Vec<_> = LINKS.iter().filter(random).map(|link| link.name).collect();
    assert_eq!(names, ["weak-4g", "congested-wifi", "geo-satellite", "very-bad"]);
}

#[test]
fn what_befalls_all_packets_or_none_is_no_chance() {
    for text in [
        "loss 0%",
        "loss 100%",
        "loss 100% only forth",
        "loss 1% only back",
        "loss gemodel 0% 10% 50%",
        "loss gemodel 100% 100% 100%",
        "loss gemodel 100% 10% 100% 0%",
        "loss gemodel 5% 10% 100% 100%",
        "loss gemodel 0% 10% 50% 1%",
        "burst 100% 4",
        "burst 0% 4",
        "biterror 0",
        "corrupt 0%",
        "corrupt 100%",
        "corrupt 1% only forth",
        "duplicate 100%",
        "duplicate 1% only forth",
        "delay 5ms delayed 100% 5ms 0ms",
        "delay 5ms delayed 100% 5ms 1ms",
        "delay 5ms delayed 0% 5ms 1ms",
        "rate 10mbit red min 5 max 15 probability 0%",
        "rate 10mbit codel",
        "police rate 10mbit burst 64kb",
        "rate 1gbit aggregate 1ms packets 5",
        "at 100ms loss 100% at 200ms delay 20ms rate 1mbit",
        "only forth at 100ms loss 1%",
        "loss 0% at 100ms delay 5ms 1ms",
    ] {
        assert_randomness(text);
    }
}
