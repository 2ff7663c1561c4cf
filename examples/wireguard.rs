//! Reaches hosts behind a WireGuard peer over airtcp's TCP, without a kernel interface and without
//! root: connections to a local port are forwarded to an address in the tunnel, as `ssh -L` does.
//! The peer may be any WireGuard implementation.
//!
//! ```sh
//! wg genkey > near.key
//! cargo run --release --example wireguard near.key 10.77.0.2/24 PEERS_PUBLIC_KEY 203.0.113.5:51820 \
//!     127.0.0.1:8080 10.77.0.1:80
//! curl http://127.0.0.1:8080/
//! ```
//!
//! The peer needs a section `[Peer]` with the public key that the example prints and
//! `AllowedIPs = 10.77.0.2/32`.
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp::{Cidr, HostConfig, Stack};
use airtcp_tunnel::{PeerConfig, PrivateKey, Tunnel, TunnelConfig, TunnelHandle};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

/// The sender for data into the tunnel. For data from the peer, its kernel chooses the sender.
const SENDER: &str = "rack/bbr3/spike";

/// A stack at `address` in a tunnel to one peer, which gets the packets to all addresses.
async fn tunnel(
    key: PrivateKey,
    address: Cidr,
    peer: PeerConfig,
) -> Result<(Stack, TunnelHandle), Box<dyn Error>> {
    let local = match peer.endpoint {
        Some(SocketAddr::V6(_)) => "[::]:0",
        _ => "0.0.0.0:0",
    };
    let mut config = TunnelConfig::new(key);
    config.peers.push(peer);
    let tunnel = Tunnel::new(airtcp_tunnel::bind(local.parse()?).await?, config)?;
    let handle = tunnel.handle();
    let mut config = HostConfig::new([address]);
    config.tcp.sender.combination = SENDER.parse()?;
    Ok((Stack::new(tunnel, config)?, handle))
}

async fn forward(stack: Stack, mut near: TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let mut far = stack.connect_timeout(to, Duration::from_secs(20)).await?;
    let copied = copy_bidirectional(&mut near, &mut far).await;
    if copied.is_err() {
        // If one side ends with an error, reset both.
        far.abort();
        near.set_zero_linger()?;
    }
    copied.map(drop)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [key, address, peer, endpoint, listen, to] = &arguments[..] else {
        return Err("arguments: KEY_FILE ADDRESS/PREFIX PEERS_PUBLIC_KEY ENDPOINT LISTEN TO".into());
    };
    let key: PrivateKey = std::fs::read_to_string(key)?.parse()?;
    println!("public key of this end: {}", key.public_key());
    let peer = PeerConfig {
        endpoint: Some(endpoint.parse()?),
        allowed_ips: vec!["0.0.0.0/0".parse()?, "::/0".parse()?],
        keepalive: Some(Duration::from_secs(25)),
        ..PeerConfig::new(peer.parse()?)
    };
    let (stack, handle) = tunnel(key, address.parse()?, peer).await?;
    let (listener, to) = (TcpListener::bind(listen).await?, to.parse()?);
    loop {
        let (near, from) = tokio::select! {
            accepted = listener.accept() => accepted?,
            done = tokio::signal::ctrl_c() => return Ok(done?),
        };
        let (stack, handle) = (stack.clone(), handle.clone());
        tokio::spawn(async move {
            if let Err(error) = forward(stack, near, to).await {
                let handshake = handle.peers().first().and_then(|peer| peer.last_handshake);
                eprintln!("{from} to {to}: {error}; last handshake: {handshake:?} ago");
            }
        });
    }
}
