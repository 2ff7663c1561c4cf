//! A SYN flood from many sources.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use airtcp_testbed::or_skip;
use airtcp_types::{ByteCount, FlowId, Packet, SeqNumber};
use airtcp_wire::options::TcpOptions;
use airtcp_wire::tcp::{self, Flags, Header};

use crate::resident::resident;
use crate::setup::{BACKLOG, Setup, round, send_all};

/// The SYNs of the flood, unless `AIRTCP_FLOOD` sets another number. It also works with a million.
const SYNS: u32 = 100_000;
/// The flood lasts until the honest peers are done, but sends at most this multiple of its SYNs.
const PATIENCE: u32 = 20;
/// Honest peers that connect during the flood; [`ROUNDS`] are the rounds of the flow from before
/// it.
const NEWCOMERS: u32 = 20;
const ROUNDS: u32 = 100;

/// A SYN from 198.18.0.0/15, the addresses for benchmarks (RFC 2544); ports and numbers vary.
fn syn(n: u32, server: SocketAddr) -> Packet {
    let [_, b, c, d] = (n.wrapping_mul(0x9e37_79b1) >> 15).to_be_bytes();
    let local = SocketAddr::from(([198, 18 | (b & 1), c, d], 1024 + (n % 60_000) as u16));
    let header = Header {
        seq: SeqNumber(n.wrapping_mul(0x85eb_ca6b)),
        flags: Flags { syn: true, ..Flags::default() },
        window: 64_240,
        options: TcpOptions { mss: Some(1460), sack_permitted: true, ..TcpOptions::default() },
        ..Header::default()
    };
    tcp::emit(&FlowId { local, remote: server }, 64, &header, &[])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_syns_takes_no_memory_and_neither_refuses_nor_ends_connections() {
    let Some(setup) = or_skip(Setup::new()) else { return };
    let text = std::env::var("AIRTCP_FLOOD").ok();
    let syns = text.map_or(SYNS, |text| text.parse().expect("AIRTCP_FLOOD is a number"));
    let mut stream = setup.connect().await;
    round(&mut stream, 0).await;
    let before = resident();

    let through = Arc::new(AtomicBool::new(false));
    let flood = {
        let (attacker, server, through) = (setup.attacker, setup.server, through.clone());
        let wanted = move |n: &u32| *n < syns || !through.load(Ordering::Relaxed);
        let last = syns.saturating_mul(PATIENCE);
        let packets = (0..last).take_while(wanted).map(move |n| syn(n, server));
        setup.namespace.spawn_thread(move || send_all(&attacker, packets)).expect("a thread")
    };
    // Cookies mean that the backlog is full.
    while setup.stack.counters().tcp_ext_syncookies_sent == 0 {
        assert!(!flood.is_finished(), "no cookie was sent");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let rounds = Arc::new(AtomicU32::new(0));
    let flow = {
        let rounds = rounds.clone();
        setup.namespace.spawn(async move {
            for n in 0..ROUNDS {
                round(&mut stream, n as u8).await;
                rounds.fetch_add(1, Ordering::Relaxed);
            }
            stream
        })
    };
    for n in 0..NEWCOMERS {
        let server = setup.server;
        let newcomer = setup.namespace.spawn(async move {
            let mut stream = airtcp_testbed::peer::connect(server, None).await?;
            round(&mut stream, n as u8).await;
            Ok::<_, std::io::Error>(())
        });
        newcomer.await.expect("the newcomer's rounds").expect("the newcomer's connection");
        // Besides the waiting connections there are honest ones that are closing.
        let known = setup.stack.connections().len();
        assert!(known <= 2 * BACKLOG + NEWCOMERS as usize + 1, "{known} connections");
        assert!(setup.stack.held() < ByteCount::from_mib(4), "{}", setup.stack.held());
    }
    let mut stream = flow.await.expect("the flow's rounds");
    through.store(true, Ordering::Relaxed);
    let sent = flood.join().expect("the flood");
    round(&mut stream, 1).await;

    let counters = setup.stack.counters();
    println!(
        "{sent} SYNs sent, {} cookies; {} came back, {} bytes held",
        counters.tcp_ext_syncookies_sent,
        counters.tcp_ext_syncookies_recv,
        setup.stack.held()
    );
    assert!(sent < syns.saturating_mul(PATIENCE), "honest peers were through before it ended");
    assert!(counters.tcp_ext_syncookies_recv >= u64::from(NEWCOMERS));
    assert_eq!((rounds.load(Ordering::Relaxed), counters.tcp_ext_syncookies_failed), (ROUNDS, 0));
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "the process has grown by {grown} bytes");
}
