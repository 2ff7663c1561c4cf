//! Packets for tests, with defaults for the unimportant fields.

use std::net::{IpAddr, SocketAddr};

use airtcp_types::{Packet, SeqNumber};
use airtcp_wire::checksum;
use airtcp_wire::header_checksum::seal_header;
use airtcp_wire::options::{Hack, HackAck, HackForm, TcpOptions, Timestamps};

use super::flow::FlowKey;
use super::segment::Segment;

/// A segment; `flags` are letters of `FSRPAUEC`.
#[derive(Clone, Debug)]
pub(crate) struct Seg {
    pub(crate) flags: &'static str,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) len: usize,
    pub(crate) window: u16,
    pub(crate) reserved: u8,
    pub(crate) ecn: u8,
    pub(crate) ts: Option<(u32, u32)>,
    pub(crate) sack: Vec<(u32, u32)>,
    pub(crate) wscale: Option<u8>,
    pub(crate) hack: Option<HackForm>,
    pub(crate) hack_ack: Option<u32>,
    /// NOPs before the other options, to change their offset.
    pub(crate) nops: usize,
    /// Raw bytes that replace the options.
    pub(crate) list: Option<&'static [u8]>,
}

impl Seg {
    pub(crate) fn data(seq: u32, len: usize) -> Self {
        Self {
            flags: "A",
            seq,
            ack: 1,
            len,
            window: 1_000,
            reserved: 0,
            ecn: 0,
            ts: None,
            sack: Vec::new(),
            wscale: None,
            hack: None,
            hack_ack: None,
            nops: 0,
            list: None,
        }
    }

    pub(crate) fn ack(seq: u32, ack: u32) -> Self {
        Self { ack, ..Self::data(seq, 0) }
    }

    /// Builds the IP packet from `src` to `dst`. The payload is a function of the sequence number.
    pub(crate) fn packet(&self, src: SocketAddr, dst: SocketAddr) -> Packet {
        let options = TcpOptions {
            timestamps: self.ts.map(|(val, ecr)| Timestamps { val, ecr }),
            sack: self.sack.iter().map(|(a, b)| (SeqNumber(*a), SeqNumber(*b))).collect(),
            window_scale: self.wscale,
            hack: self.hack.map(|form| Hack { form, checksum: 0 }),
            hack_ack: self
                .hack_ack
                .map(|seq| HackAck { form: HackForm::Kinds, corrupted: SeqNumber(seq) }),
            ..TcpOptions::default()
        };
        let mut buf = [0; 40];
        let len = options.encode(&mut buf);
        let mut list = vec![1; self.nops];
        list.extend_from_slice(&buf[..len]);
        if let Some(bytes) = self.list {
            list = bytes.to_vec();
        }
        list.resize(list.len().next_multiple_of(4), 0);
        let mut tcp = Vec::new();
        tcp.extend_from_slice(&src.port().to_be_bytes());
        tcp.extend_from_slice(&dst.port().to_be_bytes());
        tcp.extend_from_slice(&self.seq.to_be_bytes());
        tcp.extend_from_slice(&self.ack.to_be_bytes());
        let bits = self.flags.chars().map(|c| 1 << "FSRPAUEC".find(c).unwrap()).sum();
        tcp.extend_from_slice(&[((20 + list.len()) as u8 / 4) << 4 | self.reserved, bits]);
        tcp.extend_from_slice(&self.window.to_be_bytes());
        tcp.extend_from_slice(&[0; 4]);
        tcp.extend_from_slice(&list);
        tcp.extend((0..self.len as u32).map(|n| (self.seq.wrapping_add(n) % 251) as u8));
        if self.hack.is_some() && !self.flags.contains('S') {
            seal_header(src.ip(), dst.ip(), &mut tcp);
        }
        let mut sum = checksum::Sum::new();
        sum.add_pseudo_header(src.ip(), dst.ip(), 6, tcp.len());
        sum.add_bytes(&tcp);
        tcp[16..18].copy_from_slice(&sum.finish().to_be_bytes());
        Packet::new(enclose(src.ip(), dst.ip(), self.ecn, 6, &tcp))
    }
}

/// Builds an IP packet without options.
pub(crate) fn enclose(src: IpAddr, dst: IpAddr, ecn: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut data = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let [a, b] = (20 + payload.len() as u16).to_be_bytes();
            let mut header = vec![0x45, ecn, a, b, 0, 7, 0x40, 0, 64, protocol, 0, 0];
            header.extend_from_slice(&src.octets());
            header.extend_from_slice(&dst.octets());
            let sum = checksum::checksum(&header).to_be_bytes();
            header[10..12].copy_from_slice(&sum);
            header
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let [a, b] = (payload.len() as u16).to_be_bytes();
            let mut header = vec![0x60, ecn << 4, 0, 0, a, b, protocol, 64];
            header.extend_from_slice(&src.octets());
            header.extend_from_slice(&dst.octets());
            header
        }
        _ => panic!("two families"),
    };
    data.extend_from_slice(payload);
    data
}

pub(crate) fn key() -> FlowKey {
    key_of(0)
}

/// The key of the flow with this number; odd numbers are IPv6.
pub(crate) fn key_of(number: u32) -> FlowKey {
    let port = 1_024 + (number >> 16) as u16;
    let [a, b, c, d] = (number & 0xffff).to_be_bytes();
    if number.is_multiple_of(2) {
        FlowKey {
            fixed: SocketAddr::from(([10, b, c, d], port)),
            mobile: SocketAddr::from(([192, 168, a, 1], 80)),
        }
    } else {
        let low = (number & 0xffff) as u16;
        FlowKey {
            fixed: SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 1, low], port)),
            mobile: SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 2, 1], 80)),
        }
    }
}

/// A segment of flow 0 from the fixed host, as a packet and parsed.
pub(super) fn from_fixed(seg: Seg) -> (Packet, Segment) {
    read(seg.packet(key().fixed, key().mobile))
}

/// A segment of flow 0 from the mobile, as a packet and parsed.
pub(super) fn from_mobile(seg: Seg) -> (Packet, Segment) {
    read(seg.packet(key().mobile, key().fixed))
}

fn read(packet: Packet) -> (Packet, Segment) {
    let segment = Segment::read(&packet).expect("it is a segment");
    (packet, segment)
}
