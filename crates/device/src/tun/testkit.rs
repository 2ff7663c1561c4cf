//! Packets for tests of an offloading device, in memory and with a kernel.

use std::net::IpAddr;
use std::sync::Arc;

use airtcp_types::{Checksum, Packet, SharedBytes};
use airtcp_wire::checksum::{Sum, checksum};

/// The destination, the protocol and the port of a packet.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) dst: IpAddr,
    pub(crate) tcp: bool,
    pub(crate) port: u16,
}

/// Returns a packet with a partial checksum and its payload in `tail`, in pieces of 1000 bytes.
pub(crate) fn packet(flow: Flow, payload: &[u8], segment_size: Option<u16>) -> Packet {
    let Flow { dst, tcp, port } = flow;
    let length = payload.len() + if tcp { 20 } else { 8 };
    let protocol = if tcp { 6 } else { 17 };
    let (src, mut data): (IpAddr, _) = match dst {
        IpAddr::V4(dst) => {
            let mut ip = vec![0x45, 0, 0, 0, 0, 9, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 2];
            ip.extend(dst.octets());
            ip[2..4].copy_from_slice(&(length as u16).wrapping_add(20).to_be_bytes());
            let sum = checksum(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            ("10.0.0.2".parse().unwrap(), ip)
        }
        IpAddr::V6(dst) => {
            let mut ip = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
            ip[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            let src: std::net::Ipv6Addr = "fd00::2".parse().unwrap();
            ip.extend(src.octets());
            ip.extend(dst.octets());
            (src.into(), ip)
        }
    };
    let mut sum = Sum::new();
    sum.add_pseudo_header(src, dst, protocol, length);
    for field in [1000, port] {
        data.extend_from_slice(&u16::to_be_bytes(field));
    }
    if tcp {
        // A segment with ACK and PSH that belongs to no connection.
        data.extend_from_slice(&[0, 0, 0, 5, 0, 0, 0, 7, 5 << 4, 0x18, 0xff, 0xff]);
        data.extend_from_slice(&sum.folded().to_be_bytes());
        data.extend_from_slice(&[0, 0]);
    } else {
        data.extend_from_slice(&(length as u16).to_be_bytes());
        data.extend_from_slice(&sum.folded().to_be_bytes());
    }
    let payload = Arc::new(payload.to_vec());
    let pieces = (0..payload.len()).step_by(1000);
    let tail = pieces.map(|at| SharedBytes::new(&payload, at..payload.len().min(at + 1000)));
    Packet { data, tail: tail.collect(), segment_size, checksum: Checksum::Partial }
}

pub(crate) fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}
