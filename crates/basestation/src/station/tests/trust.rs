//! Blind segments of attackers on either side do not change flows (RFC 5961).

use std::net::SocketAddr;

use airtcp_types::Packet;

use super::super::testkit::{Seg, enclose, key, key_of};
use super::super::{FlowRecord, Policy};
use super::Script;
use crate::Side;

/// A flow in which the mobile has received everything up to 1001, and whose next number is 51.
fn running() -> Script {
    let mut script = Script::open("");
    script.fixed(Seg::data(1, 1_000));
    script.run(40);
    script.mobile(Seg { len: 50, ..Seg::ack(1, 1_001) });
    script.run(50);
    script.fixed(Seg { ack: 51, ..Seg::data(1_001, 0) });
    script.run(60);
    script.out.clear();
    script
}

fn flow(script: &Script) -> FlowRecord {
    script.station.flows(usize::MAX).pop().expect("the flow is known")
}

/// Sends a segment that does not belong to the flow; checks that it is forwarded and the flow is
/// unchanged.
#[track_caller]
fn changes_nothing(script: &mut Script, side: Side, seg: Seg) {
    let (before, count) = (flow(script), refused(script));
    match side {
        Side::Wired => script.fixed(seg.clone()),
        Side::Wireless => script.mobile(seg.clone()),
    }
    let later = script.now.as_millis() + 10;
    script.run(later);
    assert_eq!(script.take(side.other()).len(), 1, "it is forwarded: {seg:?}");
    assert_eq!(flow(script), before, "{seg:?}");
    assert_eq!(refused(script), count + 1, "{seg:?}");
}

fn refused(script: &Script) -> u64 {
    let counters = script.station.counters();
    counters.out_of_window_data
        + counters.out_of_window_acks
        + counters.out_of_window_syns
        + counters.out_of_window_rsts
}

/// The flow continues: segments after a hole are marked, and no others.
#[track_caller]
fn goes_on(script: &mut Script) {
    script.fixed(Seg { ack: 51, ..Seg::data(1_001, 100) });
    script.fixed(Seg { ack: 51, ..Seg::data(1_201, 100) });
    let later = script.now.as_millis() + 10;
    script.run(later);
    assert_eq!(script.marks(), [(1_001, false), (1_201, true)]);
    script.mobile(Seg::ack(51, 1_301));
    script.run(later + 10);
    assert_eq!((script.acks(), flow(script).acked), (vec![1_301], Some(1_301)));
}

#[test]
fn data_outside_the_window_and_data_that_acknowledges_what_was_not_sent_are_not_the_flows() {
    let mut script = running();
    let data = |seq, ack| Seg { ack, ..Seg::data(seq, 100) };
    // The mobile advertises 1000 bytes; windows count as at least 65535.
    for seq in [1_001 + 65_536, 1_000_000, 1 << 30, 1 << 31, u32::MAX - 70_000] {
        changes_nothing(&mut script, Side::Wired, data(seq, 51));
    }
    assert_eq!(script.station.counters().out_of_window_data, 5);
    // The last two are within a window, but below the mobile's initial sequence number.
    for ack in [52, 1_000_000, 1 << 31, u32::MAX - 70_000, u32::MAX - 1_000, 0] {
        changes_nothing(&mut script, Side::Wired, data(1_001, ack));
    }
    assert_eq!(script.station.counters().out_of_window_acks, 6);
    changes_nothing(&mut script, Side::Wired, Seg { flags: "P", ..data(1_001, 51) });
    goes_on(&mut script);
}

#[test]
fn a_probe_of_the_window_a_keepalive_and_what_is_sent_again_are_the_flows() {
    let mut script = running();
    script.mobile(Seg { window: 0, ..Seg::ack(51, 1_001) });
    for (seq, len) in [(1_000, 0), (1_000, 1), (1_001, 1), (1, 1_000)] {
        script.fixed(Seg { ack: 51, ..Seg::data(seq, len) });
        script.fixed(Seg { ack: 1, ..Seg::data(seq, len) });
    }
    script.mobile(Seg::ack(50, 1_001));
    script.mobile(Seg { len: 50, ..Seg::ack(1, 1) });
    script.run(200);
    assert_eq!(refused(&script), 0);
}

#[test]
fn a_reset_is_believed_at_the_number_that_its_receiver_waits_for() {
    let reset = |seq| Seg { flags: "R", ..Seg::data(seq, 0) };
    for (side, exact) in [(Side::Wired, 1_001), (Side::Wireless, 51)] {
        let mut script = running();
        for seq in [exact - 1, exact + 1, exact + 500, exact + 70_000, exact + (1 << 31)] {
            changes_nothing(&mut script, side, reset(seq));
        }
        assert_eq!(script.station.counters().out_of_window_rsts, 5);
        goes_on(&mut script);
        let exact = if side == Side::Wired { 1_301 } else { 51 };
        match side {
            Side::Wired => script.fixed(reset(exact)),
            Side::Wireless => script.mobile(reset(exact)),
        }
        script.run(1_000);
        assert_eq!(script.station.status(script.now).flows, 0, "{side:?}");
    }
}

#[test]
fn a_reset_is_believed_where_the_ends_numbers_are_ahead_of_the_others_acknowledgement() {
    let mut script = running();
    script.fixed(Seg { ack: 51, ..Seg::data(1_001, 500) });
    script.fixed(Seg { flags: "R", ..Seg::data(1_501, 0) });
    assert_eq!(script.station.status(script.now).flows, 0);
    let mut script = running();
    script.mobile(Seg { len: 9, ..Seg::ack(51, 1_001) });
    script.mobile(Seg { flags: "R", ..Seg::ack(60, 0) });
    script.run(100);
    assert_eq!(script.station.status(script.now).flows, 0);
}

#[test]
fn a_refused_syn_ends_its_flow() {
    let mut script = Script::new("", |_| {});
    script.mobile(Seg { flags: "S", ..Seg::ack(5_000, 0) });
    script.run(10);
    script.fixed(Seg { flags: "RA", ack: 5_002, ..Seg::data(0, 0) });
    assert_eq!(script.station.status(script.now).unproven, 1);
    script.fixed(Seg { flags: "RA", ack: 5_001, ..Seg::data(0, 0) });
    assert_eq!(script.station.status(script.now).unproven, 0);
    script.fixed(Seg { flags: "S", ack: 0, ..Seg::data(7_000, 0) });
    script.run(20);
    script.mobile(Seg { flags: "RA", ..Seg::ack(0, 7_001) });
    script.run(30);
    assert_eq!(script.station.status(script.now).unproven, 0);
}

/// Acknowledgement numbers for guesses: close to `exact` on both sides, and spread over the number
/// space.
fn guesses(exact: u32) -> impl Iterator<Item = u32> {
    let near = [1, 2, 100, 65_534, 65_535, 65_536].map(|by| [by, 0_u32.wrapping_sub(by)]);
    let near = near.into_iter().flatten().map(move |by| exact.wrapping_add(by));
    near.chain((1..64_u32).map(move |n| exact.wrapping_add(n.wrapping_mul(0x0404_0405))))
}

/// Sends a segment and lets it pass.
fn put(script: &mut Script, side: Side, seg: Seg) {
    match side {
        Side::Wired => script.fixed(seg),
        Side::Wireless => script.mobile(seg),
    }
    let later = script.now.as_millis() + 10;
    script.run(later);
}

#[test]
fn only_the_answer_to_its_syn_speaks_for_an_end_that_was_not_heard() {
    let mut script = Script::new("", |_| {});
    put(&mut script, Side::Wireless, Seg { flags: "S", ..Seg::ack(5_000, 0) });
    let forged = |flags, ack| Seg { flags, ack, window: 65_535, ..Seg::data(123_456, 0) };
    let mut sent = 0;
    for ack in guesses(5_001) {
        for flags in ["A", "SA", "PA", "FA", "R", "RA"] {
            put(&mut script, Side::Wired, forged(flags, ack));
            sent += 1;
        }
    }
    // The number is right, but the segment is not a response to a SYN.
    for flags in ["A", "PA", "FA", "S"] {
        put(&mut script, Side::Wired, forged(flags, 5_001));
        sent += 1;
    }
    assert_eq!(refused(&script), sent);
    let answer = Seg { flags: "SA", ack: 5_001, ..Seg::data(900, 0) };
    put(&mut script, Side::Wired, answer);
    put(&mut script, Side::Wireless, Seg::ack(5_001, 901));
    assert_eq!(refused(&script), sent);
    let record = flow(&script);
    assert_eq!((record.acked, record.seq), (Some(901), Some(5_001)));
}

#[test]
fn only_the_answer_to_the_fixed_hosts_syn_speaks_for_the_mobile() {
    for flags in ["A", "SA", "FA", "R", "RA"] {
        for ack in guesses(5_001) {
            let mut script = Script::new("", |_| {});
            put(&mut script, Side::Wired, Seg { flags: "S", ack: 0, ..Seg::data(5_000, 0) });
            let forged = Seg { flags, window: 65_535, ..Seg::ack(123_456, ack) };
            put(&mut script, Side::Wireless, forged);
            assert_eq!(refused(&script), 1, "{flags} {ack}");
            put(&mut script, Side::Wireless, Seg { flags: "SA", ..Seg::ack(900, 5_001) });
            put(&mut script, Side::Wired, Seg { ack: 901, ..Seg::data(5_001, 10) });
            put(&mut script, Side::Wireless, Seg::ack(901, 5_011));
            assert_eq!(refused(&script), 1, "{flags} {ack}");
            assert_eq!(flow(&script).acked, Some(5_011));
        }
    }
}

#[test]
fn the_third_segment_of_a_handshake_acknowledges_the_second_exactly() {
    for opener in Side::BOTH {
        let mut script = Script::new("", |_| {});
        let syn = Seg { flags: "S", ack: 0, wscale: Some(14), ..Seg::data(5_000, 0) };
        put(&mut script, opener, syn);
        let answer = Seg { flags: "SA", ack: 5_001, wscale: Some(14), ..Seg::data(900, 0) };
        put(&mut script, opener.other(), answer);
        let mut sent = 0;
        for ack in guesses(901) {
            put(&mut script, opener, Seg { ack, window: 65_535, ..Seg::data(5_001, 10) });
            sent += 1;
            assert_eq!(refused(&script), sent, "{opener:?} {ack}");
        }
        put(&mut script, opener, Seg { ack: 901, ..Seg::data(5_001, 10) });
        put(&mut script, opener.other(), Seg { ack: 5_011, ..Seg::data(901, 10) });
        put(&mut script, opener, Seg { ack: 911, ..Seg::data(5_011, 0) });
        assert_eq!(refused(&script), sent);
        assert_eq!(script.station.status(script.now).flows, 1);
    }
}

#[test]
fn the_answer_to_a_syn_with_data_acknowledges_the_syn_or_all_of_it() {
    // RFC 7413 section 4.2.
    for opener in Side::BOTH {
        for (ack, is_believed) in [(5_001, true), (5_101, true), (5_050, false), (5_102, false)] {
            for flags in ["SA", "RA"] {
                let mut script = Script::new("", |_| {});
                let syn = Seg { flags: "S", ack: 0, ..Seg::data(5_000, 100) };
                put(&mut script, opener, syn);
                put(&mut script, opener.other(), Seg { flags, ack, ..Seg::data(900, 0) });
                assert_eq!(refused(&script), u64::from(!is_believed), "{opener:?} {flags} {ack}");
            }
        }
        // The SYN is lost behind the station and retransmitted without data.
        let mut script = Script::new("", |_| {});
        put(&mut script, opener, Seg { flags: "S", ack: 0, ..Seg::data(5_000, 100) });
        put(&mut script, opener, Seg { flags: "S", ack: 0, ..Seg::data(5_000, 0) });
        let answer = Seg { flags: "SA", ack: 5_001, ..Seg::data(900, 0) };
        put(&mut script, opener.other(), answer);
        put(&mut script, opener, Seg { ack: 901, ..Seg::data(5_001, 100) });
        assert_eq!(refused(&script), 0, "{opener:?}");
    }
}

#[test]
fn ends_that_open_at_the_same_time_are_one_flow() {
    // RFC 9293 figure 7.
    let mut script = Script::new("", |_| {});
    put(&mut script, Side::Wireless, Seg { flags: "S", ..Seg::ack(5_000, 0) });
    put(&mut script, Side::Wired, Seg { flags: "S", ack: 0, ..Seg::data(900, 0) });
    put(&mut script, Side::Wireless, Seg { flags: "SA", ..Seg::ack(5_000, 901) });
    put(&mut script, Side::Wired, Seg { flags: "SA", ack: 5_001, ..Seg::data(900, 0) });
    put(&mut script, Side::Wired, Seg { ack: 5_001, ..Seg::data(901, 10) });
    put(&mut script, Side::Wireless, Seg::ack(5_001, 911));
    assert_eq!(flow(&script).acked, Some(911));
}

#[test]
fn a_syn_from_either_side_leaves_a_running_flow_alone() {
    let mut script = running();
    for (side, next) in [(Side::Wired, 1_001), (Side::Wireless, 51)] {
        for seq in [next, next + 9, 77_777_777] {
            let syn = Seg { flags: "S", ack: 0, ..Seg::data(seq, 0) };
            changes_nothing(&mut script, side, syn);
            changes_nothing(&mut script, side, Seg { flags: "SA", ack: 7, ..Seg::data(seq, 0) });
        }
    }
    assert_eq!(script.station.counters().out_of_window_syns, 12);
    goes_on(&mut script);
}

#[test]
fn an_ack_of_what_was_not_sent_or_with_a_number_outside_the_window_is_not_the_mobiles() {
    let mut script = running();
    for ack in [1_002, 1_000_000, 1 << 31, u32::MAX - 70_000, u32::MAX - 1_000, 0] {
        changes_nothing(&mut script, Side::Wireless, Seg::ack(51, ack));
    }
    assert_eq!(script.station.counters().out_of_window_acks, 6);
    for seq in [51 + 65_537, 1 << 31, u32::MAX - 70_000] {
        let forged = Seg { window: 9, ts: Some((77, 7)), ..Seg::ack(seq, 1_001) };
        changes_nothing(&mut script, Side::Wireless, forged);
    }
    assert_eq!(script.station.counters().out_of_window_data, 3);
    goes_on(&mut script);
}

#[test]
fn another_connection_of_the_same_ends_is_known_once_both_have_said_so() {
    for opener in Side::BOTH {
        let mut script = running();
        let mut sides = [(opener, 5_000_000), (opener.other(), 9_000_000)];
        let mut put = |script: &mut Script, seg: Seg| {
            match sides[0].0 {
                Side::Wired => script.fixed(seg),
                Side::Wireless => script.mobile(seg),
            }
            let later = script.now.as_millis() + 10;
            script.run(later);
            sides.swap(0, 1);
        };
        put(&mut script, Seg { flags: "S", ack: 0, ..Seg::data(5_000_000, 0) });
        assert_eq!(script.station.status(script.now).flows, 1, "so far one has");
        put(&mut script, Seg { flags: "SA", ack: 5_000_001, ..Seg::data(9_000_000, 0) });
        assert_eq!(script.station.status(script.now).unproven, 1);
        put(&mut script, Seg { ack: 9_000_001, ..Seg::data(5_000_001, 10) });
        put(&mut script, Seg { ack: 5_000_011, ..Seg::data(9_000_001, 10) });
        put(&mut script, Seg { ack: 9_000_011, ..Seg::data(5_000_011, 0) });
        let record = flow(&script);
        let numbers = (record.acked.unwrap(), record.seq.unwrap());
        let expected = [(5_000_011, 9_000_011), (9_000_011, 5_000_011)];
        assert_eq!(numbers, expected[opener as usize]);
        assert_eq!(refused(&script), 1, "the first SYN");
    }
}

#[test]
fn a_flow_that_a_stranger_began_follows_the_mobiles_word() {
    // The station was started during a flow, and first saw an attacker's packet.
    for seq in [3 << 30, 1 << 30] {
        let mut script = Script::new("", |_| {});
        script.fixed(Seg { ack: 5, ..Seg::data(seq, 10) });
        script.fixed(Seg::data(1, 1_000));
        script.run(10);
        script.mobile(Seg::ack(1, 1_001));
        script.run(20);
        script.fixed(Seg::data(1_001, 1_000));
        script.run(30);
        script.mobile(Seg::ack(1, 2_001));
        script.run(40);
        script.out.clear();
        script.fixed(Seg::data(2_001, 100));
        script.fixed(Seg::data(2_201, 100));
        script.run(50);
        assert_eq!(script.marks(), [(2_001, false), (2_201, true)], "{seq}");
        assert_eq!(flow(&script).acked, Some(2_001));
    }
}

#[test]
fn the_mobile_alone_proves_no_flow() {
    let mut script = Script::new("", |_| {});
    script.mobile(Seg { flags: "S", ..Seg::ack(0, 0) });
    script.mobile(Seg::ack(1, 1));
    script.mobile(Seg { len: 10, ..Seg::ack(1, 500) });
    script.run(50);
    let status = script.station.status(script.now);
    assert_eq!((status.flows, status.unproven), (0, 1));
}

#[test]
fn strangers_do_not_have_a_sender_wait_for_ever() {
    let mut script = running();
    script.station.disconnect(script.now);
    script.fixed(Seg { ack: 51, ..Seg::data(1_001, 100) });
    script.run(100);
    assert_eq!(script.take(Side::Wired).len(), 1);
    for n in 0..1_000u32 {
        let seq = 1_101 + 4_000_037 * (n + 1);
        script.fixed(Seg { ack: 51, ..Seg::data(seq, 10) });
        for flags in ["R", "RA", "S", "SA", "FA"] {
            script.fixed(Seg { flags, ack: 51, ..Seg::data(seq, 0) });
        }
    }
    let status = script.station.status(script.now);
    assert_eq!((status.frozen, status.counters.made), (1, 1));
    script.station.reconnect(script.now);
    script.run(110);
    let acks: Vec<_> = script.take(Side::Wired).iter().map(|s| (s.ack.0, s.window)).collect();
    assert_eq!(acks, [(1_001, 1_000)]);
}

#[test]
fn who_is_behind_the_radio_speaks_for_its_own_addresses_only() {
    for policy in [Policy::Plain, Policy::TcpEcn] {
        let mut script = Script::new("", |config| {
            config.policy = policy;
            config.mobiles =
                ["192.168.0.0/24", "fd00::2:0/112"].map(|net| net.parse().unwrap()).into();
        });
        let (own, other_own) = (key().mobile, key_of(1).mobile);
        let stranger = key().fixed;
        let datagram = |src: SocketAddr, dst: SocketAddr| {
            Packet::new(enclose(src.ip(), dst.ip(), 0, 17, &[7; 9]))
        };
        let allowed = [datagram(own, stranger), Seg::ack(1, 1).packet(own, stranger)];
        let spoofed =
            [datagram(stranger, own), Seg { flags: "S", ..Seg::ack(1, 0) }.packet(stranger, own)];
        for packet in allowed.iter().chain(&spoofed) {
            script.put(Side::Wireless, packet.clone());
        }
        script.put(Side::Wireless, datagram(other_own, key_of(1).fixed));
        script.put(Side::Wireless, datagram(key_of(1).fixed, other_own));
        // Packets for mobiles may come from any address.
        script.put(Side::Wired, spoofed[0].clone());
        script.run(50);
        let came = |side| script.out.iter().filter(|out| out.1 == side).count();
        assert_eq!((came(Side::Wired), came(Side::Wireless)), (3, 1), "{policy:?}");
        let status = script.station.status(script.now);
        assert_eq!((status.counters.spoofed_sources, status.unproven), (3, 0));
    }
}

#[test]
fn sources_of_one_link_are_dropped_and_are_not_counted_as_spoofed() {
    let mut script = Script::new("", |config| {
        config.mobiles = ["192.168.0.0/24", "fd00::2:0/112"].map(|net| net.parse().unwrap()).into();
    });
    let packet = |src: &str, dst: &str| {
        Packet::new(enclose(src.parse().unwrap(), dst.parse().unwrap(), 0, 17, &[7; 9]))
    };
    let of_the_link = [
        // A router solicitation, duplicate address detection, DHCP.
        packet("fe80::1", "ff02::2"),
        packet("::", "ff02::1:ff00:1"),
        packet("0.0.0.0", "255.255.255.255"),
    ];
    for packet in of_the_link {
        script.put(Side::Wireless, packet);
    }
    let syn = Seg { flags: "S", ..Seg::ack(1, 0) };
    let link_local = "[fe80::1]:80".parse().unwrap();
    script.put(Side::Wireless, syn.packet(link_local, key_of(1).fixed));
    script.run(50);
    assert!(script.out.is_empty());
    let counters = script.station.counters();
    assert_eq!((counters.spoofed_sources, counters.link_local_sources), (0, 4));
    assert_eq!(script.station.status(script.now).unproven, 0);
    script.put(Side::Wireless, packet("::2", "fd00::1:1"));
    script.put(Side::Wireless, packet("0.0.0.1", "10.0.0.1"));
    script.run(100);
    assert_eq!(script.station.counters().spoofed_sources, 2);
    // To let mobiles use such addresses among themselves, configure their network.
    let mut script = Script::new("", |config| config.mobiles = vec!["fe80::/10".parse().unwrap()]);
    script.put(Side::Wireless, syn.packet(link_local, key_of(1).fixed));
    script.run(50);
    assert_eq!(script.out.len(), 1);
    assert_eq!(script.station.status(script.now).unproven, 1);
}
