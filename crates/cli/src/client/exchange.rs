//! One HTTP request over one connection.

use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, anyhow};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, HOST, HeaderMap, HeaderName, LOCATION, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::heard::Heard;
use super::url::Url;

/// The maximum number of redirections.
pub(super) const MOST_REDIRECTS: usize = 10;

/// How long a server may be silent; long enough for an outage of a bad link.
pub(super) const SILENCE: Duration = Duration::from_secs(300);

/// The maximum number of bytes that are read of the body of an error response.
const LONGEST: usize = 4096;

/// Returns a request for `url` that asks the server to close the connection.
///
/// # Errors
/// None in practice: a parsed URL is valid in a request.
pub(super) fn request<B>(method: Method, url: &Url, body: B) -> anyhow::Result<Request<B>> {
    let agent = concat!("airtcp/", env!("CARGO_PKG_VERSION"));
    Ok(Request::builder()
        .method(method)
        .uri(url.target())
        .header(HOST, url.authority())
        .header(USER_AGENT, agent)
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close")
        .body(body)?)
}

/// Sends a request, has `read` read the response, and returns the result with the connection. If
/// `silence` is set, it limits the time until the head of the response.
///
/// # Errors
/// The connection breaks, no response arrives in time, the peer does not speak HTTP, and the errors
/// of `read`.
pub(super) async fn exchange<S, B, T>(
    stream: S,
    request: Request<B>,
    silence: Option<Duration>,
    read: impl AsyncFnOnce(Response<Incoming>) -> anyhow::Result<T>,
) -> anyhow::Result<(T, S)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin + 'static,
{
    let (mut sender, mut connection) =
        http1::handshake(TokioIo::new(Heard(stream))).await.context("HTTP")?;
    let outcome = {
        let mut talk = pin!(async {
            let answer = sender.send_request(request);
            let response = match silence {
                Some(silence) => timeout(silence, answer).await.map_err(|_| late(silence))?,
                None => answer.await,
            };
            read(response.map_err(broken)?).await
        });
        let mut is_open = true;
        loop {
            tokio::select! {
                outcome = &mut talk => break outcome,
                // `read` reports an error of the connection.
                _ = &mut connection, if is_open => is_open = false,
            }
        }
    };
    Ok((outcome?, connection.into_parts().io.into_inner().0))
}

fn late(silence: Duration) -> anyhow::Error {
    let seconds = silence.as_secs_f64();
    anyhow!(
        "no answer for {seconds} s: the server may be computing the SHA-256 of the file; try again later"
    )
}

/// Converts an error of hyper, with its causes, to one that says that the transfer was interrupted.
pub(super) fn broken(error: hyper::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("the transfer was interrupted")
}

/// Returns the target of a redirection, if `response` is one.
///
/// # Errors
/// The redirection has no usable Location.
pub(super) fn redirect<B>(response: &Response<B>, from: &Url) -> anyhow::Result<Option<Url>> {
    let leads = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    if !leads.contains(&response.status()) {
        return Ok(None);
    }
    let location = text(response.headers(), &LOCATION)
        .with_context(|| format!("{from} answers {} without a Location", response.status()))?;
    let to =
        from.join(location).map_err(|error| anyhow!("{from} redirects to {location}: {error}"))?;
    tracing::info!(%from, %to, "redirected");
    Ok(Some(to))
}

/// Returns a header field as text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Converts an error response to an error, with the first line of its body.
pub(super) async fn refusal(response: Response<Incoming>, url: &Url) -> anyhow::Error {
    let status = response.status();
    let body = Limited::new(response.into_body(), LONGEST).collect().await;
    let bytes = body.map(|body| body.to_bytes()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or_default().trim();
    // HTML is for browsers.
    match line.is_empty() || line.starts_with('<') {
        true => anyhow!("{url}: {status}"),
        false => anyhow!("{url}: {status}: {line}"),
    }
}
