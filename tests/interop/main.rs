//! The stack and the Linux kernel over a real TUN device, in the test's own namespaces.
//!
//! Without namespaces or TUN devices the tests are skipped with the reason; with
//! `AIRTCP_REQUIRE_NETNS=1` they fail instead.

mod ecn;
mod haul;
mod impaired;
mod queues;
mod setup;
mod transfers;

use std::net::SocketAddr;

use airtcp_testbed::{or_skip, peer};
use impaired::Impairment;
use setup::{Family, Setup};

const MIB: u64 = 1 << 20;

async fn hundred_at_once(setup: &Setup, bytes: u64) {
    let server = setup.serve_echo(Family::V4);
    let clients: Vec<_> = (0..100)
        .map(|seed| {
            setup.namespace.spawn(async move {
                let stream = peer::connect(server, Some("cubic")).await?;
                peer::echo(stream, seed, bytes).await
            })
        })
        .collect();
    for client in clients {
        let echoed = client.await.expect("the kernel's task").expect("the kernel's connection");
        assert_eq!(echoed, bytes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_connections_at_once() {
    let Some(setup) = or_skip(Setup::new(None)) else { return };
    hundred_at_once(&setup, MIB).await;
}

/// In both directions 2 % of the packets are lost, 1 % duplicated and 5 % overtaken.
const BAD: Impairment = Impairment { loss: 0.02, duplicate: 0.01, reorder: 0.05, seed: 7 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_connections_over_a_bad_device() {
    let Some(setup) = or_skip(Setup::new(Some(BAD))) else { return };
    hundred_at_once(&setup, MIB / 8).await;
    assert!(setup.harm().lost > 0 && setup.harm().duplicated > 0 && setup.harm().overtaken > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_connection_gets_a_reset_and_a_ping_an_answer() {
    let Some(setup) = or_skip(Setup::new(None)) else { return };
    let closed = SocketAddr::new(Family::V4.ours(), 9);
    let refused = setup.namespace.spawn(async move { peer::connect(closed, None).await });
    let error = refused.await.expect("the kernel's task").expect_err("nothing listens there");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);

    let nobody = SocketAddr::new(Family::V6.kernel(), 9);
    let error = setup.stack.connect(nobody).await.expect_err("nothing listens there");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}
