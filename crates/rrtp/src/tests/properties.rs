//! On any path, the stream arrives intact, or both ends report an error in bounded time.

use proptest::prelude::*;

use super::*;
use crate::{NetworkKind, NetworkProfile};

/// Parts of link descriptions, in groups from which at most one part is taken.
const PARTS: &[&[&str]] = &[
    &["rate 50kbit", "rate 1mbit", "rate 20mbit"],
    &["limit 3", "limit 20", "codel target 5ms interval 100ms"],
    &["delay 1ms", "delay 50ms", "delay 40ms 30ms distribution pareto", "delay 300ms"],
    &["delayed 20% 50ms 20ms"],
    &["paths 0ms 30ms"],
    &["loss 5%", "loss 30%", "loss 60%", "loss gemodel 5% 30% 90% 1%", "loss 100%"],
    &["burst 5% 8"],
    &["duplicate 20%", "duplicate 100%"],
    &["corrupt 20% bits 3", "biterror 1e-5"],
    &["down 4295s 2s", "down 4296s 1000000s"],
];

fn any_link() -> impl Strategy<Value = String> {
    let choices = PARTS.iter().map(|group| 0..group.len() * 3).collect::<Vec<_>>();
    (choices, any::<u64>()).prop_map(|(choices, seed)| {
        let part = |(group, choice): (&&[&'static str], usize)| group.get(choice).copied();
        let mut parts: Vec<_> = PARTS.iter().zip(choices).filter_map(part).collect();
        if !parts.iter().any(|part| part.starts_with("delay ")) {
            parts.push("delay 5ms");
        }
        format!("{} seed {seed}", parts.join(" "))
    })
}

fn any_config() -> impl Strategy<Value = Config> {
    let kind = prop_oneof![Just(NetworkKind::General), Just(NetworkKind::WirelessLastHop)];
    let rate = prop_oneof![Just(None), (5_000u64..100_000_000).prop_map(Some)];
    let trip = prop_oneof![Just(None), (1u64..2_000).prop_map(Some)];
    (
        kind,
        rate,
        trip,
        prop_oneof![Just(None), (0.0..1.0).prop_map(Some)],
        64u16..1_500,
        1u64..200_000,
    )
        .prop_map(|(kind, rate, trip, loss_rate, packet_size, buffer)| Config {
            kind,
            profile: NetworkProfile {
                send_rate: rate.map(airtcp_types::Rate::from_bits_per_sec),
                round_trip_time: trip.map(Duration::from_millis),
                loss_rate,
            },
            packet_size,
            receive_buffer: airtcp_types::ByteCount(buffer),
            ..Config::default()
        })
}

/// Longer than the sum of all time-outs, and the time that a slow link needs.
const BOUND: Duration = Duration::from_secs(4_000);

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    #[test]
    fn data_arrives_intact_or_an_error_ends_the_connection(
        forth in any_link(),
        back in any_link(),
        up in 0u64..60_000,
        down in 0u64..200_000,
        ours in any_config(),
        theirs in any_config(),
    ) {
        let mut world = world(&forth, &back, [up, down], [ours, theirs]);
        let done = world.run_while(BOUND, |world| {
            let server_idle = world.ends[1].id.is_none() && world.ends[0].ended.is_some();
            world.ends.iter().any(|end| end.ended.is_none() && !server_idle)
        });
        prop_assert!(done, "{:?} {:?}", world.info(0), world.info(1));
        for (end, other) in [(0, 1), (1, 0)] {
            let (here, there) = (&world.ends[end], &world.ends[other]);
            // The application verifies every byte that it reads.
            prop_assert!(here.read <= there.to_write);
            if here.ended == Some(Ok(())) {
                prop_assert!(here.at_end && here.read == there.to_write, "{:?}", here.read);
            }
        }
        // Nothing is left after the applications have released the connections.
        for end in 0..2 {
            let (now, id) = (world.now, world.ends[end].id);
            if let Some(id) = id {
                world.ends[end].endpoint.release(now, id);
                world.ends[end].released = true;
            }
        }
        world.settle();
        for end in &world.ends {
            prop_assert_eq!((end.endpoint.connections(), end.endpoint.memory()), (0, 0));
        }
    }
}
