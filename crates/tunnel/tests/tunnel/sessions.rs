//! Handshakes, queues and peers, without a stack.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airtcp_device::Device;
use airtcp_tunnel::memory::{Socket, Switch};
use airtcp_tunnel::{
    Datagrams, PeerConfig, PresharedKey, PrivateKey, Tunnel, TunnelConfig, TunnelError,
};
use airtcp_types::Packet;

use crate::kit::{
    FAR, NEAR, ends, ends_of, far_config, near_config, outside, packet, peer, send, status, take,
};

#[test]
fn packets_wait_for_the_handshake_in_order_and_the_rest_is_counted() {
    let mut ends = ends();
    let lengths: Vec<u16> = (100..300).collect();
    for &length in &lengths {
        send(&mut ends.near, packet(NEAR, FAR, length));
    }
    assert_eq!((ends.near.counters().tx_packets, ends.near.counters().tx_dropped), (128, 72));
    assert_eq!(status(&ends.near).tx_dropped, 72);
    let (_, far) = ends.settle();
    let arrived: Vec<_> = far.iter().map(|packet| packet.len() as u16).collect();
    assert_eq!(arrived, lengths[..128]);
    // The queue is empty again.
    send(&mut ends.near, packet(NEAR, FAR, 1420));
    assert_eq!(ends.settle().1.len(), 1);
    assert_eq!(ends.far.counters().rx_packets, 129);
}

#[test]
fn both_directions_use_the_session_and_memory_is_used_again() {
    let mut ends = ends();
    ends.establish();
    send(&mut ends.far, packet(FAR, NEAR, 200));
    let (mut near, _) = ends.settle();
    assert_eq!(near, [packet(FAR, NEAR, 200)]);
    ends.near.recycle(&mut near);
    send(&mut ends.far, packet(FAR, NEAR, 60));
    assert_eq!(ends.settle().0, [packet(FAR, NEAR, 60)]);
    let mut sent = Vec::new();
    ends.far.reclaim(&mut sent);
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|packet| packet.is_empty() && packet.data.capacity() > 0));
}

#[test]
fn what_the_tunnel_cannot_carry_is_counted() {
    let mut ends = ends();
    let mut cut = packet(NEAR, FAR, 100);
    cut.segment_size = Some(20);
    let mut odd = packet(NEAR, FAR, 100);
    odd.data[0] = 0x15;
    let stranger = packet(NEAR, Ipv4Addr::new(10, 77, 0, 9), 100);
    for bad in [packet(NEAR, FAR, 1421), cut, odd, stranger, Packet::default()] {
        send(&mut ends.near, bad);
    }
    // The far end does not know the endpoint of the near one.
    send(&mut ends.far, packet(FAR, NEAR, 100));
    assert_eq!((ends.near.counters().tx_errors, ends.near.counters().tx_packets), (5, 0));
    assert_eq!((ends.far.counters().tx_errors, ends.far.counters().tx_packets), (1, 0));
    assert_eq!(ends.settle(), (vec![], vec![]));
}

#[test]
fn the_wrong_key_gets_no_session() {
    for psk_only in [false, true] {
        let (near_key, far_key, other) =
            (PrivateKey::generate(), PrivateKey::generate(), PrivateKey::generate());
        let expected = if psk_only { &near_key } else { &other };
        let mut far = far_config((&far_key, expected.public_key()));
        if psk_only {
            far.peers[0].preshared_key = Some(PresharedKey::generate());
        }
        let near = near_config((&near_key, far_key.public_key()));
        let mut ends = ends_of(near, far, near_key, far_key);
        send(&mut ends.near, packet(NEAR, FAR, 100));
        assert_eq!(ends.settle(), (vec![], vec![]));
        // A different preshared key is detected only in the response.
        let judge = if psk_only { &ends.near } else { &ends.far };
        assert_eq!(judge.counters().rx_errors, 1);
        assert_eq!(status(judge).last_handshake, None);
        assert_eq!(ends.far.handle().counters().rx_unknown, u64::from(!psk_only));
    }
}

#[test]
fn many_peers_have_their_own_sessions_and_the_longest_prefix_decides() {
    let mut ends = ends();
    let far_key = ends.far_key.clone();
    let mut others = Vec::new();
    for n in 10..40 {
        let key = PrivateKey::generate();
        let inner = Ipv4Addr::new(10, 77, 0, n);
        let mut config = peer(key.public_key(), inner, None);
        if n == 10 {
            config.allowed_ips.push("10.77.0.0/16".parse().unwrap());
        }
        ends.far.handle().add_peer(config).unwrap();
        let socket = ends.switch.bind(outside(n, 40_000)).unwrap();
        let config = near_config((&key, far_key.public_key()));
        others.push((inner, Tunnel::new(socket, config).unwrap()));
    }
    for (inner, tunnel) in &mut others {
        send(tunnel, packet(*inner, FAR, 100));
    }
    let mut arrived = Vec::new();
    for _ in 0..4 {
        ends.far.try_recv(&mut arrived, 1 << 16).unwrap();
        for (_, tunnel) in &mut others {
            tunnel.try_recv(&mut Vec::new(), 1 << 16).unwrap();
        }
    }
    assert_eq!(arrived.len(), others.len());
    for last in [10, 11, 39, 200] {
        send(&mut ends.far, packet(FAR, Ipv4Addr::new(10, 77, 0, last), 100));
    }
    let mut came = |n: usize| {
        let mut packets = Vec::new();
        others[n].1.try_recv(&mut packets, 64).unwrap();
        packets.len()
    };
    assert_eq!((came(0), came(1), came(2), came(29)), (2, 1, 0, 1));
}

#[test]
fn a_contradiction_is_refused_with_its_reason() {
    let (key, other) = (PrivateKey::generate(), PrivateKey::generate().public_key());
    let refused = |peers: Vec<PeerConfig>, mtu| {
        let socket = Switch::new(1).bind(outside(1, 1)).unwrap();
        let config = TunnelConfig { private_key: key.clone(), peers, mtu };
        Tunnel::new(socket, config).unwrap_err()
    };
    let first = peer(other, NEAR, None);
    let own = PeerConfig::new(key.public_key());
    assert_eq!(refused(vec![own], 1420), TunnelError::OwnKey);
    assert_eq!(
        refused(vec![first.clone(), PeerConfig::new(other)], 1420),
        TunnelError::KnownPeer(other)
    );
    let second = peer(PrivateKey::generate().public_key(), NEAR, None);
    let network = first.allowed_ips[0];
    assert_eq!(
        refused(vec![first.clone(), second], 1420),
        TunnelError::TakenNetwork { network, peer: other }
    );
    assert_eq!(refused(vec![], 575), TunnelError::Mtu(575));
    for keepalive in [Duration::ZERO, Duration::from_secs(65_536)] {
        let peer = PeerConfig { keepalive: Some(keepalive), ..first.clone() };
        assert_eq!(refused(vec![peer], 1420), TunnelError::Keepalive(keepalive));
    }
    let io = io::Error::from(TunnelError::Mtu(1));
    assert!(io.kind() == io::ErrorKind::InvalidInput && io.to_string().contains("1420"), "{io}");
}

/// An end that restarts while the other one remembers its earlier handshakes.
#[test]
fn an_end_that_restarts_is_taken_up_again() {
    let mut ends = ends();
    ends.establish();
    let config = near_config((&ends.near_key, ends.far_key.public_key()));
    ends.near = Tunnel::new(ends.near_socket.clone(), config).unwrap();
    ends.establish();
    assert_eq!(status(&ends.far).rx_replayed, 0);
}

/// A socket that is temporarily full.
struct Narrow {
    socket: Socket,
    is_full: Arc<AtomicBool>,
}

impl Datagrams for Narrow {
    fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.socket.try_recv_from(buf)
    }

    fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.socket.try_send_to(data, to)
    }

    async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    async fn writable(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_socket_pushes_back_and_loses_nothing() {
    let mut ends = ends();
    let is_full = Arc::new(AtomicBool::new(false));
    let socket = ends.switch.bind(outside(5, 40_000)).unwrap();
    let config = near_config((&ends.near_key, ends.far_key.public_key()));
    let mut near = Tunnel::new(Narrow { socket, is_full: is_full.clone() }, config).unwrap();
    send(&mut near, packet(NEAR, FAR, 100));
    let mut arrived = Vec::new();
    let mut settle = |near: &mut Tunnel<Narrow>, arrived: &mut Vec<_>| {
        for _ in 0..4 {
            ends.far.try_recv(arrived, 1 << 16).unwrap();
            near.try_recv(&mut Vec::new(), 1 << 16).unwrap();
        }
    };
    settle(&mut near, &mut arrived);
    is_full.store(true, Ordering::Relaxed);
    let mut batch: VecDeque<_> = (101..110).map(|length| packet(NEAR, FAR, length)).collect();
    // One packet is encrypted and waits for the socket.
    assert_eq!((near.try_send(&mut batch), near.try_send(&mut batch)), (1, 0));
    is_full.store(false, Ordering::Relaxed);
    assert_eq!(near.try_send(&mut batch), 8);
    settle(&mut near, &mut arrived);
    let arrived: Vec<_> = arrived.iter().map(|packet| packet.len() as u16).collect();
    assert_eq!(arrived, (100..110).collect::<Vec<_>>());
    assert_eq!(near.counters().tx_dropped, 0);
}

/// In real time, because boringtun reads its own clock.
#[tokio::test]
#[ignore = "takes two minutes"]
async fn a_handshake_without_an_answer_is_given_up_and_the_next_packet_starts_another() {
    let mut ends = ends();
    drop(ends.far);
    let nobody = ends.switch.bind(outside(1, 51_820)).unwrap();
    send(&mut ends.near, packet(NEAR, FAR, 100));
    let mut initiations = 0;
    let mut wakes = 0;
    while ends.near.counters().tx_dropped == 0 {
        ends.near.readable().await.unwrap();
        ends.near.try_recv(&mut Vec::new(), 64).unwrap();
        initiations += take(&nobody).len();
        wakes += 1;
    }
    assert!((10..=20).contains(&initiations), "{initiations}");
    assert!((90..=1000).contains(&wakes), "{wakes}");
    // It sleeps once no timer can be due any more.
    let idle = async {
        loop {
            ends.near.readable().await.unwrap();
            ends.near.try_recv(&mut Vec::new(), 64).unwrap();
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), idle).await.is_err());
    let wait = tokio::time::timeout(Duration::from_secs(1), ends.near.readable());
    assert!(wait.await.is_err());
    assert!(take(&nobody).is_empty());
    send(&mut ends.near, packet(NEAR, FAR, 100));
    assert_eq!(take(&nobody).len(), 1);
}
