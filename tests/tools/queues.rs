//! `serve --queues`: one host on several queues, with the kernel as the peer that distributes the
//! flows.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use airtcp_device::{TunFile, TunOptions};
use airtcp_testbed::{Namespace, or_skip, peer, requirements};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::setup::{Running, airtcp};

/// With this many flows, one queue for all of them is as likely as 64 heads in a row.
const FLOWS: u64 = 64;
const BYTES: u64 = 300_000;

/// `serve` on several queues in a namespace, and the directory that it serves.
struct World {
    namespace: Namespace,
    directory: TempDir,
    serve: Running,
}

impl World {
    fn new(flags: &str) -> Option<Self> {
        or_skip(requirements())?;
        let namespace = Namespace::new().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().display();
        let line = format!(
            "--tun tun0 --address 10.0.0.2/24 --gateway 10.0.0.1 --address fd00::2/64 --gateway fd00::1 \
             --metrics 127.0.0.1:9464 --json --control {own}/serve.sock {flags} echo:7 http:80:{own}"
        );
        let serve = Running::serve(&namespace, &line.split_whitespace().collect::<Vec<_>>());
        Some(Self { namespace, directory, serve })
    }

    /// The output of `airtcp ss`, as text and as JSON.
    fn ss(&self) -> (String, Value) {
        let socket = self.directory.path().join("serve.sock").display().to_string();
        let ask = |more: &[&str]| {
            let output = airtcp(&[&["ss", "--control", &socket], more].concat()).output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        };
        (ask(&[]), serde_json::from_str::<Value>(&ask(&["--json"])).unwrap()[0].clone())
    }

    fn metrics(&self) -> String {
        self.namespace.run(|| {
            let mut scraper = TcpStream::connect("127.0.0.1:9464").unwrap();
            let request = "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
            scraper.write_all(request.as_bytes()).unwrap();
            let mut text = String::new();
            scraper.read_to_string(&mut text).unwrap();
            text
        })
    }

    /// Counters at one time, summed over the queues.
    fn counters<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let metrics = self.metrics();
        names.map(|name| {
            let begin = format!("airtcp_{name}_total ");
            let value = metrics.lines().find_map(|line| line.strip_prefix(&begin));
            value.unwrap().parse().unwrap()
        })
    }

    /// Ends `serve` with a signal, and returns its output.
    fn end(self) -> Value {
        self.serve.signal("INT");
        let (code, text) = self.serve.end();
        assert_eq!(code, Some(0), "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

/// Echoes and compares [`FLOWS`] concurrent flows.
async fn echo_all(server: SocketAddr) -> std::io::Result<()> {
    let mut flows = JoinSet::new();
    for seed in 0..FLOWS {
        let stream = peer::connect(server, None).await?;
        flows.spawn(peer::echo(stream, seed, BYTES));
    }
    while let Some(flow) = flows.join_next().await {
        assert_eq!(flow??, BYTES);
    }
    Ok(())
}

fn queues_of(ss: &Value) -> BTreeSet<u64> {
    let connections = ss["connections"].as_array().unwrap().iter();
    connections.map(|connection| connection["queue"].as_u64().unwrap()).collect()
}

fn flows_are_spread_and_intact(flags: &str, server: &str) {
    let Some(world) = World::new(flags) else { return };
    let server: SocketAddr = server.parse().unwrap();
    let open = world.namespace.block_on(async move {
        let mut open = Vec::new();
        for _ in 0..FLOWS {
            let mut stream = peer::connect(server, None).await?;
            // Once a byte has come back, both ends are established.
            stream.write_all(b"!").await?;
            stream.read_u8().await?;
            open.push(stream);
        }
        std::io::Result::Ok(open)
    });
    let open = open.unwrap();
    let (text, json) = world.ss();
    assert!(text.lines().next().unwrap().ends_with("connections: 64"), "{text}");
    assert!(text.contains(" queue:0\n") && text.contains(" queue:1\n"), "{text}");
    assert_eq!(queues_of(&json), BTreeSet::from([0, 1]));
    assert_eq!(json["connections_total"], FLOWS);
    let metrics = world.metrics();
    for line in ["airtcp_TcpPassiveOpens_total 64", "airtcp_connections{state=\"ESTAB\"} 64"] {
        assert!(metrics.lines().any(|one| one == line), "{metrics}");
    }

    world.namespace.block_on(echo_all(server)).unwrap();
    // The kernel delivers each flow to its queue. Only segments without a connection, such as a
    // repeated last ACK, are looked up on other queues.
    let [over, reset, broken] = world.counters(["IpExtHandedOver", "TcpOutRsts", "TcpEstabResets"]);
    assert_eq!((over, broken), (reset, 0));
    drop(open);
    let report = world.end();
    assert_eq!(report["connections_total"], 2 * FLOWS);
    assert_eq!(report["counters"]["TcpPassiveOpens"], 2 * FLOWS);
    assert!(report["device"]["rx_bytes"].as_u64().unwrap() > FLOWS * BYTES);
    let errors = report["connections"].as_array().unwrap().iter();
    assert_eq!(errors.filter(|connection| !connection["error"].is_null()).count(), 0, "{report}");
}

#[test]
fn flows_are_spread_over_two_queues_and_intact() {
    flows_are_spread_and_intact("--queues 2 --no-offload", "10.0.0.2:7");
}

#[test]
fn flows_are_spread_over_two_queues_that_offload_and_intact() {
    flows_are_spread_and_intact("--queues 2", "[fd00::2]:7");
}

/// A client behind a router, which is the stack's namespace.
fn beyond(world: &World) -> Namespace {
    let client = Namespace::new().unwrap();
    world.namespace.connect("veth0", &client, "veth0").unwrap();
    world.namespace.configure("veth0", &["10.0.9.1/24".parse().unwrap()], None).unwrap();
    client.configure("veth0", &["10.0.9.2/24".parse().unwrap()], None).unwrap();
    world.namespace.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
    let router = "10.0.9.1".parse().unwrap();
    client.add_route("veth0", "10.0.0.0/24".parse().unwrap(), Some(router)).unwrap();
    client
}

#[test]
fn segments_in_fragments_reach_their_connections() {
    let Some(world) = World::new("--queues 3") else { return };
    let client = beyond(&world);
    // Without DF, routers fragment large packets, and the stack uses the MTU that the device had.
    client.set_sysctl("net.ipv4.ip_no_pmtu_disc", "1").unwrap();
    world.namespace.set_mtu("tun0", 1000).unwrap();
    client.block_on(echo_all("10.0.0.2:7".parse().unwrap())).unwrap();
    // All fragments arrive on the same queue.
    let [whole, over] = world.counters(["IpReasmOKs", "IpExtHandedOver"]);
    assert!(whole > 0 && over > 0, "{whole} {over}");
    assert_eq!(world.counters(["TcpEstabResets", "TcpPassiveOpens"]), [0, FLOWS]);
    world.end();
}

#[test]
fn packet_too_big_reaches_the_connection_of_its_queue() {
    let Some(world) = World::new("--queues 2") else { return };
    let client = beyond(&world);
    world.namespace.set_mtu("veth0", 1000).unwrap();
    let file: Vec<u8> = (0..BYTES).map(|n| (n.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
    std::fs::write(world.directory.path().join("file"), &file).unwrap();
    let got = client.block_on(async {
        let mut streams = Vec::new();
        // All are open before a router has sent an error.
        for _ in 0..FLOWS {
            streams.push(peer::connect("10.0.0.2:80".parse().unwrap(), None).await?);
        }
        let mut flows = JoinSet::new();
        for mut stream in streams {
            flows.spawn(async move {
                let request = b"GET /file HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
                stream.write_all(request).await?;
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).await?;
                std::io::Result::Ok(answer)
            });
        }
        flows.join_all().await.into_iter().collect::<std::io::Result<Vec<_>>>()
    });
    for answer in got.unwrap() {
        let body = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
        assert!(answer[body..] == file, "{} bytes", answer.len() - body);
    }
    // The errors reached each connection, whichever queue they arrived on; none needed time-outs to
    // detect the MTU.
    let [lowered, black_holes, unknown, over] = world.counters([
        "TcpExtPmtuLowered",
        "TcpExtPmtuBlackHoles",
        "IcmpInErrors",
        "IpExtHandedOver",
    ]);
    assert_eq!((lowered, black_holes, unknown), (FLOWS, 0, 0));
    assert!(over > 0);
    world.end();
}

#[test]
fn a_device_that_is_deleted_ends_all_of_it_with_one_error() {
    for flags in ["--queues 1", "--queues 3"] {
        let Some(mut world) = World::new(flags) else { return };
        world.namespace.remove("tun0").unwrap();
        let said = world.serve.rest();
        let [error] = &said[..] else { panic!("{said:?}") };
        assert!(error.starts_with("error: the device of the stack is gone"), "{error}");
        assert!(error.ends_with("restart to create it again"), "{error}");
        assert_eq!(world.serve.end().0, Some(1));
    }
}

#[test]
fn services_share_their_state_over_all_queues() {
    let Some(world) = World::new("--queues 2") else { return };
    let open = || world.namespace.run(|| TcpStream::connect("10.0.0.2:80").unwrap());
    let mut streams = vec![open()];
    let queue_of = |stream: &TcpStream| {
        let (_, json) = world.ss();
        let peer = Value::from(stream.local_addr().unwrap().to_string());
        let mut all = json["connections"].as_array().unwrap().iter();
        all.find(|one| one["peer"] == peer).and_then(|one| one["queue"].as_u64())
    };
    let first = queue_of(&streams[0]);
    while streams.len() < 2 || queue_of(streams.last().unwrap()) == first {
        streams.push(open());
    }
    let (mut begun, mut other) = (streams.remove(0), streams.pop().unwrap());
    // Start an upload that stays incomplete, and one of the same file on the other queue.
    let head = "PUT /file HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 8\r\n\r\n";
    begun.write_all(format!("{head}half").as_bytes()).unwrap();
    let is_held = || {
        let mut entries = std::fs::read_dir(world.directory.path()).unwrap();
        entries.any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with(".airtcp-"))
    };
    while !is_held() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    other.write_all(format!("{head}complete").as_bytes()).unwrap();
    let mut answer = String::new();
    other.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert_eq!(std::fs::read(world.directory.path().join("file")).unwrap(), b"complete");
    // The first upload ended, with or without a response.
    let mut answer = String::new();
    let _ = begun.read_to_string(&mut answer);
    assert!(!answer.contains(" 201 ") && !is_held(), "{answer}");
    drop((begun, other, streams));
    world.end();
}

#[test]
fn a_trace_has_the_flows_of_all_queues() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let flags = format!("--queues 2 --trace {}", trace.display());
    let Some(world) = World::new(&flags) else { return };
    let server: SocketAddr = "10.0.0.2:7".parse().unwrap();
    world.namespace.block_on(echo_all(server)).unwrap();
    assert_eq!(world.end()["connections_total"], FLOWS);
    let events = std::fs::read_to_string(trace.join("events.sqlog")).unwrap();
    let flows: BTreeSet<_> = events
        .lines()
        .filter_map(|line| Some(line.split_once("\"group_id\":\"")?.1.split_once('"')?.0))
        .collect();
    assert_eq!(flows.len() as u64, FLOWS, "{flows:?}");
}

/// Runs a command that must not start, and returns its error line.
fn refused(namespace: &Namespace, line: &str) -> String {
    let command = airtcp(&line.split_whitespace().collect::<Vec<_>>());
    let output = namespace.spawn_child(command).unwrap().wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("error: ") && text.lines().count() == 1, "{text}");
    text
}

#[test]
fn a_device_that_does_not_fit_the_queues_is_refused() {
    let Some(()) = or_skip(requirements()) else { return };
    let namespace = Namespace::new().unwrap();
    for (name, more) in [("tun1", None), ("tun2", Some("multi_queue"))] {
        let mut command = Command::new("ip");
        command.args(["tuntap", "add", "dev", name, "mode", "tun"]).args(more);
        assert!(namespace.spawn_child(command).unwrap().wait().unwrap().success());
    }
    let serve = "serve --address 10.0.0.2/24 echo:7";
    let single = refused(&namespace, &format!("{serve} --tun tun1 --queues 2"));
    assert!(single.contains("tun1 has a single queue: omit --queues"), "{single}");
    let several = refused(&namespace, &format!("{serve} --tun tun2"));
    assert!(several.contains("tun2 has several queues"), "{several}");
    assert!(several.contains("--queues 2 or more"), "{several}");

    let options = TunOptions { multi_queue: true, ..TunOptions::default() };
    let _others = namespace.run(move || TunFile::open_with("tun2", options)).unwrap();
    let busy = refused(&namespace, &format!("{serve} --tun tun2 --queues 2"));
    assert!(busy.contains("tun2 is in use by another process"), "{busy}");
}
