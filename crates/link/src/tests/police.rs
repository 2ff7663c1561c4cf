//! The policer: which packets pass.

use proptest::prelude::*;

use super::*;

/// Tokens per byte: a rate of 1 bit/s adds one token per nanosecond.
const BYTE: u128 = 8 * 1_000_000_000;

/// Packets of 1,000 bytes, one every `micros` microseconds.
fn every(micros: u64, count: u64) -> impl Iterator<Item = (Instant, Packet)> {
    (0..count)
        .map(move |number| (Instant::from_nanos(number * micros * 1_000), numbered(number, 1_000)))
}

#[test]
fn a_policer_passes_its_rate_and_its_burst_at_once_and_drops_the_rest() {
    // 8 Mbit/s arrive, 2 Mbit/s pass: one packet in four, and ten at the start.
    let mut link = link("police rate 2mbit burst 10000b");
    let out = send(&mut link, every(1_000, 4_000));
    assert!(out.iter().all(|(at, packet)| at.as_millis() == number_of(packet)), "no delay");
    // 2 Mbit/s for 3.999 s, plus the burst.
    assert_eq!(out.len(), 999 + 10);
    let counters = forth(&link);
    assert_eq!((counters.policed, counters.queue_dropped, counters.channel_lost), (2_991, 0, 0));
    assert_eq!(link.drops(Way::Forth).collect::<Vec<_>>(), [("policed", 2_991)]);
    // After a long idle time the bucket holds the burst and no more.
    let at = Instant::from_millis(60_000);
    let burst = send(&mut link, (0..20).map(|number| (at, numbered(number, 1_000))));
    assert_eq!(burst.len(), 10);
}

#[test]
fn a_packet_that_is_larger_than_the_bucket_never_passes() {
    let mut link = link("police rate 1gbit burst 1000b");
    let sizes = [1_001, 1_000, 1_001, 999];
    let packets = (0..).zip(sizes).map(|(n, size)| (Instant::from_millis(n), numbered(n, size)));
    let out = send(&mut link, packets);
    assert_eq!(out.iter().map(|(_, packet)| packet.len()).collect::<Vec<_>>(), [1_000, 999]);
}

#[test]
fn what_a_policer_passes_meets_the_queue_behind_it() {
    // The burst of 20 meets a queue of 5 and a packet in transmission; later one packet in two
    // passes, and none waits.
    let mut link = link("police rate 4mbit burst 20000b rate 8mbit limit 5");
    let out = send(&mut link, every(1_000, 1_000));
    let counters = forth(&link);
    assert_eq!((counters.policed, counters.queue_dropped, out.len()), (481, 0, 519));
    let at = Instant::from_millis(60_000);
    let burst = send(&mut link, (0..25).map(|number| (at, numbered(number, 1_000))));
    let counters = forth(&link);
    assert_eq!((counters.policed, counters.queue_dropped, burst.len()), (486, 14, 6));
}

#[test]
fn directions_are_policed_apart() {
    let (forth, back) = ("police rate 1mbit burst 1000b".parse().unwrap(), LinkSpec::default());
    let mut link = Link::new(&forth, &back).unwrap();
    for number in 0..5 {
        for port in [0, 1] {
            link.handle_packet(Instant::ZERO, PortId(port), numbered(number, 1_000));
        }
    }
    let policed = Way::BOTH.map(|way| link.counters(way).policed);
    assert_eq!(policed, [4, 0]);
}

proptest! {
    /// The definition of a token bucket without a bucket: in no interval pass more bytes than the
    /// rate gives in it plus the burst; and each dropped packet would have exceeded this in some
    /// interval that ends with it.
    #[test]
    fn in_no_interval_pass_more_bytes_than_rate_and_burst_and_never_fewer_than_could(
        bits in 1u64..3_000_000,
        burst in 1u64..6_000,
        packets in prop::collection::vec((0u64..20_000_000, 8usize..1_500), 1..60),
    ) {
        let mut link = link(&format!("police rate {bits}bit burst {burst}b"));
        // Time and size of the packets that passed.
        let mut passed: Vec<(u64, u128)> = vec![];
        let mut at = 0;
        for (gap, size) in packets {
            at += gap;
            let before = forth(&link).policed;
            link.handle_packet(Instant::from_nanos(at), PortId(0), numbered(0, size));
            while link.poll_transmit(Instant::from_nanos(at)).is_some() {}
            let is_dropped = forth(&link).policed > before;
            let fits_since = |since: u64, bytes: u128| {
                bytes * BYTE <= u128::from(burst) * BYTE + u128::from(bits) * u128::from(at - since)
            };
            let mut bytes = size as u128;
            let mut fits = fits_since(at, bytes);
            for (since, size) in passed.iter().rev() {
                bytes += size;
                fits &= fits_since(*since, bytes);
            }
            prop_assert_eq!(fits, !is_dropped);
            if fits {
                passed.push((at, size as u128));
            }
        }
    }
}
