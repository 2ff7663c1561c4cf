//! Packets processed in batches give the same result as packets processed one by one.

use std::collections::BTreeMap;

use airtcp_types::{Event, EventKind};
use proptest::prelude::*;

use super::*;
use crate::tcp::TcpConfig;

/// Two connections of a client with an initial window of 64 segments.
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
        // Without pacing, a flight is sent at once.
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

    /// The packets that the client sends after it has written `lens` bytes to the streams.
    fn flight(&mut self, lens: [usize; 2]) -> Vec<Packet> {
        let Self { pair, streams, .. } = self;
        for (stream, len) in streams.iter().zip(lens) {
            let data: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            pair.client.tcp_send(pair.now, *stream, &data).unwrap();
        }
        std::iter::from_fn(|| pair.client.poll_transmit(pair.now).map(|(_, packet)| packet))
            .collect()
    }

    /// The packets that the server sends.
    fn answers(&mut self) -> Vec<Packet> {
        let Self { pair, .. } = self;
        std::iter::from_fn(|| pair.server.poll_transmit(pair.now).map(|(_, packet)| packet))
            .collect()
    }

    /// The data that each stream has received, and its counts.
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

/// All counters except those of sent packets.
fn counts_in(host: &Host) -> Vec<(&'static str, u64)> {
    host.counters().iter().filter(|(name, _)| !name.contains("Out")).collect()
}

/// The ACKs sent to each port: all that report out-of-order data or duplicates, and the last one.
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
        // Windows are not compared: their rounding depends on how often they are computed.
        said.push(format!("{} {:?}", segment.ack.0, segment.options));
    }
    said
}

/// A disturbance of a flight of packets.
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

/// The number of bytes written to each stream at once, the disturbances, and the size of the
/// batches.
type Flight = ([usize; 2], Vec<Mishap>, usize);

/// Delivers the same packets to one server one by one and to another in batches, and compares the
/// two.
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
        // No deadline expires: the delay of an ACK depends on the number of segments.
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
    // The last flight has 46 segments: 64 KiB, which one ACK acknowledges, and one more segment.
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
            // Includes the ACKs that report that the window is open again.
            for ack in answers.into_iter().chain(flows.answers()) {
                flows.pair.client.handle_packet(flows.pair.now, PORT, ack);
            }
        }
        // 16 quick ACKs at the start and after a pause, and one for the rest of the flight.
        assert_eq!(acks, [17, 1, 1, 17]);
        assert_eq!(received, [30, 1, 1, 30]);
    }
}
