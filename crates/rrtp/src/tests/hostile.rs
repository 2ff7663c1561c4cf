//! Attacks by unknown peers: forgery, replay and floods.

use airtcp_types::rng::Stream;

use super::*;
use crate::wire::{
    self, Body, Cookie, Counts, Data, Feedback, Lost, LostWriter, Params, Report, ReportKind,
    Train, VERSION,
};
use crate::{ConnectionError, NetworkKind, NetworkProfile};

fn encode(connection: u64, body: Body<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::Packet { connection, rtt: 0, body }.encode(&mut bytes);
    bytes
}

fn server() -> Endpoint {
    let mut server = Endpoint::new(Limits::default(), [2; 16]);
    server.listen(Some(Config::default()));
    server
}

fn address(number: u32) -> SocketAddr {
    SocketAddr::from((number.to_be_bytes(), 9))
}

fn drain(endpoint: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut out = Vec::new();
    while endpoint.poll_transmit(now, &mut out).is_some() {
        all.push(std::mem::take(&mut out));
    }
    all
}

/// Returns the number of SYNs in a flood; `RRTP_FLOOD` overrides it.
#[expect(clippy::disallowed_methods, reason = "how long a test runs")]
fn flood() -> u32 {
    std::env::var("RRTP_FLOOD").ok().and_then(|count| count.parse().ok()).unwrap_or(20_000)
}

#[test]
fn spoofed_syns_leave_nothing_and_no_reply_is_larger() {
    let mut server = server();
    let now = Instant::from_millis(1);
    for number in 0..flood() {
        let syn = encode(number.into(), Body::Syn { sent: number });
        server.handle_datagram(now, address(number), &syn);
        if number % 3 != 0 {
            continue;
        }
        for reply in drain(&mut server, now) {
            assert!(reply.len() <= syn.len());
        }
    }
    // Responses are not sent for a while: the queue stays bounded.
    for number in 0..flood() {
        server.handle_datagram(now, address(number), &encode(1, Body::Syn { sent: 0 }));
    }
    assert!(server.replies_waiting() <= 1_024);
    assert!(server.counters().replies_dropped > 0);
    drain(&mut server, now);
    assert_eq!((server.connections(), server.memory(), server.poll_timeout()), (0, 0, None));
    assert_eq!(server.counters().syns, 2 * u64::from(flood()));
}

#[test]
fn legitimate_clients_connect_in_a_flood() {
    let mut world = world("delay 10ms", "delay 10ms", [10_000, 10_000], with(|_| {}));
    for number in 0..flood() {
        let syn = encode(number.into(), Body::Syn { sent: 0 });
        let now = world.now;
        world.ends[1].endpoint.handle_datagram(now, address(number), &syn);
        drain(&mut world.ends[1].endpoint, now);
    }
    world.finish_within(Duration::from_secs(5));
}

/// Returns a cookie that the server made for this address and id.
fn cookie_of(server: &mut Endpoint, now: Instant, from: SocketAddr, id: u64) -> Cookie {
    server.handle_datagram(now, from, &encode(id, Body::Syn { sent: 0 }));
    // Responses to unknown peers are sent first.
    let reply = drain(server, now).swap_remove(0);
    match wire::Packet::decode(&reply).unwrap().body {
        Body::SynEcho { cookie, .. } => cookie,
        other => panic!("{other:?}"),
    }
}

const PARAMS: Params = Params { packet_size: 1_400, window: 100 };

fn start(id: u64, cookie: Cookie) -> Vec<u8> {
    encode(id, Body::Start { cookie, attempt: 0, params: PARAMS })
}

#[test]
fn a_replayed_start_makes_no_second_connection() {
    let mut server = server();
    let mut now = Instant::from_millis(1);
    let cookie = cookie_of(&mut server, now, address(1), 5);
    let start = start(5, cookie);
    server.handle_datagram(now, address(1), &start);
    server.handle_datagram(now, address(1), &start);
    assert_eq!((server.connections(), server.counters().repeated_start), (1, 1));
    for reply in drain(&mut server, now) {
        assert!(reply.len() <= start.len());
    }
    // The connection ends; the START is replayed while its cookie is valid, and after that.
    let id = server.accept().unwrap();
    server.abort(now, id);
    server.release(now, id);
    drain(&mut server, now);
    assert_eq!(server.connections(), 0);
    server.handle_datagram(now, address(1), &start);
    assert_eq!((server.connections(), server.counters().replayed_start), (0, 1));
    now += Duration::from_secs(21);
    server.handle_datagram(now, address(1), &start);
    assert_eq!((server.connections(), server.counters().expired_cookie), (0, 1));
    assert_eq!(server.counters().accepted, 1);
}

#[test]
fn forged_starts_are_refused() {
    let mut server = server();
    let now = Instant::from_millis(1);
    let cookie = cookie_of(&mut server, now, address(1), 5);
    let wrong = Cookie { mac: cookie.mac ^ 1, ..cookie };
    for (from, id, cookie) in [(1, 5, wrong), (2, 5, cookie), (1, 6, cookie)] {
        server.handle_datagram(now, address(from), &start(id, cookie));
        assert!(drain(&mut server, now).is_empty());
    }
    assert_eq!((server.connections(), server.counters().bad_cookie), (0, 3));
}

#[test]
fn a_replayed_start_is_refused_after_many_connections() {
    let mut server = Endpoint::new(Limits::default(), [2; 16]);
    server.listen(Some(Config::default()));
    let mut first = None;
    for number in 0..17_000u32 {
        let now = Instant::from_nanos(1_000_000 + u64::from(number));
        let cookie = cookie_of(&mut server, now, address(number), 5);
        let start = start(5, cookie);
        server.handle_datagram(now, address(number), &start);
        let id = server.accept().unwrap();
        server.abort(now, id);
        server.release(now, id);
        drain(&mut server, now);
        first.get_or_insert(start);
    }
    server.handle_datagram(Instant::from_millis(2), address(0), &first.unwrap());
    assert_eq!((server.connections(), server.counters().replayed_start), (0, 1));
}

/// Returns a world in mid-transfer, and the wire id of the connection.
fn running() -> (World, u64) {
    let mut world = world("delay 5ms", "rate 2mbit delay 5ms", [0, 500_000], with(|_| {}));
    world.run_for(Duration::from_secs(1));
    let id = world.ends[0].endpoint.wire_id(world.ends[0].id.unwrap()).unwrap();
    (world, id)
}

fn data(number: u32, payload: &[u8]) -> Data<'_> {
    Data {
        number,
        transmission: number + 1,
        sent: 0,
        fin: false,
        pause: false,
        rate_bit: false,
        recovery_bit: false,
        train: Train::No,
        nonce: false,
        payload,
    }
}

fn bodies() -> Vec<Body<'static>> {
    let data = Data { fin: true, ..data(0, b"forged") };
    let report = Report {
        kind: ReportKind::Ack,
        next: 0,
        nonce_sum: false,
        limit: 1,
        newest: 0,
        echo: None,
        lost: Lost::default(),
        feedback: None,
    };
    vec![
        Body::Close { code: 0 },
        Body::Data(data),
        Body::Report(report),
        Body::Ping { next: 0, sent: 0 },
        Body::StartEcho { params: PARAMS },
        Body::Versions,
    ]
}

#[test]
fn a_sender_without_the_connection_id_changes_nothing() {
    let (mut world, id) = running();
    let mut guesses = Stream::new(3, 0);
    for _ in 0..200 {
        let guess = guesses.next_u64();
        assert_ne!(guess, id);
        for body in bodies() {
            for (end, from) in [(0, 1), (1, 0)] {
                let (now, from) = (world.now, world.ends[from].at);
                world.ends[end].endpoint.handle_datagram(now, from, &encode(guess, body));
            }
        }
    }
    for end in &world.ends {
        assert_eq!(end.endpoint.counters().unknown_connection, 200 * 6);
    }
    world.finish_within(Duration::from_secs(10));
}

#[test]
fn a_sender_with_the_id_from_another_address_changes_nothing() {
    let (mut world, id) = running();
    for body in bodies() {
        for end in 0..2 {
            let now = world.now;
            world.ends[end].endpoint.handle_datagram(now, address(77), &encode(id, body));
        }
    }
    for end in &world.ends {
        assert_eq!(end.endpoint.counters().wrong_address, 6);
    }
    world.finish_within(Duration::from_secs(10));
}

#[test]
fn a_peer_that_reports_what_never_was_is_not_believed() {
    let (mut world, id) = running();
    let from = world.ends[0].at;
    let before = world.info(1).unwrap();
    for (next, limit, newest) in [(1 << 30, 1 << 30, 1), (1, 0, 1), (1, 500, 1 << 30)] {
        let echo = None;
        let kind = ReportKind::Ack;
        let (nonce_sum, lost, feedback) = (false, Lost::default(), None);
        let report = Report { kind, next, nonce_sum, limit, newest, echo, lost, feedback };
        let now = world.now;
        world.ends[1].endpoint.handle_datagram(now, from, &encode(id, Body::Report(report)));
    }
    assert_eq!(world.ends[1].endpoint.counters().implausible, 3);
    assert_eq!(world.info(1).unwrap().unacknowledged, before.unacknowledged);
    world.finish_within(Duration::from_secs(10));
}

#[test]
fn a_peer_that_ignores_the_window_is_held_to_it() {
    let mut server = Endpoint::new(Limits::default(), [2; 16]);
    let buffer = airtcp_types::ByteCount(100 * 1_400);
    server.listen(Some(Config { receive_buffer: buffer, ..Config::default() }));
    let now = Instant::from_millis(1);
    let cookie = cookie_of(&mut server, now, address(1), 5);
    server.handle_datagram(now, address(1), &start(5, cookie));
    for number in 0..10_000 {
        let data = data(number, &[0; 1_372]);
        server.handle_datagram(now, address(1), &encode(5, Body::Data(data)));
    }
    assert_eq!(server.counters().over_window, 9_900);
    assert!(server.memory() <= 100 * 1_400 + 100 * 24);
}

#[test]
fn a_missing_packet_may_arrive_after_release() {
    for payload in [&b"x"[..], b""] {
        let (mut server, now) = (server(), Instant::from_millis(1));
        let cookie = cookie_of(&mut server, now, address(1), 5);
        server.handle_datagram(now, address(1), &start(5, cookie));
        let id = server.accept().unwrap();
        server.handle_datagram(now, address(1), &encode(5, Body::Data(data(1, b"x"))));
        server.release(now, id);
        server.handle_datagram(now, address(1), &encode(5, Body::Data(data(0, payload))));
        drain(&mut server, now);
        assert!(server.memory() < 100, "its own FIN alone: {}", server.memory());
    }
}

#[test]
fn another_version_is_one_clear_error() {
    let mut client = Endpoint::new(Limits::default(), [1; 16]);
    let now = Instant::ZERO;
    let id = client.connect(now, address(2), Config::default()).unwrap();
    let syn = drain(&mut client, now).pop().unwrap();
    // The client's SYN in the next version: the server responds with its own version, and fewer
    // bytes.
    let other = with_version(syn.clone(), VERSION + 1);
    let mut server = server();
    server.handle_datagram(now, address(1), &other);
    let reply = drain(&mut server, now).pop().unwrap();
    assert!(reply.len() <= other.len());
    assert_eq!(server.counters().bad_version, 1);
    // For the client it is as if the server supported only the next version.
    client.handle_datagram(now, address(2), &with_version(reply, VERSION + 1));
    let theirs = VERSION + 1;
    assert_eq!(client.send(now, id, b"x"), Err(ConnectionError::Version { theirs }.into()));
}

/// Changes the version of a packet.
pub(crate) fn with_version(mut bytes: Vec<u8>, version: u8) -> Vec<u8> {
    bytes[0] = version << 4 | bytes[0] & 15;
    let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..]);
    bytes[12..16].copy_from_slice(&sum.to_be_bytes());
    bytes
}

#[test]
fn many_peers_that_leave_holes_get_no_more_memory_than_there_is() {
    let memory = airtcp_types::ByteCount::from_mib(4);
    let limits = Limits { memory, backlog: 200, ..Limits::default() };
    let mut server = Endpoint::new(limits, [2; 16]);
    server.listen(Some(Config::default()));
    let now = Instant::from_millis(1);
    for peer in 0..100 {
        let cookie = cookie_of(&mut server, now, address(peer), 5);
        server.handle_datagram(now, address(peer), &start(5, cookie));
        for step in 0..60 {
            let number = step * 100 + 99;
            let data = data(number, &[0; 1_372]);
            server.handle_datagram(now, address(peer), &encode(5, Body::Data(data)));
        }
    }
    assert!(server.counters().no_memory > 0);
    assert!(server.memory() <= memory.0 + 100 * 64 * 1_024, "{}", server.memory());
}

#[test]
fn a_peer_that_fills_its_holes_late_gets_no_more_memory_than_there_is() {
    let memory = airtcp_types::ByteCount::from_kib(64);
    for len in [1, 1_372] {
        let mut server = Endpoint::new(Limits { memory, ..Limits::default() }, [2; 16]);
        server.listen(Some(Config::default()));
        let now = Instant::from_millis(1);
        let cookie = cookie_of(&mut server, now, address(1), 5);
        server.handle_datagram(now, address(1), &start(5, cookie));
        for number in (0..400).rev() {
            let data = data(number, &[0; 1_372][..len]);
            server.handle_datagram(now, address(1), &encode(5, Body::Data(data)));
            assert!(server.memory() <= memory.0, "{} at {number}", server.memory());
        }
        assert!(server.counters().no_memory > 0);
        // The data that was accepted is complete and can be read.
        let (id, mut buffer) = (server.accept().unwrap(), vec![0; 1 << 16]);
        let read = server.recv(now, id, &mut buffer).unwrap().unwrap();
        assert!(read >= 40 * len, "{read}");
    }
}

#[test]
fn a_peer_that_asks_for_small_packets_gets_no_more_memory_than_there_is() {
    let memory = airtcp_types::ByteCount::from_kib(64);
    let mut server = Endpoint::new(Limits { memory, ..Limits::default() }, [2; 16]);
    let seed = Some(airtcp_types::Rate::from_bits_per_sec(10_000_000));
    let profile = NetworkProfile { send_rate: seed, ..NetworkProfile::default() };
    server.listen(Some(Config { profile, ..Config::default() }));
    let mut now = Instant::from_millis(1);
    let cookie = cookie_of(&mut server, now, address(1), 5);
    let params = Params { packet_size: 64, window: 1 << 20 };
    let start = encode(5, Body::Start { cookie, attempt: 0, params });
    server.handle_datagram(now, address(1), &start);
    let id = server.accept().unwrap();
    assert!(server.send(now, id, &[0; 1 << 20]).unwrap() > 16 << 10);
    while now < Instant::from_millis(1_000) {
        now += Duration::from_millis(1);
        server.handle_timeout(now);
        drain(&mut server, now);
        assert!(server.memory() <= memory.0, "{} at {now:?}", server.memory());
    }
    assert!(server.info(id).unwrap().packets_sent > 500);
}

#[test]
fn a_packet_far_ahead_draws_no_flood_of_loss_reports() {
    let mut server = server();
    let mut now = Instant::from_millis(1);
    let cookie = cookie_of(&mut server, now, address(1), 5);
    let params = Params { packet_size: 64, window: 1 << 20 };
    let start = encode(5, Body::Start { cookie, attempt: 0, params });
    server.handle_datagram(now, address(1), &start);
    drain(&mut server, now);
    let ahead = encode(5, Body::Data(data(5_990, b"")));
    server.handle_datagram(now, address(1), &ahead);
    let (mut reports, mut bytes) = (0, 0);
    while now < Instant::from_millis(20_000) {
        now += Duration::from_millis(1);
        server.handle_timeout(now);
        for datagram in drain(&mut server, now) {
            let packet = wire::Packet::decode(&datagram).unwrap();
            if let Body::Report(Report { lost, .. }) = packet.body {
                (reports, bytes) = (reports + 1, bytes + datagram.len());
                assert!(lost.ranges().count() <= 10, "{lost:?}");
            }
        }
    }
    assert!(reports > 0 && bytes <= 4 * ahead.len(), "{reports} reports of {bytes} bytes");
}

/// Returns a SACK that acknowledges nothing, with ranges of first packet and count.
fn sack(connection: u64, newest: u32, ranges: &[(u64, u64)]) -> Vec<u8> {
    let mut lost = LostWriter::default();
    ranges.iter().for_each(|(first, count)| lost.push(*first, *count, false));
    let (kind, lost) = (ReportKind::Sack, lost.lost());
    let (next, nonce_sum, limit, echo, feedback) = (0, false, 1, None, None);
    let report = Report { kind, next, nonce_sum, limit, newest, echo, lost, feedback };
    encode(connection, Body::Report(report))
}

#[test]
fn a_report_names_each_lost_packet_once_and_no_more_than_have_room_for_a_range_each() {
    let mut world = world("delay 5ms", "rate 8mbit delay 5ms", [0, 2_000_000], with(|_| {}));
    world.run_for(Duration::from_secs(1));
    let id = world.ends[0].endpoint.wire_id(world.ends[0].id.unwrap()).unwrap();
    let (now, from, connection) = (world.now, world.ends[0].at, world.ends[1].id.unwrap());
    let server = &mut world.ends[1].endpoint;
    let info = server.info(connection).unwrap();
    let (newest, first) =
        (info.packets_sent as u32, info.packets_sent - info.retransmissions - 300);
    let mut refused = 0;
    let mut report = |ranges: &[(u64, u64)], is_refused: bool| {
        server.handle_datagram(now, from, &sack(id, newest, ranges));
        refused += u64::from(is_refused);
        assert_eq!(server.counters().implausible, refused, "{:?} ...", ranges[0]);
    };
    // A datagram of 64 kB that names the same packets 10,900 times.
    report(&[(first, 300); 10_900], true);
    report(&[(first, 1), (first, 1)], true);
    report(&[(first, 3), (first + 2, 1)], true);
    report(&[(first + 1, 1), (first, 1)], true);
    // A short datagram that names more packets than the 227 ranges that fit into 1,400 bytes.
    report(&[(first, 228)], true);
    report(&[(first, 200), (first + 200, 27)], false);
    world.finish_within(Duration::from_secs(10));
}

/// Drops all that the server sends while its peer acknowledges all of it; returns the number of
/// false acknowledgements before the connection ends.
fn lie(world: &mut World, id: u64) -> u32 {
    let (from, mut now) = (world.ends[0].at, world.now);
    let server = &mut world.ends[1];
    let mut lies = 0;
    for _ in 0..1_000 {
        now += Duration::from_millis(10);
        server.endpoint.handle_timeout(now);
        server.act(now);
        if server.ended.is_some() {
            return lies;
        }
        let (mut next, mut newest) = (0, 0);
        for datagram in drain(&mut server.endpoint, now) {
            if let Ok(wire::Packet { body: Body::Data(data), .. }) = wire::Packet::decode(&datagram)
            {
                (next, newest) = (data.number + 1, data.transmission);
            }
        }
        let (kind, lost, limit) = (ReportKind::Ack, Lost::default(), next + 1_000);
        let (nonce_sum, echo, feedback) = (false, None, None);
        let report = Report { kind, next, nonce_sum, limit, newest, echo, lost, feedback };
        if next > 0 {
            server.endpoint.handle_datagram(now, from, &encode(id, Body::Report(report)));
            lies += 1;
        }
    }
    panic!("it is believed for ever");
}

#[test]
fn an_acknowledgement_of_missing_packets_is_detected() {
    let mut all = 0;
    for run in 0..20 {
        let mut world = world("delay 5ms", "rate 8mbit delay 5ms", [0, 50_000_000], with(|_| {}));
        world.run_for(Duration::from_millis(500 + 10 * run));
        let id = world.ends[0].endpoint.wire_id(world.ends[0].id.unwrap()).unwrap();
        all += lie(&mut world, id);
        assert_eq!(world.error(1), Some(ConnectionError::FalseAck.into()));
        assert_eq!(world.ends[1].endpoint.counters().optimistic_acks, 1);
    }
    // Each is accepted with a probability of one half, so two are expected in each run.
    assert!((20..80).contains(&all), "{all} lies in 20 runs");
}

#[test]
fn a_profile_that_the_peer_asks_for_is_capped_and_ones_own_is_not() {
    let mut world = world("delay 5ms", "delay 5ms", [0, 1_000_000], with(|_| {}));
    world.run_for(Duration::from_millis(100));
    let (now, id) = (world.now, world.ends[1].id.unwrap());
    let server = &mut world.ends[1].endpoint;
    let rate = |bits| airtcp_types::Rate::from_bits_per_sec(bits);
    let profile = |bits| NetworkProfile { send_rate: Some(rate(bits)), ..Default::default() };
    let kind = NetworkKind::WirelessLastHop;
    for (asked, had, counted) in
        [(20_000_000, 20_000_000, 0), (100_000_000, 100_000_000, 0), (u64::MAX, 100_000_000, 1)]
    {
        server.reconfigure_as_asked(now, id, kind, profile(asked)).unwrap();
        assert_eq!(server.info(id).unwrap().rate, rate(had));
        assert_eq!(server.counters().rate_capped, counted);
    }
    server.reconfigure(now, id, kind, profile(900_000_000)).unwrap();
    assert_eq!(server.info(id).unwrap().rate, rate(900_000_000));
    world.finish_within(Duration::from_secs(10));
}

#[test]
fn a_measurement_of_what_was_never_sent_is_refused() {
    let (mut world, id) = running();
    let (now, from, connection) = (world.now, world.ends[0].at, world.ends[1].id.unwrap());
    let server = &mut world.ends[1].endpoint;
    let before = server.info(connection).unwrap();
    let sent = before.packets_sent as u32;
    let mut refused = server.counters().implausible;
    let counts = Counts { first_counted: 0, congestive: 0, wireless: 0, received: sent };
    let forged = [
        Feedback { since: sent + 1_000, counts, ..Feedback::default() },
        Feedback {
            counts: Counts { first_counted: sent + 1_000, ..counts },
            ..Feedback::default()
        },
        // Fewer packets received than reported before.
        Feedback { counts: Counts { received: 1, ..counts }, ..Feedback::default() },
    ];
    for (newest, feedback) in (sent - 3..).zip(forged) {
        let feedback = Some(Feedback { send_gap: 1, receive_gap: 1_000_000_000, ..feedback });
        let (kind, lost, next) = (ReportKind::Feedback, Lost::default(), 0);
        let (nonce_sum, limit, echo) = (false, sent, None);
        let report = Report { kind, next, nonce_sum, limit, newest, echo, lost, feedback };
        server.handle_datagram(now, from, &encode(id, Body::Report(report)));
        refused += 1;
        assert_eq!(server.counters().implausible, refused, "{feedback:?}");
        assert_eq!(server.info(connection).unwrap().rate, before.rate);
    }
}
