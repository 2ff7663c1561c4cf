//! Packets and events that an observer of stacks sees.

use std::sync::{Arc, Mutex};

use airtcp_device::{Clock, Watch, memory};
use airtcp_stack::host::HostConfig;
use airtcp_types::{Crossing, Event, Instant, NodeId, Observer, Packet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Stack;
use super::{connected, pattern, within};

/// The observed numbers of packets in and out, and of events, for each of two nodes.
#[derive(Default)]
struct Seen([(u64, u64, u64); 2]);

impl Observer for Seen {
    fn on_packet(&mut self, _: Instant, node: NodeId, crossing: Crossing, _: &Packet) {
        let (arrived, left, _) = &mut self.0[node.0 as usize];
        *if crossing == Crossing::In { arrived } else { left } += 1;
    }

    fn on_event(&mut self, node: NodeId, event: &Event) {
        assert!(event.flow.is_some());
        self.0[node.0 as usize].2 += 1;
    }
}

#[tokio::test]
async fn an_observer_is_shown_every_packet_of_two_stacks() {
    within(async {
        let (clock, seen) = (Clock::start(), Arc::new(Mutex::new(Seen::default())));
        let watched = |device, address: &str, node| {
            let config = HostConfig::new([address.parse().unwrap()]);
            Stack::watched(device, config, clock, Watch::new(seen.clone(), NodeId(node))).unwrap()
        };
        let (left, right) = memory::pair(1500, 128);
        let server = watched(left, "10.0.0.1/24", 0);
        let client = watched(right, "10.0.0.2/24", 1);
        let (mut one, mut other) = connected(&server, &client).await;
        other.write_all(&pattern(100_000)).await.unwrap();
        other.shutdown().await.unwrap();
        one.read_to_end(&mut Vec::new()).await.unwrap();
        drop((one, other));
        client.shutdown().await;
        let of_client = client.device_counters();
        server.shutdown().await;
        let of_server = server.device_counters();
        let [(s_in, s_out, s_events), (c_in, c_out, c_events)] = seen.lock().unwrap().0;
        assert!(c_out >= s_in && s_out >= c_in && s_in > 60, "{s_in} {s_out} {c_in} {c_out}");
        assert!(s_in >= of_server.rx_packets && c_in >= of_client.rx_packets);
        assert!(s_events > 20 && c_events > 20, "{s_events} {c_events}");
    })
    .await;
}
