//! The HTTP side of the page: `GET /`, and `GET /events` as server-sent events.

use std::convert::Infallible;
use std::future::ready;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use super::page::PAGE;

/// How long a request and its response may take, and how long a viewer may read nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum number of viewers.
pub(super) const VIEWERS: usize = 16;

/// The maximum number of connections; further ones wait. Connections other than viewers last for at
/// most [`PATIENCE`].
const CONNECTIONS: usize = 4 * VIEWERS;

/// The maximum of unsent data of a connection, besides the kernel's buffer, in bytes.
const UNSENT: usize = 64 << 10;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The page and its event stream.
#[derive(Debug)]
pub(super) struct Site {
    snapshots: watch::Receiver<Bytes>,
    /// Notified when a viewer connects.
    wanted: Arc<Notify>,
    viewers: Arc<Semaphore>,
}

impl Site {
    pub(super) fn new(snapshots: watch::Receiver<Bytes>, wanted: Arc<Notify>) -> Self {
        Self { snapshots, wanted, viewers: Arc::new(Semaphore::new(VIEWERS)) }
    }

    pub(super) async fn accept(self: Arc<Self>, listener: TcpListener) {
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        // The semaphore is never closed.
        while let Ok(place) = connections.clone().acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let site = self.clone();
                    tokio::spawn(async move {
                        site.serve(stream).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    // Usually the process has no free descriptors: wait until others are closed.
                    tracing::warn!(%error, "--live");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Answers one request.
    pub(super) async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let (moved, mut moves) = watch::channel(());
        let service =
            service_fn(|request| ready(Ok::<_, Infallible>(self.answer(&request, &moved))));
        let mut builder = http1::Builder::new();
        builder.keep_alive(false).max_buf_size(UNSENT);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        loop {
            tokio::select! {
                done = &mut connection => {
                    if let Err(error) = done {
                        tracing::debug!(%error, "--live");
                    }
                    return;
                }
                // No request arrived in time, or a viewer does not read.
                moved = timeout(PATIENCE, moves.changed()) => if moved.is_err() { return },
            }
        }
    }

    /// Answers a request. `moved` is notified whenever a viewer has room for a snapshot.
    fn answer(&self, request: &Request<Incoming>, moved: &watch::Sender<()>) -> Response<Body> {
        // DNS rebinding: an attacker's name that resolves to this address would give their pages
        // the same origin as this one.
        if !request.headers().get(HOST).is_some_and(is_address) {
            let text = "open this page by its IP address or as localhost\n";
            return plain(StatusCode::FORBIDDEN, text);
        }
        let path = request.uri().path();
        if !["/", "/events"].contains(&path) {
            return plain(StatusCode::NOT_FOUND, "only / and /events are available\n");
        }
        if request.method() != Method::GET {
            let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is supported\n");
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return refusal;
        }
        if path == "/" {
            let mut page = response(StatusCode::OK, "text/html; charset=utf-8", full(&PAGE.html));
            page.headers_mut().insert(CONTENT_SECURITY_POLICY, PAGE.policy.clone());
            return page;
        }
        let Ok(place) = self.viewers.clone().try_acquire_owned() else {
            let text = "sixteen viewers look at this page already: close one of them\n";
            return plain(StatusCode::SERVICE_UNAVAILABLE, text);
        };
        let events = self.events(place, moved.clone());
        response(StatusCode::OK, "text/event-stream", events)
    }

    /// Returns a stream of the snapshots from now on. It skips those taken while the viewer does
    /// not read.
    fn events(&self, place: OwnedSemaphorePermit, moved: watch::Sender<()>) -> Body {
        let mut snapshots = self.snapshots.clone();
        snapshots.mark_unchanged();
        self.wanted.notify_one();
        let begin = Bytes::from_static(b"retry: 1000\n\n");
        let begin = stream::once(ready(Ok(Frame::data(begin))));
        let all = stream::unfold((snapshots, place, moved), |mut viewer| async move {
            viewer.0.changed().await.ok()?;
            let event = viewer.0.borrow_and_update().clone();
            viewer.2.send_replace(());
            Some((Ok(Frame::data(event)), viewer))
        });
        StreamBody::new(begin.chain(all)).boxed_unsync()
    }
}

/// Returns whether a request names this machine by an IP address, or as `localhost`.
fn is_address(host: &HeaderValue) -> bool {
    let Ok(authority) = Authority::try_from(host.as_bytes()) else { return false };
    let name = authority.host();
    let ip = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || ip.parse::<IpAddr>().is_ok()
}

fn full(text: &'static str) -> Body {
    Full::from(text).boxed_unsync()
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    response(status, "text/plain; charset=utf-8", full(text))
}

fn response(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers: [(HeaderName, &'static str); 3] =
        [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
