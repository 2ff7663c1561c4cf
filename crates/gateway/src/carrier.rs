//! The settings of a stack that carries.

use std::time::Duration;

use airtcp_stack::HostConfig;
use airtcp_stack::host::{Cidr, Quota};
use airtcp_stack::tcp::{KeepAlive, TcpConfig};
use airtcp_types::ByteCount;

/// The settings of a stack with these carrier addresses and this number of `peers`, whose sockets
/// hold at most `memory` together.
///
/// They are the stack's defaults, with the default sender, except that
///
/// - of the connections and the memory a single peer may use all, and one of several peers half.
///   IPv6 addresses of one network of 64 bits count as one peer;
/// - small segments are not delayed, and at most 256 KiB wait unsent in each connection: beyond
///   that the program is held back;
/// - idle connections are probed after five minutes. Probes that fail end a connection later than
///   the hold of a near gateway;
/// - a connection starts with what others to the same peer have measured: all of them go through
///   one tunnel;
/// - TIME-WAIT lasts 5 s: with one peer each connection takes one of its ports, and no packet is
///   delayed for longer in a tunnel. That is enough for 5,000 connections a second.
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
    (config.quota, config.peer_quota) = (quota, if peers > 1 { half } else { quota });
    config
}
