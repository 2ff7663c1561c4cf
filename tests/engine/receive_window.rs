//! The receive window and the send buffer grow to what the path needs; the receive window grows no
//! further than the reader needs.

use std::time::Duration;

use airtcp_recovery::Combination;
use airtcp_types::{ByteCount, Rate};

use crate::bulk::Bulk;
use crate::world::{CLIENT, CLIENT_HOST, Impairment, SERVER, SERVER_HOST, host_config};

const RATE: Rate = Rate::from_bits_per_sec(100_000_000);
/// The round-trip time: 1.25 MB are in flight.
const RTT: Duration = Duration::from_millis(100);

fn bulk() -> Bulk {
    let path = Impairment { bottleneck: Some((RATE, 900)), ..Impairment::delay(RTT / 2) };
    let hosts =
        [CLIENT, SERVER].map(|address| host_config(address, &Combination::default(), false));
    Bulk::new(hosts, path)
}

/// The share of the path's rate that `rate` is, in payload bytes of 1500-byte packets with
/// timestamps.
fn share(rate: Rate) -> f64 {
    rate.bits_per_sec() as f64 / (RATE.bits_per_sec() as f64 * 1448.0 / 1500.0)
}

#[test]
fn the_receive_window_grows_until_it_fills_a_long_pipe() {
    let mut bulk = bulk();
    assert!(bulk.window(bulk.world.now) < ByteCount::from_kib(128));
    bulk.run(Duration::from_secs(5), 1 << 20);
    let rate = bulk.run(Duration::from_secs(5), 1 << 20);
    assert!(share(rate) >= 0.95, "{}", share(rate));
    assert!(bulk.window(bulk.world.now) >= ByteCount(1_250_000));
}

#[test]
fn the_default_buffers_carry_100_mbits_over_600_ms_through_a_loss() {
    // 7.5 MB fill the path, and as much follows while a retransmission is in flight. A queue
    // absorbs each window that opens at once.
    let path = Impairment {
        bottleneck: Some((RATE, 6_000)),
        ..Impairment::delay(Duration::from_millis(300))
    };
    let fixed: Combination = "rack/fixed:5200".parse().unwrap();
    let mut bulk = Bulk::new([CLIENT, SERVER].map(|host| host_config(host, &fixed, false)), path);
    bulk.run(Duration::from_secs(10), 1 << 20);
    bulk.world = bulk.world.with_drops([80_000]);
    let rate = bulk.run(Duration::from_secs(10), 1 << 20);
    assert!(share(rate) >= 0.95, "{}", share(rate));
    let sender = bulk.world.hosts[CLIENT_HOST].tcp(bulk.sender).unwrap();
    assert_eq!(sender.info(bulk.world.now).retrans, 1);
}

#[test]
fn a_slow_reader_holds_no_more_than_its_buffer() {
    // The reader takes 1.6 Mbit/s from a path of 100.
    let mut bulk = bulk();
    let rate = bulk.run(Duration::from_secs(20), 1000);
    let buffer = bulk.world.hosts[SERVER_HOST].config().tcp.receive_buffer;
    assert!(bulk.held <= buffer, "{} of {buffer}", bulk.held);
    // It holds less than a fast reader's host would, too.
    assert!(bulk.held <= ByteCount::from_kib(512), "{}", bulk.held);
    assert!(rate.bits_per_sec() >= 1_500_000, "as fast as it reads: {rate:?}");
}
