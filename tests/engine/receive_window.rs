//! The receive window: as large as the path needs, by itself, and no larger than the reader deserves.

use std::time::Duration;

use airtcp_recovery::Combination;
use airtcp_types::{ByteCount, Rate};

use crate::bulk::Bulk;
use crate::world::{CLIENT, Impairment, SERVER, SERVER_HOST, host_config};

const RATE: Rate = Rate::from_bits_per_sec(100_000_000);
/// There and back: 1.25 MB are under way.
const RTT: Duration = Duration::from_millis(100);

fn bulk() -> Bulk {
    let path = Impairment { bottleneck: Some((RATE, 900)), ..Impairment::delay(RTT / 2) };
    let hosts =
        [CLIENT, SERVER].map(|address| host_config(address, &Combination::default(), false));
    Bulk::new(hosts, path)
}

#[test]
fn it_grows_until_it_fills_a_long_pipe() {
    let mut bulk = bulk();
    assert!(bulk.window(bulk.world.now) < ByteCount::from_kib(128));
    bulk.run(Duration::from_secs(5), 1 << 20);
    let rate = bulk.run(Duration::from_secs(5), 1 << 20);
    // Payload bytes of a packet of 1500 with time stamps.
    let share = rate.bits_per_sec() as f64 / (100e6 * 1448.0 / 1500.0);
    assert!(share >= 0.95, "{share}");
    assert!(bulk.window(bulk.world.now) >= ByteCount(1_250_000));
}

#[test]
fn a_slow_reader_holds_no_more_than_its_buffer() {
    // 1.6 Mbit/s, from a path of 100.
    let mut bulk = bulk();
    let rate = bulk.run(Duration::from_secs(20), 1000);
    let buffer = bulk.world.hosts[SERVER_HOST].config().tcp.receive_buffer;
    assert!(bulk.held <= buffer, "{} of {buffer}", bulk.held);
    // Nor does it hold what a fast one would.
    assert!(bulk.held <= ByteCount::from_kib(512), "{}", bulk.held);
    assert!(rate.bits_per_sec() >= 1_500_000, "as fast as it reads: {rate:?}");
}
