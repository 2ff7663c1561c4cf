//! Flows as packets: the segments that both ends would send without loss.

use std::net::Ipv4Addr;

use airtcp_basestation::{Side, Station};
use airtcp_types::{Instant, Node, Packet};
use etherparse::PacketBuilder;

/// The networks of the fixed hosts and of the mobiles: 10.1.0.0/16 and 10.2.0.0/16.
const FIXED: u32 = 0x0a01_0000;
const MOBILE: u32 = 0x0a02_0000;
const DATA: usize = 1440;
/// The number of addresses in each network that flows use.
const HOSTS: u32 = 60_000;

#[derive(Clone, Copy)]
struct Flow {
    /// The next sequence number of the fixed host.
    next: u32,
    /// The mobile's acknowledgment number.
    acked: u32,
}

/// Flows that send in turn, each with its own numbers.
pub(crate) struct Flows {
    flows: Vec<Flow>,
    turn: usize,
}

impl Flows {
    pub(crate) fn new(count: u32) -> Self {
        Self { flows: vec![Flow { next: 1, acked: 1 }; count as usize], turn: 0 }
    }

    /// The next flow's next segment, with `mark` in its payload.
    pub(crate) fn data(&mut self, mark: u64) -> Vec<u8> {
        let index = self.turn;
        self.turn = (self.turn + 1) % self.flows.len();
        let flow = &mut self.flows[index];
        let mut payload = vec![0; DATA];
        payload[..8].copy_from_slice(&mark.to_be_bytes());
        payload[8..12].copy_from_slice(&(index as u32).to_be_bytes());
        let packet = segment(index as u32, Side::Wired, flow.next, 1, &payload);
        flow.next = flow.next.wrapping_add(DATA as u32);
        packet
    }

    /// Handles a packet that arrives at the mobile: returns its mark, and an ACK for every second
    /// segment.
    pub(crate) fn arrived(&mut self, packet: &[u8]) -> Option<(u64, Option<Vec<u8>>)> {
        let payload = packet.get(40..)?;
        let mark = u64::from_be_bytes(payload.get(..8)?.try_into().ok()?);
        let index = u32::from_be_bytes(payload.get(8..12)?.try_into().ok()?);
        let flow = self.flows.get_mut(index as usize)?;
        flow.acked = flow.acked.wrapping_add(DATA as u32);
        let is_second = (flow.acked.wrapping_sub(1) / DATA as u32).is_multiple_of(2);
        Some((mark, is_second.then(|| segment(index, Side::Wireless, 1, flow.acked, &[]))))
    }
}

fn segment(flow: u32, from: Side, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
    built(flow, from, payload, |builder| builder.ack(ack), seq)
}

fn built(
    flow: u32,
    from: Side,
    payload: &[u8],
    flags: impl FnOnce(
        etherparse::PacketBuilderStep<etherparse::TcpHeader>,
    ) -> etherparse::PacketBuilderStep<etherparse::TcpHeader>,
    seq: u32,
) -> Vec<u8> {
    let (host, port) = (1 + flow % HOSTS, 1024 + (flow / HOSTS) as u16);
    let ends = [(FIXED + host, 80), (MOBILE + host, port)];
    let [(src, src_port), (dst, dst_port)] =
        if from == Side::Wired { ends } else { [ends[1], ends[0]] };
    let address = |bits: u32| Ipv4Addr::from_bits(bits).octets();
    let builder =
        PacketBuilder::ipv4(address(src), address(dst), 64).tcp(src_port, dst_port, seq, 60_000);
    let builder = flags(builder);
    let mut packet = Vec::with_capacity(builder.size(payload.len()));
    builder.write(&mut packet, payload).expect("a packet that fits");
    packet
}

/// Prints the memory per flow of `count` flows, and the memory that a flood of SYNs adds.
pub(crate) fn memory(station: &mut Station, count: u32, flood: u32) {
    let mut now = Instant::ZERO;
    let mut put = |station: &mut Station, side: Side, packet| {
        now += std::time::Duration::from_millis(2);
        station.handle_packet(now, side.port(), Packet::new(packet));
        while station.poll_transmit(now).is_some() {}
        now
    };
    let mut flows = Flows::new(count);
    for _ in 0..2 * count {
        let packet = flows.data(0);
        let (_, ack) = flows.arrived(&packet).expect("a packet of its own");
        let mut at = put(station, Side::Wired, packet);
        if let Some(ack) = ack {
            at = put(station, Side::Wireless, ack);
        }
        station.handle_timeout(at);
    }
    let settled = put(station, Side::Wired, flows.data(0));
    let before = station.status(settled);
    let mut last = settled;
    for index in 0..flood {
        // These ports differ from those of the flows.
        let syn = built(index + 2 * HOSTS, Side::Wired, &[], |builder| builder.syn(), index);
        last = put(station, Side::Wired, syn);
    }
    let after = station.status(last);
    assert_eq!((before.flows, after.flows), (count as usize, count as usize));
    println!(
        "{} flows: {} bytes each; after {flood} SYNs of others: {} flows, {} unproven, {} evicted, {} bytes more in all",
        before.flows,
        before.memory / before.flows.max(1),
        after.flows,
        after.unproven,
        after.evicted,
        after.memory.saturating_sub(before.memory),
    );
}
