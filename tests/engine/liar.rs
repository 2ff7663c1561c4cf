//! A receiver that lies: after some of its packets it sends another with a false claim.

use std::net::{IpAddr, Ipv4Addr};

use airtcp_types::rng::Stream;
use airtcp_types::{Packet, SeqNumber};
use airtcp_wire::checksum::{Sum, checksum};
use airtcp_wire::options::{HackAck, HackForm, SackBlocks, TcpOptions, Timestamps};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;

/// The false claims that a liar may make. None may cost the stream a byte or a host its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lies {
    /// All lies, except that data in flight has arrived.
    Bearable,
    /// Also that data in flight has arrived. The path must then not lose that data.
    Optimistic,
}

/// Sees the packets sent to the receiver, and lies about them.
pub(crate) struct Liar {
    lies: Lies,
    random: Stream,
    /// One past the highest number sent to the receiver.
    highest: Option<SeqNumber>,
    /// The window scale that the receiver offers.
    scale: u8,
    /// Whether the receiver may send SACK blocks.
    sack: bool,
}

impl Liar {
    pub(crate) fn new(lies: Lies, seed: u64) -> Self {
        Self { lies, random: Stream::new(seed, 99), highest: None, scale: 0, sack: false }
    }

    /// Sees a packet on its way to the receiver.
    pub(crate) fn hear(&mut self, packet: &Packet) {
        let Some(fields) = Fields::read(packet) else { return };
        if self.highest.is_none_or(|highest| after(highest, fields.end) < 1 << 31) {
            self.highest = Some(fields.end);
        }
    }

    /// Returns, one time in five, a false packet to send after this packet of the receiver.
    pub(crate) fn lie_after(&mut self, packet: &Packet) -> Option<Packet> {
        let fields = Fields::read(packet)?;
        if let Some((scale, sack)) = fields.offer {
            (self.scale, self.sack) = (scale, sack);
        }
        let highest = self.highest.filter(|_| fields.plain)?;
        if !self.random.chance(0.2) {
            return None;
        }
        let mut ack = fields.ack;
        let mut options = TcpOptions { timestamps: fields.timestamps, ..TcpOptions::default() };
        let outstanding = u64::from(after(ack, highest)).max(1);
        let mut number = |bound: u64| self.random.below(bound) as u32;
        let kinds = if self.lies == Lies::Optimistic { 6 } else { 5 };
        match number(kinds) {
            // Acknowledges data that will not have been sent when this ACK arrives.
            0 => ack = highest + 1_000_000 + number(200_000),
            // SACKs data that the next honest ACK no longer SACKs.
            1 => {
                let mut sack = SackBlocks::EMPTY;
                for _ in 0..3 {
                    let start = ack + number(outstanding);
                    sack.push(start, start + number(outstanding) + 1);
                }
                options.sack = sack;
            }
            // Reports a duplicate that never existed.
            2 => {
                let mut sack = SackBlocks::EMPTY;
                let back = 1 + number(5_000);
                sack.push(ack - back, ack - number(u64::from(back)));
                options.sack = sack;
            }
            // Reports a corrupted segment outside of the data in flight, or not at a segment's
            // start.
            3 => {
                let corrupted =
                    if number(2) == 0 { ack - 1 - number(5_000) } else { highest + number(5_000) };
                options.hack_ack = Some(HackAck { form: HackForm::Kinds, corrupted });
            }
            // A duplicate ACK.
            4 => {}
            // Acknowledges everything in flight before it can have arrived.
            _ => ack = highest,
        }
        if !self.sack {
            options.sack = SackBlocks::EMPTY;
        }
        // The window's edge stays honest: data sent beyond it would be lost.
        let edge = u32::from(fields.window) << self.scale;
        let window = edge.saturating_sub(after(fields.ack, ack)) >> self.scale;
        Some(fields.claim(ack, window as u16, &options))
    }
}

/// The fields of a packet of the receiver.
struct Fields {
    addresses: [Ipv4Addr; 2],
    ports: [u16; 2],
    ack: SeqNumber,
    window: u16,
    timestamps: Option<Timestamps>,
    /// One past the segment's last sequence number.
    end: SeqNumber,
    /// Whether it is an ACK and neither a SYN nor a RST.
    plain: bool,
    /// The window scale of a SYN, and whether it permits SACK.
    offer: Option<(u8, bool)>,
}

/// The distance from `from` to `to`.
fn after(from: SeqNumber, to: SeqNumber) -> u32 {
    to.0.wrapping_sub(from.0)
}

impl Fields {
    fn read(packet: &Packet) -> Option<Self> {
        let sliced = SlicedPacket::from_ip(&packet.data).ok()?;
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) =
            (&sliced.net, &sliced.transport)
        else {
            return None;
        };
        let seq = SeqNumber(tcp.sequence_number());
        let len = tcp.payload().len() as u32 + u32::from(tcp.fin()) + u32::from(tcp.syn());
        let options = TcpOptions::parse(tcp.options());
        Some(Self {
            addresses: [ip.header().source_addr(), ip.header().destination_addr()],
            ports: [tcp.source_port(), tcp.destination_port()],
            ack: SeqNumber(tcp.acknowledgment_number()),
            window: tcp.window_size(),
            timestamps: options.timestamps,
            offer: tcp.syn().then(|| (options.window_scale.unwrap_or(0), options.sack_permitted)),
            end: seq + len,
            plain: tcp.ack() && !tcp.syn() && !tcp.rst(),
        })
    }

    /// An ACK from the same sender, with the sequence number after this packet.
    fn claim(&self, ack: SeqNumber, window: u16, options: &TcpOptions) -> Packet {
        let mut encoded = [0; 40];
        let options_len = options.encode(&mut encoded);
        let len = IP_HEADER + TCP_HEADER + options_len;
        let mut data = vec![0; len];
        data[0] = 0x45;
        data[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        (data[8], data[9]) = (64, 6);
        data[12..16].copy_from_slice(&self.addresses[0].octets());
        data[16..20].copy_from_slice(&self.addresses[1].octets());
        let sum = checksum(&data[..IP_HEADER]);
        data[10..12].copy_from_slice(&sum.to_be_bytes());
        let tcp = &mut data[IP_HEADER..];
        tcp[0..2].copy_from_slice(&self.ports[0].to_be_bytes());
        tcp[2..4].copy_from_slice(&self.ports[1].to_be_bytes());
        tcp[4..8].copy_from_slice(&self.end.0.to_be_bytes());
        tcp[8..12].copy_from_slice(&ack.0.to_be_bytes());
        tcp[12] = (((TCP_HEADER + options_len) / 4) << 4) as u8;
        tcp[13] = 0x10;
        tcp[14..16].copy_from_slice(&window.to_be_bytes());
        tcp[TCP_HEADER..].copy_from_slice(&encoded[..options_len]);
        let mut sum = Sum::new();
        let [src, dst] = self.addresses.map(IpAddr::V4);
        sum.add_pseudo_header(src, dst, 6, tcp.len());
        sum.add_bytes(tcp);
        tcp[16..18].copy_from_slice(&sum.finish().to_be_bytes());
        Packet::new(data)
    }
}
