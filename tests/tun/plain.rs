//! Packets without offload between the device and the kernel.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::{Device, Tun};
use airtcp_types::{Checksum, Packet, SharedBytes};

use crate::open;

/// The number of packets, per direction, whose memory a device keeps.
const KEPT: usize = 64;

/// An IPv4 UDP packet from 10.0.0.2:1000 to 10.0.0.1:`port`, without a UDP checksum.
fn udp(port: u16, payload: &[u8]) -> Packet {
    let length = 28 + payload.len() as u16;
    let mut data = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
    data[2..4].copy_from_slice(&length.to_be_bytes());
    let sum: u32 = data.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    data[10..12].copy_from_slice(&sum.to_be_bytes());
    for field in [1000, port, length - 20, 0] {
        data.extend_from_slice(&field.to_be_bytes());
    }
    data.extend_from_slice(payload);
    Packet::new(data)
}

#[tokio::test]
async fn memory_given_back_leaves_nothing_in_what_comes_next() {
    let Some((namespace, file)) = open("tun0") else { return };
    namespace.configure("tun0", &["10.0.0.1/24".parse().unwrap()], Some(1400)).unwrap();
    let mut tun = Tun::new(file).unwrap();
    let mut old: Vec<Packet> = (0..KEPT).map(|_| Packet::new(vec![0xee; 1400])).collect();
    let places: Vec<_> = old.iter().map(|packet| packet.data.as_ptr()).collect();
    tun.recycle(&mut old);
    assert!(old.is_empty());

    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    socket.send_to(&[7; 3], "10.0.0.2:9").unwrap();
    let mut batch = Vec::new();
    while !batch.iter().any(|packet: &Packet| packet.data[9] == 17) {
        batch.clear();
        tun.recv(&mut batch, 1).await.unwrap();
    }
    assert_eq!(batch[0].data[28..], [7; 3]);
    assert!(places.contains(&batch[0].data.as_ptr()), "it was used");
}

/// Receives the payloads of UDP packets; the kernel also sends other packets.
async fn receive_udp(tun: &mut Tun, wanted: usize) -> Vec<Vec<u8>> {
    let (mut batch, mut payloads) = (Vec::new(), Vec::new());
    while payloads.len() < wanted {
        tun.recv(&mut batch, 4).await.unwrap();
        let udp = batch.drain(..).filter(|packet| packet.data[0] == 0x45 && packet.data[9] == 17);
        payloads.extend(udp.map(|packet| packet.data[28..].to_vec()));
    }
    payloads
}

#[tokio::test]
async fn packets_go_both_ways_and_are_counted() {
    let Some((namespace, file)) = open("tun0") else { return };
    namespace.configure("tun0", &["10.0.0.1/24".parse().unwrap()], Some(1400)).unwrap();
    let mut tun = Tun::new(file).unwrap();
    assert_eq!((tun.name(), tun.mtu()), ("tun0", 1400));
    // The interface's owner may change it while the device is open.
    namespace.set_mtu("tun0", 9000).unwrap();
    assert_eq!(tun.mtu(), 9000);

    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    let lengths = [1, 100, 8000];
    for length in lengths {
        socket.send_to(&vec![length as u8; length], "10.0.0.2:9").unwrap();
    }
    let payloads = receive_udp(&mut tun, lengths.len()).await;
    assert_eq!(payloads, lengths.map(|length| vec![length as u8; length]));
    assert!(tun.counters().rx_packets >= 3);
    assert!(tun.counters().rx_bytes >= 8101 + 3 * 28);

    tun.send(&mut VecDeque::from([udp(9, b"one"), udp(9, b"two")])).await;
    let mut buffer = [0; 16];
    for expected in [b"one", b"two"] {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], expected);
        assert_eq!(from, "10.0.0.2:1000".parse().unwrap());
    }
    assert_eq!((tun.counters().tx_packets, tun.counters().tx_bytes), (2, 62));
}

#[tokio::test]
async fn memory_goes_round_whichever_way_packets_go() {
    let Some((namespace, file)) = open("tun0") else { return };
    namespace.set_sysctl("net.ipv6.conf.tun0.disable_ipv6", "1").unwrap();
    namespace.configure("tun0", &["10.0.0.1/24".parse().unwrap()], None).unwrap();
    let mut tun = Tun::new(file).unwrap();
    let mut packets: VecDeque<Packet> = (0..KEPT + 1).map(|_| udp(9, b"sent")).collect();
    let before: Vec<_> = packets.iter().map(|packet| packet.data.as_ptr()).collect();
    tun.send(&mut packets).await;
    let mut sent = Vec::new();
    tun.reclaim(&mut sent);
    assert!(sent.iter().map(|packet| packet.data.as_ptr()).eq(before.into_iter().take(KEPT)));
    assert!(sent.iter().all(|packet| *packet == Packet::default()));
    tun.reclaim(&mut sent);
    assert_eq!(sent.len(), KEPT, "each is given once");

    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    let (mut batch, mut places) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        socket.send_to(&[7; 1000], "10.0.0.2:9").unwrap();
        while batch.is_empty() {
            tun.recv(&mut batch, 4).await.unwrap();
            batch.retain(|packet: &Packet| packet.data[9] == 17);
        }
        places.push(batch[0].data.as_ptr());
        tun.recycle(&mut batch);
    }
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
}

#[tokio::test]
async fn packets_that_cannot_be_sent_are_counted_and_the_rest_is_sent() {
    let Some((namespace, file)) = open("tun0") else { return };
    let mut tun = Tun::new(file).unwrap();
    // The link is down.
    tun.send(&mut (0..10).map(|_| udp(9, b"lost")).collect()).await;
    assert_eq!((tun.counters().tx_dropped, tun.counters().tx_packets), (10, 0));

    namespace.configure("tun0", &["10.0.0.1/24".parse().unwrap()], None).unwrap();
    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    // An empty packet, one without an IP version, one that is too large, three that need offload,
    // and a good one.
    let partial = Packet { checksum: Checksum::Partial, ..udp(9, b"partial") };
    let segmented = Packet { segment_size: Some(100), ..udp(9, b"segmented") };
    let tail = vec![SharedBytes::new(&Arc::new(vec![7; 4]), 0..4)];
    let tailed = Packet { tail, ..udp(9, b"") };
    let bad = [vec![], vec![0; 20], vec![0x45; 70_000]].map(Packet::new);
    let mut packets: VecDeque<Packet> = bad.into();
    packets.extend([partial, segmented, tailed, udp(9, b"good")]);
    tun.send(&mut packets).await;
    assert!(packets.is_empty());
    let mut buffer = [0; 16];
    let length = socket.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"good");
    assert_eq!((tun.counters().tx_errors, tun.counters().tx_packets), (6, 1));
}

#[tokio::test]
async fn a_link_that_is_down_does_not_spin_and_its_return_wakes_the_reader() {
    let Some((namespace, file)) = open("tun0") else { return };
    let mut tun = Tun::new(file).unwrap();
    let mut wakes = 0;
    // The link is down, then up, then down again, with an idle driver each time.
    for up in [false, true, false] {
        namespace.set_up("tun0", up).unwrap();
        let idle = async {
            loop {
                tun.readable().await.unwrap();
                wakes += 1;
                while tun.try_recv(&mut Vec::new(), 64).unwrap() > 0 {}
                tun.try_send(&mut VecDeque::from([udp(9, b"x")]));
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(300), idle).await;
    }
    // An error alone wakes the driver at most every 20 ms, and a packet of the kernel occasionally;
    // a spinning driver would wake a hundred thousand times.
    assert!(wakes < 200, "woken {wakes} times");

    namespace.configure("tun0", &["10.0.0.1/24".parse().unwrap()], None).unwrap();
    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    socket.send_to(b"up again", "10.0.0.2:9").unwrap();
    assert_eq!(receive_udp(&mut tun, 1).await, [b"up again"]);
}

#[tokio::test]
async fn a_device_that_is_deleted_ends_in_an_error() {
    let Some((namespace, file)) = open("tun0") else { return };
    namespace.set_up("tun0", true).unwrap();
    let mut tun = Tun::new(file).unwrap();
    let receiver = tokio::spawn(async move {
        let mut batch = Vec::new();
        let error = loop {
            if let Err(error) = tun.recv(&mut batch, 64).await {
                break error;
            }
        };
        // Sending after the deletion has no effect, and returns.
        tun.send(&mut VecDeque::from([udp(9, b"late")])).await;
        (error, tun.counters(), tun.mtu())
    });
    tokio::task::yield_now().await;
    namespace.remove("tun0").unwrap();
    let (_, counters, mtu) = receiver.await.unwrap();
    assert_eq!((counters.rx_errors, counters.tx_errors, mtu), (1, 1, 1500));
}

#[tokio::test]
async fn a_reader_that_never_waits_sees_a_deletion() {
    let Some((namespace, file)) = open("tun0") else { return };
    namespace.set_up("tun0", true).unwrap();
    let mut tun = Tun::new(file).unwrap();
    // Nothing is left to read, and the reactor knows it.
    while tun.try_recv(&mut Vec::new(), 64).unwrap() > 0 {}
    namespace.remove("tun0").unwrap();
    let busy = async {
        while tun.try_recv(&mut Vec::new(), 64).is_ok() {
            tokio::select! {
                ready = tun.readable() => ready.unwrap(),
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), busy).await.expect("to hear of it");
}

#[tokio::test]
async fn a_batch_is_no_longer_than_asked_for_and_the_rest_stays() {
    let Some((namespace, file)) = open("tun0") else { return };
    namespace.set_sysctl("net.ipv6.conf.tun0.disable_ipv6", "1").unwrap();
    namespace.configure("tun0", &["10.0.0.1/24".parse().unwrap()], None).unwrap();
    let mut tun = Tun::new(file).unwrap();
    let socket = namespace.run(|| UdpSocket::bind("10.0.0.1:9").unwrap());
    for number in 0..5 {
        socket.send_to(&[number], "10.0.0.2:9").unwrap();
    }
    let mut batch = Vec::new();
    assert_eq!(tun.recv(&mut batch, 3).await.unwrap(), 3);
    // The device is still readable, although no new edge arrives.
    tun.readable().await.unwrap();
    assert_eq!(tun.recv(&mut batch, 3).await.unwrap(), 2);
    assert_eq!(batch.iter().map(|packet| packet.data[28]).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(tun.try_recv(&mut batch, 3).unwrap(), 0);
}
