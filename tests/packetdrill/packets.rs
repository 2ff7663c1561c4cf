//! The peer's packets, and a parser of the stack's packets that is independent of the stack's
//! codec.

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};

pub(super) const LOCAL: [u8; 4] = [192, 168, 0, 1];
pub(super) const REMOTE: [u8; 4] = [192, 0, 2, 1];
pub(super) const LOCAL_PORT: u16 = 8080;
pub(super) const REMOTE_PORT: u16 = 40_000;

/// A segment of the peer.
#[derive(Clone, Copy, Default)]
pub(super) struct Segment<'a> {
    pub(super) seq: u32,
    pub(super) ack: Option<u32>,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
    pub(super) data: &'a [u8],
}

impl Segment<'_> {
    /// The packet, from the peer to the stack's `port`.
    pub(super) fn to(self, port: u16) -> Vec<u8> {
        let ip = PacketBuilder::ipv4(REMOTE, LOCAL, 64);
        let mut tcp = ip.tcp(REMOTE_PORT, port, self.seq, 65_535);
        tcp = match self.ack {
            Some(ack) => tcp.ack(ack),
            None => tcp,
        };
        tcp = if self.syn { tcp.syn() } else { tcp };
        tcp = if self.fin { tcp.fin() } else { tcp };
        tcp = if self.rst { tcp.rst() } else { tcp };
        let mut packet = Vec::new();
        tcp.write(&mut packet, self.data).unwrap();
        packet
    }
}

/// A segment of the stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Heard {
    pub(super) port: u16,
    pub(super) seq: u32,
    pub(super) ack: Option<u32>,
    /// The letters of `S`, `F` and `R` that are set, in this order.
    pub(super) flags: String,
    pub(super) data: Vec<u8>,
}

impl Heard {
    pub(super) fn parse(packet: &[u8]) -> Self {
        let sliced = SlicedPacket::from_ip(packet).unwrap();
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) =
            (&sliced.net, &sliced.transport)
        else {
            panic!("not TCP over IPv4: {packet:02x?}");
        };
        let header = tcp.to_header();
        assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
        let sum = header.calc_checksum_ipv4(&ip.header().to_header(), tcp.payload()).unwrap();
        assert_eq!(header.checksum, sum, "packetdrill takes no packet with a bad checksum");
        let flags = [(header.syn, 'S'), (header.fin, 'F'), (header.rst, 'R')];
        Self {
            port: header.source_port,
            seq: header.sequence_number,
            ack: header.ack.then_some(header.acknowledgment_number),
            flags: flags.iter().filter(|(on, _)| *on).map(|(_, letter)| letter).collect(),
            data: tcp.payload().to_vec(),
        }
    }
}
