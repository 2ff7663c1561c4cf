//! The header fields that a link uses: lengths, the ECN field, checksums.

use airtcp_wire::{Headers, ip};

/// Returns the bytes of the IP headers and, in whole TCP and UDP packets, of the transport header;
/// `None` if the packet is not IP.
pub(crate) fn header_len(data: &[u8]) -> Option<usize> {
    Some(end_of_headers(&Headers::of(data).ok()?, data))
}

/// The key of a flow: protocol, addresses and ports.
pub(crate) type Flow = [u8; 37];

/// Returns the flow of a packet. All packets that are not IP are one flow, and so are all fragments
/// of a protocol between two hosts.
pub(crate) fn flow(data: &[u8]) -> Flow {
    let mut flow = [0; 37];
    let Ok(headers) = Headers::of(data) else { return flow };
    let has_ports = headers.fragment.is_none() && matches!(headers.protocol, ip::TCP | ip::UDP);
    let addresses = if headers.v6 { 8..40 } else { 12..20 };
    let ports = headers.len..headers.len + if has_ports { 4 } else { 0 };
    let bytes = [addresses, ports].into_iter().filter_map(|range| data.get(range)).flatten();
    flow[0] = headers.protocol;
    flow[1..].iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    flow
}

/// Whether the packet has payload. A packet that is not IP is all payload.
pub(crate) fn has_payload(data: &[u8]) -> bool {
    let Ok(headers) = Headers::of(data) else { return !data.is_empty() };
    headers.trim(data).len() > end_of_headers(&headers, data)
}

fn end_of_headers(headers: &Headers, data: &[u8]) -> usize {
    headers.layout(data).map_or(headers.len, |layout| layout.payload)
}

/// Whether a host accepts the IP headers, an IPv4 header's checksum included.
pub(crate) fn has_sound_header(data: &[u8]) -> bool {
    ip::check(data).is_ok()
}

/// Whether the packet is ECN-capable (RFC 3168 section 5).
pub(crate) fn is_ecn_capable(data: &[u8]) -> bool {
    ip::ecn(data).is_some_and(|ecn| ecn != ip::NOT_ECT)
}

/// Sets CE on an ECN-capable packet (RFC 3168 section 5) and updates an IPv4 header's checksum.
/// Returns `false` if the packet is not ECN-capable.
pub(crate) fn set_ce(data: &mut [u8]) -> bool {
    let is_capable = is_ecn_capable(data);
    if is_capable {
        ip::set_ecn(data, ip::CE);
    }
    is_capable
}

#[cfg(test)]
mod tests {
    use airtcp_wire::is_accepted;

    use super::*;
    use crate::tests::{ipv4_tcp, ipv6_udp};

    #[test]
    fn headers_and_payload_are_distinguished() {
        assert_eq!(header_len(&ipv4_tcp(100, 0).data), Some(40));
        assert!(has_payload(&ipv4_tcp(1, 0).data) && !has_payload(&ipv4_tcp(0, 0).data));
        assert_eq!(header_len(&ipv6_udp(10).data), Some(48));
        assert_eq!(header_len(&[0x45; 19]), None);
    }

    #[test]
    fn ports_distinguish_flows_except_of_fragments() {
        let (tcp, udp) = (ipv4_tcp(12, 0).data, ipv6_udp(10).data);
        assert_eq!(flow(&tcp), flow(&ipv4_tcp(500, 2).data));
        let with = |data: &[u8], at: usize| {
            let mut other = data.to_vec();
            other[at] ^= 1;
            flow(&other)
        };
        for (data, addresses, ports) in [(&tcp, 12..20, 20..24), (&udp, 8..40, 40..44)] {
            assert!(addresses.chain(ports).all(|at| with(data, at) != flow(data)));
        }
        let mut fragment = tcp;
        fragment[6] = 0x20;
        assert_eq!(with(&fragment, 20), flow(&fragment));
        assert_ne!(flow(&fragment), flow(&[]));
        assert_eq!(flow(&[0x45; 19]), flow(&[]));
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
