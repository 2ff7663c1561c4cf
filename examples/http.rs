//! hyper over airtcp's sockets: a server and a client on two stacks, connected in memory.
//!
//! `cargo run --example http` makes the client fetch a page, and needs no privileges.
//! `cargo run --example http tun0 10.0.0.2/24` serves on a TUN device until Ctrl-C, once the kernel
//! has an address there: `ip addr add 10.0.0.1/24 dev tun0 && ip link set tun0 up`.
use std::{convert::Infallible, error::Error, time::Duration};

use airtcp::device::{Tun, memory};
use airtcp::{HostConfig, Stack, TcpListener};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;

/// Accepts connections and serves each in its own task, until the stack drains.
async fn serve(listener: TcpListener) {
    while let Ok((stream, peer)) = listener.accept().await {
        let answer = move |request: Request<Incoming>| async move {
            let text = format!("{peer} asked for {}\n", request.uri());
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(text))))
        };
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service_fn(answer));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                eprintln!("{peer}: {error}");
            }
        });
    }
}

async fn fetch(stack: &Stack, path: &str) -> Result<String, Box<dyn Error>> {
    let stream = stack.connect_timeout("10.0.0.1:80".parse()?, Duration::from_secs(10)).await?;
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
    tokio::spawn(connection);
    let request = Request::get(path).header("host", "10.0.0.1").body(Empty::<Bytes>::new())?;
    let body = sender.send_request(request).await?.into_body().collect().await?;
    Ok(String::from_utf8(body.to_bytes().into())?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    if let (Some(name), Some(address)) = (arguments.next(), arguments.next()) {
        let stack = Stack::new(Tun::open(&name)?, HostConfig::new([address.parse()?]))?;
        let serving = tokio::spawn(serve(stack.listen("0.0.0.0:80".parse()?, 128)?));
        tokio::signal::ctrl_c().await?;
        // Let open connections finish.
        stack.drain(Duration::from_secs(10)).await;
        return Ok(serving.await?);
    }
    let (left, right) = memory::pair(1500, 256);
    let server = Stack::new(left, HostConfig::new(["10.0.0.1/24".parse()?]))?;
    let client = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse()?]))?;
    let serving = tokio::spawn(serve(server.listen("10.0.0.1:80".parse()?, 128)?));
    print!("{}", fetch(&client, "/a/page").await?);
    server.drain(Duration::from_secs(10)).await;
    Ok(serving.await?)
}
