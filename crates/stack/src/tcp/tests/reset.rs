//! RSTs and SYNs in a synchronised state (RFC 5961), and other invalid segments.

use airtcp_wire::options::Order;

use super::*;

// Shows: RFC9293-MUST-12, RFC5961-3.2-1, RFC5961-3.2-2, RFC5961-3.2-3
#[test]
fn a_rst_counts_only_at_the_exact_number() {
    let mut s = Script::established(&plain());
    send!(s, 0, "R", 2);
    recv!(s, 0, "A", 1, ack = 1);
    send!(s, 1, "R", 100_000);
    send!(s, 1, "R", 0);
    recv_nothing!(s, 1);
    assert_eq!(s.conn.state(), State::Established);
    assert_eq!(s.counters.tcp_ext_challenge_ack, 1);
    send!(s, 2, "A", 1, ack = 1, len = 10);
    recv!(s, 2, "A", 1, ack = 11);
    send!(s, 3, "R", 11);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Reset)));
    // Data that arrived before it can be read; then the error is returned.
    assert_eq!(s.conn.recv(s.now, &mut [0; 90]), Ok(10));
    assert_eq!(s.conn.recv(s.now, &mut [0; 90]), Err(TcpError::Reset));
    assert_eq!(s.conn.send(s.now, b"x", &mut s.outlet), Err(TcpError::Reset));
}

#[test]
fn data_discarded_by_a_rst_was_not_acknowledged() {
    let mut s = Script::established(&plain());
    s.write(2000);
    recv!(s, 0, "A", 1, ack = 1, len = 1000);
    recv!(s, 0, "PA", 1001, ack = 1, len = 1000);
    send!(s, 1, "A", 1, ack = 1001);
    send!(s, 2, "R", 1);
    assert_eq!(s.conn.info(s.now).bytes_acked, ByteCount(1000));
}

// Shows: RFC5961-4.2-1, RFC5961-4.2-2
#[test]
fn a_syn_is_challenged_wherever_it_lies() {
    let mut s = Script::established(&plain());
    send!(s, 0, "S", 50, mss = 1000);
    recv!(s, 0, "A", 1, ack = 1);
    send!(s, 1000, "S", 0, ack = 1, mss = 1000);
    recv!(s, 1000, "A", 1, ack = 1);
    send!(s, 2000, "S", 0x4000_0000, mss = 1000);
    recv!(s, 2000, "A", 1, ack = 1);
    assert_eq!(s.conn.state(), State::Established);
}

#[test]
fn a_syn_with_data_outside_the_window_is_answered_no_more_often() {
    let mut s = Script::established(&plain());
    for _ in 0..20 {
        send!(s, 0, "S", 0x4000_0000, len = 10);
    }
    recv!(s, 0, "A", 1, ack = 1);
    recv_nothing!(s, 0);
    assert_eq!((s.counters.tcp_ext_syn_challenge, s.counters.tcp_ext_beyond_window), (20, 20));
    assert_eq!(s.counters.tcp_ext_ack_skipped_challenge, 19);
}

// Shows: RFC7323-5.2-6
#[test]
fn a_forged_time_stamp_is_not_remembered() {
    let mut s = Script::established(&TcpConfig { timestamps: true, ..plain() });
    let forged = (PEER_TS + 0x4000_0000, 0);
    send!(s, 1, "R", 0, ts = forged);
    send!(s, 1, "S", 1, ts = forged);
    send!(s, 1, "A", 1, ack = 77, len = 10, ts = forged);
    send!(s, 1, "", 1, len = 10, ts = forged);
    while s.take(1).is_some() {}
    send!(s, 2, "A", 1, ack = 1, len = 10);
    recv!(s, 2, "A", 1, ack = 11);
    assert_eq!(s.counters.tcp_ext_paws_estab, 0);
}

// Shows: RFC5961-7-1
#[test]
fn challenges_are_limited() {
    let mut s = Script::established(&plain());
    for n in 0..100 {
        send!(s, 10 * n, "R", 2);
        if n % 50 == 0 {
            recv!(s, 10 * n, "A", 1, ack = 1);
        }
        recv_nothing!(s, 10 * n);
    }
}

#[test]
fn a_rst_in_the_closing_states_just_ends_them() {
    let mut s = Script::time_wait(&plain());
    send!(s, 0, "R", 2);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, None));
    let mut s = Script::fin_wait_2(&plain());
    send!(s, 0, "R", 1);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Reset)));
}

// Shows: RFC9293-MUST-12
#[test]
fn a_rst_that_takes_data_away_is_an_error_in_every_closing_state() {
    let reset = |s: &mut Script, seq| {
        send!(s, 2, "R", seq);
        assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Reset)));
        assert_eq!(s.conn.recv(s.now, &mut [0; 9]), Err(TcpError::Reset));
    };
    let mut s = Script::established(&plain());
    s.write(10);
    s.conn.shutdown(s.now);
    recv!(s, 0, "FPA", 1, ack = 1, len = 10);
    assert_eq!(s.conn.state(), State::FinWait1);
    reset(&mut s, 1);

    let mut s = Script::established(&plain());
    s.write(10);
    s.conn.shutdown(s.now);
    recv!(s, 0, "FPA", 1, ack = 1, len = 10);
    send!(s, 1, "FA", 1, ack = 1);
    recv!(s, 1, "A", 12, ack = 2);
    assert_eq!(s.conn.state(), State::Closing);
    reset(&mut s, 2);

    let mut s = Script::close_wait(&plain());
    s.write(10);
    s.conn.shutdown(s.now);
    recv!(s, 0, "FPA", 1, ack = 2, len = 10);
    assert_eq!(s.conn.state(), State::LastAck);
    reset(&mut s, 2);
}

#[test]
fn a_rst_for_the_fin_alone_takes_nothing_away() {
    let mut s = Script::close_wait(&plain());
    s.write(10);
    s.conn.shutdown(s.now);
    recv!(s, 0, "FPA", 1, ack = 2, len = 10);
    send!(s, 1, "A", 2, ack = 11);
    assert_eq!(s.conn.state(), State::LastAck);
    send!(s, 2, "R", 2);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, None));
}

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut s = Script::established(&plain());
    send!(s, 0, "", 1, len = 10);
    send!(s, 0, "F", 1);
    recv_nothing!(s, 1000);
    assert_eq!(s.conn.state(), State::Established);
}

#[test]
fn segments_with_random_numbers_are_rate_limited_and_change_nothing() {
    let mut s = Script::established(&plain());
    for n in 0..50u32 {
        send!(s, 0, "A", n.wrapping_mul(0x0923_4567) | 0x0800_0000, ack = 1);
    }
    recv!(s, 0, "A", 1, ack = 1);
    recv_nothing!(s, 0);
    assert_eq!(s.conn.held(), ByteCount(0));
}

#[test]
fn no_segment_makes_it_panic_or_grow() {
    let mut random = airtcp_types::rng::Stream::new(11, 0);
    let flags = ["", "A", "PA", "FA", "S", "SA", "R", "RA"];
    for round in 0..300 {
        // The scripts that end a connection do not support transmission numbers.
        let offer = if round % 5 == 4 { Offer::Always } else { Offer::Never };
        let config =
            TcpConfig { timestamps: round % 2 == 0, hack: offer, tx_numbers: offer, ..plain() };
        let mark_aware = (round % 3 == 0).then(MarkAware::default);
        let ecn = match round % 5 {
            2 | 3 => EcnMode::Passive,
            _ => EcnMode::ALL[round % EcnMode::ALL.len()],
        };
        let config = TcpConfig { mark_aware, ecn, ..config };
        let mut s = match round % 5 {
            0 => Script::connecting(&config),
            1 => Script::syn_received(&config),
            2 => Script::close_wait(&config),
            3 => Script::fin_wait_2(&config),
            _ => Script::established(&config),
        };
        // The script does not check timestamps.
        s.timestamps = false;
        let _ = s.conn.send(s.now, &[7; 20_000], &mut s.outlet);
        for _ in 0..200 {
            let near = |random: &mut airtcp_types::rng::Stream| match random.below(8) {
                0 => random.next_u64() as u32,
                _ => (random.below(70_000) as u32).wrapping_sub(2_000),
            };
            let blocks = random.below(5) as usize;
            let seg = Seg {
                flags: flags[random.below(8) as usize],
                seq: near(&mut random),
                ack: (random.below(8) > 0).then(|| near(&mut random)),
                data: vec![1; random.below(1400) as usize * usize::from(random.chance(0.5))],
                window: Some(random.next_u64() as u16),
                sack: (0..blocks).map(|_| (near(&mut random), near(&mut random))).collect(),
                ts: random.chance(0.7).then(|| (random.below(300) as u32, near(&mut random))),
                mss: random.chance(0.1).then(|| random.next_u64() as u16),
                wscale: random.chance(0.1).then(|| random.next_u64() as u8),
                sack_permitted: random.chance(0.1),
                hack: random.chance(0.1).then_some(HackForm::Kinds),
                hack_ack: random.chance(0.2).then(|| (HackForm::Kinds, near(&mut random))),
                numbers: random
                    .chance(0.5)
                    .then(|| (random.next_u64() as u32, random.below(50) as u32)),
                marked: random.chance(0.3),
                ecn: random.below(4) as u8,
                ace: random.chance(0.5).then(|| random.below(8) as u8),
                accecn: random.chance(0.3).then(|| {
                    let counters = [0; 3].map(|_: u32| random.below(1 << 24) as u32);
                    AccEcn::new(Order::One, &counters[..random.below(4) as usize])
                }),
            };
            let wire = seg.to_wire();
            s.now += Duration::from_millis(random.below(300));
            s.conn.on_timeout(s.now, &mut s.counters);
            if random.chance(0.1) {
                s.conn.on_corrupted(&wire.segment(&seg.data), &mut s.counters);
            }
            s.conn.on_segment(s.now, &wire.segment(&seg.data), &mut s.counters);
            let mut sent = 0;
            while s.conn.poll_transmit(s.now, &mut s.counters, &mut s.outlet).is_some() {
                sent += 1;
                assert!(sent < 100, "it does not stop sending");
            }
            assert!(s.conn.held() < ByteCount(200_000));
        }
    }
}
