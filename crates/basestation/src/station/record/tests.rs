//! Tests of records.

use proptest::prelude::*;

use super::super::testkit::{Seg, from_fixed, from_mobile, key, key_of};
use super::*;

const NOW: Instant = Instant::ZERO;

fn fixed(flow: &mut Flow, seg: Seg) {
    flow.on_fixed(NOW, &from_fixed(seg).1);
}

fn mobile(flow: &mut Flow, seg: Seg) {
    flow.on_mobile(NOW, &from_mobile(seg).1);
}

/// A flow with a hole and with data from both ends, starting at `start`.
fn flow(start: u32) -> Flow {
    let at = |offset: u32| start.wrapping_add(offset);
    let mut flow = Flow::unheard();
    fixed(&mut flow, Seg { flags: "S", ack: 0, wscale: Some(3), ..Seg::data(start, 0) });
    mobile(&mut flow, Seg { flags: "SA", wscale: Some(7), ..Seg::ack(0, at(1)) });
    fixed(&mut flow, Seg::data(at(1), 1_000));
    let ts = Some((70, 80));
    mobile(&mut flow, Seg { ts, len: 10, window: 500, ..Seg::ack(1, at(501)) });
    fixed(&mut flow, Seg { flags: "FA", ack: 11, ..Seg::data(at(2_001), 1_000) });
    flow
}

fn bytes(record: &FlowRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

#[test]
fn a_flow_is_the_same_at_another_station() {
    for start in [1_000, u32::MAX - 1_500] {
        let mut flow = flow(start);
        (flow.frozen, flow.rtt) = (Some(NOW), Some(Duration::from_millis(40)));
        let record = FlowRecord::of(&key(), &flow);
        let bytes = bytes(&record);
        let read = FlowRecord::decode(&mut &bytes[..]).unwrap();
        assert_eq!(read, record);
        let mut moved = Flow::from_record(NOW, &read).unwrap();
        assert_eq!(FlowRecord::of(&key(), &moved), record);
        assert!(moved.has_hole() && record.transfer.fixed.unwrap().has_ended);
        assert_eq!(moved.last_ack(&key(), 0), flow.last_ack(&key(), 0));
        // Both continue in the same way.
        for flow in [&mut flow, &mut moved] {
            fixed(flow, Seg::data(start.wrapping_add(1_001), 1_000));
            assert!(!flow.has_hole());
            mobile(flow, Seg { flags: "FA", ..Seg::ack(11, start.wrapping_add(3_002)) });
            fixed(flow, Seg { ack: 12, ..Seg::data(start.wrapping_add(3_002), 0) });
            assert!(flow.is_finished());
        }
    }
}

#[test]
fn a_flow_of_many_gigabytes_is_the_same() {
    let mut flow = flow(0);
    let mut at = 3_002_u32;
    for _ in 0..20 {
        for _ in 0..10 {
            fixed(&mut flow, Seg::data(at, 1_000));
            at = at.wrapping_add(1_000 + 40_000_000);
            mobile(&mut flow, Seg::ack(11, at));
            fixed(&mut flow, Seg::data(at, 1_000));
        }
        let record = FlowRecord::of(&key(), &flow);
        let moved = Flow::from_record(NOW, &record).unwrap();
        assert_eq!(FlowRecord::of(&key(), &moved), record);
    }
    assert!(flow.highest().0 > 2 << 32);
    assert_eq!(FlowRecord::of(&key(), &flow).transfer.fixed.unwrap().opened, None);
}

#[test]
fn a_sender_that_waits_for_its_window_is_frozen_after_the_move() {
    let mut record = FlowRecord::of(&key(), &flow(0));
    assert_eq!(Flow::from_record(NOW, &record).unwrap().frozen, None);
    record.transfer.is_reminded = true;
    assert_eq!(Flow::from_record(NOW, &record).unwrap().frozen, Some(NOW));
}

#[test]
fn what_the_new_station_has_seen_stays_and_acknowledgements_only_rise() {
    let record = FlowRecord { is_frozen: true, ..FlowRecord::of(&key(), &flow(0)) };
    // The mobile has acknowledged more here than there, as much, or less: its last window, its
    // last timestamp, and whether the sender waits are those of the later segment.
    let cases = [
        (2_500, 2_500, 900, 90, None),
        (501, 501, 900, 90, Some(NOW)),
        (400, 501, 500, 70, Some(NOW)),
    ];
    for (ack, expected, window, stamp, frozen) in cases {
        let mut flow = Flow::starting_at(SeqNumber(ack));
        mobile(&mut flow, Seg { ts: Some((90, 80)), window: 900, ..Seg::ack(11, ack) });
        fixed(&mut flow, Seg { ack: 11, ..Seg::data(3_002, 500) });
        flow.absorb(NOW, &record).unwrap();
        let made = flow.last_ack(&key(), 7).unwrap();
        assert_eq!((made.ack.0, made.seq.0), (expected, 11));
        assert_eq!(made.timestamps.map(|stamp| stamp.val), Some(stamp));
        assert_eq!(flow.has_hole(), expected == 501);
        assert_eq!((flow.frozen, flow.mobile.unwrap().window), (frozen, window));
        assert_eq!(flow.highest().wire(), SeqNumber(3_502));
        flow.absorb(NOW, &record).unwrap();
        assert_eq!(flow.last_ack(&key(), 7).unwrap(), made, "a second copy changes nothing");
    }
    // Only the fixed host has been heard.
    let mut flow = Flow::starting_at(SeqNumber(3_002));
    fixed(&mut flow, Seg { ack: 11, ..Seg::data(3_002, 500) });
    flow.absorb(NOW, &record).unwrap();
    assert_eq!((flow.frozen, flow.acked()), (Some(NOW), Some(flow.floor)));
    assert!(flow.has_hole());
}

#[test]
fn the_record_of_an_earlier_connection_changes_nothing() {
    let record = FlowRecord::of(&key(), &flow(0));
    let far = Flow::starting_at(SeqNumber(1 << 31));
    let mut far_mobile = Flow::starting_at(SeqNumber(2_500));
    mobile(&mut far_mobile, Seg::ack(1 << 31, 2_500));
    for mut new in [flow(5_000), far, far_mobile] {
        let before = FlowRecord::of(&key(), &new);
        new.absorb(NOW, &record).unwrap();
        assert_eq!(FlowRecord::of(&key(), &new), before);
    }
}

#[test]
fn a_record_that_no_flow_can_have_is_refused() {
    let record = FlowRecord::of(&key(), &flow(1_000));
    let refused = |change: &dyn Fn(&mut FlowRecord)| {
        let mut record = record.clone();
        change(&mut record);
        let own = Flow::from_record(NOW, &record).map(drop);
        let absorbed = flow(1_000).absorb(NOW, &record);
        assert_eq!(own, absorbed);
        own.unwrap_err().to_string()
    };
    let end = |record: &mut FlowRecord, change: &dyn Fn(&mut EndRecord)| {
        change(record.transfer.fixed.as_mut().unwrap());
    };
    type Change<'a> = &'a dyn Fn(&mut FlowRecord);
    let cases: [(Change<'_>, &str); 13] = [
        (&|of| of.transfer.mobile = None, "mobile"),
        (&|of| end(of, &|end| end.seq = 1_000), "sequence number"),
        (&|of| end(of, &|end| end.seq = 1 << 31), "sequence number"),
        (&|of| end(of, &|end| end.acked = Some(12)), "acknowledgement of the fixed host"),
        (&|of| end(of, &|end| end.opened = Some(5_000)), "first sequence number"),
        (&|of| end(of, &|end| end.window_scale = Some(15)), "window scale"),
        (&|of| end(of, &|end| end.window = u32::MAX), "window"),
        (&|of| of.transfer.mobile.as_mut().unwrap().acked = Some(1_502), "acknowledgement"),
        (&|of| of.transfer.fixed = None, "acknowledgement of data that was not sent"),
        (&|of| of.seen[0].0 = 1_400, "range"),
        (&|of| of.seen[0].1 = 3_001, "range"),
        (&|of| of.seen[1].1 = 3_001, "range"),
        (&|of| of.seen[1].1 = 4_003, "range"),
    ];
    for (change, field) in cases {
        assert_eq!(refused(change), format!("the record's {field} is impossible"));
    }
}

#[test]
fn bytes_that_are_no_record_are_refused() {
    let bytes = bytes(&FlowRecord::of(&key_of(1), &flow(1_000)));
    for len in 0..bytes.len() {
        let mut rest = &bytes[..len];
        assert_eq!(FlowRecord::decode(&mut rest), Err(RecordError::Truncated), "{len}");
        assert_eq!(rest.len(), len);
    }
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        FlowRecord::decode(&mut &bytes[..]).unwrap_err()
    };
    assert_eq!(with(0, 0x80), RecordError::Flags(0x80));
    assert_eq!(with(1 + 36 + 4, 0x10), RecordError::Flags(0x10));
    let count = bytes.len() - 17;
    assert_eq!((bytes[count], with(count, 129)), (2, RecordError::Ranges(129)));
}

#[test]
fn the_longest_record_has_1116_bytes() {
    let mut record = FlowRecord::of(&key_of(1), &flow(0));
    let ends = [&mut record.transfer.fixed, &mut record.transfer.mobile];
    ends.into_iter().flatten().for_each(|end| {
        (end.acked, end.opened, end.window_scale) = (Some(1), Some(1), Some(1));
    });
    (record.timestamps, record.transfer.rtt) = (Some((1, 2)), Some(Duration::MAX));
    record.seen = (0..300).map(|n| (n * 10, n * 10 + 5)).collect();
    let bytes = bytes(&record);
    assert_eq!(bytes.len(), 1_116);
    assert_eq!(FlowRecord::decode(&mut &bytes[..]).unwrap().seen, record.seen[..128]);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((0usize..200, any::<u8>()), 0..4),
        start in any::<u32>(),
    ) {
        let _ = FlowRecord::decode(&mut &bytes[..]);
        let record = FlowRecord::of(&key(), &flow(start));
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(read) = FlowRecord::decode(&mut &bytes[..]) {
            let mut own = Flow::starting_at(SeqNumber(start));
            mobile(&mut own, Seg::ack(11, start));
            let acked = own.acked();
            let _ = own.absorb(NOW, &read);
            prop_assert!(own.acked() >= acked);
            if let Ok(mut flow) = Flow::from_record(NOW, &read) {
                prop_assert!(flow.acked() <= Some(flow.highest()));
                fixed(&mut flow, Seg::data(start, 1_000));
                mobile(&mut flow, Seg::ack(11, start));
                let _ = FlowRecord::of(&key(), &flow);
            }
        }
    }
}
