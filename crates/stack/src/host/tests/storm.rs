//! A storm of valid, forged and corrupted segments over connections in every state.

use std::num::NonZeroU32;

use airtcp_types::Checksum;
use airtcp_types::rng::Stream;
use airtcp_wire::options::{AccEcn, Hack, HackAck, Order, TcpOptions, Timestamps, TxNumbers};

use super::*;
use crate::host::{Kind, Owner, Quota, Socket};
use crate::tcp::Offer;

const MEMORY: ByteCount = ByteCount::from_kib(512);
const PORTS: u16 = 24;
const TIME_WAITS: usize = 3;

/// A stranger's knowledge of a connection: the last segment of the host.
#[derive(Clone, Copy, Default)]
struct Heard {
    local: u16,
    seq: SeqNumber,
    ack: SeqNumber,
    flags: Flags,
    timestamp: Option<u32>,
}

struct Storm {
    random: Stream,
    host: Host,
    now: Instant,
    listener: SocketId,
    held: Vec<SocketId>,
    /// Held SYNs that the application has not answered; some of them may be gone.
    pending: Vec<SocketId>,
    /// By port of the stranger.
    heard: Vec<Heard>,
}

impl Storm {
    fn new(seed: u64, is_any: bool) -> Self {
        let mut config = HostConfig::new(["10.0.0.1/24".parse().unwrap()]);
        config.quota.memory = MEMORY;
        config.time_waits = TIME_WAITS;
        config.peer_quota = Quota {
            connections: 30,
            half_open: 6,
            out_of_order: ByteCount::from_kib(100),
            ..Quota::PEER
        };
        config.events = seed.is_multiple_of(2);
        config.tcp.hack = Offer::Always;
        config.tcp.tx_numbers = Offer::Always;
        let mut host = Host::new(config);
        let listener = match is_any {
            true => host.tcp_listen_any(8),
            false => host.tcp_listen(address("10.0.0.1:80"), 8),
        };
        let listener = listener.unwrap();
        let heard = vec![Heard { local: 80, ..Heard::default() }; usize::from(PORTS)];
        let now = Instant::ZERO;
        let (held, pending) = (vec![], vec![]);
        Self { random: Stream::new(seed, 0), host, now, listener, held, pending, heard }
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize]
    }

    fn near(&mut self, around: SeqNumber) -> SeqNumber {
        let off = match self.random.below(10) {
            0..5 => 0,
            5..8 => self.random.below(6_000) as u32,
            8 => self.random.below(200_000) as u32,
            _ => self.random.next_u64() as u32,
        };
        if self.random.chance(0.5) { around + off } else { around - off }
    }

    fn options(&mut self, heard: &Heard) -> TcpOptions {
        let blocks = if self.random.chance(0.3) { self.random.below(5) } else { 0 };
        let clock = self.now.as_millis() as u32;
        let val = if self.random.chance(0.9) { clock } else { self.random.next_u64() as u32 };
        let ecr = if self.random.chance(0.9) { heard.timestamp } else { None };
        TcpOptions {
            mss: self.random.chance(0.3).then(|| self.random.next_u64() as u16),
            window_scale: self.random.chance(0.3).then(|| self.random.next_u64() as u8),
            sack_permitted: self.random.chance(0.3),
            timestamps: self.random.chance(0.8).then(|| Timestamps {
                val,
                ecr: ecr.unwrap_or_else(|| self.random.next_u64() as u32),
            }),
            sack: (0..blocks)
                .map(|_| {
                    let start = self.near(heard.seq);
                    (start, start + self.random.below(5_000) as u32)
                })
                .collect(),
            accecn: self.random.chance(0.2).then(|| {
                let counters = [0; 3].map(|_: u32| self.random.next_u64() as u32);
                AccEcn::new(Order::One, &counters[..self.random.below(4) as usize])
            }),
            hack: self.random.chance(0.3).then(Hack::default),
            hack_ack: self
                .random
                .chance(0.1)
                .then(|| HackAck { corrupted: self.near(heard.ack), ..HackAck::default() }),
            tx_numbers: self.random.chance(0.3).then(|| TxNumbers {
                number: NonZeroU32::new(self.random.next_u64() as u32),
                echo: NonZeroU32::new(self.random.below(100) as u32),
            }),
            unknown: 0,
            malformed: 0,
        }
    }

    /// The next segment of an honest peer, so that connections are opened and continue.
    fn honest(&mut self, heard: &Heard) -> (Header, usize) {
        let alive = heard.flags.ack && !heard.flags.rst;
        let val = self.now.as_millis() as u32;
        let timestamps = Timestamps { val, ecr: heard.timestamp.unwrap_or(0) };
        let mut header = Header {
            seq: heard.ack,
            ack: (alive || heard.flags.syn).then_some(heard.seq),
            flags: Flags { syn: !alive, ..Flags::default() },
            window: 30_000,
            options: TcpOptions { timestamps: Some(timestamps), ..TcpOptions::default() },
        };
        if !alive {
            header.options.mss = Some(1_460);
            header.options.window_scale = self.random.chance(0.8).then_some(7);
            header.options.sack_permitted = self.random.chance(0.8);
        }
        (header, if alive { self.pick(&[0, 0, 1_000]) } else { 0 })
    }

    fn hostile(&mut self, heard: &Heard) -> (Header, usize) {
        let set = ["", "", "", "", "", "", "", "", "", "f", "s", "p", "p", "r", "fs", "rs", "fsrp"];
        let set = self.pick(&set);
        let flags = Flags {
            fin: set.contains('f'),
            syn: set.contains('s'),
            rst: set.contains('r') && self.random.chance(0.2),
            psh: set.contains('p'),
            urg: self.random.chance(0.1),
            ..Flags::default()
        };
        let header = Header {
            seq: self.near(heard.ack),
            ack: (!flags.syn || self.random.chance(0.3)).then(|| self.near(heard.seq)),
            flags,
            window: self.pick(&[0, 1, 500, 30_000, u16::MAX]),
            options: self.options(heard),
        };
        (header, self.pick(&[0, 0, 1, 7, 1_400, 9_000]))
    }

    fn segment(&mut self) -> Packet {
        let port = self.random.below(PORTS.into()) as u16;
        let heard = self.heard[usize::from(port)];
        let honest = self.random.chance(0.4);
        let (header, len) = if honest { self.honest(&heard) } else { self.hostile(&heard) };
        let flow = FlowId {
            local: SocketAddr::from(([10, 0, 0, 9], 1 + port)),
            remote: SocketAddr::from(([10, 0, 0, 1], heard.local)),
        };
        let mut packet = tcp::emit(&flow, 64, &header, &vec![0; len]);
        if self.random.chance(0.05) {
            // A device that vouches for a corrupted packet.
            let at = 20 + self.random.below(packet.len() as u64 - 20) as usize;
            packet.data[at] = self.random.next_u64() as u8;
            packet.checksum = Checksum::Verified;
        }
        if self.random.chance(0.01) {
            let len = self.random.below(packet.len() as u64) as usize;
            packet.data.truncate(len);
        }
        packet
    }

    fn icmp_error(&mut self) -> Packet {
        let port = self.random.below(PORTS.into()) as u16;
        let heard = self.heard[usize::from(port)];
        let quoted = FlowId {
            local: SocketAddr::from(([10, 0, 0, 1], heard.local)),
            remote: SocketAddr::from(([10, 0, 0, 9], 1 + port)),
        };
        let header = Header { seq: self.near(heard.seq), ..Header::default() };
        let quoted = tcp::emit(&quoted, 64, &header, &[]).data;
        let complaint = airtcp_wire::icmp::Complaint::Port;
        let (src, dst) = ([10, 0, 0, 9].into(), [10, 0, 0, 1].into());
        airtcp_wire::icmp::emit_error(src, dst, 64, complaint, &quoted)
    }

    /// Makes the application do something, sensible or not.
    fn act(&mut self) {
        if let Ok(Some((socket, _))) = self.host.tcp_accept(self.now, self.listener) {
            self.held.push(socket);
        }
        self.answer();
        if self.held.len() < 4 && self.random.chance(0.02) {
            let to = SocketAddr::from(([10, 0, 0, 9], 1 + self.random.below(PORTS.into()) as u16));
            self.held.extend(self.host.tcp_connect(self.now, to, None));
        }
        if self.held.is_empty() {
            return;
        }
        let at = self.random.below(self.held.len() as u64) as usize;
        let socket = self.held[at];
        if self.host.readiness(socket).is_ok_and(|ready| ready.closed) && self.random.chance(0.5) {
            let _ = self.host.tcp_close(self.now, self.held.swap_remove(at));
            return;
        }
        // The result does not matter: the storm may have ended the connection.
        let _ = match self.random.below(300) {
            0..40 => self.host.tcp_send(self.now, socket, &[7; 20_000]).map(drop),
            40..100 => self.host.tcp_recv(self.now, socket, &mut [0; 50_000]).map(drop),
            100..102 => self.host.tcp_shutdown(self.now, socket),
            102..110 => self.host.tcp(socket).map(|tcp| drop(tcp.info(self.now).to_string())),
            110 => self.host.tcp_abort(self.now, self.held.swap_remove(at)),
            111..114 => self.host.tcp_close(self.now, self.held.swap_remove(at)),
            _ => Ok(()),
        };
    }

    /// Makes the application accept or refuse a held SYN, or leave it for later.
    fn answer(&mut self) {
        if let Ok(Some((pending, _))) = self.host.tcp_next_pending(self.listener) {
            self.pending.push(pending);
        }
        if self.pending.is_empty() || self.random.chance(0.5) {
            return;
        }
        let at = self.random.below(self.pending.len() as u64) as usize;
        let pending = self.pending.swap_remove(at);
        match self.random.chance(0.8) {
            true => self.held.extend(self.host.tcp_accept_pending(self.now, pending)),
            // An error means that the SYN is no longer held.
            false => {
                let _ = self.host.tcp_abort(self.now, pending);
            }
        }
    }

    fn drain(&mut self) {
        for _ in 0..50_000 {
            let Some((_, packet)) = self.host.poll_transmit(self.now) else { return };
            let datagram = ip::parse(&packet.data).unwrap();
            let Ok((local, port, segment)) = tcp::parse(datagram.payload) else { continue };
            if let Some(heard) = self.heard.get_mut(usize::from(port).wrapping_sub(1)) {
                heard.local = local;
                heard.seq = segment.seq + segment.len();
                heard.ack = segment.ack;
                heard.flags = segment.flags;
                heard.timestamp = segment.options.timestamps.map(|ts| ts.val);
            }
        }
        panic!("the host never falls silent");
    }

    fn step(&mut self) {
        let pause = self.pick(&[0, 0, 0, 0, 1, 20, 300, 5_000]);
        self.now += Duration::from_millis(pause);
        self.host.handle_timeout(self.now);
        self.drain();
        self.act();
        let packet = if self.random.chance(0.02) { self.icmp_error() } else { self.segment() };
        self.host.handle_packet(self.now, PORT, packet);
        self.drain();
        while self.host.poll_ready().is_some() {}
        while self.host.poll_event().is_some() {}
    }

    fn check(&self) {
        let sockets = self.host.tcp_connections().count() as u64;
        assert!(sockets <= 8 + 8 + u64::from(PORTS) + self.held.len() as u64, "{sockets} sockets");
        // One segment that exhausts the memory, and for each connection three unread segments and 1
        // KiB of data to send.
        let reserve = ByteCount(9_000) + ByteCount(3 * 1_500 + 1_024) * sockets;
        assert!(self.host.held() <= MEMORY + reserve, "{:?}", self.host.held());
        assert_eq!(self.host.held(), held_by_connections(&self.host));
        let is_pending = |socket: &&Socket| matches!(socket.kind, Kind::Pending(_));
        let pending = self.host.sockets.iter().filter(is_pending).count() as u64;
        assert!(pending <= 8 && self.host.timers.len() as u64 <= sockets + pending);
        assert!(self.host.sending.first().is_none() && self.host.outbox.is_empty());
        self.check_quotas();
    }

    /// Compares the quota counters with the sockets.
    fn check_quotas(&self) {
        let (mut connections, mut half_open, mut time_waits) = (0, 0, 0);
        let (mut out_of_order, mut memory) = (ByteCount::ZERO, ByteCount::ZERO);
        for socket in self.host.sockets.iter() {
            match &socket.kind {
                Kind::Tcp(tcp) => {
                    connections += 1;
                    half_open +=
                        usize::from(matches!(tcp.owner, Owner::HalfOpen(_) | Owner::Accepting));
                    out_of_order += tcp.connection.out_of_order();
                    memory += tcp.held;
                }
                Kind::Pending(_) => (connections, half_open) = (connections + 1, half_open + 1),
                Kind::TimeWait(_) => time_waits += 1,
                _ => {}
            }
        }
        assert_eq!(self.host.peers.taken(), (connections, half_open, out_of_order, memory));
        // A segment over several holes may leave several pieces.
        let slack = ByteCount(4_096);
        assert!(half_open <= 6 && out_of_order <= self.host.config.peer_quota.out_of_order + slack);
        assert!(time_waits <= TIME_WAITS && time_waits == self.host.time_waits);
    }
}

#[test]
fn a_storm_of_segments_does_no_harm() {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs")]
    let many = std::env::var("AIRTCP_STORM").ok().and_then(|text| text.parse().ok());
    let segments: u64 = many.unwrap_or(30_000);
    for seed in 0..segments.div_ceil(10_000) {
        let mut storm = Storm::new(seed, false);
        for _ in 0..10_000 {
            storm.step();
            storm.check();
        }
        if many.is_some() {
            let states: Vec<_> = storm.host.tcp_connections().map(|(_, state)| state).collect();
            println!("{seed} {:?} {states:?}", storm.host.held());
            if seed == 0 {
                for (name, value) in storm.host.counters().iter().filter(|(_, value)| *value > 0) {
                    println!("  {name} {value}");
                }
            }
        }
    }
}

#[test]
fn a_storm_does_no_harm_to_a_listener_for_every_destination() {
    for seed in 0..2 {
        let mut storm = Storm::new(seed, true);
        for _ in 0..10_000 {
            storm.step();
            storm.check();
        }
        assert!(storm.host.counters().tcp_passive_opens > 10, "connections come about");
    }
}
