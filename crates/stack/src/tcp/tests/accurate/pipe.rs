//! AccECN (RFC 9768) with random marks and with lost, repeated and overtaken ACKs: compares the
//! sender's counters with the receiver's.

use std::collections::BTreeMap;

use airtcp_types::rng::Stream;
use airtcp_wire::ip::{CE, ECT_0};

use super::super::*;

const DELAY: Duration = Duration::from_millis(10);
const MSS: u64 = 1000;

/// The disturbances of the path.
#[derive(Clone, Copy, Debug)]
struct Harm {
    /// The share of ECT packets that are marked, and of data packets that are lost.
    marked: f64,
    lost: f64,
    /// Shares of ACKs.
    acks_lost: f64,
    acks_repeated: f64,
    acks_overtaken: f64,
    /// Whether the path removes options from ACKs.
    strips: bool,
}

/// Packets and bytes that arrived with CE.
type Marks = (u64, u64);

/// A packet in flight, and the receiver's counters at the time when it was sent.
struct Flight {
    to: usize,
    data: Vec<u8>,
    truth: Marks,
}

struct Pipe {
    ends: [Connection; 2],
    counters: Counters,
    outlet: Outlet,
    now: Instant,
    harm: Harm,
    random: Stream,
    /// By time of arrival and number.
    flying: BTreeMap<(Instant, u64), Flight>,
    number: u64,
    written: u32,
    /// The number of comparisons between the sender's counters and the true ones.
    compared: u64,
}

impl Pipe {
    fn new(harm: Harm, config: &TcpConfig, seed: u64) -> Self {
        let there = flow();
        let back = FlowId { local: there.remote, remote: there.local };
        let now = Instant::ZERO;
        let mut client = Connection::connect(now, there, ISS, TS_OFFSET, config);
        let mut counters = Counters::default();
        let syn = client.poll_transmit(now, &mut counters, &mut Outlet::default()).unwrap();
        let ip = ip::parse(&syn.data).unwrap();
        let server = Connection::accept(now, back, IRS, 77, config, &parse(ip.payload).unwrap().2);
        let mut pipe = Self {
            ends: [client, server],
            counters,
            outlet: Outlet::default(),
            now,
            harm: Harm { marked: 0.0, lost: 0.0, acks_lost: 0.0, ..harm },
            random: Stream::new(seed, 0),
            flying: BTreeMap::new(),
            number: 0,
            written: 1,
            compared: 0,
        };
        while !pipe.ends.iter().all(|end| end.state() == State::Established) {
            pipe.step();
        }
        pipe.harm = harm;
        pipe
    }

    /// The marks that have arrived.
    fn truth(&self) -> Marks {
        let info = self.ends[1].info(self.now).accecn.unwrap_or_default();
        (info.received_ce, info.received_ce_bytes.0)
    }

    /// The marks that the sender knows of.
    fn known(&self) -> Marks {
        let info = self.ends[0].info(self.now).accecn.unwrap_or_default();
        (info.delivered_ce, info.delivered_ce_bytes.0)
    }

    /// Sends full segments only, until `bytes` bytes are acknowledged.
    fn send(&mut self, bytes: u32) {
        let end = self.written + bytes;
        while self.written < end || self.ends[0].send.is_outstanding() {
            while self.written < end {
                let data = stream(self.written, (end - self.written).min(50 * MSS as u32) as usize);
                let Ok(n) = self.ends[0].send(self.now, &data, &mut self.outlet) else { break };
                self.written += n as u32;
            }
            let mut buf = [0; 10_000];
            while let Ok(1..) = self.ends[1].recv(self.now, &mut buf) {}
            self.step();
        }
    }

    fn step(&mut self) {
        self.collect();
        let next = self.flying.keys().next().map(|(at, _)| *at);
        let timers = self.ends.iter().filter_map(|end| end.poll_timeout());
        self.now = self.now.max(timers.chain(next).min().expect("something will happen"));
        while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= self.now) {
            let flight = entry.remove();
            self.arrive(&flight);
            self.collect();
        }
        for end in &mut self.ends {
            end.on_timeout(self.now, &mut self.counters);
        }
    }

    fn arrive(&mut self, flight: &Flight) {
        let ip = ip::parse(&flight.data).unwrap();
        let (.., mut segment) = parse(ip.payload).unwrap();
        segment.ecn = ip.ecn;
        if self.harm.strips {
            segment.options.accecn = None;
        }
        let (known, una) = (self.known(), self.ends[0].send.una());
        self.ends[flight.to].on_segment(self.now, &segment, &mut self.counters);
        if flight.to == 1 || segment.flags.syn {
            return;
        }
        let (newly, una) = (self.known(), self.ends[0].send.una().since(una).0);
        // RFC 9768 appendix A.2.1: an ACK counts for no more packets than it acknowledges, except
        // that ACE may count up to seven.
        let reported = newly.0.saturating_sub(known.0);
        let outstanding = self.ends[0].send.nxt().since(self.ends[0].send.una()).0;
        assert!(reported <= 7.max((una + outstanding).div_ceil(MSS)), "{reported} by {una}");
        if una > 0 && segment.options.accecn.is_some() {
            assert_eq!(newly, flight.truth, "{:?}", self.harm);
            self.compared += 1;
        }
        if una > 0 && self.harm.strips {
            assert_eq!(newly.0 % 8, flight.truth.0 % 8, "{:?}", self.harm);
        }
    }

    fn collect(&mut self) {
        for side in 0..2 {
            while let Some(mut packet) =
                self.ends[side].poll_transmit(self.now, &mut self.counters, &mut self.outlet)
            {
                let harm = self.harm;
                let (lost, repeated, overtaken) = match side {
                    0 => (harm.lost, 0.0, 0.0),
                    _ => (harm.acks_lost, harm.acks_repeated, harm.acks_overtaken),
                };
                if ip::ecn(&packet.data) == Some(ECT_0) && self.random.chance(harm.marked) {
                    ip::set_ecn(&mut packet.data, CE);
                }
                let truth = self.truth();
                for _ in 0..1 + u64::from(self.random.chance(repeated)) {
                    if self.random.chance(lost) {
                        continue;
                    }
                    let late = self.random.chance(overtaken);
                    let extra = if late { self.random.below(20_000_000) } else { 0 };
                    let at = self.now + DELAY + Duration::from_nanos(extra);
                    self.number += 1;
                    let data = packet.data.clone();
                    self.flying.insert((at, self.number), Flight { to: 1 - side, data, truth });
                }
            }
        }
    }
}

fn config(delayed_acks: bool) -> TcpConfig {
    let mut config = TcpConfig { ecn: EcnMode::Accurate, ..plain() };
    config.sender.profile.delayed_acks = delayed_acks;
    // The window does not react to marks, so that much data is outstanding.
    config.sender.combination = "sack/fixed:40".parse().unwrap();
    config
}

#[test]
fn with_options_the_counters_are_true_after_every_ack_that_has_one_and_in_the_end() {
    let (mut compared, mut with_options) = (0, 0);
    for seed in 0..150 {
        let mut random = Stream::new(seed, 1);
        let mut share = |most: f64| random.below(1000) as f64 / 1000.0 * most;
        let harm = Harm {
            marked: share(1.0),
            lost: share(0.1),
            acks_lost: share(0.9),
            acks_repeated: share(0.3),
            acks_overtaken: share(0.4),
            strips: false,
        };
        let mut pipe = Pipe::new(harm, &config(seed % 2 == 0), seed);
        pipe.send(300_000);
        // The last option may have been lost: exchanges more data.
        pipe.harm = Harm { lost: 0.0, acks_lost: 0.0, acks_repeated: 0.0, ..harm };
        let before = pipe.compared;
        pipe.send(10_000);
        // A receiver whose ACKs are lost repeatedly has stopped sending options.
        if pipe.compared > before {
            assert_eq!(pipe.known(), pipe.truth(), "{harm:?}");
            with_options += 1;
        }
        assert!(pipe.truth().0 > 0 || harm.marked < 0.05, "{harm:?}");
        compared += pipe.compared;
    }
    assert!(with_options > 100 && compared > 5000, "{with_options} {compared}");
}

#[test]
fn without_options_no_mark_is_missed_and_what_is_assumed_beyond_them_is_whole_cycles() {
    for seed in 0..150 {
        let mut random = Stream::new(seed, 2);
        let mut share = |most: f64| random.below(1000) as f64 / 1000.0 * most;
        let harm = Harm {
            marked: share(1.0),
            lost: 0.0,
            // Few enough for ACKs of many packets to be rare.
            acks_lost: share(0.5),
            acks_repeated: share(0.3),
            acks_overtaken: share(0.3),
            strips: true,
        };
        let mut pipe = Pipe::new(harm, &config(false), seed);
        pipe.send(300_000);
        pipe.harm = Harm { acks_lost: 0.0, acks_repeated: 0.0, acks_overtaken: 0.0, ..harm };
        pipe.send(10_000);
        let (known, truth) = (pipe.known().0, pipe.truth().0);
        assert!(known >= truth && (known - truth).is_multiple_of(8), "{known} {truth} {harm:?}");
        assert!(known <= 320, "more than there are packets: {known} {harm:?}");
    }
}

#[test]
fn without_options_and_where_no_ack_is_for_eight_packets_the_count_is_true() {
    for seed in 0..50 {
        let marked = seed as f64 / 50.0;
        let harm = Harm {
            marked,
            lost: 0.0,
            acks_lost: 0.0,
            acks_repeated: 0.3,
            acks_overtaken: 0.0,
            strips: true,
        };
        let mut pipe = Pipe::new(harm, &config(seed % 2 == 0), seed);
        pipe.send(200_000);
        assert_eq!(pipe.known().0, pipe.truth().0, "{harm:?}");
    }
}
