//! What a link must know of the packets it carries: headers, the ECN field, checksums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airtcp_types::checksum;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Where things are in an IP packet. IPv6 extension headers are taken for payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    version: u8,
    protocol: u8,
    /// Bytes of the IP header.
    network: usize,
    /// Bytes of the IP packet, which may be fewer than there are.
    total: usize,
    /// Whether it is a piece of a packet.
    fragment: bool,
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]))
}

fn layout(data: &[u8]) -> Option<Layout> {
    let first = *data.first()?;
    let (network, protocol, total, fragment) = match first >> 4 {
        4 => {
            let network = usize::from(first & 15) * 4;
            (network, *data.get(9)?, usize::from(word(data, 2)?), word(data, 6)? & 0x3fff != 0)
        }
        6 => (40, *data.get(6)?, 40 + usize::from(word(data, 4)?), false),
        _ => return None,
    };
    let sound = network >= 20 && network <= total && total <= data.len();
    sound.then_some(Layout { version: first >> 4, protocol, network, total, fragment })
}

/// Bytes of the IP header and, for whole TCP and UDP packets, the transport header; `None` if it is not IP.
pub(crate) fn header_len(data: &[u8]) -> Option<usize> {
    let ip = layout(data)?;
    let transport = match ip.protocol {
        _ if ip.fragment => 0,
        TCP => usize::from(data.get(ip.network + 12).copied().unwrap_or(0) >> 4) * 4,
        UDP => 8,
        _ => 0,
    };
    Some((ip.network + transport).min(ip.total))
}

/// Whether there is payload. What is not IP is nothing else.
pub(crate) fn has_payload(data: &[u8]) -> bool {
    match (layout(data), header_len(data)) {
        (Some(ip), Some(header)) => ip.total > header,
        _ => !data.is_empty(),
    }
}

/// Whether a host takes its IP header for good: an IPv4 header has a checksum.
pub(crate) fn has_sound_header(data: &[u8]) -> bool {
    let Some(ip) = layout(data) else { return false };
    ip.version == 6 || data.get(..ip.network).is_some_and(checksum::verify)
}

/// Whether a receiver takes it for a good TCP or UDP packet: all its checksums hold.
pub(crate) fn is_accepted(data: &[u8]) -> bool {
    let Some(ip) = layout(data) else { return false };
    let (Some(header), Some(segment)) = (data.get(..ip.network), data.get(ip.network..ip.total))
    else {
        return false;
    };
    let (src, dst) = match ip.version {
        4 if !checksum::verify(header) || ip.fragment => return false,
        4 => (v4(header, 12), v4(header, 16)),
        _ => (v6(header, 8), v6(header, 24)),
    };
    let (Some(src), Some(dst)) = (src, dst) else { return false };
    match ip.protocol {
        TCP => segment.len() >= 20 && checksum::verify_transport(src, dst, TCP, segment),
        // RFC 768: a UDP checksum of zero over IPv4 is none.
        UDP if ip.version == 4 && word(segment, 6) == Some(0) => segment.len() >= 8,
        UDP => segment.len() >= 8 && checksum::verify_transport(src, dst, UDP, segment),
        _ => false,
    }
}

fn v4(header: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
    Some(Ipv4Addr::from(octets).into())
}

fn v6(header: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 16] = header.get(at..at + 16)?.try_into().ok()?;
    Some(Ipv6Addr::from(octets).into())
}

/// Whether it says that its ends understand ECN (RFC 3168 section 5).
pub(crate) fn is_ecn_capable(data: &[u8]) -> bool {
    layout(data).is_some_and(|ip| (data[1] >> ecn_shift(ip)) & 3 != 0)
}

/// The ECN field is the low two bits of the traffic class, which IPv6 has four bits further on.
const fn ecn_shift(ip: Layout) -> u8 {
    if ip.version == 4 { 0 } else { 4 }
}

/// Sets CE on an ECN-capable packet (RFC 3168 section 5) and keeps an IPv4 header's checksum right.
/// `false` if it is not ECN-capable.
pub(crate) fn set_ce(data: &mut [u8]) -> bool {
    let Some(ip) = layout(data) else { return false };
    let shift = ecn_shift(ip);
    let old = data[1];
    if (old >> shift) & 3 == 0 {
        return false;
    }
    let new = old | (3 << shift);
    data[1] = new;
    if ip.version == 4 {
        let before = u16::from_be_bytes([data[10], data[11]]);
        let word = |low: u8| u16::from_be_bytes([data[0], low]);
        let after = checksum::update(before, word(old), word(new));
        data[10..12].copy_from_slice(&after.to_be_bytes());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{ipv4_tcp, ipv6_udp};

    #[test]
    fn headers_and_payload_are_told_apart() {
        assert_eq!(header_len(&ipv4_tcp(100, 0).data), Some(40));
        assert!(has_payload(&ipv4_tcp(1, 0).data) && !has_payload(&ipv4_tcp(0, 0).data));
        assert_eq!(header_len(&ipv6_udp(10).data), Some(48));
        assert_eq!(header_len(&[0x45; 19]), None);
    }

    #[test]
    fn checksums_decide() {
        for mut data in [ipv4_tcp(100, 0).data, ipv6_udp(99).data] {
            assert!(is_accepted(&data));
            *data.last_mut().unwrap() ^= 1;
            assert!(!is_accepted(&data));
        }
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        let mut data = ipv4_tcp(10, 2).data;
        assert!(set_ce(&mut data));
        assert_eq!(data[1] & 3, 3);
        assert!(is_accepted(&data));
        assert!(!set_ce(&mut ipv4_tcp(10, 0).data), "not ECN-capable");
        let mut six = ipv6_udp(10).data;
        assert!(!set_ce(&mut six));
        assert!(!is_ecn_capable(&six));
        six[1] |= 0x10;
        assert!(is_ecn_capable(&six) && is_ecn_capable(&data));
        assert!(set_ce(&mut six) && six[1] & 0x30 == 0x30 && is_accepted(&six));
    }
}
