//! Two stacks connected by a pair of devices in memory, in real time.

mod any;
mod ending;
mod hold;
mod keepalive;
mod ready;
mod siblings;
mod socket;
mod thread;
mod watch;

use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use airtcp_device::{Device, Memory, memory};
use airtcp_stack::host::HostConfig;
use airtcp_stack::tcp::State;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::task::JoinSet;

use super::*;

/// The time-out of a test that hangs; no test checks durations.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.expect("hangs")
}

pub(super) fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub(super) fn start(device: Memory, addresses: [&str; 2]) -> Stack {
    let config = HostConfig::new(addresses.map(|address| address.parse().unwrap()));
    Stack::new(device, config).unwrap()
}

/// Returns the stacks of 10.0.0.1, fd00::1 and of 10.0.0.2, fd00::2.
pub(super) fn stacks() -> (Stack, Stack) {
    let (left, right) = memory::pair(1500, 128);
    (start(left, ["10.0.0.1/24", "fd00::1/64"]), start(right, ["10.0.0.2/24", "fd00::2/64"]))
}

/// Returns a connection between two stacks: the server's end and the client's.
pub(super) async fn connected(server: &Stack, client: &Stack) -> (TcpStream, TcpStream) {
    let listener = server.listen(addr("10.0.0.1:0"), 1).unwrap();
    let remote = listener.local_addr().unwrap();
    let (one, other) = tokio::join!(listener.accept(), client.connect(remote));
    (one.unwrap().0, other.unwrap())
}

/// Bytes without repetition nearby, so that any mix-up is detected.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

#[tokio::test]
async fn an_echo_over_both_ip_versions() {
    within(async {
        let (server, client) = stacks();
        for local in ["10.0.0.1:7", "[fd00::1]:7"].map(addr) {
            let listener = server.listen(local, 4).unwrap();
            assert_eq!(listener.local_addr().unwrap(), local);
            let echo = tokio::spawn(async move {
                let (mut stream, peer) = listener.accept().await.unwrap();
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await.unwrap();
                write.shutdown().await.unwrap();
                peer
            });
            let mut stream = client.connect(local).await.unwrap();
            stream.set_nodelay(true).unwrap();
            assert_eq!(stream.peer_addr().unwrap(), local);
            stream.write_all(b"hello").await.unwrap();
            let mut heard = [0; 5];
            stream.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"hello");
            stream.shutdown().await.unwrap();
            assert_eq!(stream.read(&mut heard).await.unwrap(), 0);
            assert_eq!(echo.await.unwrap(), stream.local_addr().unwrap());
        }
        assert_eq!(server.counters().tcp_passive_opens, 2);
        assert!(server.device_counters().rx_packets > 0);
    })
    .await;
}

async fn both_ways(len: usize) {
    let (server, client) = stacks();
    let (one, other) = connected(&server, &client).await;
    let mut tasks = JoinSet::new();
    for stream in [one, other] {
        let (mut read, mut write) = stream.into_split();
        tasks.spawn(async move {
            write.write_all(&pattern(len)).await.unwrap();
            write.shutdown().await.unwrap();
        });
        tasks.spawn(async move {
            let mut heard = Vec::new();
            read.read_to_end(&mut heard).await.unwrap();
            assert!(heard == pattern(len), "{} bytes, or other ones", heard.len());
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn eight_mebibytes_both_ways_on_one_thread() {
    within(both_ways(8 << 20)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_mebibytes_both_ways_on_two_threads() {
    within(both_ways(8 << 20)).await;
}

#[tokio::test]
async fn a_half_closed_stream_still_receives() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        other.shutdown().await.unwrap();
        assert_eq!(one.read(&mut [0; 1]).await.unwrap(), 0);
        one.write_all(&pattern(100_000)).await.unwrap();
        drop(one);
        let mut heard = Vec::new();
        other.read_to_end(&mut heard).await.unwrap();
        assert!(heard == pattern(100_000));
        let refused = other.write_all(b"more").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_connections_at_once() {
    within(async {
        let (server, client) = stacks();
        let listener = server.listen(addr("0.0.0.0:9"), 128).unwrap();
        let serving = tokio::spawn(async move {
            let mut tasks = JoinSet::new();
            for _ in 0..100 {
                let (mut stream, _) = listener.accept().await.unwrap();
                tasks.spawn(async move {
                    let mut heard = Vec::new();
                    stream.read_to_end(&mut heard).await.unwrap();
                    stream.write_all(&heard).await.unwrap();
                });
            }
            tasks.join_all().await
        });
        let mut tasks = JoinSet::new();
        for n in 0..100 {
            let client = client.clone();
            tasks.spawn(async move {
                let mut stream = client.connect(addr("10.0.0.1:9")).await.unwrap();
                let said = pattern(20_000 + n);
                stream.write_all(&said).await.unwrap();
                stream.shutdown().await.unwrap();
                let mut heard = Vec::new();
                stream.read_to_end(&mut heard).await.unwrap();
                assert!(heard == said);
            });
        }
        tasks.join_all().await;
        serving.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_dropped_stream_delivers_what_was_written_and_closes() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let said = pattern(50_000);
        one.write_all(&said).await.unwrap();
        drop(one);
        let mut heard = Vec::new();
        other.read_to_end(&mut heard).await.unwrap();
        assert!(heard == said);
        assert_eq!(other.info().unwrap().state, State::CloseWait);
        drop(other);
        let open = || client.connections().into_iter().any(|(_, s)| s != State::TimeWait);
        while open() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_stream_dropped_with_unread_data_is_reset() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        other.write_all(b"unheard").await.unwrap();
        one.read_exact(&mut [0; 2]).await.unwrap();
        drop(one);
        let error = other.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test]
async fn a_dropped_write_half_sends_a_fin_and_a_forgotten_one_does_not() {
    within(async {
        let (server, client) = stacks();
        let (one, mut other) = connected(&server, &client).await;
        let (mut read, mut write) = one.into_split();
        write.write_all(b"a").await.unwrap();
        let mut one = read.reunite(write).unwrap();
        one.write_all(b"b").await.unwrap();
        (read, write) = one.into_split();
        write.forget();
        other.write_all(b"c").await.unwrap();
        read.read_exact(&mut [0; 1]).await.unwrap();
        assert_eq!(read.info().unwrap().state, State::Established);
        drop(read);
        let mut heard = Vec::new();
        other.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"ab");

        let (one, mut other) = connected(&server, &client).await;
        let (read, write) = one.into_split();
        drop(write);
        assert_eq!(other.read(&mut [0; 1]).await.unwrap(), 0);
        assert_eq!(read.peer_addr().unwrap(), other.local_addr().unwrap());
    })
    .await;
}

/// Starts and drops every operation repeatedly beside a branch that is ready.
#[tokio::test]
async fn futures_dropped_early_lose_nothing() {
    within(async {
        let (server, client) = stacks();
        let listener = server.listen(addr("10.0.0.1:9"), 4).unwrap();
        let said = pattern(300_000);
        let expected = said.clone();
        let sending = tokio::spawn(async move {
            let mut stream = client.connect(addr("10.0.0.1:9")).await.unwrap();
            let mut left = &said[..];
            while !left.is_empty() {
                tokio::select! {
                    biased;
                    written = stream.write(&left[..left.len().min(7_000)]) => {
                        left = &left[written.unwrap()..];
                    }
                    () = tokio::task::yield_now() => {}
                }
            }
            // Also drops the last handle of the client's stack, which ends it.
            drop(stream);
        });
        let mut stream = loop {
            tokio::select! {
                biased;
                accepted = listener.accept() => break accepted.unwrap().0,
                () = tokio::task::yield_now() => {}
            }
        };
        let (mut heard, mut buf) = (Vec::new(), [0; 3_000]);
        loop {
            tokio::select! {
                biased;
                read = stream.read(&mut buf) => match read.unwrap() {
                    0 => break,
                    read => heard.extend_from_slice(&buf[..read]),
                },
                () = tokio::task::yield_now() => {}
            }
        }
        assert!(heard == expected);
        sending.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_connect_that_is_given_up_leaves_nothing() {
    within(async {
        let (device, peer) = memory::pair(1500, 64);
        let client = start(device, ["10.0.0.2/24", "fd00::2/64"]);
        {
            // There is no listener.
            let mut connecting = std::pin::pin!(client.connect(addr("10.0.0.1:9")));
            poll_fn(|context| {
                assert!(connecting.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            assert_eq!(client.connections()[0].1, State::SynSent);
        }
        assert_eq!(client.connections(), []);
        drop(peer);
    })
    .await;
}

#[tokio::test]
async fn failed_opens_have_their_error_kind() {
    within(async {
        let (server, client) = stacks();
        let refused = client.connect(addr("10.0.0.1:1")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let _listener = server.listen(addr("10.0.0.1:7"), 1).unwrap();
        let kind = |result: std::io::Result<TcpListener>| result.unwrap_err().kind();
        assert_eq!(kind(server.listen(addr("10.0.0.1:7"), 1)), ErrorKind::AddrInUse);
        assert_eq!(kind(server.listen(addr("10.0.0.9:7"), 1)), ErrorKind::AddrNotAvailable);
    })
    .await;
}

#[tokio::test]
async fn a_dropped_listener_resets_those_it_did_not_give_out() {
    within(async {
        let (server, client) = stacks();
        let listener = server.listen(addr("10.0.0.1:9"), 4).unwrap();
        let mut first = client.connect(addr("10.0.0.1:9")).await.unwrap();
        let (mut accepted, _) = listener.accept().await.unwrap();
        let mut second = client.connect(addr("10.0.0.1:9")).await.unwrap();
        second.write_all(b"x").await.unwrap();
        drop(listener);
        let error = second.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        accepted.write_all(b"ok").await.unwrap();
        first.read_exact(&mut [0; 2]).await.unwrap();
        let refused = client.connect(addr("10.0.0.1:9")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    })
    .await;
}

#[tokio::test]
async fn several_tasks_wait_on_one_listener() {
    within(async {
        let (server, client) = stacks();
        let listener = std::sync::Arc::new(server.listen(addr("10.0.0.1:9"), 8).unwrap());
        let mut tasks = JoinSet::new();
        for _ in 0..4 {
            let listener = listener.clone();
            tasks.spawn(async move { listener.accept().await.unwrap().1 });
        }
        tokio::task::yield_now().await;
        let mut locals = Vec::new();
        let mut streams = Vec::new();
        for _ in 0..4 {
            let stream = client.connect(addr("10.0.0.1:9")).await.unwrap();
            locals.push(stream.local_addr().unwrap());
            streams.push(stream);
        }
        let mut peers = tasks.join_all().await;
        peers.sort_unstable();
        locals.sort_unstable();
        assert_eq!(peers, locals);
    })
    .await;
}

#[tokio::test]
async fn datagrams_there_and_back() {
    within(async {
        let (server, client) = stacks();
        let echo = server.udp_bind(addr("0.0.0.0:7")).unwrap();
        let socket = client.udp_bind(addr("10.0.0.2:0")).unwrap();
        let echoing = tokio::spawn(async move {
            let mut buf = [0; 1500];
            for _ in 0..100 {
                let (len, from) = echo.recv_from(&mut buf).await.unwrap();
                assert_eq!(echo.send_to(&buf[..len], from).await.unwrap(), len);
            }
        });
        let mut buf = [0; 1500];
        for n in 0..100 {
            socket.send_to(&pattern(n * 10), addr("10.0.0.1:7")).await.unwrap();
            let (len, from) = socket.recv_from(&mut buf).await.unwrap();
            assert_eq!((&buf[..len], from), (&pattern(n * 10)[..], addr("10.0.0.1:7")));
        }
        echoing.await.unwrap();
        let long = socket.send_to(&[0; 1473], addr("10.0.0.1:7")).await.unwrap_err();
        assert_eq!(long.kind(), ErrorKind::InvalidInput);
    })
    .await;
}

/// More datagrams than any queue holds: the sender waits, and every datagram is sent.
#[tokio::test]
async fn datagrams_wait_for_a_slow_device() {
    within(async {
        let (device, mut peer) = memory::pair(1500, 4);
        let client = start(device, ["10.0.0.2/24", "fd00::2/64"]);
        let socket = client.udp_bind(addr("10.0.0.2:0")).unwrap();
        let sending = tokio::spawn(async move {
            for _ in 0..2_000 {
                socket.send_to(b"datagram", addr("10.0.0.1:7")).await.unwrap();
            }
        });
        let mut arrived = Vec::new();
        while arrived.len() < 2_000 {
            peer.recv(&mut arrived, 3).await.unwrap();
        }
        sending.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_device_that_goes_away_ends_every_wait() {
    within(async {
        let (device, peer) = memory::pair(1500, 64);
        let server = start(device, ["10.0.0.1/24", "fd00::1/64"]);
        let client = start(peer, ["10.0.0.2/24", "fd00::2/64"]);
        let (mut one, other) = connected(&server, &client).await;
        let listener = server.listen(addr("10.0.0.1:9"), 4).unwrap();
        let udp = server.udp_bind(addr("10.0.0.1:9")).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { listener.accept().await.map(drop).unwrap_err() });
        tasks.spawn(async move { udp.recv_from(&mut [0; 1]).await.map(drop).unwrap_err() });
        tasks.spawn(async move { one.read(&mut [0; 1]).await.map(drop).unwrap_err() });
        let connecting = server.clone();
        tasks.spawn(
            async move { connecting.connect(addr("10.0.0.77:1")).await.map(drop).unwrap_err() },
        );
        tokio::task::yield_now().await;
        // The client's FIN is not read: its time-out is zero, and its device is dropped.
        client.shutdown_within(Duration::ZERO).await;
        for error in tasks.join_all().await {
            let expected = [ErrorKind::NetworkDown, ErrorKind::ConnectionReset];
            assert!(expected.contains(&error.kind()), "{error:?}");
        }
        assert_eq!(server.closed().await.kind(), ErrorKind::NetworkDown);
        assert_eq!(
            server.listen(addr("10.0.0.1:9"), 1).unwrap_err().kind(),
            ErrorKind::NetworkDown
        );
        assert_eq!(other.local_addr().unwrap_err().kind(), ErrorKind::NotConnected);
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_delivers_what_was_written_and_ends_every_wait() {
    within(async {
        let (server, client) = stacks();
        let listener = server.listen(addr("10.0.0.1:9"), 4).unwrap();
        let (mut one, mut other) = connected(&server, &client).await;
        let accepting = tokio::spawn(async move { listener.accept().await.map(drop).unwrap_err() });
        one.write_all(&pattern(60_000)).await.unwrap();
        let reading = tokio::spawn(async move {
            let mut heard = Vec::new();
            other.read_to_end(&mut heard).await.unwrap();
            heard
        });
        server.shutdown().await;
        assert!(reading.await.unwrap() == pattern(60_000));
        assert_eq!(accepting.await.unwrap().kind(), ErrorKind::NotConnected);
        assert!(one.write_all(b"x").await.is_err());
        assert!(one.read(&mut [0; 1]).await.is_err());
        assert_eq!(
            server.udp_bind(addr("10.0.0.1:9")).unwrap_err().kind(),
            ErrorKind::NotConnected
        );
    })
    .await;
}

#[tokio::test]
async fn a_shutdown_of_an_idle_stack_does_not_wait() {
    let (server, _client) = stacks();
    let _listener = server.listen(addr("10.0.0.1:9"), 4).unwrap();
    // The time-out is longer than that of the test.
    within(server.shutdown_within(Duration::from_secs(3600))).await;
}

#[tokio::test]
async fn the_last_handle_dropped_delivers_then_lets_the_device_go() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        one.write_all(&pattern(60_000)).await.unwrap();
        drop((one, server));
        let mut heard = Vec::new();
        other.read_to_end(&mut heard).await.unwrap();
        assert!(heard == pattern(60_000));
        drop(other);
        assert_eq!(client.closed().await.kind(), ErrorKind::NetworkDown);
    })
    .await;
}

#[tokio::test]
async fn copy_bidirectional_works_on_our_streams() {
    within(async {
        let (server, client) = stacks();
        let backend = server.listen(addr("10.0.0.1:80"), 4).unwrap();
        let proxy = client.listen(addr("10.0.0.2:80"), 4).unwrap();
        let inner = client.clone();
        let proxying = tokio::spawn(async move {
            let (mut from, _) = proxy.accept().await.unwrap();
            let mut to = inner.connect(addr("10.0.0.1:80")).await.unwrap();
            copy_bidirectional(&mut from, &mut to).await.unwrap()
        });
        let serving = tokio::spawn(async move {
            let (mut stream, _) = backend.accept().await.unwrap();
            let mut heard = Vec::new();
            stream.read_to_end(&mut heard).await.unwrap();
            heard.reverse();
            stream.write_all(&heard).await.unwrap();
        });
        let mut stream = server.connect(addr("10.0.0.2:80")).await.unwrap();
        let mut said = pattern(200_000);
        stream.write_all(&said).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.unwrap();
        said.reverse();
        assert!(heard == said);
        assert_eq!(proxying.await.unwrap(), (200_000, 200_000));
        serving.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn strategies_change_while_a_stream_is_in_use() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let data = pattern(400_000);
        let sent = data.clone();
        let writer = tokio::spawn(async move {
            for (piece, name) in sent.chunks(100_000).zip([
                "sack/reno",
                "le/westwood",
                "newreno/cubic",
                "rack/cubic",
            ]) {
                other.set_combination(&name.parse().unwrap()).unwrap();
                assert_eq!(other.info().unwrap().combination, name);
                other.write_all(piece).await.unwrap();
            }
            other
        });
        let mut heard = vec![0; data.len()];
        one.read_exact(&mut heard).await.unwrap();
        assert!(heard == data);
        let mut other = writer.await.unwrap();
        let refused = other.set_combination(&"sack/cubic/hack".parse().unwrap()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert_eq!(other.info().unwrap().combination, "rack/cubic");
        other.shutdown().await.unwrap();
        one.shutdown().await.unwrap();
        assert_eq!(other.read(&mut heard).await.unwrap(), 0);
        client.shutdown().await;
        let late = other.set_combination(&"sack/reno".parse().unwrap()).unwrap_err();
        assert!(matches!(late.kind(), ErrorKind::BrokenPipe | ErrorKind::NotConnected), "{late}");
    })
    .await;
}

#[tokio::test]
async fn one_vectored_write_is_one_stretch_of_the_stream() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let parts = [b"head ".as_slice(), b"", b"body"].map(std::io::IoSlice::new);
        assert!(one.is_write_vectored());
        assert_eq!(one.write_vectored(&parts).await.unwrap(), 9);
        drop(one);
        let mut heard = Vec::new();
        other.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"head body");
    })
    .await;
}

#[test]
fn a_stack_without_a_runtime_says_so() {
    let (device, _peer) = memory::pair(1500, 4);
    let error = Stack::new(device, HostConfig::new([])).unwrap_err();
    assert!(error.to_string().contains("tokio runtime"), "{error}");
}

#[test]
fn a_runtime_that_ends_ends_the_stack() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, client) = {
        let _guard = runtime.enter();
        stacks()
    };
    let (mut one, _other) = runtime.block_on(connected(&server, &client));
    drop(runtime);
    let again = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = again.block_on(within(one.read(&mut [0; 1]))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected);
}
