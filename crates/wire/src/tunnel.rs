//! IP within IP: IPv4 by RFC 2003, IPv6 by RFC 2473, with ECN by RFC 6040.

use std::net::IpAddr;

use airtcp_types::Packet;

use crate::{ParseError, checksum, ip};

/// The reason why bytes are not a packet in a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TunnelError {
    /// The outer header is invalid, or the outer packet is a fragment.
    #[error("outer header: {0}")]
    Outer(ParseError),
    /// The outer packet contains something else than an IP packet.
    #[error("protocol {0} is not IP within IP")]
    Protocol(u8),
    /// The inner packet is invalid, or not of the version that the outer header announces.
    #[error("inner packet: {0}")]
    Inner(ParseError),
    /// A queue in the tunnel reported congestion to a transport without ECN: the packet has to be
    /// dropped (RFC 6040 section 4.2).
    #[error("congestion marked on a packet without ECN")]
    Congestion,
}

/// A packet that was taken out of a tunnel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inner {
    /// The entry of the tunnel: the source of the outer packet.
    pub entry: IpAddr,
    /// The exit of the tunnel: the destination of the outer packet.
    pub exit: IpAddr,
    /// The inner packet.
    pub packet: Packet,
}

/// The number of bytes by which a tunnel with IPv4 or IPv6 outside lengthens a packet.
pub const fn overhead(v6: bool) -> usize {
    if v6 { ip::V6_HEADER_LEN } else { ip::V4_HEADER_LEN }
}

/// Builds the outer packet from `entry` to `exit`, with the inner packet as it is.
///
/// The outer header has the DSCP and the ECN field of the inner one (normal mode of RFC 6040 section
/// 4.1). An outer IPv4 header has DF set: the caller splits longer packets before (RFC 2003 section
/// 3.1, [`fragment::cut`](crate::fragment::cut)). The inner hop limit is not changed.
///
/// # Errors
/// [`TunnelError::Inner`]: the inner packet is invalid, or too long to be an inner packet.
pub fn encapsulate(
    (entry, exit): (IpAddr, IpAddr),
    hop_limit: u8,
    inner: &[u8],
) -> Result<Packet, TunnelError> {
    let (headers, inner) = ip::check(inner).map_err(TunnelError::Inner)?;
    if inner.len() > usize::from(u16::MAX) - ip::V6_HEADER_LEN {
        return Err(TunnelError::Inner(ParseError::Length));
    }
    let protocol = if headers.v6 { ip::IPV6 } else { ip::IPV4 };
    let mut data = Vec::with_capacity(ip::V6_HEADER_LEN + inner.len());
    let at = ip::start(&mut data, (entry, exit), protocol, hop_limit, inner.len(), 0);
    data[at..].copy_from_slice(inner);
    // The class is a byte of IPv4, and in IPv6 starts in the middle of the first byte.
    let class = if headers.v6 { inner[0] << 4 | inner[1] >> 4 } else { inner[1] };
    if at == ip::V4_HEADER_LEN {
        data[1] = class;
        data[10..12].fill(0);
        let sum = checksum::checksum(&data[..at]);
        data[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        data[0] = data[0] & 0xf0 | class >> 4;
        data[1] = data[1] & 0x0f | class << 4;
    }
    Ok(Packet::new(data))
}

/// Takes the inner packet out of an outer one, with the ECN field of both (RFC 6040 section 4.2).
///
/// The caller decides by the addresses whether to believe the packet.
///
/// # Errors
/// [`TunnelError`].
pub fn decapsulate(outer: &[u8]) -> Result<Inner, TunnelError> {
    let datagram = ip::parse(outer).map_err(TunnelError::Outer)?;
    let announced = match datagram.protocol {
        ip::IPV4 => false,
        ip::IPV6 => true,
        other => return Err(TunnelError::Protocol(other)),
    };
    let (headers, inner) = ip::check(datagram.payload).map_err(TunnelError::Inner)?;
    if headers.v6 != announced {
        return Err(TunnelError::Inner(ParseError::Version(if headers.v6 { 6 } else { 4 })));
    }
    let mut packet = Packet::new(inner.to_vec());
    let ecn = match (ip::ecn(inner).unwrap_or_default(), datagram.ecn) {
        (ip::NOT_ECT, ip::CE) => return Err(TunnelError::Congestion),
        (ip::NOT_ECT, _) => ip::NOT_ECT,
        (_, ip::CE) | (ip::CE, _) => ip::CE,
        (ip::ECT_0, ip::ECT_1) => ip::ECT_1,
        (inner, _) => inner,
    };
    ip::set_ecn(&mut packet.data, ecn);
    Ok(Inner { entry: datagram.src, exit: datagram.dst, packet })
}
