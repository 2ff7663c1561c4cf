//! Stream options that delay data and ACKs.

use airtcp_device::memory;
use airtcp_stack::host::HostConfig;
use airtcp_types::ByteCount;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Stack;
use super::{connected, pattern, stacks, within};

#[tokio::test]
async fn a_corked_stream_sends_full_segments_and_the_rest_when_it_is_uncorked() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        // Without the cork, each write would be sent at once.
        one.set_nodelay(true).unwrap();
        one.set_cork(true).unwrap();
        assert!(one.cork().unwrap());
        for piece in pattern(100_000).chunks(100) {
            one.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        one.set_cork(false).unwrap();
        assert!(!one.cork().unwrap());
        let mut heard = vec![0; 100_000];
        other.read_exact(&mut heard).await.unwrap();
        assert!(heard == pattern(100_000));
        let info = one.info().unwrap();
        // Only the last of a thousand writes needed a short segment; a time-out may have sent
        // another one.
        assert!(info.data_segs_out < 100, "{info}");
    })
    .await;
}

#[tokio::test]
async fn a_writer_waits_while_as_much_as_it_chose_was_not_sent() {
    within(async {
        let (left, right) = memory::pair(1500, 128);
        let start = |device, address: &str| {
            let mut config = HostConfig::new([address.parse().unwrap()]);
            config.tcp.receive_buffer = ByteCount::from_kib(64);
            Stack::new(device, config).unwrap()
        };
        let (server, client) = (start(left, "10.0.0.1/24"), start(right, "10.0.0.2/24"));
        let (one, mut other) = connected(&server, &client).await;
        one.set_not_sent_low_water(Some(2000)).unwrap();
        let (read, mut write) = one.into_split();
        let len = 1 << 20;
        let writer = tokio::spawn(async move {
            write.write_all(&pattern(len)).await.unwrap();
            write.shutdown().await.unwrap();
        });
        // The data is not read: the window fills, and written data waits.
        while read.info().unwrap().rwnd_limited.is_zero() {
            tokio::task::yield_now().await;
        }
        let info = read.info().unwrap();
        let not_sent = info.send_q - info.unacked;
        assert!((1..=2000).contains(&not_sent.0), "{not_sent} in {info}");
        let mut heard = Vec::new();
        other.read_to_end(&mut heard).await.unwrap();
        assert!(heard == pattern(len));
        writer.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn set_quick_ack_sends_the_ack_at_once() {
    within(async {
        let (server, client) = stacks();
        let (mut one, mut other) = connected(&server, &client).await;
        one.set_quick_ack(false).unwrap();
        assert!(!one.quick_ack().unwrap());
        other.write_all(b"a question").await.unwrap();
        one.read_exact(&mut [0; 10]).await.unwrap();
        one.set_quick_ack(true).unwrap();
        assert!(one.quick_ack().unwrap());
        while other.info().unwrap().unacked > ByteCount::ZERO {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
