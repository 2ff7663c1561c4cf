//! Sends a connection pieces of one stream in any order, cut and repeated arbitrarily.

use std::time::Duration;

use airtcp_stack::host::{Host, HostConfig, HostError};
use airtcp_stack::tcp::TcpError;
use airtcp_types::{ByteCount, FlowId, Instant, Node, PortId, SeqNumber};
use airtcp_wire::options::TcpOptions;
use airtcp_wire::tcp::{Flags, Header};
use airtcp_wire::{ip, tcp};

use super::feed::Feed;

const ISS: SeqNumber = SeqNumber(u32::MAX - 10_000);
/// Bytes of the stream.
const LEN: usize = 20_000;
const MEMORY: ByteCount = ByteCount::from_kib(512);

struct World {
    host: Host,
    now: Instant,
    flow: FlowId,
    /// The host's next sequence number, and in `wanted` the number that it expects.
    next: SeqNumber,
    wanted: SeqNumber,
}

/// Checks that exactly the stream is read, all of it once all of it has arrived. Returns the number
/// of bytes read before the rest is sent in order.
pub(crate) fn run(data: &[u8]) -> usize {
    let mut feed = Feed(data);
    let mut config = HostConfig::new(["10.0.0.1/24".parse().expect("a CIDR")]);
    (config.quota.memory, config.secret) = (MEMORY, [3; 16]);
    let mut host = Host::new(config);
    let local = "10.0.0.1:80".parse().expect("an address");
    let listener = host.tcp_listen(local, 4).expect("a free port");
    let flow = FlowId { local: "10.0.0.9:999".parse().expect("an address"), remote: local };
    let now = Instant::ZERO;
    let mut world = World { host, now, flow, next: SeqNumber(0), wanted: ISS };
    let has_sack = feed.byte() & 1 == 1;
    let options = TcpOptions { mss: Some(1460), sack_permitted: has_sack, ..TcpOptions::default() };
    let syn = Flags { syn: true, ..Flags::default() };
    world.send(Header { seq: ISS, flags: syn, window: 8000, options, ..Header::default() }, &[]);
    world.piece(0, 0, false);
    let accepted = world.host.tcp_accept(world.now, listener).expect("a listener");
    let (socket, _) = accepted.expect("the handshake is done");

    let mut read = Vec::new();
    while !feed.is_empty() {
        match feed.choice(8) {
            0 => {
                let want = usize::from(feed.word());
                let mut buf = vec![0; want];
                match world.host.tcp_recv(world.now, socket, &mut buf) {
                    Ok(len) => read.extend_from_slice(&buf[..len]),
                    Err(HostError::Tcp(TcpError::WouldBlock)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            1 => world.now += Duration::from_millis(u64::from(feed.byte())),
            _ => {
                // Usually close to the expected number.
                let near = (world.wanted.distance(ISS + 1)).max(0) as usize;
                let shift = feed.word();
                let start = if shift & 3 == 0 {
                    usize::from(shift)
                } else {
                    near + usize::from(shift >> 4)
                };
                let len = usize::from(feed.word() & 2047);
                world.piece(start.min(LEN), len, true);
            }
        }
        world.settle();
    }
    assert!(read[..] == stream()[..read.len()]);
    let early = read.len();
    for _ in 0..1000 {
        let at = world.wanted.distance(ISS + 1).max(0) as usize;
        if at >= LEN {
            break;
        }
        world.piece(at, 1460, true);
        world.now += Duration::from_millis(1);
        world.settle();
        let mut buf = [0; 4096];
        while let Ok(len @ 1..) = world.host.tcp_recv(world.now, socket, &mut buf) {
            read.extend_from_slice(&buf[..len]);
        }
    }
    let mut buf = [0; LEN];
    while let Ok(len @ 1..) = world.host.tcp_recv(world.now, socket, &mut buf) {
        read.extend_from_slice(&buf[..len]);
    }
    assert!(read == stream(), "{} of {LEN}", read.len());
    assert!(matches!(world.host.tcp_recv(world.now, socket, &mut buf), Ok(0)), "the FIN was read");
    early
}

impl World {
    fn send(&mut self, header: Header, payload: &[u8]) {
        let packet = tcp::emit(&self.flow, 64, &header, payload);
        self.host.handle_packet(self.now, PortId(0), packet);
        self.settle();
    }

    /// Sends bytes of the stream from `start`, with a FIN after the last byte.
    fn piece(&mut self, start: usize, len: usize, psh: bool) {
        let end = (start + len).min(LEN);
        let flags = Flags { psh, fin: len > 0 && end == LEN, ..Flags::default() };
        let header = Header {
            seq: ISS + 1 + start as u32,
            ack: Some(self.next),
            flags,
            window: 8000,
            ..Header::default()
        };
        self.send(header, &stream()[start..end]);
    }

    fn settle(&mut self) {
        if self.host.poll_timeout().is_some_and(|at| at <= self.now) {
            self.host.handle_timeout(self.now);
        }
        while let Some((_, packet)) = self.host.poll_transmit(self.now) {
            let datagram = ip::parse(&packet.data).expect("its packets are whole");
            let (_, _, segment) = tcp::parse(datagram.payload).expect("its segments are whole");
            assert!(!segment.flags.rst, "nothing was wrong");
            self.next = segment.seq + segment.len();
            assert!(segment.ack >= self.wanted, "it takes nothing back");
            self.wanted = segment.ack;
        }
        assert!(self.host.held() <= MEMORY, "{}", self.host.held());
    }
}

fn stream() -> Vec<u8> {
    (0..LEN).map(|at| (at as u8).wrapping_mul(17) ^ (at >> 8) as u8).collect()
}
