//! A validated view of the TCP segment in an IP packet, and header edits that update checksums
//! incrementally.

use std::net::SocketAddr;

use airtcp_types::{Checksum, FlowId, Packet, SeqNumber};
use airtcp_wire::options::{TcpOptions, Timestamps};
use airtcp_wire::tcp::{self, Editor, Header, View};

pub(super) use airtcp_wire::tcp::flag;

/// The hop limit of packets that the base station generates.
const HOP_LIMIT: u8 = 64;

/// The header fields of a complete TCP segment in an IP packet.
///
/// There is none for fragments, super-segments, packets with a partial checksum, and inconsistent
/// headers: these pass without inspection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) src: SocketAddr,
    pub(super) dst: SocketAddr,
    pub(super) seq: SeqNumber,
    /// Valid only with [`flag::ACK`].
    pub(super) ack: SeqNumber,
    pub(super) flags: u8,
    /// The four bits after the data offset, which TCP-ECN and AccECN use.
    pub(super) reserved: u8,
    /// The window field, before scaling.
    pub(super) window: u16,
    pub(super) options: TcpOptions,
    /// Bytes of data.
    pub(super) data: u32,
    /// Whether the TCP checksum is valid.
    pub(super) is_intact: bool,
    editor: Editor,
}

impl Segment {
    /// Whether [`read`](Self::read) accepts the packet. Does not read the payload.
    pub(super) fn is_one(packet: &Packet) -> bool {
        view(packet).is_some()
    }

    pub(super) fn read(packet: &Packet) -> Option<Self> {
        let view = view(packet)?;
        let fields = view.fields();
        Some(Self {
            src: view.src(),
            dst: view.dst(),
            seq: fields.seq(),
            ack: fields.ack(),
            flags: fields.flags(),
            reserved: fields.reserved(),
            window: fields.window(),
            options: view.options()?,
            // An IP packet is at most 65,535 bytes long.
            data: view.data_len() as u32,
            is_intact: packet.checksum == Checksum::Verified || view.is_intact(),
            editor: view.editor(),
        })
    }

    pub(super) const fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// SEG.LEN: the data, plus one for SYN and one for FIN.
    pub(super) const fn len(&self) -> u32 {
        self.data + self.has(flag::SYN) as u32 + self.has(flag::FIN) as u32
    }

    /// Sets bits in the byte with the data offset. `packet` must be the packet that this was read
    /// from.
    pub(super) fn set_reserved(&self, packet: &mut Packet, bits: u8) {
        self.editor.set_reserved(&mut packet.data, bits);
    }

    /// Sets the window field. `packet` must be the packet that this was read from.
    pub(super) fn set_window(&self, packet: &mut Packet, window: u16) {
        self.editor.set_window(&mut packet.data, window);
    }
}

/// Returns a view of the complete segment in a packet.
fn view(packet: &Packet) -> Option<View<'_>> {
    let is_whole = packet.segment_size.is_none() && packet.checksum != Checksum::Partial;
    is_whole.then(|| View::checked(&packet.data)).flatten()
}

/// An ACK that the base station generates in the name of one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MadeAck {
    pub(super) src: SocketAddr,
    pub(super) dst: SocketAddr,
    pub(super) seq: SeqNumber,
    pub(super) ack: SeqNumber,
    pub(super) window: u16,
    pub(super) timestamps: Option<Timestamps>,
}

impl MadeAck {
    /// Builds the packet; `None` if the addresses are of different families.
    pub(super) fn build(&self) -> Option<Packet> {
        let Self { src: local, dst: remote, seq, ack, window, timestamps } = *self;
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        let header = Header { seq, ack: Some(ack), window, options, ..Header::default() };
        let is_one_family = local.is_ipv4() == remote.is_ipv4();
        is_one_family.then(|| tcp::emit(&FlowId { local, remote }, HOP_LIMIT, &header, &[]))
    }
}

#[cfg(test)]
mod tests {
    use airtcp_wire::checksum;
    use airtcp_wire::options::HackForm;

    use super::super::testkit::{Seg, enclose, from_mobile, key, key_of};
    use super::*;

    const TCP: u8 = 6;

    #[test]
    fn a_segment_is_read_in_both_families() {
        for number in 0..2 {
            let key = key_of(number);
            let seg =
                Seg { flags: "FA", ack: 9, window: 77, ts: Some((3, 4)), ..Seg::data(5, 100) };
            let segment = Segment::read(&seg.packet(key.fixed, key.mobile)).unwrap();
            assert_eq!((segment.src, segment.dst), (key.fixed, key.mobile));
            assert_eq!((segment.seq, segment.ack), (SeqNumber(5), SeqNumber(9)));
            assert_eq!((segment.window, segment.data, segment.len()), (77, 100, 101));
            assert!(segment.is_intact && segment.has(flag::FIN) && !segment.has(flag::SYN));
            assert_eq!(segment.options.timestamps, Some(Timestamps { val: 3, ecr: 4 }));
        }
    }

    #[test]
    fn extension_headers_are_stepped_over_but_no_route_that_goes_on() {
        let key = key_of(1);
        let (src, dst) = (key.fixed.ip(), key.mobile.ip());
        let tcp = Seg::data(5, 10).packet(key.fixed, key.mobile).data.split_off(40);
        let with = |first: u8, extensions: &[u8]| {
            let payload = [extensions, &tcp].concat();
            Segment::read(&Packet::new(enclose(src, dst, 0, first, &payload)))
        };
        let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
        let destination = [TCP, 0, 1, 4, 0, 0, 0, 0];
        let both = [hop_by_hop, destination].concat();
        assert!(with(0, &both).is_some_and(|segment| segment.is_intact));
        assert!(with(43, &[TCP, 0, 0, 0, 0, 0, 0, 0]).is_some());
        assert_eq!(with(43, &[TCP, 0, 0, 1, 0, 0, 0, 0]), None);
        assert!(with(44, &[TCP, 0, 0, 0, 0, 0, 0, 0]).is_some(), "an atomic fragment");
        assert_eq!(with(44, &[TCP, 0, 0, 1, 0, 0, 0, 0]), None, "a fragment");
    }

    #[test]
    fn what_is_not_one_whole_segment_is_none() {
        let whole = Seg::data(5, 10).packet(key().fixed, key().mobile);
        let edit = |edit: &dyn Fn(&mut Packet)| {
            let mut packet = whole.clone();
            edit(&mut packet);
            packet.data[10..12].fill(0);
            let sum = checksum::checksum(&packet.data[..20]).to_be_bytes();
            packet.data[10..12].copy_from_slice(&sum);
            assert_eq!(Segment::is_one(&packet), Segment::read(&packet).is_some());
            Segment::read(&packet)
        };
        assert!(edit(&|_| {}).is_some());
        assert_eq!(edit(&|packet| packet.data[6] |= 0x20), None, "more fragments");
        assert_eq!(edit(&|packet| packet.data[7] = 1), None, "a later fragment");
        assert_eq!(edit(&|packet| packet.data[9] = 17), None, "UDP");
        assert_eq!(edit(&|packet| packet.data[3] = 255), None, "longer than it is");
        assert_eq!(edit(&|packet| packet.data[3] = 30), None, "too short for a TCP header");
        assert_eq!(
            edit(&|packet| packet.data[32] = 0xf0),
            None,
            "a header longer than the segment"
        );
        assert_eq!(edit(&|packet| packet.data[32] = 0x40), None, "a header shorter than any");
        assert_eq!(edit(&|packet| packet.segment_size = Some(5)), None);
        assert_eq!(edit(&|packet| packet.checksum = Checksum::Partial), None);
        let mut bad = whole.clone();
        bad.data[11] ^= 1;
        assert_eq!(Segment::read(&bad), None, "no host takes it");
        assert!(Segment::is_one(&whole) && !Segment::is_one(&bad));
    }

    #[test]
    fn another_window_leaves_checksums_right() {
        for hack in [None, Some(HackForm::Kinds)] {
            let (mut packet, segment) = from_mobile(Seg { hack, window: 513, ..Seg::data(5, 33) });
            segment.set_window(&mut packet, 0);
            let after = Segment::read(&packet).unwrap();
            assert!(after.is_intact && after.window == 0);
        }
    }

    #[test]
    fn an_ack_that_is_made_is_one() {
        for number in 0..2 {
            let key = key_of(number);
            let timestamps = Some(Timestamps { val: 7, ecr: 8 });
            let made = MadeAck {
                src: key.mobile,
                dst: key.fixed,
                seq: SeqNumber(1),
                ack: SeqNumber(2),
                window: 3,
                timestamps,
            };
            let segment = Segment::read(&made.build().unwrap()).unwrap();
            assert!(segment.is_intact && segment.flags == flag::ACK && segment.len() == 0);
            assert_eq!((segment.src, segment.dst), (key.mobile, key.fixed));
            assert_eq!((segment.seq.0, segment.ack.0, segment.window), (1, 2, 3));
            assert_eq!(segment.options, TcpOptions { timestamps, ..TcpOptions::default() });
            let mixed = MadeAck { dst: key_of(1 - number).fixed, ..made };
            assert_eq!(mixed.build(), None);
        }
    }
}
