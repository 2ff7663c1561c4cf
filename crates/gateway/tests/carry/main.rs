//! Kernel connections, carried over stacks in memory to kernel servers on loopback.

mod alike;
mod broken;
mod limits;
mod network;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_device::memory;
use airtcp_gateway::{Destination, Near, NearConfig, Refusal, carrier_config};
use airtcp_net::Stack;
use airtcp_types::ByteCount;
use network::{Network, addr, pattern, read_all, reset_of, server, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// 2 % loss in each direction.
const LOSSY: &str = "rate 50mbit delay 5ms loss 2% limit 500 seed 7";

#[tokio::test]
async fn data_goes_both_ways_over_a_link_that_loses_packets() {
    within(async {
        let network = Network::over(LOSSY);
        let (listener, to) = server().await;
        let program = network.program(to).await;
        let (served, _) = listener.accept().await.unwrap();
        let exchange = async |stream: TcpStream, own: u64, other: u64| {
            let (mut read, mut write) = stream.into_split();
            let writing = async {
                write.write_all(&pattern(own, 1_000_000)).await?;
                write.shutdown().await
            };
            let (heard, written) = tokio::join!(read_all(&mut read), writing);
            written.unwrap();
            assert!(heard.unwrap() == pattern(other, 1_000_000));
        };
        tokio::join!(exchange(program, 1, 2), exchange(served, 2, 1));
        network.until(|near, far| near.open == 0 && far.open == 0).await;
        let (near, far) = (network.near.status(), network.far.status());
        assert_eq!((near.opened, near.sent, near.received), (1, 1_000_000, 1_000_000));
        // The far gateway also counts the reply and the heartbeats.
        assert!(far.opened == 1 && far.received >= 1_000_000 && far.sent > 1_000_000);
        assert!(near.connected && near.rtt.is_some_and(|rtt| rtt >= Duration::from_millis(10)));
    })
    .await;
}

#[tokio::test]
async fn many_connections_are_carried_at_a_time() {
    within(async {
        let network = Network::over(LOSSY);
        let (listener, to) = server().await;
        let echo = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    tokio::io::copy(&mut read, &mut write).await.unwrap();
                    write.shutdown().await.unwrap();
                });
            }
        };
        let all = async {
            let ask = async |number: u64| {
                let mut program = network.program(to).await;
                program.write_all(&pattern(number, 5_000)).await.unwrap();
                program.shutdown().await.unwrap();
                assert!(read_all(&mut program).await.unwrap() == pattern(number, 5_000));
            };
            network::all((0..500).map(ask)).await;
        };
        tokio::select! {
            () = echo => {}
            () = all => {}
        }
        assert_eq!(network.near.status().opened, 500);
        network.until(|near, far| near.open == 0 && far.open == 0 && near.spare == 8).await;
    })
    .await;
}

#[tokio::test]
async fn early_data_rides_with_the_request() {
    within(async {
        let network = Network::new();
        let (listener, to) = server().await;
        let mut carried = network.near.connect_with(&to.into(), b"hello").await.unwrap();
        let (mut served, _) = listener.accept().await.unwrap();
        let mut heard = [0; 5];
        served.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hello");
        served.write_all(b"world").await.unwrap();
        carried.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"world");
    })
    .await;
}

#[tokio::test]
async fn ipv6_carries_to_ipv6() {
    within(async {
        let (left, right) = memory::pair(1420, 256);
        let stack = |device, address: &str| {
            let config = carrier_config([address.parse().unwrap()], ByteCount::from_mib(256), 1);
            Stack::new(device, config).unwrap()
        };
        let (near_stack, far_stack) = (stack(left, "fd77::2/64"), stack(right, "fd77::1/64"));
        let at = addr("[fd77::1]:7077");
        let far = network::far(&far_stack, |far| far.listen = at);
        tokio::spawn(far.run());
        let near = Near::start(near_stack, NearConfig::new(at));
        let listener = TcpListener::bind("[::1]:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let mut carried = near.connect(&to.into()).await.unwrap();
        let (mut served, _) = listener.accept().await.unwrap();
        served.write_all(b"hello").await.unwrap();
        drop(served);
        assert_eq!(read_all(&mut carried).await.unwrap(), b"hello");
    })
    .await;
}

#[tokio::test]
async fn either_end_may_close_its_half_first() {
    within(async {
        let network = Network::new();
        let (listener, to) = server().await;
        for program_first in [true, false] {
            let program = network.program(to).await;
            let (served, _) = listener.accept().await.unwrap();
            let (mut first, mut second) =
                if program_first { (program, served) } else { (served, program) };
            first.write_all(b"a question").await.unwrap();
            first.shutdown().await.unwrap();
            assert_eq!(read_all(&mut second).await.unwrap(), b"a question");
            // The other direction stays open.
            let answer = pattern(3, 300_000);
            let writing = async {
                second.write_all(&answer).await.unwrap();
                second.shutdown().await.unwrap();
            };
            let (heard, ()) = tokio::join!(read_all(&mut first), writing);
            assert!(heard.unwrap() == answer);
        }
    })
    .await;
}

#[tokio::test]
async fn a_reset_of_either_end_is_a_reset_at_the_other() {
    within(async {
        let network = Network::new();
        let (listener, to) = server().await;
        for by_program in [true, false] {
            let program = network.program(to).await;
            let (served, _) = listener.accept().await.unwrap();
            let (resets, mut other) =
                if by_program { (program, served) } else { (served, program) };
            resets.set_zero_linger().unwrap();
            drop(resets);
            assert_eq!(reset_of(&mut other).await, ErrorKind::ConnectionReset);
        }
        network.until(|near, far| near.open == 0 && far.open == 0).await;
    })
    .await;
}

#[tokio::test]
async fn a_reset_is_passed_on_to_an_end_that_does_not_read() {
    within(async {
        let network = Network::new();
        let (listener, to) = server().await;
        let program = network.program(to).await;
        let (_served, _) = listener.accept().await.unwrap();
        // Writes until back-pressure stops the data.
        let data = pattern(1, 1 << 20);
        let patience = Duration::from_secs(1);
        while tokio::time::timeout(patience, program.writable()).await.is_ok() {
            match program.try_write(&data) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        program.set_zero_linger().unwrap();
        drop(program);
        network.until(|near, far| near.open == 0 && far.open == 0).await;
    })
    .await;
}

#[tokio::test]
async fn the_reason_of_a_refusal_is_reported() {
    within(async {
        let network = Network::new();
        let refusal = async |to: &str| {
            network.near.connect(&to.parse().unwrap()).await.expect_err("no connection")
        };
        let (closed, closed_at) = server().await;
        drop(closed);
        assert_eq!(refusal(&closed_at.to_string()).await, Refusal::Refused);
        assert_eq!(refusal("127.0.0.2:80").await, Refusal::NotAllowed);
        assert_eq!(refusal("[::ffff:127.0.0.1]:80").await, Refusal::NotAllowed);
        assert_eq!(refusal("no-such-name.invalid:80").await, Refusal::NoSuchName);
        let refused = network.near.status().refused;
        assert_eq!(
            refused.into_iter().collect::<Vec<_>>(),
            [("no_such_name", 1), ("not_allowed", 2), ("refused", 1)]
        );
    })
    .await;
}

#[tokio::test]
async fn a_name_is_resolved_by_the_far_gateway() {
    within(async {
        let network = Network::new();
        let (listener, to) = server().await;
        let name = Destination::new("localhost", to.port()).unwrap();
        let (carried, accepted) = tokio::join!(network.near.connect(&name), listener.accept());
        carried.unwrap();
        accepted.unwrap();
    })
    .await;
}

/// A listener whose queue is full, so that the kernel does not answer SYNs.
async fn silent() -> (TcpListener, Vec<TcpStream>, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(addr("127.0.0.1:0")).unwrap();
    let listener = socket.listen(1).unwrap();
    let to = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) =
        tokio::time::timeout(Duration::from_millis(500), TcpStream::connect(to)).await
    {
        queue.push(stream.unwrap());
    }
    (listener, queue, to)
}

#[tokio::test]
async fn a_destination_that_does_not_answer_times_out() {
    within(async {
        let network = Network::with(|far| far.dial = Duration::from_millis(300));
        let (_listener, _queue, to) = silent().await;
        assert_eq!(network.near.connect(&to.into()).await.unwrap_err(), Refusal::TimedOut);
    })
    .await;
}

#[tokio::test]
async fn a_dial_that_is_given_up_is_given_up_by_the_far_gateway() {
    within(async {
        let network = Network::with(|far| far.dial = Duration::from_secs(3600));
        network.until(|near, far| near.spare == 8 && far.pending == 9).await;
        let (_listener, _queue, to) = silent().await;
        {
            let to = to.into();
            let dialling = network.near.connect(&to);
            tokio::select! {
                _ = dialling => panic!("nobody answers there"),
                // Ten with the spare connection that replaced the one in use.
                () = network.until(|near, far| near.spare == 8 && far.pending == 10) => {}
            }
        }
        network.until(|_, far| far.pending == 9).await;
    })
    .await;
}
