//! Packets that come together, beside the same ones by one.

use std::collections::BTreeMap;

use airtcp_types::{Event, EventKind};
use proptest::prelude::*;

use super::*;
use crate::tcp::TcpConfig;

/// Two connections of a client that may send 64 segments at once.
struct Flows {
    pair: Pair,
    streams: Vec<SocketId>,
    accepted: Vec<SocketId>,
}

impl Flows {
    fn new(to: &str) -> Self {
        let mut pair = Pair::new();
        let listener = pair.server.tcp_listen(address(to), 8).unwrap();
        let mut config = TcpConfig::default();
        config.sender.profile.initial_window = 64;
        // A flight leaves at once.
        config.sender.combination = "rack/cubic".parse().unwrap();
        let (mut streams, mut accepted) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let config = Some(config.clone());
            streams.push(pair.client.tcp_connect(pair.now, address(to), config).unwrap());
            pair.exchange();
            accepted.push(pair.server.tcp_accept(pair.now, listener).unwrap().unwrap().0);
        }
        pair.now += Duration::from_millis(1);
        Self { pair, streams, accepted }
    }

    /// What the client sends when it is given so much to send on each stream.
    fn flight(&mut self, lens: [usize; 2]) -> Vec<Packet> {
        let Self { pair, streams, .. } = self;
        for (stream, len) in streams.iter().zip(lens) {
            let data: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            pair.client.tcp_send(pair.now, *stream, &data).unwrap();
        }
        std::iter::from_fn(|| pair.client.poll_transmit(pair.now).map(|(_, packet)| packet))
            .collect()
    }

    /// What the server has to say.
    fn answers(&mut self) -> Vec<Packet> {
        let Self { pair, .. } = self;
        std::iter::from_fn(|| pair.server.poll_transmit(pair.now).map(|(_, packet)| packet))
            .collect()
    }

    /// What each stream has got, and what it has counted.
    fn got(&mut self) -> Vec<(Vec<u8>, [u64; 3])> {
        let Pair { now, server, .. } = &mut self.pair;
        let mut got = Vec::new();
        for &id in &self.accepted {
            let (data, _) = read_all(server, *now, id);
            let info = server.tcp(id).unwrap().info(*now);
            got.push((data, [info.segs_in, info.data_segs_in, info.bytes_received.0]));
        }
        got
    }
}

/// What was counted but for what went out.
fn counts_in(host: &Host) -> Vec<(&'static str, u64)> {
    host.counters().iter().filter(|(name, _)| !name.contains("Out")).collect()
}

/// What ACKs say to each port: all that report something above a hole or twice, and the last one.
fn said(answers: &[Packet]) -> BTreeMap<u16, Vec<String>> {
    let mut said = BTreeMap::<_, Vec<_>>::new();
    let mut was_report = BTreeMap::new();
    for packet in answers {
        let datagram = ip::parse(&packet.data).unwrap();
        if datagram.protocol != ip::TCP {
            continue;
        }
        let (_, port, segment) = tcp::parse(datagram.payload).unwrap();
        let said = said.entry(port).or_default();
        if was_report.insert(port, !segment.options.sack.is_empty()) == Some(false) {
            said.pop();
        }
        // Not the windows: how they are rounded depends on how often they are looked at.
        said.push(format!("{} {:?}", segment.ack.0, segment.options));
    }
    said
}

/// What a network does to a flight of packets.
#[derive(Clone, Debug)]
enum Mishap {
    Loss(prop::sample::Index),
    Twice(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Corruption(prop::sample::Index, prop::sample::Index),
}

fn mishap() -> impl Strategy<Value = Mishap> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        place().prop_map(Mishap::Loss),
        place().prop_map(Mishap::Twice),
        (place(), place()).prop_map(|(a, b)| Mishap::Swap(a, b)),
        (place(), place()).prop_map(|(packet, byte)| Mishap::Corruption(packet, byte)),
    ]
}

fn befall(packets: &mut Vec<Packet>, mishaps: &[Mishap]) {
    for mishap in mishaps {
        let len = packets.len();
        if len == 0 {
            return;
        }
        match mishap {
            Mishap::Loss(at) => drop(packets.remove(at.index(len))),
            Mishap::Twice(at) => packets.insert(at.index(len), packets[at.index(len)].clone()),
            Mishap::Swap(a, b) => packets.swap(a.index(len), b.index(len)),
            Mishap::Corruption(at, byte) => {
                let data = &mut packets[at.index(len)].data;
                let byte = byte.index(data.len());
                data[byte] ^= 0x55;
            }
        }
    }
}

/// What is written to both streams at once, what befalls the packets, and how many of them come
/// together.
type Flight = ([usize; 2], Vec<Mishap>, usize);

/// Gives the same packets to a server one by one and to another in batches, and compares what the
/// two do.
fn compare(v6: bool, flights: Vec<Flight>) -> Result<(), TestCaseError> {
    let to = if v6 { "[fd00::1]:80" } else { "10.0.0.1:80" };
    let (mut single, mut together) = (Flows::new(to), Flows::new(to));
    for (lens, mishaps, batch) in flights {
        let mut packets = single.flight(lens);
        prop_assert_eq!(&packets, &together.flight(lens));
        befall(&mut packets, &mishaps);
        for batch in packets.chunks(batch) {
            for packet in batch {
                single.pair.server.on_packet(single.pair.now, packet);
            }
            together.pair.server.handle_packets(together.pair.now, batch);
            let answers = [single.answers(), together.answers()];
            prop_assert_eq!(said(&answers[0]), said(&answers[1]));
            prop_assert!(single.got() == together.got());
            let (one, other) = (counts_in(&single.pair.server), counts_in(&together.pair.server));
            let differ: Vec<_> = one.iter().zip(&other).filter(|(a, b)| a != b).collect();
            prop_assert!(differ.is_empty(), "{differ:?}");
            for packet in &answers[0] {
                single.pair.client.on_packet(single.pair.now, packet);
                together.pair.client.on_packet(single.pair.now, packet);
            }
        }
        // No deadline comes: how long an ACK waits depends on how many segments there were.
        single.pair.now += Duration::from_millis(1);
        together.pair.now = single.pair.now;
    }
    Ok(())
}

proptest! {
    #[test]
    fn packets_that_come_together_do_what_they_do_one_by_one(
        v6: bool,
        flights in prop::collection::vec(
            ([0usize..60_000, 0usize..60_000], prop::collection::vec(mishap(), 0..4), 1usize..70),
            1..5,
        ),
    ) {
        compare(v6, flights)?;
    }
}

#[test]
fn no_more_arrives_together_than_one_ack_may_acknowledge() {
    // The last flight is 46 segments: 64 KiB, which one ACK acknowledges, and one segment more.
    let flights = [([18_824, 36_516], 38), ([1, 52_647], 3), ([1, 42_605], 47)];
    let flights = flights.map(|(lens, batch)| (lens, Vec::new(), batch)).to_vec();
    compare(false, flights).unwrap();
}

#[test]
fn a_flight_is_one_segment_to_its_connection() {
    for (to, mss) in [("10.0.0.1:80", 1448), ("[fd00::1]:80", 1428)] {
        let mut flows = Flows::new(to);
        let (mut acks, mut received) = (Vec::new(), Vec::new());
        for pause in [0, 0, 0, 2] {
            flows.pair.pass(Duration::from_secs(pause));
            let packets = flows.flight([30 * mss, 0]);
            assert_eq!(packets.len(), 30);
            let before = flows.pair.server.counters().tcp_in_segs;
            flows.pair.server.handle_packets(flows.pair.now, &packets);
            assert_eq!(flows.pair.server.counters().tcp_in_segs - before, packets.len() as u64);
            let events = std::iter::from_fn(|| flows.pair.server.poll_event());
            let has_data = |event: &Event| match event.kind {
                EventKind::Received { range, .. } => !range.is_empty(),
                _ => false,
            };
            received.push(events.filter(has_data).count());
            let answers = flows.answers();
            acks.push(answers.len());
            flows.got();
            // And that the window is open again.
            for ack in answers.into_iter().chain(flows.answers()) {
                flows.pair.client.handle_packet(flows.pair.now, PORT, ack);
            }
        }
        // 16 quick ones at the beginning and after a pause, and one for the rest of the flight.
        assert_eq!(acks, [17, 1, 1, 17]);
        assert_eq!(received, [30, 1, 1, 30]);
    }
}
