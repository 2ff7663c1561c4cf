//! The radio compared with arithmetic and theory. Seeds are fixed; the tolerances are at least four
//! standard deviations wide.

use std::time::Duration;

use airtcp_types::{EventKind, Fate, Instant, Node, Packet, PortId};
use airtcp_wire::{checksum, is_accepted};

use super::air::{Air, CW_MAX, CW_MIN, DIFS, SLOT};
use super::{Arq, Backend, MobileNo, Radio, RadioSpec};
use crate::tests::ipv4_tcp;
use crate::{Way, ip};

mod drained;
mod joining;
mod mobiles;
mod properties;

const STATION: PortId = PortId(0);
const ALL: MobileNo = MobileNo::OTHERS;

fn radio(text: &str, arq: Arq) -> Radio {
    Radio::new(&text.parse().unwrap(), arq)
}

/// A packet whose payload starts with its number.
fn numbered(number: u32, payload: usize) -> Packet {
    let mut packet = ipv4_tcp(payload.max(4), 0);
    let word = |data: &[u8], at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
    for (at, new) in [(40, (number >> 16) as u16), (42, number as u16)] {
        let sum = checksum::update(word(&packet.data, 36), word(&packet.data, at), new);
        packet.data[36..38].copy_from_slice(&sum.to_be_bytes());
        packet.data[at..at + 2].copy_from_slice(&new.to_be_bytes());
    }
    packet
}

fn number(packet: &Packet) -> u32 {
    u32::from_be_bytes(packet.data[40..44].try_into().unwrap())
}

/// Keeps the queues of the given ends filled for a time; returns the arrivals with their times.
fn saturate(
    radio: &mut Radio,
    busy: &[Way],
    payload: usize,
    time: Duration,
) -> Vec<(Instant, Way, u32)> {
    let end = Instant::ZERO + time;
    let mut arrived = Vec::new();
    let mut next = [0; 2];
    let mut now = Instant::ZERO;
    while now < end {
        for way in busy {
            while radio.queued(*way, None).0 < 10 {
                let packet = numbered(next[*way as usize], payload);
                next[*way as usize] += 1;
                radio.handle_packet(now, PortId(*way as u16), packet);
            }
        }
        now = radio.poll_timeout().expect("it has work");
        while let Some((port, packet)) = radio.poll_transmit(now) {
            arrived.push((now, Way::BOTH[usize::from(port.0)].other(), number(&packet)));
        }
    }
    arrived
}

/// Passes `count` packets; returns the numbers of those that arrived, in order of arrival.
fn send(radio: &mut Radio, count: u32) -> Vec<u32> {
    let mut arrived = Vec::new();
    let mut now = Instant::ZERO;
    let mut sent = 0;
    loop {
        while sent < count && radio.queued(Way::Forth, None).0 < 20 {
            assert!(radio.pass(now, ALL, numbered(sent, 1_460)).is_some());
            sent += 1;
        }
        while let Some((_, packet)) = radio.poll_transmit(now) {
            arrived.push(number(&packet));
        }
        let Some(next) = radio.poll_timeout() else { return arrived };
        now = next;
    }
}

fn residual(radio: &Radio) -> f64 {
    let counters = radio.counters(Way::Forth);
    counters.channel_lost as f64 / counters.received as f64
}

#[test]
fn one_frame_takes_its_exchange_and_arrives_before_its_answer() {
    let mut radio = radio("delay 1us", Arq::Mac);
    let air = Air::new(&RadioSpec::default());
    let now = Instant::from_millis(5);
    let frame = radio.pass(now, ALL, numbered(7, 1_460)).unwrap();
    // The medium has been idle for longer than DIFS: no wait.
    let arrives = now + air.data(1_500) + Duration::from_micros(1);
    let done = now + air.data(1_500) + air.answer() + Duration::from_micros(2);
    assert_eq!(radio.poll_timeout(), Some(arrives));
    assert!(radio.poll_transmit(arrives - Duration::from_nanos(1)).is_none());
    let (port, packet) = radio.poll_transmit(arrives).unwrap();
    assert_eq!((port, number(&packet)), (PortId(1), 7));
    assert!(radio.holds(frame), "the station does not know yet");
    assert_eq!(radio.poll_timeout(), Some(done));
    radio.handle_timeout(done);
    assert!(!radio.holds(frame) && radio.poll_timeout().is_none());
}

#[test]
fn a_queue_that_is_never_empty_is_served_at_the_standards_rate() {
    for text in ["seed 1", "seed 2 rts", "seed 3 preamble short rate 2mbit control 1mbit"] {
        let mut radio = radio(text, Arq::Mac);
        let air = Air::new(&text.parse().unwrap());
        let arrived = saturate(&mut radio, &[Way::Forth], 1_460, Duration::from_secs(40)).len();
        let exchange = air.announcement() + air.data(1_500) + air.answer();
        let expected = 40.0 / (DIFS + exchange + SLOT * CW_MIN / 2).as_secs_f64();
        // The backoff's standard deviation, 9.2 slots, is under a tenth of an exchange, and there
        // are thousands of exchanges.
        assert!((arrived as f64 / expected - 1.0).abs() < 0.004, "{text}: {arrived} {expected}");
        assert_eq!(radio.air_counters(Way::Forth, None).collisions, 0);
    }
}

#[test]
fn tries_cost_what_the_bound_says() {
    let cases = [
        ("error 20% tries 1000", Arq::Mac),
        ("error 50% tries 1000", Arq::Mac),
        ("error 30% rts tries 1000", Arq::Mac),
        ("error 40% tries 4 passes 1000", Arq::MacLink),
        ("error 40% tries 4", Arq::Mac),
        ("error 40%", Arq::Off),
        ("error 40% delay 1ms", Arq::Head),
        ("plain error 40% delay 1ms", Arq::Head),
        ("error 20% delay 1ms tries 1000", Arq::Mac),
        ("plain error 20% delay 5ms tries 1000", Arq::Mac),
    ];
    for (seed, (text, arq)) in (1..).zip(cases) {
        let spec: RadioSpec = format!("{text} seed {seed}").parse().unwrap();
        let mut radio = Radio::new(&spec, arq);
        let time = Duration::from_secs(200);
        let arrived = saturate(&mut radio, &[Way::Forth], 1_460, time).len();
        // ACKs are so rare that they cost nothing.
        let bound = spec.bound_with(arq, 1_500, 1_500, 40, 1_000_000);
        let goodput = arrived as f64 * 1_500.0 * 8.0 / 200.0;
        let ratio = goodput / bound.bits_per_sec() as f64;
        assert!((ratio - 1.0).abs() < 0.02, "{text}: {ratio}");
    }
}

#[test]
fn two_ends_share_the_air_and_collide_as_theory_says() {
    let mut radio = radio("seed 4", Arq::Mac);
    let arrived = saturate(&mut radio, &Way::BOTH, 1_460, Duration::from_secs(60));
    let forth = arrived.iter().filter(|(_, way, _)| *way == Way::Forth).count();
    let share = forth as f64 / arrived.len() as f64;
    assert!((share - 0.5).abs() < 0.02, "{share}");
    let counters = radio.air_counters(Way::Forth, None);
    let collided = counters.collisions as f64 / counters.tries as f64;
    // Bianchi 2000, two stations: tau = p = 2 (1 - 2 p) / ((1 - 2 p) (W + 1) + p W (1 - (2 p)^m)),
    // W = 32, m = 5.
    let (w, m) = (f64::from(CW_MIN + 1), f64::from((CW_MAX + 1) / (CW_MIN + 1)).log2());
    let tau = |p: f64| {
        2.0 * (1.0 - 2.0 * p) / ((1.0 - 2.0 * p) * (w + 1.0) + p * w * (1.0 - (2.0 * p).powf(m)))
    };
    let p = (0..100).fold(0.05, |p, _| (p + tau(p)) / 2.0);
    assert!((collided / p - 1.0).abs() < 0.12, "{collided} where {p} is expected");
}

#[test]
fn a_tcp_like_exchange_comes_near_the_bound_and_not_above() {
    for text in ["", "error 20%"] {
        let spec: RadioSpec = format!("{text} seed 5").parse().unwrap();
        let mut radio = Radio::new(&spec, Arq::Mac);
        let (mut now, mut sent, mut arrived) = (Instant::ZERO, 0, 0u64);
        while now < Instant::from_millis(60_000) {
            while radio.queued(Way::Forth, None).0 < 10 {
                radio.pass(now, ALL, numbered(sent, 1_460));
                sent += 1;
            }
            now = radio.poll_timeout().unwrap();
            while let Some((port, _)) = radio.poll_transmit(now) {
                if port == PortId(1) {
                    arrived += 1;
                    if arrived.is_multiple_of(2) {
                        radio.handle_packet(now, PortId(1), ipv4_tcp(12, 0));
                    }
                }
            }
        }
        let goodput = arrived as f64 * 1_448.0 * 8.0 / 60.0;
        let ratio = goodput / spec.bound(1_448, 1_500, 52, 2).bits_per_sec() as f64;
        assert!((0.90..1.0).contains(&ratio), "{text}: {ratio}");
    }
}

#[test]
fn each_mode_leaves_the_loss_and_the_reordering_that_it_should() {
    let run = |arq, text: &str| {
        let mut radio = radio(text, arq);
        let arrived = send(&mut radio, 20_000);
        let counters = radio.counters(Way::Forth);
        assert_eq!(arrived.len() as u64, counters.forwarded);
        let overtaken = arrived.windows(2).any(|pair| pair[1] < pair[0]);
        assert_eq!(overtaken, counters.reordered > 0);
        (residual(&radio), counters.reordered, radio.air_counters(Way::Forth, None))
    };
    let (off, reordered, _) = run(Arq::Off, "error 30% seed 6");
    assert!((off - 0.3).abs() < 0.013 && reordered == 0, "{off}");
    // Three tries: 0.3^3. A lost link ACK does not lose a frame that arrived.
    let (mac, reordered, air) = run(Arq::Mac, "error 30% tries 3 seed 7");
    assert!((mac - 0.027).abs() < 0.005 && reordered == 0, "{mac}");
    assert!((air.tries as f64 / 20_000.0 - 1.39).abs() < 0.03, "{}", air.tries);
    let (link, reordered, air) = run(Arq::MacLink, "error 30% tries 3 passes 2 seed 8");
    assert!((link - 0.000_729).abs() < 0.000_8 && reordered > 300, "{link} {reordered}");
    assert!((air.passed_again as f64 / 20_000.0 - 0.027).abs() < 0.006, "{}", air.passed_again);
    let (head, reordered, _) = run(Arq::Head, "error 30% delay 5ms tries 7 seed 9");
    assert!(head == 0.0 && reordered > 4_000, "{head} {reordered}");
}

#[test]
fn what_is_lost_at_the_head_is_sent_again_one_round_trip_later_and_first() {
    let mut radio = radio("delay 4ms error 100%", Arq::Head);
    radio.pass(Instant::ZERO, ALL, numbered(0, 1_460));
    radio.handle_timeout(Instant::from_millis(2));
    assert_eq!(radio.air_counters(Way::Forth, None).tries, 1);
    let air = Air::new(&RadioSpec::default());
    let known = Instant::ZERO + DIFS + air.data(1_500) + Duration::from_millis(8);
    assert_eq!(radio.poll_timeout(), Some(known));
    radio.handle_timeout(known + DIFS + SLOT * CW_MIN);
    assert_eq!(radio.air_counters(Way::Forth, None).tries, 2);
}

#[test]
fn a_plain_radio_is_a_link_each_way_that_repeats_one_round_trip_later() {
    // A packet of 1000 bytes takes 8 ms.
    let text = "plain rate 1mbit delay 20ms";
    let mut whole = radio(text, Arq::Head);
    for way in [0, 1] {
        whole.handle_packet(Instant::ZERO, PortId(way), numbered(0, 960));
        whole.handle_packet(Instant::ZERO, PortId(way), numbered(1, 960));
    }
    for at in [28, 36].map(Instant::from_millis) {
        assert!(whole.poll_transmit(at - Duration::from_nanos(1)).is_none());
        let ports = [whole.poll_transmit(at), whole.poll_transmit(at)];
        assert_eq!(ports.map(|sent| sent.unwrap().0.0), [1, 0], "neither waits for the other");
    }
    let mut hit = radio(&format!("{text} error 100%"), Arq::Head);
    for number in 0..7 {
        hit.pass(Instant::ZERO, ALL, numbered(number, 960));
    }
    // The loss of the first is known at 48 ms, when the seventh would be transmitted.
    let known = Instant::from_millis(48);
    hit.handle_timeout(known);
    assert_eq!(hit.air_counters(Way::Forth, None).tries, 7);
    let waiting = hit.drain(known, ALL, &|_| true);
    let waiting: Vec<_> = waiting.iter().map(|(_, packet)| number(packet)).collect();
    assert_eq!(waiting, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_lost_link_ack_delivers_once() {
    // A bit error rate at which data frames are hit often, and link ACKs often enough.
    let mut radio = radio("biterror 5e-5 seed 10", Arq::Mac);
    let arrived = send(&mut radio, 5_000);
    let counters = radio.air_counters(Way::Forth, None);
    assert!(counters.duplicates > 20, "{counters:?}");
    let mut once = arrived.clone();
    once.dedup();
    assert_eq!(once, arrived);
}

#[test]
fn nobody_hears_a_mobile_out_of_reach_and_the_tries_are_made_all_the_same() {
    let mut radio = radio("at 0s 100 at 20s 300 seed 11", Arq::Mac);
    radio.set_connected(Instant::ZERO, ALL, false);
    radio.set_events(true);
    radio.pass(Instant::ZERO, ALL, numbered(0, 100));
    radio.handle_timeout(Instant::from_millis(1_000));
    assert_eq!(radio.air_counters(Way::Forth, None).tries, 7);
    assert_eq!(radio.counters(Way::Forth).disconnected, 1);
    let fates: Vec<_> = std::iter::from_fn(|| radio.poll_event()).map(|event| event.kind).collect();
    let [EventKind::Packet { fate: Fate::Dropped { cause: "link down" }, packet }] = &fates[..]
    else {
        panic!("{fates:?}")
    };
    assert_eq!(number(packet), 0);
    let now = Instant::from_millis(2_000);
    radio.set_connected(now, ALL, true);
    radio.pass(now, ALL, numbered(1, 100));
    radio.handle_timeout(Instant::from_millis(2_100));
    assert_eq!(radio.counters(Way::Forth).forwarded, 1);
    // 250 m is at 15 s, and 242.1 m at 14.2 s.
    let fading = |ms| radio.reception(Instant::from_millis(ms), ALL).is_fading;
    assert!(!fading(14_100) && fading(14_300));
    assert!(radio.reception(Instant::from_millis(14_900), ALL).is_connected);
    assert!(!radio.reception(Instant::from_millis(15_100), ALL).is_connected);
}

#[test]
fn damaged_frames_are_delivered_and_acknowledged_where_that_is_asked_for() {
    let mut radio = radio("error 30% deliver-corrupt seed 12", Arq::Mac);
    let (mut now, mut damaged, mut seen) = (Instant::ZERO, 0, 0);
    for sent in 0..2_000 {
        radio.pass(now, ALL, numbered(sent, 1_000));
        while let Some(next) = radio.poll_timeout() {
            now = next;
            while let Some((_, packet)) = radio.poll_transmit(now) {
                seen += 1;
                damaged += u64::from(!is_accepted(&packet.data));
                assert!(ip::has_sound_header(&packet.data));
            }
        }
    }
    let counters = radio.counters(Way::Forth);
    // Three in ten are hit. A hit in the frame header (14 of 1058 bytes) or in the IP header costs
    // a try; a hit in the trailer changes nothing.
    assert!((500..620).contains(&damaged), "{damaged}");
    assert_eq!((seen, damaged), (2_000, counters.corrupted - counters.corrupted_unnoticed));
    let tries = radio.air_counters(Way::Forth, None).tries;
    assert!((2_000..2_060).contains(&tries), "{tries}");
}

#[test]
fn a_full_queue_drops_at_the_tail_and_an_unknown_port_is_nothing() {
    let mut radio = radio("queue 2", Arq::Mac);
    let passed: Vec<_> =
        (0..5).map(|n| radio.pass(Instant::ZERO, ALL, numbered(n, 10)).is_some()).collect();
    assert_eq!(passed, [true, true, false, false, false]);
    assert_eq!(radio.counters(Way::Forth).queue_dropped, 3);
    radio.handle_packet(Instant::ZERO, PortId(2), numbered(9, 10));
    assert_eq!(radio.counters(Way::Forth).received, 5);
    radio.handle_packet(Instant::ZERO, STATION, numbered(9, 10));
    assert_eq!(radio.counters(Way::Forth).queue_dropped, 4);
}

#[test]
fn what_waits_is_taken_back_in_order_as_if_it_had_never_been_passed() {
    for (arq, text) in [(Arq::Mac, "queue 5"), (Arq::Head, "queue 5 error 100% delay 50ms")] {
        let mut radio = radio(text, arq);
        let frames: Vec<_> =
            (0..5).map(|n| radio.pass(Instant::ZERO, ALL, numbered(n, 1_000)).unwrap()).collect();
        assert!(!radio.has_room(Instant::ZERO, ALL));
        // Two transmissions have started; with `head`, the first frame is set aside.
        let now = Instant::from_millis(2);
        let drained = radio.drain(now, ALL, &|_| true);
        let numbers: Vec<u32> = drained.iter().map(|(_, packet)| number(packet)).collect();
        let first = if arq == Arq::Head { 0 } else { 2 };
        let begun = usize::from(arq == Arq::Head);
        assert_eq!(numbers.first(), Some(&first), "{arq}");
        assert!(numbers.is_sorted() && numbers.last() == Some(&4));
        let held = frames.iter().filter(|frame| radio.holds(**frame)).count();
        assert_eq!((held, radio.queued(Way::Forth, None).0), (1, 1), "{arq}: the one on the air");
        assert_eq!(radio.counters(Way::Forth).received, 5 - numbers.len() as u64);
        assert_eq!(numbers.len(), 3 + begun);
        assert!(radio.has_room(now, ALL) && radio.drain(now, ALL, &|_| true).is_empty());
    }
}

#[test]
fn a_queue_that_stays_long_marks_ever_more_often_what_can_be_marked() {
    let run = |ecn: u8, is_on: bool, backlog: usize| {
        let mut radio = radio("seed 13", Arq::Mac);
        if is_on {
            radio.mark_congestion();
        }
        let (mut now, mut marks) = (Instant::ZERO, Vec::new());
        while now < Instant::from_millis(2_000) {
            while radio.queued(Way::Forth, None).0 < backlog {
                radio.pass(now, ALL, ipv4_tcp(1_460, ecn));
            }
            now = radio.poll_timeout().expect("it has work");
            while let Some((_, packet)) = radio.poll_transmit(now) {
                assert!(is_accepted(&packet.data));
                marks.extend((packet.data[1] & 3 == 3).then_some(now.as_millis()));
            }
        }
        assert_eq!(radio.counters(Way::Forth).marked, marks.len() as u64);
        marks
    };
    // RFC 8289: the first mark after 100 ms above 5 ms, then marks 100 ms / sqrt(n) apart. The sum
    // over n marks is 2 s at about n = 100.
    let marks = run(2, true, 20);
    assert!((100..130).contains(&marks[0]), "{marks:?}");
    assert!((80..=110).contains(&marks.len()), "{}", marks.len());
    assert!(run(2, true, 2).is_empty(), "a short queue");
    assert!(run(0, true, 20).is_empty(), "it cannot be marked");
    assert!(run(2, false, 20).is_empty(), "nobody asked");
}

#[test]
fn the_schedule_is_not_announced() {
    let radio = radio("at 0s 100 at 20s 300 down 5s 1s", Arq::Mac);
    let now = Instant::from_millis(5_500);
    let outage = radio.reception(now, ALL);
    assert!(outage.is_in_reach && !outage.is_connected);
    let gone = radio.reception(Instant::from_millis(15_100), ALL);
    assert!(!gone.is_in_reach, "less than rx-thresh");
}
