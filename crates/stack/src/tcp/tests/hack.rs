//! HACK: its negotiation, the special ACK for a corrupted segment, and the effect of a special ACK.

use airtcp_wire::header_checksum::verify_header;

use super::*;

const KINDS: HackForm = HackForm::Kinds;

fn willing() -> TcpConfig {
    TcpConfig { hack: Offer::Always, ..delayed() }
}

/// ESTABLISHED with HACK, after the quick ACKs were used up.
fn settled(config: &TcpConfig) -> Script {
    let mut s = Script::established(config);
    for n in 0..16 {
        send!(s, 0, "A", 1 + n * 10, ack = 1, len = 10);
        recv!(s, 0, "A", 1, ack = 11 + n * 10);
    }
    s
}

impl Script {
    /// Delivers a segment with an intact header and corrupted data; returns whether it is answered.
    fn corrupted_at(&mut self, ms: u64, seg: Seg) -> bool {
        self.advance(ms);
        let wire = seg.to_wire();
        self.conn.on_corrupted(&wire.segment(&seg.data), &mut self.counters)
    }
}

#[test]
fn hack_is_negotiated_if_both_ends_offer_it() {
    for (ours, theirs) in [
        (Offer::Always, Some(KINDS)),
        (Offer::Always, Some(HackForm::ExId)),
        (Offer::Always, None),
        (Offer::IfNeeded, Some(KINDS)),
        (Offer::Never, Some(KINDS)),
    ] {
        let config = TcpConfig { hack: ours, ..plain() };
        let mut s = Script::syn_received(&config);
        let syn = Seg { hack: theirs, ..Script::syn_of(&config) };
        let wire = syn.to_wire();
        s.conn = Connection::accept(s.now, flow(), ISS, TS_OFFSET, &config, &wire.segment(&[]));
        let agreed = theirs.filter(|_| ours == Offer::Always);
        assert_eq!(s.take(0).unwrap().hack, agreed, "the answer has the form of the offer");
        assert_eq!(s.conn.granted().hack, agreed.is_some());
        send!(s, 0, "A", 1, ack = 1);
        let taken = agreed.map_or(0, HackForm::overhead) as u64;
        assert_eq!(s.conn.info(s.now).mss, ByteCount(1000 - taken));
    }
}

#[test]
fn a_syn_offers_it_with_value_zero_and_takes_no_other_form() {
    for (theirs, agreed) in [(HackForm::ExId, true), (KINDS, false)] {
        let config = TcpConfig { hack_form: HackForm::ExId, ..willing() };
        let mut s = Script::connecting(&config);
        let syn = s.conn.poll_transmit(s.now, &mut s.counters, &mut s.outlet).unwrap();
        let ip = ip::parse(&syn.data).unwrap();
        let offer = Hack { form: HackForm::ExId, checksum: 0 };
        assert_eq!(parse(ip.payload).unwrap().2.options.hack, Some(offer));
        send!(s, 10, "S", 0, ack = 1, mss = 1000, sack_permitted = true, hack = theirs);
        recv!(s, 10, "A", 1, ack = 1);
        assert_eq!(s.conn.granted().hack, agreed);
        assert_eq!(s.conn.info(s.now).hack, agreed);
    }
}

#[test]
fn segments_with_data_carry_it_and_both_checksums_hold() {
    for config in
        [willing(), TcpConfig { hack_form: HackForm::ExId, timestamps: true, ..willing() }]
    {
        let mut s = Script::established(&config);
        s.write(1500);
        s.conn.shutdown(s.now);
        let mut data_bytes = 0;
        while let Some(packet) = s.conn.poll_transmit(s.now, &mut s.counters, &mut s.outlet) {
            assert!(packet.len() <= 1040, "options and data share the MTU");
            let ip = ip::parse(&packet.data).unwrap();
            let segment = parse(ip.payload).unwrap().2;
            let sound =
                airtcp_wire::checksum::verify_transport(ip.src, ip.dst, ip::TCP, ip.payload);
            assert!(sound);
            assert_eq!(segment.options.hack.is_some(), !segment.payload.is_empty());
            assert_eq!(verify_header(ip.src, ip.dst, ip.payload), !segment.payload.is_empty());
            data_bytes += segment.payload.len();
        }
        assert_eq!(data_bytes, 1500);
    }
}

#[test]
fn a_corrupted_segment_is_answered_at_once_and_nothing_else_changes() {
    let mut s = settled(&TcpConfig { timestamps: true, ..willing() });
    let ts = (PEER_TS, TS_OFFSET);
    send!(s, 5, "A", 161, ack = 1, len = 10, ts = ts);
    recv_nothing!(s, 6);
    let pending = s.conn.poll_timeout();
    let before = s.conn.info(s.now);
    assert!(s.corrupted_at(6, seg!("A", 171, ack = 1, len = 500, ts = (PEER_TS + 999, 0))));
    // The ACK echoes TS.Recent, not the timestamp of the corrupted segment.
    recv!(s, 6, "A", 1, ack = 171, hack_ack = (KINDS, 171), ts = (TS_OFFSET + 6, PEER_TS));
    recv_nothing!(s, 6);
    assert_eq!(s.conn.poll_timeout(), pending, "the delayed ACK waits on");
    assert_eq!(s.conn.info(s.now), Info { segs_out: before.segs_out + 1, ..before });
    recv!(s, 45, "A", 1, ack = 171);
    assert_eq!(s.counters.tcp_ext_hack_acks_sent, 1);
}

#[test]
fn each_corrupted_segment_in_the_window_is_answered_once() {
    let mut s = Script::established(&willing());
    for n in 0..20 {
        assert!(s.corrupted_at(1, seg!("A", 1 + n * 996, ack = 1, len = 996)));
    }
    assert!(s.corrupted_at(1, seg!("A", 1, ack = 1, len = 996)), "corrupted again");
    for n in 0..20 {
        recv!(s, 1, "A", 1, ack = 1, hack_ack = (KINDS, 1 + n * 996));
    }
    recv!(s, 1, "A", 1, ack = 1, hack_ack = (KINDS, 1));
    recv_nothing!(s, 1000);
    assert_eq!(s.counters.tcp_ext_hack_acks_sent, 21);
}

#[test]
fn an_absurd_batch_is_answered_in_part() {
    let mut s = Script::established(&willing());
    let answered = (0..300).filter(|n| s.corrupted_at(1, seg!("A", 1 + n, ack = 1, len = 1)));
    assert_eq!(answered.count(), 256);
    assert_eq!(s.counters.tcp_ext_hack_unanswered, 44);
}

#[test]
fn corrupted_segments_outside_the_window_are_not_answered() {
    let mut s = settled(&willing());
    let edge = 161 + s.conn.receive.window().0 as u32;
    assert!(s.corrupted_at(1, seg!("A", edge - 1, ack = 1, len = 10)));
    recv!(s, 1, "A", 1, ack = 161, hack_ack = (KINDS, edge - 1));
    for bad in [
        seg!("A", 151, ack = 1, len = 10),
        seg!("A", edge, ack = 1, len = 10),
        seg!("A", 161, ack = 1),
        seg!("S", 161, len = 10),
        seg!("RA", 161, ack = 1, len = 10),
    ] {
        assert!(!s.corrupted_at(1, bad.clone()), "{bad:?}");
    }
    recv_nothing!(s, 1);
    assert_eq!(s.counters.tcp_ext_hack_unanswered, 5);
    for mut s in [Script::established(&plain()), Script::close_wait(&willing())] {
        assert!(!s.corrupted_at(1, seg!("A", 1, ack = 1, len = 10)));
        assert_eq!(s.counters.tcp_ext_hack_unanswered, 1);
    }
}

#[test]
fn data_that_would_complete_the_handshake_is_answered_too() {
    let mut s = Script::syn_received(&willing());
    assert!(s.take(0).is_some(), "the SYN-ACK");
    for bad in [seg!("A", 1, ack = 2, len = 10), seg!("", 1, len = 10), seg!("A", 1, ack = 1)] {
        assert!(!s.corrupted_at(20, bad.clone()), "{bad:?}");
    }
    assert!(s.corrupted_at(20, seg!("A", 1, ack = 1, len = 500)));
    recv!(s, 20, "A", 1, ack = 1, hack_ack = (KINDS, 1));
    recv_nothing!(s, 20);
    assert_eq!(s.conn.state(), State::SynReceived, "nothing else changes");
    send!(s, 40, "A", 1, ack = 1, len = 500);
    assert_eq!(s.conn.state(), State::Established);
    assert_eq!(s.read(), stream(1, 500));
}

#[test]
fn a_special_ack_has_sack_blocks_and_keeps_pending_reports() {
    let mut s = settled(&TcpConfig { timestamps: true, ..willing() });
    for (blocks, seq) in (1..).zip([1000, 2000, 3000]) {
        send!(s, 5, "A", seq, ack = 1, len = 100);
        assert_eq!(s.take(5).unwrap().sack.len(), blocks);
    }
    send!(s, 6, "A", 151, ack = 1, len = 10);
    assert!(s.corrupted_at(6, seg!("A", 161, ack = 1, len = 100)));
    let blocks = [(3000, 3100), (2000, 2100)];
    recv!(s, 6, "A", 1, ack = 161, hack_ack = (KINDS, 161), sack = blocks);
    let blocks = [(151, 161), (3000, 3100), (2000, 2100)];
    recv!(s, 6, "A", 1, ack = 161, sack = blocks);
}

#[test]
fn of_a_special_ack_nothing_but_its_number_counts() {
    let mut s = Script::established(&TcpConfig { timestamps: true, ..willing() });
    s.write(3000);
    while s.take(0).is_some() {}
    let deadline = s.conn.poll_timeout();
    let before = s.conn.info(s.now);
    let ts = (PEER_TS + 500, TS_OFFSET);
    send!(s, 0, "A", 1, ack = 985, window = 0, hack_ack = (KINDS, 985), ts = ts);
    assert_eq!(s.counters.tcp_ext_hack_acks_recv, 1);
    let after = s.conn.info(s.now);
    assert_eq!((after.snd_wnd, after.bytes_acked), (before.snd_wnd, ByteCount::ZERO));
    assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, before.ssthresh));
    assert_eq!(s.conn.poll_timeout(), deadline, "the retransmission timer runs on");
    // TS.Recent is unchanged: an older timestamp still passes PAWS.
    send!(s, 1, "A", 1, ack = 985, len = 10, ts = (PEER_TS + 1, TS_OFFSET));
    assert_eq!(s.conn.info(s.now).bytes_acked, ByteCount(984));
}

#[test]
fn forged_special_acks_are_ignored() {
    let mut s = Script::established(&TcpConfig { sack: false, ..willing() });
    s.write(3000);
    while s.take(0).is_some() {}
    send!(s, 10, "A", 1, ack = 997);
    let before = s.conn.info(s.now);
    let deadline = s.conn.poll_timeout();
    // Acknowledged, beyond SND.NXT, and in the other half of the sequence space.
    for seq in [1, 996, 3001, 3500, 1 << 31] {
        send!(s, 10, "A", 1, ack = 997, hack_ack = (KINDS, seq));
        recv_nothing!(s, 10);
    }
    assert_eq!(s.counters.tcp_ext_hack_acks_ignored, 5);
    // Outside the receive window, or with an impossible ACK, it is not processed as a special ACK.
    send!(s, 10, "A", 500_000, ack = 997, hack_ack = (KINDS, 997));
    send!(s, 10, "A", 1, ack = 9_000, hack_ack = (KINDS, 997));
    assert_eq!(s.counters.tcp_ext_hack_acks_recv, 5);
    while s.take(10).is_some_and(|sent| sent.data.is_empty()) {}
    assert_eq!((s.conn.info(s.now).cwnd, s.conn.poll_timeout()), (before.cwnd, deadline));
}

#[test]
fn without_agreement_a_special_ack_is_an_ack() {
    let mut s = Script::established(&plain());
    s.write(1000);
    recv!(s, 0, "PA", 1, ack = 1, len = 1000);
    send!(s, 10, "A", 1, ack = 1001, hack_ack = (KINDS, 1));
    assert_eq!(s.conn.info(s.now).bytes_acked, ByteCount(1000));
    assert_eq!(s.counters.tcp_ext_hack_acks_recv, 0);
}

#[test]
fn a_notified_corruption_is_repaired_and_costs_no_window() {
    for combination in ["newreno/reno/hack", "sack/cubic/hack", "rack/cubic/hack"] {
        // Only the judge causes the offer.
        let mut config = plain();
        config.sender.combination = combination.parse().unwrap();
        // A round trip takes 20 ms.
        let mut s = Script::connecting(&config);
        recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true, hack = KINDS);
        send!(s, 20, "S", 0, ack = 1, mss = 1000, sack_permitted = true, hack = KINDS);
        recv!(s, 20, "A", 1, ack = 1);
        s.write(4 * 996);
        while s.take(20).is_some() {}
        let before = s.conn.info(s.now);
        send!(s, 40, "A", 1, ack = 1, hack_ack = (KINDS, 997));
        recv!(s, 40, "A", 997, ack = 1, len = 996, hack = KINDS);
        recv_nothing!(s, 40);
        let after = s.conn.info(s.now);
        assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, before.ssthresh), "{combination}");
        // A repetition within a round trip is a duplicate made by the network.
        send!(s, 41, "A", 1, ack = 1, hack_ack = (KINDS, 997));
        recv_nothing!(s, 41);
        let counters = &s.counters;
        let heard = (counters.tcp_ext_hack_acks_recv, counters.tcp_ext_hack_acks_ignored);
        assert_eq!(heard, (2, 1), "{combination}");
        assert_eq!(s.conn.info(s.now).retrans, 1);
    }
}

#[test]
fn a_judge_that_needs_it_is_no_choice_where_it_was_not_negotiated() {
    let mut s = Script::established(&plain());
    let refused = s.conn.set_combination(s.now, &"sack/cubic/hack".parse().unwrap());
    assert_eq!(refused, Err(SwitchError::NotNegotiated("HACK")));
    let mut s = Script::established(&willing());
    assert_eq!(s.conn.set_combination(s.now, &"sack/cubic/hack".parse().unwrap()), Ok(()));
    let echo = s.conn.set_combination(s.now, &"le:echo/reno".parse().unwrap());
    assert_eq!(echo, Err(SwitchError::NotNegotiated("transmission numbers")));
}
