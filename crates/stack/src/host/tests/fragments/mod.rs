//! Fragmented packets: reassembled, or refused with a counted reason.

mod many;

use airtcp_wire::udp;

use crate::host::peers::Quota;

use super::*;

const V4: &str = "10.0.0.1:9";
const V6: &str = "[fd00::1]:9";

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

fn datagram(to: &str, len: usize) -> Vec<u8> {
    udp::emit(&from_stranger(to), 64, &bytes(len)).data
}

/// The fragment that contains the bytes from `start` to `end` of the payload of a packet without
/// options.
pub(super) fn cut(whole: &[u8], id: u8, start: usize, end: usize) -> Vec<u8> {
    cut_as(whole, id, start, end, end < whole.len() - header_len(whole))
}

fn header_len(whole: &[u8]) -> usize {
    if whole[0] >> 4 == 4 { ip::V4_HEADER_LEN } else { ip::V6_HEADER_LEN }
}

fn cut_as(whole: &[u8], id: u8, start: usize, end: usize, more: bool) -> Vec<u8> {
    let (header, payload) = whole.split_at(header_len(whole));
    let part = &payload[start..end];
    let field = |shift: u32, flag: u16| {
        ((start as u16 >> 3) << shift | if more { flag } else { 0 }).to_be_bytes()
    };
    let mut data = header.to_vec();
    if whole[0] >> 4 == 4 {
        data[2..4].copy_from_slice(&((header.len() + part.len()) as u16).to_be_bytes());
        data[5] = id;
        data[6..8].copy_from_slice(&field(0, 0x2000));
        data.extend_from_slice(part);
        return with_sum(data);
    }
    data[4..6].copy_from_slice(&((8 + part.len()) as u16).to_be_bytes());
    let protocol = std::mem::replace(&mut data[6], 44);
    let [high, low] = field(3, 1);
    data.extend_from_slice(&[protocol, 0, high, low, 0, 0, 0, id]);
    data.extend_from_slice(part);
    data
}

/// Sets the ECN field of a packet.
fn with_ecn(mut data: Vec<u8>, ecn: u8) -> Vec<u8> {
    if data[0] >> 4 == 4 {
        data[1] = ecn;
        return with_sum(data);
    }
    data[1] |= ecn << 4;
    data
}

struct Target {
    host: Host,
    sockets: [SocketId; 2],
    now: Instant,
}

impl Target {
    fn new() -> Self {
        Self::with(Quota::ALL, Quota::PEER)
    }

    fn with(quota: Quota, peer_quota: Quota) -> Self {
        let mut host = server();
        (host.config.quota, host.config.peer_quota) = (quota, peer_quota);
        let sockets = [V4, V6].map(|to| host.udp_bind(address(to)).unwrap());
        Self { host, sockets, now: Instant::from_millis(1_000) }
    }

    /// Delivers a packet to the host, and returns the length of each datagram received.
    #[track_caller]
    fn take(&mut self, data: Vec<u8>) -> Vec<usize> {
        self.host.handle_packet(self.now, PORT, Packet::new(data));
        let mut buf = vec![0; 70_000];
        let mut lengths = vec![];
        for socket in self.sockets {
            while let Some((len, _)) = self.host.udp_recv_from(socket, &mut buf).unwrap() {
                assert_eq!(buf[..len], bytes(len)[..]);
                lengths.push(len);
            }
        }
        lengths
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.host.handle_timeout(self.now);
    }

    #[track_caller]
    fn is_empty(&self) {
        assert_eq!((self.host.fragments.len(), self.host.fragments.held().0), ((0, 0), 0));
        assert_eq!(self.host.poll_timeout(), None);
    }

    /// The reassembly counters of both IP versions: requested, done, failed.
    fn counts(&self) -> [u64; 3] {
        let counters = self.host.counters();
        [
            counters.ip_reasm_reqds + counters.ip6_reasm_reqds,
            counters.ip_reasm_oks + counters.ip6_reasm_oks,
            counters.ip_reasm_fails + counters.ip6_reasm_fails,
        ]
    }
}

#[test]
fn a_datagram_is_put_together_in_any_order() {
    let cuts = [(0, 24), (24, 80), (80, 108)];
    for to in [V4, V6] {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let (mut target, whole) = (Target::new(), datagram(to, 100));
            let [first, second, last] =
                order.map(|which| cut(&whole, 1, cuts[which].0, cuts[which].1));
            assert!(target.take(first).is_empty() && target.take(second).is_empty());
            assert_eq!(target.take(last), [100]);
            assert_eq!(target.counts(), [3, 1, 0]);
            target.is_empty();
        }
    }
}

#[test]
fn the_longest_datagram_that_there_is() {
    for (to, len) in [(V4, 65_535 - 28), (V6, 65_535 - 8)] {
        let (mut target, whole) = (Target::new(), datagram(to, len));
        let end = whole.len() - header_len(&whole);
        let mut received = vec![];
        for start in (0..end).step_by(1_232) {
            received.extend(target.take(cut(&whole, 1, start, (start + 1_232).min(end))));
        }
        assert_eq!(received, [len]);
        target.is_empty();
    }
}

#[test]
fn a_datagram_longer_than_the_maximum_is_refused() {
    // Ping of death: the last fragment ends beyond 65,535.
    for to in [V4, V6] {
        let (mut target, whole) = (Target::new(), datagram(to, 100));
        let mut last = cut(&whole, 1, 0, 16);
        if to == V4 {
            last[6..8].copy_from_slice(&[0x1f, 0xfe]);
            last = with_sum(last);
        } else {
            last[42..44].copy_from_slice(&[0xff, 0xf0]);
        }
        assert!(target.take(last).is_empty());
        assert_eq!(target.counts(), [1, 0, 1]);
        target.is_empty();
    }
    // The header of the first fragment counts as well: with options, a packet of maximum length is
    // too long.
    let (mut target, whole) = (Target::new(), datagram(V4, 65_507));
    for start in (8..65_515).step_by(1_232) {
        target.take(cut(&whole, 1, start, (start + 1_232).min(65_515)));
    }
    let mut first = cut(&whole, 1, 0, 8);
    first[0] = 0x46;
    first[3] += 4;
    first.splice(20..20, [1; 4]);
    assert!(target.take(with_sum(first)).is_empty());
    assert_eq!(target.counts()[1..], [0, 1]);
    target.is_empty();
}

#[test]
fn an_overlap_costs_the_whole_datagram_and_what_is_still_to_come() {
    for to in [V4, V6] {
        let whole = datagram(to, 100);
        // Fragments that overlap (24, 80): at its start, at its end, in its middle, all of it, and
        // from below.
        for (start, end) in [(16, 32), (72, 108), (32, 48), (16, 108), (0, 32), (24, 72)] {
            let mut target = Target::new();
            target.take(cut(&whole, 1, 24, 80));
            target.take(cut(&whole, 1, start, end));
            assert_eq!(target.counts(), [2, 0, 1], "{start}..{end}");
            for (start, end) in [(0, 24), (24, 80), (80, 108)] {
                assert!(target.take(cut(&whole, 1, start, end)).is_empty());
            }
            assert_eq!(target.counts(), [5, 0, 4]);
            let counters = target.host.counters();
            assert_eq!(counters.ip_ext_reasm_overlaps + counters.ip6_reasm_overlaps, 1);
            // The packet is forgotten at its deadline, and not counted again.
            target.pass(Duration::from_secs(60));
            target.is_empty();
            assert_eq!(target.counts(), [5, 0, 4]);
            assert_eq!(target.take(whole.clone()), [100]);
        }
    }
}

#[test]
fn a_dropped_datagram_is_remembered_one_second_for_ipv4_and_one_minute_for_ipv6() {
    for (to, seconds) in [(V4, 1), (V6, 60)] {
        let (mut target, whole) = (Target::new(), datagram(to, 100));
        target.take(cut(&whole, 1, 0, 24));
        target.take(cut(&whole, 1, 16, 32));
        target.pass(Duration::from_secs(seconds) - Duration::from_millis(1));
        assert!(target.take(cut(&whole, 1, 0, 24)).is_empty());
        assert!(target.take(cut(&whole, 1, 24, 108)).is_empty());
        // A new packet with the same identification is another packet.
        target.pass(Duration::from_millis(1));
        target.is_empty();
        assert!(target.take(cut(&whole, 1, 0, 24)).is_empty());
        assert_eq!(target.take(cut(&whole, 1, 24, 108)), [100]);
        assert_eq!(target.counts(), [6, 1, 3]);
    }
}

#[test]
fn an_end_that_moves_is_an_overlap() {
    for to in [V4, V6] {
        let whole = datagram(to, 100);
        let last = |start, end| cut_as(&whole, 1, start, end, false);
        let more = |start, end| cut_as(&whole, 1, start, end, true);
        for [first, second] in [
            [last(80, 96), last(96, 108)],
            [last(80, 96), more(96, 104)],
            [more(80, 104), last(24, 40)],
            [last(80, 96), last(24, 32)],
        ] {
            let mut target = Target::new();
            target.take(first);
            target.take(second);
            assert_eq!(target.counts(), [2, 0, 1]);
        }
    }
}

#[test]
fn a_fragment_that_came_twice_does_no_harm() {
    for to in [V4, V6] {
        let (mut target, whole) = (Target::new(), datagram(to, 100));
        for _ in 0..3 {
            assert!(target.take(cut(&whole, 1, 0, 24)).is_empty());
            assert!(target.take(cut(&whole, 1, 80, 108)).is_empty());
        }
        assert_eq!(target.take(cut(&whole, 1, 24, 80)), [100]);
        assert_eq!(target.counts(), [7, 1, 0]);
    }
}

#[test]
fn one_with_other_bytes_is_an_overlap() {
    let (mut target, whole) = (Target::new(), datagram(V4, 100));
    target.take(cut(&whole, 1, 24, 80));
    let mut other = cut(&whole, 1, 24, 80);
    other[30] ^= 1;
    target.take(other);
    assert_eq!(target.host.counters().ip_ext_reasm_overlaps, 1);
}

#[test]
fn fragments_of_different_datagrams_are_not_mixed() {
    for to in [V4, V6] {
        let (mut target, whole) = (Target::new(), datagram(to, 100));
        let mut of_another = cut(&whole, 1, 0, 24);
        let last_of_source = if to == V4 { 15 } else { 23 };
        of_another[last_of_source] += 1;
        let of_another = if to == V4 { with_sum(of_another) } else { of_another };
        target.take(of_another);
        target.take(cut(&whole, 2, 0, 24));
        assert!(target.take(cut(&whole, 1, 24, 108)).is_empty());
        assert_eq!(target.host.fragments.len().0, 3);
        assert_eq!(target.take(cut(&whole, 1, 0, 24)), [100]);
    }
    // With IPv4 the protocol is part of the key; with IPv6 only that of the first fragment counts.
    for (to, protocol_at, packets) in [(V4, 9, 2), (V6, 40, 0)] {
        let (mut target, whole) = (Target::new(), datagram(to, 100));
        let mut odd = cut(&whole, 1, 24, 108);
        odd[protocol_at] = 200;
        let odd = if to == V4 { with_sum(odd) } else { odd };
        target.take(odd);
        let got = target.take(cut(&whole, 1, 0, 24));
        assert_eq!((got.len(), target.host.fragments.len().0), (usize::from(to == V6), packets));
    }
}

#[test]
fn the_rest_is_waited_for_and_then_no_longer() {
    for (to, patience) in [(V4, 30), (V6, 60)] {
        let whole = datagram(to, 100);
        let mut target = Target::new();
        target.take(cut(&whole, 1, 0, 24));
        // A later fragment does not extend the time limit.
        target.pass(Duration::from_secs(patience) - Duration::from_millis(1));
        target.take(cut(&whole, 1, 24, 80));
        assert_eq!(
            target.host.poll_timeout(),
            Some(Instant::from_millis(1_000 + patience * 1_000))
        );
        target.pass(Duration::from_millis(1));
        target.is_empty();
        assert!(target.take(cut(&whole, 1, 80, 108)).is_empty());
        let counters = target.host.counters();
        assert_eq!(
            (counters.ip_reasm_timeout + counters.ip6_reasm_timeout, target.counts()),
            (1, [3, 0, 1])
        );
    }
}

#[test]
fn an_expired_datagram_sends_time_exceeded_to_its_source() {
    for (to, patience, kind) in [(V4, 30, 11), (V6, 60, 3)] {
        let whole = datagram(to, 2_000);
        for (start, is_reported) in [(0, true), (504, false)] {
            let mut target = Target::new();
            let fragment = cut(&whole, 1, start, start + 504);
            target.take(fragment.clone());
            target.pass(Duration::from_secs(patience));
            target.is_empty();
            let answer = target.host.poll_transmit(target.now).map(|(_, packet)| packet.data);
            assert_eq!(answer.is_some(), is_reported);
            let counters = target.host.counters();
            let sent = counters.icmp_out_time_excds + counters.icmp6_out_time_excds;
            assert_eq!(sent, u64::from(is_reported));
            let Some(answer) = answer else { continue };
            let read = ip::parse(&answer).unwrap();
            assert_eq!(read.payload[..2], [kind, 1]);
            // The error quotes as much of the fragment as allowed, as it was received.
            let quoted = &read.payload[icmp::HEADER_LEN..];
            assert_eq!(quoted, &fragment[..quoted.len()]);
            assert!(answer.len() <= if to == V4 { 576 } else { 1280 });
            assert!(quoted.len() == fragment.len() || answer.len() == 576);
        }
    }
}

#[test]
fn time_exceeded_is_not_sent_for_icmp_errors_and_is_rate_limited() {
    for (to, error, echo_kind) in [(V4, 3, 8), (V6, 1, 128)] {
        let flow = from_stranger(to);
        let whole = echo(flow.local.ip(), flow.remote.ip(), &bytes(1_000));
        for (kind, expected) in [(echo_kind, 1), (error, 0)] {
            let mut message = cut(&whole, 1, 0, 504);
            let at = message.len() - 504;
            message[at] = kind;
            let mut target = Target::new();
            target.take(message);
            target.pass(Duration::from_secs(60));
            let sent = std::iter::from_fn(|| target.host.poll_transmit(target.now)).count();
            assert_eq!(sent, expected, "{to} {kind}");
        }
        let (mut target, whole) = (Target::new(), datagram(to, 100));
        for id in 0..200 {
            target.take(cut(&whole, id, 0, 24));
        }
        target.pass(Duration::from_secs(60));
        let sent = std::iter::from_fn(|| target.host.poll_transmit(target.now)).count();
        assert_eq!(sent, 50);
    }
}

#[test]
fn a_timer_that_is_late_makes_nothing_whole() {
    let (mut target, whole) = (Target::new(), datagram(V4, 100));
    target.take(cut(&whole, 1, 0, 24));
    target.now += Duration::from_secs(31);
    assert!(target.take(cut(&whole, 1, 24, 108)).is_empty());
    assert_eq!(target.host.counters().ip_reasm_timeout, 1);
}

#[test]
fn invalid_fragments_are_dropped_and_counted() {
    for to in [V4, V6] {
        let whole = datagram(to, 100);
        let uneven = cut(&whole, 1, 0, 20);
        let empty = cut_as(&whole, 1, 24, 24, true);
        let empty_last = cut_as(&whole, 1, 24, 24, false);
        for fragment in [uneven, empty, empty_last] {
            let mut target = Target::new();
            assert!(target.take(fragment).is_empty());
            assert_eq!(target.counts(), [1, 0, 1]);
            target.is_empty();
        }
    }
    // Tiny fragments: the TCP ports or flags would not be where filters look for them.
    for (to, cuts) in [(V4, [(0, 8), (8, 20)]), (V6, [(0, 8), (0, 16)])] {
        let mut whole = segment(to, &syn());
        whole.extend([0; 20]);
        for (start, end) in cuts {
            let mut target = Target::new();
            target.take(cut_as(&whole, 1, start, end / 8 * 8, true));
            assert_eq!(target.counts(), [1, 0, 1], "{to} {start}..{end}");
            target.is_empty();
        }
    }
    // A fragment of a fragment.
    let mut target = Target::new();
    let inner = cut(&datagram(V6, 100), 1, 0, 24);
    target.take(cut(&inner, 1, 0, 32));
    assert_eq!(target.counts(), [1, 0, 1]);
    // The fragment header itself is truncated.
    let mut short = cut(&datagram(V6, 100), 1, 0, 24)[..46].to_vec();
    short[5] = 6;
    target.take(short);
    assert_eq!(target.counts(), [2, 0, 2]);
}

#[test]
fn fragments_from_and_to_invalid_addresses_are_not_kept() {
    let mut target = Target::new();
    let whole = |src: &str, dst: &str| {
        let flow = FlowId { local: address(src), remote: address(dst) };
        udp::emit(&flow, 64, &bytes(100)).data
    };
    for (src, dst) in [("10.0.0.9:1", "10.0.0.3:9"), ("127.0.0.1:1", V4), ("[::1]:1", V6)] {
        target.take(cut(&whole(src, dst), 1, 0, 24));
    }
    assert_eq!(target.counts(), [0; 3]);
    target.is_empty();
}

#[test]
fn an_atomic_fragment_is_a_packet_by_itself() {
    let (mut target, whole) = (Target::new(), datagram(V6, 100));
    // RFC 6946: fragments with the same identification are not affected.
    target.take(cut(&whole, 1, 0, 24));
    assert_eq!(target.take(cut_as(&whole, 1, 0, 108, false)), [100]);
    assert_eq!(target.take(cut(&whole, 1, 24, 108)), [100]);
    assert_eq!(target.counts(), [3, 2, 0]);
    target.is_empty();
}

#[test]
fn congestion_that_one_fragment_met_the_datagram_has_met() {
    for to in ["10.0.0.1:99", "[fd00::1]:99"] {
        for (marks, ecn) in [
            ([2, 3], Some(3)),
            ([3, 2], Some(3)),
            ([2, 2], Some(2)),
            ([0, 0], Some(0)),
            ([0, 3], None),
            ([0, 2], None),
        ] {
            let (mut host, whole) = (server(), datagram(to, 100));
            answers(&mut host, with_ecn(cut(&whole, 1, 0, 24), marks[0]));
            // The port is closed: the ICMP error quotes the reassembled packet.
            let got = answers(&mut host, with_ecn(cut(&whole, 1, 24, 108), marks[1]));
            let quoted = got.first().map(|packet| {
                let v4 = packet.data[0] >> 4 == 4;
                let byte = packet.data[header_len(&packet.data) + icmp::HEADER_LEN + 1];
                if v4 { byte & 3 } else { byte >> 4 & 3 }
            });
            assert_eq!(quoted, ecn, "{marks:?}");
        }
    }
}

#[test]
fn a_segment_of_tcp_comes_in_fragments_too() {
    for to in ["10.0.0.1:80", "[fd00::1]:80"] {
        let mut host = server();
        host.tcp_listen(address(to), 4).unwrap();
        let options = airtcp_wire::options::TcpOptions {
            mss: Some(1_400),
            window_scale: Some(7),
            sack_permitted: true,
            ..Default::default()
        };
        let whole = segment(to, &Header { options, ..syn() });
        let end = whole.len() - header_len(&whole);
        assert!(answers(&mut host, cut(&whole, 1, 0, 24)).is_empty());
        let answer = answers(&mut host, cut(&whole, 1, 24, end));
        let answer = read_segment(&answer[0]);
        assert!(answer.flags.syn && answer.flags.ack && answer.options.window_scale.is_some());
    }
}

#[test]
fn an_answer_to_an_echo_that_would_be_too_long_does_not_leave() {
    for to in [V4, V6] {
        let flow = from_stranger(to);
        let (src, dst) = (flow.local.ip(), flow.remote.ip());
        for (len, answered) in [(1_000, 1), (3_000, 0)] {
            let mut host = server();
            let whole = echo(src, dst, &bytes(len));
            let end = whole.len() - header_len(&whole);
            let mut got = answers(&mut host, cut(&whole, 1, 0, 504));
            got.extend(answers(&mut host, cut(&whole, 1, 504, end)));
            assert_eq!(got.len(), answered);
            let counters = host.counters();
            let unsent = counters.ip_frag_fails + counters.ip6_frag_fails;
            assert_eq!(unsent as usize, 1 - answered);
        }
    }
}
