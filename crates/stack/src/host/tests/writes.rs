//! Copied and shared writes over a path that loses, repeats and reorders packets: the peer reads
//! exactly the written bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use airtcp_types::SharedBytes;
use airtcp_types::rng::Stream;
use airtcp_wire::into_segments;
use proptest::prelude::*;

use crate::tcp::State;

use super::*;

/// The delay of a packet, and the additional delay of a packet that is overtaken.
const DELAY: Duration = Duration::from_millis(10);
const EXTRA: Duration = Duration::from_millis(15);
/// The interval between reads.
const PAUSE: Duration = Duration::from_millis(7);
/// The time by which every run must have ended.
const END: Instant = Instant::from_millis(3_600_000);

/// The way in which a write is made.
#[derive(Clone, Copy, Debug)]
enum How {
    Copied,
    /// With the indication that more follows.
    More,
    Shared,
}

/// A write: its kind, its length, and the pause before it (milliseconds).
#[derive(Clone, Copy, Debug)]
struct Write {
    how: How,
    len: usize,
    after: u64,
}

/// Shares of packets in percent.
#[derive(Clone, Copy, Debug)]
struct Path {
    lost: u8,
    repeated: u8,
    reordered: u8,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    offload: bool,
    /// The buffer sizes of the writer and of the reader (bytes).
    send_buffer: u64,
    receive_buffer: u64,
    /// The number of bytes per read.
    reads: usize,
}

fn byte(at: usize) -> u8 {
    ((at as u32).wrapping_mul(0x9e37_79b1) >> 24) as u8
}

/// The next part of the stream, in memory with surrounding bytes that must not be sent.
fn shared(at: usize, len: usize) -> (Arc<Vec<u8>>, SharedBytes) {
    let around = |_| 0xee;
    let data = (0..9).map(around).chain((at..at + len).map(byte)).chain((0..9).map(around));
    let buffer = Arc::new(data.collect::<Vec<_>>());
    let part = SharedBytes::new(&buffer, 9..9 + len);
    (buffer, part)
}

/// A client that writes, a server that reads, and the path between them.
struct Run {
    pair: Pair,
    client: SocketId,
    server: SocketId,
    path: Path,
    random: Stream,
    /// Packets by time of arrival and number, with whether they go to the server.
    flying: BTreeMap<(Instant, u64), (bool, Packet)>,
    number: u64,
    written: usize,
    /// The memory of shared writes.
    owned: Vec<Arc<Vec<u8>>>,
}

impl Run {
    fn new(ends: Ends, path: Path, seed: u64) -> Self {
        let mut pair = Pair::new();
        for host in [&mut pair.client, &mut pair.server] {
            let mut config = host.config().clone();
            config.segmentation_offload = ends.offload;
            config.tcp.send_buffer = ByteCount(ends.send_buffer);
            config.tcp.receive_buffer = ByteCount(ends.receive_buffer);
            *host = Host::new(config);
        }
        let listener = pair.server.tcp_listen(address("10.0.0.1:80"), 1).unwrap();
        let (client, server) = pair.connect(listener, "10.0.0.1:80");
        let random = Stream::new(seed, 0);
        let (flying, number, owned) = (BTreeMap::new(), 0, Vec::new());
        Self { pair, client, server, path, random, flying, number, written: 0, owned }
    }

    /// Takes the packets that the hosts send, and loses, repeats or delays them.
    fn collect(&mut self) {
        let now = self.pair.now;
        let mut sent = Vec::new();
        for (to_server, host) in [(true, &mut self.pair.client), (false, &mut self.pair.server)] {
            while let Some((_, packet)) = host.poll_transmit(now) {
                into_segments(packet, |segment| sent.push((to_server, segment)));
            }
        }
        for (to_server, segment) in sent {
            let happens = |random: &mut Stream, share: u8| random.below(100) < u64::from(share);
            let copies = 1 + u8::from(happens(&mut self.random, self.path.repeated))
                - u8::from(happens(&mut self.random, self.path.lost));
            for _ in 0..copies {
                let is_late = happens(&mut self.random, self.path.reordered);
                let at = now + DELAY + if is_late { EXTRA } else { Duration::ZERO };
                self.flying.insert((at, self.number), (to_server, segment.clone()));
                self.number += 1;
            }
        }
    }

    /// Advances the time to `end`.
    fn pass(&mut self, end: Instant) {
        loop {
            self.collect();
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let deadlines = [self.pair.client.poll_timeout(), self.pair.server.poll_timeout()];
            let next = deadlines.into_iter().chain([arrival]).flatten().min();
            let Some(now) = next.filter(|at| *at <= end) else {
                self.pair.now = end;
                return;
            };
            self.pair.now = self.pair.now.max(now);
            while let Some(first) = self.flying.first_entry()
                && first.key().0 <= self.pair.now
            {
                let (to_server, packet) = first.remove();
                let Pair { now, client, server } = &mut self.pair;
                let host = if to_server { server } else { client };
                host.handle_packet(*now, PORT, packet);
            }
            self.pair.client.handle_timeout(self.pair.now);
            self.pair.server.handle_timeout(self.pair.now);
        }
    }

    /// Writes up to `len` bytes; returns the number of bytes written.
    fn write(&mut self, how: How, len: usize) -> usize {
        let Pair { now, client: host, .. } = &mut self.pair;
        let (buffer, part) = shared(self.written, len);
        let written = match how {
            How::Copied => host.tcp_send(*now, self.client, &part),
            How::More => host.tcp_send_more(*now, self.client, &part),
            How::Shared => {
                self.owned.push(buffer);
                host.tcp_send_shared(*now, self.client, &part)
            }
        };
        let written = match written {
            Err(HostError::Tcp(TcpError::WouldBlock)) => 0,
            written => written.unwrap(),
        };
        self.written += written;
        written
    }

    /// Makes all writes, closes, and reads `reads` bytes at a time until the end of the stream.
    fn carry(&mut self, writes: &[Write], reads: usize) -> Vec<u8> {
        let mut waiting = VecDeque::from(writes.to_vec());
        let mut due = self.pair.now;
        let (mut got, mut buffer) = (Vec::new(), vec![0; reads]);
        loop {
            while let Some(write) = waiting.front_mut()
                && due + Duration::from_millis(write.after) <= self.pair.now
            {
                let Write { how, len, .. } = *write;
                let written = self.write(how, len);
                if written < len {
                    waiting[0].len -= written;
                    break;
                }
                due = self.pair.now;
                waiting.pop_front();
                if waiting.is_empty() {
                    self.pair.client.tcp_shutdown(self.pair.now, self.client).unwrap();
                    let late = self.pair.client.tcp_send_shared(
                        self.pair.now,
                        self.client,
                        &shared(0, 9000).1,
                    );
                    assert_eq!(late, Err(HostError::Tcp(TcpError::Shutdown)));
                }
            }
            match self.pair.server.tcp_recv(self.pair.now, self.server, &mut buffer) {
                Ok(0) => return got,
                Ok(len) => got.extend_from_slice(&buffer[..len]),
                Err(HostError::Tcp(TcpError::WouldBlock)) => {}
                Err(error) => panic!("{error}"),
            }
            assert!(self.pair.now < END, "{} of {} bytes arrived", got.len(), self.written);
            self.pass(self.pair.now + PAUSE);
        }
    }
}

/// Makes the writes, compares the received data, and checks that no shared memory is still
/// referenced.
fn check(ends: Ends, path: Path, seed: u64, writes: &[Write]) -> Run {
    let mut run = Run::new(ends, path, seed);
    let got = run.carry(writes, ends.reads);
    let expected: Vec<u8> = (0..writes.iter().map(|write| write.len).sum()).map(byte).collect();
    assert_eq!((got.len(), run.written), (expected.len(), expected.len()));
    assert!(got == expected);
    while run.pair.client.tcp(run.client).unwrap().state() != State::FinWait2 {
        assert!(run.pair.now < END, "the FIN is never acknowledged");
        run.pass(run.pair.now + PAUSE);
    }
    run.flying.clear();
    assert!(run.owned.iter().all(|buffer| Arc::strong_count(buffer) == 1), "all is acknowledged");
    run
}

/// A segment that spans three writes, two of them shared, is lost and retransmitted.
#[test]
fn a_segment_across_the_ends_of_shared_writes_is_sent_again_whole() {
    for offload in [false, true] {
        let ends = Ends { offload, send_buffer: 1 << 20, receive_buffer: 1 << 20, reads: 65_536 };
        let path = Path { lost: 0, repeated: 0, reordered: 0 };
        let mut run = Run::new(ends, path, 0);
        // The fourth segment has the bytes 4344 to 5791.
        for (how, len) in [(How::Shared, 5000), (How::Copied, 300), (How::Shared, 5000)] {
            assert_eq!(run.write(how, len), len);
        }
        assert!(run.owned.iter().all(|buffer| Arc::strong_count(buffer) > 1), "both are shared");
        run.collect();
        let is_fourth = |packet: &Packet| *read_segment(packet).payload.contiguous() == *fourth();
        let before = run.flying.len();
        run.flying.retain(|_, (_, packet)| !is_fourth(packet));
        assert_eq!(run.flying.len(), before - 1);
        let first = run.number;
        while !run
            .flying
            .iter()
            .any(|((_, number), (_, packet))| *number >= first && is_fourth(packet))
        {
            assert!(run.pair.now < END, "it is never sent again");
            run.pass(run.pair.now + Duration::from_millis(1));
        }
        run.pass(run.pair.now + Duration::from_secs(1));
        let expected: Vec<u8> = (0..10_300).map(byte).collect();
        assert!(read_all(&mut run.pair.server, run.pair.now, run.server).0 == expected);
    }
}

fn fourth() -> Vec<u8> {
    (4344..5792).map(byte).collect()
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let how = prop_oneof![Just(How::Copied), Just(How::More), Just(How::Shared), Just(How::Shared)];
    // Around the minimum length of a shared write, around the length of a segment, and beyond all
    // windows.
    let len = prop_oneof![1usize..200, 1400usize..1500, 4000usize..6000, 1usize..60_000];
    let one = (how, len, prop_oneof![Just(0u64), 0u64..50]);
    prop::collection::vec(one.prop_map(|(how, len, after)| Write { how, len, after }), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_peer_reads_exactly_what_was_written(
        writes in writes(),
        offload in any::<bool>(),
        (send_buffer, receive_buffer) in (5_000u64..200_000, 3_000u64..200_000),
        reads in 1_000usize..50_000,
        (lost, repeated, reordered) in (0u8..15, 0u8..15, 0u8..30),
        seed in any::<u64>(),
    ) {
        let ends = Ends { offload, send_buffer, receive_buffer, reads };
        check(ends, Path { lost, repeated, reordered }, seed, &writes);
    }
}
