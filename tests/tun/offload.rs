//! Offload between the device and the kernel at its other end.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::{Capabilities, Device, Tun, TunFile, TunOptions};
use airtcp_testbed::{Namespace, or_skip, requirements};
use airtcp_types::{Checksum, FlowId, Packet, SeqNumber, SharedBytes};
use airtcp_wire::checksum::{Sum, checksum, verify_transport};
use airtcp_wire::tcp::flag::CWR;
use airtcp_wire::tcp::{Flags, Header, emit, emit_super};
use airtcp_wire::{Layout, each_segment, ip, tcp};
use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};

use crate::testkit::{Flow, numbered, packet};

/// How long a packet may take that the kernel has sent.
const PATIENCE: Duration = Duration::from_secs(30);

const OFFLOAD: TunOptions = TunOptions { offload: true, multi_queue: false };

/// Opens a device with offload. The kernel is 10.0.0.1 and fd00::1; all other addresses are the
/// test's.
fn open_offloading(mtu: u32) -> Option<(Namespace, TunFile)> {
    or_skip(requirements())?;
    let namespace = Namespace::new().unwrap();
    let file = namespace.run(|| TunFile::open_with("tun0", OFFLOAD)).unwrap();
    let addresses = ["10.0.0.1/24", "fd00::1/64"].map(|address| address.parse().unwrap());
    namespace.configure("tun0", &addresses, Some(mtu)).unwrap();
    Some((namespace, file))
}

fn payload_of(packet: &Packet) -> Vec<u8> {
    let headers = Layout::of(&packet.data).unwrap().payload;
    let mut payload = packet.data[headers..].to_vec();
    packet.tail.iter().for_each(|part| payload.extend_from_slice(part));
    payload
}

/// Receives the next packet for `port`. The kernel sends others of its own at times: their memory
/// goes back to the device.
async fn receive(tun: &mut Tun, port: u16) -> Packet {
    let mut batch = Vec::new();
    loop {
        let received = tokio::time::timeout(PATIENCE, tun.recv(&mut batch, 1)).await;
        received.expect("a packet").unwrap();
        let data = &batch[0].data;
        let is_for =
            |layout: Layout| data[layout.transport + 2..layout.transport + 4] == port.to_be_bytes();
        if Layout::of(data).is_some_and(is_for) {
            return batch.pop().unwrap();
        }
        tun.recycle(&mut batch);
    }
}

#[track_caller]
fn assert_wire_form(packet: &Packet) {
    let mut count = 0;
    each_segment(packet, |segment| {
        let layout = Layout::of(&segment.data).unwrap();
        let at =
            |from: usize| IpAddr::from(<[u8; 4]>::try_from(&segment.data[from..from + 4]).unwrap());
        let bytes = &segment.data[layout.transport..];
        assert!(verify_transport(at(12), at(16), layout.protocol(), bytes));
        count += 1;
    });
    let size = packet.segment_size.map_or(usize::MAX, usize::from);
    assert_eq!(count, payload_of(packet).len().div_ceil(size));
}

#[tokio::test]
async fn a_super_segment_of_udp_comes_in_as_one_packet_in_the_buffer_it_was_read_into() {
    let Some((namespace, file)) = open_offloading(1500) else { return };
    let mut tun = Tun::new(file).unwrap();
    let capabilities = tun.capabilities();
    assert!(capabilities.checksum_offload && capabilities.segmentation_offload);
    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    setsockopt(&socket, UdpGsoSegment, &1000).unwrap();
    let payload = numbered(40_500);
    let send = || socket.send_to(&payload, "10.0.0.2:9").unwrap();

    send();
    let packet = receive(&mut tun, 9).await;
    assert_eq!((packet.data.len(), packet.tail.len()), (28, 1));
    assert_eq!((packet.segment_size, packet.checksum), (Some(1000), Checksum::Partial));
    assert_eq!(payload_of(&packet), payload);
    assert_wire_form(&packet);
    let place = packet.tail[0].as_ptr();

    // A buffer is not reused while a packet references it; afterwards its memory is reused.
    send();
    let other = receive(&mut tun, 9).await;
    assert_ne!(other.tail[0].as_ptr(), place);
    let mut worked = vec![packet];
    tun.recycle(&mut worked);
    let mut places = Vec::new();
    for _ in 0..5 {
        send();
        let packet = receive(&mut tun, 9).await;
        places.push((packet.data.as_ptr(), packet.tail.as_ptr(), packet.tail[0].as_ptr()));
        assert_eq!(payload_of(&packet), payload);
        worked.push(packet);
        tun.recycle(&mut worked);
    }
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
    assert_eq!(places[0].2, place);
    assert_eq!(payload_of(&other), payload, "nobody wrote there");
}

#[tokio::test]
async fn a_small_packet_is_copied_and_its_checksum_is_open() {
    let Some((namespace, file)) = open_offloading(1500) else { return };
    let mut tun = Tun::new(file).unwrap();
    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    let mut kept = Vec::new();
    for _ in 0..5 {
        socket.send_to(&numbered(1400), "10.0.0.2:9").unwrap();
        kept.push(receive(&mut tun, 9).await);
    }
    for packet in &kept {
        assert_eq!((packet.data.len(), packet.tail.len()), (1428, 0));
        assert_eq!((packet.segment_size, packet.checksum), (None, Checksum::Partial));
        assert_wire_form(packet);
    }
}

#[tokio::test]
async fn a_large_packet_is_no_super_segment() {
    let Some((namespace, file)) = open_offloading(9000) else { return };
    let mut tun = Tun::new(file).unwrap();
    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    socket.send_to(&numbered(8000), "10.0.0.2:9").unwrap();
    let received = receive(&mut tun, 9).await;
    assert_eq!((received.data.len(), received.tail.len(), received.segment_size), (28, 1, None));
    assert_eq!(payload_of(&received), numbered(8000));
    assert_wire_form(&received);

    let flow = Flow { dst: "10.0.0.1".parse().unwrap(), tcp: false, port: 9 };
    tun.send(&mut VecDeque::from([packet(flow, &numbered(8000), None)])).await;
    let mut buffer = [0; 9000];
    let length = socket.recv(&mut buffer).unwrap();
    assert_eq!(buffer[..length], numbered(8000));
}

/// Acts as the peer of a kernel's TCP connection that accepts data in order. Returns the stream and
/// the largest packet.
async fn drain(tun: &mut Tun, wanted: usize) -> (Vec<u8>, Packet) {
    let (mut stream, mut next) = (Vec::new(), None);
    let mut largest = Packet::default();
    while stream.len() < wanted {
        let packet = receive(tun, 80).await;
        let tcp = &packet.data[20..];
        let seq = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
        let is_syn = tcp[13] & 2 != 0;
        let payload = payload_of(&packet);
        if is_syn {
            next = Some(seq.wrapping_add(1));
        } else if next == Some(seq) {
            next = Some(seq.wrapping_add(payload.len() as u32));
            stream.extend(payload);
        }
        let mut answer = vec![0x45, 0, 0, 48, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
        let sum = checksum(&answer);
        answer[10..12].copy_from_slice(&sum.to_be_bytes());
        answer.extend([0, 80, tcp[0], tcp[1]]);
        answer.extend((if is_syn { 99u32 } else { 100 }).to_be_bytes());
        answer.extend(next.unwrap().to_be_bytes());
        // SYN and ACK with an MSS of 1460 and a window scale of 7, or ACK; a window of 64 KiB, or
        // of 8 MiB.
        answer.extend([7 << 4, if is_syn { 0x12 } else { 0x10 }, 0xff, 0xff, 0, 0, 0, 0]);
        answer.extend(if is_syn { [2, 4, 5, 180, 3, 3, 7, 0] } else { [0; 8] });
        let mut sum = Sum::new();
        sum.add_pseudo_header([10, 0, 0, 2].into(), [10, 0, 0, 1].into(), 6, 28);
        answer[36..38].copy_from_slice(&sum.folded().to_be_bytes());
        let answer = Packet { checksum: Checksum::Partial, ..Packet::new(answer) };
        tun.send(&mut VecDeque::from([answer])).await;
        if packet.len() > largest.len() {
            largest = packet;
        }
    }
    (stream, largest)
}

#[tokio::test]
async fn super_segments_of_a_kernel_sender_come_in_whole() {
    let Some((namespace, file)) = open_offloading(1500) else { return };
    let mut tun = Tun::new(file).unwrap();
    let data = numbered(4 << 20);
    let expected = data.clone();
    let writer = namespace.spawn_thread(move || {
        let mut stream = TcpStream::connect("10.0.0.2:80").unwrap();
        stream.write_all(&data).unwrap();
        stream
    });
    let (stream, largest) = drain(&mut tun, expected.len()).await;
    assert!(stream == expected);
    assert!(largest.len() >= 28_000, "the largest has {} bytes", largest.len());
    assert_eq!((largest.data.len(), largest.tail.len()), (40, 1));
    assert_eq!((largest.segment_size, largest.checksum), (Some(1460), Checksum::Partial));
    assert_wire_form(&largest);
    assert_eq!(tun.counters().rx_errors, 0);
    drop(writer);
}

#[tokio::test]
async fn five_datagrams_in_one_packet_are_five_at_a_socket_of_the_kernel() {
    let Some((namespace, file)) = open_offloading(1500) else { return };
    let mut tun = Tun::new(file).unwrap();
    for (bind, dst) in [("10.0.0.1:9", "10.0.0.1"), ("[fd00::1]:9", "fd00::1")] {
        let socket = namespace.run(move || UdpSocket::bind(bind).unwrap());
        let flow = Flow { dst: dst.parse().unwrap(), tcp: false, port: 9 };
        let payload = numbered(4500);
        tun.send(&mut VecDeque::from([packet(flow, &payload, Some(1000))])).await;
        let mut buffer = [0; 2000];
        for expected in payload.chunks(1000) {
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], *expected);
        }
    }
    assert_eq!((tun.counters().tx_packets, tun.counters().tx_errors), (2, 0));
}

#[tokio::test]
async fn datagrams_that_leave_together_are_one_packet_and_arrive_one_by_one() {
    let Some((namespace, file)) = open_offloading(1500) else { return };
    let mut tun = Tun::new(file).unwrap();
    for (bind, dst) in [("10.0.0.1:9", "10.0.0.1"), ("[fd00::1]:9", "fd00::1")] {
        let socket = namespace.run(move || UdpSocket::bind(bind).unwrap());
        let flow = Flow { dst: dst.parse().unwrap(), tcp: false, port: 9 };
        let datagrams = numbered(4500);
        let in_one_place = |mut packet: Packet| {
            let tail = std::mem::take(&mut packet.tail);
            tail.iter().for_each(|part| packet.data.extend_from_slice(part));
            packet
        };
        let packets = datagrams.chunks(1000).map(|part| in_one_place(packet(flow, part, None)));
        let before = tun.counters().tx_packets;
        let mut queue: VecDeque<_> = packets.collect();
        assert_eq!((tun.try_send(&mut queue), queue.len()), (5, 0));
        assert_eq!(tun.counters().tx_packets - before, 1);
        let mut buffer = [0; 2000];
        for expected in datagrams.chunks(1000) {
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], *expected);
        }
    }
    assert_eq!(tun.counters().tx_errors, 0);
}

/// The kernel segments a super-segment that it forwards to a device without offload exactly as
/// `each_segment` does.
#[tokio::test]
async fn the_kernel_cuts_as_each_segment_shows() {
    let Some((namespace, file)) = open_offloading(1500) else { return };
    let plain = namespace.run(|| TunFile::open("tun1")).unwrap();
    let addresses = ["10.0.1.1/24", "fd00:1::1/64"].map(|address| address.parse().unwrap());
    namespace.configure("tun1", &addresses, None).unwrap();
    namespace.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
    namespace.set_sysctl("net.ipv6.conf.all.forwarding", "1").unwrap();
    let (mut tun, mut plain) = (Tun::new(file).unwrap(), Tun::new(plain).unwrap());
    let payload = numbered(50_500);
    for (dst, tcp, size) in [
        ("10.0.1.2", true, Some(1000)),
        ("10.0.1.2", false, Some(1000)),
        ("fd00:1::2", true, Some(1000)),
        ("fd00:1::2", false, Some(1000)),
        ("10.0.1.2", true, None),
        ("fd00:1::2", false, None),
    ] {
        let flow = Flow { dst: dst.parse().unwrap(), tcp, port: 9 };
        let whole = if size.is_some() { &payload[..] } else { &payload[..1400] };
        let sent = packet(flow, whole, size);
        let mut expected = Vec::new();
        each_segment(&sent, |segment| expected.push(segment.data.clone()));
        tun.send(&mut VecDeque::from([sent])).await;
        for mut expected in expected {
            let arrived = receive(&mut plain, 9).await;
            assert_eq!((arrived.segment_size, arrived.checksum), (None, Checksum::Full));
            // The hop limit is one less.
            if expected[0] == 0x45 {
                expected[8] -= 1;
                expected[10..12].fill(0);
                let sum = checksum(&expected[..20]);
                expected[10..12].copy_from_slice(&sum.to_be_bytes());
            } else {
                expected[7] -= 1;
            }
            assert!(arrived.data == expected, "{dst} {tcp} {size:?}: {:?}", &arrived.data[..60]);
        }
    }
    assert_eq!(tun.counters().tx_errors, 0);
}

/// A super-segment's CWR is only on its first segment. RFC 3168 section 6.1.2: a sender sets CWR on
/// the first new segment after a reduction, and on no other.
#[tokio::test]
async fn cwr_of_a_super_segment_is_on_the_first_of_its_segments_alone() {
    let Some((namespace, file)) = open_offloading(1500) else { return };
    let plain = namespace.run(|| TunFile::open("tun1")).unwrap();
    let addresses = ["10.0.1.1/24", "fd00:1::1/64"].map(|address| address.parse().unwrap());
    namespace.configure("tun1", &addresses, None).unwrap();
    namespace.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
    namespace.set_sysctl("net.ipv6.conf.all.forwarding", "1").unwrap();
    let (mut tun, mut plain) = (Tun::new(file).unwrap(), Tun::new(plain).unwrap());
    let payload = numbered(5_500);
    for dst in ["10.0.1.2", "fd00:1::2"] {
        let mut sent =
            packet(Flow { dst: dst.parse().unwrap(), tcp: true, port: 9 }, &payload, Some(1000));
        let flags = Layout::of(&sent.data).unwrap().transport + 13;
        sent.data[flags] |= CWR;
        let before = tun.counters().tx_packets;
        tun.send(&mut VecDeque::from([sent])).await;
        assert_eq!(tun.counters().tx_packets - before, 1);
        let mut arrived = Vec::new();
        for at in 0..6 {
            let piece = receive(&mut plain, 9).await;
            let ip = ip::parse(&piece.data).unwrap();
            assert!(verify_transport(ip.src, ip.dst, ip.protocol, ip.payload));
            let (.., segment) = tcp::parse(ip.payload).unwrap();
            assert_eq!(segment.seq, SeqNumber(5) + at * 1000);
            assert_eq!(piece.data[flags] & CWR != 0, at == 0, "{dst}, segment {at}");
            arrived.extend(payload_of(&piece));
        }
        assert!(arrived == payload, "{dst}");
    }
    assert_eq!(tun.counters().tx_errors, 0);
}

/// A connection to the kernel with ECN, without losses.
struct EcnSender {
    tun: Tun,
    flow: FlowId,
    header: Header,
}

impl EcnSender {
    async fn connect(tun: Tun, flow: FlowId) -> Self {
        let syn = Flags { syn: true, ece: true, cwr: true, ..Flags::default() };
        let seq = SeqNumber(1000);
        let header = Header { seq, flags: syn, window: 0xffff, ..Header::default() };
        let mut sender = Self { tun, flow, header };
        sender.tun.send(&mut VecDeque::from([emit(&flow, 64, &header, &[])])).await;
        let answer = receive(&mut sender.tun, flow.local.port()).await;
        let (.., segment) = tcp::parse(&answer.data[20..]).unwrap();
        assert!(segment.flags.syn && segment.flags.ece && !segment.flags.cwr, "{segment:?}");
        let ack = Some(segment.seq + 1);
        sender.header = Header { seq: seq + 1, ack, flags: Flags::ACK, ..header };
        sender.tun.send(&mut VecDeque::from([emit(&flow, 64, &sender.header, &[])])).await;
        sender
    }

    /// Sends data as one packet to be segmented at 1000 bytes. Returns whether the ACK of all of it
    /// has ECE.
    async fn send(&mut self, data: &[u8], ecn: u8, cwr: bool) -> bool {
        let header = Header { flags: Flags { cwr, ..Flags::ACK }, ..self.header };
        let payload = Arc::new(data.to_vec());
        let payload = std::iter::once(SharedBytes::new(&payload, 0..data.len()));
        let mut packet = emit_super(Packet::default(), &self.flow, 64, &header, payload, 1000);
        assert_eq!(packet.segment_size.is_some(), data.len() > 1000);
        ip::set_ecn(&mut packet.data, ecn);
        let before = self.tun.counters().tx_packets;
        self.tun.send(&mut VecDeque::from([packet])).await;
        assert_eq!(self.tun.counters().tx_packets - before, 1);
        self.header.seq = self.header.seq + data.len() as u32;
        loop {
            let answer = receive(&mut self.tun, self.flow.local.port()).await;
            let (.., segment) = tcp::parse(&answer.data[20..]).unwrap();
            if segment.ack == self.header.seq {
                return segment.flags.ece;
            }
        }
    }
}

/// The CWR of a super-segment ends the kernel's ECE. ECN is that of RFC 3168: Linux 6.18 rejects
/// the settings of `tcp_ecn` for AccECN.
#[tokio::test]
async fn cwr_of_a_super_segment_ends_the_echo_of_a_kernel_receiver() {
    let Some((namespace, file)) = open_offloading(1500) else { return };
    namespace.set_sysctl("net.ipv4.tcp_ecn", "1").unwrap();
    let listener = namespace.run(|| TcpListener::bind("10.0.0.1:80").unwrap());
    let flow =
        FlowId { local: "10.0.0.2:1000".parse().unwrap(), remote: "10.0.0.1:80".parse().unwrap() };
    let mut sender = EcnSender::connect(Tun::new(file).unwrap(), flow).await;
    let data = numbered(41_500);
    assert!(!sender.send(&data[..500], ip::ECT_0, false).await);
    assert!(sender.send(&data[500..1_500], ip::CE, false).await);
    assert!(sender.send(&data[1_500..21_500], ip::ECT_0, false).await);
    assert!(!sender.send(&data[21_500..], ip::ECT_0, true).await);
    assert_eq!(sender.tun.counters().tx_errors, 0);
    let (mut stream, _) = listener.accept().unwrap();
    let mut arrived = vec![0; data.len()];
    stream.read_exact(&mut arrived).unwrap();
    assert!(arrived == data);
}

#[tokio::test]
async fn memory_of_what_was_sent_comes_back_empty() {
    let Some((_namespace, file)) = open_offloading(1500) else { return };
    let mut tun = Tun::new(file).unwrap();
    let flow = Flow { dst: "10.0.0.1".parse().unwrap(), tcp: true, port: 9 };
    // A few parts, and more parts than the device sends without an allocation.
    for len in [3_000, 60_000] {
        let packet = packet(flow, &numbered(len), Some(1000));
        let (data, tail) = (packet.data.as_ptr(), packet.tail.as_ptr());
        tun.send(&mut VecDeque::from([packet])).await;
        let mut sent = Vec::new();
        tun.reclaim(&mut sent);
        assert_eq!(sent, [Packet::default()]);
        assert_eq!((sent[0].data.as_ptr(), sent[0].tail.as_ptr()), (data, tail));
    }
    // The kernel received the packets: it answers each with a reset.
    for _ in 0..2 {
        let answer = receive(&mut tun, 1000).await;
        assert_eq!(answer.data[33] & 4, 4);
    }
}

#[tokio::test]
async fn offloads_that_the_device_lacks_are_refused() {
    let Some((_namespace, file)) = open_offloading(1500) else { return };
    let mut tun = Tun::new(file).unwrap();
    let flow = Flow { dst: "10.0.0.1".parse().unwrap(), tcp: false, port: 9 };
    let mut gre = packet(flow, &numbered(3000), Some(1000));
    gre.data[9] = 47;
    let mut batch = VecDeque::from([
        gre.clone(),
        Packet { segment_size: None, ..gre },
        packet(flow, &numbered(3000), Some(0)),
        packet(flow, &numbered(65_508), Some(1000)),
    ]);
    tun.send(&mut batch).await;
    assert_eq!((tun.counters().tx_errors, tun.counters().tx_packets), (4, 0));
}

#[tokio::test]
async fn a_device_that_offloaded_for_its_last_owner_is_plain_for_the_next() {
    let Some((namespace, file)) = open_offloading(1500) else { return };
    let tun = Tun::new(file).unwrap();
    tun.persist().unwrap();
    drop(tun);
    let plain = namespace.run(|| TunFile::open("tun0")).unwrap();
    let mut plain = Tun::new(plain).unwrap();
    assert_eq!(plain.capabilities(), Capabilities::default());
    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    setsockopt(&socket, UdpGsoSegment, &1000).unwrap();
    // The kernel drops what it sends before it has noticed that the device has an owner again.
    let first = loop {
        socket.send_to(&numbered(2500), "10.0.0.2:9").unwrap();
        let soon = Duration::from_millis(100);
        if let Ok(packet) = tokio::time::timeout(soon, receive(&mut plain, 9)).await {
            break packet;
        }
    };
    for (at, length) in [1000, 1000, 500].into_iter().enumerate() {
        let packet = if at == 0 { first.clone() } else { receive(&mut plain, 9).await };
        assert_eq!((packet.len(), packet.checksum), (28 + length, Checksum::Full));
        assert_wire_form(&packet);
    }
}

#[tokio::test]
async fn each_queue_of_an_interface_has_flows_of_its_own() {
    let options = TunOptions { offload: true, multi_queue: true };
    if or_skip(requirements()).is_none() {
        return;
    }
    let namespace = Namespace::new().unwrap();
    let open = move || TunFile::open_with("tun0", options).unwrap();
    let queues = [namespace.run(open), namespace.run(open)];
    namespace.configure("tun0", &["10.0.0.1/24".parse().unwrap()], None).unwrap();
    let mut queues = queues.map(|file| Tun::new(file).unwrap());
    // With this many flows, one queue for all is as likely as 64 heads in a row.
    for _ in 0..64 {
        let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:0").unwrap());
        socket.send_to(b"?", "10.0.0.2:9").unwrap();
    }
    for queue in &mut queues {
        receive(queue, 9).await;
    }
    // Each queue can send, too.
    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    let flow = Flow { dst: "10.0.0.1".parse().unwrap(), tcp: false, port: 9 };
    for queue in &mut queues {
        queue.send(&mut VecDeque::from([packet(flow, &numbered(2000), Some(1000))])).await;
        for _ in 0..2 {
            assert_eq!(socket.recv(&mut [0; 2000]).unwrap(), 1000);
        }
    }
}
