//! A host and its applications.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::AddAssign;
use std::time::Duration;

use airtcp_stack::host::{Cidr, Host, HostConfig, HostError, SocketId};
use airtcp_stack::tcp::{KeepAlive, TcpError};
use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant};

const PORT: u16 = 5001;
/// A side opens no more connections once it has this many.
const MOST: usize = 24;
const COMBINATIONS: [&str; 7] = [
    "rack/bbr3/spike",
    "rack/cubic",
    "newreno/reno",
    "sack/westwood",
    "fack/reno",
    "le/westwood-plus",
    "sack/reno/dcr:timer",
];

/// Counts of events.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) opened: u64,
    pub(crate) accepted: u64,
    /// Bytes read.
    pub(crate) read: u64,
    pub(crate) ended: u64,
    pub(crate) aborted: u64,
    pub(crate) vanished: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.opened += other.opened;
        self.accepted += other.accepted;
        self.read += other.read;
        self.ended += other.ended;
        self.aborted += other.aborted;
        self.vanished += other.vanished;
    }
}

/// A connection of an application.
struct Held {
    id: SocketId,
    written: u64,
    read: u64,
}

pub(crate) struct Side {
    which: u8,
    /// How often the host was restarted.
    life: u8,
    seed: u64,
    pub(crate) host: Host,
    listener: SocketId,
    streams: Vec<Held>,
    pub(crate) tally: Tally,
}

fn address(which: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + which))
}

/// The byte at an offset of every stream.
fn byte(at: u64) -> u8 {
    (at % 251) as u8
}

impl Side {
    pub(crate) fn new(which: u8, seed: u64) -> Self {
        let (host, listener) = boot(which, 0, seed);
        let (streams, tally) = (Vec::new(), Tally::default());
        Self { which, life: 0, seed, host, listener, streams, tally }
    }

    /// Accepts connections and performs random actions.
    pub(crate) fn act(&mut self, now: Instant, draws: &mut Stream) {
        while let Some((id, _)) = self.host.tcp_accept(now, self.listener).unwrap() {
            self.tally.accepted += 1;
            self.streams.push(Held { id, written: 0, read: 0 });
        }
        while self.host.poll_ready().is_some() {}
        if self.streams.len() < MOST && draws.chance(0.15) {
            let remote = SocketAddr::new(address(1 - self.which), PORT);
            let mut config = self.host.config().tcp.clone();
            let combination = COMBINATIONS[draws.below(COMBINATIONS.len() as u64) as usize];
            config.sender.combination = combination.parse().unwrap();
            let id = self.host.tcp_connect(now, remote, Some(config)).unwrap();
            self.tally.opened += 1;
            self.streams.push(Held { id, written: 0, read: 0 });
        }
        if draws.chance(0.0002) {
            // The host loses power and restarts.
            self.tally.vanished += 1;
            self.life += 1;
            (self.host, self.listener) = boot(self.which, self.life, self.seed);
            self.streams.clear();
        }
        let mut streams = std::mem::take(&mut self.streams);
        streams.retain_mut(|stream| self.drive(now, stream, draws));
        self.streams.extend(streams);
    }

    /// Performs a random action on a connection, and returns whether the application keeps it.
    fn drive(&mut self, now: Instant, stream: &mut Held, draws: &mut Stream) -> bool {
        if draws.chance(0.3) && !self.read(now, stream) {
            let _ = self.host.tcp_close(now, stream.id);
            self.tally.ended += 1;
            return false;
        }
        match draws.below(400) {
            0..60 => {
                let len = draws.below(40_000);
                let data: Vec<u8> = (stream.written..stream.written + len).map(byte).collect();
                // Reading detects a closed or broken stream.
                stream.written += self.host.tcp_send(now, stream.id, &data).unwrap_or(0) as u64;
            }
            60..64 => {
                let _ = self.host.tcp_shutdown(now, stream.id);
            }
            64 => {
                let _ = self.host.tcp_close(now, stream.id);
                self.tally.ended += 1;
                return false;
            }
            65 => {
                let _ = self.host.tcp_abort(now, stream.id);
                let _ = self.host.tcp_close(now, stream.id);
                self.tally.aborted += 1;
                return false;
            }
            _ => {}
        }
        true
    }

    /// Reads the available data, and returns whether more may arrive.
    fn read(&mut self, now: Instant, stream: &mut Held) -> bool {
        let mut buf = [0; 16_384];
        loop {
            match self.host.tcp_recv(now, stream.id, &mut buf) {
                Ok(0) => return false,
                Ok(len) => {
                    let right = buf[..len].iter().zip(stream.read..).all(|(b, at)| *b == byte(at));
                    assert!(right, "between {} and {}", stream.read, stream.read + len as u64);
                    stream.read += len as u64;
                    self.tally.read += len as u64;
                }
                Err(HostError::Tcp(TcpError::WouldBlock)) => return true,
                Err(HostError::Tcp(_)) => return false,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Closes all connections.
    pub(crate) fn let_go(&mut self, now: Instant) {
        for stream in std::mem::take(&mut self.streams) {
            let _ = self.host.tcp_close(now, stream.id);
            self.tally.ended += 1;
        }
        while let Some((id, _)) = self.host.tcp_accept(now, self.listener).unwrap() {
            let _ = self.host.tcp_close(now, id);
        }
    }
}

fn boot(which: u8, life: u8, seed: u64) -> (Host, SocketId) {
    let mut config = HostConfig::new([Cidr::new(address(which), 24).unwrap()]);
    config.secret = [which, life, seed as u8, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9];
    config.quota.memory = ByteCount::from_mib(8);
    config.tcp.keep_alive = Some(KeepAlive {
        idle: Duration::from_secs(20),
        interval: Duration::from_secs(5),
        probes: 6,
    });
    let mut host = Host::new(config);
    let listener = host.tcp_listen(SocketAddr::new(address(which), PORT), 64).unwrap();
    (host, listener)
}
