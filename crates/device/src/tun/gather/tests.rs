use airtcp_wire::each_segment;

use super::super::testkit::{self, Flow};
use super::*;

fn datagram(dst: &str, port: u16, len: usize) -> Packet {
    let flow = Flow { dst: dst.parse().unwrap(), tcp: false, port };
    let mut packet = testkit::packet(flow, &testkit::numbered(len), None);
    let tail = std::mem::take(&mut packet.tail);
    tail.iter().for_each(|part| packet.data.extend_from_slice(part));
    packet
}

/// Returns the payload lengths that each gathered packet contains; checks that its parts are
/// unchanged.
#[track_caller]
fn gathered(packets: &[Packet]) -> Vec<Vec<usize>> {
    let mut queue = VecDeque::from(packets.to_vec());
    let (mut out, mut parts, mut gone) = (Vec::new(), Vec::new(), 0);
    while !queue.is_empty() {
        let before = queue.len();
        let taken = gather(&mut queue, |_| gone += 1);
        assert_eq!(before - queue.len(), taken);
        let packet = queue.pop_front().unwrap();
        let mut sizes = Vec::new();
        each_segment(&packet, |segment| {
            sizes.push(segment.data.len() - Layout::of(&segment.data).map_or(0, |l| l.payload));
            parts.push(segment.clone());
        });
        assert_eq!(sizes.len(), if packet.segment_size.is_some() { taken + 1 } else { 1 });
        out.push(sizes);
    }
    assert_eq!(gone, packets.len() - out.len());
    // Splitting completes checksums and numbers the segments.
    let whole = |packet: &Packet| {
        let mut whole = Vec::new();
        each_segment(packet, |segment| whole.clone_from(&segment.data));
        if whole[0] == 0x45 {
            whole[4..6].fill(0);
            whole[10..12].fill(0);
        }
        whole
    };
    let [sent, came] = [packets, &parts].map(|all| all.iter().map(whole).collect::<Vec<_>>());
    assert!(sent == came, "they come out as they went in");
    out
}

#[test]
fn datagrams_that_follow_each_other_are_one_packet_until_a_shorter_one() {
    for dst in ["10.0.0.1", "fd00::1"] {
        let of = |len| datagram(dst, 9, len);
        assert_eq!(gathered(&[of(100), of(100), of(100)]), [[100; 3]]);
        assert_eq!(
            gathered(&[of(100), of(100), of(1), of(100), of(101), of(5)]),
            [vec![100, 100, 1], vec![100], vec![101, 5]]
        );
        let many: Vec<_> = (0..130).map(|_| of(100)).collect();
        assert_eq!(gathered(&many).iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 2]);
        let long: Vec<_> = (0..47).map(|_| of(1400)).collect();
        assert_eq!(gathered(&long).iter().map(Vec::len).collect::<Vec<_>>(), [46, 1], "of 64 KiB");
    }
}

#[test]
fn datagrams_of_other_flows_are_not_gathered() {
    let one = datagram("10.0.0.1", 9, 100);
    let mut other_ttl = one.clone();
    other_ttl.data[8] -= 1;
    let sum = checksum(&[&other_ttl.data[..10], &[0, 0], &other_ttl.data[12..20]].concat());
    other_ttl.data[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut with_more = one.clone();
    with_more.data.push(7);
    for other in [
        datagram("10.0.0.1", 10, 100),
        datagram("10.0.0.3", 9, 100),
        datagram("fd00::1", 9, 100),
        datagram("10.0.0.1", 9, 0),
        other_ttl,
    ] {
        assert_eq!(gathered(&[one.clone(), other.clone()]).len(), 2);
        assert_eq!(gathered(&[other, one.clone()]).len(), 2);
    }
    // A complete checksum may be wrong and has to arrive unchanged, as have bytes behind a
    // datagram.
    let closed = Packet { checksum: Checksum::Full, ..one.clone() };
    let tcp =
        testkit::packet(Flow { dst: "10.0.0.1".parse().unwrap(), tcp: true, port: 9 }, &[], None);
    for other in [closed, with_more, tcp] {
        for pair in [[one.clone(), other.clone()], [other.clone(), one.clone()]] {
            let mut queue = VecDeque::from(pair.to_vec());
            assert_eq!(
                (gather(&mut queue, |_| ()), queue.make_contiguous()),
                (0, &mut pair.clone()[..])
            );
        }
    }
}
