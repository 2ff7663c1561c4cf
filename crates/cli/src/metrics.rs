//! `--metrics ADDR`: counters for Prometheus, over HTTP on a socket of the kernel's.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_stack::Stack;
use anyhow::Context;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};

/// How long a scraper may take for its request.
const PATIENCE: Duration = Duration::from_secs(10);

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts now, not how often.
const GAUGES: [&str; 1] = ["TcpCurrEstab"];

/// What a stack counts, looked up whenever it is asked for.
#[derive(Debug)]
struct Counted(Stack);

impl Collector for Counted {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, value) in self.0.counters().iter() {
            let help = format!("{name}, as nstat has it");
            if GAUGES.contains(&name) {
                put(&mut encoder, name, &help, &ConstGauge::new(value))?;
            } else {
                put(&mut encoder, name, &help, &ConstCounter::new(value))?;
            }
        }
        let device = self.0.device_counters();
        for (name, help, value) in [
            ("device_rx_packets", "Packets that the device gave", device.rx_packets),
            ("device_rx_bytes", "Bytes of them", device.rx_bytes),
            ("device_rx_errors", "Errors of reading from the device", device.rx_errors),
            ("device_tx_packets", "Packets that the device took", device.tx_packets),
            ("device_tx_bytes", "Bytes of them", device.tx_bytes),
            ("device_tx_dropped", "Packets dropped because the link was down", device.tx_dropped),
            ("device_tx_errors", "Packets that the device refused", device.tx_errors),
        ] {
            put(&mut encoder, name, help, &ConstCounter::new(value))?;
        }
        let held = ConstGauge::new(self.0.held().0);
        put(&mut encoder, "held_bytes", "What all sockets hold of the stack's memory", &held)?;

        let mut states = BTreeMap::<_, u64>::new();
        for (_, state) in self.0.connections() {
            *states.entry(state.ss_name()).or_default() += 1;
        }
        let gauge = ConstGauge::new(0_u64);
        let help = "Connections by state, as ss names it";
        let mut family =
            encoder.encode_descriptor("connections", help, None, gauge.metric_type())?;
        for (state, count) in states {
            ConstGauge::new(count).encode(family.encode_family(&[("state", state)])?)?;
        }
        Ok(())
    }
}

fn put(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

/// Serves `/metrics` of the stack, for as long as the runtime lives, and gives the address.
///
/// # Errors
/// The address cannot be listened on.
pub(crate) async fn listen(address: SocketAddr, stack: Stack) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("--metrics {address}"))?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(serve(stream, stack.clone()))),
                Err(error) => {
                    // Out of descriptors, for the most part: others have to go first.
                    tracing::warn!(%error, "--metrics");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    });
    Ok(address)
}

async fn serve(stream: TcpStream, stack: Stack) {
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(&request, &stack)));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "--metrics");
    }
}

fn answer(request: &Request<Incoming>, stack: &Stack) -> Response<Full<Bytes>> {
    let plain = |status: StatusCode, text: &'static str| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response
    };
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "only /metrics is here\n");
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are here\n");
    }
    let mut registry = Registry::with_prefix("airtcp");
    registry.register_collector(Box::new(Counted(stack.clone())));
    let mut text = String::new();
    if encode(&mut text, &registry).is_err() {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "it cannot be written\n");
    }
    let mut response = Response::new(Full::from(text));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(OPENMETRICS));
    response
}

#[cfg(test)]
mod tests {
    use airtcp_device::memory;
    use airtcp_stack::HostConfig;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

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
        let address = listen(([127, 0, 0, 1], 0).into(), server.clone()).await.unwrap();
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
        let taken = listen(address, server).await.unwrap_err();
        assert!(taken.to_string().contains("--metrics 127.0.0.1:"), "{taken}");
    }
}
