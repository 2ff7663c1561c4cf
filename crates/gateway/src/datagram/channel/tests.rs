use std::collections::HashMap;

use airtcp_types::rng::Stream;
use proptest::prelude::*;

use super::*;

const FRAME: usize = 1392;

fn to(text: &str) -> Destination {
    text.parse().unwrap()
}

fn ends() -> (Channel, Channel) {
    (Channel::new(FRAME, 25, 1), Channel::new(FRAME, 25, 2))
}

fn frames(channel: &mut Channel) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| channel.poll_transmit(Instant::ZERO)).collect()
}

/// Delivers all frames of one end to the other; returns the datagrams.
fn carry(from: &mut Channel, to: &mut Channel) -> Vec<Datagram> {
    for frame in frames(from) {
        to.handle_frame(Instant::ZERO, &frame);
    }
    std::iter::from_fn(|| to.poll_datagram()).collect()
}

fn datagram(association: u32, remote: &str, data: &[u8]) -> Datagram {
    Datagram { association, remote: to(remote), data: data.to_vec(), is_refusal: false }
}

#[test]
fn a_flow_is_named_until_the_other_end_knows_it() {
    let (mut near, mut far) = ends();
    let dns = to("192.0.2.1:53");
    near.send(Instant::ZERO, 7, &dns, b"one");
    near.send(Instant::ZERO, 7, &dns, b"two");
    let sent = frames(&mut near);
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [8 + 15 + 3; 2]);
    // The first frame is lost.
    far.handle_frame(Instant::ZERO, &sent[1]);
    assert_eq!(far.poll_datagram(), Some(datagram(7, "192.0.2.1:53", b"two")));
    assert_eq!(carry(&mut far, &mut near), []);
    near.send(Instant::ZERO, 7, &dns, b"three");
    let sent = frames(&mut near);
    assert_eq!(sent[0].len(), 8 + 5, "nothing but the header");
    far.handle_frame(Instant::ZERO, &sent[0]);
    assert_eq!(far.poll_datagram(), Some(datagram(7, "192.0.2.1:53", b"three")));
    // The answer uses the same flow.
    far.send(Instant::ZERO, 7, &dns, b"answer");
    let sent = frames(&mut far);
    assert_eq!(sent[0].len(), 8 + 6);
    near.handle_frame(Instant::ZERO, &sent[0]);
    assert_eq!(near.poll_datagram(), Some(datagram(7, "192.0.2.1:53", b"answer")));
}

#[test]
fn strangers_and_names_are_answered_with_an_address() {
    let (mut near, mut far) = ends();
    near.send(Instant::ZERO, 1, &to("dns.example:53"), b"query");
    assert_eq!(carry(&mut near, &mut far), [datagram(1, "dns.example:53", b"query")]);
    for source in ["[2001:db8::1]:53", "192.0.2.66:666"] {
        far.send(Instant::ZERO, 1, &to(source), b"answer");
        assert_eq!(carry(&mut far, &mut near), [datagram(1, source, b"answer")]);
        assert_eq!(carry(&mut near, &mut far), []);
        far.send(Instant::ZERO, 1, &to(source), b"again");
        assert_eq!(far.outbox.back().map(Vec::len), Some(8 + 5));
        assert_eq!(carry(&mut far, &mut near), [datagram(1, source, b"again")]);
    }
}

#[test]
fn long_datagrams_are_split_into_equal_parts() {
    let (mut near, mut far) = ends();
    for len in [0, 1, 1200, 1360, FRAME - 14, FRAME - 13, 1452, 1472, 4096, 9000, MAX_DATAGRAM] {
        let data: Vec<u8> = (0..len).map(|at| at as u8).collect();
        near.send(Instant::ZERO, 1, &to("192.0.2.1:53"), &data);
        assert!(near.outbox.iter().all(|frame| frame.len() <= FRAME));
        assert_eq!(carry(&mut near, &mut far), [datagram(1, "192.0.2.1:53", &data)], "{len}");
        carry(&mut far, &mut near);
    }
    near.send(Instant::ZERO, 1, &to("192.0.2.1:53"), &[0; 1452]);
    assert_eq!(near.outbox.iter().map(Vec::len).collect::<Vec<_>>(), [8 + 2 + 726; 2]);
}

#[test]
fn the_smallest_frames_carry_the_longest_name_and_datagram() {
    let (mut near, mut far) = (Channel::new(0, 25, 1), Channel::new(0, 25, 2));
    let name = Destination { host: crate::HostAddress::Name("n".repeat(255)), port: 1 };
    near.send(Instant::ZERO, 1, &name, &[7; MAX_DATAGRAM]);
    let arrived = carry(&mut near, &mut far);
    let expected =
        Datagram { association: 1, remote: name, data: vec![7; MAX_DATAGRAM], is_refusal: false };
    assert_eq!(arrived, [expected]);
}

#[test]
fn a_full_queue_drops_the_oldest() {
    let (mut near, mut far) = ends();
    for n in 0..10_000_u32 {
        near.send(Instant::ZERO, 1, &to("192.0.2.1:53"), &n.to_be_bytes().repeat(250));
    }
    let arrived = carry(&mut near, &mut far);
    let counters = near.counters();
    assert_eq!(arrived.len() as u64 + counters.dropped_full, 10_000);
    assert_eq!(arrived.len() as u64, counters.sent);
    assert!((500..1100).contains(&arrived.len()), "{}", arrived.len());
    let number = |datagram: &Datagram| u32::from_be_bytes(*datagram.data.first_chunk().unwrap());
    assert!(arrived.is_sorted_by_key(number), "in order");
    assert_eq!(arrived.last().map(number), Some(9999));
    near.send(Instant::ZERO, 1, &to("192.0.2.1:53"), b"later");
    assert_eq!(carry(&mut near, &mut far).len(), 1);
}

/// A path of 12 Mbit/s: a frame in a millisecond. A program sends five times as much, and another
/// one a ping every 50 ms.
#[test]
fn a_ping_does_not_wait_for_the_backlog_of_another_program() {
    let (mut near, mut far) = ends();
    let (server, host) = (to("192.0.2.1:5201"), "192.0.2.2:7");
    near.set_source(1, [10, 0, 0, 1].into());
    near.set_source(2, [10, 0, 0, 2].into());
    let (mut pings, mut bulk) = (Vec::new(), 0);
    for millis in 0..5000_u64 {
        let now = Instant::from_millis(millis);
        for _ in 0..5 {
            near.send(now, 1, &server, &[0; 1300]);
        }
        if millis % 50 == 25 {
            near.send(now, 2, &to(host), &millis.to_be_bytes());
        }
        if let Some(frame) = near.poll_transmit(now) {
            far.handle_frame(now, &frame);
        }
        while let Some(datagram) = far.poll_datagram() {
            match datagram.association {
                1 => bulk += 1,
                _ => {
                    let sent = u64::from_be_bytes(*datagram.data.first_chunk().unwrap());
                    pings.push(millis - sent);
                }
            }
        }
    }
    assert_eq!((pings.len(), bulk), (100, 4900));
    // The frame that was next before the ping came, and one of the backlog.
    assert!(pings.iter().all(|delay| *delay <= 2), "{pings:?}");
    let dropped = near.counters().dropped_full;
    assert_eq!(dropped + frames(&mut near).len() as u64, 25_000 - 4900);
}

#[test]
fn datagrams_that_wait_arrive_before_their_association_is_closed() {
    let (mut near, mut far) = ends();
    for association in 1..=3 {
        near.set_source(association, [10, 0, 0, 1].into());
        for n in 0..4 {
            near.send(Instant::ZERO, association, &to("192.0.2.1:53"), &[n]);
        }
        near.close(association, true);
    }
    let (mut arrived, mut closed) = (vec![0_u8; 4], Vec::new());
    for frame in frames(&mut near) {
        closed.extend(far.handle_frame(Instant::ZERO, &frame));
        while let Some(datagram) = far.poll_datagram() {
            assert_eq!(datagram.data, [arrived[datagram.association as usize]]);
            arrived[datagram.association as usize] += 1;
            assert!(!closed.contains(&datagram.association));
        }
    }
    closed.sort_unstable();
    assert_eq!((arrived, closed), (vec![0, 4, 4, 4], vec![1, 2, 3]));
    assert!(near.mine.is_empty() && near.associations.is_empty() && near.sources.is_empty());
    // The other end has closed it: nothing needs to arrive.
    near.send(Instant::ZERO, 4, &to("192.0.2.1:53"), b"first");
    near.send(Instant::ZERO, 4, &to("192.0.2.1:53"), b"second");
    near.close(4, false);
    assert_eq!(carry(&mut near, &mut far), [datagram(4, "192.0.2.1:53", b"first")]);
    let DatagramCounters { sent, dropped_full, .. } = near.counters();
    assert_eq!((sent, dropped_full), (3 * 4 + 1, 1));
}

/// Groups of repairs that are full, or due, within a datagram.
#[test]
fn repairs_are_not_sent_between_the_parts_of_a_datagram() {
    for millis in [0, 10] {
        let (mut near, mut far) = ends();
        let report = Report { highest: 1000, hold: 0, lost: 300, runs: 100 };
        near.handle_frame(Instant::ZERO, &Frame::Report(report).to_bytes());
        for n in 0..500 {
            let data = vec![n as u8; 4000];
            near.send(Instant::from_millis(n * millis), 1, &to("192.0.2.1:53"), &data);
            assert_eq!(carry(&mut near, &mut far), [datagram(1, "192.0.2.1:53", &data)], "{n}");
        }
        assert!(near.counters().repairs_sent > 100, "{:?}", near.counters());
    }
}

#[test]
fn a_restarted_far_end_gets_the_flows_again() {
    let (mut near, mut far) = ends();
    let dns = to("192.0.2.1:53");
    for _ in 0..5000 {
        near.send(Instant::ZERO, 1, &dns, b"x");
        carry(&mut near, &mut far);
        far.send(Instant::ZERO, 1, &dns, b"y");
        carry(&mut far, &mut near);
    }
    let mut far = Channel::new(FRAME, 25, 3);
    near.send(Instant::ZERO, 1, &dns, b"lost");
    assert_eq!(carry(&mut near, &mut far), []);
    carry(&mut far, &mut near);
    for round in 0..3 {
        near.send(Instant::ZERO, 1, &dns, b"query");
        assert_eq!(carry(&mut near, &mut far).len(), 1, "{round}");
        carry(&mut far, &mut near);
        far.send(Instant::ZERO, 1, &dns, b"answer");
        assert_eq!(carry(&mut far, &mut near), [datagram(1, "192.0.2.1:53", b"answer")], "{round}");
    }
}

#[test]
fn a_refusal_is_that_of_an_address_and_no_datagram() {
    let (mut near, mut far) = ends();
    near.send(Instant::ZERO, 7, &to("192.0.2.1:9"), b"x");
    carry(&mut near, &mut far);
    // An address that the near end sent to, and another one that the name may have resolved to.
    for remote in ["192.0.2.1:9", "192.0.2.2:9"] {
        far.refuse(Instant::ZERO, 7, &to(remote));
        let refusal = Datagram { is_refusal: true, ..datagram(7, remote, b"") };
        assert_eq!(carry(&mut far, &mut near), [refusal]);
    }
    assert_eq!((far.counters().sent, near.counters().received), (0, 0));
}

/// Parts that never become a datagram: their associations are not reported to the caller, so the
/// caller cannot close them.
#[test]
fn associations_without_a_flow_are_forgotten() {
    let (_, mut far) = ends();
    for n in 1..2000 {
        // At first all from one instance of the near end, then each from another one.
        let instance = if n < 1000 { 1 } else { n };
        let open = Open { instance, association: n, remote: to("192.0.2.1:53") };
        let part = Some(Part { index: 0, count: 2 });
        let flow = Flow::Open(1, open);
        let data = Data { flow, seq: n, part, is_refusal: false, data: b"x" };
        far.handle_frame(Instant::ZERO, &Frame::Data(data).to_bytes());
        frames(&mut far);
        assert!(far.associations.len() <= 1 && far.yours.len() <= 1, "{n}");
    }
}

#[test]
fn answers_to_an_earlier_life_are_ignored() {
    let (mut near, mut far) = ends();
    near.send(Instant::ZERO, 1, &to("192.0.2.1:53"), b"x");
    carry(&mut near, &mut far);
    let mut restarted = Channel::new(FRAME, 25, 9);
    restarted.send(Instant::ZERO, 1, &to("192.0.2.2:53"), b"x");
    frames(&mut restarted);
    carry(&mut far, &mut restarted);
    restarted.send(Instant::ZERO, 1, &to("192.0.2.2:53"), b"x");
    assert_eq!(carry(&mut restarted, &mut far), [datagram(1, "192.0.2.2:53", b"x")]);
}

#[test]
fn a_closed_association_leaves_nothing() {
    let (mut near, mut far) = ends();
    for n in 0..100 {
        near.send(Instant::ZERO, n, &to("192.0.2.1:53"), b"x");
        near.send(Instant::ZERO, n, &to("name.example:53"), b"x");
        carry(&mut near, &mut far);
        far.send(Instant::ZERO, n, &to("192.0.2.66:1"), b"y");
        carry(&mut far, &mut near);
        near.close(n, true);
        let closed = frames(&mut near);
        let closed: Vec<_> =
            closed.iter().filter_map(|frame| far.handle_frame(Instant::ZERO, frame)).collect();
        assert_eq!(closed, [n]);
    }
    for end in [near, far] {
        assert!(end.mine.is_empty() && end.yours.is_empty() && end.associations.is_empty());
    }
}

#[test]
fn flows_beyond_the_bound_carry_their_address() {
    let (mut near, mut far) = ends();
    let many = MOST_FLOWS as u32 + 100;
    for round in 0..2 {
        for n in 0..many {
            let remote = Destination::from(std::net::SocketAddr::from((n.to_be_bytes(), 53)));
            near.send(Instant::ZERO, 1, &remote, b"x");
            assert_eq!(carry(&mut near, &mut far).len(), 1, "{round} {n}");
            carry(&mut far, &mut near);
        }
    }
    assert_eq!((near.mine.len(), far.yours.len()), (MOST_FLOWS, MOST_FLOWS));
}

#[test]
fn reports_come_while_traffic_flows() {
    let (mut near, mut far) = (Channel::new(FRAME, 0, 1), Channel::new(FRAME, 0, 2));
    let mut reports = 0;
    for millis in 0..1000 {
        let now = Instant::from_millis(millis);
        near.send(now, 1, &to("192.0.2.1:53"), b"x");
        for frame in frames(&mut near) {
            if millis % 10 != 5 {
                far.handle_frame(now, &frame);
            }
        }
        far.handle_timeout(now);
        for frame in frames(&mut far) {
            near.handle_frame(now, &frame);
            if let Ok(Frame::Report(report)) = Frame::parse(&frame) {
                reports += 1;
                assert!(report.hold <= 1);
                assert_eq!(report.lost, report.runs);
            }
        }
    }
    assert_eq!(reports, 9);
    assert_eq!(far.counters().lost, 97);
    far.handle_timeout(Instant::from_millis(2000));
    assert_eq!(frames(&mut far).len(), 1);
    assert_eq!(far.poll_timeout(), None, "silence needs no report");
}

#[test]
fn the_first_repairs_repeat_nothing_that_has_arrived() {
    let (mut near, mut far) = ends();
    let report = Report { highest: 1000, hold: 0, lost: 300, runs: 100 };
    near.handle_frame(Instant::ZERO, &Frame::Report(report).to_bytes());
    let later = Instant::from_millis(1000);
    for _ in 0..3 {
        near.send(Instant::ZERO, 1, &to("192.0.2.1:53"), b"x");
        near.handle_timeout(later);
        assert!(near.outbox.len() > 2, "repairs");
        assert_eq!(carry(&mut near, &mut far).len(), 1);
    }
    assert_eq!(far.counters().recovered, 0);
}

/// The effect of a link on a frame.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Lose,
    Deliver,
    Twice,
    Delay,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        2 => Just(Fate::Lose),
        6 => Just(Fate::Deliver),
        1 => Just(Fate::Twice),
        2 => Just(Fate::Delay),
    ]
}

proptest! {
    /// Over a link that loses, duplicates and reorders, each datagram arrives once, whole and in
    /// its place, or not at all.
    #[test]
    fn datagrams_arrive_whole_and_once(
        fates in prop::collection::vec(fate(), 1..200),
        sizes in prop::collection::vec(0_usize..5000, 1..60),
        seed: u64,
    ) {
        let (mut near, mut far) = ends();
        let mut random = Stream::new(seed, 0);
        let mut sent = HashMap::new();
        let mut delayed = Vec::new();
        let mut fates = fates.iter().cycle();
        let mut cross = |from: &mut Channel, to: &mut Channel, got: &mut Vec<Datagram>| {
            for frame in frames(from) {
                match fates.next().copied().unwrap_or(Fate::Deliver) {
                    Fate::Lose => continue,
                    Fate::Deliver => {
                        to.handle_frame(Instant::ZERO, &frame);
                    }
                    Fate::Twice => {
                        to.handle_frame(Instant::ZERO, &frame);
                        to.handle_frame(Instant::ZERO, &frame);
                    }
                    Fate::Delay => delayed.push(frame),
                }
                if delayed.len() > 5 {
                    let late = delayed.swap_remove(random.below(5) as usize);
                    to.handle_frame(Instant::ZERO, &late);
                }
                got.extend(std::iter::from_fn(|| to.poll_datagram()));
            }
        };
        let (mut at_far, mut at_near) = (Vec::new(), Vec::new());
        for (n, size) in sizes.iter().enumerate() {
            let remote = Destination::from(std::net::SocketAddr::from(([192, 0, 2, n as u8 % 5], 7)));
            let mut data = vec![n as u8; *size];
            data.extend(n.to_be_bytes());
            near.send(Instant::ZERO, n as u32 % 3, &remote, &data);
            sent.insert(n, (n as u32 % 3, remote, data));
            cross(&mut near, &mut far, &mut at_far);
            for frame in frames(&mut far) {
                near.handle_frame(Instant::ZERO, &frame);
            }
        }
        for Datagram { association, remote, data, .. } in at_far {
            let n = usize::from_be_bytes(*data.last_chunk().unwrap());
            let expected = sent.remove(&n);
            prop_assert_eq!(expected, Some((association, remote.clone(), data.clone())));
            far.send(Instant::ZERO, association, &remote, &data);
            at_near.push((association, remote, data));
        }
    }

    #[test]
    fn any_bytes_leave_the_channel_usable(
        all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..100),
        kind in 1_u8..=6,
    ) {
        let (mut near, mut far) = ends();
        near.send(Instant::ZERO, 1, &to("192.0.2.1:53"), b"x");
        carry(&mut near, &mut far);
        for (n, mut bytes) in all.into_iter().enumerate() {
            if let Some(first) = bytes.first_mut() {
                *first = kind << 4 | *first & 15;
            }
            far.handle_frame(Instant::from_millis(n as u64), &bytes);
            far.handle_timeout(Instant::from_millis(n as u64));
            while far.poll_datagram().is_some() {}
            frames(&mut far);
        }
        // These frames do not affect the next instance of the near end.
        let mut near = Channel::new(FRAME, 25, 77);
        near.send(Instant::ZERO, 1, &to("192.0.2.1:53"), b"x");
        prop_assert_eq!(carry(&mut near, &mut far), [datagram(1, "192.0.2.1:53", b"x")]);
    }
}
