//! Connections between this stack and the Linux kernel over a TUN device, in real time: they open,
//! move data, are aborted, left idle and dropped with data unread, while the link goes down and up
//! and addresses of the kernel vanish and return. Afterwards nothing may be left of them.
//!
//! `AIRTCP_SOAK=600` runs for ten minutes, in spells of ten seconds; without it there are two short
//! spells. A seed, `AIRTCP_SEED` if it is set, determines the actions; runtimes and the kernel
//! determine their order.
//!
//! There is only one test, so that the allocator counts only its memory. Without namespaces or TUN
//! devices it is skipped with the reason; with `AIRTCP_REQUIRE_NETNS=1` it fails instead.

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

/// Tasks of each side that open one connection after another.
const CALLERS: u64 = 24;
/// How long the last connections may take to end: every time-out is a few seconds.
const ENDS_WITHIN: Duration = Duration::from_secs(120);
/// From this many spells on, the minimum in use must not differ between early and late spells.
const MANY: usize = 20;

/// Runs the applications on both sides for a spell, waits for their end, and checks that the stack
/// has nothing left.
async fn spell(number: u64, length: Duration, network: &Network, seed: u64, tally: &Arc<Tally>) {
    let (end, over) = watch::channel(false);
    let seed = seed + number;
    let ours = ends::ours(network, seed, over.clone(), tally.clone());
    let kernels = ends::kernels(network, seed, over, tally.clone());
    sleep(length / 4).await;
    // The link is down alternately briefly and for longer than a connection survives.
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
    end.send_replace(true);
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
    // A host keeps as many chunks of send buffers as were ever used at a time, up to 64 of 64 KiB.
    // Many spells show the minimum of that.
    let kept = if live.len() < MANY { 64 * 64 * 1024 } else { 0 };
    allocator::assert_no_trend(&live, kept);
}
