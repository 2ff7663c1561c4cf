//! Queues: limits, occupancy, CoDel, RED and marks.

use std::time::Duration;

use airtcp_types::rng::Stream;
use airtcp_wire::is_accepted;

use super::*;

#[test]
fn a_queue_holds_packets_and_bytes_up_to_its_limit() {
    for (spec, kept) in [("rate 8mbit limit 5", 6), ("rate 8mbit limit 50 4kb", 5)] {
        let mut link = link(spec);
        // One packet more than the queue holds is in transmission.
        let out = send(&mut link, (0..20).map(|n| (Instant::ZERO, numbered(n, 1_000))));
        assert_eq!(out.len(), kept);
        assert_eq!(forth(&link).queue_dropped, 20 - kept as u64);
    }
}

/// Parts of a run with almost independent means.
const BATCHES: usize = 40;

#[test]
fn occupancy_is_that_of_m_d_1() {
    // 1 ms of service. By PASTA, the arrivals of a Poisson process see the time average.
    for (load, batch) in [(0.3, 10_000), (0.6, 10_000), (0.9, 30_000)] {
        let mut link = link("rate 8mbit limit 100000");
        let mut random = Stream::new(11, 0);
        let mut at = 0.0;
        let mut means = [0.0; BATCHES];
        for mean in &mut means {
            for _ in 0..batch {
                at -= libm::log(1.0 - random.next_f64()) * 1e6 / load;
                let now = Instant::from_nanos(at as u64);
                while link.poll_transmit(now).is_some() {}
                *mean += link.queued(Way::Forth).0 as f64 / f64::from(batch);
                link.handle_packet(now, PortId(0), Packet::new(vec![0; 1_000]));
            }
        }
        // Pollaczek-Khinchine formula, constant service time.
        let expected = load * load / (2.0 * (1.0 - load));
        let count = BATCHES as f64;
        let mean = means.iter().sum::<f64>() / count;
        let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // Batches are longer than the queue's correlation; 3.6 is Student's 0.1 % point for 39
        // degrees of freedom.
        let error = (variance / count).sqrt();
        assert!((mean - expected).abs() < 3.6 * error, "load {load}: {mean}, not {expected}");
        assert!(error < 0.04 * expected, "a bound that could fail: {error} of {expected}");
    }
}

/// When packets of a standing queue are dropped or marked, in seconds: ten packets are sent for
/// every seven that leave.
fn hits(spec: &str, packet: &Packet, of: fn(&Counters) -> u64) -> Vec<f64> {
    let mut link = link(spec);
    let mut times = Vec::new();
    for number in 0..15_000u64 {
        let now = Instant::from_nanos(number * 70_000);
        link.handle_packet(now, PortId(0), packet.clone());
        while link.poll_transmit(now).is_some() {}
        while (times.len() as u64) < of(link.counters(Way::Forth)) {
            times.push(now.as_secs_f64());
        }
    }
    times
}

#[test]
fn codel_drops_by_its_control_law() {
    let packet = ipv4_tcp(1_210, 0);
    let times = hits("rate 100mbit limit 100000 codel", &packet, |c| c.queue_dropped);
    assert!(times.len() > 20, "{}", times.len());
    // The sojourn time passes 5 ms at about 5 / 0.3 ms; the first drop is an interval later.
    assert!((times[0] - 0.1167).abs() < 0.002, "{}", times[0]);
    let mut due = times[0];
    for (index, time) in times.iter().enumerate() {
        // RFC 8289 section 5.4, rounded up to the next packet: 100 us.
        assert!((time - due).abs() < 0.000_3, "drop {index} at {time}, due {due}");
        due += 0.1 / ((index + 1) as f64).sqrt();
    }
    // With ECN the same packets are marked, and none is dropped.
    let ect = ipv4_tcp(1_210, 1);
    let spec = "rate 100mbit limit 100000 codel ecn";
    assert_eq!(hits(spec, &ect, |c| c.queue_dropped).len(), 0);
    let marked = hits(spec, &ect, |c| c.marked);
    assert!((marked.len() as i64 - times.len() as i64).abs() <= 1, "{}", marked.len());
}

#[test]
fn codel_leaves_a_short_queue_alone() {
    let mut link = link("rate 100mbit codel");
    // Repeated bursts that the queue drains within the interval.
    for round in 0..20 {
        let at = Instant::from_millis(round * 50);
        send(&mut link, (0..100).map(|_| (at, ipv4_tcp(1_210, 0))));
    }
    assert_eq!(forth(&link).queue_dropped, 0);
}

/// A packet of 1500 bytes from one of several ports.
fn from_port(port: u8) -> Packet {
    let mut packet = ipv4_tcp(1_460, 0);
    packet.data[21] = port;
    packet
}

#[test]
fn fq_codel_serves_flows_in_turns() {
    let ports = [vec![1; 6], vec![2; 3], vec![3]].concat();
    let arrivals = || ports.iter().map(|port| (Instant::ZERO, from_port(*port)));
    let served = |text: &str| -> Vec<u8> {
        let out = send(&mut link(text), arrivals());
        out.iter().map(|(_, packet)| packet.data[21]).collect()
    };
    assert_eq!(served("rate 12mbit"), ports);
    assert_eq!(served("rate 12mbit fq_codel"), [1, 2, 3, 1, 2, 1, 2, 1, 1, 1]);
}

#[test]
fn fq_codel_drops_of_the_longest_queue_what_finds_no_room() {
    let mut link = link("rate 12mbit limit 5 fq_codel");
    let ports = [vec![1; 8], vec![2; 2]].concat();
    let out = send(&mut link, ports.iter().map(|port| (Instant::ZERO, from_port(*port))));
    assert_eq!(out.iter().filter(|(_, packet)| packet.data[21] == 2).count(), 2);
    assert_eq!(forth(&link).queue_dropped, 4, "one left at once, and five wait");
}

#[test]
fn fq_codel_keeps_the_delay_of_a_flow_short_beside_another_that_fills_its_queue() {
    let mut link = link("rate 12mbit limit 10000 fq_codel");
    // 1.25 times the rate from the first flow, and a packet of the second every 20 ms.
    let both = (0..2_500u64).flat_map(|number| {
        let at = Instant::from_nanos(number * 800_000);
        let other = (number % 25 == 0).then(|| (at, from_port(2)));
        std::iter::once((at, from_port(1))).chain(other)
    });
    let out = send(&mut link, both);
    let sparse: Vec<Instant> =
        out.iter().filter(|(_, packet)| packet.data[21] == 2).map(|(at, _)| *at).collect();
    assert_eq!(sparse.len(), 100);
    for (number, at) in (0u64..).zip(&sparse) {
        let delay = at.since(Instant::from_millis(number * 20));
        assert!(delay <= Duration::from_millis(3), "packet {number}: {delay:?}");
    }
    assert!(forth(&link).queue_dropped > 20, "CoDel of the first: {}", forth(&link).queue_dropped);
}

#[test]
fn a_threshold_marks_what_can_be_marked_and_drops_the_rest() {
    for (ecn, marked, dropped) in [(2, 4, 0), (0, 0, 4)] {
        let mut link = link("rate 8mbit mark 5");
        let out = send(&mut link, (0..10).map(|_| (Instant::ZERO, ipv4_tcp(100, ecn))));
        assert_eq!((forth(&link).marked, forth(&link).queue_dropped), (marked, dropped));
        assert_eq!(out.iter().filter(|(_, p)| p.data[1] & 3 == 3).count() as u64, marked);
        assert!(out.iter().all(|(_, p)| is_accepted(&p.data)));
    }
}

#[test]
fn red_marks_between_its_thresholds() {
    let mut link = link("rate 8mbit limit 10000 red min 5 max 50 probability 10% seed 4");
    let (mut average, mut between, mut hit_between) = (0.0, 0u64, 0);
    for number in 0..400usize {
        let length = number.saturating_sub(1);
        // The first packet goes straight to the serialiser: for the second the average of 0 decays.
        if number > 1 {
            average += 0.002 * (length as f64 - average);
        }
        let before = forth(&link).marked;
        link.handle_packet(Instant::ZERO, PortId(0), ipv4_tcp(100, 2));
        let hit = forth(&link).marked - before;
        match average {
            a if a < 5.0 => assert_eq!(hit, 0, "at {a}"),
            a if a >= 50.0 => assert_eq!(hit, 1, "at {a}"),
            _ => (between, hit_between) = (between + 1, hit_between + hit),
        }
    }
    // Between the thresholds about 5 % on average, and about twice as many because of the count.
    assert!(between > 100 && (5..40).contains(&hit_between), "{hit_between} of {between}");
}

#[test]
fn red_forgets_a_queue_while_the_link_is_idle() {
    let mut link = link("rate 12mbit limit 10000 red min 5 max 15 probability 10% seed 4");
    // A burst raises the average above max. The link is then idle except for a packet every half
    // second.
    let burst = (0..400).map(|n| (Instant::ZERO, numbered(n, 1_000)));
    let sparse = (1..=20).map(|n| (Instant::from_millis(500 * n), numbered(400 + n, 1_000)));
    let out = send(&mut link, burst.chain(sparse));
    let arrived: Vec<u64> = out.iter().map(|(_, p)| number_of(p)).filter(|n| *n > 400).collect();
    // The first of these is dropped at the empty queue. The average decays: the third packet finds
    // it below min.
    assert!(!arrived.contains(&401), "{arrived:?}");
    assert!(arrived.ends_with(&(403..=420).collect::<Vec<u64>>()), "{arrived:?}");
}
