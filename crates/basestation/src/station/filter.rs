//! The filter of duplicate ACKs that the fixed host need not receive, because the radio still holds
//! the missing segment (TCP-ECN 6.2.1.2, case 4).

use airtcp_link::radio::FrameNo;
use airtcp_types::SeqRange;

use super::flow::Flow;
use super::segment::{Segment, flag};

/// Whether a segment of the mobile is a duplicate ACK without other information for the fixed host.
///
/// All doubtful segments are none: keepalives and window probes, which have an older sequence
/// number, window updates, responses with ECN bits, special ACKs, DSACKs, reports of data that the
/// station has not seen, and segments with unknown options.
pub(super) fn is_plain_duplicate(flow: &Flow, segment: &Segment) -> bool {
    let (Some(mobile), Some(acked)) = (flow.mobile, flow.acked()) else { return false };
    let others = flag::SYN | flag::FIN | flag::RST | flag::URG | flag::ECE | flag::CWR;
    let options = &segment.options;
    segment.has(flag::ACK)
        && !segment.has(others)
        && segment.reserved == 0
        && segment.data == 0
        && flow.acknowledged_by(segment) == acked
        && segment.window == mobile.window
        && segment.window != 0
        && segment.seq == mobile.end.nxt.wire()
        && options.hack_ack.is_none()
        && options.unknown == 0
        && blocks_are_known(flow, segment)
}

/// Whether every SACK block reports data above the acknowledgement that the station has seen, so
/// that none is a DSACK (RFC 2883).
fn blocks_are_known(flow: &Flow, segment: &Segment) -> bool {
    let Some(acked) = flow.acked() else { return false };
    let blocks = segment.options.sack;
    let mut ranges = blocks.as_slice().iter().map(|(start, end)| {
        let start = acked.nearest(*start);
        SeqRange::new(start, start.nearest(*end))
    });
    let is_known =
        |range: SeqRange| range.start > acked && !range.is_empty() && range.end <= flow.highest();
    // RFC 2883 section 4.2: a first block within the second one is also a DSACK.
    let [first, second] = [ranges.clone().next(), ranges.clone().nth(1)];
    let is_nested = first.zip(second).is_some_and(|(first, second)| second.covers(first));
    ranges.all(is_known) && !is_nested
}

/// Whether to drop a duplicate ACK: the radio holds the missing segment, and the fixed host has not
/// retransmitted it. If it has, it needs the duplicates to count the segments that have left the
/// network.
pub(super) fn hides(flow: &Flow, segment: &Segment, is_held: impl Fn(FrameNo) -> bool) -> bool {
    is_plain_duplicate(flow, segment)
        && flow.acked().is_some_and(|acked| flow.is_radios(acked, is_held))
}

#[cfg(test)]
mod tests {
    use airtcp_types::{Instant, SeqNumber};

    use super::super::flow::Entered;
    use super::super::testkit::{Seg, from_fixed, from_mobile};
    use super::*;

    const NOW: Instant = Instant::ZERO;

    /// The mobile has acknowledged 1000; 1000 to 5000 were seen, each thousand in a frame.
    fn flow() -> Flow {
        let mut flow = Flow::starting_at(SeqNumber(0));
        for seq in (0..5_000).step_by(1_000) {
            let range = flow.on_fixed(NOW, &from_fixed(Seg::data(seq, 1_000)).1);
            let entered = Entered { range, is_new: true };
            flow.on_passed(&entered, FrameNo(u64::from(seq)), |_| true);
        }
        flow.on_mobile(NOW, &from_mobile(plain()).1);
        flow
    }

    fn plain() -> Seg {
        Seg { ts: Some((5, 5)), ..Seg::ack(700, 1_000) }
    }

    fn hidden(seg: Seg) -> bool {
        hides(&flow(), &from_mobile(seg).1, |frame| frame == FrameNo(1_000))
    }

    #[test]
    fn a_duplicate_ack_is_hidden_while_the_radio_has_what_it_asks_for() {
        assert!(hidden(plain()));
        assert!(hidden(Seg { sack: vec![(2_000, 3_000), (4_000, 5_000)], ..plain() }));
        let other = |frame| frame != FrameNo(1_000);
        assert!(!hides(&flow(), &from_mobile(plain()).1, other), "the radio has given it up");
    }

    #[test]
    fn what_says_more_is_never_hidden() {
        let block = |start, end| Seg { sack: vec![(start, end)], ..plain() };
        let cases = [
            ("a new ACK", Seg { ack: 2_000, ..plain() }),
            ("an old ACK", Seg { ack: 500, ..plain() }),
            ("data", Seg { len: 1, ..plain() }),
            ("a FIN", Seg { flags: "FA", ..plain() }),
            ("a SYN", Seg { flags: "SA", ..plain() }),
            ("a reset", Seg { flags: "RA", ..plain() }),
            ("urgent", Seg { flags: "UA", ..plain() }),
            ("ECE", Seg { flags: "EA", ..plain() }),
            ("CWR", Seg { flags: "CA", ..plain() }),
            ("no ACK flag", Seg { flags: "P", ..plain() }),
            ("AccECN", Seg { reserved: 1, ..plain() }),
            ("a window update", Seg { window: 1_001, ..plain() }),
            ("a smaller window", Seg { window: 999, ..plain() }),
            ("a keepalive", Seg { seq: 699, ..plain() }),
            ("a special ACK", Seg { hack_ack: Some(3_000), ..plain() }),
            ("a DSACK below", block(0, 1_000)),
            ("a DSACK at the edge", block(1_000, 2_000)),
            ("a DSACK within", Seg { sack: vec![(2_100, 2_200), (2_000, 3_000)], ..plain() }),
            ("a block never seen", block(4_000, 6_000)),
            ("a block that runs backwards", block(3_000, 2_000)),
            ("an unknown option", Seg { list: Some(&[30, 4, 0, 0]), ..plain() }),
        ];
        for (what, seg) in cases {
            assert!(!hidden(seg), "{what}");
        }
    }

    #[test]
    fn what_the_fixed_host_repairs_itself_is_not_hidden() {
        let mut flow = flow();
        let range = flow.on_fixed(NOW, &from_fixed(Seg::data(1_000, 1_000)).1);
        let again = Entered { range, is_new: false };
        flow.on_passed(&again, FrameNo(9_000), |_| true);
        assert!(!hides(&flow, &from_mobile(plain()).1, |_| true));
    }

    #[test]
    fn a_closed_window_is_never_hidden() {
        let mut flow = flow();
        let closed = || from_mobile(Seg { window: 0, ..plain() }).1;
        flow.on_mobile(NOW, &closed());
        assert!(!hides(&flow, &closed(), |_| true));
    }
}
