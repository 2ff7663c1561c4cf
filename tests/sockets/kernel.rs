//! A stack behind a TUN device, and the Linux kernel's sockets.

use std::net::SocketAddr;

use airtcp_device::{Tun, TunFile};
use airtcp_net::Stack;
use airtcp_stack::HostConfig;
use airtcp_testbed::{Namespace, TestbedError, or_skip, peer, tun_options};

use crate::{http, tls};

const OURS: [u8; 4] = [10, 77, 0, 2];
const KERNEL: [u8; 4] = [10, 77, 0, 1];
const MIB: u64 = 1 << 20;

/// Must be called in a runtime.
fn setup() -> Result<(Namespace, Stack), TestbedError> {
    airtcp_testbed::requirements()?;
    let namespace = Namespace::new()?;
    let file = namespace.run(|| TunFile::open_with("tun0", tun_options())).expect("a TUN device");
    namespace.configure("tun0", &["10.77.0.1/24".parse().expect("an address")], Some(1500))?;
    let tun = Tun::new(file).expect("a TUN device in the runtime");
    let config = HostConfig::new(["10.77.0.2/24".parse().expect("an address")]);
    Ok((namespace, Stack::new(tun, config).expect("a stack")))
}

#[tokio::test]
async fn the_kernels_client_fetches_from_ours() {
    let Some((namespace, stack)) = or_skip(setup()) else { return };
    let at = SocketAddr::from((OURS, 80));
    let listener = stack.listen(at, 4).expect("a port");
    let asking = namespace.spawn(async move {
        http::exchange(peer::connect(at, None).await.expect("a connection")).await;
    });
    let (stream, _) = listener.accept().await.expect("a connection");
    http::serve(stream).await.expect("served to the end");
    asking.await.expect("the kernel's task");

    let (acceptor, connector) = tls::ends();
    let asking = namespace.spawn(async move {
        let stream = peer::connect(at, None).await.expect("a connection");
        tls::exchange(connector, stream, 4 * MIB).await;
    });
    let (stream, _) = listener.accept().await.expect("a connection");
    tls::serve(acceptor, stream).await.expect("served to the end");
    asking.await.expect("the kernel's task");
}

#[tokio::test]
async fn our_client_fetches_from_the_kernels() {
    let Some((namespace, stack)) = or_skip(setup()) else { return };
    let at = SocketAddr::from((KERNEL, 80));
    let listener = namespace.run(move || peer::listen(at, None)).expect("a port");
    let (acceptor, connector) = tls::ends();
    let serving = namespace.spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        http::serve(stream).await.expect("served to the end");
        let (stream, _) = listener.accept().await.expect("a connection");
        tls::serve(acceptor, stream).await.expect("served to the end");
    });
    http::exchange(stack.connect(at).await.expect("a connection")).await;
    let stream = stack.connect(at).await.expect("a connection");
    tls::exchange(connector, stream, 4 * MIB).await;
    serving.await.expect("the kernel's task");
}
