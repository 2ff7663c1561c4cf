//! Two stacks that are one host on two queues, and that open connections.

use std::time::Duration;

use airtcp_device::{Clock, Tun, TunFile, TunOptions};
use airtcp_net::{Sibling, Stack};
use airtcp_stack::host::HostConfig;
use airtcp_testbed::{Namespace, or_skip, peer, requirements, tun_options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// With this many flows, all arriving on their own stack's queue is as likely as 32 heads in a row.
const FLOWS: usize = 32;
/// The kernel forgets a flow's queue after three seconds, and checks for that as often.
const SILENCE: Duration = Duration::from_secs(4);
/// The most silences until then.
const TURNS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_opened_by_stacks_survive_a_change_of_queue() {
    let Some(()) = or_skip(requirements()) else { return };
    let namespace = Namespace::new().unwrap();
    let options = TunOptions { multi_queue: true, ..tun_options() };
    let mut stacks = Vec::new();
    for sibling in Sibling::family(2, Clock::start()).unwrap() {
        let file = namespace.run(move || TunFile::open_with("tun0", options)).unwrap();
        let config = HostConfig::new(["10.0.0.2/24".parse().unwrap()]);
        stacks.push(Stack::sibling(Tun::new(file).unwrap(), config, sibling, None).unwrap());
    }
    namespace.configure("tun0", &["10.0.0.1/24".parse().unwrap()], None).unwrap();
    let listener = namespace
        .run(|| {
            std::net::TcpListener::bind("10.0.0.1:9").and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            })
        })
        .unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let mut pairs = Vec::new();
    for n in 0..FLOWS {
        let ours = stacks[n % 2].connect("10.0.0.1:9".parse().unwrap()).await.unwrap();
        let (kernels, from) = listener.accept().await.unwrap();
        assert_eq!(from, ours.local_addr().unwrap());
        pairs.push((ours, kernels));
    }
    let handed_over =
        || stacks.iter().map(|stack| stack.counters().ip_ext_handed_over).sum::<u64>();
    // The kernel answers a SYN before it records the SYN's queue.
    let opened = handed_over();
    assert!(opened > 0);
    let mut turn = 0;
    while handed_over() == opened {
        assert!(turn < TURNS, "the kernel never forgets");
        turn += 1;
        tokio::time::sleep(SILENCE).await;
        // The kernel sends first, so that it must choose a queue.
        for (ours, kernels) in &mut pairs {
            kernels.write_all(b"hello").await.unwrap();
            let mut heard = [0; 5];
            ours.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"hello");
        }
    }
    for (seed, (mut ours, mut kernels)) in (0..).zip(pairs) {
        let sending = peer::send(&mut ours, seed, 100_000);
        let (sent, received) = tokio::join!(sending, peer::receive(&mut kernels, seed));
        sent.unwrap();
        assert_eq!(received.unwrap(), 100_000);
    }
    assert!(stacks.iter().all(|stack| stack.counters().tcp_estab_resets == 0));
}
