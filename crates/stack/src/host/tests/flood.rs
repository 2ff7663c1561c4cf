//! Floods that the host answers itself, and service to other peers meanwhile.

use airtcp_wire::udp;

use super::*;

const V4: &str = "10.0.0.1:80";
const V6: &str = "[fd00::1]:80";

/// The numbers of packets that the server sends: echo replies, RSTs, SYN-ACKs, and others.
fn leaves(pair: &mut Pair) -> [usize; 4] {
    let mut kinds = [0; 4];
    while let Some((_, packet)) = pair.server.poll_transmit(pair.now) {
        let datagram = ip::parse(&packet.data).unwrap();
        let kind = match (datagram.protocol, datagram.payload[0]) {
            (ip::ICMP, 0) | (ip::ICMPV6, 129) => 0,
            (ip::TCP, _) => match read_segment(&packet).flags {
                Flags { rst: true, .. } => 1,
                Flags { syn: true, .. } => 2,
                _ => 3,
            },
            _ => 3,
        };
        kinds[kind] += 1;
    }
    kinds
}

/// A SYN from this port of a stranger to the server.
fn syn_to(to: &str, port: u16) -> Packet {
    let mut flow = from_stranger(to);
    flow.remote.set_port(port);
    tcp::emit(&flow, 64, &syn(), &[])
}

#[test]
fn pings_in_a_flood_leave_room_for_resets_cookies_and_flows() {
    for to in [V4, V6] {
        let mut pair = Pair::new();
        let listener = pair.server.tcp_listen(address(to), 64).unwrap();
        let (stream, accepted) = pair.connect(listener, to);
        // Every further SYN gets a cookie.
        pair.server.config.peer_quota.half_open = 0;
        let ping = echo(from_stranger(to).local.ip(), address(to).ip(), &[7; 60]);
        for _ in 0..1_000 {
            pair.server.handle_packet(pair.now, PORT, Packet::new(ping.clone()));
        }
        pair.server.handle_packet(pair.now, PORT, syn_to(to, 9));
        pair.server.handle_packet(pair.now, PORT, syn_to(to, 80));
        pair.server.tcp_send(pair.now, accepted, b"alive").unwrap();
        assert_eq!(leaves(&mut pair), [128, 1, 1, 1], "{to}");
        let counters = pair.server.counters();
        let limited = [counters.icmp_out_rate_limit_echo, counters.icmp6_out_rate_limit_echo];
        assert_eq!(limited, if to == V4 { [872, 0] } else { [0, 872] });
        assert_eq!((counters.tcp_ext_syncookies_sent, counters.ip_out_discards), (1, 0));
        assert_eq!(counters.icmp_out_echo_reps + counters.icmp6_out_echo_replies, 128);
        // A client that sends its next request after each reply, ten thousand times per second,
        // always gets a reply.
        pair.now += Duration::from_secs(1);
        for _ in 0..1_000 {
            pair.now += Duration::from_micros(100);
            pair.server.handle_packet(pair.now, PORT, Packet::new(ping.clone()));
            assert_eq!(leaves(&mut pair)[0], 1, "{to}");
        }
        pair.carry(stream, accepted);
    }
}

#[test]
fn responses_without_room_are_counted_and_use_no_rate_limit() {
    for to in [V4, V6] {
        let mut pair = Pair::new();
        let listener = pair.server.tcp_listen(address(to), 64).unwrap();
        let (stream, accepted) = pair.connect(listener, to);
        for _ in 0..300 {
            pair.server.handle_packet(pair.now, PORT, syn_to(to, 9));
        }
        let lost = udp::emit(&from_stranger(to), 64, b"to nobody");
        let ping = echo(from_stranger(to).local.ip(), address(to).ip(), &[7; 60]);
        for _ in 0..200 {
            pair.server.handle_packet(pair.now, PORT, lost.clone());
            pair.server.handle_packet(pair.now, PORT, Packet::new(ping.clone()));
        }
        let counters = pair.server.counters();
        let discards = [counters.ip_out_discards, counters.ip6_out_discards];
        assert_eq!(discards, if to == V4 { [444, 0] } else { [0, 444] });
        assert_eq!((counters.tcp_out_rsts, counters.icmp_out_msgs), (256, 0));
        assert_eq!(leaves(&mut pair), [0, 256, 0, 0]);
        for _ in 0..200 {
            pair.server.handle_packet(pair.now, PORT, lost.clone());
            pair.server.handle_packet(pair.now, PORT, Packet::new(ping.clone()));
            leaves(&mut pair);
        }
        let counters = pair.server.counters();
        let errors = counters.icmp_out_dest_unreachs + counters.icmp6_out_dest_unreachs;
        let echoes = counters.icmp_out_echo_reps + counters.icmp6_out_echo_replies;
        assert_eq!((errors, echoes), (50, 128), "{to}");
        let limited = counters.icmp_out_rate_limit_host + counters.icmp6_out_rate_limit_host;
        assert_eq!(limited, 150);
        pair.carry(stream, accepted);
    }
}
