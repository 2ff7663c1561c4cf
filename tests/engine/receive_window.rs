//! The receive window: as large as the path needs, by itself, and no larger than the reader deserves.

use std::time::Duration;

use airtcp::recovery::Combination;
use airtcp::stack::host::{HostError, SocketId};
use airtcp::stack::tcp::TcpError;
use airtcp::types::{ByteCount, Instant, Rate};

use crate::world::{
    CLIENT, CLIENT_HOST, Impairment, SERVER, SERVER_HOST, World, host_config, pattern_bytes, server,
};

const RATE: Rate = Rate::from_bits_per_sec(100_000_000);
/// There and back: 1.25 MB are under way.
const RTT: Duration = Duration::from_millis(100);

/// A sender that always has something, and a reader that takes `appetite` in every 5 ms.
struct Bulk {
    world: World,
    sender: SocketId,
    reader: SocketId,
    sent: u64,
    read: u64,
    /// The most that the reader's host has held.
    held: ByteCount,
}

impl Bulk {
    fn new() -> Self {
        let path = Impairment { bottleneck: Some((RATE, 900)), ..Impairment::delay(RTT / 2) };
        let [client, server_config] =
            [CLIENT, SERVER].map(|address| host_config(address, &Combination::default(), false));
        let mut world = World::new(client, server_config, path, 1, ());
        let listener = world.hosts[SERVER_HOST].tcp_listen(server(), 1).unwrap();
        let sender = world.hosts[CLIENT_HOST].tcp_connect(world.now, server(), None).unwrap();
        let reader = loop {
            world.step();
            let accepted = world.hosts[SERVER_HOST].tcp_accept(world.now, listener).unwrap();
            if let Some((reader, _)) = accepted {
                break reader;
            }
        };
        Self { world, sender, reader, sent: 0, read: 0, held: ByteCount::ZERO }
    }

    /// Gives the rate at which the reader read.
    fn run(&mut self, time: Duration, appetite: usize) -> Rate {
        let (begin, before) = (self.world.now, self.read);
        let mut reads_at = begin;
        while self.world.now < begin + time {
            self.write();
            assert!(self.world.step(), "nothing will happen any more");
            while reads_at <= self.world.now {
                reads_at += Duration::from_millis(5);
                self.read(appetite);
            }
            self.held = self.held.max(self.world.hosts[SERVER_HOST].held());
        }
        Rate::from_bytes_over(ByteCount(self.read - before), self.world.now.since(begin))
    }

    fn write(&mut self) {
        let (host, now) = (&mut self.world.hosts[CLIENT_HOST], self.world.now);
        while host.readiness(self.sender).unwrap().writable {
            let chunk = pattern_bytes(self.sent, 65_536);
            match host.tcp_send(now, self.sender, &chunk) {
                Ok(taken) => self.sent += taken as u64,
                Err(HostError::Tcp(TcpError::WouldBlock)) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn read(&mut self, most: usize) {
        let mut buf = vec![0; most];
        let mut taken = 0;
        while taken < most {
            let host = &mut self.world.hosts[SERVER_HOST];
            match host.tcp_recv(self.world.now, self.reader, &mut buf[taken..]) {
                Ok(len) => taken += len,
                Err(HostError::Tcp(TcpError::WouldBlock)) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(buf[..taken] == pattern_bytes(self.read, taken));
        self.read += taken as u64;
    }

    /// SND.WND, as its sender has it.
    fn window(&self, now: Instant) -> ByteCount {
        self.world.hosts[CLIENT_HOST].tcp_info(now, self.sender).unwrap().snd_wnd
    }
}

#[test]
fn it_grows_until_it_fills_a_long_pipe() {
    let mut bulk = Bulk::new();
    assert!(bulk.window(bulk.world.now) < ByteCount::from_kib(128));
    bulk.run(Duration::from_secs(5), 1 << 20);
    let rate = bulk.run(Duration::from_secs(5), 1 << 20);
    // Payload bytes of a packet of 1500 with time stamps.
    let share = rate.bits_per_sec() as f64 / (100e6 * 1448.0 / 1500.0);
    assert!(share >= 0.95, "{share}");
    assert!(bulk.window(bulk.world.now) >= ByteCount(1_250_000));
}

#[test]
fn a_slow_reader_holds_no_more_than_its_buffer() {
    // 1.6 Mbit/s, from a path of 100.
    let mut bulk = Bulk::new();
    let rate = bulk.run(Duration::from_secs(20), 1000);
    let buffer = bulk.world.hosts[SERVER_HOST].config().tcp.receive_buffer;
    assert!(bulk.held <= buffer, "{} of {buffer}", bulk.held);
    // Nor does it hold what a fast one would.
    assert!(bulk.held <= ByteCount::from_kib(512), "{}", bulk.held);
    assert!(rate.bits_per_sec() >= 1_500_000, "as fast as it reads: {rate:?}");
}
