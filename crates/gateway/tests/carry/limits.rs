//! The limits of both gateways.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::Duration;

use airtcp_device::{Device, Memory, memory};
use airtcp_gateway::{Limits, Near, NearConfig, Refusal, Side, carrier_config};
use airtcp_net::Stack;
use airtcp_types::{ByteCount, Packet};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use crate::network::{FAR, Network, addr, config, pattern, read_all, server, within};

#[tokio::test]
async fn beyond_the_limit_connections_are_refused_as_busy() {
    within(async {
        // The control connection, eight spare ones, and three carried ones.
        let limits = Limits { connections_per_near: 12, ..Limits::default() };
        let network = Network::with(|far| far.limits = limits);
        let (_listener, to) = server().await;
        let mut open = Vec::new();
        let refused = loop {
            network.until(|near, far| near.open == open.len() && far.open == open.len()).await;
            match network.near.connect(&to.into()).await {
                Ok(carried) => open.push(carried),
                Err(refused) => break refused,
            }
            assert!(open.len() < 12);
        };
        assert_eq!(refused, Refusal::Busy);
        assert!(network.far.status().refused["busy"] > 0);
        for mut carried in open {
            carried.abort();
        }
        network.until(|near, far| near.spare == 8 && far.pending == 9).await;
        network.near.connect(&to.into()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_does_no_harm() {
    within(async {
        let network = Network::new();
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[1, 1, 1, 127, 0, 0, 1, 0, 0], &[1, 7]] {
            let mut stream = network.near_stack.connect(addr(FAR)).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            stream.shutdown().await.unwrap();
            assert_eq!(read_all(&mut stream).await.unwrap(), [1, 8], "{bytes:?}");
        }
        let (_listener, to) = server().await;
        network.near.connect(&to.into()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_program_that_does_not_read_holds_the_server_back() {
    within(async {
        const BUFFER: u64 = 256 << 10;
        let (left, right) = memory::pair(1420, 256);
        let small = |last| {
            let mut config = config(last);
            config.tcp.send_buffer = ByteCount(BUFFER);
            config.tcp.receive_buffer = ByteCount(BUFFER);
            config
        };
        let stacks =
            [(left, 2), (right, 1)].map(|(device, last)| Stack::new(device, small(last)).unwrap());
        let [near_stack, far_stack] = stacks;
        let network = Network::between(near_stack, far_stack, |_| {}, JoinSet::new());
        let (listener, to) = server().await;
        let mut program = network.program(to).await;
        let (served, _) = listener.accept().await.unwrap();
        // The period of the data differs from the size of every buffer.
        let data = pattern(1, 65_521);
        let mut written = 0;
        loop {
            let from = written % data.len();
            match served.try_write(&data[from..]) {
                Ok(more) => written += more,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    let patience = Duration::from_secs(2);
                    if tokio::time::timeout(patience, served.writable()).await.is_err() {
                        break;
                    }
                }
            }
            // The kernel's buffers on loopback, four sockets of at most 6 MiB each, and the stacks'
            // buffers.
            assert!(written < 32 << 20);
        }
        // Each stack holds one window, and the overhead of storing it.
        for stack in [&network.near_stack, &network.far_stack] {
            assert!(stack.held().0 < 2 * BUFFER, "{}", stack.held());
        }
        drop(served);
        let heard = read_all(&mut program).await.unwrap();
        assert_eq!(heard.len(), written);
        assert!(heard.iter().zip(data.iter().cycle()).all(|(heard, sent)| heard == sent));
    })
    .await;
}

/// Joins a far end with two near ends, 10.77.0.2 and 10.77.0.3.
async fn switch(mut far: Memory, mut nears: [Memory; 2]) {
    let [second, third] = &mut nears;
    loop {
        let (mut down, mut up, mut other) = (Vec::new(), Vec::new(), Vec::new());
        tokio::select! {
            received = far.recv(&mut down, 64) => drop(received.unwrap()),
            received = second.recv(&mut up, 64) => drop(received.unwrap()),
            received = third.recv(&mut other, 64) => drop(received.unwrap()),
        }
        let is_third = |packet: &Packet| packet.data[16..20] == [10, 77, 0, 3];
        let (mut for_third, mut for_second) = down.into_iter().partition(is_third);
        second.try_send(&mut for_second);
        third.try_send(&mut for_third);
        far.try_send(&mut VecDeque::from(up));
        far.try_send(&mut VecDeque::from(other));
    }
}

#[tokio::test]
async fn a_near_gateway_that_does_not_read_leaves_memory_of_the_far_one_to_others() {
    within(async {
        const MEMORY: ByteCount = ByteCount::from_mib(4);
        let (far_device, a) = memory::pair(1420, 1024);
        let (second, b) = memory::pair(1420, 1024);
        let (third, c) = memory::pair(1420, 1024);
        let mut tasks = JoinSet::new();
        tasks.spawn(switch(a, [b, c]));
        let far_address = "10.77.0.1/24".parse().unwrap();
        let far_stack = Stack::new(far_device, carrier_config([far_address], MEMORY, 2)).unwrap();
        let nears = [(second, 2), (third, 3)];
        let [near_stack, other_stack] =
            nears.map(|(device, last)| Stack::new(device, config(last)).unwrap());
        let network = Network::between(near_stack, far_stack, |_| {}, tasks);
        let (listener, to) = server().await;
        // Each connection could hold more than a sixteenth of the memory.
        let (mut greedy, mut servers) = (Vec::new(), Vec::new());
        for _ in 0..32 {
            greedy.push(network.near.connect(&to.into()).await.unwrap());
            servers.push(listener.accept().await.unwrap().0);
        }
        // Writing starts after all connections are open: a peer that already holds its share gets
        // no more.
        for mut served in servers {
            tokio::spawn(async move {
                let data = pattern(1, 1 << 20);
                while served.write_all(&data).await.is_ok() {}
            });
        }
        // Waits until the held memory stops growing.
        let mut before = ByteCount::ZERO;
        while network.far_stack.held() > before || before < ByteCount(MEMORY.0 / 4) {
            before = before.max(network.far_stack.held());
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let other = Near::start(other_stack, NearConfig::new(addr(FAR)));
        let mut carried = other.connect(&to.into()).await.unwrap();
        let (mut served, _) = listener.accept().await.unwrap();
        let data = pattern(2, 1 << 20);
        let writing = async {
            served.write_all(&data).await.unwrap();
            served.shutdown().await.unwrap();
        };
        let (heard, ()) = tokio::join!(read_all(&mut carried), writing);
        assert!(heard.unwrap() == data);
    })
    .await;
}
