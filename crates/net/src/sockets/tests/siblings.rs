//! Stacks that act as one host, each on a device of its own.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::Duration;

use airtcp_device::{Clock, Device, Memory, memory};
use airtcp_stack::host::HostConfig;
use airtcp_types::Packet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::{Sibling, Stack, TcpListener};
use super::{addr, pattern, start, within};

/// Returns a client, and stacks that act as one server. The client's packets go to the first
/// `asked` of them in turn, regardless of their flow.
fn family(count: u16, asked: usize) -> (Stack, Vec<Stack>) {
    let (client, cable) = memory::pair(1500, 128);
    let client = start(client, ["10.0.0.2/24", "fd00::2/64"]);
    let (mut stacks, mut queues) = (Vec::new(), Vec::new());
    for sibling in Sibling::family(count, Clock::start()).unwrap() {
        let (device, queue) = memory::pair(1500, 128);
        let config = HostConfig::new(["10.0.0.1/24".parse().unwrap()]);
        stacks.push(Stack::sibling(device, config, sibling, None).unwrap());
        queues.push(queue);
    }
    tokio::spawn(spread(cable, queues, asked));
    (client, stacks)
}

/// Runs until a device ends.
async fn spread(mut cable: Memory, mut queues: Vec<Memory>, asked: usize) -> std::io::Result<()> {
    let (mut batch, mut turn) = (Vec::<Packet>::new(), 0);
    loop {
        tokio::select! {
            ready = cable.readable() => ready?,
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
        cable.try_recv(&mut batch, 64)?;
        for packet in batch.drain(..) {
            turn += 1;
            let queue = turn % asked;
            queues[queue].send(&mut VecDeque::from([packet])).await;
        }
        for queue in &mut queues {
            queue.try_recv(&mut batch, 64)?;
            cable.send(&mut batch.drain(..).collect()).await;
        }
    }
}

async fn echo(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let (mut read, mut write) = stream.split();
            let _ = tokio::io::copy(&mut read, &mut write).await;
            let _ = write.shutdown().await;
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flows_are_intact_whichever_stack_their_packets_reach() {
    within(async {
        let (client, stacks) = family(3, 3);
        for stack in &stacks {
            tokio::spawn(echo(stack.listen(addr("10.0.0.1:7"), 64).unwrap()));
        }
        let mut flows = JoinSet::new();
        for _ in 0..16 {
            let client = client.clone();
            flows.spawn(async move {
                let stream = client.connect(addr("10.0.0.1:7")).await.unwrap();
                let (mut read, mut write) = stream.into_split();
                let sent = pattern(50_000);
                let writing = async {
                    write.write_all(&sent).await.unwrap();
                    write.shutdown().await.unwrap();
                };
                let mut heard = Vec::new();
                let (_, read) = tokio::join!(writing, read.read_to_end(&mut heard));
                read.unwrap();
                assert!(heard == sent);
            });
        }
        while let Some(flow) = flows.join_next().await {
            flow.unwrap();
        }
        let each: Vec<_> = stacks.iter().map(Stack::counters).collect();
        assert!(each.iter().all(|counters| counters.tcp_passive_opens > 0), "{each:?}");
        assert!(each.iter().all(|counters| counters.ip_ext_handed_over > 0), "{each:?}");
        assert_eq!(each.iter().map(|counters| counters.tcp_passive_opens).sum::<u64>(), 16);
        // Packets that waited may arrive after the end of a connection, but none ends one.
        assert_eq!(each.iter().map(|counters| counters.tcp_estab_resets).sum::<u64>(), 0);
        assert_eq!(client.counters().tcp_estab_resets, 0);
        client.shutdown().await;
    })
    .await;
}

#[tokio::test]
async fn a_stack_that_ends_keeps_its_device_until_its_siblings_end() {
    let (mut stacks, mut ends) = (Vec::new(), Vec::new());
    for sibling in Sibling::family(2, Clock::start()).unwrap() {
        let (device, end) = memory::pair(1500, 16);
        let config = HostConfig::new(["10.0.0.1/24".parse().unwrap()]);
        stacks.push(Stack::sibling(device, config, sibling, None).unwrap());
        ends.push(end);
    }
    let (first, second) = (stacks.remove(0), stacks.remove(0));
    let ending = tokio::spawn(async move { first.shutdown_within(Duration::from_secs(60)).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let open = ends[0].try_recv(&mut Vec::new(), 1);
    assert!(!ending.is_finished() && open.is_ok(), "{open:?}");
    second.shutdown_within(Duration::from_secs(60)).await;
    ending.await.unwrap();
    assert!(ends[0].try_recv(&mut Vec::new(), 1).is_err());
    assert_eq!(second.closed().await.kind(), ErrorKind::NotConnected);
}

#[tokio::test]
async fn packets_of_unknown_flows_skip_a_stack_that_ends() {
    within(async {
        let (client, mut stacks) = family(3, 1);
        tokio::spawn(echo(stacks[2].listen(addr("10.0.0.1:7"), 64).unwrap()));
        let leaving = stacks.remove(1);
        tokio::spawn(async move { leaving.shutdown_within(Duration::from_secs(60)).await });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let mut stream = client.connect(addr("10.0.0.1:7")).await.unwrap();
        stream.write_all(b"past it").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"past it");
    })
    .await;
}

#[tokio::test]
async fn a_device_that_is_gone_ends_its_stack_whatever_its_siblings_do() {
    within(async {
        let mut members = Sibling::family(2, Clock::start()).unwrap().into_iter();
        let mut stack = || {
            let (device, end) = memory::pair(1500, 16);
            let config = HostConfig::new(["10.0.0.1/24".parse().unwrap()]);
            (Stack::sibling(device, config, members.next().unwrap(), None).unwrap(), end)
        };
        let ((first, end), (second, _end)) = (stack(), stack());
        drop(end);
        assert_eq!(first.closed().await.kind(), ErrorKind::NetworkDown);
        // Packets for the other stack are dropped, and the stack continues.
        assert!(second.listen(addr("10.0.0.1:7"), 1).is_ok());
    })
    .await;
}
