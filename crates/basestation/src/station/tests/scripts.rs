//! Flows in the table, and packets that pass unchanged.

use airtcp_link::{Arq, Radio};
use airtcp_types::{EventKind, Fate};

use super::super::StationError;
use super::*;

fn counts(script: &Script) -> (usize, usize) {
    let status = script.station.status(script.now);
    (status.flows, status.unproven)
}

#[test]
fn a_flow_is_known_from_its_syn_proven_by_the_mobiles_ack_and_forgotten_when_both_are_done() {
    let mut script = Script::new("", |_| {});
    script.fixed(Seg { flags: "S", ack: 0, ..Seg::data(0, 0) });
    script.run(10);
    script.mobile(Seg { flags: "SA", wscale: Some(3), window: 8_000, ..Seg::ack(0, 1) });
    script.run(20);
    assert_eq!(counts(&script), (0, 1), "so far anybody may have said it");
    script.fixed(Seg::data(1, 100));
    script.run(30);
    script.mobile(Seg::ack(1, 101));
    script.run(40);
    assert_eq!(counts(&script), (1, 0));
    let record = script.station.flows(usize::MAX).remove(0);
    assert_eq!((record.key, record.acked, record.seq), (key(), Some(101), Some(1)));
    assert_eq!((record.window, record.window_scale), (Some(1_000), Some(3)));
    script.fixed(Seg { flags: "FA", ..Seg::data(101, 0) });
    script.run(50);
    script.mobile(Seg { flags: "FA", ..Seg::ack(1, 102) });
    script.run(60);
    assert_eq!(counts(&script), (1, 0));
    script.fixed(Seg { ack: 2, ..Seg::data(102, 0) });
    script.run(70);
    assert_eq!(counts(&script), (0, 0));
    assert_eq!(script.out.len(), 7, "and nothing was kept back");
}

#[test]
fn the_mobile_may_open_a_flow_too() {
    let mut script = Script::new("", |_| {});
    script.mobile(Seg { flags: "S", ..Seg::ack(5_000, 0) });
    script.run(10);
    script.fixed(Seg { flags: "SA", ack: 5_001, ..Seg::data(u32::MAX - 10, 0) });
    script.run(20);
    script.mobile(Seg::ack(5_001, u32::MAX - 9));
    script.run(30);
    assert_eq!(counts(&script), (1, 0));
    script.fixed(Seg { ack: 5_001, ..Seg::data(u32::MAX - 9, 100) });
    script.fixed(Seg { ack: 5_001, ..Seg::data(190, 100) });
    script.run(40);
    assert_eq!(script.marks()[1..], [(u32::MAX - 9, false), (190, true)]);
}

#[test]
fn a_running_flow_is_adopted_and_its_past_neither_marked_nor_hidden() {
    let mut script = Script::new("", |_| {});
    script.fixed(Seg::data(50_000, 1_000));
    script.mobile(Seg::ack(1, 20_000));
    (0..3).for_each(|_| script.mobile(Seg::ack(1, 20_000)));
    script.run(40);
    assert_eq!(script.marks(), [(50_000, false)]);
    assert_eq!(script.acks(), [20_000; 4], "what it asks for never came by here");
    script.fixed(Seg::data(52_000, 1_000));
    script.run(60);
    assert_eq!(script.marks(), [(52_000, true)]);
}

#[test]
fn a_syn_does_not_disturb_a_flow_that_the_mobile_takes_part_in() {
    let mut script = Script::open("");
    script.fixed(Seg::data(1, 100));
    script.fixed(Seg { flags: "S", ack: 0, ..Seg::data(77_777, 0) });
    script.fixed(Seg { flags: "R", ..Seg::data(77_777, 0) });
    script.run(60);
    assert_eq!(counts(&script), (1, 0));
    assert_eq!(script.station.flows(usize::MAX)[0].seen, [(1, 101)]);
    // The mobile confirms it: the SYN belongs to another flow.
    script.mobile(Seg { flags: "SA", ..Seg::ack(9_000, 77_778) });
    script.run(70);
    assert_eq!(counts(&script), (0, 1));
    script.fixed(Seg { flags: "R", ..Seg::data(77_778, 0) });
    script.run(80);
    assert_eq!(counts(&script), (0, 0), "a reset that can be believed ends it");
}

#[test]
fn what_finds_the_radios_queue_full_was_not_seen() {
    let mut script = Script::open("queue 2");
    for n in 0..5 {
        script.fixed(Seg::data(1 + 1_000 * n, 1_000));
    }
    script.run(100);
    assert_eq!(script.marks(), [(1, false), (1_001, false), (2_001, false)]);
    script.fixed(Seg::data(5_001, 1_000));
    script.run(200);
    assert_eq!(script.marks(), [(5_001, true)], "it is a loss by congestion");
}

#[test]
fn what_cannot_be_read_and_what_is_not_tcp_passes_as_it_is() {
    let mut fragment = Seg::data(5, 100).packet(key().fixed, key().mobile);
    fragment.data[6] = 0x20;
    let mut bad_offset = Seg::data(5, 0).packet(key().fixed, key().mobile);
    bad_offset.data[32] = 0xf0;
    let mut corrupted = Seg::data(9_000, 100).packet(key().fixed, key().mobile);
    corrupted.data[50] ^= 1;
    for policy in [Policy::Plain, Policy::TcpEcn] {
        let mut script = Script::new("", |config| config.policy = policy);
        let sent = [fragment.clone(), other(33), bad_offset.clone(), corrupted.clone()];
        for packet in &sent {
            script.put(Side::Wired, packet.clone());
        }
        script.run(100);
        let came: Vec<Packet> = script.out.drain(..).map(|(_, _, packet)| packet).collect();
        assert_eq!(came, sent);
        assert_eq!(counts(&script), (0, 0));
    }
}

#[test]
fn a_segment_with_an_option_that_cannot_be_read_is_its_flows_and_passes_as_it_is() {
    // RFC 9293 section 3.1, MUST-7: the options are skipped, the segment is processed.
    let bad_list = Seg { list: Some(&[2, 9, 0, 0]), ..Seg::data(5, 100) };
    let bad_list = bad_list.packet(key().fixed, key().mobile);
    let mut script = Script::new("", |_| {});
    script.put(Side::Wired, bad_list.clone());
    script.run(100);
    let came: Vec<Packet> = script.out.drain(..).map(|(_, _, packet)| packet).collect();
    assert_eq!(came, [bad_list]);
    assert_eq!(counts(&script), (0, 1));
}

#[test]
fn plain_marks_nothing_and_hides_nothing() {
    let mut script = Script::new("down 1ms 25ms", |config| config.policy = Policy::Plain);
    script.run(2);
    script.fixed(Seg::data(1, 1_000));
    script.fixed(Seg::data(2_001, 1_000));
    script.mobile(Seg::ack(1, 1));
    script.mobile(Seg::ack(1, 1));
    script.run(100);
    assert!(script.marks().iter().all(|(_, is_marked)| !is_marked));
    assert_eq!(script.acks(), [1, 1]);
    assert_eq!(counts(&script), (0, 0));
}

#[test]
fn without_the_papers_bit_nothing_is_edited() {
    let mut script = Script::new("", |config| config.mark = Mark::Ce);
    script.fixed(Seg::data(1, 1_000));
    script.fixed(Seg::data(2_001, 1_000));
    script.run(100);
    assert_eq!(script.marks(), [(1, false), (2_001, false)]);
    let mut script = Script::new("", |config| config.mark_bits = 0x04);
    script.fixed(Seg::data(1, 1_000));
    script.fixed(Seg::data(2_001, 1_000));
    script.run(100);
    let bits = script.take(Side::Wireless).iter().map(|s| s.reserved).collect::<Vec<_>>();
    assert_eq!(bits, [0, 0x04]);
}

#[test]
fn a_long_queue_gives_ce_to_what_can_have_it_unless_only_the_papers_bit_is_wanted() {
    for (mark, ecn, is_marked) in [
        (Mark::Both, 2, true),
        (Mark::Ce, 1, true),
        (Mark::Paper, 2, false),
        (Mark::Both, 0, false),
    ] {
        let mut script = Script::new("", |config| config.mark = mark);
        for n in 0..300 {
            script.run(2 * u64::from(n));
            (0..2).for_each(|half| {
                script.fixed(Seg { ecn, ..Seg::data(1 + 2_000 * n + 1_000 * half, 1_000) });
            });
        }
        script.run(2_000);
        let ce = script.out.iter().filter(|(_, _, packet)| packet.data[1] & 3 == 3).count();
        assert_eq!(ce > 0, is_marked, "{mark:?} {ecn}");
        assert!(script.take(Side::Wireless).iter().all(|segment| segment.is_intact));
    }
}

#[test]
fn an_observer_hears_of_marks_and_of_what_was_hidden_in_the_order_of_time() {
    let mut script = Script::open("tries 2 down 30ms 2560us");
    script.station.set_events(true);
    script.fixed(Seg::data(1, 1_000));
    (0..10).for_each(|_| script.put(Side::Wired, other(1_000)));
    script.fixed(Seg::data(2_001, 1_000));
    script.run(32);
    script.mobile(Seg::ack(1, 1));
    script.run(200);
    let events: Vec<_> = std::iter::from_fn(|| script.station.poll_event()).collect();
    assert!(events.is_sorted_by_key(|event| event.at));
    let fates = |wanted: Fate| {
        let is_wanted = |kind: &EventKind| match kind {
            EventKind::Packet { fate, .. } => *fate == wanted,
            _ => false,
        };
        events.iter().filter(|event| is_wanted(&event.kind)).count()
    };
    assert_eq!(fates(Fate::Marked { cause: "hole" }), 1);
    assert_eq!(fates(Fate::Retried { pass: 2 }), 1);
    assert_eq!(
        fates(Fate::Dropped { cause: "duplicate ACK" }),
        script.station.counters().hidden as usize
    );
    script.station.set_events(false);
    assert_eq!(script.station.poll_event(), None);
}

#[test]
fn a_flood_of_syns_and_of_data_leaves_running_flows_alone() {
    let mut script = Script::open("");
    let before = script.station.flows(usize::MAX);
    for number in 2..20_000 {
        let FlowKey { fixed, mobile } = super::super::testkit::key_of(number);
        let flags = if number % 3 == 0 { "A" } else { "S" };
        script.put(Side::Wired, Seg { flags, ..Seg::data(1, 10) }.packet(fixed, mobile));
    }
    let status = script.station.status(script.now);
    assert_eq!((status.flows, status.unproven <= 4_096), (1, true));
    assert_eq!(script.station.flows(usize::MAX), before);
}

#[test]
fn a_given_radio_that_repairs_nothing_is_refused_where_duplicate_acks_are_hidden() {
    let with = |policy, arq| {
        let config = StationConfig { policy, ..StationConfig::default() };
        let radio = Radio::new(&config.radio, arq);
        Station::with_radio(&config, Box::new(radio)).map(|station| station.policy())
    };
    for policy in [Policy::TcpEcn, Policy::DelayedDupack] {
        assert_eq!(with(policy, Arq::Off).unwrap_err(), StationError::NothingRepairs(policy));
    }
    assert_eq!(with(Policy::TcpEcn, Arq::Head).unwrap(), Policy::TcpEcn);
    assert_eq!(with(Policy::Snoop, Arq::Off).unwrap(), Policy::Snoop);
}
