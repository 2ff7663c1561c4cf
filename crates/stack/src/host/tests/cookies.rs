//! A full backlog: SYN cookies instead of state (RFC 4987).

use std::ops::RangeInclusive;

use airtcp_types::rng::Stream;
use airtcp_wire::options::{TcpOptions, Timestamps};

use super::*;
use crate::logged::logged;
use crate::tcp::{Offer, State, TcpConfig};

const TO: &str = "10.0.0.1:80";

/// A SYN from a port of a stranger.
fn syn_from(port: u16) -> Packet {
    tcp::emit(&stranger(port), 64, &syn(), &[])
}

fn stranger(port: u16) -> FlowId {
    FlowId { local: SocketAddr::from(([10, 0, 0, 9], port)), remote: address(TO) }
}

impl Pair {
    /// Two hosts, and a listener whose backlog is filled by strangers' SYNs.
    fn flooded(client: TcpConfig) -> (Self, SocketId) {
        let mut pair = Self::new();
        pair.client.config.tcp = client;
        let listener = pair.server.tcp_listen(address(TO), 2).unwrap();
        pair.flood(1..=2);
        while pair.server.poll_transmit(pair.now).is_some() {}
        (pair, listener)
    }

    fn flood(&mut self, ports: RangeInclusive<u16>) {
        for port in ports {
            self.server.handle_packet(self.now, PORT, syn_from(port));
        }
    }

    /// The server's answers to one packet.
    fn answer(&mut self, packet: Packet) -> Vec<Packet> {
        self.server.handle_packet(self.now, PORT, packet);
        std::iter::from_fn(|| self.server.poll_transmit(self.now).map(|(_, p)| p)).collect()
    }

    /// The sequence number of the server's answer to a stranger's SYN.
    #[track_caller]
    fn cookie(&mut self, port: u16) -> SeqNumber {
        let answers = self.answer(syn_from(port));
        assert_eq!(answers.len(), 1);
        let segment = read_segment(&answers[0]);
        assert!(segment.flags.syn && segment.flags.ack && segment.ack == syn().seq + 1);
        segment.seq
    }

    /// A stranger's ACK of `number`, with `data`.
    fn ack(&mut self, port: u16, number: SeqNumber, data: &[u8]) -> Vec<Packet> {
        self.ack_behind(port, number, 0, data)
    }

    /// The same for a segment that follows this number of bytes of data.
    fn ack_behind(
        &mut self,
        port: u16,
        number: SeqNumber,
        before: u32,
        data: &[u8],
    ) -> Vec<Packet> {
        let header = Header { seq: syn().seq + 1 + before, ack: Some(number + 1), ..syn() };
        let header = Header { flags: Flags::ACK, ..header };
        self.answer(tcp::emit(&stranger(port), 64, &header, data))
    }
}

#[track_caller]
fn is_reset(answers: &[Packet]) {
    assert!(answers.len() == 1 && read_segment(&answers[0]).flags.rst, "{answers:?}");
}

#[test]
fn a_syn_beyond_the_backlog_gets_a_cookie_and_leaves_no_state() {
    let (mut pair, listener) = Pair::flooded(TcpConfig::default());
    let (held, timers) = (pair.server.held(), pair.server.timers.len());
    let number = pair.cookie(7);
    assert_eq!(pair.server.tcp_connections().count(), 2);
    assert_eq!((pair.server.held(), pair.server.timers.len()), (held, timers));
    // The ACK opens the connection, and its data is accepted.
    let before = pair.server.counters().clone();
    pair.ack(7, number, b"hello");
    let (accepted, peer) = pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
    assert_eq!(peer, stranger(7).local);
    assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, b"hello");
    let moved = moved(&before, pair.server.counters());
    assert!(moved.contains(&"TcpExtSyncookiesRecv") && moved.contains(&"TcpPassiveOpens"));
    let counters = pair.server.counters();
    assert_eq!((counters.tcp_ext_syncookies_sent, counters.tcp_ext_listen_drops), (1, 0));
}

#[test]
fn with_time_stamps_a_cookie_carries_scale_and_sack() {
    let (mut pair, listener) = Pair::flooded(TcpConfig::default());
    // The bits that encode the options replace low bits of the clock.
    for ms in [0, 17, 1_000] {
        pair.now = Instant::from_millis(ms);
        let (stream, accepted) = pair.connect(listener, TO);
        let info = |host: &Host, socket| host.tcp(socket).unwrap().info(pair.now);
        let (client, server) = (info(&pair.client, stream), info(&pair.server, accepted));
        for info in [&client, &server] {
            assert!(info.ts && info.sack);
            assert_eq!((info.wscale, info.mss), ((9, 9), client.mss));
        }
        assert_eq!(server.rtt, None, "when the cookie left is not known");
        pair.carry(stream, accepted);
        pair.server.tcp_send(pair.now, accepted, b"thanks").unwrap();
        pair.exchange();
        assert_eq!(read_all(&mut pair.client, pair.now, stream).0, b"thanks");
    }
    assert_eq!(pair.server.counters().tcp_ext_syncookies_recv, 3);
}

/// The server has no state from which it could retransmit the SYN-ACK.
#[test]
fn an_ack_with_a_cookie_is_accepted_without_data() {
    let (mut pair, listener) = Pair::flooded(TcpConfig::default());
    let config = TcpConfig { defer_accept: Some(Duration::from_secs(5)), ..TcpConfig::default() };
    pair.server.tcp_set_listener_config(listener, config).unwrap();
    let cookie = pair.cookie(3);
    pair.ack(3, cookie, b"");
    assert!(pair.server.tcp_accept(pair.now, listener).unwrap().is_some());
}

#[test]
fn cookies_are_sent_over_ipv6_too() {
    let mut pair = Pair::new();
    let to = "[fd00::1]:80";
    let listener = pair.server.tcp_listen(address(to), 1).unwrap();
    pair.answer(Packet::new(segment(to, &syn())));
    let (stream, accepted) = pair.connect(listener, to);
    assert_eq!(pair.server.counters().tcp_ext_syncookies_recv, 1);
    let info = pair.server.tcp(accepted).unwrap().info(pair.now);
    assert_eq!((info.sack, info.mss), (true, ByteCount(1_440 - 12)));
    pair.client.tcp_send(pair.now, stream, &[7; 5_000]).unwrap();
    pair.pass(Duration::from_secs(1));
    assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, [7; 5_000]);
}

#[test]
fn without_time_stamps_a_cookie_grants_no_option() {
    let (mut pair, listener) =
        Pair::flooded(TcpConfig { timestamps: false, mtu: 1_300, ..TcpConfig::default() });
    let (stream, accepted) = pair.connect(listener, TO);
    for (host, socket) in [(&pair.client, stream), (&pair.server, accepted)] {
        let info = host.tcp(socket).unwrap().info(pair.now);
        assert_eq!((info.ts, info.sack, info.wscale), (false, false, (0, 0)));
    }
    let mss = pair.server.tcp(accepted).unwrap().info(pair.now).mss;
    assert_eq!(mss, ByteCount(1_220), "the class below 1260");
    pair.server.tcp_send(pair.now, accepted, &[7; 5_000]).unwrap();
    pair.pass(Duration::from_secs(1));
    assert_eq!(read_all(&mut pair.client, pair.now, stream).0, [7; 5_000]);
}

#[test]
fn options_that_a_cookie_cannot_carry_are_off() {
    let willing =
        TcpConfig { hack: Offer::Always, tx_numbers: Offer::Always, ..Default::default() };
    let (mut pair, listener) = Pair::flooded(willing.clone());
    pair.server.config.tcp = willing;
    let (stream, accepted) = pair.connect(listener, TO);
    for (host, socket) in [(&pair.client, stream), (&pair.server, accepted)] {
        let info = host.tcp(socket).unwrap().info(pair.now);
        assert_eq!((info.hack, info.tx_numbers, info.sack), (false, false, true));
    }
}

#[test]
fn a_cookie_is_good_for_two_periods_at_most() {
    for (seconds, good) in [(0, true), (63, true), (127, true), (128, false)] {
        let (mut pair, _) = Pair::flooded(TcpConfig::default());
        let number = pair.cookie(7);
        pair.now = Instant::from_millis(1_000 * seconds);
        // Another cookie keeps the listener accepting cookies.
        pair.cookie(8);
        let answers = pair.ack(7, number, b"x");
        let known =
            pair.server.tcp_connections().any(|(flow, _)| flow == streams::swapped(stranger(7)));
        assert_eq!(known, good, "after {seconds} s");
        if !good {
            is_reset(&answers);
            assert_eq!(pair.server.counters().tcp_ext_syncookies_failed, 1);
        }
    }
}

#[test]
fn forged_cookies_are_reset_and_counted() {
    let (mut pair, listener) = Pair::flooded(TcpConfig::default());
    // Before a cookie was sent, no ACK is accepted as one.
    is_reset(&pair.ack(7, SeqNumber(77), b""));
    assert_eq!(pair.server.counters().tcp_ext_syncookies_failed, 0);
    let number = pair.cookie(7);
    let mut random = Stream::new(4, 0);
    for _ in 0..10_000 {
        is_reset(&pair.ack(7, SeqNumber(random.next_u64() as u32), b"x"));
    }
    is_reset(&pair.ack(8, number, b"x"));
    let counters = pair.server.counters();
    assert_eq!((counters.tcp_ext_syncookies_failed, counters.tcp_ext_syncookies_recv), (10_001, 0));
    assert_eq!(pair.server.tcp_accept(pair.now, listener), Ok(None));
    // The valid cookie is still accepted.
    pair.ack(7, number, b"x");
    assert!(pair.server.tcp_accept(pair.now, listener).unwrap().is_some());
}

#[test]
fn where_too_many_wait_to_be_accepted_a_cookie_opens_nothing() {
    let (mut pair, listener) = Pair::flooded(TcpConfig::default());
    let numbers = [7, 8, 9].map(|port| pair.cookie(port));
    pair.ack(7, numbers[0], b"x");
    pair.ack(8, numbers[1], b"x");
    assert!(pair.ack(9, numbers[2], b"x").is_empty(), "it is not reset either");
    assert!(pair.ack_behind(9, numbers[2], 1, b"y").is_empty(), "nor by what follows");
    let counters = pair.server.counters();
    assert_eq!((counters.tcp_ext_listen_overflows, counters.tcp_ext_listen_drops), (2, 2));
    // A SYN is not answered either, because its ACK could not be accepted.
    assert!(pair.answer(syn_from(10)).is_empty());
    pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
    pair.ack(9, numbers[2], b"y");
    pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
    let (_, peer) = pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
    assert_eq!(peer, stranger(9).local);
}

#[test]
fn an_ack_of_a_cookie_goes_before_a_half_open_connection_of_the_same_peer() {
    let (mut pair, listener) = Pair::flooded(TcpConfig::default());
    let number = pair.cookie(7);
    // The two strangers give up; the SYN arrives again, and now becomes a half-open connection.
    pair.now = Instant::from_millis(10);
    for port in [1, 2] {
        let header = Header { seq: syn().seq + 1, ..syn() };
        let header = Header { flags: Flags { rst: true, ..Flags::default() }, ..header };
        pair.answer(tcp::emit(&stranger(port), 64, &header, &[]));
    }
    let again = pair.answer(syn_from(7));
    assert!(read_segment(&again[0]).seq != number && pair.server.tcp_connections().count() == 1);
    let lines = logged(|| assert!(pair.ack(7, number, b"").is_empty()));
    assert!(lines[0].contains("late SYN cookie received"), "{lines:?}");
    assert!(lines[1].contains("valid SYN cookie received"), "{lines:?}");
    let counters = pair.server.counters();
    assert_eq!((counters.tcp_ext_syncookies_late, counters.tcp_ext_syncookies_recv), (1, 1));
    let (accepted, _) = pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
    let states: Vec<_> = pair.server.tcp_connections().map(|(_, state)| state).collect();
    assert_eq!(states, [State::Established]);
    pair.ack(7, number, b"data");
    assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, b"data");
}

#[test]
fn a_time_wait_is_kept_where_what_replaces_it_would_begin_with_a_cookie() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 2).unwrap();
    let (stream, accepted) = pair.connect(listener, TO);
    let flow = pair.client.tcp(stream).unwrap().flow();
    pair.server.tcp_close(pair.now, accepted).unwrap();
    pair.exchange();
    pair.client.tcp_close(pair.now, stream).unwrap();
    pair.exchange();
    pair.flood(1..=2);
    pair.now += Duration::from_secs(5);
    let header = Header { seq: pair.client.secret.isn(pair.now, &flow), ..syn() };
    while pair.server.poll_transmit(pair.now).is_some() {}
    assert!(pair.answer(tcp::emit(&flow, 64, &header, &[])).is_empty());
    let counters = pair.server.counters();
    assert_eq!((counters.tcp_ext_tw_recycled, counters.tcp_ext_listen_overflows), (0, 1));
    assert!(pair.server.tcp_connections().any(|(_, state)| state == State::TimeWait));
}

#[test]
fn a_syn_flood_takes_no_memory_and_a_flow_continues() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 64).unwrap();
    let (stream, accepted) = pair.connect(listener, TO);
    let sent: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
    let (mut queued, mut got) = (0, Vec::new());
    let mut strangers = 0u32;
    while got.len() < sent.len() {
        queued += pair.server.tcp_send(pair.now, accepted, &sent[queued..]).unwrap_or(0);
        for _ in 0..200 {
            strangers += 1;
            let [_, a, b, c] = strangers.to_be_bytes();
            let flow = FlowId { local: SocketAddr::from(([198, a, b, c], 9)), ..stranger(9) };
            let packet = tcp::emit(&flow, 64, &syn(), &[]);
            pair.server.handle_packet(pair.now, PORT, packet);
        }
        // Answers to strangers are lost.
        pair.pass(Duration::from_millis(5));
        got.extend(read_all(&mut pair.client, pair.now, stream).0);
    }
    assert_eq!(got, sent);
    assert_eq!(pair.server.tcp_connections().count(), 1 + 64);
    let info = pair.server.tcp(accepted).unwrap().info(pair.now);
    assert_eq!((info.retrans, pair.server.counters().tcp_ext_timeouts), (0, 0));
    // A new client can connect.
    let (_, newcomer) = pair.connect(listener, TO);
    assert!(pair.server.tcp(newcomer).unwrap().info(pair.now).sack);
}

#[test]
fn answers_to_a_flood_leave_in_turns_with_a_flows_data() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 2).unwrap();
    let (_, accepted) = pair.connect(listener, TO);
    pair.flood(1..=2);
    while pair.server.poll_transmit(pair.now).is_some() {}
    pair.flood(3..=100);
    pair.server.tcp_send(pair.now, accepted, &[7; 5_000]).unwrap();
    let first: Vec<_> = (0..6)
        .map(|_| read_segment(&pair.server.poll_transmit(pair.now).unwrap().1).payload.len())
        .collect();
    assert_eq!(first.iter().filter(|len| **len > 0).count(), 3, "{first:?}");
}

#[test]
fn options_of_a_syn_come_back_whatever_they_are() {
    for scale in [None, Some(0), Some(3), Some(14), Some(200)] {
        for sack_permitted in [false, true] {
            let (mut pair, listener) = Pair::flooded(TcpConfig::default());
            let mut header = syn();
            header.options = TcpOptions {
                mss: Some(1_460),
                window_scale: scale,
                sack_permitted,
                timestamps: Some(Timestamps { val: 5, ecr: 0 }),
                ..TcpOptions::default()
            };
            let answers = pair.answer(tcp::emit(&stranger(7), 64, &header, &[]));
            let answer = read_segment(&answers[0]);
            let ours = answer.options.timestamps.unwrap();
            assert_eq!(ours.ecr, 5);
            assert_eq!(answer.options.window_scale.is_some(), scale.is_some());
            let timestamps = Some(Timestamps { val: 6, ecr: ours.val });
            let options = TcpOptions { timestamps, ..TcpOptions::default() };
            let header = Header { seq: syn().seq + 1, ack: Some(answer.seq + 1), ..syn() };
            let header = Header { flags: Flags::ACK, options, ..header };
            pair.answer(tcp::emit(&stranger(7), 64, &header, &[]));
            let (accepted, _) = pair.server.tcp_accept(pair.now, listener).unwrap().unwrap();
            let info = pair.server.tcp(accepted).unwrap().info(pair.now);
            let scales = scale.map_or((0, 0), |scale: u8| (scale.min(14), 9));
            assert_eq!((info.ts, info.sack, info.wscale), (true, sack_permitted, scales));
        }
    }
}
