//! Readiness, non-blocking calls, and options of live connections.

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use airtcp_device::{Device, memory};
use airtcp_stack::tcp::Chunk;
use airtcp_types::SharedBytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, Interest, ReadBuf};
use tokio::task::JoinSet;

use super::{addr, connected, pattern, stacks, start, within};

/// The same code for two ends of tokio's streams and of airtcp's.
macro_rules! as_with_tokio {
    ($one:expr, $other:expr) => {{
        let (mut one, mut other) = ($one, $other);
        let mut buf = [0; 64];
        let kind = |result: std::io::Result<usize>| result.unwrap_err().kind();
        // There is nothing to read, and room to write.
        assert_eq!(kind(one.try_read(&mut buf)), ErrorKind::WouldBlock);
        let ready = one.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap();
        assert!(ready.is_writable() && !ready.is_readable(), "{ready:?}");
        one.writable().await.unwrap();
        assert_eq!(one.take_error().unwrap().map(|error| error.kind()), None);

        // Peeked data stays in the buffer.
        assert_eq!(other.try_write(b"hello ").unwrap(), 6);
        let parts = [b"wor".as_slice(), b"", b"ld"].map(IoSlice::new);
        assert_eq!(other.try_write_vectored(&parts).unwrap(), 5);
        one.readable().await.unwrap();
        while one.peek(&mut buf).await.unwrap() < 11 {}
        let mut again = ReadBuf::new(&mut buf[..4]);
        assert_eq!(poll_fn(|context| one.poll_peek(context, &mut again)).await.unwrap(), 4);
        assert_eq!(again.filled(), b"hell");
        let (mut first, mut second) = ([0; 8], [0; 8]);
        let mut parts = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(one.try_read_vectored(&mut parts).unwrap(), 11);
        assert_eq!((&first, &second[..3]), (b"hello wo", b"rld".as_slice()));
        assert_eq!(kind(one.try_read(&mut buf)), ErrorKind::WouldBlock);

        // Writes until the buffers are full, then waits until there is room again.
        let (block, mut sent, mut heard) = (pattern(60_000), 0, 0);
        for _ in 0..3 {
            loop {
                match other.try_write(&block) {
                    Ok(written) => sent += written,
                    Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
            let mut block = [0; 60_000];
            while heard < sent {
                one.readable().await.unwrap();
                match one.try_read(&mut block) {
                    Ok(read) => heard += read,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
            other.writable().await.unwrap();
        }

        other.set_nodelay(true).unwrap();
        assert!(other.nodelay().unwrap() && !one.nodelay().unwrap());
        other.set_ttl(9).unwrap();
        assert_eq!((other.ttl().unwrap(), one.ttl().unwrap()), (9, 64));

        // The end of the stream can be read repeatedly.
        other.flush().await.unwrap();
        for _ in 0..2 {
            other.shutdown().await.unwrap();
        }
        other.flush().await.unwrap();
        assert_eq!(one.peek(&mut buf).await.unwrap(), 0);
        assert_eq!((one.try_read(&mut buf).unwrap(), one.read(&mut buf).await.unwrap()), (0, 0));
        assert_eq!(kind(other.try_write(b"x")), ErrorKind::BrokenPipe);
        one.write_all(b"still").await.unwrap();
        let (half, _keep) = other.split();
        half.readable().await.unwrap();
        assert_eq!(half.try_read(&mut buf).unwrap(), 5);
    }};
}

#[tokio::test]
async fn streams_behave_as_those_of_tokio() {
    within(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tokios = tokio::net::TcpStream::connect(listener.local_addr().unwrap());
        let (accepted, connected_) = tokio::join!(listener.accept(), tokios);
        as_with_tokio!(accepted.unwrap().0, connected_.unwrap());

        let (server, client) = stacks();
        let (one, other) = connected(&server, &client).await;
        as_with_tokio!(one, other);
    })
    .await;
}

/// tokio's sockets report cached readiness; airtcp's report the current one.
#[tokio::test]
async fn ready_reports_the_current_readiness() {
    within(async {
        let (server, client) = stacks();
        let (one, mut other) = connected(&server, &client).await;
        let either = Interest::READABLE | Interest::WRITABLE;
        other.write_all(b"x").await.unwrap();
        one.readable().await.unwrap();
        assert!(one.ready(either).await.unwrap().is_readable());
        assert_eq!(one.try_read(&mut [0; 1]).unwrap(), 1);
        assert!(!one.ready(either).await.unwrap().is_readable());
        other.shutdown().await.unwrap();
        let ready = one.ready(Interest::READABLE).await.unwrap();
        assert!(ready.is_readable() && ready.is_read_closed() && !ready.is_write_closed());
        let ready = other.ready(Interest::WRITABLE).await.unwrap();
        assert!(ready.is_writable() && !ready.is_write_closed(), "a write says why at once");
        drop(one);
        let ready = other.ready(Interest::READABLE).await.unwrap();
        assert!(ready.is_read_closed());
        assert!(other.ready(Interest::WRITABLE).await.unwrap().is_write_closed());
    })
    .await;
}

#[tokio::test]
async fn every_task_that_waits_is_woken_and_one_of_them_gets_it() {
    within(async {
        let (server, client) = stacks();
        let (one, mut other) = connected(&server, &client).await;
        let one = Arc::new(one);
        let read = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..4 {
            let (one, read) = (one.clone(), read.clone());
            tasks.spawn(async move {
                loop {
                    one.readable().await.unwrap();
                    match one.try_read(&mut [0; 700]) {
                        Ok(0) => return,
                        Ok(some) => drop(read.fetch_add(some, Ordering::Relaxed)),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                    }
                }
            });
        }
        other.write_all(&pattern(200_000)).await.unwrap();
        other.shutdown().await.unwrap();
        tasks.join_all().await;
        assert_eq!(read.load(Ordering::Relaxed), 200_000);
    })
    .await;
}

/// Without a budget, a task whose calls are always ready would keep the driver off the only thread.
#[tokio::test]
async fn a_task_that_never_waits_lets_the_driver_work() {
    within(async {
        let (server, client) = stacks();
        let (one, mut other) = connected(&server, &client).await;
        let mut buf = [0; 8];
        other.write_all(b"x").await.unwrap();
        one.readable().await.unwrap();
        // Data in flight arrives while the available data is peeked at repeatedly.
        other.write_all(b"yz").await.unwrap();
        while one.peek(&mut buf).await.unwrap() < 3 {}
        other.write_all(b"more").await.unwrap();
        let mut seen = ReadBuf::new(&mut buf);
        while poll_fn(|context| one.poll_peek(context, &mut seen)).await.unwrap() < 7 {
            seen.clear();
        }
        let near = server.udp_bind(addr("10.0.0.1:9")).unwrap();
        let far = client.udp_bind(addr("10.0.0.2:9")).unwrap();
        far.send_to(b"x", addr("10.0.0.1:9")).await.unwrap();
        let either = Interest::READABLE | Interest::WRITABLE;
        while !near.ready(either).await.unwrap().is_readable() {}
    })
    .await;
}

/// Counts its wake-ups.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_task_in_readable_and_another_in_read_are_both_woken() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let counts: [Arc<Count>; 3] = Default::default();
        let wakers = counts.clone().map(Waker::from);
        let (read, write) = one.split();
        let mut waiting = Box::pin(read.readable());
        let mut both = Box::pin(write.ready(Interest::READABLE));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&wakers[0])).is_pending());
        assert!(both.as_mut().poll(&mut Context::from_waker(&wakers[1])).is_pending());
        drop((waiting, both));
        assert!(one.poll_read_ready(&mut Context::from_waker(&wakers[0])).is_pending());
        {
            let mut waiting = Box::pin(one.readable());
            assert!(waiting.as_mut().poll(&mut Context::from_waker(&wakers[1])).is_pending());
            // Of the polling tasks, only the last one is woken.
            let mut seen = [0; 1];
            let mut seen = ReadBuf::new(&mut seen);
            assert!(one.poll_peek(&mut Context::from_waker(&wakers[2]), &mut seen).is_pending());
            other.write_all(b"x").await.unwrap();
            waiting.await.unwrap();
        }
        let woken = counts.map(|count| count.0.load(Ordering::Relaxed));
        assert_eq!(woken[0], 0, "its place was taken");
        assert_eq!(woken[2], 1);
        let mut buf = [0; 1];
        let mut buf = ReadBuf::new(&mut buf);
        let mut context = Context::from_waker(Waker::noop());
        let polled = std::pin::Pin::new(&mut one).poll_read(&mut context, &mut buf);
        assert!(matches!(polled, Poll::Ready(Ok(()))));
        assert_eq!(buf.filled(), b"x");
    })
    .await;
}

/// Starts and drops `peek` and `readable` repeatedly beside a branch that is ready.
#[tokio::test]
async fn futures_dropped_early_lose_nothing() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let said = pattern(100_000);
        let expected = said.clone();
        let sending = tokio::spawn(async move {
            let mut left = &said[..];
            while !left.is_empty() {
                tokio::select! {
                    biased;
                    ready = other.writable() => {
                        ready.unwrap();
                        let written = other.try_write(&left[..left.len().min(3_000)]).unwrap();
                        left = &left[written..];
                    }
                    () = tokio::task::yield_now() => {}
                }
            }
            other.shutdown().await.unwrap();
            other
        });
        let (mut heard, mut buf) = (Vec::new(), [0; 2_000]);
        loop {
            tokio::select! {
                biased;
                seen = one.peek(&mut buf) => {
                    let seen = seen.unwrap();
                    if seen == 0 {
                        break;
                    }
                    heard.extend_from_slice(&buf[..seen]);
                    one.read_exact(&mut buf[..seen]).await.unwrap();
                }
                () = tokio::task::yield_now() => {}
            }
        }
        assert!(heard == expected);
        drop(sending.await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_reset_is_an_error_that_is_taken_once() {
    within(async {
        let (server, client) = stacks();
        let (one, other) = connected(&server, &client).await;
        let watching = async {
            let ready = other.ready(Interest::ERROR).await.unwrap();
            assert!(ready.is_error());
        };
        tokio::join!(biased; watching, async { one.abort() });
        let ready = other.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap();
        assert!(ready.is_readable() && ready.is_writable(), "so that every waiting task is woken");
        assert!(ready.is_read_closed() && ready.is_write_closed());
        let taken = other.take_error().unwrap().map(|error| error.kind());
        assert_eq!(taken, Some(ErrorKind::ConnectionReset));
        assert!(other.take_error().unwrap().is_none());
        let kind = |result: std::io::Result<usize>| result.unwrap_err().kind();
        assert_eq!(kind(other.try_read(&mut [0; 1])), ErrorKind::ConnectionReset);
        assert_eq!(kind(other.peek(&mut [0; 1]).await), ErrorKind::ConnectionReset);
        assert_eq!(kind(other.try_write(b"x")), ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_stack_ends_every_wait() {
    within(async {
        let (server, client) = stacks();
        let (one, _other) = connected(&server, &client).await;
        let udp = server.udp_bind(addr("10.0.0.1:9")).unwrap();
        let (one, udp) = (Arc::new(one), Arc::new(udp));
        let mut tasks = JoinSet::new();
        let stream = one.clone();
        tasks.spawn(async move { stream.readable().await.unwrap_err() });
        let stream = one.clone();
        tasks.spawn(async move { stream.ready(Interest::ERROR).await.unwrap_err() });
        let stream = one.clone();
        tasks.spawn(async move { stream.peek(&mut [0; 1]).await.unwrap_err() });
        let socket = udp.clone();
        tasks.spawn(async move { socket.readable().await.unwrap_err() });
        let socket = udp.clone();
        tasks.spawn(async move { socket.peek_from(&mut [0; 1]).await.map(drop).unwrap_err() });
        tokio::task::yield_now().await;
        server.shutdown_within(std::time::Duration::ZERO).await;
        for error in tasks.join_all().await {
            assert_eq!(error.kind(), ErrorKind::NotConnected, "{error:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn one_strategy_is_exchanged_on_a_live_connection() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let combination = || other.combination().unwrap().to_string();
        other.set_congestion("westwood").unwrap();
        assert_eq!(combination(), "rack/westwood");
        other.set_detection("le").unwrap();
        other.set_judge("dcr:timer").unwrap();
        assert_eq!((combination(), other.info().unwrap().combination), {
            let now = "le/westwood/dcr:timer".to_owned();
            (now.clone(), now)
        });
        other.set_judge("").unwrap();
        for (refused, kind) in [
            (other.set_detection("vega"), ErrorKind::InvalidInput),
            (other.set_congestion("fixed"), ErrorKind::InvalidInput),
            (other.set_judge("hack"), ErrorKind::Unsupported),
        ] {
            assert_eq!(refused.unwrap_err().kind(), kind);
        }
        assert_eq!(combination(), "le/westwood");
        let said = pattern(100_000);
        let mut heard = vec![0; said.len()];
        tokio::try_join!(other.write_all(&said), one.read_exact(&mut heard)).unwrap();
        assert!(heard == said);
        one.abort();
        let reset = other.read(&mut heard).await.unwrap_err();
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
        let late = other.set_congestion("reno").unwrap_err();
        assert_eq!(late.kind(), ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test]
async fn a_listener_is_polled() {
    within(async {
        let (server, client) = stacks();
        let listener = server.listen(addr("10.0.0.1:9"), 4).unwrap();
        let nobody = listener.poll_accept(&mut Context::from_waker(Waker::noop()));
        assert!(nobody.is_pending());
        let accepting = poll_fn(|context| listener.poll_accept(context));
        let (accepted, stream) = tokio::join!(accepting, client.connect(addr("10.0.0.1:9")));
        assert_eq!(accepted.unwrap().1, stream.unwrap().local_addr().unwrap());
        let accepting = async { poll_fn(|context| listener.poll_accept(context)).await };
        let (ended, ()) = tokio::join!(biased; accepting, server.shutdown());
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::NotConnected);
    })
    .await;
}

/// The same code for tokio's UDP sockets and for airtcp's.
macro_rules! datagrams_as_with_tokio {
    ($server:expr, $client:expr, $stranger:expr) => {{
        let (server, client, stranger) = ($server, $client, $stranger);
        let (at, from) = (server.local_addr().unwrap(), client.local_addr().unwrap());
        let mut buf = [0; 64];
        assert_eq!(server.try_recv_from(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(client.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
        assert!(client.send(b"nobody").await.is_err());
        client.connect(at).await.unwrap();
        assert_eq!(client.peer_addr().unwrap(), at);
        client.writable().await.unwrap();
        client.set_ttl(9).unwrap();
        assert_eq!((client.ttl().unwrap(), server.ttl().unwrap()), (9, 64));
        assert_eq!(client.set_ttl(256).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(client.send(b"one").await.unwrap(), 3);
        assert_eq!(client.try_send(b"two").unwrap(), 3);
        server.readable().await.unwrap();
        assert_eq!(server.peek_from(&mut buf[..2]).await.unwrap(), (2, from));
        assert_eq!(server.recv_from(&mut buf).await.unwrap(), (3, from));
        assert_eq!(&buf[..3], b"one");
        assert_eq!(server.recv(&mut buf).await.unwrap(), 3);
        assert_eq!(&buf[..3], b"two");
        // A connected socket receives only from its peer.
        stranger.send_to(b"not heard", from).await.unwrap();
        assert_eq!(server.try_send_to(b"heard", from).unwrap(), 5);
        let ready = client.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap();
        assert!(ready.is_writable());
        let mut heard = ReadBuf::new(&mut buf);
        assert_eq!(
            poll_fn(|context| client.poll_recv_from(context, &mut heard)).await.unwrap(),
            at
        );
        assert_eq!(heard.filled(), b"heard");
        assert_eq!(client.try_recv(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
    }};
}

#[tokio::test]
async fn datagram_sockets_behave_as_those_of_tokio() {
    within(async {
        let tokios = || async { tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap() };
        datagrams_as_with_tokio!(tokios().await, tokios().await, tokios().await);

        let (server, client) = stacks();
        let bind = |at| server.udp_bind(addr(at)).unwrap();
        let far = client.udp_bind(addr("10.0.0.2:0")).unwrap();
        datagrams_as_with_tokio!(bind("10.0.0.1:0"), far, bind("10.0.0.1:0"));
        let v4 = bind("10.0.0.1:0");
        for nowhere in ["[fd00::2]:9", "10.0.0.255:9", "10.0.0.2:0"] {
            let refused = v4.connect(addr(nowhere)).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::NetworkUnreachable);
        }
    })
    .await;
}

#[tokio::test]
async fn a_closed_udp_port_is_reported_once_to_the_connected_socket() {
    within(async {
        let (server, client) = stacks();
        let nobody = addr("10.0.0.1:9");
        let socket = client.udp_bind(addr("10.0.0.2:0")).unwrap();
        socket.connect(nobody).await.unwrap();
        socket.send(b"lost").await.unwrap();
        let refused = socket.recv(&mut [0; 1]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(socket.try_recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(socket.take_error().unwrap().is_none());
        socket.send(b"lost").await.unwrap();
        socket.readable().await.unwrap();
        let taken = socket.take_error().unwrap().map(|error| error.kind());
        assert_eq!(taken, Some(ErrorKind::ConnectionRefused));
        socket.send(b"lost").await.unwrap();
        socket.readable().await.unwrap();
        let refused = socket.peek_from(&mut [0; 1]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        // Now a socket is bound there.
        let there = server.udp_bind(nobody).unwrap();
        socket.send(b"found").await.unwrap();
        assert_eq!(there.recv(&mut [0; 9]).await.unwrap(), 5);
    })
    .await;
}

#[tokio::test]
async fn a_full_queue_of_datagrams_would_block_and_drains() {
    within(async {
        let (device, mut peer) = memory::pair(1500, 4);
        let client = start(device, ["10.0.0.2/24", "fd00::2/64"]);
        let socket = client.udp_bind(addr("10.0.0.2:0")).unwrap();
        let (mut sent, mut arrived) = (0, Vec::new());
        let full = loop {
            match socket.try_send_to(b"datagram", addr("10.0.0.1:7")) {
                Ok(_) => sent += 1,
                Err(error) => break error,
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        while arrived.len() < sent {
            peer.recv(&mut arrived, 3).await.unwrap();
        }
        socket.writable().await.unwrap();
        socket.try_send_to(b"datagram", addr("10.0.0.1:7")).unwrap();
    })
    .await;
}

#[tokio::test]
async fn chunks_are_the_bytes_that_reading_would_give() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let sent = pattern(3_000_000);
        let data = sent.clone();
        let writer = tokio::spawn(async move {
            other.write_all(&data).await.unwrap();
            other.shutdown().await.unwrap();
            let mut answer = Vec::new();
            other.read_to_end(&mut answer).await.unwrap();
            answer
        });
        let (mut read, mut chunk, mut few) = (Vec::new(), Chunk::default(), [0; 1000]);
        let (mut half, mut writing) = one.split();
        while half.read_chunk(&mut chunk).await.unwrap() > 0 {
            assert!(chunk.len() <= 65_536);
            read.extend_from_slice(&chunk);
            let peeked = half.peek(&mut few).await.unwrap();
            let seen = few;
            let length = half.read(&mut few).await.unwrap();
            assert!(length >= peeked && few[..peeked] == seen[..peeked]);
            read.extend_from_slice(&few[..length]);
        }
        assert!(read == sent && chunk.is_empty());
        writing.write_all(b"done").await.unwrap();
        drop(one);
        assert_eq!(writer.await.unwrap(), b"done");
    })
    .await;
}

#[tokio::test]
async fn a_chunk_that_is_waited_for_in_vain_loses_nothing() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let mut chunk = Chunk::default();
        tokio::select! {
            biased;
            read = one.read_chunk(&mut chunk) => panic!("{read:?}"),
            () = tokio::task::yield_now() => {}
        }
        other.write_all(b"late").await.unwrap();
        assert_eq!(one.read_chunk(&mut chunk).await.unwrap(), 4);
        assert_eq!(chunk[..], *b"late");
        other.abort();
        assert_eq!(
            one.read_chunk(&mut chunk).await.unwrap_err().kind(),
            ErrorKind::ConnectionReset
        );
        drop((server, one));
    })
    .await;
}

#[tokio::test]
async fn chunks_that_are_written_arrive_among_the_bytes_that_are() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let sent = pattern(3_000_000);
        let memory = Arc::new(sent.clone());
        let expected = sent.clone();
        let mut chunk = SharedBytes::new(&memory, 0..2_000_000);
        let writer = tokio::spawn(async move {
            let mut calls = 0;
            while !chunk.is_empty() {
                let before = chunk.len();
                let written = other.write_chunk(&mut chunk).await.unwrap();
                assert!(written > 0 && chunk.len() == before - written);
                calls += 1;
            }
            assert!(calls > 1, "the send buffer takes no more than its size");
            other.write_all(&sent[2_000_000..]).await.unwrap();
            other.shutdown().await.unwrap();
            other
        });
        let mut read = Vec::new();
        one.read_to_end(&mut read).await.unwrap();
        assert!(read == expected);
        let other = writer.await.unwrap();
        drop((one, other));
        client.drain(std::time::Duration::from_secs(5)).await;
        assert_eq!(Arc::strong_count(&memory), 1, "nobody holds what was acknowledged");
    })
    .await;
}

#[tokio::test]
async fn a_chunk_without_room_is_not_lost_and_an_error_is_returned() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        let sent = pattern(8_000_000);
        let mut chunk = SharedBytes::new(&Arc::new(sent.clone()), 0..sent.len());
        // The data is not read: in the end the buffers of both ends are full.
        let until = std::time::Duration::from_millis(200);
        while let Ok(written) = tokio::time::timeout(until, other.write_chunk(&mut chunk)).await {
            written.unwrap();
        }
        let written = sent.len() - chunk.len();
        assert!(written > 0 && chunk[..] == sent[written..]);
        let rest = async {
            while !chunk.is_empty() {
                other.write_chunk(&mut chunk).await.unwrap();
            }
        };
        let mut read = vec![0; sent.len()];
        let (read_all, ()) = tokio::join!(one.read_exact(&mut read), rest);
        assert_eq!((read_all.unwrap(), read == sent), (sent.len(), true));
        one.abort();
        let mut chunk = SharedBytes::new(&Arc::new(sent), 0..8_000_000);
        let error = loop {
            match other.write_chunk(&mut chunk).await {
                Ok(written) => assert!(written > 0),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        drop((server, client));
    })
    .await;
}
