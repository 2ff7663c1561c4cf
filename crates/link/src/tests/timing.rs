//! Rate, delay, order, traces and half duplex.

use std::time::Duration;

use super::*;
use crate::{LinkError, Trace};

fn at_once(count: u64, size: usize) -> impl Iterator<Item = (Instant, Packet)> {
    (0..count).map(move |number| (Instant::ZERO, numbered(number, size)))
}

fn micros(out: &[(Instant, Packet)]) -> Vec<u64> {
    out.iter().map(|(at, _)| at.as_nanos() / 1_000).collect()
}

#[test]
fn the_rate_is_exact() {
    let out = send(&mut link("rate 10mbit delay 3ms"), at_once(1_000, 1_250));
    let expected: Vec<u64> = (1..=1_000).map(|n| n * 1_000 + 3_000).collect();
    assert_eq!(micros(&out), expected);
    let out = send(&mut link("rate 10mbit 250"), at_once(10, 1_000));
    assert_eq!(micros(&out), (1..=10).map(|n| n * 1_000).collect::<Vec<_>>());
}

#[test]
fn a_link_that_is_called_late_keeps_its_rate_and_its_losses() {
    let spec = "rate 10mbit loss 10% seed 5 delay 1ms";
    let on_time: Vec<u64> =
        send(&mut link(spec), at_once(500, 1_250)).iter().map(|(_, p)| number_of(p)).collect();
    let mut late = link(spec);
    at_once(500, 1_250).for_each(|(at, packet)| late.handle_packet(at, PortId(0), packet));
    let mut numbers = Vec::new();
    for ms in [7, 90, 91, 250, 501] {
        while let Some((_, packet)) = late.poll_transmit(Instant::from_millis(ms)) {
            numbers.push(number_of(&packet));
        }
    }
    assert_eq!(numbers, on_time);
}

/// Delays of many packets, in nanoseconds.
fn delays(spec: &str, count: u64) -> Vec<f64> {
    let out = send(&mut link(spec), stream(count));
    let sent = |packet: &Packet| Instant::from_nanos(number_of(packet) * 1_000);
    out.iter().map(|(at, packet)| at.since(sent(packet)).as_nanos() as f64).collect()
}

#[track_caller]
fn assert_quantiles(delays: &[f64], edges: [f64; 9]) {
    let mut bins = [0; 10];
    delays.iter().for_each(|delay| bins[edges.partition_point(|edge| edge <= delay)] += 1);
    assert_distributed(&bins, &[0.1; 10]);
}

#[test]
fn delays_are_distributed_as_described() {
    const COUNT: u64 = 50_000;
    let tenths: [f64; 9] = std::array::from_fn(|n| (n + 1) as f64 / 10.0);
    let millis = |edge: f64| (20.0 + 4.0 * edge) * 1e6;

    let uniform = delays("delay 20ms 4ms seed 1", COUNT);
    assert_quantiles(&uniform, tenths.map(|q| millis(2.0 * q - 1.0)));
    let deciles = [-1.281_552, -0.841_621, -0.524_401, -0.253_347, 0.0];
    let normal: [f64; 9] =
        std::array::from_fn(|n| if n < 5 { deciles[n] } else { -deciles[8 - n] });
    let drawn = delays("delay 20ms 4ms distribution normal seed 1", COUNT);
    assert_quantiles(&drawn, normal.map(millis));
    let pareto = |q: f64| ((1.0 - q).powf(-1.0 / 3.0) - 1.5) / 0.75f64.sqrt();
    let heavy = delays("delay 20ms 4ms distribution pareto seed 1", COUNT);
    assert_quantiles(&heavy, tenths.map(|q| millis(pareto(q))));

    // The mean is the delay; the deviation is the jitter, or its share of sqrt(1/3) if uniform.
    for (delays, deviation) in [(&uniform, 4e6 / 3f64.sqrt()), (&drawn, 4e6), (&heavy, 4e6)] {
        let mean = delays.iter().sum::<f64>() / COUNT as f64;
        assert!((mean - 20e6).abs() < 4.5 * deviation / (COUNT as f64).sqrt(), "{mean}");
    }
    let variance = |delays: &[f64]| {
        delays.iter().map(|d| (d - 20e6).powi(2)).sum::<f64>() / COUNT as f64 / 16e12
    };
    // The variance of a normal sample has a relative deviation of sqrt(2 / n).
    assert!((variance(&drawn) - 1.0).abs() < 4.5 * (2.0 / COUNT as f64).sqrt());
}

#[test]
fn jitter_reorders_unless_inorder_is_set() {
    let mut loose = link("delay 5ms 1ms distribution normal");
    send(&mut loose, stream(10_000));
    assert!(forth(&loose).reordered > 1_000);
    let mut strict = link("delay 5ms 1ms distribution normal inorder");
    let out = send(&mut strict, stream(10_000));
    assert_eq!(forth(&strict).reordered, 0);
    assert!(out.iter().map(|(_, packet)| number_of(packet)).eq(0..10_000));
}

/// Packets `spacing` apart, with uniform jitter of `width` in all and without reordering: each
/// packet is as late as the latest before it. The delay is below its maximum by more than y with
/// probability exp(-y^2 / (2 spacing width)), if the spacing is far below the width: on average by
/// sqrt(pi/2 spacing width).
#[test]
fn jitter_in_order_delays_a_dense_stream_by_nearly_the_longest_delay() {
    const COUNT: u64 = 400_000;
    let (spacing, width) = (1e3_f64, 100e6);
    let delays = delays("delay 100ms 50ms inorder seed 2", COUNT);
    // The first packets have too few packets before them.
    let settled = &delays[10_000..];
    let mean = settled.iter().sum::<f64>() / settled.len() as f64;
    let scale = (spacing * width).sqrt();
    let expected = 150e6 - scale * (std::f64::consts::PI / 2.0).sqrt();
    // Delays that are a scale apart share no latest packet, so they count as independent draws of
    // Rayleigh's distribution, whose standard deviation is 0.655 scales.
    let draws = settled.len() as f64 * spacing / scale;
    assert!((mean - expected).abs() < 4.5 * 0.655 * scale / draws.sqrt(), "{mean}, not {expected}");
    assert!(settled.iter().all(|delay| (50e6..=150e6).contains(delay)));
    // A packet without others nearby has the mean of the description.
    let mut alone = link("delay 100ms 50ms inorder seed 2");
    let sent =
        (0..20_000).map(|number| (Instant::from_millis(number * 100), numbered(number, 100)));
    let out = send(&mut alone, sent);
    let late = |(at, packet): &(Instant, Packet)| {
        at.since(Instant::from_millis(number_of(packet) * 100)).as_nanos() as f64
    };
    let mean = out.iter().map(late).sum::<f64>() / out.len() as f64;
    assert!((mean - 100e6).abs() < 4.5 * 50e6 / (3.0 * out.len() as f64).sqrt(), "{mean}");
}

#[test]
fn a_share_is_delayed_by_a_normal_time() {
    let delays = delays("delay 50ms delayed 10% 25ms 8ms seed 3", 50_000);
    let late: Vec<f64> = delays.iter().filter(|d| **d > 50e6).map(|d| d - 50e6).collect();
    assert_share(late.len() as u64, 50_000, 0.1);
    let count = late.len() as f64;
    let mean = late.iter().sum::<f64>() / count;
    // Negative delays become zero: 0.1 % of them, for which the tolerance has a margin.
    assert!((mean - 25e6).abs() < 4.5 * 8e6 / count.sqrt() + 0.03e6, "{mean}");
    let deviation = (late.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / count).sqrt();
    assert!((deviation / 8e6 - 1.0).abs() < 4.5 * (0.5 / count).sqrt() + 0.01, "{deviation}");
}

#[test]
fn what_is_delayed_past_the_order_holds_nothing_up() {
    let mut link = link("delay 5ms 1us inorder delayed 10% 25ms 8ms seed 3");
    let out = send(&mut link, stream(5_000));
    let late = out.iter().filter(|(at, p)| at.as_nanos() > number_of(p) * 1_000 + 5_100_000);
    assert_share(late.count() as u64, 5_000, 0.1);
    assert!(forth(&link).reordered > 400);
}

#[test]
fn two_paths_are_taken_in_turn() {
    let mut link = link("delay 50ms paths 0ms 40ms");
    let sent = (0..4).map(|n| (Instant::from_millis(n), numbered(n, 100)));
    let out: Vec<_> =
        send(&mut link, sent).iter().map(|(at, p)| (number_of(p), at.as_millis())).collect();
    assert_eq!(out, [(0, 50), (2, 52), (1, 91), (3, 93)]);
    assert_eq!(forth(&link).reordered, 1);
}

fn traced(text: &str) -> Link {
    let spec: LinkSpec = "trace some-file".parse().unwrap();
    Link::with_traces(&spec, &spec, |file| {
        assert_eq!(file, "some-file");
        Trace::parse(text).map_err(|error| error.to_string())
    })
    .unwrap()
}

#[test]
fn a_trace_is_replayed_to_the_packet() {
    let millis = |out: &[(Instant, Packet)]| -> Vec<u64> {
        out.iter().map(|(at, _)| at.as_millis()).collect()
    };
    let trace = "1\n4\n4\n9\n10";
    let out = send(&mut traced(trace), at_once(11, 1_500));
    assert_eq!(millis(&out), [1, 4, 4, 9, 10, 11, 14, 14, 19, 20, 21]);
    // Two packets of 748 + 4 bytes share an opportunity; one of 1501 + 4 uses a byte of the next.
    assert_eq!(millis(&send(&mut traced(trace), at_once(4, 748))), [1, 1, 4, 4]);
    assert_eq!(millis(&send(&mut traced(trace), at_once(3, 1_501))), [4, 4, 9]);
    // Opportunities without a queued packet pass unused, including one at the instant of arrival.
    let sent = [0, 1].map(|ms| (Instant::from_millis(ms), numbered(0, 748)));
    assert_eq!(millis(&send(&mut traced(trace), sent)), [1, 4]);
    let sent = [4, 12, 35].map(|ms| (Instant::from_millis(ms), numbered(0, 1_500)));
    assert_eq!(millis(&send(&mut traced(trace), sent)), [9, 14, 39]);
}

#[test]
fn a_trace_is_asked_for_and_shares_no_air() {
    let trace: LinkSpec = "trace verizon".parse().unwrap();
    let error = Link::new(&trace, &trace).unwrap_err();
    assert!(error.to_string().starts_with("trace verizon: "));
    let half: LinkSpec = "half 1us".parse().unwrap();
    assert_eq!(Link::new(&trace, &half).unwrap_err(), LinkError::HalfDuplexTrace);
}

/// Packets forwarded in each direction in a second; the given ports have more than they can send.
fn in_a_second(spec: &str, ports: &[u16]) -> [u64; 2] {
    let mut link = link(spec);
    for number in 0..2_000 {
        for port in ports {
            link.handle_packet(Instant::ZERO, PortId(*port), numbered(number, 1_250));
        }
    }
    drain(&mut link, Instant::ZERO + Duration::from_secs(1), &mut Vec::new());
    Way::BOTH.map(|way| link.counters(way).forwarded)
}

#[test]
fn half_duplex_shares_the_air_and_full_duplex_does_not() {
    // 1 ms for the bytes of a frame, and 0.25 ms of overhead: 800 frames a second.
    let half = "rate 10mbit limit 5000 half 250us";
    assert_eq!(in_a_second(half, &[0, 1]), [400, 400]);
    assert_eq!(in_a_second(half, &[0]), [800, 0]);
    assert_eq!(in_a_second(half, &[1]), [0, 800]);
    assert_eq!(in_a_second("rate 10mbit limit 5000", &[0, 1]), [1_000, 1_000]);
}
