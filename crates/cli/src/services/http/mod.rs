//! Files over HTTP/1.1: GET, HEAD and PUT below one directory.
//!
//! A file is read and written in pieces as the peer takes and gives them, whatever its length.
//! Ranges of one part are served (RFC 9110 section 14); a PUT replaces the file at once when all of
//! it is there. Not here, because no test of a transport needs it: DELETE, conditional requests,
//! compression, TLS.

mod body;
mod get;
mod listing;
mod path;
mod put;
mod range;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_RANGE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::Stop;
pub(crate) use body::Body;

/// Bytes of a file that are read or written at once.
const CHUNK: usize = 128 * 1024;

/// How long a peer may take for the head of a request, and an idle connection stays.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the body of a request may be silent: a bad link has its outages, but who is gone is not waited for.
const BODY_TIMEOUT: Duration = Duration::from_secs(300);

/// How much of a request that was answered already is read and thrown away, in bytes, and for how long.
const LINGER: u64 = 64 << 20;
const LINGER_TIMEOUT: Duration = Duration::from_secs(10);

/// The directory that is served. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    root: Arc<Path>,
    /// How long the body of a request may be silent.
    patience: Duration,
}

impl Files {
    /// Serves what is below `directory`.
    ///
    /// # Errors
    /// It is not there.
    pub(crate) fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self { root: directory.canonicalize()?.into(), patience: BODY_TIMEOUT })
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let method = request.method().clone();
        let answered = match path::resolve(request.uri().path()) {
            Err(refusal) => Err(refusal),
            Ok(below) => match method {
                Method::GET | Method::HEAD => get::answer(self, &below, &request).await,
                // RFC 9110 section 14.5: a part taken for the whole would be the end of the rest.
                Method::PUT if request.headers().contains_key(CONTENT_RANGE) => {
                    Err(Refusal::new(StatusCode::BAD_REQUEST, "a PUT replaces the whole file here"))
                }
                Method::PUT => put::answer(self, &below, request.into_body()).await,
                _ => Err(Refusal::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "only GET, HEAD and PUT are here",
                )),
            },
        };
        let mut response = answered.unwrap_or_else(Refusal::into_response);
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, PUT"));
        }
        if method == Method::HEAD {
            // Its length stays in the head, as if the method was GET (RFC 9110 section 9.3.2).
            response.body_mut().clear();
        }
        response
    }

    /// The place of `below` in the file system, links resolved.
    ///
    /// A link that is swapped between this and its use escapes the check: who may do that can
    /// write in the directory anyway.
    async fn find(&self, below: &Path) -> Result<PathBuf, Refusal> {
        let found = tokio::fs::canonicalize(self.root.join(below)).await?;
        if found.starts_with(&self.root) {
            Ok(found)
        } else {
            Err(Refusal::new(StatusCode::FORBIDDEN, "that is outside of what is served"))
        }
    }
}

/// Serves one connection, request after request.
///
/// # Errors
/// Those of the stream; a peer that does not speak HTTP.
pub(super) async fn serve<S>(files: &Files, stream: &mut S, mut stop: Stop) -> io::Result<()>
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
    // A peer may end its direction after the request and still read the answer.
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

/// Closes in two steps (RFC 9112 section 9.6): to close with data unread is a reset, which may overtake the answer that
/// says why it is not wanted.
async fn linger<S>(stream: &mut S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(LINGER), &mut tokio::io::sink()).await.map(drop)
}

/// Why a request is not served.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    text: String,
}

impl Refusal {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    fn into_response(self) -> Response<Body> {
        text_response(self.status, "text/plain; charset=utf-8", self.text + "\n")
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
            Kind::IsADirectory => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::warn!(%error, "http");
        }
        Self::new(status, error.to_string())
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
