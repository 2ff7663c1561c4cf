//! A client, the gateway and a server, over devices in memory.

use std::io::ErrorKind;
use std::net::SocketAddr;

use airtcp_device::{Memory, memory};
use airtcp_net::TcpStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::*;

const CLIENT: &str = "10.1.1.1:0";
const SERVER: &str = "192.0.2.1:80";

struct Network {
    client: Stack,
    server: Stack,
    split: Split,
    _task: JoinHandle<io::Result<Infallible>>,
}

fn host(device: Memory, address: &str) -> Stack {
    Stack::new(device, HostConfig::new([format!("{address}/24").parse().unwrap()])).unwrap()
}

/// Starts a client, the gateway and a server.
fn network(limit: u32) -> Network {
    let (client, one) = memory::pair(1500, 256);
    let (server, other) = memory::pair(1500, 256);
    let (one, other) = bypass(one, other);
    let local = Stack::new(one, local_config(1500)).unwrap();
    let link = Stack::new(other, link_config(1500)).unwrap();
    let split = Split::new(local, link, limit);
    let task = tokio::spawn(split.clone().run());
    let (client, server) = (host(client, "10.1.1.1"), host(server, "192.0.2.1"));
    Network { client, server, split, _task: task }
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

impl Network {
    /// Opens a connection from the client; returns both ends and the peer's address.
    async fn connect(&self) -> (TcpStream, TcpStream, SocketAddr) {
        let listener = self.server.listen(at(SERVER), 8).unwrap();
        let (client, accepted) = tokio::join!(self.client.connect(at(SERVER)), listener.accept());
        let (server, peer) = accepted.unwrap();
        (client.unwrap(), server, peer)
    }
}

#[tokio::test]
async fn both_ends_see_each_other_and_half_closes_pass() {
    let network = network(8);
    let (mut client, mut server, peer) = network.connect().await;
    assert_eq!((peer, peer.ip()), (client.local_addr().unwrap(), at(CLIENT).ip()));
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut read = Vec::new();
    server.read_to_end(&mut read).await.unwrap();
    assert_eq!(read, b"question");
    server.write_all(b"the answer").await.unwrap();
    server.shutdown().await.unwrap();
    read.clear();
    client.read_to_end(&mut read).await.unwrap();
    assert_eq!(read, b"the answer");
    network.split.drained().await;
    let status = network.split.status();
    let refused = BTreeMap::new();
    let expected = SplitStatus { open: 0, opened: 1, refused, sent: 8, received: 10 };
    assert_eq!(status, expected);
}

#[tokio::test]
async fn a_connection_from_the_side_of_the_link_is_carried_too() {
    let network = network(8);
    let listener = network.client.listen(at("10.1.1.1:22"), 8).unwrap();
    let (outside, inside) =
        tokio::join!(network.server.connect(at("10.1.1.1:22")), listener.accept());
    let (mut outside, (mut inside, peer)) = (outside.unwrap(), inside.unwrap());
    assert_eq!(peer, outside.local_addr().unwrap());
    outside.write_all(b"to the inside").await.unwrap();
    drop(outside);
    inside.read_to_end(&mut Vec::new()).await.unwrap();
    drop(inside);
    network.split.drained().await;
    assert_eq!(network.split.status().received, 13);
}

#[tokio::test]
async fn a_refusal_is_one_and_a_reset_is_one_in_both_directions() {
    let network = network(8);
    let refused = network.client.connect(at("192.0.2.1:9")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let (client, mut server, _) = network.connect().await;
    client.abort();
    let error = server.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let (mut client, server, _) = network.connect().await;
    server.abort();
    let error = client.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(network.split.status().refused, BTreeMap::from([("refused", 1)]));
}

#[tokio::test]
async fn a_server_that_does_not_read_holds_the_client_back() {
    let network = network(8);
    let (client, _server, _) = network.connect().await;
    let writing = async {
        loop {
            client.writable().await.unwrap();
            let _ = client.try_write(&[7; 65_536]);
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(1), writing).await.is_err());
    let held = [&network.split.local, &network.split.link].map(|place| place.stack.held());
    assert!(held.iter().all(|held| *held < ByteCount::from_mib(4)), "{held:?}");
}

#[tokio::test]
async fn an_address_has_no_more_than_its_share() {
    let network = network(8);
    let listener = network.server.listen(at(SERVER), 16).unwrap();
    let mut open = Vec::new();
    for _ in 0..7 {
        open.push(network.client.connect(at(SERVER)).await.unwrap());
    }
    let refused = network.client.connect(at(SERVER)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(network.split.status().refused, BTreeMap::from([("busy", 1)]));
    network.split.reset();
    for client in &mut open {
        assert!(client.read_u8().await.is_err());
    }
    drop(listener);
}
