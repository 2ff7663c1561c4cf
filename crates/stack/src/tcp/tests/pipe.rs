//! Two connections joined by a path that loses, reorders and repeats packets, in virtual time.

use std::collections::BTreeMap;

use airtcp_recovery::ControlParams;
use airtcp_recovery::registry::{controls, detections, judges};
use airtcp_types::rng::Stream;

use super::*;
use crate::tcp::timers::REST;

/// A path between two connections, the same in both directions.
#[derive(Clone, Copy)]
struct Path {
    delay: Duration,
    loss: f64,
    reorder: f64,
    duplicate: f64,
}

const CLEAN: Path =
    Path { delay: Duration::from_millis(10), loss: 0.0, reorder: 0.0, duplicate: 0.0 };
const BAD: Path = Path { loss: 0.05, reorder: 0.1, duplicate: 0.02, ..CLEAN };

struct Pipe {
    ends: [Connection; 2],
    counters: [Counters; 2],
    outlet: Outlet,
    now: Instant,
    path: Path,
    random: Stream,
    /// Packets in flight, by time of arrival and number.
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    number: u64,
    written: [u32; 2],
    received: [Vec<u8>; 2],
}

impl Pipe {
    fn new(path: Path, configs: [&TcpConfig; 2], seed: u64) -> Self {
        let now = Instant::ZERO;
        let there = flow();
        let back = FlowId { local: there.remote, remote: there.local };
        let mut client = Connection::connect(now, there, ISS, TS_OFFSET, configs[0]);
        // The SYN is delivered directly; all later packets use the path.
        let mut counters = Counters::default();
        let syn = client.poll_transmit(now, &mut counters, &mut Outlet::default()).unwrap();
        let ip = ip::parse(&syn.data).unwrap();
        let (.., segment) = parse(ip.payload).unwrap();
        let server = Connection::accept(now, back, IRS, 77, configs[1], &segment);
        Self {
            ends: [client, server],
            counters: [counters, Counters::default()],
            outlet: Outlet::default(),
            now,
            path,
            random: Stream::new(seed, 0),
            flying: BTreeMap::new(),
            number: 0,
            written: [1; 2],
            received: [Vec::new(), Vec::new()],
        }
    }

    /// Lets each end send its amount and close; returns the time when both are done.
    fn run(&mut self, amounts: [usize; 2]) -> Instant {
        for _ in 0..2_000_000 {
            for (side, amount) in amounts.into_iter().enumerate() {
                self.work_application(side, amount);
            }
            self.collect();
            let next = self.flying.keys().next().map(|(at, _)| *at);
            let timers = self.ends.iter().filter_map(|end| end.poll_timeout());
            let Some(at) = timers.chain(next).min() else { return self.now };
            if self.ends.iter().all(|end| matches!(end.state(), State::TimeWait | State::Closed)) {
                return self.now;
            }
            self.now = self.now.max(at);
            while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= self.now) {
                let (side, data) = entry.remove();
                let ip = ip::parse(&data).unwrap();
                let (.., segment) = parse(ip.payload).unwrap();
                self.ends[side].on_segment(self.now, &segment, &mut self.counters[side]);
            }
            for side in 0..2 {
                if self.ends[side].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.ends[side].on_timeout(self.now, &mut self.counters[side]);
                }
            }
        }
        panic!(
            "it does not end: {} / {}",
            self.ends[0].info(self.now),
            self.ends[1].info(self.now)
        );
    }

    fn work_application(&mut self, side: usize, amount: usize) {
        let end = &mut self.ends[side];
        loop {
            let left = amount - (self.written[side] - 1) as usize;
            let data = stream(self.written[side], left.min(8_000));
            if left == 0 {
                end.shutdown(self.now);
                break;
            }
            let Ok(n) = end.send(self.now, &data, &mut self.outlet) else { break };
            self.written[side] += n as u32;
        }
        let mut buf = [0; 10_000];
        while let Ok(n @ 1..) = end.recv(self.now, &mut buf) {
            self.received[side].extend_from_slice(&buf[..n]);
        }
    }

    fn collect(&mut self) {
        for side in 0..2 {
            while let Some(packet) =
                self.ends[side].poll_transmit(self.now, &mut self.counters[side], &mut self.outlet)
            {
                let copies = 1 + u64::from(self.random.chance(self.path.duplicate));
                for _ in 0..copies {
                    if self.random.chance(self.path.loss) {
                        continue;
                    }
                    let late = self.random.chance(self.path.reorder);
                    let extra = if late { self.random.below(8_000_000) } else { 0 };
                    let at = self.now + self.path.delay + Duration::from_nanos(extra);
                    self.number += 1;
                    self.flying.insert((at, self.number), (1 - side, packet.data.clone()));
                }
            }
        }
    }

    #[track_caller]
    fn assert_intact(&self, amounts: [usize; 2]) {
        for side in 0..2 {
            let sent = stream(1, amounts[1 - side]);
            assert!(self.received[side] == sent, "the stream is not intact");
            assert_eq!(self.ends[side].error(), None);
        }
    }
}

#[test]
fn a_bulk_flow_without_loss_sends_nothing_twice() {
    let amounts = [3_000_000, 10];
    let mut pipe = Pipe::new(CLEAN, [&TcpConfig::default(); 2], 1);
    let end = pipe.run(amounts);
    pipe.assert_intact(amounts);
    assert_eq!(pipe.counters[0].tcp_retrans_segs, 0);
    assert_eq!(pipe.ends[0].info(end).bytes_sent, ByteCount(3_000_000));
    // Slow start doubles every 20 ms: 3 MB take about 9 round trips, and opening and closing a few
    // more.
    assert!(end < Instant::from_millis(400), "{end:?}");
}

#[test]
fn streams_arrive_intact_over_a_bad_path_both_ways() {
    let combinations = [
        "sack/cubic",
        "newreno/reno",
        "reno/reno",
        "sack/fixed:32",
        "rack/cubic/hack",
        "le:echo/westwood",
        "le:echo/reno/hack",
    ];
    for (seed, combination) in (0..).zip(combinations.repeat(4)) {
        let mut config = TcpConfig { nodelay: seed % 2 == 0, ..TcpConfig::default() };
        config.sender.combination = combination.parse().unwrap();
        config.timestamps = seed % 3 != 0;
        config.sender.profile.delayed_acks = seed % 5 != 0;
        let amounts = [300_000, 100_000];
        let mut pipe = Pipe::new(BAD, [&config, &config], seed);
        pipe.run(amounts);
        pipe.assert_intact(amounts);
    }
}

#[test]
fn a_small_receive_buffer_slows_but_does_not_stop() {
    for limit in [1, 100, 1500, 5000] {
        let small = TcpConfig {
            initial_window: ByteCount(limit),
            receive_buffer: ByteCount(limit),
            ..TcpConfig::default()
        };
        let amount = 2_000 * limit.min(50) as usize / 10;
        let mut pipe = Pipe::new(CLEAN, [&TcpConfig::default(), &small], 3);
        pipe.run([amount, 0]);
        pipe.assert_intact([amount, 0]);
    }
}

#[test]
fn an_idle_connection_is_small() {
    let mut pipe = Pipe::new(CLEAN, [&TcpConfig::default(); 2], 1);
    for _ in 0..3 {
        pipe.collect();
        pipe.now += Duration::from_millis(10);
        while let Some((_, (side, data))) = pipe.flying.pop_first() {
            let ip = ip::parse(&data).unwrap();
            let (.., segment) = parse(ip.payload).unwrap();
            pipe.ends[side].on_segment(pipe.now, &segment, &mut pipe.counters[side]);
        }
    }
    assert_eq!(pipe.ends[1].state(), State::Established);
    assert_eq!(pipe.ends[1].held(), ByteCount::ZERO);
    // The connection, its sender, and the largest boxed strategies of the sender. The largest
    // congestion control is bbr3, whose path model has 300 bytes.
    let (connection, sender) = (size_of::<Connection>(), size_of::<Sender>());
    let params = ControlParams::new(ByteCount(1000), ByteCount(10_000));
    let detections = detections()
        .iter()
        .filter_map(|entry| (entry.make)(None, &params).ok())
        .map(|made| size_of_val(&*made));
    let controls = controls()
        .iter()
        .filter_map(|entry| (entry.make)(None, &params).ok())
        .map(|made| size_of_val(&*made));
    let judges = judges()
        .iter()
        .filter_map(|entry| (entry.make)(None, &params).ok())
        .map(|made| size_of_val(&*made));
    let strategies = [detections.max(), controls.max(), judges.max()].map(Option::unwrap);
    let total = connection + sender + strategies.iter().sum::<usize>();
    assert!(total < 2640, "{connection}, {sender}, {strategies:?}");
}

#[test]
fn a_connection_that_rests_keeps_no_memory_and_has_no_deadline() {
    let mut s = Script::established(&plain());
    for ms in [0, 400] {
        s.write(10_000);
        let mut end = 1;
        while let Some(segment) = s.take(ms) {
            end = segment.seq + segment.data.len() as u32;
        }
        send!(s, ms + 1, "A", 1 + ms as u32, ack = end, len = 400);
        recv!(s, ms + 1, "A", end, ack = 401 + ms as u32);
        s.read();
        assert!(s.conn.send.can_shrink() && s.conn.receive.can_shrink());
        assert!(s.conn.acks.can_shrink() && s.conn.sender().unwrap().can_shrink());
    }
    assert_eq!(s.conn.poll_timeout(), Some(Instant::from_millis(401) + REST));
    recv_nothing!(s, 401 + REST.as_millis() as u64);
    assert!(!s.conn.send.can_shrink() && !s.conn.receive.can_shrink());
    assert!(!s.conn.acks.can_shrink() && !s.conn.sender().unwrap().can_shrink());
    assert_eq!(s.conn.poll_timeout(), None);
}
