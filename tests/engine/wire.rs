//! Reads the engine's packets with a parser other than the engine's own.

use airtcp_types::{Event, EventKind, ExtSeq, Packet, RangeSet, SeqNumber, SeqRange};
use airtcp_wire::options::TcpOptions;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

use crate::world::Observer;

/// Checks both directions: data that the peer has SACKed is not retransmitted.
#[derive(Default)]
pub(crate) struct SackSniffer {
    ends: [Sacked; 2],
}

/// The data of one end that its peer has SACKed.
#[derive(Default)]
struct Sacked {
    ranges: RangeSet,
    /// The blocks of the latest segment, which count if the segment is accepted.
    arrived: Vec<SeqRange>,
    /// The end of the highest data sent, for unwrapping sequence numbers.
    highest: Option<ExtSeq>,
    /// The range of every transmission.
    sent: Vec<SeqRange>,
    /// After a time-out the sender may assume that the receiver reneged.
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
        // Blocks for data that was never sent are ignored.
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
        // If a liar SACKs only part of a segment, a narrow window may allow that part alone.
        let is_part = || end.sent.iter().any(|r| r.covers(range) && !end.ranges.covers(*r));
        assert!(!is_again || is_part(), "{range:?} is sent again although it was SACKed");
        end.sent.push(range);
        end.highest = Some(end.highest.map_or(range.end, |highest| highest.max(range.end)));
    }
}

/// A TCP segment as etherparse reads it.
pub(crate) struct Segment {
    pub(crate) seq: SeqNumber,
    /// The length in sequence space of the payload and the FIN, without the SYN.
    pub(crate) len: u64,
    pub(crate) sack: Vec<(SeqNumber, SeqNumber)>,
    /// The segment that a special ACK reports as corrupted (HACK 3.3).
    pub(crate) corrupted: Option<SeqNumber>,
}

/// Parses a packet, and asserts that its lengths and checksums are correct.
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
