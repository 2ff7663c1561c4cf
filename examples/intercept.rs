//! A transparent proxy like tun2socks: TCP connections and UDP datagrams to any destination arrive
//! at a TUN device and are forwarded over the kernel's sockets.
//!
//! Programs in a network namespace with a default route into the device need no configuration. As
//! root, run `cargo run --example intercept tun0`, and in a second terminal:
//!
//! ```sh
//! ip netns add apps
//! ip link set tun0 netns apps
//! ip -n apps address add 10.0.0.1/24 dev tun0
//! ip -n apps link set tun0 up
//! ip -n apps route add default dev tun0
//! ip netns exec apps curl http://1.1.1.1/
//! ```
use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use airtcp::device::Tun;
use airtcp::types::FlowId;
use airtcp::{AnyTcpListener, AnyUdpSocket, HostConfig, PendingStream, Stack};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// The most connections that wait for their destination.
const BACKLOG: usize = 1024;
/// How long a destination may take to answer.
const DIAL: Duration = Duration::from_secs(60);
/// The most sources of datagrams, and the most queued datagrams of each.
const MAPPINGS: usize = 1024;
const QUEUE: usize = 64;
/// How long a source of datagrams keeps its port without traffic (RFC 4787 section 4.3).
const IDLE: Duration = Duration::from_secs(300);

/// Forwards everything that arrives at `stack` until the stack ends.
pub(crate) async fn intercept(stack: Stack) -> io::Result<()> {
    let connections = forward_connections(stack.listen_any(BACKLOG)?);
    let datagrams = forward_datagrams(stack.udp_bind_any()?);
    tokio::try_join!(connections, datagrams).map(|((), ())| ())
}

async fn forward_connections(near: AnyTcpListener) -> io::Result<()> {
    loop {
        tokio::spawn(forward_connection(near.next().await?));
    }
}

/// Connects to the destination, then accepts the client and copies in both directions; half-closes
/// are passed on.
async fn forward_connection(pending: PendingStream) -> io::Result<()> {
    let destination = pending.destination();
    // An error drops the pending connection, which refuses it.
    let mut far = timeout(DIAL, TcpStream::connect(destination)).await??;
    let mut near = pending.accept().await?;
    let copied = copy_bidirectional(&mut near, &mut far).await;
    if copied.is_err() {
        // If one side ends with an error, reset both.
        near.abort();
        far.set_zero_linger()?;
    }
    copied.map(drop)
}

/// Gives each source of datagrams one port of the kernel for all its destinations (RFC 4787 section
/// 4.1).
async fn forward_datagrams(near: AnyUdpSocket) -> io::Result<()> {
    let near = Arc::new(near);
    let mut mappings = HashMap::<SocketAddr, mpsc::Sender<(Vec<u8>, SocketAddr)>>::new();
    let mut buf = vec![0; usize::from(u16::MAX)];
    loop {
        let (len, FlowId { local: destination, remote: source }) = near.recv(&mut buf).await?;
        if mappings.get(&source).is_none_or(|mapping| mapping.is_closed()) {
            mappings.retain(|_, mapping| !mapping.is_closed());
            if mappings.len() >= MAPPINGS {
                continue;
            }
            let (sender, receiver) = mpsc::channel(QUEUE);
            tokio::spawn(map(near.clone(), source, receiver));
            mappings.insert(source, sender);
        }
        // A datagram for a full queue is dropped, as in a router.
        let _ = mappings[&source].try_send((buf[..len].to_vec(), destination));
    }
}

/// Sends the datagrams of one source, and returns the answers with the addresses they came from.
async fn map(
    near: Arc<AnyUdpSocket>,
    source: SocketAddr,
    mut outgoing: mpsc::Receiver<(Vec<u8>, SocketAddr)>,
) -> io::Result<()> {
    let any = match source {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let far = UdpSocket::bind(any).await?;
    let mut buf = vec![0; usize::from(u16::MAX)];
    loop {
        // A datagram that cannot be sent is lost; the others are not affected.
        tokio::select! {
            Some((data, destination)) = outgoing.recv() => {
                let _ = far.send_to(&data, destination).await;
            }
            received = far.recv_from(&mut buf) => {
                let (len, from) = received?;
                let _ = near.send(&buf[..len], FlowId { local: from, remote: source }).await;
            }
            () = sleep(IDLE) => return Ok(()),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "tun0".to_owned());
    let mut config = HostConfig::new([]);
    // One client cannot take all places for half-open connections.
    config.peer_quota.half_open = BACKLOG / 8;
    let stack = Stack::new(Tun::open(&name)?, config)?;
    tokio::select! {
        done = intercept(stack) => done?,
        done = tokio::signal::ctrl_c() => done?,
    }
    Ok(())
}
