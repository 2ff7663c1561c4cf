//! Gateways that are restarted, and links that fail.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use airtcp_device::memory;
use airtcp_gateway::front::{Clients, serve_remote};
use airtcp_gateway::{FarConfig, Near, NearConfig, Refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::network::{
    FAR, Network, addr, far, pattern, read_all, relay, reset_of, server, stack, within,
};

fn permit_listen(far: &mut FarConfig) {
    far.permit_listen = vec!["127.0.0.1".parse().unwrap()];
}

/// A network whose far end can be replaced, and whose link can be switched off.
fn replaceable() -> (Network, mpsc::UnboundedSender<memory::Memory>, Arc<AtomicBool>) {
    let (left, near_end) = memory::pair(1420, 4096);
    let (far_end, right) = memory::pair(1420, 4096);
    let (fars, next) = mpsc::unbounded_channel();
    fars.send(far_end).unwrap();
    let on = Arc::new(AtomicBool::new(true));
    // Not a task of the network: it outlives the far gateway.
    tokio::spawn(relay(near_end, next, on.clone()));
    let network = Network::between(stack(left, 2), stack(right, 1), permit_listen, JoinSet::new());
    (network, fars, on)
}

#[tokio::test]
async fn a_far_gateway_that_was_restarted_resets_the_connections() {
    within(async {
        let (mut network, fars, _) = replaceable();
        let (listener, to) = server().await;
        let mut program = network.program(to).await;
        let (mut served, _) = listener.accept().await.unwrap();
        served.write_all(b"hello").await.unwrap();
        let mut heard = [0; 5];
        program.read_exact(&mut heard).await.unwrap();

        network.kill();
        let (far_end, right) = memory::pair(1420, 4096);
        fars.send(far_end).unwrap();
        let new_stack = stack(right, 1);
        let new = far(&new_stack, |_| {});
        tokio::spawn(new.clone().run());
        assert_eq!(reset_of(&mut program).await, ErrorKind::ConnectionReset);

        network.until(|near, _| near.connected && near.spare == 8).await;
        let mut program = network.program(to).await;
        let (mut served, _) = listener.accept().await.unwrap();
        program.write_all(b"again").await.unwrap();
        served.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"again");
        assert_eq!(new.status().opened, 1);
    })
    .await;
}

#[tokio::test]
async fn a_link_that_is_gone_for_six_seconds_is_noticed_and_connections_resume() {
    within(async {
        let (network, _fars, on) = replaceable();
        let (listener, to) = server().await;
        let mut program = network.program(to).await;
        let (mut served, _) = listener.accept().await.unwrap();
        let data = pattern(1, 20_000_000);
        let sending = async {
            served.write_all(&data).await.unwrap();
            served.shutdown().await.unwrap();
        };
        let outage = async {
            network.until(|near, _| near.received > 1_000_000).await;
            on.store(false, Relaxed);
            let gone = tokio::time::sleep(Duration::from_secs(6));
            network.until(|near, _| !near.connected).await;
            let refused = network.near.connect(&to.into()).await.unwrap_err();
            assert!(matches!(refused, Refusal::NoGateway(_)), "{refused}");
            gone.await;
            assert_eq!(network.near.status().open, 1, "held");
            on.store(true, Relaxed);
            network.until(|near, _| near.connected).await;
        };
        let (heard, (), ()) = tokio::join!(read_all(&mut program), sending, outage);
        assert!(heard.unwrap() == data);
        network.near.connect(&to.into()).await.unwrap();
    })
    .await;
}

/// Connects to a port, and retries until it is open.
async fn connected(to: SocketAddr) -> TcpStream {
    loop {
        match TcpStream::connect(to).await {
            Ok(stream) => return stream,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn programs_at_a_remote_forward_are_carried_after_a_link_was_gone_for_six_seconds() {
    within(async {
        let (network, _fars, on) = replaceable();
        let (listener, to) = server().await;
        let (_, at) = server().await;
        let forward = format!("{}:{to}", at.port()).parse().unwrap();
        let clients = Clients::new(64);
        let (near, all) = (network.near.clone(), clients.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async { match serve_remote(forward, near, all, None).await {} });
        let is_carried = async |mut program: TcpStream| {
            let (mut served, _) = listener.accept().await.unwrap();
            program.write_all(b"x").await.unwrap();
            assert_eq!(served.read_u8().await.unwrap(), b'x');
        };
        is_carried(connected(at).await).await;
        on.store(false, Relaxed);
        let gone = tokio::time::sleep(Duration::from_secs(6));
        network.until(|near, _| !near.connected).await;
        gone.await;
        // More programs than accept requests that wait at a time. One connects while the link is
        // down.
        let mut programs = vec![connected(at).await];
        on.store(true, Relaxed);
        network.until(|near, _| near.connected).await;
        for _ in 0..8 {
            programs.push(connected(at).await);
        }
        for program in programs {
            is_carried(program).await;
        }
        assert!(network.near.status().refused.is_empty(), "{:?}", network.near.status());
    })
    .await;
}

#[tokio::test]
async fn what_waited_at_a_port_before_the_hold_ended_takes_no_program_after_it() {
    within(async {
        let (mut network, _fars, on) = replaceable();
        let config = NearConfig { hold: Duration::from_secs(5), ..NearConfig::new(addr(FAR)) };
        network.near = Near::start(network.near_stack.clone(), config);
        let (_, at) = server().await;
        let port = network.near.listen(at).await.unwrap();
        {
            let before = network.near.accept(at);
            let outage = async {
                // The request has arrived by then.
                tokio::time::sleep(Duration::from_millis(500)).await;
                on.store(false, Relaxed);
                std::future::pending::<()>().await;
            };
            tokio::select! {
                ended = before => assert!(matches!(ended, Err(Refusal::NoGateway(_))), "{ended:?}"),
                () = outage => {}
            }
        }
        drop(port);
        on.store(true, Relaxed);
        let _port = network.near.listen(at).await.unwrap();
        let mut program = connected(at).await;
        let mut carried = network.near.accept(at).await.unwrap();
        program.write_all(b"x").await.unwrap();
        assert_eq!(carried.read_u8().await.unwrap(), b'x');
    })
    .await;
}

#[tokio::test]
async fn when_the_hold_ends_connections_are_reset() {
    within(async {
        let (mut network, _fars, on) = replaceable();
        let config = NearConfig { hold: Duration::from_secs(5), ..NearConfig::new(addr(FAR)) };
        network.near = Near::start(network.near_stack.clone(), config);
        let (listener, to) = server().await;
        let mut program = network.program(to).await;
        let (_served, _) = listener.accept().await.unwrap();
        on.store(false, Relaxed);
        assert_eq!(reset_of(&mut program).await, ErrorKind::ConnectionReset);
        network.until(|near, _| near.open == 0 && !near.connected).await;
    })
    .await;
}

#[tokio::test]
async fn a_near_gateway_that_was_restarted_resets_its_old_connections_at_the_servers() {
    within(async {
        let mut network = Network::new();
        let (listener, to) = server().await;
        let _old = network.program(to).await;
        let (mut served, _) = listener.accept().await.unwrap();
        network.near = Near::start(network.near_stack.clone(), NearConfig::new(addr(FAR)));
        assert_eq!(reset_of(&mut served).await, ErrorKind::ConnectionReset);
        let mut new = network.program(to).await;
        let (mut served, _) = listener.accept().await.unwrap();
        new.write_all(b"x").await.unwrap();
        assert_eq!(served.read_u8().await.unwrap(), b'x');
    })
    .await;
}

#[tokio::test]
async fn without_a_far_gateway_connections_are_refused_at_once() {
    within(async {
        let (left, right) = memory::pair(1420, 256);
        let (near_stack, _other) = (stack(left, 2), stack(right, 1));
        let near = Near::start(near_stack, NearConfig::new(addr(FAR)));
        let refused = near.connect(&addr("192.0.2.1:80").into()).await.unwrap_err();
        assert!(matches!(&refused, Refusal::NoGateway(why) if why.contains(FAR)), "{refused}");
        let status = near.status();
        assert!(!status.connected && status.reason.is_some());
        assert_eq!(status.refused.get("no_gateway"), Some(&1));
    })
    .await;
}
