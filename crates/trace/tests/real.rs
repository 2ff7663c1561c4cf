//! A transfer of airtcp's stack over an emulated link in virtual time, recorded, and verified with
//! tshark and tcptrace.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use airtcp_stack::host::{Cidr, Host, HostConfig};
use airtcp_trace::{NodeInfo, NodeKind, Recorder, Written, plot};
use airtcp_types::{
    Crossing, Event, EventKind, Fate, Instant, Node, NodeId, Observer, Packet, PortId,
};

const BYTES: usize = 400_000;
const ORIGIN: Duration = Duration::new(1_700_000_000, 123_456_789);

/// Two hosts, 10 ms and 1 Mbyte/s apart; every 60th data packet is dropped.
fn record(dir: &Path) -> Written {
    let node = |name: &str, kind| NodeInfo { name: name.to_owned(), kind };
    let nodes = [
        node("client", NodeKind::Host),
        node("link", NodeKind::Link),
        node("server", NodeKind::Host),
    ];
    let mut recorder = Recorder::create(dir, "a test", &nodes, ORIGIN).unwrap();
    let host = |last: u8| {
        let cidr = Cidr::new([10, 0, 0, last].into(), 24).unwrap();
        let mut config = HostConfig::new([cidr]);
        config.events = true;
        Host::new(config)
    };
    let mut hosts = [host(1), host(2)];
    let ids = [NodeId(0), NodeId(2)];
    let mut now = Instant::ZERO;
    let listener = hosts[1].tcp_listen("10.0.0.2:5001".parse().unwrap(), 8).unwrap();
    let socket = hosts[0].tcp_connect(now, "10.0.0.2:5001".parse().unwrap(), None).unwrap();
    let mut accepted = None;
    let mut wire: std::collections::BTreeMap<(Instant, u64), (usize, Packet)> = Default::default();
    let (mut order, mut data, mut sent, mut received, mut free) = (0, 0, 0, 0, Instant::ZERO);
    let mut ended = false;
    for _ in 0..100_000 {
        if sent < BYTES {
            let chunk = vec![7; (BYTES - sent).min(65_536)];
            sent += hosts[0].tcp_send(now, socket, &chunk).unwrap_or(0);
        } else if !ended {
            ended = hosts[0].tcp_shutdown(now, socket).is_ok();
        }
        accepted = accepted.or_else(|| {
            let next = hosts[1].tcp_accept(now, listener).unwrap();
            next.map(|(socket, _)| socket)
        });
        if let Some(server) = accepted {
            let mut buf = [0; 65_536];
            while let Ok(taken @ 1..) = hosts[1].tcp_recv(now, server, &mut buf) {
                received += taken;
            }
        }
        for from in 0..2 {
            while let Some((_, packet)) = hosts[from].poll_transmit(now) {
                while let Some(event) = hosts[from].poll_event() {
                    recorder.on_event(ids[from], &event);
                }
                recorder.on_packet(now, ids[from], Crossing::Out, &packet);
                order += 1;
                let large = packet.len() > 1_000;
                data += u64::from(large);
                if large && data % 60 == 0 {
                    let fate = Fate::Dropped { cause: "random loss" };
                    let kind = EventKind::Packet { fate, packet };
                    recorder.on_event(NodeId(1), &Event { at: now, flow: None, kind });
                    continue;
                }
                free = free.max(now) + Duration::from_micros(packet.len() as u64);
                wire.insert((free + Duration::from_millis(10), order), (1 - from, packet));
            }
            while let Some(event) = hosts[from].poll_event() {
                recorder.on_event(ids[from], &event);
            }
        }
        let arrival = wire.first_key_value().map(|(&(at, _), _)| at);
        let deadline = hosts.iter().filter_map(Node::poll_timeout).min();
        let Some(next) = arrival.into_iter().chain(deadline).min() else { break };
        if received == BYTES && wire.is_empty() {
            break;
        }
        now = now.max(next);
        while let Some(entry) = wire.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, packet) = entry.remove();
            recorder.on_packet(now, ids[to], Crossing::In, &packet);
            hosts[to].handle_packet(now, PortId(0), packet);
        }
        for host in &mut hosts {
            if host.poll_timeout().is_some_and(|at| at <= now) {
                host.handle_timeout(now);
            }
        }
    }
    assert_eq!(received, BYTES);
    recorder.finish().unwrap()
}

/// Whether a program is installed. Without it a test is skipped, or fails if programs are required.
fn have(program: &str) -> bool {
    let found = Command::new(program).arg("-v").output().is_ok();
    if !found {
        assert!(
            std::env::var_os("AIRTCP_REQUIRE_TOOLS").is_none(),
            "{program} is not installed: apt-get install tshark tcptrace"
        );
        eprintln!("SKIPPED: {program} is not installed: apt-get install tshark tcptrace");
    }
    found
}

fn run(program: &str, dir: &Path, args: &[&str]) -> (String, String) {
    let output = Command::new(program).current_dir(dir).args(args).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

fn file<'a>(written: &'a Written, end: &str) -> &'a PathBuf {
    written.files.iter().find(|file| file.to_string_lossy().ends_with(end)).unwrap()
}

#[test]
fn a_transfer_is_written_drawn_and_listed() {
    let dir = tempfile::tempdir().unwrap();
    let written = record(dir.path());
    assert_eq!(written.without_picture, 0);
    let xpl = std::fs::read_to_string(file(&written, "-10.0.0.2_5001_tsg.xpl")).unwrap();
    assert!(xpl.starts_with("timeval double\ntitle\n10.0.0.1:"), "{xpl:.80}");
    assert!(xpl.ends_with("\ngo\n"));
    assert!(xpl.contains("\nR\n") && xpl.contains("\nSYN\n") && xpl.contains("\nFIN\n"));
    let svg = std::fs::read_to_string(file(&written, "-10.0.0.2_5001.svg")).unwrap();
    assert!(svg.contains("dropped by the link") && svg.contains("ssthresh") && svg.len() < 1 << 20);
    // The same picture results from the directory, the log and the capture.
    for name in ["", "events.sqlog", "packets.pcapng"] {
        let trace = plot::read(&dir.path().join(name)).unwrap();
        assert_eq!(trace.flows().len(), 1);
        assert!(trace.flows()[0].bytes.0 >= BYTES as u64);
        assert_eq!(trace.svg(1, plot::Window::default()).unwrap(), svg);
    }
    if let Some(keep) = std::env::var_os("AIRTCP_KEEP_TRACE") {
        std::fs::create_dir_all(&keep).unwrap();
        for file in &written.files {
            std::fs::copy(file, Path::new(&keep).join(file.file_name().unwrap())).unwrap();
        }
    }
}

/// As if the run were killed: both files end where a buffer was last written.
#[test]
fn a_trace_that_is_cut_is_drawn_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let (packets, events) = (dir.path().join("packets.pcapng"), dir.path().join("events.sqlog"));
    let cut = |path: &Path, len: usize| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..len.min(bytes.len())]).unwrap();
    };
    cut(&packets, 300_007);
    cut(&events, 20_001);
    let trace = plot::read(dir.path()).unwrap();
    let notes: Vec<_> = trace.cuts().iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("packets.pcapng: cut short at byte 29"), "{notes:?}");
    assert!(notes[1].contains("events.sqlog: cut short at line "), "{notes:?}");
    assert!(trace.flows()[0].bytes.0 > 50_000);
    assert!(trace.svg(1, plot::Window::default()).unwrap().contains("cwnd"));

    // An invalid record before the end is an error.
    let mut log = std::fs::read_to_string(&events).unwrap();
    log = log.replacen("transport:packet_sent", "rubbish", 1);
    std::fs::write(&events, log).unwrap();
    let error = plot::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("events.sqlog:") && error.contains("rubbish"), "{error}");

    std::fs::remove_file(&packets).unwrap();
    let error = plot::read(&events).unwrap_err().to_string();
    assert!(error.ends_with("packets.pcapng does not exist"), "{error}");
}

#[test]
fn two_runs_give_the_same_bytes() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = record(first.path()).files;
    record(second.path());
    for file in files {
        let other = second.path().join(file.file_name().unwrap());
        assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(other).unwrap(), "{file:?}");
    }
}

#[test]
fn tshark_reads_the_capture_without_a_complaint() {
    if !have("tshark") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    record(dir.path());
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.packet_flags_direction",
        "frame.comment",
    ];
    let mut args = vec!["-r", "packets.pcapng", "-T", "fields", "-E", "separator=,"];
    for field in fields {
        args.extend(["-e", field]);
    }
    let (lines, complaints) = run("tshark", dir.path(), &args);
    // As root, tshark prints a warning.
    let complaints = complaints.lines().filter(|line| !line.contains("as user \"root\""));
    assert_eq!(complaints.count(), 0);
    let first: Vec<&str> = lines.lines().next().unwrap().split(',').collect();
    assert!(first[0].starts_with("1700000000.123456789"), "{first:?}");
    assert_eq!(&first[1..3], ["client", "0x00000002"]);
    assert!(lines.lines().any(|line| line.contains(",server,0x00000001,")));
    assert!(lines.lines().any(|line| line.ends_with(",link,,dropped: random loss")));
    let bad = ["-r", "packets.pcapng", "-Y", "_ws.malformed || tcp.checksum.status == 0", "-o"];
    let bad = [&bad[..], &["tcp.check_checksum:TRUE"]].concat();
    assert_eq!(run("tshark", dir.path(), &bad).0, "");
}

#[test]
fn tcptrace_counts_what_our_graph_shows() {
    if !have("tcptrace") || !have("tshark") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let written = record(dir.path());
    let only = "frame.interface_name == \"client\"";
    run("tshark", dir.path(), &["-r", "packets.pcapng", "-Y", only, "-F", "pcap", "-w", "c.pcap"]);
    run("tcptrace", dir.path(), &["-n", "-S", "c.pcap"]);
    let theirs = std::fs::read_to_string(dir.path().join("a2b_tsg.xpl")).unwrap();
    let ours = std::fs::read_to_string(file(&written, "-10.0.0.2_5001_tsg.xpl")).unwrap();
    let count = |xpl: &str, word: &str| xpl.lines().filter(|line| line.starts_with(word)).count();
    // airtcp marks retransmitted data with a FIN with an R of its own, in addition to the FIN's.
    assert_eq!(count(&ours, "R") - count(&ours, "R FIN"), count(&theirs, "R"));
    for word in ["darrow", "O", "SYN", "FIN", "S", "dtick", "utick", "htick", "box"] {
        assert_eq!(count(&ours, word), count(&theirs, word), "{word}");
    }
    if let Some(keep) = std::env::var_os("AIRTCP_KEEP_TRACE") {
        std::fs::write(Path::new(&keep).join("theirs.xpl"), theirs).unwrap();
    }
}
