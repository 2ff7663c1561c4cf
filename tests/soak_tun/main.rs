//! Connections between our stack and the Linux kernel over a TUN device, in real time: they open,
//! move data, are aborted, left idle and dropped with data unread, while the link goes down and
//! comes back and addresses of the kernel vanish and come back. Then nothing is left of them.
//!
//! `AIRTCP_SOAK=600` goes on for ten minutes, in spells of ten seconds; without it there are two
//! short spells. What is done comes from a seed, `AIRTCP_SEED` if it is set; runtimes and the
//! kernel decide in which order.
//!
//! One test, so that what the allocator counts is its own. Skipped with a loud reason where
//! namespaces or TUN devices are not to be had; that is a failure when `AIRTCP_REQUIRE_NETNS=1`.

#[path = "../soak/allocator.rs"]
mod allocator;
mod application;
mod ends;
#[path = "../interop/impaired.rs"]
mod impaired;
mod network;
#[path = "../soak/resident.rs"]
mod resident;

use std::sync::Arc;
use std::time::{Duration, Instant};

use airtcp_testbed::or_skip;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use application::Tally;
use network::Network;
use resident::resident;

/// Tasks of each side that open one connection after the other.
const CALLERS: u64 = 24;
/// How long all that is left may take to end: a time-out of anybody's is over in a few seconds.
const ENDS_WITHIN: Duration = Duration::from_secs(120);
/// From so many spells on, the least that was in use is the same early and late.
const MANY: usize = 20;

/// Applications on both sides for a while; then they let go, all of them end, and the stack has
/// nothing left.
async fn spell(number: u64, length: Duration, network: &Network, seed: u64, tally: &Arc<Tally>) {
    let (tell, over) = watch::channel(false);
    let seed = seed + number;
    let ours = ends::ours(network, seed, over.clone(), tally.clone());
    let kernels = ends::kernels(network, seed, over, tally.clone());
    sleep(length / 4).await;
    // In turns briefly and for longer than a connection can bear.
    let brief = number.is_multiple_of(2);
    network.set_up(false);
    sleep(if brief { length / 8 } else { length / 2 }).await;
    network.set_up(true);
    sleep(length / 8).await;
    network.take_addresses();
    sleep(length / 8).await;
    if !brief {
        network.give_addresses();
    }
    tell.send_replace(true);
    let ended = timeout(ENDS_WITHIN, async {
        ours.await.expect("our tasks");
        kernels.await.expect("the kernel's tasks");
        while !network.stack.connections().is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    });
    let stuck = ended.await.is_err();
    assert!(!stuck, "after {ENDS_WITHIN:?}: {:#?}", network.stack.listing(10));
    if brief {
        network.give_addresses();
    }
    assert_eq!(network.stack.held().0, 0);
    assert_eq!(network.stack.counters().tcp_curr_estab, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_connections_with_the_kernel_that_come_and_go() {
    let number = |name| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is a number")))
    };
    let seed = number("AIRTCP_SEED").unwrap_or(1);
    println!("AIRTCP_SEED={seed}");
    let Some(network) = or_skip(Network::new(seed)) else { return };
    let soak = number("AIRTCP_SOAK").map(Duration::from_secs);
    let length = Duration::from_secs(if soak.is_some() { 10 } else { 1 });
    let (tally, begin) = (Arc::new(Tally::default()), Instant::now());
    let mut live = Vec::new();
    while live.len() < 2 || soak.is_some_and(|soak| begin.elapsed() < soak) {
        spell(live.len() as u64, length, &network, seed, &tally).await;
        live.push(allocator::live());
        println!(
            "{:4} s: {tally}, {} bytes in use, {} kB resident",
            begin.elapsed().as_secs(),
            live[live.len() - 1],
            resident() / 1000,
        );
    }
    let harm = network.harm.done();
    assert!(harm.lost > 0 && harm.duplicated > 0 && harm.overtaken > 0);
    let counters = network.stack.counters();
    let happened: Vec<_> = counters.iter().filter(|(_, count)| *count > 0).collect();
    println!("{happened:?}");
    assert!(counters.tcp_ext_abort_on_timeout > 0, "nobody noticed that anybody vanished");
    for part in tally.each() {
        assert!(part > 0, "{tally}");
    }
    // A host keeps chunks of send buffers, as many as were ever used at a time, and up to 64 of 64
    // KiB. Many spells tell how many that is at least.
    let kept = if live.len() < MANY { 64 * 64 * 1024 } else { 0 };
    allocator::assert_no_trend(&live, kept);
}
