//! Two stacks connected by a pair of in-memory devices.

use std::sync::Arc;

use airtcp_device::memory;
use airtcp_net::{Stack, TcpListener};
use airtcp_stack::HostConfig;
use tokio::task::JoinSet;

use crate::impaired::{Impaired, Impairment};
use crate::{http, tls};

/// Two stacks on impaired devices, and a listener on the first one.
fn setup(loss: f64) -> (Stack, Stack, TcpListener) {
    let (left, right) = memory::pair(1500, 4096);
    let stack = |device, address: &str, seed| {
        let config = HostConfig::new([address.parse().expect("an address")]);
        let impairment = Impairment { loss, duplicate: loss / 2.0, reorder: loss, seed };
        Stack::new(Impaired::new(device, impairment, Arc::default()), config).expect("a stack")
    };
    let (server, client) = (stack(left, "10.0.0.1/24", 1), stack(right, "10.0.0.2/24", 2));
    let listener = server.listen("10.0.0.1:80".parse().expect("an address"), 64).expect("a port");
    (server, client, listener)
}

#[tokio::test]
async fn hyper_serves_and_fetches() {
    serve_and_fetch(0.0).await;
}

#[tokio::test]
async fn hyper_serves_and_fetches_over_bad_devices() {
    serve_and_fetch(0.01).await;
}

async fn serve_and_fetch(loss: f64) {
    let (server, client, listener) = setup(loss);
    let to = listener.local_addr().expect("its address");
    let serving = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(http::serve(stream));
        }
        connections.join_all().await
    });
    let clients: JoinSet<()> = (0..16)
        .map(|_| {
            let client = client.clone();
            async move { http::exchange(client.connect(to).await.expect("a connection")).await }
        })
        .collect();
    clients.join_all().await;
    // The server's connections are done or soon will be; the listener closes.
    server.drain(std::time::Duration::from_secs(3600)).await;
    let served = serving.await.expect("the server's task");
    assert_eq!(served.len(), 16);
    assert!(served.iter().all(Result::is_ok), "{served:?}");
}

#[tokio::test]
async fn rustls_echoes() {
    let (_server, client, listener) = setup(0.0);
    let (acceptor, connector) = tls::ends();
    let to = listener.local_addr().expect("its address");
    for bytes in [0, 1, 100_000, 4 << 20] {
        let serving = async {
            let (stream, _) = listener.accept().await.expect("a connection");
            tls::serve(acceptor.clone(), stream).await.expect("served to the end");
        };
        let asking = async {
            let stream = client.connect(to).await.expect("a connection");
            tls::exchange(connector.clone(), stream, bytes).await;
        };
        tokio::join!(serving, asking);
    }
}

/// hyper over rustls over this stack's stream, as in a web server.
#[tokio::test]
async fn hyper_over_rustls() {
    let (_server, client, listener) = setup(0.01);
    let (acceptor, connector) = tls::ends();
    let to = listener.local_addr().expect("its address");
    let serving = async {
        let (stream, _) = listener.accept().await.expect("a connection");
        let stream = acceptor.accept(stream).await.expect("a handshake");
        http::serve(stream).await.expect("served to the end");
    };
    let asking = async {
        let name = "airtcp.test".try_into().expect("a name");
        let stream = client.connect(to).await.expect("a connection");
        http::exchange(connector.connect(name, stream).await.expect("a handshake")).await;
    };
    tokio::join!(serving, asking);
}
