//! A hyper server and a hyper client over any stream.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::header::HOST;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, http};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

/// Empty bodies, and bodies of a byte, of a few segments, and of more than a window.
const LENGTHS: [usize; 4] = [0, 1, 20_000, 3 << 20];

/// Serves the requests of a connection: `/N` returns N bytes, any other path echoes the body.
pub(crate) async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin) -> hyper::Result<()> {
    server::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await
}

async fn answer(
    request: Request<Incoming>,
) -> Result<Response<Either<Full<Bytes>, Incoming>>, Infallible> {
    Ok(Response::new(match request.uri().path()[1..].parse() {
        Ok(length) => Either::Left(Full::new(body(length))),
        Err(_) => Either::Right(request.into_body()),
    }))
}

/// Fetches and posts bodies of all lengths over one connection.
pub(crate) async fn exchange(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await.expect("a client");
    let driving = tokio::spawn(connection);
    for length in LENGTHS {
        let expected = body(length);
        let fetch = Request::get(format!("/{length}"));
        assert!(ask(&mut sender, fetch, Bytes::new()).await == expected, "{length} fetched");
        let post = Request::post("/echo");
        assert!(ask(&mut sender, post, expected.clone()).await == expected, "{length} echoed");
    }
    drop(sender);
    driving.await.expect("no panic").expect("the connection ends in order");
}

async fn ask(
    sender: &mut client::SendRequest<Full<Bytes>>,
    request: http::request::Builder,
    body: Bytes,
) -> Bytes {
    let request = request.header(HOST, "airtcp.test").body(Full::new(body)).expect("a request");
    let response = sender.send_request(request).await.expect("a response");
    assert_eq!(response.status(), StatusCode::OK);
    response.into_body().collect().await.expect("the whole body").to_bytes()
}

fn body(length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    airtcp_testbed::Pattern::new(7).fill(&mut bytes);
    bytes.into()
}
