//! Exports the counters of stacks to Prometheus.

use std::collections::BTreeMap;
use std::fmt;

use airtcp_net::Stack;
use airtcp_stack::Counters;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::metrics::{put, put_by};

/// Counters that are gauges: they can decrease.
const GAUGES: [&str; 1] = ["TcpCurrEstab"];

/// The stacks of a device. Their counters are read and summed for each scrape.
#[derive(Debug)]
pub(super) struct Counted(pub(super) Vec<Stack>);

impl Collector for Counted {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        put_stacks(&mut encoder, &self.0)
    }
}

/// Encodes the sums of the stacks' counters.
pub(crate) fn put_stacks(encoder: &mut DescriptorEncoder<'_>, stacks: &[Stack]) -> fmt::Result {
    let counters: Counters = stacks.iter().map(Stack::counters).sum();
    for ((name, value), (_, meaning)) in counters.iter().zip(Counters::meanings()) {
        let help = meaning.trim_end_matches('.');
        if GAUGES.contains(&name) {
            put(encoder, name, help, &ConstGauge::new(value))?;
        } else {
            put(encoder, name, help, &ConstCounter::new(value))?;
        }
    }
    let device: airtcp_device::Counters = stacks.iter().map(Stack::device_counters).sum();
    for (name, help, value) in [
        ("device_rx_packets", "Packets read from the device", device.rx_packets),
        ("device_rx_bytes", "Bytes read from the device", device.rx_bytes),
        ("device_rx_errors", "Packets that could not be read from the device", device.rx_errors),
        ("device_tx_packets", "Packets written to the device", device.tx_packets),
        ("device_tx_bytes", "Bytes written to the device", device.tx_bytes),
        ("device_tx_dropped", "Packets dropped because the link was down", device.tx_dropped),
        ("device_tx_errors", "Packets that the device refused", device.tx_errors),
    ] {
        put(encoder, name, help, &ConstCounter::new(value))?;
    }
    let held: u64 = stacks.iter().map(|stack| stack.held().0).sum();
    let held = ConstGauge::new(held);
    put(encoder, "held_bytes", "Memory used by all sockets", &held)?;

    let mut states = BTreeMap::<_, u64>::new();
    for (_, state) in stacks.iter().flat_map(Stack::connections) {
        *states.entry(state.ss_name()).or_default() += 1;
    }
    let states = states.into_iter().map(|(state, count)| (state, ConstGauge::new(count)));
    put_by(encoder, "connections", "Connections, by their state in ss", "state", states)
}

/// Returns the metrics that a stack exports.
#[cfg(test)]
pub(crate) fn exported() -> String {
    crate::metrics::text(Counted(Vec::new())).unwrap()
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::net::SocketAddr;

    use airtcp_device::memory;
    use airtcp_stack::HostConfig;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::metrics::{OPENMETRICS, listen};

    async fn get(address: SocketAddr, target: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_scraper_reads_every_counter_by_its_name() {
        let (left, right) = memory::pair(1500, 64);
        let stack = |device, address: &str| {
            Stack::new(device, HostConfig::new([address.parse().unwrap()])).unwrap()
        };
        let (server, client) = (stack(left, "10.0.0.1/24"), stack(right, "10.0.0.2/24"));
        let listener = server.listen("10.0.0.1:7".parse().unwrap(), 16).unwrap();
        let counted = server.clone();
        let read = move || ready(Some(Counted(vec![counted.clone()])));
        let address = listen(([127, 0, 0, 1], 0).into(), read.clone()).await.unwrap();
        let mut stream = client.connect("10.0.0.1:7".parse().unwrap()).await.unwrap();
        let _accepted = listener.accept().await.unwrap();
        stream.write_all(b"hello").await.unwrap();

        let text = get(address, "/metrics").await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.contains(&format!("content-type: {OPENMETRICS}\r\n")), "{text}");
        for line in [
            "# TYPE airtcp_TcpPassiveOpens counter",
            "airtcp_TcpPassiveOpens_total 1",
            "airtcp_TcpExtTCPTimeouts_total 0",
            "# TYPE airtcp_TcpCurrEstab gauge",
            "airtcp_TcpCurrEstab 1",
            "airtcp_connections{state=\"ESTAB\"} 1",
            "# TYPE airtcp_held_bytes gauge",
            "# EOF",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        for (name, _) in server.counters().iter().filter(|(name, _)| !GAUGES.contains(name)) {
            assert!(text.contains(&format!("\nairtcp_{name}_total ")), "{name}");
        }
        assert!(get(address, "/").await.starts_with("HTTP/1.1 404 "));
        let mut greedy = TcpStream::connect(address).await.unwrap();
        let request = "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2);
        greedy.write_all(request.as_bytes()).await.unwrap();
        let mut answers = Vec::new();
        // The connection may end with a reset, since half of the data is not read.
        let _ = greedy.read_to_end(&mut answers).await;
        let answers = String::from_utf8(answers).unwrap();
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 1, "{answers}");
        let taken = listen(address, read).await.unwrap_err();
        assert!(taken.to_string().contains("--metrics 127.0.0.1:"), "{taken}");
    }
}
