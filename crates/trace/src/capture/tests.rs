use std::fs;
use std::time::Duration;

use airtcp_types::{Crossing, Fate, Instant, NodeId};
use proptest::prelude::*;

use super::*;
use crate::{NodeInfo, NodeKind, TraceError};

fn read(path: &std::path::Path) -> Result<Vec<Record>, TraceError> {
    let mut reader = Reader::open(path)?;
    std::iter::from_fn(|| reader.next().transpose()).collect()
}

fn own() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pcapng");
    let node = |name: &str| NodeInfo { name: name.to_owned(), kind: NodeKind::Host };
    let origin = Duration::new(5, 7);
    let mut writer = Writer::create(&path, "title", &[node("a"), node("b")], origin).unwrap();
    let at = Instant::from_nanos(1_000_000_001);
    writer.crossing(at, NodeId(1), Crossing::In, &[0x45, 1, 2]).unwrap();
    writer.fate(at, NodeId(0), &Fate::Dropped { cause: "queue full" }, &[0x60; 41]).unwrap();
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

fn records(bytes: &[u8]) -> Result<Vec<Record>, TraceError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, bytes).unwrap();
    read(&path)
}

#[test]
fn what_is_written_is_read() {
    let dropped = Some("dropped: queue full".to_owned());
    let record = |interface, direction, comment, data: &[u8]| Record {
        at: 6_000_000_008,
        interface,
        direction,
        comment,
        data: data.to_vec(),
    };
    let expected = [
        record(1, Direction::In, None, &[0x45, 1, 2]),
        record(0, Direction::Unknown, dropped, &[0x60; 41]),
    ];
    assert_eq!(records(&own()).unwrap(), expected);
}

/// A pcap file with one frame, cut at the snap length, in either byte order.
fn pcap(magic: u32, link: u32, frame: &[u8]) -> Vec<u8> {
    let head = [magic, 0x0002_0004, 0, 0, 65_535, link, 3, 500, frame.len() as u32, 9_000];
    let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.extend(frame);
    bytes
}

#[test]
fn link_headers_are_taken_off() {
    let ip = [0x45, 0, 0, 1];
    let ethernet = [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat();
    let cooked = [&[0, 4][..], &[0; 12], &[8, 0]].concat();
    let cooked2 = [&[8, 0][..], &[0; 8], &[4], &[0; 9]].concat();
    for (link, header, direction) in [
        (1, &ethernet[..], Direction::Unknown),
        (0, &[2, 0, 0, 0], Direction::Unknown),
        (108, &[0, 0, 0, 2], Direction::Unknown),
        (101, &[], Direction::Unknown),
        (113, &cooked, Direction::Out),
        (276, &cooked2, Direction::Out),
    ] {
        let frame = [header, &ip].concat();
        let read = records(&pcap(0xa1b2_c3d4, link, &frame)).unwrap();
        assert_eq!(read.len(), 1, "link type {link}");
        assert_eq!((&read[0].data[..], read[0].direction), (&ip[..], direction));
        assert_eq!(read[0].at, 3_000_500_000);
    }
    let nanos = records(&pcap(0xa1b2_3c4d, 101, &ip)).unwrap();
    assert_eq!(nanos[0].at, 3_000_000_500);
}

#[test]
fn damage_is_reported_with_its_position() {
    let pcap = pcap(0xa1b2_c3d4, 101, &[0x45, 0, 0]);
    for (bytes, expected) in [
        (&b""[..], ": byte 0: the file is empty"),
        (b"What is this?", ": byte 0: neither a pcap nor a pcapng file"),
        (&pcap[..20], ": byte 0: cut short"),
        (&own()[..30], ": byte 0: cut short"),
    ] {
        let error = records(bytes).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        len in any::<prop::sample::Index>(),
    ) {
        for mut bytes in [own(), pcap(0xa1b2_c3d4, 1, &[0x45; 60])] {
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            bytes.truncate(len.index(bytes.len()) + 1);
            if let Err(error) = records(&bytes) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }
}
