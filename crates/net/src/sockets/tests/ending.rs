//! Cancelled connection attempts, and graceful shutdown of servers.

use std::io::ErrorKind;
use std::time::Duration;

use airtcp_device::memory;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::{addr, connected, pattern, stacks, start, within};

/// A time-out longer than any test.
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_connect_that_takes_too_long_is_given_up() {
    within(async {
        let (device, peer) = memory::pair(1500, 64);
        let client = start(device, ["10.0.0.2/24", "fd00::2/64"]);
        for limit in [Duration::ZERO, Duration::from_millis(20)] {
            let error = client.connect_timeout(addr("10.0.0.1:9"), limit).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
            assert_eq!(client.connections(), []);
        }
        drop(peer);
        let gone = client.connect_timeout(addr("10.0.0.1:9"), LONG).await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NetworkDown);
    })
    .await;
}

#[tokio::test]
async fn a_connect_in_time_is_as_any() {
    within(async {
        let (server, client) = stacks();
        let _listener = server.listen(addr("10.0.0.1:9"), 1).unwrap();
        client.connect_timeout(addr("10.0.0.1:9"), LONG).await.unwrap();
        let refused = client.connect_timeout(addr("10.0.0.1:1"), LONG).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    })
    .await;
}

#[tokio::test]
async fn shutdown_ends_after_its_time_limit() {
    within(async {
        let (server, client) = stacks();
        let (one, mut other) = connected(&server, &client).await;
        assert_eq!(one.linger().unwrap(), None);
        one.set_linger(Some(LONG)).unwrap();
        assert_eq!(one.linger().unwrap(), Some(LONG));
        one.set_linger(None).unwrap();
        one.set_zero_linger().unwrap();
        // Zero linger also applies when the last half is dropped.
        let (reader, mut writer) = one.into_split();
        writer.write_all(b"lost, perhaps").await.unwrap();
        writer.forget();
        drop(reader);
        let mut heard = Vec::new();
        let reset = other.read_to_end(&mut heard).await.unwrap_err();
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);

        // The peer does not read and its window is full: closing would never complete.
        let (one, mut other) = connected(&server, &client).await;
        one.set_linger(Some(Duration::from_millis(20))).unwrap();
        while one.try_write(&pattern(60_000)).is_ok() {
            tokio::task::yield_now().await;
        }
        drop(one);
        while server.counters().tcp_ext_abort_on_linger == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let reset = other.read_to_end(&mut heard).await.unwrap_err();
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test]
async fn a_stack_that_closes_ends_with_the_packet_that_makes_it_quiet() {
    within(async {
        let (server, client) = stacks();
        let (one, _other) = connected(&server, &client).await;
        one.set_linger(Some(Duration::from_millis(20))).unwrap();
        while one.try_write(&pattern(60_000)).is_ok() {
            tokio::task::yield_now().await;
        }
        drop(one);
        // The last event is the RST of the linger time.
        server.shutdown_within(LONG).await;
    })
    .await;
}

#[tokio::test]
async fn closing_at_the_end_of_the_stream_sends_ack_and_fin_in_one_segment() {
    within(async {
        let (server, client) = stacks();
        let listener = server.listen(addr("10.0.0.1:80"), 1).unwrap();
        // As in most servers, a separate task serves the connection.
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let serve = async move { stream.read_to_end(&mut Vec::new()).await.unwrap() };
            tokio::spawn(serve).await.unwrap()
        });
        tokio::spawn(async move {
            let mut stream = client.connect(addr("10.0.0.1:80")).await.unwrap();
            // The FIN is therefore sent at the end of the handshake.
            stream.shutdown().await.unwrap();
            stream.read_to_end(&mut Vec::new()).await.unwrap();
        })
        .await
        .unwrap();
        served.await.unwrap();
        // The SYN-ACK, and the response to the FIN.
        assert_eq!(server.counters().tcp_out_segs, 2);
    })
    .await;
}

#[tokio::test]
async fn a_stack_that_drains_lets_its_streams_finish() {
    within(async {
        let (server, client) = stacks();
        let listener = server.listen(addr("10.0.0.1:80"), 4).unwrap();
        let (mut one, mut other) = connected(&server, &client).await;
        let udp = server.udp_bind(addr("10.0.0.1:53")).unwrap();
        let mut unheard = client.connect(addr("10.0.0.1:80")).await.unwrap();
        let (finish, start) = oneshot::channel::<()>();
        let handler = tokio::spawn(async move {
            start.await.unwrap();
            // The request arrives, and is answered, long after draining started.
            let mut request = [0; 7];
            one.read_exact(&mut request).await.unwrap();
            one.write_all(&pattern(60_000)).await.unwrap();
        });
        let drained = server.clone();
        let draining = tokio::spawn(async move { drained.drain(LONG).await });
        // Waits until draining has started.
        while server.listen(addr("10.0.0.1:81"), 1).is_ok() {
            tokio::task::yield_now().await;
        }
        let ended = listener.accept().await.unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::NotConnected);
        let refused = client.connect(addr("10.0.0.1:80")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let reset = unheard.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
        drop(unheard);
        let far = client.udp_bind(addr("10.0.0.2:53")).unwrap();
        udp.send_to(b"still", addr("10.0.0.2:53")).await.unwrap();
        assert_eq!(far.recv(&mut [0; 9]).await.unwrap(), 5);

        assert!(!draining.is_finished());
        finish.send(()).unwrap();
        other.write_all(b"request").await.unwrap();
        let mut answer = Vec::new();
        other.read_to_end(&mut answer).await.unwrap();
        assert!(answer == pattern(60_000));
        handler.await.unwrap();
        // The FIN of the peer is not awaited: the peer has received everything.
        draining.await.unwrap();
        assert_eq!(server.closed().await.kind(), ErrorKind::NotConnected);
        assert_eq!(udp.readable().await.unwrap_err().kind(), ErrorKind::NotConnected);
    })
    .await;
}

#[tokio::test]
async fn a_drain_ends_after_its_time_limit() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        // The client reads during the drain, because its device ends with the server.
        let reading = tokio::spawn(async move { other.read(&mut [0; 1]).await });
        server.drain(Duration::from_millis(20)).await;
        assert_eq!(one.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::NotConnected);
        // After a FIN, the peer would take truncated data for complete.
        let reset = reading.await.unwrap().unwrap_err();
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
        // Without streams the drain completes at once, whatever the time-out.
        client.drain(LONG).await;
    })
    .await;
}

#[tokio::test]
async fn a_drain_that_is_given_up_leaves_the_streams_alone() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let _ = tokio::time::timeout(Duration::ZERO, server.drain(LONG)).await.unwrap_err();
        other.write_all(b"still here").await.unwrap();
        one.read_exact(&mut [0; 10]).await.unwrap();
        assert_eq!(
            server.listen(addr("10.0.0.1:9"), 1).unwrap_err().kind(),
            ErrorKind::NotConnected
        );
        drop(one);
        server.drain(LONG).await;
    })
    .await;
}
