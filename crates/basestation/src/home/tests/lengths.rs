//! Packets that do not fit into the tunnel, and packets that lead in circles.

use airtcp_wire::fragment;
use airtcp_wire::icmp::{self, Reason};

use super::*;

fn registered() -> Script {
    let mut script = Script::new();
    script.ask(&ask("198.51.100.1", 0));
    script.ask(&ask("2001:db8:1::1", 0));
    script
}

#[test]
fn a_packet_that_must_not_be_split_is_answered_with_the_length_that_fits() {
    for (home, room) in [("192.0.2.7", 1_480), ("2001:db8::7", 1_460)] {
        let mut script = registered();
        let fits = data(home, room);
        let sent = script.give(fits.clone());
        exit(&sent, &fits);
        assert_eq!(sent[0].len(), 1_500);

        let long = data(home, room + 1);
        let sent = script.give(long.clone());
        let error = ip::parse(&sent[0].data).unwrap();
        assert_eq!((sent.len(), error.dst), (1, ip::parse(&long.data).unwrap().src));
        let message = icmp::parse(&error);
        let Ok(icmp::Message::Error { reason, quoted }) = message else { panic!("{message:?}") };
        assert_eq!(reason, Reason::TooBig(room as u32));
        assert!(long.data.starts_with(quoted));
        assert_eq!(script.agent.status(script.now).counters.too_big, 1);
    }
}

/// RFC 2003 section 5.1.
#[test]
fn a_router_within_the_tunnel_can_report_a_smaller_mtu() {
    let router = |v6| address(if v6 { "2001:db8:8::1" } else { "203.0.113.1" });
    for (care_of, home, [reported, mtu]) in [
        ("198.51.100.1", "192.0.2.7", [1_400, 1_400]),
        ("198.51.100.1", "192.0.2.7", [0, 576]),
        ("2001:db8:1::1", "2001:db8::7", [1_400, 1_400]),
        ("2001:db8:1::1", "2001:db8::7", [1_280, 1_320]),
    ] {
        let mut script = registered();
        let v6 = address(home).is_ipv6();
        let own = config().addresses[usize::from(v6)];
        let room = mtu - tunnel::overhead(v6);
        let report = |outer: &[u8]| {
            let complaint = icmp::Complaint::TooBig { mtu: reported as u32 };
            icmp::emit_error(router(v6), own, 64, complaint, outer)
        };
        let long = data(home, room + 1);
        let outer = script.give(long.clone()).remove(0);
        assert_eq!(tunnel::decapsulate(&outer.data).unwrap().packet.data, long.data);
        // About a tunnel that does not exist, or without the inner addresses.
        let other = tunnel::encapsulate((own, router(v6)), 64, &long.data).unwrap();
        let short = &outer.data[..tunnel::overhead(v6) + 8];
        for quoted in [&other.data[..], short, &long.data] {
            assert!(script.give(report(quoted)).is_empty());
        }
        exit(&script.give(long.clone()), &long);

        assert!(script.give(report(&outer.data)).is_empty());
        let error = script.give(long.clone()).remove(0);
        let error = ip::parse(&error.data).unwrap();
        let message = icmp::parse(&error);
        let Ok(icmp::Message::Error { reason, .. }) = message else { panic!("{message:?}") };
        assert_eq!(reason, Reason::TooBig(room as u32));
        let fits = data(home, room);
        assert_eq!(exit(&script.give(fits.clone()), &fits), address(care_of));
        let counters = script.agent.status(script.now).counters;
        assert_eq!((counters.path_mtus, counters.too_big, counters.dropped), (1, 1, 3));
        // The next registration may have another path.
        script.ask(&ask(care_of, 1));
        exit(&script.give(long.clone()), &long);
    }
}

#[test]
fn a_packet_that_may_be_split_is_split_before_the_tunnel() {
    let mut script = registered();
    let mut long = data("192.0.2.7", 4_000);
    long.data[6] = 0;
    assert!(fragment::complete(&mut long.data, ip::ECT_0));
    let mut whole = Vec::new();
    let sent = script.give(long.clone());
    assert_eq!(sent.len(), 3);
    for packet in sent {
        assert!(packet.len() <= 1_500);
        let inner = tunnel::decapsulate(&packet.data).unwrap().packet;
        let part = fragment::parse(&inner.data).unwrap();
        if whole.is_empty() {
            whole = part.start();
        }
        whole.extend_from_slice(part.payload);
    }
    assert!(fragment::complete(&mut whole, ip::ECT_0));
    assert_eq!(whole, long.data);
    assert_eq!(script.agent.status(script.now).counters.fragmented, 1);
}

#[test]
fn no_error_is_sent_about_an_error() {
    let mut script = registered();
    let (to, from) = (address("192.0.2.7"), address("203.0.113.9"));
    let quoted = data("203.0.113.9", 100).data;
    let mut error = icmp::emit_error(from, to, 64, icmp::Complaint::Port, &quoted).data;
    error.resize(1_481, 0);
    assert!(fragment::complete(&mut error, 0));
    // `complete` keeps DF.
    assert!(script.give(Packet::new(error)).is_empty());
    assert_eq!(script.agent.status(script.now).counters.too_big, 1);
}

#[test]
fn a_packet_of_the_agent_does_not_enter_a_tunnel_again() {
    let mut script = registered();
    let packet = data("192.0.2.7", 100);
    let sent = script.give(packet.clone());
    let looped =
        tunnel::encapsulate((address("192.0.2.1"), address("192.0.2.7")), 64, &sent[0].data);
    assert!(script.give(looped.unwrap()).is_empty());
    assert!(script.give(sent[0].clone()).is_empty());
    assert_eq!(script.agent.status(script.now).counters.looped, 2);
}

#[test]
fn a_mobile_gets_its_errors_through_its_tunnel() {
    let mut script = registered();
    let mut bus = ask("198.51.100.77", 0);
    (bus.request.home, bus.mobile) = (address("192.0.2.8"), key(301));
    assert_eq!(script.code(&bus), 0);
    let long = data_from("192.0.2.8", "192.0.2.7", 1_481);
    let sent = script.give(long.clone());
    assert_eq!(sent.len(), 1);
    let outer = tunnel::decapsulate(&sent[0].data).unwrap();
    assert_eq!(outer.exit, bus.request.care_of);
    let error = ip::parse(&outer.packet.data).unwrap();
    assert_eq!((error.src, error.dst), (address("192.0.2.1"), bus.request.home));
    let message = icmp::parse(&error);
    let Ok(icmp::Message::Error { reason, quoted }) = message else { panic!("{message:?}") };
    assert_eq!(reason, Reason::TooBig(1_480));
    assert!(long.data.starts_with(quoted));
    assert_eq!(script.agent.status(script.now).counters.looped, 0);

    // Neither is registered: there is nobody to be sent the error.
    let mut script = Script::new();
    assert!(script.give(long).is_empty());
    assert_eq!(script.agent.status(script.now).counters.unreachable, 2);
}

/// RFC 2003 section 3.2.
#[test]
fn a_packet_of_the_exit_does_not_enter_its_tunnel() {
    let mut script = registered();
    for (exit, home) in [("198.51.100.1", "192.0.2.7"), ("2001:db8:1::1", "2001:db8::7")] {
        assert!(script.give(data_from(exit, home, 100)).is_empty());
    }
    assert_eq!(script.give(data_from("198.51.100.2", "192.0.2.7", 100)).len(), 1);
    let counters = script.agent.status(script.now).counters;
    assert_eq!((counters.looped, counters.tunnelled), (2, 1));
}

#[test]
fn what_waits_for_the_caller_is_bounded() {
    let mut script = registered();
    for _ in 0..3_000 {
        script.agent.handle_packet(script.now, PortId(0), data("192.0.2.7", 100));
    }
    assert_eq!(script.sent().len(), ROOM);
    let dropped = script.agent.status(script.now).counters.dropped_full;
    assert_eq!(dropped, 3_000 - ROOM as u64);
}
