//! Each kind of bad input, and each limit, is counted under its name and logged, and an existing
//! flow continues.

use airtcp_wire::udp;

use super::super::Quota;
use super::*;
use crate::logged::logged;

const V4: &str = "10.0.0.1:80";
const V6: &str = "[fd00::1]:80";

/// A bad event: the counter that it increments, the text that is logged, and the code that causes
/// it.
type Case = (&'static str, &'static str, fn(&mut Bearing));

/// Two hosts with a connection that has data in flight.
struct Bearing {
    pair: Pair,
    /// The data packet that the client has sent and the server has not received.
    sent: Packet,
}

impl Bearing {
    /// Delivers a packet to the server, from a stranger or any other host.
    fn give_server(&mut self, data: Vec<u8>) {
        let now = self.pair.now;
        self.pair.server.handle_packet(now, PORT, Packet::new(data));
    }

    /// Lets a stranger connect to the server while a quota is exhausted.
    fn call_beyond(&mut self, use_up: fn(&mut HostConfig)) {
        self.pair.server.tcp_listen(address("0.0.0.0:81"), 4).unwrap();
        use_up(&mut self.pair.server.config);
        self.give_server(segment("10.0.0.1:81", &syn()));
        let config = &mut self.pair.server.config;
        (config.quota, config.peer_quota) = (Quota::ALL, Quota::PEER);
    }

    /// Delivers an ICMP error about the packet in flight to the client.
    fn about_sent(&mut self, kind: [u8; 2], word: u32, quoted: &[u8]) {
        let error = icmp_error(&self.sent.data, kind, word, quoted);
        self.pair.client.handle_packet(self.pair.now, PORT, error);
    }

    /// Delivers an ICMP error to the server about a segment that it never sent; the error quotes
    /// `quoted` bytes.
    fn about_nothing(&mut self, from: &str, kind: [u8; 2], quoted: usize) {
        let FlowId { local, remote } = from_stranger(from);
        let never = tcp::emit(&FlowId { local: remote, remote: local }, 64, &syn(), &[]).data;
        self.give_server(icmp_error(&never, kind, 0, &never[..quoted]).data);
    }

    /// Sends a datagram from the client, and delivers an ICMP error about it.
    fn about_datagram(&mut self, kind: [u8; 2], word: u32) {
        let now = self.pair.now;
        let socket = self.pair.client.udp_bind(address("10.0.0.2:7")).unwrap();
        self.pair.client.udp_send_to(socket, &[7; 1_000], address("10.0.0.1:9")).unwrap();
        let packet = std::iter::from_fn(|| self.pair.client.poll_transmit(now))
            .map(|(_, packet)| packet)
            .find(|packet| packet.data[9] == ip::UDP)
            .unwrap();
        let error = icmp_error(&packet.data, kind, word, &packet.data);
        self.pair.client.handle_packet(now, PORT, error);
        self.pair.client.udp_close(socket).unwrap();
    }
}

fn counter(host: &Host, name: &str) -> u64 {
    host.counters().iter().find(|(known, _)| *known == name).unwrap().1
}

/// Runs each case with a connection over IPv4 and one over IPv6.
fn check(cases: &[Case]) {
    for (name, message, happens) in cases {
        for to in [V4, V6] {
            let mut pair = Pair::new();
            let listener = pair.server.tcp_listen(address(to), 4).unwrap();
            let (stream, accepted) = pair.connect(listener, to);
            pair.client.tcp_send(pair.now, stream, b"on its way").unwrap();
            let (_, sent) = pair.client.poll_transmit(pair.now).unwrap();
            let mut bearing = Bearing { pair, sent };
            let total = |bearing: &Bearing| {
                counter(&bearing.pair.client, name) + counter(&bearing.pair.server, name)
            };
            let before = total(&bearing);
            let lines = logged(|| happens(&mut bearing));
            assert!(total(&bearing) > before, "{name} {to}");
            let is_logged = |line: &String| line.starts_with("DEBUG ") && line.contains(message);
            assert!(lines.iter().any(is_logged), "{name} {to}: {message}: {lines:#?}");
            let Bearing { mut pair, sent, .. } = bearing;
            // Answers to strangers are sent first, and dropped.
            while pair.server.poll_transmit(pair.now).is_some() {}
            pair.server.handle_packet(pair.now, PORT, sent);
            pair.exchange();
            assert_eq!(read_all(&mut pair.server, pair.now, accepted).0, b"on its way", "{name}");
            pair.carry(stream, accepted);
        }
    }
}

fn with_flags(flags: Flags) -> Header {
    Header { flags, ..syn() }
}

/// Delivers SYNs of a stranger, each from another port.
fn flood(bearing: &mut Bearing, count: u16) {
    for port in 0..count {
        let flow = FlowId { local: ([10, 0, 0, 9], 1_000 + port).into(), remote: address(V4) };
        bearing.give_server(tcp::emit(&flow, 64, &syn(), &[]).data);
    }
}

#[test]
fn a_flow_survives_segments_of_strangers() {
    check(&[
        ("TcpExtNotASyn", "not a valid SYN", |b| {
            let flags = Flags { fin: true, ..syn().flags };
            b.pair.server.tcp_listen(address("0.0.0.0:81"), 4).unwrap();
            b.give_server(segment("10.0.0.1:81", &with_flags(flags)));
        }),
        ("TcpExtNotASyn", "not a valid SYN", |b| {
            b.pair.server.tcp_listen(address("0.0.0.0:81"), 4).unwrap();
            b.give_server(segment("10.0.0.1:81", &with_flags(Flags::default())));
        }),
        ("TcpExtDataInSyn", "in SYN ignored", |b| {
            b.pair.server.tcp_listen(address("0.0.0.0:81"), 4).unwrap();
            let packet = tcp::emit(&from_stranger("10.0.0.1:81"), 64, &syn(), &[0; 9]);
            b.give_server(packet.data);
        }),
        ("TcpExtConnQuota", "scope=All", |b| b.call_beyond(|config| config.quota.connections = 1)),
        ("TcpExtConnQuotaPeer", "scope=Peer", |b| {
            b.call_beyond(|config| config.peer_quota.connections = 0);
        }),
        ("TcpExtHalfOpenQuotaPeer", "scope=Peer", |b| {
            b.call_beyond(|config| config.peer_quota.half_open = 0);
        }),
        ("TcpExtListenOverflows", "accept queue full", |b| {
            let listener = b.pair.server.tcp_listen(address("10.0.0.1:81"), 1).unwrap();
            for _ in 0..2 {
                b.pair.client.tcp_connect(b.pair.now, address("10.0.0.1:81"), None).unwrap();
                while let Some((_, packet)) = b.pair.client.poll_transmit(b.pair.now) {
                    b.give_server(packet.data);
                }
                while let Some((_, packet)) = b.pair.server.poll_transmit(b.pair.now) {
                    b.pair.client.handle_packet(b.pair.now, PORT, packet);
                }
                while let Some((_, packet)) = b.pair.client.poll_transmit(b.pair.now) {
                    b.give_server(packet.data);
                }
            }
            b.pair.server.tcp_close(b.pair.now, listener).unwrap();
        }),
        ("TcpExtSyncookiesSent", "sending SYN cookies", |b| {
            b.pair.server.tcp_listen(address(V4), 4).ok();
            flood(b, 10);
        }),
        ("TcpExtSyncookiesFailed", "invalid SYN cookie", |b| {
            b.pair.server.tcp_listen(address(V4), 4).ok();
            flood(b, 10);
            let ack = Header { ack: Some(SeqNumber(77)), flags: Flags::ACK, ..syn() };
            b.give_server(segment(V4, &ack));
        }),
    ]);
}

#[test]
fn a_flow_survives_icmp_errors() {
    check(&[
        ("TcpExtOutOfWindowIcmps", "not outstanding", |b| {
            let mut quoted = b.sent.data.clone();
            let sequence = if quoted[0] >> 4 == 4 { 24 } else { 44 };
            quoted[sequence] ^= 0x40;
            let unreachable = if quoted[0] >> 4 == 4 { [3, 3] } else { [1, 4] };
            b.about_sent(unreachable, 0, &quoted);
        }),
        ("IcmpInErrors", "no matching socket", |b| b.about_nothing(V4, [3, 3], 40)),
        ("Icmp6InErrors", "no matching socket", |b| b.about_nothing(V6, [1, 4], 60)),
        // A quote too short to contain all required fields.
        ("IcmpInErrors", "no matching socket", |b| b.about_nothing(V4, [3, 1], 22)),
        ("Icmp6InErrors", "no matching socket", |b| b.about_nothing(V6, [1, 3], 42)),
        ("IcmpInParmProbs", "Parameter Problem", |b| b.about_nothing(V4, [12, 0], 40)),
        ("Icmp6InParmProblems", "Parameter Problem", |b| b.about_nothing(V6, [4, 0], 60)),
        ("UdpPmtuIgnored", "above path MTU", |b| b.about_datagram([3, 4], 600)),
        ("TcpExtPmtuRefused", "invalid path MTU", |b| {
            let quoted = b.sent.data.clone();
            let kind = if quoted[0] >> 4 == 4 { [3, 4] } else { [2, 0] };
            b.about_sent(kind, 9_000, &quoted);
        }),
    ]);
}

#[test]
fn a_flow_survives_limits() {
    check(&[
        ("IcmpOutRateLimitHost", "rate limit reached", |b| {
            for _ in 0..200 {
                b.give_server(udp::emit(&from_stranger("10.0.0.1:9"), 64, b"x").data);
            }
        }),
        ("Icmp6OutRateLimitHost", "rate limit reached", |b| {
            for _ in 0..200 {
                b.give_server(udp::emit(&from_stranger("[fd00::1]:9"), 64, b"x").data);
            }
        }),
        ("IcmpOutRateLimitEcho", "echo request ignored", |b| {
            for _ in 0..200 {
                b.give_server(echo([10, 0, 0, 9].into(), address(V4).ip(), &[7; 60]));
            }
        }),
        ("Icmp6OutRateLimitEcho", "echo request ignored", |b| {
            for _ in 0..200 {
                b.give_server(echo(from_stranger(V6).local.ip(), address(V6).ip(), &[7; 60]));
            }
        }),
        ("IpOutDiscards", "transmit queue full", |b| {
            for _ in 0..300 {
                b.give_server(segment("10.0.0.1:9", &syn()));
            }
        }),
        ("Ip6OutDiscards", "transmit queue full", |b| {
            for _ in 0..300 {
                b.give_server(segment("[fd00::1]:9", &syn()));
            }
        }),
        ("TcpExtMemoryQuotaPeer", "memory quota of the peer", |b| {
            b.pair.server.tcp_listen(address("0.0.0.0:81"), 4).unwrap();
            b.pair.server.config.peer_quota.memory = ByteCount::ZERO;
            b.give_server(segment("10.0.0.1:81", &syn()));
            b.pair.server.config.peer_quota = Quota::PEER;
        }),
        ("UdpRcvbufErrors", "receive queue full", |b| {
            let socket = b.pair.server.udp_bind(address("10.0.0.1:9")).unwrap();
            for _ in 0..300 {
                b.give_server(udp::emit(&from_stranger("10.0.0.1:9"), 64, &[7; 1_000]).data);
            }
            b.pair.server.udp_close(socket).unwrap();
        }),
        ("UdpPortsTaken", "no free port", |b| {
            let bind = |b: &mut Bearing| b.pair.server.udp_bind(address("10.0.0.1:0"));
            let error = std::iter::repeat_with(|| bind(b)).find_map(Result::err);
            assert_eq!(error, Some(HostError::NoPorts));
        }),
        ("TcpExtNoPorts", "no free port", |b| {
            let bind = |b: &mut Bearing| b.pair.server.tcp_bind(address("10.0.0.1:0"));
            let error = std::iter::repeat_with(|| bind(b)).find_map(Result::err);
            assert_eq!(error, Some(HostError::NoPorts));
            assert_eq!(counter(&b.pair.server, "TcpExtNoPorts"), 1);
            let listening = b.pair.server.tcp_listen(address("10.0.0.1:0"), 4);
            assert_eq!(listening, Err(HostError::NoPorts));
            assert_eq!(counter(&b.pair.server, "TcpExtNoPorts"), 2);
        }),
        ("TcpExtTCPMemoryPressures", "out of memory", |b| {
            let memory = std::mem::replace(&mut b.pair.server.config.quota.memory, ByteCount::ZERO);
            let now = b.pair.now;
            let refused = b.pair.server.tcp_connect(now, address("10.0.0.2:9"), None);
            assert_eq!(refused, Err(HostError::NoMemory));
            b.pair.server.config.quota.memory = memory;
        }),
        ("TcpExtListenDrops", "out of memory", |b| {
            b.pair.server.tcp_listen(address("10.0.0.1:81"), 4).unwrap();
            let memory = std::mem::replace(&mut b.pair.server.config.quota.memory, ByteCount::ZERO);
            b.give_server(segment("10.0.0.1:81", &syn()));
            b.pair.server.config.quota.memory = memory;
        }),
    ]);
}

/// Delivers one packet to the server, and checks which counters change.
#[track_caller]
fn counted(host: &mut Host, data: Vec<u8>, answered: usize, names: &[&str]) {
    let before = host.counters().clone();
    assert_eq!(answers(host, data).len(), answered);
    assert_eq!(moved(&before, host.counters()), names);
}

#[test]
fn valid_packets_are_counted() {
    for (to, from) in [(V4, "10.0.0.9:999"), (V6, "[fd00::9]:999")] {
        let (src, dst) = (address(from).ip(), address(to).ip());
        let version = if to == V4 { "" } else { "6" };
        let ip = ["InReceives", "InDelivers", "OutRequests"].map(|n| format!("Ip{version}{n}"));
        let icmp = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| format!("Icmp{version}{name}")).collect()
        };
        let replies = if to == V4 { "EchoReps" } else { "EchoReplies" };
        let mut host = server();
        let mut check = |data, answered: usize, names: Vec<String>| {
            let all = ip[..2 + answered].iter().chain(&names).map(String::as_str);
            counted(&mut host, data, answered, &all.collect::<Vec<_>>());
        };
        let out = format!("Out{replies}");
        check(echo(src, dst, b"ping"), 1, icmp(&["InMsgs", "InEchos", "OutMsgs", &out]));
        let reply = icmp::emit_echo_reply(src, dst, 64, b"ping").data;
        check(reply, 0, icmp(&["InMsgs", &format!("In{replies}")]));
        let datagram = udp::emit(&from_stranger(to), 64, b"x").data;
        let mut names = icmp(&["OutMsgs", "OutDestUnreachs"]);
        names.push("UdpNoPorts".into());
        check(datagram.clone(), 1, names);
        let mut odd = segment(to, &syn());
        odd[if to == V4 { 9 } else { 6 }] = 200;
        let odd = if to == V4 { with_sum(odd) } else { odd };
        let before = host.counters().clone();
        assert_eq!(answers(&mut host, odd).len(), 1);
        let problem = if to == V4 { "IcmpOutDestUnreachs" } else { "Icmp6OutParmProblems" };
        assert!(moved(&before, host.counters()).contains(&problem));
        let socket = host.udp_bind(address(to)).unwrap();
        let names = [ip[0].as_str(), &ip[1], "UdpInDatagrams"];
        counted(&mut host, datagram.clone(), 0, &names);
        let mut wrong = datagram;
        *wrong.last_mut().unwrap() ^= 1;
        let names = [ip[0].as_str(), &ip[1], "UdpInErrors", "UdpInCsumErrors"];
        counted(&mut host, wrong, 0, &names);
        let before = host.counters().clone();
        host.udp_send_to(socket, b"x", address(from)).unwrap();
        assert_eq!(moved(&before, host.counters()), ["UdpOutDatagrams"]);
    }
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(V4), 4).unwrap();
    let (stream, accepted) = pair.connect(listener, V4);
    let opened = [&pair.client, &pair.server].map(|host| host.counters().tcp_active_opens);
    assert_eq!(opened, [1, 0]);
    let before = pair.client.counters().tcp_ext_pure_acks;
    pair.carry(stream, accepted);
    assert!(pair.client.counters().tcp_ext_pure_acks > before);
}
