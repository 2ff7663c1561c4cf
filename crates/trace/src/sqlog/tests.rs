use std::fs;
use std::path::Path;
use std::time::Duration;

use airtcp_types::*;
use proptest::prelude::*;

use super::*;
use crate::{NodeInfo, NodeKind, TraceError};

mod made;

use made::{RULES, events, rate};

fn nodes() -> Vec<NodeInfo> {
    ["client", "a \"link\""]
        .map(|name| NodeInfo { name: name.to_owned(), kind: NodeKind::Host })
        .into()
}

fn write(path: &Path, events: &[(NodeId, Event)]) {
    write_all(path, events).unwrap();
}

fn write_all(path: &Path, events: &[(NodeId, Event)]) -> Result<(), TraceError> {
    let origin = Duration::new(1_700_000_000, 1);
    let mut writer = Writer::create(path, "a title", &nodes(), origin)?;
    for (node, event) in events {
        writer.event(*node, event)?;
    }
    writer.finish()
}

fn read(path: &Path) -> Result<Vec<(NodeId, Event)>, TraceError> {
    let mut reader = Reader::open(path)?;
    assert_eq!(reader.origin, Duration::new(1_700_000_000, 1));
    std::iter::from_fn(|| reader.next().transpose()).collect()
}

proptest! {
    #[test]
    fn events_come_back_as_they_were(events in events()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.sqlog");
        write(&path, &events);
        prop_assert_eq!(read(&path).unwrap(), events);
    }

    #[test]
    fn no_bytes_panic(
        events in events(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.sqlog");
        write(&path, &events);
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(mut reader) = Reader::open(&path)
            && let Err(error) = std::iter::from_fn(|| reader.next().transpose()).collect::<Result<Vec<_>, _>>()
        {
            prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error);
        }
    }
}

#[test]
fn rubbish_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sqlog");
    let event = Event { at: Instant::from_nanos(1), flow: None, kind: EventKind::Undo };
    write(&path, &vec![(NodeId(0), event); 30]);
    let text = fs::read_to_string(&path).unwrap();
    for (rubbish, reason) in [
        ("\u{1e}rubbish", "expected value (column 2)"),
        ("rubbish", "a record starts with the byte 0x1E (RFC 7464)"),
        (
            "\u{1e}{\"time\":1,\"name\":\"a:b\",\"node\":\"client\",\"data\":{}}",
            "no event is called \"a:b\"",
        ),
    ] {
        let mut lines: Vec<&str> = text.lines().collect();
        lines[16] = rubbish;
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}:17: ", path.display())), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_record_has_the_names_of_qlog_and_of_linux() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sqlog");
    let flow = FlowId {
        local: "10.0.0.1:40000".parse().unwrap(),
        remote: "10.0.0.2:5001".parse().unwrap(),
    };
    let kind = EventKind::Window {
        cwnd: ByteCount(14_480),
        ssthresh: None,
        pipe: ByteCount(1_448),
        pacing_rate: Some(rate(ByteCount(12_000_000))),
        bandwidth: None,
    };
    let at = Instant::from_nanos(1_234_567_891);
    write(&path, &[(NodeId(0), Event { at, flow: Some(flow), kind })]);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",")
    );
    assert!(lines[0].contains("\"epoch\":\"2023-11-14T22:13:20.000000001Z\""));
    assert_eq!(
        lines[1],
        "\u{1e}{\"time\":1234.567891,\"name\":\"recovery:metrics_updated\",\"node\":\"client\",\
         \"group_id\":\"10.0.0.1:40000-10.0.0.2:5001\",\"data\":{\"congestion_window\":14480,\
         \"cwnd\":14480,\"bytes_in_flight\":1448,\"pipe\":1448,\"pacing_rate\":12000000}}"
    );
}

#[test]
fn a_segment_acknowledges_transmissions_by_their_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sqlog");
    let range = SeqRange::new(ExtSeq(7), ExtSeq(9));
    let (first, last) = (TxNo(2), TxNo(4));
    let kinds = [
        EventKind::Received { range, ack: ExtSeq(900), window: ByteCount(65_535) },
        EventKind::Acknowledged { first, last },
        EventKind::Acknowledged { first: TxNo(6), last: TxNo(6) },
    ];
    let event = |kind| (NodeId(0), Event { at: Instant::ZERO, flow: None, kind });
    write(&path, &kinds.map(event));
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text.lines().nth(1).unwrap(),
        "\u{1e}{\"time\":0,\"name\":\"transport:packet_received\",\"node\":\"client\",\"data\":{\
         \"header\":{},\"raw\":{\"length\":2},\"seq\":7,\"len\":2,\"ack\":900,\"wnd\":65535,\
         \"frames\":[{\"frame_type\":\"ack\",\"acked_ranges\":[[2,4],[6,6]]}]}}"
    );
}

/// Nodes with their own threads report in between each other.
#[test]
fn a_segment_is_acknowledged_though_another_node_reports_in_between() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sqlog");
    let range = SeqRange::new(ExtSeq(7), ExtSeq(9));
    let segment = EventKind::Received { range, ack: ExtSeq(900), window: ByteCount(65_535) };
    let (first, last) = (TxNo(2), TxNo(4));
    let acknowledged = EventKind::Acknowledged { first, last };
    let event = |node, kind: &EventKind| {
        (NodeId(node), Event { at: Instant::ZERO, flow: None, kind: kind.clone() })
    };
    let events = [
        event(0, &segment),
        event(1, &EventKind::Undo),
        event(1, &segment),
        event(0, &acknowledged),
        event(0, &EventKind::Undo),
        event(1, &acknowledged),
    ];
    write(&path, &events);
    let [a, b, c, d, e, f] = events.clone();
    assert_eq!(read(&path).unwrap(), [a, d, b, c, f, e]);

    // A node without further events does not delay the others, and an acknowledgement without its
    // segment is left out.
    let mut many = vec![event(0, &segment)];
    many.extend(vec![event(1, &EventKind::Undo); 100]);
    write(&path, &[&many[..], &[event(0, &acknowledged)]].concat());
    assert_eq!(read(&path).unwrap(), many);
}

/// One event of each kind, with all fields.
fn every_kind() -> Vec<EventKind> {
    let (range, cause) = (SeqRange::new(ExtSeq(1), ExtSeq(2)), "a cause");
    let (tx, size, time) = (TxNo(1), ByteCount(1), Duration::from_millis(1));
    let packet = |fate| EventKind::Packet { fate, packet: Packet::new(vec![0x45]) };
    vec![
        EventKind::State { from: "CLOSED", to: "LISTEN" },
        EventKind::Sent { tx, range, rule: SendRule::NewData, pipe: size, cwnd: size, rwnd: size },
        EventKind::Received { range, ack: ExtSeq(1), window: size },
        EventKind::Acknowledged { first: tx, last: tx },
        EventKind::Lost { tx, range, cause },
        EventKind::Reduced { cause },
        EventKind::Window {
            cwnd: size,
            ssthresh: Some(size),
            pipe: size,
            pacing_rate: Some(rate(size)),
            bandwidth: Some(rate(size)),
        },
        EventKind::Rtt { sample: time, srtt: time, min: time },
        EventKind::Timeout { backoff: 1 },
        packet(Fate::Dropped { cause }),
        packet(Fate::Corrupted { bits: 1, header: false, unnoticed: false }),
        packet(Fate::Marked { cause }),
        packet(Fate::Duplicated),
        packet(Fate::Retried { pass: 2 }),
        packet(Fate::Held),
        packet(Fate::Frozen),
        packet(Fate::Made { cause }),
    ]
}

#[test]
fn the_page_has_every_event_and_every_rule() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sqlog");
    let event = |kind| (NodeId(0), Event { at: Instant::ZERO, flow: None, kind });
    write(&path, &every_kind().into_iter().map(event).collect::<Vec<_>>());
    let log = fs::read_to_string(&path).unwrap();
    let written = log.lines().skip(1).map(|line| {
        let record: serde_json::Value = serde_json::from_str(&line[1..]).unwrap();
        let mut data: Vec<_> = record["data"].as_object().unwrap().keys().cloned().collect();
        data.sort_unstable();
        (record["name"].as_str().unwrap().to_owned(), data)
    });
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trace.md");
    let page = fs::read_to_string(page).unwrap();
    let quoted =
        |cell: &str| -> Vec<_> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let documented = page.lines().filter(|line| line.starts_with("| `")).map(|line| {
        let cells: Vec<&str> = line.split('|').collect();
        let mut data = quoted(cells[3]);
        data.sort_unstable();
        (quoted(cells[1]).concat(), data)
    });
    assert_eq!(documented.collect::<Vec<_>>(), written.collect::<Vec<_>>());
    for rule in RULES {
        assert!(page.contains(&format!("`{}`", rule.name())), "{rule:?}");
    }
}
