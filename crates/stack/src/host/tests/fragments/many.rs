//! Limits of incomplete packets, and fragments of any kind in any order.

use proptest::prelude::*;

use super::*;

#[test]
fn one_source_takes_its_own_room_and_the_oldest_goes_first() {
    let peer_quota = Quota { fragments: ByteCount(4_000), ..Quota::PEER };
    let (mut target, whole) = (Target::with(Quota::ALL, peer_quota), datagram(V4, 1_000));
    let other = datagram(V6, 100);
    target.take(cut(&other, 1, 0, 24));
    for id in 1..=4 {
        target.take(cut(&whole, id, 0, 504));
    }
    // Three packets fit: 512 + 96 + 504 + 20 + 20 bytes each.
    assert_eq!((target.host.fragments.len(), target.counts()), ((4, 2), [5, 0, 1]));
    for (id, received) in [(1, 0), (3, 1), (4, 1)] {
        assert_eq!(target.take(cut(&whole, id, 504, 1_008)).len(), received, "{id}");
    }
    assert_eq!(target.take(cut(&other, 1, 24, 108)), [100], "another source keeps what it has");
}

#[test]
fn all_sources_share_the_hosts_room() {
    let quota = Quota { fragments: ByteCount(4_000), ..Quota::ALL };
    let mut target = Target::with(quota, Quota::PEER);
    let from = |host: u8| {
        let flow = FlowId { local: ([10, 0, 0, host], 999).into(), remote: address(V4) };
        udp::emit(&flow, 64, &bytes(1_000)).data
    };
    for host in 10..=13 {
        target.take(cut(&from(host), 1, 0, 504));
    }
    assert_eq!((target.host.fragments.len(), target.counts()), ((3, 3), [4, 0, 1]));
    assert!(target.take(cut(&from(10), 1, 504, 1_008)).is_empty());
    assert_eq!(target.take(cut(&from(13), 1, 504, 1_008)), [1_000]);
}

/// An arbitrary fragment: source, identification, offset and length in units of eight bytes,
/// whether more follow, extra bytes at its end.
type Odd = (u8, u8, u16, usize, bool, usize, u64);

fn odd() -> impl Strategy<Value = Odd> {
    let offset = prop_oneof![8 => 0u16..12, 1 => any::<u16>()];
    (9u8..12, 0u8..3, offset, 0usize..12, any::<bool>(), 0usize..2, 0u64..9_000)
}

proptest! {
    #[test]
    fn fragments_of_any_kind_do_no_harm(odds in prop::collection::vec(odd(), 1..120), v6 in any::<bool>()) {
        let quota = Quota { fragments: ByteCount(6_000), ..Quota::ALL };
        let peer_quota = Quota { fragments: ByteCount(3_000), ..Quota::PEER };
        let mut target = Target::with(quota, peer_quota);
        let whole = datagram(if v6 { V6 } else { V4 }, 400);
        for (source, id, offset, eights, more, rest, pause) in odds {
            target.pass(Duration::from_millis(pause));
            let mut data = cut_as(&whole, id, 0, eights * 8 + rest, more);
            if v6 {
                data[23] = source;
                data[42..44].copy_from_slice(&(offset << 3 | u16::from(more)).to_be_bytes());
            } else {
                data[15] = source;
                let flag = if more { 0x2000 } else { 0 };
                data[6..8].copy_from_slice(&(offset & 0x1fff | flag).to_be_bytes());
                data = with_sum(data);
            }
            target.host.handle_packet(target.now, PORT, Packet::new(data));
            while target.host.poll_transmit(target.now).is_some() {}
            assert!(target.host.fragments.held() <= quota.fragments);
        }
        target.pass(Duration::from_secs(60));
        target.is_empty();
    }

    #[test]
    fn any_cuts_in_any_order_make_the_same_datagram(
        ends in prop::collection::btree_set(1usize..125, 0..20),
        order in any::<u64>(),
        v6 in any::<bool>(),
    ) {
        let whole = datagram(if v6 { V6 } else { V4 }, 1_000);
        let ends: Vec<usize> = ends.into_iter().map(|eights| eights * 8).chain([1_008]).collect();
        let starts = [0].into_iter().chain(ends.iter().copied());
        let mut parts: Vec<_> = starts.zip(&ends).map(|(start, end)| cut(&whole, 1, start, *end)).collect();
        // A Fisher-Yates shuffle with a one-line generator.
        let mut state = order | 1;
        for at in (1..parts.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            parts.swap(at, (state >> 33) as usize % (at + 1));
        }
        let mut target = Target::new();
        let received: Vec<usize> = parts.into_iter().flat_map(|part| target.take(part)).collect();
        assert_eq!(received, [1_000]);
        target.is_empty();
    }
}
