//! Limits of the memory of one peer's connections, and of all connections.

use super::super::Quota;

use super::*;

const TO: &str = "10.0.0.1:80";
const CONNECTIONS: u64 = 20;
/// 1 KiB of data to send, and the overhead of a connection.
const TO_SEND: ByteCount = ByteCount(4_096);
/// Three unread segments in addition.
const UNREAD: ByteCount = ByteCount(4_500);

/// A host whose peers may use 300 KiB each and 500 KiB in total; another peer beside the client has
/// a connection.
struct World {
    pair: Pair,
    listener: SocketId,
    other: Host,
    others: (SocketId, SocketId),
}

impl World {
    fn new() -> Self {
        let mut pair = Pair::new();
        let kib = ByteCount::from_kib;
        pair.server.config.quota = Quota { memory: kib(500), ..Quota::ALL };
        pair.server.config.peer_quota = Quota { memory: kib(300), ..Quota::PEER };
        let listener = pair.server.tcp_listen(address(TO), 64).unwrap();
        let client = std::mem::replace(&mut pair.client, host(["10.0.0.3/24", "fd00::3/64"]));
        let others = pair.connect(listener, TO);
        let other = std::mem::replace(&mut pair.client, client);
        Self { pair, listener, other, others }
    }

    /// The memory used in total, and by the client's connections.
    fn held(&self) -> (ByteCount, ByteCount) {
        let held = self.pair.server.held();
        (held, held - held_by(&self.pair.server, self.others.1))
    }

    /// Transfers data in both directions on the other peer's connection and on a new one.
    fn others_go_on(&mut self) {
        std::mem::swap(&mut self.pair.client, &mut self.other);
        let Self { pair, listener, others, .. } = self;
        for (stream, accepted) in [*others, pair.connect(*listener, TO)] {
            pair.carry(stream, accepted);
            assert_eq!(pair.server.tcp_send(pair.now, accepted, &[7; 30_000]), Ok(30_000));
            pair.pass(Duration::from_secs(1));
            assert_eq!(read_all(&mut pair.client, pair.now, stream).0, [7; 30_000]);
        }
        std::mem::swap(&mut self.pair.client, &mut self.other);
    }
}

fn held_by(host: &Host, id: SocketId) -> ByteCount {
    match &host.sockets.get(id).unwrap().kind {
        super::super::Kind::Tcp(tcp) => tcp.held,
        _ => panic!("no connection"),
    }
}

#[test]
fn a_peer_that_reads_nothing_uses_up_its_own_share_alone() {
    let mut world = World::new();
    let World { pair, listener, .. } = &mut world;
    let streams: Vec<_> = (0..CONNECTIONS).map(|_| pair.connect(*listener, TO)).collect();
    // Its window is full before the server has no more memory.
    let mut stuck = 0;
    for _ in 0..50 {
        for (_, accepted) in &streams {
            let sent = pair.server.tcp_send(pair.now, *accepted, &[7; 100_000]);
            stuck += u32::from(sent.is_err());
        }
        pair.exchange();
    }
    assert!(stuck > 0);
    let share = pair.server.config.peer_quota.memory;
    assert!(world.held().1 >= share && world.held().1 <= share + TO_SEND * CONNECTIONS);
    world.pair.client.tcp_connect(world.pair.now, address(TO), None).unwrap();
    world.pair.exchange();
    let counters = world.pair.server.counters();
    assert_eq!((counters.tcp_ext_memory_quota_peer, counters.tcp_ext_listen_drops), (1, 1));
    assert_eq!(counters.tcp_ext_memory_pressures, 0);
    let refused = world.pair.server.tcp_connect(world.pair.now, address("10.0.0.2:1"), None);
    assert_eq!(refused, Err(HostError::NoMemory));
    world.others_go_on();
    // Accepted data arrives once the client reads, and there is room again.
    let World { pair, listener, .. } = &mut world;
    for (stream, accepted) in streams {
        for _ in 0..100 {
            pair.pass(Duration::from_secs(1));
            let got = read_all(&mut pair.client, pair.now, stream).0;
            assert!(got.iter().all(|byte| *byte == 7));
        }
        let left = pair.server.tcp(accepted).unwrap().info(pair.now).send_q;
        assert_eq!(left, ByteCount::ZERO);
    }
    let newcomer = pair.server.tcp_accept(pair.now, *listener).unwrap();
    assert!(newcomer.is_some(), "who was refused asks again");
}

#[test]
fn unread_data_beyond_the_share_is_dropped_but_never_acknowledged_data() {
    let mut world = World::new();
    let World { pair, listener, .. } = &mut world;
    let streams: Vec<_> = (0..CONNECTIONS).map(|_| pair.connect(*listener, TO)).collect();
    let sent: Vec<u8> = (0..60_000u32).map(|n| (n % 251) as u8).collect();
    for (stream, _) in &streams {
        assert_eq!(pair.client.tcp_send(pair.now, *stream, &sent), Ok(sent.len()));
    }
    pair.pass(Duration::from_secs(5));
    assert!(pair.server.counters().tcp_ext_rcv_q_drop > 0);
    let share = pair.server.config.peer_quota.memory;
    let most = share + (TO_SEND + UNREAD) * CONNECTIONS;
    assert!(world.held().1 >= share && world.held().1 <= most, "{:?}", world.held());
    world.others_go_on();
    let pair = &mut world.pair;
    for (_, accepted) in streams {
        let mut got = Vec::new();
        while got.len() < sent.len() {
            got.extend(read_all(&mut pair.server, pair.now, accepted).0);
            pair.pass(Duration::from_millis(100));
        }
        assert_eq!(got, sent);
    }
}
