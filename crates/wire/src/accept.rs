//! The check whether a host accepts a packet.

use crate::checksum::verify_transport;
use crate::{ip, tcp, udp};

/// Whether a host accepts a packet as a TCP segment or UDP datagram: the packet is not a fragment,
/// its lengths are valid, and all its checksums are correct.
pub fn is_accepted(packet: &[u8]) -> bool {
    let Ok(ip::Datagram { src, dst, protocol, payload, .. }) = ip::parse(packet) else {
        return false;
    };
    match protocol {
        ip::TCP => tcp::split(payload).is_ok() && verify_transport(src, dst, ip::TCP, payload),
        ip::UDP => udp::parse(payload).is_ok_and(|datagram| datagram.is_intact(src, dst)),
        _ => false,
    }
}
