//! The first slow start into a deep queue.

use std::time::Duration;

use airtcp_recovery::Profile;
use airtcp_types::{ByteCount, Rate};

use crate::bulk::Bulk;
use crate::world::{CLIENT, Impairment, SERVER, host_config};

const RATE: Rate = Rate::from_bits_per_sec(20_000_000);
/// The queue's packets: six times what the path holds without it.
const LIMIT: usize = 800;

/// Returns the bytes retransmitted in ten seconds, and the rate of the last five.
fn overshoot(control: &str, profile: Profile) -> (ByteCount, Rate) {
    let path = Impairment {
        bottleneck: Some((RATE, LIMIT)),
        ..Impairment::delay(Duration::from_millis(40))
    };
    let combination = format!("rack/{control}").parse().unwrap();
    let mut hosts = [CLIENT, SERVER].map(|address| host_config(address, &combination, false));
    hosts[0].tcp.sender.profile = profile;
    let mut bulk = Bulk::new(hosts, path);
    bulk.run(Duration::from_secs(5), 1 << 20);
    let rate = bulk.run(Duration::from_secs(5), 1 << 20);
    let info = bulk.world.hosts[0].tcp(bulk.sender).unwrap().info(bulk.world.now);
    (info.bytes_retrans, rate)
}

#[test]
fn slow_start_ends_before_a_window_of_segments_is_lost() {
    for control in ["reno", "cubic", "westwood-plus"] {
        let (with, rate) = overshoot(control, Profile::modern());
        let (without, _) = overshoot(control, Profile { hystart: false, ..Profile::modern() });
        assert!(
            with * 10 < without,
            "{control}: {with} sent again with HyStart++, {without} without"
        );
        let share = rate.bits_per_sec() as f64 / RATE.bits_per_sec() as f64;
        assert!(share > 0.9, "{control}: {share} of the rate");
    }
}
