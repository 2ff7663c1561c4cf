//! Effects of the path on the rate: seeds, probes, shares, losses.

use airtcp_types::Rate;

use super::*;
use crate::wire::{self, Body};
use crate::{NetworkKind, NetworkProfile};

/// CDMA 1x as in the thesis, Table 4.3, with a queue of twenty packets.
const CDMA: &str = "rate 144kbit delay 75ms limit 20";
const SATELLITE: &str = "rate 20kbit delay 300ms limit 20";

fn last_hop(seed: Option<u64>) -> [Config; 2] {
    with(|config| {
        config.kind = NetworkKind::WirelessLastHop;
        config.profile.send_rate = seed.map(Rate::from_bits_per_sec);
    })
}

/// Returns the delivered payload as a share of the rate of the link, from the first packet to the
/// last.
fn share(world: &mut World, rate: f64, bytes: u64) -> f64 {
    let took = world.finish_within(Duration::from_secs(10_000));
    bytes as f64 * 8.0 / took.as_secs_f64() / rate
}

#[test]
fn a_last_hop_is_filled_from_the_first_pair_on() {
    for (link, rate) in [(CDMA, 144e3), (SATELLITE, 20e3)] {
        let bytes = (rate * 60.0 / 8.0) as u64;
        let mut world = world("delay 10ms", link, [0, bytes], last_hop(None));
        let share = share(&mut world, rate, bytes);
        assert!(share > 0.9, "{link}: {share}");
        let info = world.info(1).unwrap();
        assert_eq!(
            info.congestive_losses + info.wireless_losses + info.retransmissions,
            0,
            "{info:?}"
        );
    }
}

#[test]
fn a_sender_that_wakes_late_keeps_its_rate() {
    // EDGE, a packet in 48 ms, and EVDO, a packet in 11 ms, on a machine that wakes the sender
    // late.
    let edge = ("rate 240kbit delay 400ms limit 20", "rate 200kbit delay 440ms", 240_000, 20);
    let evdo = ("rate 1mbit delay 75ms limit 50", "rate 1mbit delay 75ms", 1_000_000, 20);
    for (link, back, rate, turn) in [edge, evdo] {
        for seed in [None, Some(rate)] {
            let mut world = world(back, link, [0, rate * 8], last_hop(seed));
            world.turn = Duration::from_millis(turn);
            let share = share(&mut world, rate as f64, rate * 8);
            assert!(share > 0.8, "{link} {seed:?}: {share}");
        }
    }
}

#[test]
fn stalls_are_no_congestion() {
    let link = "rate 100mbit delay 1ms limit 100 loss 2% seed 1";
    for kind in [NetworkKind::General, NetworkKind::WirelessLastHop] {
        // The link alone is stalled for a sixth of the time; or link and both ends for a fifteenth
        // each.
        for (ends, every, least) in [(false, 100, 0.3), (true, 300, 0.4)] {
            let mut world = world(
                "delay 1ms",
                link,
                [0, u64::MAX],
                with(|config| {
                    config.kind = kind;
                    config.profile.send_rate = Some(Rate::from_bits_per_sec(100_000_000));
                }),
            );
            world.stalls.every = Duration::from_millis(every);
            if !ends {
                let never = Instant::from_nanos(u64::MAX);
                world.stalls.at[..LINK].fill((never, never));
            }
            world.run_for(Duration::from_secs(20));
            let share = world.ends[0].read as f64 * 8.0 / 20.0 / 100e6;
            assert!(share > least, "{kind:?} {every}: {share}");
        }
    }
}

#[test]
fn losses_of_the_link_do_not_slow_a_last_hop_down() {
    let mut shares = Vec::new();
    for loss in ["0%", "1%", "5%"] {
        let link = format!("{CDMA} loss {loss} seed 7");
        let bytes = 2_000_000;
        let mut world = world("delay 75ms", &link, [0, bytes], last_hop(Some(144_000)));
        shares.push(share(&mut world, 144e3, bytes));
        let info = world.info(0).unwrap();
        assert!(info.congestive_losses * 20 <= info.wireless_losses, "{info:?}");
    }
    let payload = 1_372.0 / 1_428.0;
    for (share, arrive) in shares.iter().zip([1.0, 0.99, 0.95]) {
        assert!(*share > 0.95 * payload * arrive, "{shares:?}");
    }
}

#[test]
fn a_seed_that_is_wrong_is_refined_both_ways() {
    for seed in [115_200, 172_800] {
        let mut world = world("delay 75ms", CDMA, [0, 4_000_000], last_hop(Some(seed)));
        world.run_for(Duration::from_secs(60));
        let rate = world.info(1).unwrap().rate.bits_per_sec() as f64;
        assert!((0.85 * 144e3..1.06 * 144e3).contains(&rate), "{seed}: {rate}");
    }
}

#[test]
fn a_link_that_becomes_slower_or_faster_is_followed() {
    let link = |rate: u64| format!("rate {rate}bit delay 20ms limit 50");
    let mut world = world("delay 20ms", &link(1_000_000), [0, 20_000_000], last_hop(None));
    for rate in [1_000_000, 500_000, 1_000_000, 3_000_000] {
        let [forth, back]: [LinkSpec; 2] =
            ["delay 20ms", link(rate).as_str()].map(|spec| spec.parse().unwrap());
        // Packets in flight are lost with the old link.
        world.link = Link::new(&forth, &back).unwrap();
        world.run_for(Duration::from_secs(20));
        let found = world.info(1).unwrap().rate.bits_per_sec() as f64;
        assert!((0.85..1.06).contains(&(found / rate as f64)), "{rate}: {found}");
    }
}

#[test]
fn reconfigured_it_goes_at_the_new_rate_at_once_and_never_above_the_cap() {
    let mut configs = last_hop(Some(100_000));
    configs[1].rate_cap = Rate::from_bits_per_sec(2_000_000);
    let mut world = world("delay 5ms", "rate 10mbit delay 5ms", [0, 50_000_000], configs);
    world.run_for(Duration::from_millis(200));
    let id = world.ends[1].id.unwrap();
    for (configured, goes) in [(1_000_000, 1_000_000), (50_000_000, 2_000_000)] {
        let profile = NetworkProfile {
            send_rate: Some(Rate::from_bits_per_sec(configured)),
            ..Default::default()
        };
        let now = world.now;
        world.ends[1].endpoint.reconfigure(now, id, NetworkKind::General, profile).unwrap();
        assert_eq!(world.info(1).unwrap().rate.bits_per_sec(), goes);
        let before = world.ends[0].read;
        world.run_for(Duration::from_secs(2));
        let rate = (world.ends[0].read - before) as f64 * 8.0 / 2.0;
        assert!(rate > 0.85 * goes as f64 && rate <= 2e6, "{rate} of {goes}");
    }
}

#[test]
fn a_general_path_is_found_and_used_without_filling_its_queue() {
    for (rate, delay) in [(10e6, 20), (100e6, 1), (11e6, 5)] {
        let link = format!("rate {}bit delay {delay}ms limit 100", rate as u64);
        let bytes = (rate * 20.0 / 8.0) as u64;
        let mut world = world(&format!("delay {delay}ms"), &link, [0, bytes], with(|_| {}));
        let share = share(&mut world, rate, bytes);
        assert!(share > 0.8, "{link}: {share}");
        let info = world.info(0).unwrap();
        assert!(info.congestive_losses * 200 < info.packets_received, "{info:?}");
    }
}

#[test]
fn losses_of_the_link_do_not_slow_a_general_path_down() {
    let link = "rate 11mbit delay 5ms limit 100 loss 1% seed 3";
    let mut world = world("delay 5ms", link, [0, 27_500_000], with(|_| {}));
    let share = share(&mut world, 11e6, 27_500_000);
    assert!(share > 0.75, "{share}");
}

#[test]
fn a_queue_that_overflows_is_congestion() {
    // A profile with three times the rate of the link, and a queue of ten packets.
    for kind in [NetworkKind::General, NetworkKind::WirelessLastHop] {
        let configs = with(|config| {
            config.kind = kind;
            config.profile.send_rate = Some(Rate::from_bits_per_sec(3_000_000));
        });
        let mut world =
            world("delay 20ms", "rate 1mbit delay 20ms limit 10", [0, 1_000_000], configs);
        world.run_for(Duration::from_secs(4));
        let (seen, sent) = (world.info(0).unwrap(), world.info(1).unwrap());
        assert!(seen.congestive_losses > seen.wireless_losses, "{kind:?}: {seen:?}");
        assert!(sent.rate.bits_per_sec() < 1_300_000, "{kind:?}: {sent:?}");
    }
}

#[test]
fn a_path_that_is_gone_for_a_while_is_used_again() {
    let link = "rate 1mbit delay 20ms limit 50 down 4296s 8s";
    let mut world = world("delay 20ms down 4296s 8s", link, [0, 2_000_000], with(|_| {}));
    let took = world.finish_within(Duration::from_secs(100));
    assert!(took > Duration::from_secs(24) && took < Duration::from_secs(45), "{took:?}");
}

#[test]
fn both_directions_at_once() {
    let link = "rate 5mbit delay 10ms limit 50 loss 1% seed 5";
    let mut world = world(link, link, [3_000_000, 3_000_000], with(|_| {}));
    world.finish_within(Duration::from_secs(60));
}

#[test]
fn every_profile_and_setting_transfers_data() {
    let rates = [0, 1, u64::MAX].map(|bits| Some(Rate::from_bits_per_sec(bits)));
    let trips = [Duration::ZERO, Duration::MAX].map(Some);
    for (send_rate, round_trip_time) in
        rates.into_iter().flat_map(|rate| trips.map(|trip| (rate, trip)))
    {
        let profile = NetworkProfile { send_rate, round_trip_time, loss_rate: Some(f64::NAN) };
        let configs = with(|config| {
            config.profile = profile;
            config.send_buffer = airtcp_types::ByteCount::ZERO;
            config.receive_buffer = airtcp_types::ByteCount::ZERO;
            config.packet_size = 0;
        });
        let mut world = world("delay 5ms", "delay 5ms", [500, 500], configs);
        world.finish_within(Duration::from_secs(200));
    }
    let mut world = world("delay 5ms", "rate 1mbit delay 5ms", [0, 500_000], with(|_| {}));
    world.run_for(Duration::from_secs(1));
    let (now, id) = (world.now, world.ends[1].id.unwrap());
    let profile = NetworkProfile {
        send_rate: Some(Rate::ZERO),
        round_trip_time: Some(Duration::MAX),
        loss_rate: Some(f64::INFINITY),
    };
    world.ends[1].endpoint.reconfigure(now, id, NetworkKind::General, profile).unwrap();
    world.finish_within(Duration::from_secs(200));
}

#[test]
fn a_report_that_comes_twice_counts_once() {
    let rate = |back: &str| {
        let forth = "rate 11mbit delay 5ms limit 50 loss 1% seed 7";
        let mut world = world(forth, back, [u64::MAX, 0], with(|_| {}));
        world.run_for(Duration::from_secs(5));
        let info = world.info(0).unwrap();
        (info.rate, info.loss_rate, info.packets_sent)
    };
    assert_eq!(rate("delay 5ms duplicate 100%"), rate("delay 5ms"));
}

#[test]
fn two_cuts_before_a_packet_leaves_are_one() {
    let mut world = world("rate 1mbit delay 5ms", "delay 5ms", [u64::MAX, 0], with(|_| {}));
    world.run_for(Duration::from_secs(1));
    let (mut now, id, client) = (world.now, world.ends[0].id.unwrap(), &mut world.ends[0].endpoint);
    let mut recovery_bit = |client: &mut Endpoint| {
        let next = |_| {
            let mut out = Vec::new();
            now += Duration::from_millis(1);
            client.handle_timeout(now);
            client.poll_transmit(now, &mut out)?;
            match wire::Packet::decode(&out).unwrap().body {
                Body::Data(data) => Some(data.recovery_bit),
                _ => None,
            }
        };
        (0..1_000).find_map(next).unwrap()
    };
    let before = recovery_bit(client);
    let profile = NetworkProfile {
        send_rate: Some(Rate::from_bits_per_sec(500_000)),
        ..NetworkProfile::default()
    };
    for _ in 0..2 {
        client.reconfigure(world.now, id, NetworkKind::General, profile).unwrap();
    }
    assert_ne!(recovery_bit(client), before);
}
