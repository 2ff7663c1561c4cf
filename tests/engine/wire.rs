//! Packets of the engine, read by a reader other than their writer.

use airtcp_types::{Event, EventKind, ExtSeq, Packet, RangeSet, SeqNumber, SeqRange};
use airtcp_wire::options::TcpOptions;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

use crate::world::Observer;

/// Follows both directions and asserts that nothing the peer has SACKed is sent again.
#[derive(Default)]
pub(crate) struct SackSniffer {
    ends: [Sacked; 2],
}

/// What an end knows to be SACKed of what it sent.
#[derive(Default)]
struct Sacked {
    ranges: RangeSet,
    /// The blocks of the segment that arrived last: they count if it is accepted.
    arrived: Vec<SeqRange>,
    /// The highest byte sent, to unwrap numbers by.
    highest: Option<ExtSeq>,
    /// All that was sent, by transmission.
    sent: Vec<SeqRange>,
    /// After a time-out the sender may think that the receiver reneged.
    timed_out: bool,
}

impl Observer for SackSniffer {
    fn on_event(&mut self, host: usize, event: &Event) {
        let end = &mut self.ends[host];
        match event.kind {
            EventKind::Timeout { .. } => end.timed_out = true,
            EventKind::Received { .. } => {
                end.arrived.drain(..).for_each(|block| end.ranges.insert(block));
            }
            _ => {}
        }
    }

    fn on_arrival(&mut self, to: usize, packet: &Packet) {
        let Some(segment) = read(packet) else { return };
        let end = &mut self.ends[to];
        let Some(highest) = end.highest else { return };
        let range = |(start, stop)| SeqRange::new(highest.nearest(start), highest.nearest(stop));
        let blocks: Vec<_> = segment.sack.into_iter().map(range).collect();
        // RFC 2883 section 4: the first block inside the second reports a duplicate.
        let reports = matches!(blocks[..], [first, second, ..] if second.covers(first));
        // What was never sent nobody believes.
        let sent = |block: &SeqRange| block.end <= highest;
        end.arrived = blocks.into_iter().skip(usize::from(reports)).filter(sent).collect();
    }

    fn on_departure(&mut self, from: usize, packet: &Packet) {
        let Some(segment) = read(packet) else { return };
        let end = &mut self.ends[from];
        let start = end.highest.map_or_else(
            || ExtSeq::starting_at(segment.seq),
            |highest| highest.nearest(segment.seq),
        );
        let range = SeqRange::new(start, start + segment.len);
        let is_again = !range.is_empty() && !end.timed_out && end.ranges.covers(range);
        // Of a segment that only a liar SACKs in part, a narrow window may let that part out alone.
        let is_part = || end.sent.iter().any(|r| r.covers(range) && !end.ranges.covers(*r));
        assert!(!is_again || is_part(), "{range:?} is sent again although it was SACKed");
        end.sent.push(range);
        end.highest = Some(end.highest.map_or(range.end, |highest| highest.max(range.end)));
    }
}

/// A TCP segment as etherparse reads it.
pub(crate) struct Segment {
    pub(crate) seq: SeqNumber,
    /// Payload and FIN: what it takes of the sequence space, the SYN apart.
    pub(crate) len: u64,
    pub(crate) sack: Vec<(SeqNumber, SeqNumber)>,
    /// The segment that a special ACK says was corrupted (HACK 3.3).
    pub(crate) corrupted: Option<SeqNumber>,
}

/// Reads a packet, and asserts that its lengths and checksums are right.
pub(crate) fn read(packet: &Packet) -> Option<Segment> {
    let sliced = SlicedPacket::from_ip(&packet.data).expect("a well-formed IP packet");
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { return None };
    let checksum = match &sliced.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header().to_header();
            assert_eq!(header.calc_header_checksum(), header.header_checksum, "IPv4 checksum");
            tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination())
        }
        Some(NetSlice::Ipv6(ip)) => {
            tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination())
        }
        other => panic!("neither IPv4 nor IPv6: {other:?}"),
    };
    assert_eq!(checksum.unwrap(), tcp.checksum(), "TCP checksum");
    let options = TcpOptions::parse(tcp.options());
    assert_eq!(options.malformed, 0);
    Some(Segment {
        seq: SeqNumber(tcp.sequence_number()),
        len: tcp.payload().len() as u64 + u64::from(tcp.fin()),
        sack: options.sack.as_slice().to_vec(),
        corrupted: options.hack_ack.map(|special| special.corrupted),
    })
}
