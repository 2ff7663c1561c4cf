//! The settings of a carrier stack.

use std::time::Duration;

use airtcp_stack::HostConfig;
use airtcp_stack::host::{Cidr, Quota};
use airtcp_stack::tcp::{KeepAlive, TcpConfig};
use airtcp_types::ByteCount;

/// The most datagrams that wait in the stack; further ones wait in the queues of their senders,
/// which take turns.
const DATAGRAMS: usize = 32;

/// Returns the settings of a carrier stack with these `addresses` and this number of `peers`, whose
/// sockets hold at most `memory` together.
///
/// They are the stack's defaults, with the default sender, except:
///
/// - A single peer may use all connections and all memory; with several peers, each may use half.
///   IPv6 addresses with the same 64-bit prefix count as one peer.
/// - Small segments are not delayed (no Nagle), and at most 256 KiB wait unsent in each connection:
///   beyond that the program is held back.
/// - Idle connections are probed after five minutes. Probes that fail end a connection later than
///   the hold of a near gateway does.
/// - A connection starts with the path measurements of earlier connections to the same peer: all of
///   them use one tunnel.
/// - At most 32 packets wait in the stack before UDP sockets cannot send: the datagrams of programs
///   wait in queues of their own, which take turns.
/// - TIME-WAIT lasts 5 s: with one peer, each connection occupies a port of its own, and no packet
///   is delayed for longer in a tunnel. That allows 5,000 connections per second.
///
/// The MTU is that of the device.
///
/// ```
/// use airtcp_gateway::carrier_config;
/// use airtcp_types::ByteCount;
///
/// let addresses = ["10.77.0.2/24".parse()?, "fd77::2/64".parse()?];
/// let mut config = carrier_config(addresses, ByteCount::from_mib(256), 1);
/// config.tcp.sender.combination = "rack/bbr".parse()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn carrier_config(
    addresses: impl IntoIterator<Item = Cidr>,
    memory: ByteCount,
    peers: usize,
) -> HostConfig {
    let quota = Quota { out_of_order: ByteCount(memory.0 / 2), memory, ..Quota::ALL };
    let half = |all: ByteCount| ByteCount(all.0 / 2);
    let half = Quota {
        connections: quota.connections / 2,
        half_open: quota.half_open / 2,
        out_of_order: half(quota.out_of_order),
        fragments: half(quota.fragments),
        memory: half(quota.memory),
    };
    let keep_alive =
        KeepAlive { idle: Duration::from_secs(300), interval: Duration::from_secs(30), probes: 5 };
    let mut config = HostConfig::new(addresses);
    config.tcp = TcpConfig {
        nodelay: true,
        not_sent_low_water: Some(ByteCount::from_kib(256)),
        keep_alive: Some(keep_alive),
        path_memory: true,
        time_wait: Duration::from_secs(5),
        ..config.tcp
    };
    config.udp_send_queue = DATAGRAMS;
    (config.quota, config.peer_quota) = (quota, if peers > 1 { half } else { quota });
    config
}
