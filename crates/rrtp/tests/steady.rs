//! Allocations while data flows: less than one for ten packets, for both ends together.
//!
//! `cargo test --release -p airtcp-rrtp --test steady -- --nocapture` also prints the throughput of
//! both ends.
//!
//! There is only one test, so that the allocator counts nothing else.

#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to implement; this one hands every call on"
)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the protocol's time is virtual, and how long the work takes is not"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use airtcp_rrtp::{Config, Endpoint, Event, Limits};
use airtcp_types::{Instant, Rate};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
static MADE: AtomicU64 = AtomicU64::new(0);

// SAFETY: each call is forwarded to the system allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MADE.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Passes all datagrams of one end to the other; returns their number.
fn pass(
    now: Instant,
    from: &mut Endpoint,
    at: &str,
    to: &mut Endpoint,
    datagram: &mut Vec<u8>,
) -> u64 {
    let at = at.parse().unwrap();
    let mut count = 0;
    while from.poll_transmit(now, datagram).is_some() {
        to.handle_datagram(now, at, datagram);
        datagram.clear();
        count += 1;
    }
    count
}

#[test]
fn flowing_data_allocates_less_than_once_in_ten_packets() {
    let [client_at, server_at] = ["10.0.0.1:1", "10.0.0.2:2"];
    let mut config = Config::default();
    config.profile.send_rate = Some(Rate::from_bits_per_sec(1_000_000_000));
    let [mut client, mut server] = [1, 2].map(|key| Endpoint::new(Limits::default(), [key; 16]));
    server.listen(Some(config.clone()));
    let mut now = Instant::ZERO;
    let id = client.connect(now, server_at.parse().unwrap(), config).unwrap();
    let (mut datagram, mut buffer) = (Vec::new(), vec![7; 64 * 1024]);
    let (mut sent, mut warm, mut read) = (0, None, 0);
    while sent < 200_000 {
        while client.send(now, id, &buffer).unwrap() > 0 {}
        sent += pass(now, &mut client, client_at, &mut server, &mut datagram);
        pass(now, &mut server, server_at, &mut client, &mut datagram);
        while let Some(event) = server.poll_event() {
            if let Event::Readable(id) = event {
                while let Some(count) = server.recv(now, id, &mut buffer).unwrap() {
                    read += count;
                }
            }
        }
        while client.poll_event().is_some() {}
        if sent > 20_000 {
            warm.get_or_insert_with(|| {
                (MADE.load(Ordering::Relaxed), sent, std::time::Instant::now())
            });
        }
        let next = [client.poll_timeout(), server.poll_timeout()].into_iter().flatten().min();
        now = now.max(next.unwrap());
        client.handle_timeout(now);
        server.handle_timeout(now);
    }
    let (made, from, clock) = warm.unwrap();
    let (made, packets) = (MADE.load(Ordering::Relaxed) - made, sent - from);
    let took = clock.elapsed().as_secs_f64();
    println!("{packets} packets in {took:.3} s, {made} allocations, {read} bytes in all");
    assert!(made * 10 < packets, "{made} for {packets} packets");
}
