//! Data that the application holds back (`TCP_CORK`, `MSG_MORE`), and the limit of unsent data
//! (`TCP_NOTSENT_LOWAT`).

use super::*;

impl Script {
    /// Writes the next `len` bytes of the stream, with the indication that more follows.
    #[track_caller]
    fn write_more(&mut self, len: usize) {
        let data = stream(self.written, len);
        assert_eq!(self.conn.send_more(self.now, &data, &mut self.outlet), Ok(len));
        self.written += len as u32;
    }
}

#[test]
fn a_cork_lets_full_segments_leave_and_the_rest_when_it_is_drawn() {
    let mut s = Script::established(&plain());
    s.conn.set_cork(true);
    s.write(40);
    recv_nothing!(s, 0);
    s.write(2000);
    // The first write ends in the first segment.
    recv!(s, 0, "PA", 1, ack = 1, len = 1000);
    recv!(s, 0, "A", 1001, ack = 1, len = 1000);
    recv_nothing!(s, 0);
    send!(s, 10, "A", 1, ack = 2001);
    recv_nothing!(s, 50);
    assert!(s.conn.cork());
    s.conn.set_cork(false);
    recv!(s, 50, "PA", 2001, ack = 1, len = 40);
}

#[test]
fn held_data_is_sent_by_a_timer_if_nothing_is_outstanding() {
    let mut s = Script::established(&plain());
    s.conn.set_cork(true);
    s.write(40);
    recv_nothing!(s, 0);
    let rto = s.conn.send.rto().as_millis() as u64;
    s.advance(rto / 2);
    s.write(2);
    recv_nothing!(s, rto - 1);
    recv!(s, rto, "PA", 1, ack = 1, len = 42);
    // Later data waits again.
    send!(s, rto + 10, "A", 1, ack = 43);
    s.write(7);
    recv_nothing!(s, rto + 11);
    assert!(s.conn.cork());
}

#[test]
fn turning_nagle_off_lets_what_is_held_back_leave_and_a_fin_does() {
    let mut s = Script::established(&plain());
    s.conn.set_cork(true);
    s.write(40);
    s.conn.set_nodelay(true);
    recv!(s, 0, "PA", 1, ack = 1, len = 40);
    s.write(40);
    recv_nothing!(s, 0);
    s.conn.shutdown(s.now);
    recv!(s, 0, "FPA", 41, ack = 1, len = 40);
}

#[test]
fn a_write_that_more_follows_waits_for_it() {
    let mut config = plain();
    config.nodelay = true;
    let mut s = Script::established(&config);
    s.write_more(100);
    recv_nothing!(s, 0);
    s.write_more(160);
    recv_nothing!(s, 5);
    s.write(5);
    recv!(s, 5, "PA", 1, ack = 1, len = 265);
    send!(s, 10, "A", 1, ack = 266);
    // An ACK releases the data, without PSH: no write has ended.
    s.write_more(1050);
    recv!(s, 10, "A", 266, ack = 1, len = 1000);
    recv_nothing!(s, 12);
    send!(s, 20, "A", 1, ack = 1266);
    recv!(s, 20, "A", 1266, ack = 1, len = 50);
    // A time-out releases it, as the end of a write.
    send!(s, 30, "A", 1, ack = 1316);
    s.write_more(9);
    recv_nothing!(s, 30);
    let rto = s.conn.send.rto();
    s.now = s.conn.poll_timeout().unwrap();
    assert_eq!(s.now, Instant::from_millis(30) + rto);
    s.conn.on_timeout(s.now, &mut s.counters);
    let packet = s.conn.poll_transmit(s.now, &mut s.counters, &mut s.outlet).unwrap();
    let seg = Seg::from_packet(&packet.data);
    assert_eq!((seg.flags, seg.seq, seg.data.len()), ("PA", 1316, 9));
}

#[test]
fn no_more_is_taken_than_may_wait_to_be_sent() {
    let mut config = plain();
    config.not_sent_low_water = Some(ByteCount(4000));
    let mut s = Script::established(&config);
    assert_eq!(s.conn.not_sent_low_water(), Some(ByteCount(4000)));
    let data = stream(1, 30_000);
    let take = |s: &mut Script| s.conn.send(s.now, &data, &mut s.outlet);
    assert_eq!(take(&mut s), Ok(4000));
    assert_eq!(take(&mut s), Err(TcpError::WouldBlock));
    assert!(!s.conn.readiness().writable);
    // A writer is woken when less than half of the limit is unsent: 2000 bytes are not less.
    assert!(s.take(0).is_some() && s.take(0).is_some());
    assert!(!s.conn.readiness().writable);
    assert!(s.take(0).is_some());
    assert!(s.conn.readiness().writable);
    assert_eq!(take(&mut s), Ok(3000));
    s.conn.set_not_sent_low_water(None);
    assert_eq!((take(&mut s), s.conn.not_sent_low_water()), (Ok(30_000), None));
}

#[test]
fn the_send_buffer_is_the_limit_while_all_of_it_was_sent_and_the_application_has_more() {
    let mut s = Script::established(&plain());
    s.conn.set_send_buffer(ByteCount(2000));
    let data = stream(1, 5000);
    let limited = |s: &Script| s.conn.info(s.now).sndbuf_limited.as_millis();
    assert_eq!(s.conn.send(s.now, &data, &mut s.outlet), Ok(2000));
    recv!(s, 0, "A", 1, ack = 1, len = 1000);
    recv!(s, 0, "PA", 1001, ack = 1, len = 1000);
    recv_nothing!(s, 0);
    recv_nothing!(s, 10);
    assert_eq!(limited(&s), 10);
    // There is room: time in which the application does not write does not count.
    send!(s, 20, "A", 1, ack = 2001);
    recv_nothing!(s, 20);
    recv_nothing!(s, 30);
    assert_eq!(limited(&s), 20);
    assert_eq!(s.conn.send(s.now, &data[2000..3000], &mut s.outlet), Ok(1000));
    recv!(s, 30, "PA", 2001, ack = 1, len = 1000);
    recv_nothing!(s, 40);
    assert_eq!(limited(&s), 20);
}

#[test]
fn buffers_are_set_while_the_connection_lives() {
    let mut s = Script::established(&plain());
    s.conn.set_send_buffer(ByteCount(2500));
    let data = stream(1, 30_000);
    assert_eq!(s.conn.send(s.now, &data, &mut s.outlet), Ok(2500));
    s.conn.set_receive_buffer(ByteCount(3000));
    send!(s, 0, "A", 1, ack = 1, len = 1000);
    recv!(s, 0, "A", 1, ack = 1001, len = 1000);
    assert_eq!(s.conn.info(s.now).rcv_space, ByteCount(3000));
}
