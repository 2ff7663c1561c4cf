//! What leaves a station with a mobile, and what stays. Segments have 1000 bytes.

use airtcp_types::ByteCount;

use super::*;

/// The flow of a mobile that shares the queue with that of flow 0.
fn bystander() -> FlowKey {
    let mut other = super::super::testkit::key_of(4);
    other.mobile.set_ip("192.168.0.9".parse().unwrap());
    other
}

#[test]
fn what_others_have_in_the_queue_stays_there_with_any_policy() {
    for policy in [Policy::Plain, Policy::Snoop, Policy::DelayedDupack, Policy::TcpEcn] {
        let mut script = Script::open_with("", |config| {
            config.policy = policy;
            config.hold = ByteCount(3_000);
        });
        let FlowKey { fixed, mobile } = bystander();
        for n in 0..20 {
            script.put(Side::Wired, Seg::data(70_001 + 1_000 * n, 1_000).packet(fixed, mobile));
            script.fixed(Seg::data(1 + 1_000 * n, 1_000));
        }
        let luggage = script.station.part_with(script.now, key().mobile.ip());
        script.put(Side::Wired, Seg::data(90_001, 1_000).packet(fixed, mobile));
        script.run(500);
        assert!(luggage.packets.len() >= 18, "{policy:?}: {}", luggage.packets.len());
        let theirs = script.take(Side::Wireless).into_iter().map(|segment| segment.seq.0);
        // Without an ACK, `snoop` sends the first one again later.
        let theirs: Vec<_> = theirs.filter(|seq| *seq > 70_000).take(21).collect();
        let all: Vec<_> = (0..21).map(|n| 70_001 + 1_000 * n).collect();
        assert_eq!(theirs, all, "{policy:?}");
        assert_eq!(script.station.status(script.now).held, 0);
    }
}

/// A flow with two duplicate ACKs that passed, and two that wait.
fn delayed() -> Script {
    let mut script = Script::open_with("", |config| config.policy = Policy::DelayedDupack);
    (0..10).for_each(|n| script.fixed(Seg::data(1 + 1_000 * n, 1_000)));
    script.run(100);
    (0..4).for_each(|_| script.mobile(Seg { sack: vec![(2_001, 3_001)], ..Seg::ack(1, 1) }));
    script.run(110);
    assert_eq!(script.acks(), [1, 1]);
    assert!(script.station.status(script.now).cached > 0);
    script
}

#[test]
fn delayed_acks_leave_before_the_mobile_does() {
    let mut script = delayed();
    script.station.part_with(script.now, key().mobile.ip());
    assert_eq!(script.station.status(script.now).cached, 0);
    script.drain();
    assert_eq!(script.acks(), [1, 1]);
    script.run(1_000);
    assert!(script.acks().is_empty());
}

#[test]
fn delayed_acks_do_not_outlive_their_connection() {
    let mut script = delayed();
    script.fixed(Seg { flags: "RA", ..Seg::data(10_001, 0) });
    let status = script.station.status(script.now);
    assert_eq!((status.flows, status.cached, status.counters.hidden), (0, 0, 2));
    script.run(1_000);
    assert!(script.acks().is_empty());
}
