//! A path with a smaller MTU than its ends, with routers that report it, that lie, and that report
//! nothing.

use proptest::prelude::*;

use super::*;
use crate::logged::logged;

const V4: &str = "10.0.0.1:80";
const V6: &str = "[fd00::1]:80";

/// A client, routers, and a server.
struct World {
    pair: Pair,
    /// The MTUs of the links on the path (bytes), and the MTUs that their routers report, if any.
    links: Vec<(usize, Option<u32>)>,
    /// The longest packet that the client has sent since the last check.
    longest: usize,
    listeners: [SocketId; 2],
}

impl World {
    fn new(links: &[(usize, Option<u32>)]) -> Self {
        Self::of(HostConfig::new([]), links)
    }

    fn of(config: HostConfig, links: &[(usize, Option<u32>)]) -> Self {
        let mut pair = Pair::new();
        let addresses = pair.client.config().addresses.clone();
        pair.client = Host::new(HostConfig { addresses, ..config });
        let listeners = [V4, V6].map(|at| pair.server.tcp_listen(address(at), 8).unwrap());
        Self { pair, links: links.to_vec(), longest: 0, listeners }
    }

    fn connect(&mut self, to: &str) -> (SocketId, SocketId) {
        let listener = self.listeners[usize::from(to == V6)];
        self.pair.connect(listener, to)
    }

    /// Forwards a packet of the client, or drops it.
    fn forward(&mut self, packet: Packet) {
        let now = self.pair.now;
        self.longest = self.longest.max(packet.data.len());
        match self.links.iter().find(|(mtu, _)| packet.data.len() > *mtu) {
            Some((_, Some(said))) => {
                self.pair.client.handle_packet(now, PORT, too_big(&packet.data, *said));
            }
            Some((_, None)) => {}
            None => self.pair.server.handle_packet(now, PORT, packet),
        }
    }

    fn exchange(&mut self) {
        for _ in 0..100_000 {
            let now = self.pair.now;
            let mut moved = false;
            while let Some((_, packet)) = self.pair.client.poll_transmit(now) {
                self.forward(packet);
                moved = true;
            }
            while let Some((_, packet)) = self.pair.server.poll_transmit(now) {
                self.pair.client.handle_packet(now, PORT, packet);
                moved = true;
            }
            if !moved {
                return;
            }
        }
        panic!("the hosts never fall silent");
    }

    /// Sends `bytes` bytes from the client, and compares the received data.
    fn carry(&mut self, (stream, accepted): (SocketId, SocketId), bytes: usize) {
        let sent: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8).collect();
        let (mut queued, mut got) = (0, Vec::new());
        for _ in 0..100_000 {
            queued +=
                self.pair.client.tcp_send(self.pair.now, stream, &sent[queued..]).unwrap_or(0);
            self.exchange();
            got.extend(read_all(&mut self.pair.server, self.pair.now, accepted).0);
            self.exchange();
            if got.len() == sent.len() {
                assert_eq!(got, sent);
                return;
            }
            self.pass_to_next();
        }
        panic!("{} of {} bytes", got.len(), sent.len());
    }

    /// Advances the time to the next deadline, if there is one.
    fn pass_to_next(&mut self) {
        let Pair { now, client, server } = &mut self.pair;
        let deadlines = [client.poll_timeout(), server.poll_timeout()];
        if let Some(at) = deadlines.into_iter().flatten().min() {
            *now = at.max(*now);
            client.handle_timeout(*now);
            server.handle_timeout(*now);
        }
    }

    /// Carries 300,000 bytes over a new connection; returns the client's socket, and the longest
    /// packet among the last 100,000 bytes.
    fn whole(&mut self, to: &str) -> (SocketId, usize) {
        let ends = self.connect(to);
        self.carry(ends, 200_000);
        self.longest = 0;
        self.carry(ends, 100_000);
        (ends.0, self.longest)
    }

    fn counters(&self) -> &Counters {
        self.pair.client.counters()
    }
}

// Shows: RFC9293-MUST-16, RFC7323-5.7
#[test]
fn packet_too_big_reduces_the_packet_size_at_once_and_nothing_else() {
    for (to, fixed) in [(V4, 52), (V6, 72)] {
        let mut world = World::new(&[(1280, Some(1280))]);
        let (stream, longest) = world.whole(to);
        assert_eq!(longest, 1280);
        let counters = world.counters();
        assert_eq!((counters.tcp_ext_pmtu_lowered, counters.tcp_ext_pmtu_refused), (1, 0));
        assert_eq!((counters.tcp_ext_timeouts, counters.tcp_ext_pmtu_black_holes), (0, 0));
        let sender = world.pair.client.tcp(stream).unwrap().sender().unwrap();
        assert_eq!((sender.stats().reductions, sender.smss()), (0, ByteCount(1280 - fixed)));
        let info = world.pair.client.tcp(stream).unwrap().info(world.pair.now);
        assert_eq!((info.pmtu, info.mss), (ByteCount(1280), ByteCount(1280 - fixed)));
        assert!(info.to_string().contains(" pmtu:1280 "), "{info}");
    }
}

#[test]
fn one_narrower_link_after_the_other_is_found() {
    let mut world = World::new(&[(1450, Some(1450)), (1400, Some(1400)), (1300, Some(1300))]);
    assert_eq!(world.whole(V4).1, 1300);
    let counters = world.counters();
    assert_eq!((counters.tcp_ext_pmtu_lowered, counters.tcp_ext_timeouts), (3, 0));
}

#[test]
fn with_an_old_router_the_next_plateau_is_tried() {
    let mut world = World::new(&[(1400, Some(0))]);
    assert_eq!(world.whole(V4).1, 1006);
    let counters = world.counters();
    assert_eq!((counters.tcp_ext_pmtu_lowered, counters.tcp_ext_timeouts), (2, 0));
}

#[test]
fn the_next_connection_begins_with_what_the_last_one_found_for_ten_minutes() {
    let mut world = World::new(&[(1280, Some(1280))]);
    world.whole(V4);
    world.longest = 0;
    let ends = world.connect(V4);
    world.carry(ends, 100_000);
    assert_eq!((world.longest, world.counters().tcp_ext_pmtu_lowered), (1280, 1));
    // The path of the other IP version has its own MTU.
    world.whole(V6);
    assert_eq!(world.counters().tcp_ext_pmtu_lowered, 2);
    world.links.clear();
    world.pair.now += Duration::from_secs(600);
    let ends = world.connect(V4);
    world.longest = 0;
    world.carry(ends, 100_000);
    assert_eq!(world.longest, 1500);
}

#[test]
fn where_large_packets_vanish_small_ones_are_tried() {
    for (to, width, found, steps) in
        [(V4, 1400, 1064, 1), (V4, 1000, 552, 2), (V6, 1400, 1280, 1), (V4, 552, 552, 2)]
    {
        for combination in ["rack/cubic", "rack/bbr3/spike"] {
            let mut config = HostConfig::new([]);
            config.tcp.sender.combination = combination.parse().unwrap();
            let mut world = World::of(config, &[(width, None)]);
            assert_eq!(world.whole(to).1, found);
            let counters = world.counters();
            assert_eq!(counters.tcp_ext_pmtu_black_holes, steps, "{combination}, {width}");
            // `bbr3` measures its rate across the time-outs, and may have more of them afterwards.
            let least = if steps == 1 { 4 } else { 8 };
            let most = if combination == "rack/cubic" { least } else { 5 * steps * 2 };
            let timeouts = counters.tcp_ext_timeouts;
            assert!((least..=most).contains(&timeouts), "{combination}, {width}: {timeouts}");
            assert_eq!(counters.tcp_ext_pmtu_lowered, 0);
        }
    }
}

/// Sends data during an outage until packets become smaller, and checks that it arrives afterwards.
fn suffer_an_outage(world: &mut World, ends: (SocketId, SocketId)) {
    let black_holes = world.counters().tcp_ext_pmtu_black_holes;
    world.links = vec![(0, None)];
    let sent = [7; 20_000];
    assert_eq!(world.pair.client.tcp_send(world.pair.now, ends.0, &sent), Ok(20_000));
    while world.counters().tcp_ext_pmtu_black_holes == black_holes {
        world.exchange();
        world.pass_to_next();
    }
    world.links.clear();
    loop {
        world.exchange();
        let info = world.pair.client.tcp(ends.0).unwrap().info(world.pair.now);
        if info.send_q == ByteCount::ZERO {
            break;
        }
        world.pass_to_next();
    }
    assert_eq!(read_all(&mut world.pair.server, world.pair.now, ends.1).0, sent);
}

#[test]
fn after_an_outage_packets_are_what_they_were() {
    for to in [V4, V6] {
        let mut world = World::new(&[]);
        let ends = world.connect(to);
        world.carry(ends, 100_000);
        for outages in 1..=3 {
            let lines = logged(|| suffer_an_outage(&mut world, ends));
            for message in ["black hole suspected", "packet size restored"] {
                assert_eq!(
                    lines.iter().filter(|line| line.contains(message)).count(),
                    1,
                    "{lines:?}"
                );
            }
            let counters = world.counters();
            assert_eq!(counters.tcp_ext_pmtu_black_holes, outages);
            assert_eq!(counters.tcp_ext_pmtu_restored, outages);
            world.longest = 0;
            world.carry(ends, 100_000);
            let info = world.pair.client.tcp(ends.0).unwrap().info(world.pair.now);
            assert_eq!((world.longest, info.pmtu), (1500, ByteCount(1500)));
            assert_eq!(info.mss, ByteCount(if to == V4 { 1448 } else { 1428 }));
        }
    }
}

#[test]
fn a_path_that_becomes_a_black_hole_is_mistaken_for_an_outage_once() {
    let mut world = World::new(&[]);
    let ends = world.connect(V4);
    world.carry(ends, 100_000);
    world.links = vec![(1400, None)];
    world.carry(ends, 200_000);
    world.longest = 0;
    world.carry(ends, 100_000);
    let counters = world.counters();
    assert_eq!((counters.tcp_ext_pmtu_black_holes, counters.tcp_ext_timeouts), (2, 8));
    assert_eq!(world.longest, 1064);
}

#[test]
fn nothing_shrinks_by_time_outs_where_that_is_not_wanted_or_what_is_lost_is_small() {
    let mut config = HostConfig::new([]);
    config.tcp.black_holes = false;
    let mut world = World::of(config, &[(1400, None)]);
    let (stream, _) = world.connect(V4);
    world.pair.client.tcp_send(world.pair.now, stream, &[7; 3000]).unwrap();
    let mut small = World::new(&[(60, None)]);
    let (other, _) = small.connect(V4);
    small.pair.client.tcp_send(small.pair.now, other, &[7; 300]).unwrap();
    for world in [&mut world, &mut small] {
        for _ in 0..12 {
            world.exchange();
            let Pair { now, client, .. } = &mut world.pair;
            *now = client.poll_timeout().unwrap().max(*now);
            client.handle_timeout(*now);
        }
        assert!(world.counters().tcp_ext_timeouts > 6);
        assert_eq!(world.counters().tcp_ext_pmtu_black_holes, 0);
    }
}

#[test]
fn there_is_a_least_size_and_no_message_makes_packets_larger() {
    for (to, said, expected, refused) in [
        (V4, 551, 552, 0),
        (V4, 68, 552, 0),
        (V4, 67, 1500, 1),
        (V6, 1279, 1500, 1),
        (V6, 0, 1500, 1),
        (V4, 1500, 1500, 1),
        (V6, 9000, 1500, 1),
    ] {
        let mut world = World::new(&[]);
        let (stream, accepted) = world.connect(to);
        let now = world.pair.now;
        world.pair.client.tcp_send(now, stream, &[7; 1400]).unwrap();
        let (_, packet) = world.pair.client.poll_transmit(now).unwrap();
        // The quoted length is that of a full packet: no larger one was ever sent, but the router
        // cannot know this.
        let mut quoted = packet.data.clone();
        let at = if to == V4 { 2 } else { 4 };
        quoted[at..at + 2].copy_from_slice(&1500u16.to_be_bytes());
        world.pair.client.handle_packet(now, PORT, too_big_quoting(&packet.data, &quoted, said));
        let info = world.pair.client.tcp(stream).unwrap().info(now);
        assert_eq!(info.pmtu, ByteCount(expected), "{said}");
        assert_eq!(world.counters().tcp_ext_pmtu_refused, refused, "{said}");
        // The packet arrives all the same.
        world.forward(packet);
        world.exchange();
        assert_eq!(read_all(&mut world.pair.server, now, accepted).0.len(), 1400);
        world.carry((stream, accepted), 50_000);
        assert_eq!(world.counters().tcp_ext_timeouts, 0);
    }
}

#[test]
fn a_message_about_nothing_outstanding_changes_nothing() {
    for to in [V4, V6] {
        let mut world = World::new(&[]);
        let ends = world.connect(to);
        let now = world.pair.now;
        world.pair.client.tcp_send(now, ends.0, &[7; 1400]).unwrap();
        let (_, packet) = world.pair.client.poll_transmit(now).unwrap();
        world.pair.server.handle_packet(now, PORT, packet.clone());
        world.exchange();
        world.pair.client.handle_packet(now, PORT, too_big(&packet.data, 1300));
        assert_eq!(world.counters().tcp_ext_out_of_window_icmps, 1);
        assert_eq!(world.counters().tcp_ext_pmtu_lowered, 0);
        let info = world.pair.client.tcp(ends.0).unwrap().info(now);
        assert_eq!(info.pmtu, ByteCount(1500));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Arbitrary messages from an attacker who sees every packet, between the packets of a flow.
    #[test]
    fn no_lie_stops_a_flow_or_makes_packets_smaller_than_the_least(
        v6 in any::<bool>(),
        lies in prop::collection::vec((0usize..40, any::<u16>(), any::<Option<u16>>()), 1..40),
    ) {
        let to = if v6 { V6 } else { V4 };
        let mut world = World::new(&[]);
        let ends = world.connect(to);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for (back, mtu, len) in lies {
            let now = world.pair.now;
            world.pair.client.tcp_send(now, ends.0, &[7; 9_000]).ok();
            if let Some((_, packet)) = world.pair.client.poll_transmit(now) {
                seen.push(packet.data.clone());
                world.forward(packet);
            }
            let Some(about) = seen.iter().rev().nth(back % seen.len().max(1)) else { continue };
            let mut quoted = about.clone();
            if let Some(len) = len {
                let at = if v6 { 4 } else { 2 };
                quoted[at..at + 2].copy_from_slice(&len.to_be_bytes());
            }
            let lie = too_big_quoting(about, &quoted, mtu.into());
            world.pair.client.handle_packet(now, PORT, lie);
            let info = world.pair.client.tcp(ends.0).unwrap().info(now);
            let least = if v6 { 1280 } else { 552 };
            prop_assert!(info.pmtu >= ByteCount(least) && info.pmtu <= ByteCount(1500));
            prop_assert!(world.pair.client.tcp(ends.0).unwrap().sender().unwrap().board().audit().is_ok());
        }
        for _ in 0..1_000 {
            world.exchange();
            let now = world.pair.now;
            read_all(&mut world.pair.server, now, ends.1);
            let info = world.pair.client.tcp(ends.0).unwrap().info(now);
            if info.send_q == ByteCount::ZERO {
                break;
            }
            world.pass_to_next();
        }
        let info = world.pair.client.tcp(ends.0).unwrap().info(world.pair.now);
        prop_assert_eq!(info.send_q, ByteCount::ZERO);
        prop_assert_eq!(world.counters().tcp_ext_timeouts, 0);
        // Data sent from here on arrives in order as usual.
        world.carry(ends, 20_000);
    }
}
