//! Sockets of the kernel on the loopback interface, in real time; no test checks durations.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_rrtp::{Config, Endpoint, Limits, NetworkKind, NetworkProfile, Phase};
use airtcp_types::Instant;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::*;

/// The time-out of a test that hangs.
const LIMIT: Duration = Duration::from_secs(60);

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.expect("hangs")
}

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Bytes without repetition nearby, so that any mix-up is detected.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

async fn connected(config: Config) -> (RrtpListener, RrtpStream, RrtpStream) {
    let listener = RrtpListener::bind(any(), config.clone()).await.unwrap();
    let client = RrtpStream::connect(listener.local_addr().unwrap(), config).await.unwrap();
    let (server, peer) = listener.accept().await.unwrap();
    assert_eq!(peer.port(), client.local_addr().unwrap().port());
    (listener, client, server)
}

#[tokio::test]
async fn both_directions_at_once_over_both_ip_versions() {
    within(async {
        let data = pattern(3 << 20);
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let at = at.parse().unwrap();
            let listener = RrtpListener::bind(at, Config::default()).await.unwrap();
            let at = listener.local_addr().unwrap();
            let one = RrtpStream::connect(at, Config::default()).await.unwrap();
            let (other, _) = listener.accept().await.unwrap();
            let mut ends = JoinSet::new();
            for stream in [one, other] {
                let (mut reader, mut writer) = stream.into_split();
                let (mine, theirs) = (data.clone(), data.clone());
                ends.spawn(async move {
                    writer.write_all(&mine).await.unwrap();
                    // Dropping the half finishes its direction.
                });
                ends.spawn(async move {
                    let mut heard = Vec::new();
                    reader.read_to_end(&mut heard).await.unwrap();
                    assert!(heard == theirs);
                });
            }
            while let Some(end) = ends.join_next().await {
                end.unwrap();
            }
        }
    })
    .await;
}

#[tokio::test]
async fn many_connections_share_one_socket_at_each_end() {
    within(async {
        let listener = RrtpListener::bind(any(), Config::default()).await.unwrap();
        let at = listener.local_addr().unwrap();
        let clients = RrtpSocket::bind(any(), Limits::default()).await.unwrap();
        let mut tasks = JoinSet::new();
        for index in 0..50_u8 {
            let clients = clients.clone();
            tasks.spawn(async move {
                let mut stream = clients.connect(at, Config::default()).await.unwrap();
                stream.write_all(&vec![index; 20_000]).await.unwrap();
                stream.shutdown().await.unwrap();
                let mut heard = Vec::new();
                stream.read_to_end(&mut heard).await.unwrap();
                assert!(heard == vec![index; 20_000]);
            });
            let (mut stream, _) = listener.accept().await.unwrap();
            tasks.spawn(async move {
                let mut heard = Vec::new();
                stream.read_to_end(&mut heard).await.unwrap();
                stream.write_all(&heard).await.unwrap();
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
        assert_eq!(listener.socket().counters().accepted, 50);
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_stops_blocks_the_writer_until_it_continues() {
    within(async {
        let buffer = airtcp_types::ByteCount::from_kib(256);
        let mut config =
            Config { receive_buffer: buffer, send_buffer: buffer, ..Config::default() };
        config.profile.send_rate = Some(airtcp_types::Rate::from_bits_per_sec(500_000_000));
        let (listener, mut client, mut server) = connected(config).await;
        let data = pattern(4 << 20);
        let expected = data.clone();
        let writing = tokio::spawn(async move {
            client.write_all(&data).await.unwrap();
            client
        });
        // The buffers are full, and more than a round trip passes without a read.
        while server.info().unwrap().unread.0 < 200 << 10 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!writing.is_finished());
        assert!(server.info().unwrap().unread.0 <= 300 << 10);
        let mut heard = vec![0; expected.len()];
        server.read_exact(&mut heard).await.unwrap();
        assert!(heard == expected);
        writing.await.unwrap();
        assert_eq!(listener.socket().counters().over_window, 0);
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_vanishes_is_an_error_for_every_waiting_task() {
    within(async {
        let config = Config {
            idle_timeout: Duration::from_secs(2),
            keepalive: Duration::from_millis(500),
            ..Config::default()
        };
        let gate = UdpSocket::bind(any()).await.unwrap();
        let listener = RrtpListener::bind(any(), config.clone()).await.unwrap();
        let server_at = listener.local_addr().unwrap();
        let (open, closed) = tokio::sync::oneshot::channel::<()>();
        let gate_at = gate.local_addr().unwrap();
        // Forwards datagrams between the two, until it stops.
        let between = tokio::spawn(async move {
            let (mut client_at, mut closed) = (None, closed);
            let mut datagram = [0; 2_000];
            loop {
                tokio::select! {
                    _ = &mut closed => return,
                    came = gate.recv_from(&mut datagram) => {
                        let (length, from) = came.unwrap();
                        let to = if from == server_at { client_at } else { Some(server_at) };
                        if from != server_at {
                            client_at = Some(from);
                        }
                        gate.send_to(&datagram[..length], to.unwrap()).await.unwrap();
                    }
                }
            }
        });
        let mut client = RrtpStream::connect(gate_at, config).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(b"here").await.unwrap();
        server.read_exact(&mut [0; 4]).await.unwrap();
        open.send(()).unwrap();
        between.await.unwrap();
        for stream in [&mut client, &mut server] {
            let error = stream.read(&mut [0; 4]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        }
        let error = client.write_all(b"there").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    })
    .await;
}

#[tokio::test]
async fn no_server_and_another_version_are_different_errors() {
    within(async {
        let silent = UdpSocket::bind(any()).await.unwrap();
        let config = Config { handshake_timeout: Duration::from_millis(300), ..Config::default() };
        let at = silent.local_addr().unwrap();
        let error = RrtpStream::connect(at, config.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");

        let other = tokio::spawn(async move {
            // Uses only the 16 bytes of a SYN that have the same layout in all versions.
            let mut datagram = [0; 2_000];
            loop {
                let (length, from) = silent.recv_from(&mut datagram).await.unwrap();
                // This server responds to a SYN of version 9 with its own version.
                let mut server = Endpoint::new(Limits::default(), [2; 16]);
                server.listen(Some(Config::default()));
                let syn = with_version(&datagram[..length], 9);
                server.handle_datagram(Instant::ZERO, from, &syn);
                let mut answer = Vec::new();
                server.poll_transmit(Instant::ZERO, &mut answer).unwrap();
                silent.send_to(&with_version(&answer, 9), from).await.unwrap();
            }
        });
        let error = RrtpStream::connect(at, Config::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("version 9"), "{error}");
        other.abort();
    })
    .await;
}

/// Changes the version of a datagram.
fn with_version(datagram: &[u8], version: u8) -> Vec<u8> {
    let mut datagram = datagram.to_vec();
    datagram[0] = version << 4 | datagram[0] & 15;
    let sum = crc32c::crc32c_append(crc32c::crc32c(&datagram[..12]), &datagram[16..]);
    datagram[12..16].copy_from_slice(&sum.to_be_bytes());
    datagram
}

/// Returns the first two datagrams of a client. The cookie in the second one was made by `server`.
fn syn_and_start(client: &mut Endpoint, server: &mut Endpoint) -> [Vec<u8>; 2] {
    let (now, peer) = (Instant::ZERO, any());
    let id = client.connect(now, peer, Config::default()).unwrap();
    let next = |endpoint: &mut Endpoint| {
        let mut datagram = Vec::new();
        endpoint.poll_transmit(now, &mut datagram).unwrap();
        datagram
    };
    let syn = next(client);
    server.handle_datagram(now, peer, &syn);
    client.handle_datagram(now, peer, &next(server));
    let start = next(client);
    client.abort(now, id);
    client.release(now, id);
    while client.poll_transmit(now, &mut Vec::new()).is_some() {}
    [syn, start]
}

#[tokio::test]
async fn a_flood_of_strangers_leaves_nothing_and_clients_connect_meanwhile() {
    within(async {
        let listener = RrtpListener::bind(any(), Config::default()).await.unwrap();
        let at = listener.local_addr().unwrap();
        let flood = UdpSocket::bind(any()).await.unwrap();
        let flooding = tokio::spawn(async move {
            let mut client = Endpoint::new(Limits::default(), [1; 16]);
            let mut elsewhere = Endpoint::new(Limits::default(), [2; 16]);
            elsewhere.listen(Some(Config::default()));
            loop {
                for datagram in syn_and_start(&mut client, &mut elsewhere) {
                    flood.send_to(&datagram, at).await.unwrap();
                }
                // The runtime has only one thread.
                tokio::task::yield_now().await;
            }
        });
        for _ in 0..5 {
            let mut client = RrtpStream::connect(at, Config::default()).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            client.write_all(b"let me in").await.unwrap();
            server.read_exact(&mut [0; 9]).await.unwrap();
        }
        flooding.abort();
        let socket = listener.socket();
        let counters = socket.counters();
        assert!(counters.syns > 0 && counters.bad_cookie > 0, "{counters:?}");
        assert_eq!(counters.accepted, 5);
        assert!(socket.connections() <= 5);
    })
    .await;
}

#[tokio::test]
async fn an_abort_and_a_drop_with_unread_data_reach_the_peer() {
    within(async {
        let (listener, client, mut server) = connected(Config::default()).await;
        client.abort();
        let error = server.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(error.to_string().contains("aborted"), "{error}");

        let at = listener.local_addr().unwrap();
        let mut client = RrtpStream::connect(at, Config::default()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        client.write_all(b"nobody will read this").await.unwrap();
        while server.info().unwrap().unread.0 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(server);
        let error = client.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test]
async fn a_dropped_listener_aborts_unaccepted_connections_only() {
    within(async {
        let (listener, mut client, mut server) = connected(Config::default()).await;
        let at = listener.local_addr().unwrap();
        let mut waiting = RrtpStream::connect(at, Config::default()).await.unwrap();
        let busy = listener.socket().listen(Config::default()).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::AddrInUse);
        drop(listener);
        assert!(waiting.read(&mut [0; 1]).await.is_err());
        client.write_all(b"still").await.unwrap();
        server.read_exact(&mut [0; 5]).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_was_written_is_delivered_before_a_socket_ends() {
    within(async {
        let listener = RrtpListener::bind(any(), Config::default()).await.unwrap();
        let at = listener.local_addr().unwrap();
        let socket = RrtpSocket::bind(any(), Limits::default()).await.unwrap();
        let mut client = socket.connect(at, Config::default()).await.unwrap();
        let data = pattern(1 << 20);
        client.write_all(&data).await.unwrap();
        drop(client);
        let reading = tokio::spawn(async move {
            let (mut server, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            server.read_to_end(&mut heard).await.unwrap();
            heard
        });
        socket.shutdown_within(LIMIT).await;
        assert_eq!(
            socket.connect(at, Config::default()).await.unwrap_err().kind(),
            ErrorKind::NotConnected
        );
        assert!(reading.await.unwrap() == data);
    })
    .await;
}

#[tokio::test]
async fn open_connections_are_aborted_after_the_close_time() {
    within(async {
        let (listener, mut client, mut server) = connected(Config::default()).await;
        listener.socket().shutdown_within(Duration::from_millis(50)).await;
        assert_eq!(server.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::NotConnected);
        assert_eq!(client.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(listener.accept().await.is_err());
    })
    .await;
}

/// The runtime may end even before the first turn of the driver.
#[test]
fn a_socket_ends_with_its_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let socket = first.block_on(RrtpSocket::bind(any(), Limits::default())).unwrap();
    let listener = socket.listen(Config::default()).unwrap();
    drop(first);
    second.block_on(within(async {
        assert_eq!(listener.accept().await.unwrap_err().kind(), ErrorKind::NotConnected);
        socket.shutdown_within(Duration::from_secs(600)).await;
    }));
}

#[tokio::test]
async fn the_shortest_close_time_ends_the_socket() {
    let (listener, client, mut server) = connected(Config::default()).await;
    let socket = listener.socket().clone();
    let patient = tokio::spawn({
        let socket = socket.clone();
        async move { socket.shutdown_within(Duration::from_secs(600)).await }
    });
    tokio::task::yield_now().await;
    within(socket.shutdown_within(Duration::ZERO)).await;
    within(patient).await.unwrap();
    let error = within(server.read(&mut [0; 1])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    drop(client);
}

#[tokio::test]
async fn reconfigure_changes_kind_and_rate_of_a_connection() {
    within(async {
        let (_listener, client, _server) = connected(Config::default()).await;
        let rate = airtcp_types::Rate::from_bits_per_sec(2_000_000);
        let profile = NetworkProfile { send_rate: Some(rate), ..NetworkProfile::default() };
        client.reconfigure(NetworkKind::WirelessLastHop, profile).unwrap();
        let info = client.info().unwrap();
        assert_eq!((info.phase, info.rate), (Phase::Established, rate));
        assert_eq!(info.kind, NetworkKind::WirelessLastHop);
    })
    .await;
}

#[tokio::test]
async fn rrtp_runs_over_udp_sockets_of_a_stack() {
    within(async {
        let (left, right) = airtcp_device::memory::pair(1_500, 128);
        let stack = |device, address: &str| {
            let config = airtcp_stack::HostConfig::new([address.parse().unwrap()]);
            crate::Stack::new(device, config).unwrap()
        };
        let (one, other) = (stack(left, "10.0.0.1/24"), stack(right, "10.0.0.2/24"));
        let server = one.udp_bind("10.0.0.1:7".parse().unwrap()).unwrap();
        let client = other.udp_bind("10.0.0.2:0".parse().unwrap()).unwrap();
        let server = RrtpSocket::over(server, Limits::default()).unwrap();
        let client = RrtpSocket::over(client, Limits::default()).unwrap();
        let listener = server.listen(Config::default()).unwrap();
        let data = pattern(2 << 20);
        let mut stream = client.connect(server.local_addr(), Config::default()).await.unwrap();
        let (mut accepted, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr());
        let sending = data.clone();
        let writing = tokio::spawn(async move {
            stream.write_all(&sending).await.unwrap();
            stream.shutdown().await.unwrap();
            stream
        });
        let mut heard = Vec::new();
        accepted.read_to_end(&mut heard).await.unwrap();
        assert_eq!(Sha256::digest(&heard), Sha256::digest(&data));
        writing.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_kernel_timestamps_received_datagrams() {
    within(async {
        let to = super::kernel::bind(any()).await.unwrap();
        let from = UdpSocket::bind(any()).await.unwrap();
        // A datagram that waited longer than a second has no age; a stalled machine tries again.
        loop {
            for text in [&b"one"[..], b"two"] {
                from.send_to(text, to.local_addr().unwrap()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let mut inbox = Inbox::new();
            while inbox.iter().count() < 2 {
                DatagramSocket::readable(&to).await.unwrap();
                to.try_recv_batch(&mut inbox).unwrap();
            }
            let came: Vec<_> = inbox.iter().map(|(_, text, age)| (text.to_vec(), age)).collect();
            assert_eq!((&came[0].0[..], &came[1].0[..]), (&b"one"[..], &b"two"[..]));
            if came[0].1 > came[1].1 && came[1].1 > Duration::ZERO {
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_batch_handed_over_as_one_arrives_as_many() {
    within(async {
        let to = UdpSocket::bind(any()).await.unwrap();
        let at = to.local_addr().unwrap();
        let from = super::kernel::bind(any()).await.unwrap();
        let mut outbox = Outbox::default();
        let datagrams: Vec<Vec<u8>> =
            (0..20_u8).map(|n| vec![n; if n < 19 { 500 } else { 80 }]).collect();
        for datagram in &datagrams {
            outbox.add(|out| {
                out.extend_from_slice(datagram);
                Some(at)
            });
        }
        let (count, length, bytes) = outbox.alike();
        assert_eq!((count, length), (20, 500));
        DatagramSocket::writable(&from).await.unwrap();
        super::kernel::send(&from, bytes, length, at).unwrap();
        let mut heard = [0; 2_000];
        for datagram in &datagrams {
            let (length, _) = to.recv_from(&mut heard).await.unwrap();
            assert_eq!(&heard[..length], datagram);
        }
    })
    .await;
}

/// A socket that claims to have sent this number of datagrams.
struct Claims(usize);

impl DatagramSocket for Claims {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(any())
    }

    async fn readable(&self) -> io::Result<()> {
        Ok(())
    }

    async fn writable(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_recv_from(&self, _: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn try_send_to(&self, data: &[u8], _: SocketAddr) -> io::Result<usize> {
        Ok(data.len())
    }

    fn try_send_batch(&self, _: &Outbox) -> io::Result<usize> {
        Ok(self.0)
    }
}

#[test]
fn a_socket_that_sends_nothing_is_left_and_one_that_says_too_much_is_not_believed() {
    let mut outbox = Outbox::default();
    for _ in 0..3 {
        outbox.add(|out| {
            out.push(7);
            Some(any())
        });
    }
    assert_eq!((outbox.send(&Claims(0)), outbox.is_empty()), (0, false));
    assert_eq!((outbox.send(&Claims(usize::MAX)), outbox.is_empty()), (0, true));
}
