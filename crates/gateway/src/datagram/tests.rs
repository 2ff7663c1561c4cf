//! Both ends, on stacks joined by a cable in memory, with kernel sockets as servers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use airtcp_device::{Clock, Device, Memory, memory};
use airtcp_link::Link;
use airtcp_net::{Driver, Stack};
use airtcp_stack::HostConfig;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::*;
use crate::{Destination, Rules, carrier_config};

const MTU: usize = 1420;
const PATIENCE: Duration = Duration::from_secs(20);
const PROGRAM: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, 1, 1)), 4444);

/// Two running ends; the handles keep them alive.
struct Ends {
    near: NearDatagrams,
    far: Arc<FarDatagrams>,
    far_stack: Stack,
    run: JoinHandle<()>,
}

fn everything() -> FarDatagramsConfig {
    let rules = Rules { allow: Vec::new(), deny: Vec::new() };
    FarDatagramsConfig { rules, ..FarDatagramsConfig::default() }
}

const NEAR: [&str; 2] = ["10.77.0.2/24", "fd77::2/64"];
const FAR: [&str; 2] = ["10.77.0.1/24", "fd77::1/64"];

fn stack(device: Memory, addresses: [&str; 2]) -> Stack {
    Stack::new(device, HostConfig::new(addresses.map(|text| text.parse().unwrap()))).unwrap()
}

fn stacks() -> (Stack, Stack) {
    let (left, right) = memory::pair(MTU, 1024);
    (stack(left, NEAR), stack(right, FAR))
}

fn serve(far: &Arc<FarDatagrams>) -> JoinHandle<()> {
    let far = far.clone();
    tokio::spawn(async move { drop(far.run().await) })
}

fn ends_at(far: &str, near_config: NearDatagramsConfig, far_config: FarDatagramsConfig) -> Ends {
    let listen = far.parse().unwrap();
    let (near_stack, far_stack) = stacks();
    let far = Arc::new(FarDatagrams::new(&far_stack, listen, far_config).unwrap());
    let near = NearDatagrams::start(&near_stack, listen, near_config).unwrap();
    Ends { near, run: serve(&far), far, far_stack }
}

fn ends(far: FarDatagramsConfig) -> Ends {
    ends_at("10.77.0.1:7077", NearDatagramsConfig::default(), far)
}

/// Starts a socket that returns each datagram to its sender.
async fn echo(at: &str) -> SocketAddr {
    let socket = UdpSocket::bind(at).await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buf = vec![0; 1 << 16];
        loop {
            let (len, from) = socket.recv_from(&mut buf).await.unwrap();
            socket.send_to(&buf[..len], from).await.unwrap();
        }
    });
    address
}

async fn receive(association: &Association) -> (Vec<u8>, SocketAddr) {
    let mut buf = vec![0; 1 << 16];
    let received = timeout(PATIENCE, association.recv_from(&mut buf)).await;
    let (len, from) = received.expect("no datagram").unwrap();
    buf.truncate(len);
    (buf, from)
}

/// Waits until `is_so` returns true.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"));
}

#[tokio::test]
async fn datagrams_of_all_sizes_come_back_over_both_families() {
    for carrier in ["10.77.0.1:7077", "[fd77::1]:7077"] {
        let ends = ends_at(carrier, NearDatagramsConfig::default(), everything());
        for server in [echo("127.0.0.1:0").await, echo("[::1]:0").await] {
            let association = ends.near.associate(PROGRAM).unwrap();
            for len in [5, 0, 1200, 1350, 1372, 1452, 1472, 4096, 60_000, 65_507] {
                let data: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
                assert_eq!(association.send_to(&data, &server.into()).await.unwrap(), len);
                assert!(receive(&association).await == (data, server), "{len} bytes at {server}");
            }
            let too_long = [0; 65_508];
            let sent = association.send_to(&too_long, &server.into()).await.map(drop);
            for sent in [sent, association.ping(&too_long, server.ip())] {
                assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::InvalidInput);
            }
        }
        let (near, far) = (ends.near.status(), ends.far.status());
        assert_eq!((near.counters.sent, near.counters.received), (20, 20), "{near:?}");
        assert_eq!((far.counters.sent, far.counters.received), (20, 20), "{far:?}");
        assert_eq!((far.peers, near.counters.lost, far.counters.lost), (1, 0, 0));
    }
}

#[tokio::test]
async fn a_name_is_resolved_by_the_far_end() {
    let ends = ends(everything());
    let server = echo("127.0.0.1:0").await;
    let association = ends.near.associate(PROGRAM).unwrap();
    let to = Destination::new("localhost", server.port()).unwrap();
    for n in 0..3 {
        association.send_to(&[n], &to).await.unwrap();
    }
    for _ in 0..3 {
        assert_eq!(receive(&association).await.1, server);
    }
    association.send_to(b"?", &"name.invalid:53".parse().unwrap()).await.unwrap();
    until("an invalid name is counted", || ends.far.status().unresolved == 1).await;
}

#[tokio::test]
async fn all_destinations_see_one_port_and_strangers_may_answer() {
    let ends = ends(everything());
    let association = ends.near.associate(PROGRAM).unwrap();
    let other = ends.near.associate(PROGRAM).unwrap();
    let (a, b) = (
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        UdpSocket::bind("127.0.0.2:0").await.unwrap(),
    );
    let seen = async |server: &UdpSocket, association: &Association| {
        association.send_to(b"x", &server.local_addr().unwrap().into()).await.unwrap();
        let mut buf = [0; 9];
        timeout(PATIENCE, server.recv_from(&mut buf)).await.unwrap().unwrap().1
    };
    let port = seen(&a, &association).await.port();
    assert_eq!(seen(&b, &association).await.port(), port);
    assert_ne!(seen(&a, &other).await.port(), port);
    let stranger = UdpSocket::bind("127.0.0.3:0").await.unwrap();
    for n in 0..3 {
        stranger.send_to(&[n], ("127.0.0.1", port)).await.unwrap();
        let from = stranger.local_addr().unwrap();
        assert_eq!(receive(&association).await, (vec![n], from));
        // The answer to it reaches the stranger.
        association.send_to(b"y", &from.into()).await.unwrap();
        let mut buf = [0; 9];
        let answered = timeout(PATIENCE, stranger.recv_from(&mut buf)).await.unwrap().unwrap();
        assert_eq!(answered, (1, ([127, 0, 0, 1], port).into()));
    }
}

#[tokio::test]
async fn a_refusal_is_passed_on_and_loses_no_datagram() {
    let ends = ends(everything());
    for ip in ["127.0.0.1:0", "[::1]:0"] {
        let server = echo(ip).await;
        let closed = UdpSocket::bind(ip).await.unwrap().local_addr().unwrap();
        let association = ends.near.associate(PROGRAM).unwrap();
        for n in 0..20 {
            for to in [closed, server] {
                association.send_to(&[n], &to.into()).await.unwrap();
            }
            let mut answers = Vec::new();
            for _ in 0..2 {
                let answer = timeout(PATIENCE, association.answer()).await.expect("no answer");
                answers.push(answer.unwrap());
            }
            answers.sort_by_key(|(answer, _)| *answer == Answer::Refused);
            let expected = [(Answer::Datagram(vec![n]), server), (Answer::Refused, closed)];
            assert_eq!(answers, expected, "{n}");
        }
        // `recv` skips refusals, as SOCKS5 has none.
        association.send_to(b"x", &closed.into()).await.unwrap();
        association.send_to(b"y", &server.into()).await.unwrap();
        assert_eq!(receive(&association).await, (b"y".to_vec(), server));
    }
}

#[tokio::test]
async fn with_address_dependent_filtering_only_those_asked_may_answer() {
    let filtering = Filtering::AddressDependent;
    let ends = ends(FarDatagramsConfig { filtering, ..everything() });
    let association = ends.near.associate(PROGRAM).unwrap();
    let asked = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    association.send_to(b"x", &asked.local_addr().unwrap().into()).await.unwrap();
    let mut buf = [0; 9];
    let (_, port) = timeout(PATIENCE, asked.recv_from(&mut buf)).await.unwrap().unwrap();
    let stranger = UdpSocket::bind("127.0.0.3:0").await.unwrap();
    stranger.send_to(b"no", port).await.unwrap();
    until("the stranger is filtered", || ends.far.status().filtered == 1).await;
    let same_host = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    same_host.send_to(b"yes", port).await.unwrap();
    let from = same_host.local_addr().unwrap();
    assert_eq!(receive(&association).await, (b"yes".to_vec(), from));
}

#[tokio::test]
async fn the_rules_are_judged_on_the_address() {
    let ends = ends(FarDatagramsConfig::default());
    let server = echo("127.0.0.1:0").await;
    let association = ends.near.associate(PROGRAM).unwrap();
    let name = Destination::new("localhost", server.port()).unwrap();
    let mapped = Destination::new("::ffff:127.0.0.1", server.port()).unwrap();
    for (n, to) in (1..).zip([server.into(), name, mapped]) {
        association.send_to(b"x", &to).await.unwrap();
        until("a datagram is not allowed", || ends.far.status().not_allowed == n).await;
    }
}

#[tokio::test]
async fn associations_are_limited_by_source_and_in_all() {
    let config = NearDatagramsConfig {
        associations_per_source: 2,
        associations: 3,
        ..NearDatagramsConfig::default()
    };
    let ends = ends_at("10.77.0.1:7077", config, everything());
    let other: SocketAddr = "10.1.1.2:4444".parse().unwrap();
    let one = ends.near.associate(PROGRAM).unwrap();
    let _two = ends.near.associate(PROGRAM).unwrap();
    let full = ends.near.associate(PROGRAM).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::QuotaExceeded);
    let _three = ends.near.associate(other).unwrap();
    assert!(ends.near.associate(other).is_err());
    drop(one);
    let _again = ends.near.associate(PROGRAM).unwrap();
    assert_eq!((ends.near.status().associations, ends.near.status().refused), (3, 2));
}

#[tokio::test]
async fn the_far_end_limits_associations_and_closes_those_that_the_program_has_closed() {
    let ends = ends(FarDatagramsConfig { associations_per_peer: 2, ..everything() });
    let server = echo("127.0.0.1:0").await.into();
    let associations: Vec<_> = (0..3).map(|_| ends.near.associate(PROGRAM).unwrap()).collect();
    for association in &associations[..2] {
        association.send_to(b"x", &server).await.unwrap();
        receive(association).await;
    }
    associations[2].send_to(b"x", &server).await.unwrap();
    until("the third is refused", || ends.far.status().refused == 1).await;
    drop(associations);
    until("all are closed", || ends.far.status().associations == 0).await;
    let again = ends.near.associate(PROGRAM).unwrap();
    again.send_to(b"x", &server).await.unwrap();
    receive(&again).await;
}

#[tokio::test]
async fn an_idle_association_ends_at_both_ends() {
    let idle = Duration::from_millis(100);
    let near = NearDatagramsConfig { idle, ..NearDatagramsConfig::default() };
    let ends = ends_at("10.77.0.1:7077", near, FarDatagramsConfig { idle, ..everything() });
    let server = echo("127.0.0.1:0").await.into();
    let association = ends.near.associate(PROGRAM).unwrap();
    association.send_to(b"x", &server).await.unwrap();
    receive(&association).await;
    let ended = timeout(PATIENCE, association.recv_from(&mut [0; 9])).await.expect("no end");
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    until("the far end's is closed", || ends.far.status().associations == 0).await;
    // An ended association can be used again: its next datagram is dropped, because the far end no
    // longer knows the flow, and the one after it opens the flow again.
    association.send_to(b"x", &server).await.unwrap();
    until("its flow is not known", || ends.far.status().counters.unknown_flows == 1).await;
    let answered = async {
        loop {
            association.send_to(b"x", &server).await.unwrap();
            if timeout(idle, association.recv_from(&mut [0; 9])).await.is_ok_and(|got| got.is_ok())
            {
                break;
            }
        }
    };
    timeout(PATIENCE, answered).await.expect("no answer");
}

#[tokio::test]
async fn associations_outlive_a_restart_of_the_far_end() {
    let ends = ends(everything());
    let server = echo("127.0.0.1:0").await;
    let association = ends.near.associate(PROGRAM).unwrap();
    for _ in 0..10 {
        association.send_to(b"before", &server.into()).await.unwrap();
        receive(&association).await;
    }
    ends.run.abort();
    drop(ends.run.await);
    drop(ends.far);
    let listen = "10.77.0.1:7077".parse().unwrap();
    let far = Arc::new(FarDatagrams::new(&ends.far_stack, listen, everything()).unwrap());
    let _run = serve(&far);
    let mut buf = [0; 99];
    let answered = async {
        loop {
            association.send_to(b"after", &server.into()).await.unwrap();
            let received = timeout(Duration::from_millis(100), association.recv_from(&mut buf));
            if let Ok(received) = received.await {
                break received.unwrap();
            }
        }
    };
    assert_eq!(timeout(PATIENCE, answered).await.expect("no answer"), (5, server));
}

/// The second instance uses the association number, the destination and the port of the first.
#[tokio::test]
async fn a_near_end_that_was_restarted_gets_sockets_of_its_own() {
    let (near_stack, far_stack) = stacks();
    let listen = "10.77.0.1:7077".parse().unwrap();
    let far = Arc::new(FarDatagrams::new(&far_stack, listen, everything()).unwrap());
    let _run = serve(&far);
    let socket = near_stack.udp_bind("10.77.0.2:5000".parse().unwrap()).unwrap();
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = server.local_addr().unwrap().into();
    let mut ports = Vec::new();
    for instance in [1, 2] {
        let mut channel = Channel::new(MTU, 0, instance);
        channel.send(airtcp_types::Instant::ZERO, 1, &to, b"x");
        while let Some(frame) = channel.poll_transmit(airtcp_types::Instant::ZERO) {
            socket.send_to(&frame, listen).await.unwrap();
        }
        let received = timeout(PATIENCE, server.recv_from(&mut [0; 9])).await.expect("nothing");
        ports.push(received.unwrap().1.port());
        assert_eq!((far.status().peers, far.status().associations), (1, 1));
    }
    assert_ne!(ports[0], ports[1]);
}

/// The device takes a packet only when the previous one has left.
#[tokio::test]
async fn a_ping_does_not_wait_for_the_backlog_of_another_program() {
    let (device, mut wire) = memory::pair(MTU, 1);
    let addresses = NEAR.map(|text| text.parse().unwrap());
    let config = carrier_config(addresses, airtcp_types::ByteCount::from_mib(64), 1);
    let stack = Stack::new(device, config).unwrap();
    let far = "10.77.0.1:7077".parse().unwrap();
    let near = NearDatagrams::start(&stack, far, NearDatagramsConfig::default()).unwrap();
    let [greedy, sparse] = [(); 2].map(|()| near.associate(PROGRAM).unwrap());
    let to = Destination::from(SocketAddr::from(([192, 0, 2, 1], 5201)));
    for _ in 0..600 {
        greedy.send_to(&[b'g'; 1200], &to).await.unwrap();
    }
    let mut left = Vec::new();
    let mut before = 0;
    let mut is_sent = false;
    let is_ping = |packet: &airtcp_types::Packet| packet.data.ends_with(b"ping");
    while !left.iter().any(is_ping) {
        // The backlog is in every queue on the way.
        if left.len() >= 200 && !is_sent {
            sparse.ping(b"\0\x01ping", [192, 0, 2, 1].into()).unwrap();
            (is_sent, before) = (true, left.len());
        }
        assert!(left.len() < 600, "it waited for the backlog");
        timeout(PATIENCE, wire.recv(&mut left, 1)).await.expect("nothing leaves").unwrap();
    }
    // One is in the device, the driver has a batch of at most 64, and the stack has 32.
    let waited = left.len() - before;
    assert!(waited <= 1 + 64 + 32 + 2, "{waited}");
}

/// The device takes a packet only when the previous one has left. The first near gateway's
/// destinations answer all the time, the second one's only at the beginning.
#[tokio::test]
async fn near_gateways_take_turns_at_the_far_one() {
    let (device, mut wire) = memory::pair(MTU, 1);
    let addresses = FAR.map(|text| text.parse().unwrap());
    let config = carrier_config(addresses, airtcp_types::ByteCount::from_mib(64), 2);
    let stack = Stack::new(device, config).unwrap();
    let socket = Arc::new(stack.udp_bind("10.77.0.1:7077".parse().unwrap()).unwrap());
    let links = ["10.77.0.2:5000", "10.77.0.3:5000"].map(|peer| {
        let channel = |longest| Channel::new(longest, 0, 1);
        let link = link::Link::new(socket.clone(), peer.parse().unwrap(), channel);
        let link = Arc::new(link);
        let driven = link.clone();
        tokio::spawn(async move { driven.drive().await.map(drop) });
        link
    });
    let from = Destination::from(SocketAddr::from(([192, 0, 2, 1], 5201)));
    let answer = |link: &link::Link| {
        link.with(|channel, now| channel.send(now, 1, &from, &[0; 1200]));
    };
    for link in &links {
        (0..600).for_each(|_| answer(link));
    }
    let mut left = Vec::new();
    while left.len() < 800 {
        timeout(PATIENCE, wire.recv(&mut left, 1)).await.expect("nothing leaves").unwrap();
        answer(&links[0]);
    }
    // The last byte of the destination's address. The first one fills the queues on the way.
    let of_second = left.iter().filter(|packet| packet.data[19] == 3).count();
    assert!((300..500).contains(&of_second), "{of_second} of {}", left.len());
}

#[tokio::test]
async fn what_a_link_loses_is_repaired_in_both_directions() {
    let spec = "delay 10ms loss 10% limit 5000 seed 3".parse().unwrap();
    let ((left, a), (b, right)) = (memory::pair(MTU, 4096), memory::pair(MTU, 4096));
    let link = Link::new(&spec, &spec).unwrap();
    let mut driver = Driver::new(link, [a, b], Clock::start()).unwrap();
    tokio::spawn(async move { drop(driver.run().await) });
    let (near_stack, far_stack) = (stack(left, NEAR), stack(right, FAR));
    let listen = "10.77.0.1:7077".parse().unwrap();
    let far = Arc::new(FarDatagrams::new(&far_stack, listen, everything()).unwrap());
    let _run = serve(&far);
    let config = NearDatagramsConfig::default();
    let near = NearDatagrams::start(&near_stack, listen, config).unwrap();
    let server = echo("127.0.0.1:0").await;
    let association = near.associate(PROGRAM).unwrap();
    let mut sent = 0_u32;
    let send = async {
        while near.status().counters.recovered == 0 || far.status().counters.recovered == 0 {
            for _ in 0..20 {
                let data = sent.to_be_bytes().repeat(1 + sent as usize % 300);
                association.send_to(&data, &server.into()).await.unwrap();
                sent += 1;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    let mut seen = std::collections::HashSet::new();
    let check = async {
        loop {
            let (data, from) = association.recv().await.unwrap();
            let number = u32::from_be_bytes(*data.first_chunk().unwrap());
            assert_eq!(from, server);
            assert!(data == number.to_be_bytes().repeat(1 + number as usize % 300));
            assert!(seen.insert(number), "{number} twice");
        }
    };
    tokio::select! {
        done = timeout(PATIENCE, send) => done.expect("nothing recovered"),
        () = check => {}
    }
}

#[tokio::test]
async fn the_end_of_the_stack_is_reported() {
    let (near_stack, _far_stack) = stacks();
    let far = "10.77.0.1:7077".parse().unwrap();
    let near = NearDatagrams::start(&near_stack, far, NearDatagramsConfig::default()).unwrap();
    let association = near.associate(PROGRAM).unwrap();
    near_stack.shutdown().await;
    let ended = timeout(PATIENCE, association.recv_from(&mut [0; 9])).await.expect("no end");
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::NotConnected);
    assert!(near.associate(PROGRAM).is_err());
    let far = Destination::from(far);
    assert!(association.send_to(b"x", &far).await.is_err());
}
