//! The mark that shows the mobile that a segment before this one was lost on the wired side
//! (TCP-ECN 6.2.1.2).

use airtcp_types::Packet;

use super::flow::Flow;
use super::segment::{Segment, flag};

/// The marks that the base station sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// The paper's bit, while there is a hole.
    Paper,
    /// CE (RFC 3168), set by the queue towards the radio.
    Ce,
    /// Both.
    #[default]
    Both,
}

impl Mark {
    /// Whether the paper's bit is set.
    pub const fn marks_holes(self) -> bool {
        matches!(self, Self::Paper | Self::Both)
    }

    /// Whether CE is set.
    pub const fn marks_congestion(self) -> bool {
        matches!(self, Self::Ce | Self::Both)
    }
}

/// Marks a recorded segment if its flow has a hole; returns whether it did.
pub(super) fn mark(flow: &Flow, bits: u8, segment: &Segment, packet: &mut Packet) -> bool {
    // A SYN may belong to another flow.
    let is_marked = segment.len() > 0 && !segment.has(flag::SYN) && flow.has_hole();
    if is_marked {
        segment.set_reserved(packet, bits);
    }
    is_marked
}

#[cfg(test)]
mod tests {
    use airtcp_types::mark::TCP_ECN_MARK;
    use airtcp_types::{Checksum, Instant, SeqNumber};
    use airtcp_wire::options::HackForm;
    use airtcp_wire::options::extension::checksum_at;
    use airtcp_wire::{checksum, header_checksum};
    use proptest::prelude::*;

    use super::super::testkit::{Seg, from_fixed, key, key_of};
    use super::*;

    const MARK: u8 = TCP_ECN_MARK;

    fn has_mark(packet: &Packet) -> bool {
        Segment::read(packet).unwrap().reserved & MARK != 0
    }

    /// Processes segments of 1000 bytes with these numbers; returns which of them are marked.
    fn marks(numbers: &[u32]) -> Vec<bool> {
        let mut flow = Flow::starting_at(SeqNumber(0));
        let mut marked = |number: &u32| {
            let (mut packet, segment) = from_fixed(Seg::data(number * 1_000, 1_000));
            flow.on_fixed(Instant::ZERO, &segment);
            let is_marked = mark(&flow, MARK, &segment, &mut packet);
            assert_eq!(has_mark(&packet), is_marked);
            is_marked
        };
        numbers.iter().map(&mut marked).collect()
    }

    #[test]
    fn the_segment_that_makes_a_hole_is_marked_and_the_one_that_fills_it_is_not() {
        assert_eq!(marks(&[0, 1, 2]), [false; 3]);
        assert_eq!(marks(&[0, 2, 3, 1, 4]), [false, true, true, false, false]);
        assert_eq!(marks(&[0, 2, 4, 1, 3, 5]), [false, true, true, true, false, false]);
    }

    #[test]
    fn segments_without_data_and_syns_are_never_marked() {
        let mut flow = Flow::starting_at(SeqNumber(0));
        flow.on_fixed(Instant::ZERO, &from_fixed(Seg::data(1_000, 10)).1);
        let (mut packet, segment) = from_fixed(Seg::data(1_010, 0));
        assert!(flow.has_hole() && !mark(&flow, MARK, &segment, &mut packet));
        let (mut packet, segment) = from_fixed(Seg { flags: "S", ..Seg::data(7_000, 0) });
        assert!(!mark(&flow, MARK, &segment, &mut packet));
    }

    fn tcp_of(packet: &Packet, is_v4: bool) -> &[u8] {
        &packet.data[if is_v4 { 20 } else { 40 }..]
    }

    proptest! {
        #[test]
        fn a_mark_leaves_every_checksum_as_it_was(
            seq in any::<u32>(),
            ack in any::<u32>(),
            window in any::<u16>(),
            len in 1usize..40,
            form in prop::option::of(prop_oneof![Just(HackForm::Kinds), Just(HackForm::ExId)]),
            nops in 0usize..4,
            is_v4 in any::<bool>(),
            hit in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let key = if is_v4 { key() } else { key_of(1) };
            let seg = Seg { ack, window, hack: form, nops, ..Seg::data(seq, len) };
            let mut packet = seg.packet(key.fixed, key.mobile);
            if let Some(hit) = hit {
                let from = packet.data.len() - len;
                let at = from + hit.index(len);
                packet.data[at] ^= 0x40;
            }
            let segment = Segment::read(&packet).unwrap();
            prop_assert_eq!(segment.is_intact, hit.is_none());
            let before = packet.clone();
            segment.set_reserved(&mut packet, MARK);
            let after = Segment::read(&packet).unwrap();
            prop_assert!(has_mark(&packet));
            prop_assert_eq!(after.is_intact, hit.is_none(), "what was corrupted stays so");
            let (src, dst) = (key.fixed.ip(), key.mobile.ip());
            let (old, new) = (tcp_of(&before, is_v4), tcp_of(&packet, is_v4));
            if form.is_some() {
                prop_assert!(header_checksum::verify_header(src, dst, new));
                if nops % 2 == 0 {
                    prop_assert_eq!(&old[16..18], &new[16..18], "the two changes cancel");
                }
            }
            prop_assert_eq!(&old[old.len() - len..], &new[new.len() - len..]);
        }
    }

    #[test]
    fn an_offered_hack_on_a_syn_stays_zero() {
        let seg = Seg { flags: "S", hack: Some(HackForm::Kinds), ..Seg::data(5, 1) };
        let (mut packet, segment) = from_fixed(seg);
        segment.set_reserved(&mut packet, MARK);
        let list = &packet.data[40..44];
        let at = checksum_at(list).unwrap();
        assert_eq!(list[at..at + 2], [0, 0]);
        assert!(Segment::read(&packet).unwrap().is_intact);
    }

    #[test]
    fn a_mark_twice_is_a_mark() {
        let (mut packet, segment) = from_fixed(Seg { reserved: MARK, ..Seg::data(5, 100) });
        let before = packet.clone();
        segment.set_reserved(&mut packet, MARK);
        assert_eq!(packet, before);
        packet.checksum = Checksum::Partial;
        assert_eq!(Segment::read(&packet), None);
        assert!(checksum::verify(&packet.data[..20]));
    }
}
