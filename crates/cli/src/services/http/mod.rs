//! Serves files over HTTP/1.1: GET, HEAD and PUT below one directory, and resumable uploads.
//!
//! A file of any length is read and written in chunks, at the pace of the peer. Single ranges are
//! served (RFC 9110 section 14). A PUT replaces the file in one step once all of it has arrived. A
//! HEAD of the target with the query `upload` returns the state of an interrupted upload, and a
//! PATCH resumes it, as in draft-ietf-httpbis-resumable-upload. Not here, because no test of a
//! transport needs it: DELETE, conditional requests other than If-Range, compression, TLS.

mod body;
mod digests;
mod get;
mod held;
mod listing;
mod path;
mod put;
mod range;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_RANGE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Stop;
use crate::client::quick::Network;
use crate::output::without_numbers;
use crate::upload;
pub(crate) use body::Body;
use digests::Digests;

/// Size of a read or write of a file, in bytes.
const CHUNK: usize = 128 * 1024;

/// How long a peer may take for the head of a request, which also limits idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the body of a request may be silent; long enough for an outage of a bad link.
const BODY_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a request waits for another writer of the same file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How much is read and discarded of a request that was answered already, in bytes, and for how
/// long.
const LINGER: u64 = 64 << 20;
const LINGER_TIMEOUT: Duration = Duration::from_secs(10);

/// The field in which a client describes the network, for transports that can use it.
pub(crate) static NETWORK: HeaderName = HeaderName::from_static("airtcp-network");

/// The served directory. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    root: Arc<Path>,
    is_read_only: bool,
    /// How long the body of a request may be silent.
    patience: Duration,
    /// The writers of incomplete uploads.
    writers: held::Writers,
    /// Permits hashing a completed upload, one at a time.
    appended: Arc<Semaphore>,
    /// Digests for GET and HEAD. They have turns of their own, so that uploads do not wait for
    /// them.
    digests: Digests,
    /// Receives the network description of the first request of a connection that has a valid one,
    /// if the transport uses it.
    network: Option<Arc<OnceLock<Network>>>,
}

impl Files {
    /// Serves the files below `directory`.
    ///
    /// # Errors
    /// The directory does not exist.
    pub(crate) fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            root: directory.canonicalize()?.into(),
            is_read_only: false,
            patience: BODY_TIMEOUT,
            writers: held::Writers::new(LOCK_TIMEOUT),
            appended: Arc::new(Semaphore::new(1)),
            digests: Digests::default(),
            network: None,
        })
    }

    /// As [`new`](Self::new), with GET and HEAD only.
    ///
    /// # Errors
    /// The directory does not exist.
    pub(crate) fn read_only(directory: &Path) -> io::Result<Self> {
        Ok(Self { is_read_only: true, ..Self::new(directory)? })
    }

    /// Returns a clone for one connection, which stores the client's description of the network in
    /// `network`.
    pub(crate) fn with_network(&self, network: Arc<OnceLock<Network>>) -> Self {
        Self { network: Some(network), ..self.clone() }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if let Some((first, value)) = self.network.as_ref().zip(request.headers().get(&NETWORK)) {
            // Store the parsed value: the field would keep the whole head of its request in memory.
            match Network::of_field(value) {
                Some(network) => {
                    first.get_or_init(|| network);
                }
                None => tracing::info!(?value, "not understood of the network"),
            }
        }
        let method = request.method().clone();
        let query = request.uri().query().unwrap_or_default();
        let is_upload = query.split('&').any(|part| part == upload::QUERY);
        let answered = match path::resolve(request.uri().path()) {
            Err(refusal) => Err(refusal),
            Ok(below) => match (&method, is_upload) {
                (&Method::GET | &Method::HEAD, _) if self.is_read_only => {
                    get::answer(self, &below, &request).await
                }
                _ if self.is_read_only => Err(Refusal::not_allowed("GET, HEAD")),
                (&Method::GET | &Method::HEAD, false) => get::answer(self, &below, &request).await,
                // RFC 9110 section 14.5: a partial PUT is rejected; stored as a whole, it would
                // lose the rest of the file.
                (&Method::PUT, false) if request.headers().contains_key(CONTENT_RANGE) => {
                    Err(Refusal::new(StatusCode::BAD_REQUEST, "a PUT replaces the whole file here"))
                }
                (&Method::PUT, false) => put::answer(self, &below, request).await,
                (&Method::GET | &Method::HEAD, true) => put::offset(self, &below).await,
                (&Method::PATCH, true) => put::append(self, &below, request).await,
                (_, true) => Err(Refusal::not_allowed("GET, HEAD, PATCH")),
                (_, false) => Err(Refusal::not_allowed("GET, HEAD, PUT")),
            },
        };
        let mut response = answered.unwrap_or_else(Refusal::into_response);
        if method == Method::HEAD {
            // Content-Length remains the same as for GET (RFC 9110 section 9.3.2).
            response.body_mut().clear();
        }
        response
    }

    /// Returns the canonical path of `below`, which must be inside the served directory.
    ///
    /// A symbolic link that is replaced between this check and its use escapes the check; a user
    /// who can do that can write to the directory anyway.
    async fn find(&self, below: &Path) -> Result<PathBuf, Refusal> {
        let found = tokio::fs::canonicalize(self.root.join(below)).await?;
        if found.starts_with(&self.root) {
            Ok(found)
        } else {
            Err(Refusal::new(StatusCode::FORBIDDEN, "outside of the served directory"))
        }
    }
}

/// Serves the requests of one connection.
///
/// # Errors
/// Those of the stream; the peer does not speak HTTP.
pub(crate) async fn serve<S>(files: &Files, stream: &mut S, mut stop: Stop) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let service = service_fn(|request| async move {
        let (method, target) = (request.method().clone(), request.uri().clone());
        let response = files.answer(request).await;
        tracing::info!(%method, %target, status = response.status().as_u16(), "http");
        Ok::<_, Infallible>(response)
    });
    let mut builder = http1::Builder::new();
    // A peer may close its direction after the request and still read the response.
    builder.half_close(true).timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let served = {
        let mut connection = pin!(builder.serve_connection(TokioIo::new(&mut *stream), service));
        tokio::select! {
            served = connection.as_mut() => served,
            () = stop.wait() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    tokio::select! {
        _ = timeout(LINGER_TIMEOUT, linger(stream)) => {}
        () = stop.wait() => {}
    }
    served.map_err(io::Error::other)
}

/// Closes in two steps (RFC 9112 section 9.6): closing with unread data sends a reset, which may
/// overtake the response.
async fn linger<S>(stream: &mut S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(LINGER), &mut tokio::io::sink()).await.map(drop)
}

/// The reason why a request is rejected.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    text: String,
    /// Further fields of the response.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Refusal {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), headers: Vec::new() }
    }

    /// 405, with the supported methods (RFC 9110 section 15.5.6).
    fn not_allowed(methods: &str) -> Self {
        let text = format!("only {methods} are here");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, text).with(&ALLOW, methods)
    }

    /// Adds a field to the response.
    fn with(mut self, name: &HeaderName, value: impl Display) -> Self {
        let value = HeaderValue::try_from(value.to_string());
        self.headers.extend(value.ok().map(|value| (name.clone(), value)));
        self
    }

    fn into_response(self) -> Response<Body> {
        let text = self.text + "\n";
        let mut response = text_response(self.status, "text/plain; charset=utf-8", text);
        response.headers_mut().extend(self.headers);
        response
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        let status = match error.kind() {
            Kind::NotFound | Kind::NotADirectory | Kind::InvalidFilename => StatusCode::NOT_FOUND,
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => StatusCode::FORBIDDEN,
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            Kind::IsADirectory | Kind::AlreadyExists => StatusCode::CONFLICT,
            Kind::WouldBlock => StatusCode::LOCKED,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::warn!(%error, "http");
        }
        Self::new(status, without_numbers(&error.to_string()))
    }
}

fn text_response(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let length = text.len();
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(hyper::header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(hyper::header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}
