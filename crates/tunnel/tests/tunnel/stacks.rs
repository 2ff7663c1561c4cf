//! TCP between two stacks through a tunnel.

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_net::Stack;
use airtcp_stack::HostConfig;
use airtcp_testbed::{Namespace, or_skip, peer};
use airtcp_tunnel::{Datagrams, PresharedKey, PrivateKey, Tunnel, TunnelConfig, TunnelHandle};

use crate::kit::{Ends, ends, ends_of, far_config, near_config, outside};

const BYTES: u64 = 1 << 20;

fn stack<S: Datagrams>(tunnel: Tunnel<S>, address: &str) -> (Stack, TunnelHandle) {
    let handle = tunnel.handle();
    (Stack::new(tunnel, HostConfig::new([address.parse().unwrap()])).unwrap(), handle)
}

/// An echo server on the far stack.
async fn serve(far: &Stack) -> SocketAddr {
    let address = "10.77.0.1:7".parse().unwrap();
    let listener = far.listen(address, 16).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = tokio::io::split(stream);
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = tokio::io::AsyncWriteExt::shutdown(&mut writer).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn two_stacks_exchange_a_mebibyte_both_ways() {
    let (near_key, far_key) = (PrivateKey::generate(), PrivateKey::generate());
    let mut near = near_config((&near_key, far_key.public_key()));
    let mut far = far_config((&far_key, near_key.public_key()));
    let shared = PresharedKey::generate();
    near.peers[0].preshared_key = Some(shared.clone());
    far.peers[0].preshared_key = Some(shared);
    let Ends { near, far, .. } = ends_of(near, far, near_key, far_key);
    let (near, near_handle) = stack(near, "10.77.0.2/24");
    let (far, far_handle) = stack(far, "10.77.0.1/24");
    let address = serve(&far).await;
    let stream = near.connect(address).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), address);
    assert_eq!(peer::echo(stream, 1, BYTES).await.unwrap(), BYTES);
    let (near, far) = (near_handle.peers().remove(0), far_handle.peers().remove(0));
    assert_eq!(far.endpoint, Some(outside(2, 40_000)));
    for status in [near, far] {
        assert!(status.last_handshake.is_some());
        assert!(status.rx_bytes > BYTES && status.tx_bytes > BYTES, "{status:?}");
        assert_eq!((status.rx_invalid, status.rx_replayed, status.rx_refused), (0, 0, 0));
    }
}

/// The kernel's sockets: one for IPv6 and IPv4, and one for IPv4.
#[tokio::test]
async fn a_tunnel_over_udp_sockets() {
    let (near_key, far_key) = (PrivateKey::generate(), PrivateKey::generate());
    let far_socket = match airtcp_tunnel::bind("[::]:0".parse().unwrap()).await {
        Ok(socket) => socket,
        // A machine without IPv6.
        Err(_) => airtcp_tunnel::bind("0.0.0.0:0".parse().unwrap()).await.unwrap(),
    };
    let near_socket = airtcp_tunnel::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let near_address = near_socket.local_addr().unwrap();
    let mut config = near_config((&near_key, far_key.public_key()));
    let far_port = far_socket.local_addr().unwrap().port();
    config.peers[0].endpoint = Some(SocketAddr::from(([127, 0, 0, 1], far_port)));
    let (near, _) = stack(Tunnel::new(near_socket, config).unwrap(), "10.77.0.2/24");
    let config = far_config((&far_key, near_key.public_key()));
    let (far, far_handle) = stack(Tunnel::new(far_socket, config).unwrap(), "10.77.0.1/24");
    let stream = near.connect(serve(&far).await).await.unwrap();
    assert_eq!(peer::echo(stream, 3, BYTES).await.unwrap(), BYTES);
    assert_eq!(far_handle.peers()[0].endpoint, Some(near_address));
}

#[test]
fn a_socket_for_ipv6_takes_ipv4_whatever_the_sysctl_says() {
    let Some(namespace) = or_skip(Namespace::new()) else { return };
    // A machine without IPv6.
    if !std::path::Path::new("/proc/sys/net/ipv6").exists() {
        return;
    }
    for only in ["1", "0"] {
        namespace.set_sysctl("net.ipv6.bindv6only", only).unwrap();
        let came = namespace.block_on(async {
            let socket = airtcp_tunnel::bind("[::]:0".parse().unwrap()).await?;
            let port = socket.local_addr()?.port();
            for (local, to) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1")] {
                let program = std::net::UdpSocket::bind(local)?;
                program.send_to(to.as_bytes(), (to, port))?;
            }
            // Both are queued already: loopback delivers before `send_to` returns.
            Datagrams::readable(&socket).await?;
            let mut came = Vec::new();
            let mut data = [0; 16];
            while let Ok((length, _)) = Datagrams::try_recv_from(&socket, &mut data) {
                came.push(String::from_utf8_lossy(&data[..length]).into_owned());
            }
            std::io::Result::Ok(came)
        });
        assert_eq!(came.unwrap(), ["127.0.0.1", "::1"], "bindv6only = {only}");
    }
}

#[tokio::test]
async fn a_connection_continues_when_an_end_moves() {
    let Ends { near, near_socket, far, .. } = ends();
    let (near, _) = stack(near, "10.77.0.2/24");
    let (far, far_handle) = stack(far, "10.77.0.1/24");
    let address = serve(&far).await;
    let stream = near.connect(address).await.unwrap();
    let echoing = tokio::spawn(peer::echo(stream, 2, 8 * BYTES));
    while far_handle.peers()[0].rx_bytes < BYTES {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    near_socket.move_to(outside(3, 41_000)).unwrap();
    assert_eq!(echoing.await.unwrap().unwrap(), 8 * BYTES);
    assert_eq!(far_handle.peers()[0].endpoint, Some(outside(3, 41_000)));
}

/// Timers run although nothing is sent, and a peer can be added to a running tunnel.
#[tokio::test]
async fn with_a_keepalive_the_tunnel_is_there_before_a_packet() {
    let Ends { switch, far, near_key, far_key, .. } = ends();
    let socket = switch.bind(outside(4, 40_000)).unwrap();
    let idle = Tunnel::new(socket, TunnelConfig::new(near_key.clone())).unwrap();
    let handle = idle.handle();
    let _near = Stack::new(idle, HostConfig::new(["10.77.0.2/24".parse().unwrap()])).unwrap();
    let (_far, far_handle) = stack(far, "10.77.0.1/24");
    let mut peer = near_config((&near_key, far_key.public_key())).peers.remove(0);
    peer.keepalive = Some(Duration::from_secs(1));
    tokio::task::yield_now().await;
    handle.add_peer(peer).unwrap();
    let bytes = || far_handle.peers()[0].rx_bytes;
    // An initiation, the keepalive that confirms it, and two persistent keepalives.
    while bytes() < 148 + 3 * 32 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(handle.remove_peer(&far_key.public_key()) && handle.peers().is_empty());
    assert!(!handle.remove_peer(&far_key.public_key()));
}
