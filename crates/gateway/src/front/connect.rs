//! A proxy for HTTP's CONNECT (RFC 9110 section 9.3.6).

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::BASE64;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::clients::GREETING;
use super::{Clients, Login};
use crate::{Carried, Destination, Near, Refusal, splice};

/// The upgrade of a client whose CONNECT succeeded, and its connection through the gateway.
type Connected = Mutex<Option<(OnUpgrade, Carried)>>;

type Answer = Response<Full<Bytes>>;

/// Serves CONNECT to the clients of `listener`. The far gateway resolves names.
///
/// Other methods are answered with 405, and refusals with 403, 502, 503 or 504 and a line of text.
/// With a `login`, a client must authenticate by the Basic scheme.
pub async fn serve_http_connect(
    listener: TcpListener,
    near: Near,
    clients: Clients,
    login: Option<Login>,
) -> Infallible {
    let login = login.map(Arc::new);
    let serve = |stream, peer| {
        let (near, login) = (near.clone(), login.clone());
        async move {
            if let Err(error) = serve(stream, peer, &near, login.as_deref()).await {
                tracing::debug!(%peer, %error, "HTTP CONNECT");
            }
        }
    };
    clients.accept(listener, serve).await
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    near: &Near,
    login: Option<&Login>,
) -> hyper::Result<()> {
    let connected = Connected::default();
    let service = service_fn(async |request| {
        Ok::<_, Infallible>(answer(request, peer, near, login, &connected).await)
    });
    let mut server = http1::Builder::new();
    // A client may close its sending side right after its request.
    server.half_close(true).timer(TokioTimer::new()).header_read_timeout(GREETING);
    server.serve_connection(TokioIo::new(stream), service).with_upgrades().await?;
    let connected = connected.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some((upgrade, mut far)) = connected else { return Ok(()) };
    let Ok(client) = upgrade.await?.downcast::<TokioIo<TcpStream>>() else { return Ok(()) };
    // Data that the client sent after its request, without waiting for the answer.
    if far.write_all(&client.read_buf).await.is_ok() {
        splice(client.io.into_inner(), far).await;
    }
    Ok(())
}

async fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    near: &Near,
    login: Option<&Login>,
    connected: &Connected,
) -> Answer {
    if request.method() != Method::CONNECT {
        let text = "only CONNECT is supported; use a tunnel, for example curl --proxytunnel";
        return with(say(StatusCode::METHOD_NOT_ALLOWED, text), ALLOW, "CONNECT");
    }
    if login.is_some_and(|login| !is_given(login, &request)) {
        let answer = say(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "user and password are needed");
        return with(answer, PROXY_AUTHENTICATE, "Basic realm=\"airtcp\"");
    }
    let to: Option<Destination> =
        request.uri().authority().and_then(|authority| authority.as_str().parse().ok());
    let Some(to) = to else {
        return say(StatusCode::BAD_REQUEST, "write CONNECT host:port");
    };
    match near.connect(&to).await {
        Ok(far) => {
            tracing::debug!(%peer, %to, "HTTP CONNECT");
            let carried = (hyper::upgrade::on(request), far);
            *connected.lock().unwrap_or_else(PoisonError::into_inner) = Some(carried);
            Response::default()
        }
        Err(refusal) => {
            tracing::info!(%peer, %to, %refusal, "HTTP CONNECT");
            say(status(&refusal), &format!("{to}: {refusal}"))
        }
    }
}

/// Whether the request contains the login (RFC 7617 section 2).
fn is_given(login: &Login, request: &Request<Incoming>) -> bool {
    let given = request.headers().get(PROXY_AUTHORIZATION).map(HeaderValue::as_bytes);
    let basic = given.and_then(|given| given.split_at_checked(6));
    let encoded = basic.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"basic "));
    let pair = encoded.and_then(|(_, encoded)| BASE64.decode(encoded.trim_ascii()).ok());
    let pair = pair.as_deref().unwrap_or_default();
    let colon = pair.iter().position(|byte| *byte == b':');
    colon.is_some_and(|colon| login.is(&pair[..colon], &pair[colon + 1..]))
}

/// The status for a refusal (RFC 9110 section 15).
fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::NotAllowed => StatusCode::FORBIDDEN,
        Refusal::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        Refusal::Busy | Refusal::NoGateway(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    }
}

fn say(status: StatusCode, text: &str) -> Answer {
    let mut answer = Response::new(Full::from(format!("{text}\n")));
    *answer.status_mut() = status;
    answer
}

fn with(mut answer: Answer, name: hyper::header::HeaderName, value: &'static str) -> Answer {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
    answer
}
