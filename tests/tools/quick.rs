//! `quickserve` and `quickget` as two processes.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use airtcp_device::TunFile;
use airtcp_testbed::{Namespace, or_skip, requirements};
use serde_json::Value;
use tempfile::TempDir;

use crate::setup::{Running, airtcp};
use crate::transfer::{LENGTH, data, sha256, text};

/// A test that hangs fails after this time.
const LIMIT: Duration = Duration::from_secs(120);

/// Bytes of a slow file: with the profile `edge` it is sent at 240 kbit/s, over a loopback
/// interface that is faster.
const SLOW: usize = 600_000;

struct World {
    namespace: Namespace,
    directory: TempDir,
}

impl World {
    /// Makes a namespace, and a directory whose subdirectory `www` is served.
    fn new() -> Option<Self> {
        or_skip(requirements())?;
        let namespace = Namespace::new().unwrap();
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("www")).unwrap();
        fs::write(directory.path().join("www/file"), data()).unwrap();
        fs::write(directory.path().join("www/slow"), &data()[..SLOW]).unwrap();
        fs::write(directory.path().join("secret"), "not served").unwrap();
        Some(Self { namespace, directory })
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = airtcp(&arguments.split_whitespace().collect::<Vec<_>>());
        command.current_dir(&self.directory);
        command
    }

    fn serve(&self, arguments: &str) -> Running {
        let command = self.command(&format!("quickserve www {arguments}"));
        let mut serve = Running::start(&self.namespace, command);
        serve.until("ready");
        serve
    }

    fn run(&self, command: Command) -> Output {
        self.namespace.spawn_child(command).unwrap().wait_with_output().unwrap()
    }

    fn get(&self, arguments: &str) -> Output {
        self.run(self.command(&format!("quickget {arguments}")))
    }

    fn report(&self, arguments: &str) -> Value {
        let output = self.get(&format!("{arguments} --json"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a `quickget` that must fail, and returns its error line.
    fn refused(&self, arguments: &str) -> String {
        refusal(&self.get(arguments))
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.path().join(name)).unwrap()
    }

    /// Waits until this much of a transfer has arrived.
    fn wait_for(&self, part: &str, bytes: usize, mut is_running: impl FnMut() -> bool) {
        let (part, begin) = (self.directory.path().join(part), Instant::now());
        while fs::metadata(&part).map_or(0, |part| part.len()) < bytes as u64 {
            assert!(is_running(), "it ended");
            assert!(begin.elapsed() < LIMIT, "nothing comes");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    let waits = |line: &&str| line.starts_with("waiting for an answer from ");
    let line = said.lines().filter(|line| !waits(line)).collect::<Vec<_>>().join("\n");
    assert!(line.starts_with("error: ") && line.lines().count() == 1, "{line}");
    line
}

#[test]
fn a_file_comes_whole_by_rrtp_and_by_the_kernels_tcp() {
    let Some(world) = World::new() else { return };
    let serve = world.serve(
        "--listen rrtp://127.0.0.1:80 --listen rrtp://[::1]:80 --listen tcp://127.0.0.1:80 --json",
    );
    for url in ["rrtp://127.0.0.1/file", "rrtp://[::1]/file", "tcp://127.0.0.1/file"] {
        let report = world.report(&format!("{url} -o file"));
        assert_eq!((&report["url"], &report["status"]), (&url.into(), &200.into()));
        assert_eq!((&report["length"], &report["bytes"]), (&LENGTH.into(), &LENGTH.into()));
        assert_eq!(report["sha256"], sha256(&data()));
        assert!(world.read("file") == data());
        assert_eq!(report["info"].is_object(), url.starts_with("rrtp"), "{report}");
    }
    let output = world.get("rrtp://127.0.0.1/file -o -");
    assert!(output.status.success() && output.stdout == data());
    serve.signal("INT");
    let (code, report) = serve.end();
    assert_eq!(code, Some(0));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report[0]["connections"], 2, "{report}");
    assert_eq!(report[0]["counters"]["accepted"], 2, "{report}");
    assert_eq!((&report[2]["connections"], &report[2]["broken"]), (&1.into(), &0.into()));
}

#[test]
fn a_file_comes_whole_by_this_stack_at_either_end() {
    let Some(world) = World::new() else { return };
    let device = "--tun tun0 --address 10.0.0.2/24";
    let serve = world.serve(&format!("--listen airtcp://10.0.0.2:80 {device} --gateway 10.0.0.1"));
    let report = world.report("tcp://10.0.0.2/file -o file");
    assert_eq!(report["sha256"], sha256(&data()));
    serve.signal("TERM");
    assert_eq!(serve.end().0, Some(0));

    let _serve = world.serve("--listen tcp://0.0.0.0:80");
    let report =
        world.report(&format!("airtcp://10.0.0.1/file -o other {device} --strategies rack/cubic"));
    assert_eq!(report["sha256"], sha256(&data()));
    assert_eq!(report["info"]["combination"], "rack/cubic", "{report}");
    assert!(world.read("other") == data());
}

#[test]
fn transfers_resume_after_client_or_server_was_killed() {
    let Some(world) = World::new() else { return };
    let listen = "--listen rrtp://127.0.0.1:80";
    let slow = world.serve(&format!("{listen} --profile edge"));
    let line = "quickget rrtp://127.0.0.1/slow -o slow";
    let mut client = Running::start(&world.namespace, world.command(line));
    world.wait_for("slow.part", 10_000, || client.is_running());
    client.signal("KILL");
    drop(client);
    let before = world.read("slow.part").len();

    let mut client = world.namespace.spawn_child(world.command(line)).unwrap();
    world.wait_for("slow.part", before + 10_000, || client.try_wait().unwrap().is_none());
    slow.signal("KILL");
    drop(slow);
    // A new server at the same address reports at once that it does not know the connection.
    let _fast = world.serve(listen);
    let line = refusal(&client.wait_with_output().unwrap());
    assert!(line.contains("no longer knows the connection"), "{line}");
    let has_hint =
        line.contains("slow.part has ") && line.ends_with("resume with the same command");
    assert!(has_hint, "{line}");
    let before = world.read("slow.part").len();
    assert!(!world.directory.path().join("slow").exists());

    let report = world.report("rrtp://127.0.0.1/slow -o slow");
    assert_eq!((&report["status"], &report["length"]), (&206.into(), &SLOW.into()));
    assert_eq!(report["bytes"], SLOW - before);
    assert_eq!(report["sha256"], sha256(&data()[..SLOW]));
    assert!(world.read("slow") == data()[..SLOW]);
}

/// The client's network profile determines the server's rate: without it the file would arrive at
/// once.
#[test]
fn the_server_sends_by_the_clients_network_parameters() {
    let Some(world) = World::new() else { return };
    let _serve = world.serve("--listen rrtp://127.0.0.1:80");
    let line = "quickget rrtp://127.0.0.1/slow -o slow --profile edge";
    let mut client = Running::start(&world.namespace, world.command(line));
    world.wait_for("slow.part", 10_000, || client.is_running());
    assert!(client.is_running() && !world.directory.path().join("slow").exists());
}

#[test]
fn a_client_asks_for_no_more_than_the_server_caps() {
    let Some(world) = World::new() else { return };
    let serve = world.serve("--listen rrtp://127.0.0.1:80 --rate-cap 240kbit --json");
    // The profile `lan` asks for 100 Mbit/s.
    let line = "quickget rrtp://127.0.0.1/slow -o slow --profile lan";
    let mut client = Running::start(&world.namespace, world.command(line));
    world.wait_for("slow.part", 10_000, || client.is_running());
    assert!(client.is_running() && !world.directory.path().join("slow").exists());
    drop(client);
    serve.signal("INT");
    let report: Value = serde_json::from_str(&serve.end().1).unwrap();
    assert_eq!(report[0]["counters"]["rate_capped"], 1, "{report}");
}

#[test]
fn beyond_the_most_connections_callers_are_refused_and_counted() {
    let Some(world) = World::new() else { return };
    let listen = "--listen rrtp://127.0.0.1:80 --listen tcp://127.0.0.1:80";
    let serve = world.serve(&format!("{listen} --connections 1 --json"));
    // A closed connection that still answers takes no place.
    for _ in 0..2 {
        world.report("rrtp://127.0.0.1/file -o file");
    }
    // Both places are taken, one of them by a client that requests nothing.
    let line = "quickget rrtp://127.0.0.1/slow -o slow --profile edge";
    let mut slow = Running::start(&world.namespace, world.command(line));
    world.wait_for("slow.part", 10_000, || slow.is_running());
    let idle = world.namespace.run(|| std::net::TcpStream::connect("127.0.0.1:80")).unwrap();
    for scheme in ["rrtp", "tcp"] {
        let line = world.refused(&format!("{scheme}://127.0.0.1/file -o file"));
        let why = "503 Service Unavailable: at most 1 connections are served at a time";
        assert!(line.ends_with(why), "{line}");
    }
    drop(idle);
    // The place is free once the server has seen the close.
    let (begin, mut refused) = (Instant::now(), 1);
    while !world.get("tcp://127.0.0.1/file -o file").status.success() {
        assert!(begin.elapsed() < LIMIT, "the place is not given back");
        refused += 1;
    }
    drop(slow);
    serve.signal("INT");
    let report: Value = serde_json::from_str(&serve.end().1).unwrap();
    assert_eq!((&report[0]["refused"], &report[1]["refused"]), (&1.into(), &refused.into()));
    assert_eq!((&report[0]["connections"], &report[1]["connections"]), (&3.into(), &2.into()));
}

#[test]
fn options_without_effect_are_refused() {
    let Some(world) = World::new() else { return };
    for (line, why) in [
        ("quickserve www --listen rrtp://127.0.0.1:80/files", "has a path"),
        (
            "quickserve www --listen tcp://127.0.0.1:80 --profile edge",
            "--profile is only for rrtp://",
        ),
        (
            "quickserve www --listen tcp://127.0.0.1:80 --rate-cap 1mbit",
            "--rate-cap is only for rrtp://",
        ),
        ("quickserve www --listen rrtp://127.0.0.1:80 --rate-cap 1", "for example 20mbit"),
        ("quickget tcp://127.0.0.1/file -o file --profile edge", "--profile is only for rrtp://"),
    ] {
        let output = world.run(world.command(line));
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{said}");
    }
}

#[test]
fn a_full_disk_is_one_line_and_the_transfer_resumes() {
    let Some(world) = World::new() else { return };
    let _serve = world.serve("--listen rrtp://127.0.0.1:80");
    // Limits the size of files that this process writes; the shell's unit is half a kilobyte.
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 200; exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_airtcp")]);
    command.args(["quickget", "rrtp://127.0.0.1/file", "-o", "file"]);
    command.current_dir(&world.directory).env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let line = refusal(&world.run(command));
    assert!(line.contains("writing the received data: File too large"), "{line}");
    assert!(line.contains("file.part has "), "{line}");
    let report = world.report("rrtp://127.0.0.1/file -o file");
    assert_eq!(report["status"], 206);
    assert!(world.read("file") == data());
}

#[test]
fn nothing_is_served_or_written_beyond_the_directory() {
    let Some(world) = World::new() else { return };
    let _serve = world.serve("--listen rrtp://127.0.0.1:80 --listen tcp://127.0.0.1:80");
    for path in ["../secret", "%2e%2e/secret", "..%2Fsecret"] {
        let line = world.refused(&format!("rrtp://127.0.0.1/{path} -o file"));
        assert!(
            line.contains("400 Bad Request") && line.contains("not a valid file name"),
            "{line}"
        );
    }
    let line = world.refused("rrtp://127.0.0.1/nothing -o file");
    assert!(line.ends_with("/nothing: 404 Not Found: No such file or directory"), "{line}");
    let answer = world.namespace.run(|| {
        let mut stream = std::net::TcpStream::connect("127.0.0.1:80").unwrap();
        let put = "PUT /new HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx";
        stream.write_all(put.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("allow: GET, HEAD"), "{answer}");
    assert!(!world.directory.path().join("www/new").exists());
    assert!(!world.directory.path().join("file").exists());
}

#[test]
fn a_server_that_does_not_answer_is_named_while_it_is_waited_for() {
    let Some(world) = World::new() else { return };
    // Nothing reads from this device.
    let _hole = world.namespace.run(|| TunFile::open("hole0")).unwrap();
    world.namespace.configure("hole0", &["10.9.0.1/24".parse().unwrap()], None).unwrap();
    for scheme in ["rrtp", "tcp"] {
        let line = format!("quickget {scheme}://10.9.0.2:80/file -o file");
        let mut client = Running::start(&world.namespace, world.command(&line));
        client.until("waiting for an answer from 10.9.0.2:80");
    }
}

/// The checksum of RRTP's packets (RFC 3720 appendix B.4).
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}

#[test]
fn no_server_and_another_version_are_one_line_each() {
    let Some(world) = World::new() else { return };
    let socket = world.namespace.run(|| UdpSocket::bind("127.0.0.1:80")).unwrap();
    let silent = world.refused("rrtp://127.0.0.1/file -o file");
    assert!(silent.contains("127.0.0.1:80: no answer"), "{silent}");
    // From here on every packet is answered with a VERSION packet for version 9, as in
    // docs/rrtp.md.
    thread::spawn(move || {
        let mut datagram = [0; 2_000];
        loop {
            let Ok((_, from)) = socket.recv_from(&mut datagram) else { return };
            let mut answer = [0; 16];
            (answer[0], answer[1]) = (9 << 4 | 12, 0);
            answer[4..12].copy_from_slice(&datagram[4..12]);
            let sum = crc32c(&answer[..12]);
            answer[12..].copy_from_slice(&sum.to_be_bytes());
            let _ = socket.send_to(&answer, from);
        }
    });
    let other = world.refused("rrtp://127.0.0.1/file -o file");
    assert!(other.contains("the peer speaks version 9 of RRTP, not 2"), "{other}");
    let nobody = world.refused("tcp://127.0.0.1/file -o file");
    assert!(nobody.contains("127.0.0.1:80: Connection refused"), "{nobody}");
    assert!(!world.directory.path().join("file.part").exists());
}

#[test]
fn a_file_that_is_not_the_servers_is_not_put_in_its_place() {
    let Some(world) = World::new() else { return };
    let listener = world.namespace.run(|| TcpListener::bind("127.0.0.1:80")).unwrap();
    let serving = thread::spawn(move || {
        // The digest is that of empty content (RFC 9530 appendix A).
        let digest = "repr-digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:\r\n";
        for digest in [digest, digest, ""] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 2_000];
            let read = stream.read(&mut head).unwrap();
            let head = text(&head[..read]);
            assert!(head.contains("want-repr-digest: sha-256=") && !head.contains("range: "));
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n{digest}\r\nhello");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    // Repeating the command does not help.
    for _ in 0..2 {
        let line = world.refused("tcp://127.0.0.1/file -o file");
        assert!(line.ends_with(": the data is discarded"), "{line}");
        assert_eq!(world.names(), ["secret", "www"]);
    }
    let line = world.refused("tcp://127.0.0.1/file -o file");
    assert!(line.contains("sends no SHA-256"), "{line}");
    assert_eq!(world.names(), ["secret", "www"]);
    serving.join().unwrap();
}

#[test]
fn a_complete_part_is_verified_and_an_untagged_one_is_kept() {
    let Some(world) = World::new() else { return };
    let _serve = world.serve("--listen tcp://127.0.0.1:80");
    let leave = |part: &[u8]| {
        fs::write(world.directory.path().join("file.part"), part).unwrap();
        let tag = "\ntcp://127.0.0.1/file\n";
        fs::write(world.directory.path().join("file.part.etag"), tag).unwrap();
    };
    leave(&vec![7; LENGTH]);
    let line = world.refused("tcp://127.0.0.1/file -o file");
    assert!(line.contains("the SHA-256 of the received data differs"), "{line}");
    assert_eq!(world.names(), ["secret", "www"]);
    leave(&data());
    let report = world.report("tcp://127.0.0.1/file -o file");
    assert_eq!((&report["status"], &report["bytes"]), (&416.into(), &0.into()));
    assert!(world.read("file") == data());

    fs::write(world.directory.path().join("file.part"), data()).unwrap();
    let line = world.refused("tcp://127.0.0.1/file -o file");
    assert!(
        line.contains("file.part exists, and may not belong to") && line.ends_with("remove it")
    );
    assert!(world.read("file.part") == data());
    // A directory listing is verified as well.
    let report = world.report("tcp://127.0.0.1/ -o listing");
    assert!(text(&world.read("listing")).contains("href=\"slow\""), "{report}");
}

#[test]
fn a_server_whose_416_says_no_digest_is_asked_for_all_of_it() {
    let Some(world) = World::new() else { return };
    let listener = world.namespace.run(|| TcpListener::bind("127.0.0.1:80")).unwrap();
    let serving = thread::spawn(move || {
        let digest = "repr-digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:\r\n";
        let none = "HTTP/1.1 416 No\r\ncontent-range: bytes */5\r\ncontent-length: 0\r\n\r\n";
        let all = format!("HTTP/1.1 200 OK\r\n{digest}content-length: 5\r\n\r\nhello");
        for (answer, is_part) in [(none, true), (&all[..], false)] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 2_000];
            let read = stream.read(&mut head).unwrap();
            assert_eq!(text(&head[..read]).contains("range: bytes=5-"), is_part);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    fs::write(world.directory.path().join("file.part"), "wrong").unwrap();
    let tag = "\ntcp://127.0.0.1/file\n";
    fs::write(world.directory.path().join("file.part.etag"), tag).unwrap();
    let report = world.report("tcp://127.0.0.1/file -o file");
    assert_eq!((&report["status"], &report["bytes"]), (&200.into(), &5.into()));
    assert_eq!(world.read("file"), b"hello");
    serving.join().unwrap();
}

/// A path with a small MTU, as through a tunnel: the kernel rejects a batch to be cut into
/// datagrams, but not the single datagrams.
#[test]
fn a_path_whose_mtu_is_less_than_a_packet_loses_none_of_a_batch() {
    let Some(world) = World::new() else { return };
    world.namespace.set_mtu("lo", 1_420).unwrap();
    let lost = || {
        let serve = world.serve("--listen rrtp://127.0.0.1:80 --json");
        let report = world.report("rrtp://127.0.0.1/file -o file");
        assert!(world.read("file") == data());
        let received = report["info"]["packets_received"].as_u64().unwrap();
        serve.signal("INT");
        let report: Value = serde_json::from_str(&serve.end().1).unwrap();
        let sent = report[0]["counters"]["sent"].as_u64().unwrap();
        (sent - received, sent)
    };
    // A machine that stalls may lose some packets; a rejected batch loses most of them, every time.
    let all: Vec<_> = (0..10).map(|_| lost()).collect();
    assert!(all.iter().any(|(lost, sent)| *lost < sent / 100), "{all:?}");
}

/// A packet of RRTP with its checksum, as in docs/rrtp.md.
fn packet(kind: u8, connection: u64, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![2 << 4 | kind, 0, 0, 0];
    packet.extend(connection.to_be_bytes());
    let sum = crc32c(&[&packet[..], body].concat());
    packet.extend(sum.to_be_bytes());
    packet.extend(body);
    packet
}

/// The resident memory of a process in KiB.
fn resident(running: &Running) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

/// `RRTP_FLOOD=1000000` sends a million packets; `--nocapture` shows the counts.
#[test]
fn a_flood_from_a_thousand_addresses_takes_no_memory_and_no_place_of_a_client() {
    let Some(world) = World::new() else { return };
    let count: u64 = std::env::var("RRTP_FLOOD").map_or(100_000, |count| count.parse().unwrap());
    let serve = world.serve("--listen rrtp://127.0.0.1:80 --json");
    // The first transfer allocates what a connection needs.
    world.report("rrtp://127.0.0.1/file -o before");
    let before = resident(&serve);
    let flooding = world.namespace.spawn_thread(move || {
        for source in 0..1_000_u64 {
            let from =
                std::net::Ipv4Addr::new(127, 9, (source / 250) as u8, (source % 250) as u8 + 1);
            let socket = UdpSocket::bind((from, 0)).unwrap();
            for number in 0..count / 2_000 {
                let connection = (source << 32) + number;
                // A SYN, and a START with a forged cookie.
                let syn = packet(0, connection, &[0; 24]);
                let start = packet(2, connection, &[7; 24]);
                for packet in [syn, start] {
                    socket.send_to(&packet, "127.0.0.1:80").unwrap();
                }
            }
        }
    });
    let flooding = flooding.unwrap();
    let mut clients = 0;
    while clients == 0 || !flooding.is_finished() {
        let report = world.report("rrtp://127.0.0.1/file -o file");
        assert_eq!(report["sha256"], sha256(&data()));
        clients += 1;
    }
    flooding.join().unwrap();
    let after = resident(&serve);
    serve.signal("INT");
    let report: Value = serde_json::from_str(&serve.end().1).unwrap();
    let counters = &report[0]["counters"];
    let [syns, forged] = ["syns", "bad_cookie"].map(|name| counters[name].as_u64().unwrap());
    println!(
        "{syns} SYNs and {forged} forged STARTs arrived of {} each; {before} KiB before, {after} after; {clients} files",
        count / 2
    );
    // Packets without room in the socket are lost; the rest are handled.
    let least = count / 2 / 10;
    assert!(syns > least && forged > least, "{counters}");
    assert_eq!(counters["accepted"], clients + 1, "{counters}");
    // The files take a few MiB, independently of the number of packets; connections for half of the
    // packets would take far more.
    let most = 32 * 1024;
    assert!(after < before + most, "{before} KiB before, {after} after");
}
