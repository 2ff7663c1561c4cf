//! Sockets for every destination, between two stacks in memory.

use std::io::ErrorKind;

use airtcp_device::memory;
use airtcp_stack::HostConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Stack;
use super::{addr, pattern, start, within};

/// Returns a stack without an address, and a client that sends all its packets to it.
fn gateway() -> (Stack, Stack) {
    let (left, right) = memory::pair(1500, 128);
    let gateway = Stack::new(left, HostConfig::new([])).unwrap();
    (gateway, start(right, ["10.0.0.2/24", "fd00::2/64"]))
}

#[tokio::test]
async fn connections_to_any_address_say_where_they_wanted_to_go() {
    within(async {
        let (gateway, client) = gateway();
        let listener = gateway.listen_any(8).unwrap();
        for to in ["192.0.2.7:443", "[2001:db8::7]:443"].map(addr) {
            let connecting = client.connect(to);
            let accepting = async {
                let pending = listener.next().await?;
                assert_eq!(pending.destination(), to);
                let source = pending.source();
                let stream = pending.accept().await?;
                assert_eq!(stream.peer_addr()?, source);
                Ok::<_, std::io::Error>(stream)
            };
            let (mut near, mut far) = tokio::try_join!(connecting, accepting).unwrap();
            assert_eq!(far.local_addr().unwrap(), to);
            let writing = async {
                far.write_all(&pattern(300_000)).await?;
                far.shutdown().await
            };
            let mut heard = Vec::new();
            tokio::try_join!(writing, near.read_to_end(&mut heard)).unwrap();
            assert!(heard == pattern(300_000));
        }
    })
    .await;
}

#[tokio::test]
async fn a_pending_connection_is_refused_when_it_is_dropped_or_its_listener_is() {
    within(async {
        let (gateway, client) = gateway();
        let to = addr("192.0.2.7:443");
        let listener = gateway.listen_any(8).unwrap();
        for named in [true, false] {
            let refusing = async {
                let pending = listener.next().await.unwrap();
                if named {
                    pending.refuse();
                }
            };
            let (connected, ()) = tokio::join!(client.connect(to), refusing);
            assert_eq!(connected.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        }
        let closing = async {
            let pending = listener.next().await.unwrap();
            drop(listener);
            assert_eq!(pending.accept().await.unwrap_err().kind(), ErrorKind::NotConnected);
        };
        let (connected, ()) = tokio::join!(client.connect(to), closing);
        assert_eq!(connected.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(gateway.connections().len(), 0);
    })
    .await;
}

#[tokio::test]
async fn next_ends_when_the_stack_does() {
    within(async {
        let (gateway, _client) = gateway();
        let listener = gateway.listen_any(8).unwrap();
        let (next, ()) = tokio::join!(listener.next(), gateway.shutdown());
        assert_eq!(next.unwrap_err().kind(), ErrorKind::NotConnected);
    })
    .await;
}

#[tokio::test]
async fn datagrams_are_answered_or_refused_from_where_they_were_sent_to() {
    within(async {
        let (gateway, client) = gateway();
        let any = gateway.udp_bind_any().unwrap();
        let mut buf = [0; 64];
        for (from, to) in
            [("10.0.0.2:5000", "192.0.2.7:53"), ("[fd00::2]:5000", "[2001:db8::7]:53")]
        {
            let (from, to) = (addr(from), addr(to));
            let socket = client.udp_bind(from).unwrap();
            socket.send_to(b"question", to).await.unwrap();
            let (len, flow) = any.recv(&mut buf).await.unwrap();
            assert_eq!((&buf[..len], flow.local, flow.remote), (&b"question"[..], to, from));
            any.send(b"answer", flow).await.unwrap();
            assert_eq!(socket.recv_from(&mut buf).await.unwrap(), (6, to));
            socket.connect(to).await.unwrap();
            any.refuse(flow).unwrap();
            let refused = socket.recv(&mut buf).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        }
    })
    .await;
}
