//! `--metrics ADDR`: serves counters to Prometheus by HTTP, over the kernel's TCP.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::output;

/// How long a scraper may take for its request and the response. Others wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Encodes a metric without labels.
pub(crate) fn put(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

/// Encodes a metric for each value of the label `by`.
pub(crate) fn put_by<M: EncodeMetric + TypedMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    by: &str,
    metrics: impl IntoIterator<Item = (&'static str, M)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, M::TYPE)?;
    for (value, metric) in metrics {
        metric.encode(family.encode_family(&[(by, value)])?)?;
    }
    Ok(())
}

/// Returns the metrics in the format of a scraper.
///
/// # Errors
/// The collector fails to encode a metric.
pub(crate) fn text(collector: impl Collector) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("airtcp");
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// Serves `/metrics` until the runtime ends, and returns the address. Each request calls `read`,
/// which returns the counters, or `None` once their owner has ended.
///
/// # Errors
/// The address cannot be bound.
pub(crate) async fn listen<C, F>(
    address: SocketAddr,
    read: impl Fn() -> F + Send + Sync + 'static,
) -> anyhow::Result<SocketAddr>
where
    C: Collector,
    F: Future<Output = Option<C>> + Send + 'static,
{
    let listener = TcpListener::bind(address).await;
    let listener = listener
        .with_context(|| format!("--metrics {address}"))
        .map_err(|error| output::if_privileged(error, address.port()))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "metrics");
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                // One request at a time: each response walks and copies all counters.
                Ok((stream, _)) => drop(timeout(PATIENCE, serve(stream, &read)).await),
                Err(error) => {
                    // Usually the process has no free descriptors: wait until others are closed.
                    tracing::warn!(%error, "--metrics");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    });
    Ok(address)
}

/// Answers one request.
async fn serve<C: Collector, F>(stream: TcpStream, read: &(impl Fn() -> F + Sync))
where
    F: Future<Output = Option<C>> + Send,
{
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(&request, read).await));
    let mut builder = http1::Builder::new();
    builder.keep_alive(false);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "--metrics");
    }
}

async fn answer<C: Collector, F>(
    request: &Request<Incoming>,
    read: &(impl Fn() -> F + Sync),
) -> Response<Full<Bytes>>
where
    F: Future<Output = Option<C>> + Send,
{
    let plain = |status: StatusCode, text: &'static str| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response
    };
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "only /metrics is available\n");
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are supported\n");
    }
    let Some(collector) = read().await else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "the process is stopping\n");
    };
    let Ok(text) = text(collector) else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be encoded\n");
    };
    let mut response = Response::new(Full::from(text));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(OPENMETRICS));
    response
}
