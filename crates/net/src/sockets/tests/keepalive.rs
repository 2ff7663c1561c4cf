//! Keep-alive on streams, in real time.

use std::time::Duration;

use airtcp_device::memory;
use airtcp_stack::host::HostConfig;
use airtcp_stack::tcp::KeepAlive;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Stack;
use super::{connected, within};

#[tokio::test]
async fn keep_alive_probes_a_silent_peer_and_the_stream_continues() {
    within(async {
        let (left, right) = memory::pair(1500, 128);
        let start = |device, address: &str| {
            Stack::new(device, HostConfig::new([address.parse().unwrap()])).unwrap()
        };
        let (server, client) = (start(left, "10.0.0.1/24"), start(right, "10.0.0.2/24"));
        let (mut one, mut other) = connected(&server, &client).await;
        let settings = KeepAlive { idle: Duration::from_secs(1), ..KeepAlive::default() };
        one.set_keep_alive(Some(settings)).unwrap();
        // The stack is not called meanwhile: it wakes on its own.
        while server.counters().tcp_ext_keep_alive == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(client.counters().tcp_ext_keep_alive, 0, "nobody asked the other end to");
        one.set_keep_alive(None).unwrap();
        one.write_all(b"still there").await.unwrap();
        let mut heard = [0; 11];
        other.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"still there");
    })
    .await;
}
