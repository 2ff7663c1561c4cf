//! Requirements of RFCs that no other script asserts.

use super::*;

/// A flow of the other IP version.
fn flow_v6() -> FlowId {
    let end = |text: &str| text.parse::<SocketAddr>().unwrap();
    FlowId { local: end("[fd00::1]:80"), remote: end("[fd00::2]:40000") }
}

// Shows: RFC9293-MUST-1
#[test]
fn a_window_of_more_than_32_kib_is_no_negative_one() {
    let mut config = plain();
    config.sender.combination = "sack/fixed:80".parse().unwrap();
    let mut s = Script::established(&config);
    send!(s, 0, "A", 1, ack = 1, window = 65_535);
    s.write(70_000);
    let sent = std::iter::from_fn(|| s.take(0)).map(|seg| seg.data.len()).sum::<usize>();
    assert_eq!(sent, 65_000);
}

// Shows: RFC9293-MUST-5, RFC7323-2.2-2
#[test]
fn an_option_that_belongs_to_a_syn_does_nothing_elsewhere() {
    let mut s = Script::established(&plain());
    let odd =
        Seg { sack_permitted: true, ..seg!("A", 1, ack = 1, len = 10, mss = 100, wscale = 9) };
    s.send_at(0, odd);
    recv!(s, 0, "A", 1, ack = 11);
    let info = s.conn.info(s.now);
    assert_eq!((info.mss, info.wscale, s.read()), (ByteCount(1000), (0, 0), stream(1, 10)));
}

// Shows: RFC9293-MUST-11
#[test]
fn a_rst_in_syn_received_refuses_only_an_active_open() {
    let mut s = Script::connecting(&plain());
    recv!(s, 0, "S", 0, mss = 1000, sack_permitted = true);
    send!(s, 5, "S", 0, mss = 1000, sack_permitted = true);
    recv!(s, 5, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 6, "R", 1);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Refused)));
    let mut s = Script::syn_received(&plain());
    recv!(s, 0, "SA", 0, ack = 1, mss = 1000, sack_permitted = true);
    send!(s, 1, "R", 1);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Reset)));
}

// Shows: RFC9293-MUST-15, RFC9293-MUST-16, RFC9293-MUST-67, RFC9293-SHLD-5
#[test]
fn the_mss_is_that_of_the_mtu_the_peers_or_the_default_of_the_version() {
    let config = TcpConfig { mtu: 1500, ..plain() };
    for (flow, named, used) in [
        (flow(), None, 536),
        (flow(), Some(400), 400),
        (flow(), Some(9_000), 1_460),
        (flow_v6(), None, 1_220),
        (flow_v6(), Some(9_000), 1_440),
    ] {
        let mut s = Script::connecting(&config);
        s.conn = Connection::connect(s.now, flow, ISS, TS_OFFSET, &config);
        let ours = if flow.remote.is_ipv4() { 1_460 } else { 1_440 };
        recv!(s, 0, "S", 0, mss = ours, sack_permitted = true);
        s.send_at(0, Seg { mss: named, ..seg!("S", 0, ack = 1, sack_permitted = true) });
        recv!(s, 0, "A", 1, ack = 1);
        s.write(5_000);
        let first = s.take(0).unwrap();
        assert_eq!(first.data.len(), used, "{named:?}");
    }
}

// Shows: RFC9293-SHLD-2
#[test]
fn a_rst_may_carry_data() {
    let mut s = Script::established(&plain());
    send!(s, 0, "R", 1, len = 30);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Reset)));
    recv_nothing!(s, 0);
}

// Shows: RFC9293-MUST-66
#[test]
fn a_rst_counts_though_the_window_is_closed() {
    let small = ByteCount(1000);
    let config = TcpConfig { initial_window: small, receive_buffer: small, ..plain() };
    let mut s = Script::established(&config);
    send!(s, 0, "A", 1, ack = 1, len = 1000);
    recv!(s, 0, "A", 1, ack = 1001, window = 0);
    send!(s, 1, "R", 1001);
    assert_eq!((s.conn.state(), s.conn.error()), (State::Closed, Some(TcpError::Reset)));
    assert_eq!(s.conn.recv(s.now, &mut [0; 2000]), Ok(1000));
}

// Shows: RFC9293-SHLD-11
#[test]
fn a_peer_that_is_silent_is_waited_for_100_seconds() {
    let mut s = Script::established(&plain());
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 1, len = 10);
    while s.conn.state() != State::Closed {
        s.now = s.conn.poll_timeout().unwrap();
        s.conn.on_timeout(s.now, &mut s.counters);
        s.conn.poll_transmit(s.now, &mut s.counters, &mut s.outlet);
    }
    assert!(s.now > Instant::from_millis(100_000), "{:?}", s.now);
}

// Shows: RFC9293-MUST-40, RFC9293-SHLD-18, RFC5681-4.2-1, RFC5681-4.2-3
#[test]
fn no_ack_is_delayed_by_half_a_second_whatever_the_gaps_between_arrivals() {
    for gap in [1, 7, 30, 50, 90, 150, 180, 210, 450] {
        let mut s = Script::established(&delayed());
        let (mut next, mut seq, mut waiting, mut longest) = (0, 1, None, Duration::ZERO);
        while next < 20_000 {
            let arrival = Instant::from_millis(next);
            match s.conn.poll_timeout().filter(|at| *at <= arrival) {
                Some(at) => {
                    s.now = at;
                    s.conn.on_timeout(at, &mut s.counters);
                }
                None => {
                    send!(s, next, "A", seq, ack = 1, len = 10);
                    waiting = waiting.or(Some(arrival));
                    (seq, next) = (seq + 10, next + gap);
                }
            }
            if s.conn.poll_transmit(s.now, &mut s.counters, &mut s.outlet).is_some() {
                longest = longest.max(s.now.since(waiting.take().unwrap()));
            }
            s.read();
        }
        assert!(longest < Duration::from_millis(500), "{longest:?}");
        // A pause longer than the time-out enables quick ACKs.
        assert_eq!(s.counters.tcp_ext_delayed_acks > 0, gap < 200, "{gap} ms");
    }
}

// Shows: RFC9293-MUST-47, RFC9293-MUST-56, RFC9293-SHLD-20, RFC9293-SHLD-25
#[test]
fn a_soft_error_can_be_asked_for_until_an_ack_comes() {
    let mut s = Script::established(&plain());
    s.write(20);
    recv!(s, 0, "PA", 1, ack = 1, len = 20);
    assert_eq!(s.conn.info(s.now).soft_error, None);
    s.conn.on_unreachable(s.now, Unreachable::Host);
    assert_eq!(s.conn.info(s.now).soft_error, Some(Unreachable::Host));
    // It is not reported otherwise.
    assert_eq!((s.conn.state(), s.conn.error()), (State::Established, None));
    assert!(!s.conn.readiness().readable);
    send!(s, 10, "A", 1, ack = 21);
    assert_eq!(s.conn.info(s.now).soft_error, None);
}

// Shows: RFC9293-MUST-49
#[test]
fn the_hop_limit_is_a_setting_and_can_be_changed() {
    for (flow, at) in [(flow(), 8), (flow_v6(), 7)] {
        let config = TcpConfig { hop_limit: 9, ..plain() };
        let mut conn = Connection::connect(Instant::from_millis(0), flow, ISS, TS_OFFSET, &config);
        let mut counters = Counters::default();
        let mut sent = |conn: &mut Connection, ms| {
            let now = Instant::from_millis(ms);
            conn.on_timeout(now, &mut counters);
            conn.poll_transmit(now, &mut counters, &mut Outlet::default()).unwrap().data[at]
        };
        assert_eq!(sent(&mut conn, 0), 9);
        conn.set_hop_limit(33);
        assert_eq!(sent(&mut conn, 1_000), 33);
    }
}

// Shows: RFC7323-2.3-5
#[test]
fn a_shift_above_fourteen_counts_as_fourteen() {
    let config = TcpConfig { window_scaling: true, ..plain() };
    let mut s = Script::connecting(&config);
    recv!(s, 0, "S", 0, mss = 1000, wscale = 9, sack_permitted = true);
    send!(s, 0, "S", 0, ack = 1, mss = 1000, wscale = 15, sack_permitted = true);
    recv!(s, 0, "A", 1, ack = 1);
    send!(s, 1, "A", 1, ack = 1, window = 3);
    assert_eq!(s.conn.info(s.now).snd_wnd, ByteCount(3 << 14));
}

// Shows: RFC7323-2.4-2, RFC7323-2.4-3
#[test]
fn data_inside_the_largest_offered_window_is_accepted() {
    let window = ByteCount(65_535);
    let config = TcpConfig {
        window_scaling: true,
        initial_window: window,
        receive_buffer: ByteCount::from_mib(6),
        ..plain()
    };
    let mut s = Script::established(&config);
    // Offered in units of 128, from the numbers 1, 100 and 200 on.
    let mut furthest = 0;
    for (seq, len) in [(1, 99), (100, 100)] {
        send!(s, 0, "A", seq, ack = 1, len = len);
        let seg = s.take(0).unwrap();
        furthest = furthest.max(seg.ack.unwrap() + (u32::from(seg.window.unwrap()) << 7));
    }
    assert!(furthest > 65_536 && furthest - 200 <= 65_536, "{furthest}");
    send!(s, 1, "A", furthest - 10, ack = 1, len = 10);
    recv!(s, 1, "A", 1, ack = 200, sack = [(furthest - 10, furthest)]);
    send!(s, 2, "A", furthest, ack = 1, len = 10);
    assert_eq!(s.take(2).unwrap().sack, [(furthest - 10, furthest)], "and what lies beyond is not");
}

// Shows: RFC5681-3.1-5
#[test]
fn the_threshold_of_slow_start_begins_without_bounds() {
    for combination in ["sack/reno", "sack/cubic", "rack/cubic"] {
        let mut config = plain();
        config.sender.combination = combination.parse().unwrap();
        let s = Script::established(&config);
        assert_eq!(s.conn.info(s.now).ssthresh, None);
    }
}

// Shows: RFC2018-5-3, RFC2018-8-4, RFC6675-4-1
#[test]
fn sacked_data_is_kept_until_it_is_acknowledged() {
    let mut s = Script::established(&plain());
    s.write(3000);
    for n in 0..3 {
        assert_eq!(s.take(0).unwrap().data, stream(1 + n * 1000, 1000));
    }
    send!(s, 10, "A", 1, ack = 1, sack = [(1, 3001)]);
    let info = s.conn.info(s.now);
    assert_eq!((info.sacked, s.conn.held()), (ByteCount(3000), ByteCount(3000)));
    // The peer drops the data; each segment is acknowledged when it is retransmitted.
    recv!(s, s.conn.poll_timeout().unwrap().as_millis(), "A", 1, ack = 1, len = 1000);
    let ms = s.now.as_millis();
    recv_nothing!(s, ms + 5);
    send!(s, ms + 10, "A", 1, ack = 1001);
    recv!(s, ms + 10, "A", 1001, ack = 1, len = 1000);
    recv!(s, ms + 10, "PA", 2001, ack = 1, len = 1000);
    send!(s, ms + 20, "A", 1, ack = 3001);
    assert_eq!((s.conn.held(), s.counters.tcp_ext_timeouts), (ByteCount::ZERO, 1));
}

// Shows: RFC2018-8-3
#[test]
fn sack_blocks_omit_data_that_was_not_stored() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 101, ack = 1, len = 100);
    recv!(s, 0, "A", 1, ack = 1, sack = [(101, 201)]);
    s.conn.set_out_of_order_room(ByteCount(0));
    send!(s, 1, "A", 301, ack = 1, len = 100);
    recv!(s, 1, "A", 1, ack = 1, sack = [(101, 201)]);
    send!(s, 2, "A", 1, ack = 1, len = 100);
    recv!(s, 2, "A", 1, ack = 201);
    assert_eq!(s.read(), stream(1, 200));
}
