//! Flow control in both directions.

use super::*;

// Shows: RFC9293-MUST-36, RFC9293-MUST-37, RFC9293-SHLD-29, RFC9293-SHLD-30
#[test]
fn a_closed_window_is_probed_without_end_while_the_peer_answers() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 1, ack = 1, window = 0);
    s.write(1500);
    recv_nothing!(s, 0);
    let mut ms = 0;
    let mut pause = 200;
    for _ in 0..40 {
        ms += pause;
        pause = (pause * 2).min(120_000);
        recv!(s, ms, "A", 0, ack = 1);
        recv_nothing!(s, ms);
        assert_eq!(s.conn.info(s.now).probes, 1);
        send!(s, ms, "A", 1, ack = 1, window = 0);
        assert_eq!(s.conn.info(s.now).probes, 0);
    }
    assert_eq!(s.counters.tcp_ext_win_probe, 40);
    send!(s, ms + 1, "A", 1, ack = 1, window = 5000);
    recv!(s, ms + 1, "A", 1, ack = 1, len = 1000);
    assert!(s.conn.info(s.now).rwnd_limited >= Duration::from_secs(120));
}

#[test]
fn a_peer_that_answers_no_probe_is_gone() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 1, ack = 1, window = 0);
    s.write(10);
    recv_nothing!(s, 0);
    let mut probes = 0;
    while let Some(at) = s.conn.poll_timeout() {
        s.now = at;
        s.conn.on_timeout(at, &mut s.counters);
        probes += u32::from(s.conn.poll_transmit(at, &mut s.counters, &mut s.outlet).is_some());
    }
    assert_eq!((probes, s.conn.error()), (15, Some(TcpError::TimedOut)));
}

// Shows: RFC9293-MUST-38, RFC5681-2, RFC7323-2.4-4
#[test]
fn data_leaves_no_further_than_the_peer_allows() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 1, ack = 1, window = 2500);
    s.write(5000);
    recv!(s, 0, "A", 1, ack = 1, len = 1000);
    recv!(s, 0, "A", 1001, ack = 1, len = 1000);
    // A window of 500 bytes is too small to use (RFC 9293 section 3.8.6.2.1).
    recv_nothing!(s, 0);
    send!(s, 1, "A", 1, ack = 2001, window = 3000);
    recv!(s, 1, "A", 2001, ack = 1, len = 1000);
    recv!(s, 1, "A", 3001, ack = 1, len = 1000);
    recv!(s, 1, "PA", 4001, ack = 1, len = 1000);
    recv_nothing!(s, 1);
}

// Shows: RFC9293-MUST-38
#[test]
fn a_silly_window_that_stays_is_used_after_a_while() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 1, ack = 1, window = 100);
    s.write(5000);
    recv_nothing!(s, 0);
    recv_nothing!(s, 199);
    recv!(s, 200, "A", 1, ack = 1, len = 100);
    recv_nothing!(s, 200);
    send!(s, 210, "A", 1, ack = 101, window = 1000);
    recv!(s, 210, "A", 101, ack = 1, len = 1000);
}

// Shows: RFC9293-MUST-34, RFC9293-MUST-35, RFC9293-SHLD-15, RFC7323-2.4-1
#[test]
fn a_window_that_shrinks_is_borne() {
    let mut s = Script::established(&plain());
    s.write(3000);
    (0..3).for_each(|_| assert!(s.take(0).is_some()));
    s.write(1000);
    send!(s, 1, "A", 1, ack = 1001, window = 500);
    recv_nothing!(s, 100);
    send!(s, 101, "A", 1, ack = 3001, window = 0);
    recv_nothing!(s, 101);
    let probe = s.conn.poll_timeout().unwrap().as_millis() + 1;
    s.conn.on_timeout(Instant::from_millis(probe), &mut s.counters);
    recv!(s, probe, "A", 3000, ack = 1);
    send!(s, probe, "A", 1, ack = 3001, window = 1000);
    recv!(s, probe, "PA", 3001, ack = 1, len = 1000);
}

#[test]
fn an_old_segment_does_not_change_the_window() {
    let mut s = Script::established(&plain());
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 1, len = 10);
    send!(s, 1, "A", 1, ack = 11, window = 7000);
    send!(s, 1, "A", 1, ack = 1, window = 3);
    assert_eq!(s.conn.info(s.now).snd_wnd, ByteCount(7000));
}

#[test]
fn an_ack_that_advances_brings_its_window_though_its_data_is_old() {
    let mut s = Script::established(&plain());
    s.write(20);
    recv!(s, 0, "PA", 1, ack = 1, len = 20);
    send!(s, 1, "A", 101, ack = 1, len = 10);
    recv!(s, 1, "A", 21, ack = 1, sack = [(101, 111)]);
    send!(s, 2, "A", 1, ack = 21, len = 100, window = 7000);
    assert_eq!(s.conn.info(s.now).snd_wnd, ByteCount(7000));
}

#[test]
fn a_peer_without_scaling_is_sent_no_updates_that_say_nothing() {
    let config = TcpConfig { initial_window: ByteCount::from_mib(1), ..plain() };
    let mut s = Script::established(&config);
    assert_eq!(s.conn.info(s.now).rcv_space, ByteCount(65_535));
    send!(s, 0, "A", 1, ack = 1, len = 100);
    recv!(s, 0, "A", 1, ack = 101);
    s.read();
    recv_nothing!(s, 0);
}

// Shows: RFC7323-2.3-3, RFC7323-2.3-1, RFC7323-2.3-2
#[test]
fn windows_are_scaled_both_ways() {
    let config = TcpConfig { window_scaling: true, ..plain() };
    let syn = Seg { wscale: Some(10), ..Script::syn_of(&config) };
    let mut s = Script::connecting(&config);
    let wire = syn.to_wire();
    s.conn = Connection::accept(s.now, flow(), ISS, TS_OFFSET, &config, &wire.segment(&syn.data));
    recv!(s, 0, "SA", 0, ack = 1, mss = 1000, wscale = 9, sack_permitted = true, window = 65_535);
    send!(s, 0, "A", 1, ack = 1, window = 2);
    assert_eq!(s.conn.info(s.now).snd_wnd, ByteCount(2048));
    send!(s, 0, "A", 1, ack = 1, len = 1000, window = 2);
    // 64,535 bytes of the buffer are free: 127 units of 512, rounded up so that the edge does not
    // move left.
    recv!(s, 0, "A", 1, ack = 1001, window = 127);
}

fn small() -> TcpConfig {
    TcpConfig { initial_window: ByteCount(2000), receive_buffer: ByteCount(2000), ..plain() }
}

// Shows: RFC9293-MUST-39
#[test]
fn our_window_closes_is_probed_and_opens_by_a_worthwhile_step() {
    let mut s = Script::established(&small());
    send!(s, 0, "A", 1, ack = 1, len = 1000);
    recv!(s, 0, "A", 1, ack = 1001, window = 1000);
    send!(s, 0, "A", 1001, ack = 1, len = 1000);
    recv!(s, 0, "A", 1, ack = 2001, window = 0);
    // A probe as Linux sends it, and a probe with one byte of data.
    send!(s, 200, "A", 2000, ack = 1);
    recv!(s, 200, "A", 1, ack = 2001, window = 0);
    send!(s, 900, "A", 2001, ack = 1, len = 1);
    recv!(s, 900, "A", 1, ack = 2001, window = 0);
    let mut buf = [0; 999];
    assert_eq!(s.conn.recv(s.now, &mut buf), Ok(999));
    recv_nothing!(s, 901);
    assert_eq!(s.conn.recv(s.now, &mut buf[..1]), Ok(1));
    recv!(s, 901, "A", 1, ack = 2001, window = 1000);
    assert_eq!(s.counters.tcp_ext_to_zero_window_adv, 1);
    assert_eq!(s.counters.tcp_ext_from_zero_window_adv, 1);
}

#[test]
fn an_ack_on_a_segment_beyond_our_closed_window_still_counts() {
    let mut s = Script::established(&small());
    send!(s, 0, "A", 1, ack = 1, len = 2000);
    recv!(s, 0, "A", 1, ack = 2001, window = 0);
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 2001, len = 10);
    send!(s, 1, "A", 2001, ack = 11, len = 500);
    assert_eq!(s.conn.info(s.now).unacked, ByteCount(0));
    recv!(s, 1, "A", 11, ack = 2001, window = 0);
    assert_eq!(s.read(), stream(1, 2000), "and its data does not");
}

#[test]
fn data_beyond_the_window_is_cut_off() {
    let mut s = Script::established(&small());
    send!(s, 0, "A", 1, ack = 1, len = 3000);
    recv!(s, 0, "A", 1, ack = 2001, window = 0);
    send!(s, 1, "A", 9000, ack = 1, len = 10);
    recv!(s, 1, "A", 1, ack = 2001);
    assert_eq!(s.read(), stream(1, 2000));
}

#[test]
fn memory_pressure_keeps_the_buffer_as_it_is() {
    let config = TcpConfig { initial_window: ByteCount(4000), ..plain() };
    for (pressure, expected) in [(true, 4000), (false, 8000)] {
        let mut s = Script::established(&config);
        s.conn.set_memory_pressure(pressure);
        send!(s, 0, "A", 1, ack = 1, len = 3000);
        s.read();
        assert_eq!(s.conn.info(s.now).rcv_space, ByteCount(expected));
    }
}

// Shows: RFC9293-SHLD-14
#[test]
fn memory_pressure_holds_the_window_back_but_does_not_stop_the_peer() {
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 1, ack = 1, len = 1000);
    recv!(s, 0, "A", 1, ack = 1001, window = 64_535);
    s.conn.set_memory_pressure(true);
    for n in 1..100u32 {
        send!(s, 0, "A", 1 + n * 1000, ack = 1, len = 1000);
        s.read();
        let left = 64_535u32.saturating_sub(n * 1000).max(2_000);
        let offered = u32::from(s.take(0).unwrap().window.unwrap());
        // An offered window is not withdrawn; then the window advances in steps of a segment.
        assert!(offered <= left && offered + 1000 > left, "{offered} of {left}");
    }
}

// Shows: RFC9293-MUST-39
#[test]
fn reading_in_small_bites_sends_one_update() {
    let mut s = Script::established(&small());
    send!(s, 0, "A", 1, ack = 1, len = 2000);
    recv!(s, 0, "A", 1, ack = 2001, window = 0);
    assert_eq!(s.read().len(), 2000);
    recv!(s, 0, "A", 1, ack = 2001, window = 2000);
    recv_nothing!(s, 0);
}

#[test]
fn data_discarded_by_a_closed_window_is_resent_at_once_when_it_opens() {
    let mut s = Script::established(&plain());
    s.write(2000);
    recv!(s, 0, "A", 1, ack = 1, len = 1000);
    recv!(s, 0, "PA", 1001, ack = 1, len = 1000);
    send!(s, 1, "A", 1, ack = 1, window = 0);
    let mut ms = 0;
    for _ in 0..8 {
        ms = s.conn.poll_timeout().unwrap().as_millis();
        recv!(s, ms, "A", 1, ack = 1, len = 1000);
        send!(s, ms, "A", 1, ack = 1, window = 0);
    }
    send!(s, ms + 1, "A", 1, ack = 1, window = 5000);
    recv!(s, ms + 1, "A", 1, ack = 1, len = 1000);
    recv_nothing!(s, ms + 1);
    // Only once, however often it closes and opens. If that segment is lost, the timer has its
    // initial value.
    send!(s, ms + 2, "A", 1, ack = 1, window = 0);
    send!(s, ms + 3, "A", 1, ack = 1, window = 5000);
    recv_nothing!(s, ms + 3);
    let again = s.conn.poll_timeout().unwrap().as_millis();
    assert_eq!(again - (ms + 1), 200);
    recv!(s, again, "A", 1, ack = 1, len = 1000);
    send!(s, again + 1, "A", 1, ack = 1001, window = 5000);
    recv!(s, again + 1, "PA", 1001, ack = 1, len = 1000);
}

// Shows: RFC9293-SHLD-17
#[test]
fn a_window_that_closed_under_sent_data_is_waited_for_as_well() {
    let mut s = Script::established(&plain());
    s.write(10);
    recv!(s, 0, "PA", 1, ack = 1, len = 10);
    for _ in 0..40 {
        let ms = s.conn.poll_timeout().unwrap().as_millis();
        recv!(s, ms, "PA", 1, ack = 1, len = 10);
        send!(s, ms, "A", 1, ack = 1, window = 0);
    }
    assert_eq!(s.conn.state(), State::Established);
}
