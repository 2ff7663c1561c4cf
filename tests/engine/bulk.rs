//! A bulk flow whose sender always has data.

use std::time::Duration;

use airtcp_stack::host::{HostConfig, HostError, SocketId};
use airtcp_stack::tcp::TcpError;
use airtcp_types::{ByteCount, Instant, Rate};

use crate::world::{CLIENT_HOST, Impairment, SERVER_HOST, World, pattern_bytes, server};

/// A bulk flow whose reader reads at most `appetite` bytes every 5 ms.
pub(crate) struct Bulk {
    pub(crate) world: World,
    pub(crate) sender: SocketId,
    reader: SocketId,
    sent: u64,
    read: u64,
    /// The most memory that the reader's host has held.
    pub(crate) held: ByteCount,
}

impl Bulk {
    pub(crate) fn new([client, server_config]: [HostConfig; 2], path: Impairment) -> Self {
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

    /// Runs the flow for `time` and returns the rate at which the reader read.
    pub(crate) fn run(&mut self, time: Duration, appetite: usize) -> Rate {
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
        assert!(buf[..taken] == *pattern_bytes(self.read, taken));
        self.read += taken as u64;
    }

    /// The sender's SND.WND.
    pub(crate) fn window(&self, now: Instant) -> ByteCount {
        self.world.hosts[CLIENT_HOST].tcp(self.sender).unwrap().info(now).snd_wnd
    }
}
