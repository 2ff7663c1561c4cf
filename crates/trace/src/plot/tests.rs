use std::fs;
use std::path::Path;
use std::time::Duration;

use airtcp_types::{Crossing, Instant, NodeId, SeqNumber};
use airtcp_wire::options::TcpOptions;
use proptest::prelude::*;

use super::*;
use crate::{NodeInfo, NodeKind, capture};

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// A segment of the client or of the server.
fn segment(
    client: bool,
    seq: u32,
    ack: u32,
    flags: u8,
    len: usize,
    sack: &[(u32, u32)],
) -> Vec<u8> {
    let blocks = sack.iter().map(|&(from, to)| (SeqNumber(from), SeqNumber(to)));
    let options = TcpOptions { sack: blocks.collect(), ..TcpOptions::default() };
    let mut words = [0; 40];
    let options = options.encode(&mut words);
    let (from, to) = if client { (1, 2) } else { (2, 1) };
    let (from_port, to_port): (u16, u16) = if client { (40_000, 5_001) } else { (5_001, 40_000) };
    let total = (40 + options + len) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    packet.extend(from_port.to_be_bytes());
    packet.extend(to_port.to_be_bytes());
    packet.extend(seq.to_be_bytes());
    packet.extend(ack.to_be_bytes());
    packet.extend([((20 + options) as u8 / 4) << 4, flags, 0x03, 0xe8, 0, 0, 0, 0]);
    packet.extend(&words[..options]);
    packet.resize(usize::from(total), 0);
    packet
}

/// Ten bytes that are sent twice, and the server's ACKs.
fn write(path: &Path) {
    let node = NodeInfo { name: "client".to_owned(), kind: NodeKind::Host };
    let mut writer = capture::Writer::create(path, "", &[node], Duration::from_secs(5)).unwrap();
    for (ms, client, packet) in [
        (0, true, segment(true, 100, 0, SYN, 0, &[])),
        (10, false, segment(false, 500, 101, SYN | ACK, 0, &[])),
        (10, true, segment(true, 101, 501, ACK, 10, &[])),
        (20, false, segment(false, 501, 111, ACK, 0, &[])),
        (30, true, segment(true, 101, 501, ACK, 10, &[])),
        (40, false, segment(false, 501, 111, ACK, 0, &[(101, 111)])),
    ] {
        let crossing = if client { Crossing::Out } else { Crossing::In };
        writer.crossing(Instant::from_millis(ms), NodeId(0), crossing, &packet).unwrap();
    }
    writer.finish().unwrap();
}

const EXPECTED: &str = "\
timeval double
title
10.0.0.1:40000_==>_10.0.0.2:5001 (time sequence graph)
xlabel
time
ylabel
sequence number
orange
diamond 5.000000 100
atext 5.000000 101
SYN
uarrow 5.000000 101
line 5.000000 100 5.000000 101
white
darrow 5.010000 101
uarrow 5.010000 111
line 5.010000 101 5.010000 111
green
line 5.010000 101 5.020000 101
line 5.020000 101 5.020000 111
yellow
line 5.010000 1101 5.020000 1101
line 5.020000 1101 5.020000 1111
red
atext 5.030000 111
R
red
darrow 5.030000 101
uarrow 5.030000 111
line 5.030000 101 5.030000 111
green
line 5.020000 111 5.040000 111
dtick 5.040000 111
yellow
line 5.020000 1111 5.040000 1111
utick 5.040000 1111
purple
line 5.040000 101 5.040000 111
htick 5.040000 101
htick 5.040000 111
atext 5.040000 111
S
go
";

#[test]
fn a_graph_is_what_tcptrace_would_draw() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pcapng");
    write(&path);
    let trace = read(&path).unwrap();
    let flow = &trace.flows()[0];
    assert_eq!((trace.flows().len(), flow.bytes, flow.packets), (1, ByteCount(20), 3));
    assert_eq!(flow.file_name(), "10.0.0.1_40000-10.0.0.2_5001");
    let xpl = dir.path().join("a.xpl");
    trace.xpl(1, &xpl).unwrap();
    assert_eq!(fs::read_to_string(xpl).unwrap(), EXPECTED);
}

#[test]
fn a_flow_that_cannot_be_drawn_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pcapng");
    write(&path);
    let trace = read(&path).unwrap();
    let error = trace.svg(2, Window::default()).unwrap_err().to_string();
    assert_eq!(error, "there is no flow 2: the trace has flows 1 to 1");
    let [flow] = trace.flows() else { panic!("one flow") };
    let (first, last) = (flow.first.as_secs_f64(), flow.last.as_secs_f64());
    let lasts = format!("which lasts from {first:.3} s to {last:.3} s");
    let (nine, ten) = (Some(Duration::from_secs(9)), Some(Duration::from_secs(10)));
    for (from, to) in [(nine, None), (nine, ten), (ten, nine), (None, Some(Duration::ZERO))] {
        let error = trace.svg(1, Window { from, to }).unwrap_err().to_string();
        assert!(error.starts_with("the interval from ") && error.contains(&lasts), "{error}");
    }
    let (from, to) = (Some(Duration::from_millis(15)), Some(Duration::from_millis(25)));
    assert!(trace.svg(1, Window { from, to }).unwrap().contains("0 data segments"));
}

/// The writer of a trace may be killed at any byte.
#[test]
fn a_capture_that_is_cut_is_drawn_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pcapng");
    write(&path);
    let whole = fs::read(&path).unwrap();
    let mut capture = capture::Reader::open(&path).unwrap();
    let count = std::iter::from_fn(|| capture.next().unwrap()).count();
    assert_eq!((count, capture.cut()), (6, None));
    let mut seen = std::collections::BTreeSet::new();
    for len in 200..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let trace = read(&path).unwrap();
        let packets = trace.flows().first().map_or(0, |flow| flow.packets);
        assert!(packets == 0 || trace.svg(1, Window::default()).is_ok());
        for cut in trace.cuts() {
            assert!((cut.place as usize) < len, "{cut}");
            let expected =
                format!("a.pcapng: cut short at byte {}: nothing after it is drawn", cut.place);
            assert!(cut.to_string().ends_with(&expected), "{cut}");
        }
        seen.insert((packets, trace.cuts().len()));
    }
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        [(0, 0), (0, 1), (2, 0), (2, 1), (3, 0), (3, 1)]
    );
}

#[test]
fn stamps_may_go_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pcapng");
    let node = NodeInfo { name: "client".to_owned(), kind: NodeKind::Host };
    let mut writer = capture::Writer::create(&path, "", &[node], Duration::from_secs(5)).unwrap();
    for (ms, seq) in [(20, 1), (10, 11), (15, 21)] {
        let packet = segment(true, seq, 0, ACK, 10, &[]);
        writer.crossing(Instant::from_millis(ms), NodeId(0), Crossing::Out, &packet).unwrap();
    }
    writer.finish().unwrap();
    let trace = read(&path).unwrap();
    // Times are relative to the first packet in the file; no packet is before it.
    assert_eq!(trace.flows()[0].first, Instant::ZERO);
    let svg = trace.svg(1, Window::default()).unwrap();
    assert!(svg.contains("3 data segments"), "{svg}");
    assert!(crate::svg::smallest_text(&svg) >= 11.0, "{svg}");
}

proptest! {
    #[test]
    fn no_packets_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pcapng");
        write(&path);
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(trace) = read(&path) {
            for number in 1..=trace.flows().len() {
                trace.xpl(number, &dir.path().join("a.xpl")).unwrap();
                prop_assert!(trace.svg(number, Window::default()).unwrap().ends_with("</svg>\n"));
            }
        }
    }
}
