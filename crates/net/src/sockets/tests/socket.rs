//! Sockets that are configured before they connect or listen.

use std::io::ErrorKind;
use std::time::Duration;

use airtcp_device::{Device, memory};
use airtcp_stack::tcp::{KeepAlive, State};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{addr, connected, pattern, stacks, start, within};

/// The same code for tokio's sockets and for airtcp's.
macro_rules! as_with_tokio {
    ($server:expr, $client:expr, $at:expr, $from:expr) => {{
        let socket = $server;
        socket.set_nodelay(true).unwrap();
        socket.set_recv_buffer_size(200_000).unwrap();
        socket.bind(addr($at)).unwrap();
        let bound = socket.local_addr().unwrap();
        let twice = socket.bind(addr($at)).unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::InvalidInput);
        let listener = socket.listen(16).unwrap();
        assert_eq!(listener.local_addr().unwrap(), bound);

        let socket = $client;
        socket.set_keepalive(true).unwrap();
        assert!(socket.keepalive().unwrap() && !socket.nodelay().unwrap());
        socket.set_send_buffer_size(100_000).unwrap();
        assert!(socket.send_buffer_size().unwrap() >= 100_000);
        socket.set_nodelay(true).unwrap();
        assert!(socket.nodelay().unwrap());
        socket.bind(addr($from)).unwrap();
        let local = socket.local_addr().unwrap();
        let mut stream = socket.connect(bound).await.unwrap();
        assert_eq!(stream.local_addr().unwrap(), local);
        let (mut accepted, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, local);
        stream.write_all(b"hello").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut heard = Vec::new();
        accepted.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"hello");

        let in_use = $server;
        assert_eq!(in_use.bind(bound).unwrap_err().kind(), ErrorKind::AddrInUse);
        let foreign = $server;
        let error = foreign.bind(addr("192.0.2.77:1")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    }};
}

#[tokio::test]
async fn sockets_behave_as_those_of_tokio() {
    within(async {
        let (server, client) = stacks();
        let tokios = || tokio::net::TcpSocket::new_v4().unwrap();
        as_with_tokio!(tokios(), tokios(), "127.0.0.1:0", "127.0.0.1:0");
        as_with_tokio!(server.tcp_socket(), client.tcp_socket(), "10.0.0.1:0", "10.0.0.2:0");
    })
    .await;
}

#[tokio::test]
async fn accepted_connections_inherit_the_settings_of_the_listener() {
    within(async {
        let (server, client) = stacks();
        let socket = server.tcp_socket();
        socket.set_combination(&"sack/reno".parse().unwrap()).unwrap();
        socket.set_detection("le").unwrap();
        socket.set_congestion("westwood").unwrap();
        socket.set_judge("dcr:timer").unwrap();
        assert_eq!(socket.combination().to_string(), "le/westwood/dcr:timer");
        socket.set_judge("").unwrap();
        let unknown = socket.set_congestion("vega").unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::InvalidInput);
        assert!(unknown.to_string().contains("westwood"), "{unknown}");
        socket.set_ttl(7).unwrap();
        assert_eq!(socket.ttl().unwrap(), 7);
        for ttl in [0, 256] {
            assert_eq!(socket.set_ttl(ttl).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        let idle = Duration::from_secs(30);
        socket.set_keep_alive(Some(KeepAlive { idle, ..KeepAlive::default() })).unwrap();
        socket.bind(addr("10.0.0.1:80")).unwrap();
        let listener = socket.listen(u32::MAX).unwrap();
        let stream = client.connect(addr("10.0.0.1:80")).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        assert_eq!(accepted.info().unwrap().combination, "le/westwood");
        assert_eq!(stream.info().unwrap().combination, "rack/bbr3/spike");
    })
    .await;
}

#[tokio::test]
async fn a_deferring_listener_accepts_only_connections_with_data() {
    within(async {
        let (server, client) = stacks();
        let socket = server.tcp_socket();
        let wait = Some(Duration::from_secs(60));
        socket.set_defer_accept(wait).unwrap();
        assert_eq!(socket.defer_accept().unwrap(), wait);
        socket.bind(addr("10.0.0.1:80")).unwrap();
        let listener = socket.listen(4).unwrap();
        let _silent = client.connect(addr("10.0.0.1:80")).await.unwrap();
        let mut speaks = client.connect(addr("10.0.0.1:80")).await.unwrap();
        speaks.write_all(b"hello").await.unwrap();
        let (mut accepted, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, speaks.local_addr().unwrap());
        let mut heard = [0; 5];
        accepted.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hello");
        assert_eq!(server.counters().tcp_ext_defer_accept_drop, 2);
    })
    .await;
}

#[tokio::test]
async fn the_ttl_is_that_of_the_packets() {
    within(async {
        let (device, mut peer) = memory::pair(1500, 16);
        let client = start(device, ["10.0.0.2/24", "fd00::2/64"]);
        for (remote, at) in [("10.0.0.1:9", 8), ("[fd00::1]:9", 7)] {
            let socket = client.tcp_socket();
            socket.set_ttl(7).unwrap();
            let connecting = tokio::spawn(socket.connect(addr(remote)));
            let mut packets = Vec::new();
            peer.recv(&mut packets, 1).await.unwrap();
            assert_eq!(packets[0].data[at], 7);
            connecting.abort();
            let local = if remote.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
            let socket = client.udp_bind(addr(local)).unwrap();
            socket.set_ttl(5).unwrap();
            socket.send_to(b"x", addr(remote)).await.unwrap();
            peer.recv(&mut packets, 1).await.unwrap();
            assert_eq!(packets[1].data[at], 5);
        }
    })
    .await;
}

#[tokio::test]
async fn a_small_buffer_is_obeyed() {
    within(async {
        let (server, client) = stacks();
        let listener = server.listen(addr("10.0.0.1:80"), 1).unwrap();
        let socket = client.tcp_socket();
        socket.set_send_buffer_size(10_000).unwrap();
        let mut stream = socket.connect(addr("10.0.0.1:80")).await.unwrap();
        assert_eq!(stream.write(&pattern(100_000)).await.unwrap(), 10_000);
        drop(listener.accept().await.unwrap());

        // A buffer of zero bytes would never let data through.
        let socket = client.tcp_socket();
        socket.set_send_buffer_size(0).unwrap();
        socket.set_recv_buffer_size(0).unwrap();
        let mut stream = socket.connect(addr("10.0.0.1:80")).await.unwrap();
        let (mut least, _) = listener.accept().await.unwrap();
        let said = pattern(50_000);
        for _ in 0..2 {
            let mut heard = vec![0; said.len()];
            tokio::try_join!(stream.write_all(&said), least.read_exact(&mut heard)).unwrap();
            assert!(heard == said);
            std::mem::swap(&mut stream, &mut least);
        }
    })
    .await;
}

#[tokio::test]
async fn a_bound_address_comes_back_when_the_socket_is_dropped() {
    within(async {
        let (server, client) = stacks();
        let at = addr("10.0.0.2:5000");
        let socket = client.tcp_socket();
        assert_eq!(socket.local_addr().unwrap_err().kind(), ErrorKind::InvalidInput);
        socket.bind(at).unwrap();
        assert_eq!(client.listen(at, 1).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(socket);
        let socket = client.tcp_socket();
        socket.bind(at).unwrap();
        // There is no listener; the address becomes free again nevertheless.
        let refused = socket.connect(addr("10.0.0.1:9")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let socket = client.tcp_socket();
        assert_eq!(client.tcp_socket().listen(1).unwrap_err().kind(), ErrorKind::InvalidInput);
        socket.bind(at).unwrap();
        let listener = server.listen(addr("10.0.0.1:80"), 4).unwrap();
        let stream = socket.connect(addr("10.0.0.1:80")).await.unwrap();
        let second = client.tcp_socket();
        second.bind(at).unwrap();
        let taken = second.connect(addr("10.0.0.1:80")).await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddrNotAvailable);
        assert_eq!(stream.info().unwrap().state, State::Established);
        drop(listener);
    })
    .await;
}

#[tokio::test]
async fn a_stack_that_has_ended_binds_nothing() {
    within(async {
        let (server, client) = stacks();
        let (one, _other) = connected(&server, &client).await;
        let (early, late) = (server.tcp_socket(), server.tcp_socket());
        early.bind(addr("10.0.0.1:80")).unwrap();
        drop(one);
        server.shutdown().await;
        assert_eq!(early.listen(1).unwrap_err().kind(), ErrorKind::NotConnected);
        assert_eq!(late.bind(addr("10.0.0.1:81")).unwrap_err().kind(), ErrorKind::NotConnected);
        let error = late.connect(addr("10.0.0.2:1")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotConnected);
    })
    .await;
}
