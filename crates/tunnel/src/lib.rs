//! WireGuard as a device for the stack.
//!
//! A [`Tunnel`] is a [`Device`](airtcp_device::Device) that sends and receives its packets
//! encrypted, as datagrams of a [`tokio::net::UdpSocket`] or of any other implementation of
//! [`Datagrams`]. The other end can be any WireGuard implementation: the kernel, wireguard-go,
//! another tunnel. The cryptography is boringtun's state machine. This crate adds many peers,
//! roaming endpoints, AllowedIPs, timers, cookies under load, limits and counters.
//!
//! ```
//! use airtcp_net::Stack;
//! use airtcp_stack::HostConfig;
//! use airtcp_tunnel::{PeerConfig, PrivateKey, PublicKey, Tunnel, TunnelConfig, memory};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let peer = |key: PublicKey, network: &str| -> Result<PeerConfig, Box<dyn std::error::Error>> {
//!     Ok(PeerConfig { allowed_ips: vec![network.parse()?], ..PeerConfig::new(key) })
//! };
//! let switch = memory::Switch::new(1024);
//! let (near_key, far_key) = (PrivateKey::generate(), PrivateKey::generate());
//!
//! let mut config = TunnelConfig::new(far_key.clone());
//! config.peers.push(peer(near_key.public_key(), "10.77.0.2/32")?);
//! let tunnel = Tunnel::new(switch.bind("192.0.2.1:51820".parse()?)?, config)?;
//! let far = Stack::new(tunnel, HostConfig::new(["10.77.0.1/24".parse()?]))?;
//!
//! let mut config = TunnelConfig::new(near_key);
//! config.peers.push(peer(far_key.public_key(), "10.77.0.1/32")?);
//! config.peers[0].endpoint = Some("192.0.2.1:51820".parse()?);
//! let tunnel = Tunnel::new(switch.bind("198.51.100.1:40000".parse()?)?, config)?;
//! let handle = tunnel.handle();
//! let near = Stack::new(tunnel, HostConfig::new(["10.77.0.2/24".parse()?]))?;
//!
//! let listener = far.listen("10.77.0.1:7".parse()?, 16)?;
//! let mut stream = near.connect("10.77.0.1:7".parse()?).await?;
//! let (mut accepted, _) = listener.accept().await?;
//! stream.write_all(b"hello").await?;
//! stream.shutdown().await?;
//! let mut received = String::new();
//! accepted.read_to_string(&mut received).await?;
//! assert_eq!(received, "hello");
//! assert!(handle.peers()[0].last_handshake.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! **Clocks.** An initiation contains the time of the initiator's clock, and a responder rejects
//! one that is not later than the last. The clock is read when a peer is added, and then runs
//! monotonically, so a step of the system clock does not affect a running tunnel. An end that
//! restarts with an earlier clock would be rejected until the clock has caught up. A responder of
//! this crate answers such an initiation with one of its own, so that the tunnel is up after a
//! round trip. Other implementations do not; there, send a packet from the responder's side.
//!
//! Not supported: batches of datagrams (recvmmsg, segmentation offload), super-segments, host names
//! as endpoints, ICMP errors for packets without a peer, padding of messages to 16 bytes, routes.
#![forbid(unsafe_code)]

mod config;
mod datagrams;
mod error;
mod gate;
mod handle;
mod keys;
pub mod memory;
mod network;
mod outgoing;
mod peer;
mod peers;
mod tunnel;

pub use config::{PeerConfig, TunnelConfig};
pub use datagrams::{Datagrams, bind};
pub use error::TunnelError;
pub use handle::{PeerStatus, TunnelCounters, TunnelHandle};
pub use keys::{PresharedKey, PrivateKey, PublicKey};
pub use network::Network;
pub use tunnel::Tunnel;
