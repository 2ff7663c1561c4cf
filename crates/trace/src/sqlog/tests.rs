use std::fs;
use std::path::Path;
use std::time::Duration;

use airtcp_types::*;
use proptest::prelude::*;

use super::*;
use crate::{NodeInfo, NodeKind, TraceError};

fn nodes() -> Vec<NodeInfo> {
    ["client", "a \"link\""]
        .map(|name| NodeInfo { name: name.to_owned(), kind: NodeKind::Host })
        .into()
}

fn write(path: &Path, events: &[(NodeId, Event)]) {
    let origin = Duration::new(1_700_000_000, 1);
    let mut writer = Writer::create(path, "a title", &nodes(), origin).unwrap();
    for (node, event) in events {
        writer.event(*node, event).unwrap();
    }
    writer.finish().unwrap();
}

fn read(path: &Path) -> Result<Vec<(NodeId, Event)>, TraceError> {
    let mut reader = Reader::open(path)?;
    assert_eq!(reader.origin, Duration::new(1_700_000_000, 1));
    std::iter::from_fn(|| reader.next().transpose()).collect()
}

fn range() -> impl Strategy<Value = SeqRange> {
    (any::<u64>(), any::<u64>())
        .prop_map(|(a, b)| SeqRange::new(ExtSeq(a.min(b)), ExtSeq(a.max(b))))
}

fn bytes() -> impl Strategy<Value = ByteCount> {
    any::<u64>().prop_map(ByteCount)
}

fn duration() -> impl Strategy<Value = Duration> {
    (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(s, n)| Duration::new(s, n))
}

fn packet() -> impl Strategy<Value = Packet> {
    let sum = prop_oneof![Just(Checksum::Full), Just(Checksum::Partial), Just(Checksum::Verified)];
    (prop::collection::vec(any::<u8>(), 0..50), any::<Option<u16>>(), sum).prop_map(
        |(data, segment_size, checksum)| Packet {
            data,
            segment_size,
            checksum,
            ..Packet::default()
        },
    )
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Dropped { cause: "queue full" }),
        Just(Fate::Marked { cause: "codel" }),
        Just(Fate::Duplicated),
        Just(Fate::Held),
        Just(Fate::Frozen),
        Just(Fate::Made { cause: "window open" }),
        any::<u32>().prop_map(|pass| Fate::Retried { pass }),
        (any::<u32>(), any::<bool>(), any::<bool>())
            .prop_map(|(bits, header, unnoticed)| Fate::Corrupted { bits, header, unnoticed }),
    ]
}

const RULES: [SendRule; 9] = [
    SendRule::NewData,
    SendRule::FastRetransmit,
    SendRule::Repair,
    SendRule::Unsacked,
    SendRule::Rescue,
    SendRule::LimitedTransmit,
    SendRule::Probe,
    SendRule::ProbeAgain,
    SendRule::Timeout,
];

fn kind() -> impl Strategy<Value = EventKind> {
    let rule = prop::sample::select(&RULES[..]);
    prop_oneof![
        Just(EventKind::State { from: "SYN-SENT", to: "ESTABLISHED" }),
        (any::<u64>(), range(), rule, bytes(), bytes(), bytes()).prop_map(
            |(tx, range, rule, pipe, cwnd, rwnd)| EventKind::Sent {
                tx: TxNo(tx),
                range,
                rule,
                pipe,
                cwnd,
                rwnd
            }
        ),
        (range(), any::<u64>(), bytes()).prop_map(|(range, ack, window)| EventKind::Received {
            range,
            ack: ExtSeq(ack),
            window
        }),
        (any::<u64>(), range()).prop_map(|(tx, range)| EventKind::Lost {
            tx: TxNo(tx),
            range,
            cause: "congestion"
        }),
        (bytes(), prop::option::of(bytes()), bytes())
            .prop_map(|(cwnd, ssthresh, pipe)| EventKind::Window { cwnd, ssthresh, pipe }),
        (duration(), duration()).prop_map(|(sample, srtt)| EventKind::Rtt { sample, srtt }),
        any::<u32>().prop_map(|backoff| EventKind::Timeout { backoff }),
        Just(EventKind::Undo),
        Just(EventKind::Reduced { cause: "congestion" }),
        (fate(), packet()).prop_map(|(fate, packet)| EventKind::Packet { fate, packet }),
    ]
}

fn event() -> impl Strategy<Value = (NodeId, Event)> {
    let end = |v6| {
        any::<(u16, [u8; 16])>().prop_map(move |(port, ip)| match v6 {
            true => std::net::SocketAddr::from((ip, port)),
            false => std::net::SocketAddr::from(([ip[0], ip[1], ip[2], ip[3]], port)),
        })
    };
    let flow = (end(false), end(true)).prop_map(|(local, remote)| FlowId { local, remote });
    (0..2_u32, any::<u64>(), prop::option::of(flow), kind()).prop_map(|(node, at, flow, kind)| {
        (NodeId(node), Event { at: Instant::from_nanos(at), flow, kind })
    })
}

proptest! {
    #[test]
    fn events_come_back_as_they_were(events in prop::collection::vec(event(), 0..20)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.sqlog");
        write(&path, &events);
        prop_assert_eq!(read(&path).unwrap(), events);
    }

    #[test]
    fn no_bytes_panic(
        events in prop::collection::vec(event(), 1..5),
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
fn a_record_has_the_names_of_both_worlds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sqlog");
    let flow = FlowId {
        local: "10.0.0.1:40000".parse().unwrap(),
        remote: "10.0.0.2:5001".parse().unwrap(),
    };
    let kind =
        EventKind::Window { cwnd: ByteCount(14_480), ssthresh: None, pipe: ByteCount(1_448) };
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
         \"cwnd\":14480,\"bytes_in_flight\":1448,\"pipe\":1448}}"
    );
}

/// One event of each kind, with everything in it.
fn every_kind() -> Vec<EventKind> {
    let (range, cause) = (SeqRange::new(ExtSeq(1), ExtSeq(2)), "a cause");
    let (tx, size, time) = (TxNo(1), ByteCount(1), Duration::from_millis(1));
    let packet = |fate| EventKind::Packet { fate, packet: Packet::new(vec![0x45]) };
    vec![
        EventKind::State { from: "CLOSED", to: "LISTEN" },
        EventKind::Sent { tx, range, rule: SendRule::NewData, pipe: size, cwnd: size, rwnd: size },
        EventKind::Received { range, ack: ExtSeq(1), window: size },
        EventKind::Lost { tx, range, cause },
        EventKind::Reduced { cause },
        EventKind::Window { cwnd: size, ssthresh: Some(size), pipe: size },
        EventKind::Rtt { sample: time, srtt: time },
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
    let told = page.lines().filter(|line| line.starts_with("| `")).map(|line| {
        let cells: Vec<&str> = line.split('|').collect();
        let mut data = quoted(cells[3]);
        data.sort_unstable();
        (quoted(cells[1]).concat(), data)
    });
    assert_eq!(told.collect::<Vec<_>>(), written.collect::<Vec<_>>());
    for rule in RULES {
        assert!(page.contains(&format!("`{}`", rule.name())), "{rule:?}");
    }
}
