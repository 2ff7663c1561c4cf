//! Aggregation: when bursts leave, and what they contain.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Sends packets of 100 bytes at these times; returns when they leave. Times are in microseconds.
fn out(spec: &str, sent: &[u64]) -> Vec<u64> {
    let packets =
        (0..).zip(sent).map(|(n, at)| (Instant::from_nanos(at * 1_000), numbered(n, 100)));
    let out = send(&mut link(spec), packets);
    assert!(out.iter().map(|(_, packet)| number_of(packet)).eq(0..sent.len() as u64));
    out.iter().map(|(at, _)| at.as_nanos() / 1_000).collect()
}

#[test]
fn a_burst_leaves_when_its_first_packet_has_been_held_long_enough() {
    let spec = "aggregate 5ms";
    assert_eq!(out(spec, &[0, 1_000, 4_999, 7_000]), [5_000, 5_000, 5_000, 12_000]);
    // A packet that arrives as a burst leaves is the first of the next burst.
    assert_eq!(out(spec, &[0, 5_000, 10_000]), [5_000, 10_000, 15_000]);
    assert_eq!(out("delay 3ms aggregate 5ms", &[0, 5_000]), [8_000, 13_000]);
    assert_eq!(out("delay 3ms aggregate 5ms", &[0, 1_000, 9_000]), [8_000, 8_000, 17_000]);
}

#[test]
fn a_burst_leaves_as_soon_as_it_is_full() {
    let sent: Vec<u64> = (0..8).map(|n| n * 1_000).collect();
    let threes = [2_000, 2_000, 2_000, 5_000, 5_000, 5_000, 11_000, 11_000];
    assert_eq!(out("aggregate 5ms packets 3", &sent), threes);
    // The packet that fills a burst belongs to it: 201 bytes are three packets.
    assert_eq!(out("aggregate 5ms bytes 201b", &sent), threes);
    assert_eq!(out("aggregate 5ms packets 9 bytes 201b", &sent), threes);
    assert_eq!(out("aggregate 5ms packets 1", &sent), sent);
}

#[test]
fn a_link_that_is_called_late_makes_the_same_bursts() {
    let mut link = link("delay 100ms aggregate 5ms packets 3");
    for (number, millis) in (0..).zip([0, 6, 7, 8, 10]) {
        link.handle_packet(Instant::from_millis(millis), PortId(0), numbered(number, 100));
    }
    // The first left alone at 105 ms, the next three filled a burst at 108 ms, and the last is
    // still held.
    let now = Instant::from_millis(111);
    let out: Vec<_> = std::iter::from_fn(|| link.poll_transmit(now)).collect();
    assert!(out.iter().map(|(_, packet)| number_of(packet)).eq(0..4));
    assert_eq!((link.held(Way::Forth), link.poll_timeout()), (1, Some(Instant::from_millis(115))));
}

#[test]
fn bursts_are_made_behind_rate_and_jitter() {
    // A packet leaves the queue every 100 us, and a jitter of 1 ms spreads the packets; they still
    // leave in bursts.
    let spec = "rate 8mbit delay 10ms 1ms inorder aggregate 2ms";
    let times = out(spec, &[0; 200]);
    let mut bursts: Vec<(u64, u64)> = vec![];
    for at in times {
        match bursts.last_mut() {
            Some((last, count)) if *last == at => *count += 1,
            _ => bursts.push((at, 1)),
        }
    }
    assert!(bursts.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 2_000), "{bursts:?}");
    assert!(bursts.len() <= 11 && bursts.iter().all(|(_, count)| *count > 1), "{bursts:?}");
}

#[test]
fn one_direction_alone_can_be_gathered() {
    let (forth, back) =
        ("delay 10ms".parse().unwrap(), "delay 10ms aggregate 4ms".parse().unwrap());
    let mut link = Link::new(&forth, &back).unwrap();
    let mut arrived = [vec![], vec![]];
    for number in 0..3 {
        for port in [0, 1] {
            link.handle_packet(Instant::from_millis(number), PortId(port), numbered(number, 40));
        }
    }
    while let Some(at) = link.poll_timeout() {
        link.handle_timeout(at);
        while let Some((port, _)) = link.poll_transmit(at) {
            arrived[usize::from(port.0)].push(at.as_millis());
        }
    }
    assert_eq!(arrived, [vec![14, 14, 14], vec![10, 11, 12]]);
}

#[test]
fn both_directions_of_shared_air_gather() {
    let mut link = link("rate 8mbit half 1ms aggregate 10ms packets 2");
    for number in 0..4 {
        link.handle_packet(Instant::ZERO, PortId((number % 2) as u16), numbered(number, 1_000));
    }
    // Frames end at 2, 4, 6 and 8 ms, in turns; each burst is full with its second packet.
    let mut out = vec![];
    drain(&mut link, Instant::MAX, &mut out);
    let out: Vec<_> = out.iter().map(|(at, packet)| (at.as_millis(), number_of(packet))).collect();
    assert_eq!(out, [(6, 0), (6, 2), (8, 1), (8, 3)]);
}

proptest! {
    /// Compared with the same link without aggregation: the same packets in the same order, none
    /// earlier, none later than the time-out, and no burst larger than its limit.
    #[test]
    fn packets_are_held_and_nothing_else_is_done_to_them(
        seed: u64,
        timeout in 1u64..20_000,
        most in prop::option::of(1u64..9),
        bytes in prop::option::of(1u64..4_000),
        packets in prop::collection::vec((0u64..3_000, 8usize..1_460), 1..150),
    ) {
        let errors = "loss 5% duplicate 5%";
        let plain = format!("rate 10mbit limit 20 delay 4ms 3ms delayed 5% 9ms 1ms {errors} seed {seed}");
        let limits = [("packets", most, ""), ("bytes", bytes, "b")];
        let limits: String = limits
            .iter()
            .filter_map(|(word, limit, unit)| limit.map(|limit| format!(" {word} {limit}{unit}")))
            .collect();
        let gathered = format!("{plain} aggregate {timeout}us{limits}");
        let run = |spec: &str| {
            let mut at = 0;
            let packets = packets.iter().enumerate().map(|(number, (gap, size))| {
                at += gap * 1_000;
                (Instant::from_nanos(at), numbered(number as u64, *size))
            });
            send(&mut link(spec), packets)
        };
        let (plain, gathered) = (run(&plain), run(&gathered));
        prop_assert_eq!(plain.len(), gathered.len());
        for ((came, packet), (left, same)) in plain.iter().zip(&gathered) {
            prop_assert_eq!(&packet.data, &same.data);
            prop_assert!(came <= left && left.since(*came) <= Duration::from_micros(timeout));
        }
        // Packets that leave at the same time may be several bursts only if each is full.
        for burst in gathered.chunk_by(|one, next| one.0 == next.0) {
            let sizes = burst.iter().map(|(_, packet)| packet.len() as u64);
            let (mut count, mut sum, mut bursts) = (0, 0, 1);
            for size in sizes {
                let is_full = most.is_some_and(|most| count >= most)
                    || bytes.is_some_and(|bytes| sum >= bytes);
                if is_full {
                    (count, sum, bursts) = (0, 0, bursts + 1);
                }
                (count, sum) = (count + 1, sum + size);
            }
            prop_assert!(bursts == 1 || most.is_some() || bytes.is_some());
            prop_assert!(most.is_none_or(|most| count <= most));
        }
    }
}
