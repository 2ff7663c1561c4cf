//! `get`, `put` and `connect` with the kernel as their peer.

use std::fs;
use std::io::{Read, Write};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use airtcp_testbed::{Namespace, Service, or_skip, requirements};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::server::Site;
use crate::setup::{Running, airtcp};

pub(crate) const LENGTH: usize = 3_000_017;

/// A namespace with a server, and a directory for the client.
pub(crate) struct World {
    pub(crate) namespace: Namespace,
    site: Arc<Site>,
    pub(crate) directory: TempDir,
}

pub(crate) fn data() -> Vec<u8> {
    (0..LENGTH as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

pub(crate) fn sha256(data: &[u8]) -> String {
    Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl World {
    pub(crate) fn new() -> Option<Self> {
        or_skip(requirements())?;
        let namespace = Namespace::new().unwrap();
        let site = Site::serve(&namespace, 80, data());
        Some(Self { namespace, site, directory: tempfile::tempdir().unwrap() })
    }

    /// Runs a client to its end in the directory. Its device is new each time; the kernel's
    /// addresses there end in `.1` and `::1`.
    pub(crate) fn client(&self, command: &str, arguments: &[&str]) -> Output {
        let begin =
            [command, "--tun", "tun0", "--address", "10.0.0.2/24", "--address", "fd00::2/64"];
        let mut command = airtcp(&[&begin, arguments].concat());
        command.current_dir(&self.directory);
        self.namespace.spawn_child(command).unwrap().wait_with_output().unwrap()
    }

    /// Runs a client that must succeed, and returns its report.
    pub(crate) fn report(&self, command: &str, arguments: &[&str]) -> Value {
        let output = self.client(command, &[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a client that must fail, and returns its error line.
    pub(crate) fn refused(&self, command: &str, arguments: &[&str]) -> String {
        let output = self.client(command, arguments);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
        let line = text(&output.stderr).trim_end().to_owned();
        assert!(line.starts_with("error: ") && line.lines().count() == 1, "{line}");
        line
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.path().join(name)).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_file_comes_whole_over_both_versions_and_is_checked() {
    let Some(world) = World::new() else { return };
    for url in ["http://10.0.0.1/file", "http://[fd00::1]/moved"] {
        let report = world.report("get", &[url, "-o", "file"]);
        assert_eq!(report["length"], LENGTH, "{report}");
        assert_eq!(report["bytes"], LENGTH, "{report}");
        assert_eq!(report["sha256"], sha256(&data()), "{report}");
        assert!(report["bits_per_second"].as_u64() > Some(0), "{report}");
        assert!(report["info"]["bytes_received"].as_u64() > Some(LENGTH as u64), "{report}");
        assert!(world.read("file") == data());
        assert!(report["url"].as_str().unwrap().ends_with("/file"), "{report}");
    }
    let heads = world.site.heads();
    assert!(heads[1].contains("\r\nhost: [fd00::1]\r\n"), "{heads:?}");
    assert_eq!(world.names(), ["file"]);
    // The output for people is the checksum in the format of sha256sum, and a summary line; the
    // checksum is on stderr if stdout has the file.
    let output = world.client("get", &["http://10.0.0.1/whole", "-o", "-"]);
    assert!(output.status.success() && output.stdout == data());
    assert!(text(&output.stderr).ends_with(&format!("{}  -\n", sha256(&data()))));
    let output = world.client("get", &["http://10.0.0.1/whole", "-o", "file"]);
    assert_eq!(text(&output.stdout), format!("{}  file\n", sha256(&data())));
    assert!(text(&output.stderr).starts_with("2.9 MiB in "), "{}", text(&output.stderr));
}

#[test]
fn a_killed_transfer_resumes() {
    let Some(world) = World::new() else { return };
    let path = |name| world.directory.path().join(name);
    fs::write(path("file"), "old").unwrap();
    let line = "get --tun tun0 --address 10.0.0.2/24 http://10.0.0.1/stuck -o file";
    let mut command = airtcp(&line.split(' ').collect::<Vec<_>>());
    command.current_dir(&world.directory);
    let mut running = Running::start(&world.namespace, command);
    let half = LENGTH as u64 / 2;
    while fs::metadata(path("file.part")).map_or(0, |part| part.len()) < half {
        assert!(running.is_running(), "it ended");
        thread::sleep(Duration::from_millis(10));
    }
    running.signal("KILL");
    drop(running);
    assert_eq!(world.read("file"), b"old");

    let refused = world.refused("get", &["http://10.0.0.1/file", "-o", "file"]);
    assert!(refused.contains("file.part exists") && refused.contains("--continue"), "{refused}");
    let refused = world.refused("get", &["http://10.0.0.1/file", "-o", "file", "-C"]);
    assert!(
        refused.contains("file.part belongs to a transfer of http://10.0.0.1/stuck"),
        "{refused}"
    );
    fs::remove_file(path("file.part.etag")).unwrap();
    let report = world.report("get", &["http://10.0.0.1/file", "-o", "file", "-C"]);
    assert_eq!(report["status"], 206);
    assert_eq!(
        (&report["bytes"], &report["length"]),
        (&(LENGTH as u64 - half).into(), &LENGTH.into())
    );
    assert_eq!(report["sha256"], sha256(&data()));
    assert!(world.read("file") == data());
    assert_eq!(world.names(), ["file"]);

    // The part file is complete; then it is longer than the file; then the server supports no
    // ranges.
    fs::write(path("file.part"), data()).unwrap();
    let report = world.report("get", &["http://10.0.0.1/file", "-o", "file", "-C"]);
    assert_eq!((&report["status"], &report["bytes"]), (&416.into(), &0.into()));
    fs::write(path("file.part"), [data(), data()].concat()).unwrap();
    let refused = world.refused("get", &["http://10.0.0.1/file", "-o", "file", "-C"]);
    assert!(refused.contains("the file has changed"), "{refused}");
    fs::write(path("file.part"), "nonsense").unwrap();
    let report = world.report("get", &["http://10.0.0.1/whole", "-o", "file", "-C"]);
    assert_eq!((&report["status"], &report["bytes"]), (&200.into(), &LENGTH.into()));
    assert!(world.read("file") == data());
}

#[test]
fn a_part_that_ends_early_is_not_taken_for_the_file() {
    let Some(world) = World::new() else { return };
    fs::write(world.directory.path().join("file"), "old").unwrap();
    fs::write(world.directory.path().join("file.part"), &data()[..1_000]).unwrap();
    let line = world.refused("get", &["http://10.0.0.1/vague", "-o", "file", "-C"]);
    assert!(line.contains("a range without the total length"), "{line}");
    for upto in [1_001_000, 2_001_000] {
        let line = world.refused("get", &["http://10.0.0.1/parts", "-o", "file", "-C"]);
        let expected = format!("has {LENGTH} bytes, but sent only the first {upto}");
        assert!(line.contains(&expected) && line.contains("file.part has"), "{line}");
        assert_eq!(world.read("file"), b"old");
        assert!(world.read("file.part") == data()[..upto]);
    }
    let report = world.report("get", &["http://10.0.0.1/parts", "-o", "file", "-C"]);
    assert_eq!((&report["status"], &report["length"]), (&206.into(), &LENGTH.into()));
    assert!(world.read("file") == data());
}

#[test]
fn a_part_of_a_changed_file_is_not_resumed() {
    let Some(world) = World::new() else { return };
    let (part, tag) = ("file.part", "file.part.etag");
    let path = |name: &str| world.directory.path().join(name);
    fs::write(path("file"), "old").unwrap();
    world.refused("get", &["http://10.0.0.1/torn", "-o", "file"]);
    assert_eq!(world.names(), ["file", part, tag]);
    let named = |tag: &str, name: &str| format!("\"{tag}\"\nhttp://10.0.0.1/{name}\n");
    assert_eq!(world.read(tag), named("v2", "torn").as_bytes());
    // A tag of another URL does not apply.
    let refused = world.refused("get", &["http://10.0.0.1/tagged", "-o", "file", "-C"]);
    assert!(
        refused.contains("file.part belongs to a transfer of http://10.0.0.1/torn"),
        "{refused}"
    );
    assert_eq!(world.read("file"), b"old");
    fs::write(path(tag), named("v2", "tagged")).unwrap();
    // The part belongs to the server's current file, so the transfer is resumed.
    let report = world.report("get", &["http://10.0.0.1/tagged", "-o", "file", "-C"]);
    assert_eq!((&report["status"], &report["length"]), (&206.into(), &LENGTH.into()));
    assert!(world.read("file") == data());
    assert_eq!(world.names(), ["file"]);

    // The part belongs to an older version of the file.
    let leave = |name| {
        fs::write(path("file"), "old").unwrap();
        fs::write(path(part), "nonsense").unwrap();
        fs::write(path(tag), named("v1", name)).unwrap();
    };
    leave("tagged");
    let output = world.client("get", &["http://10.0.0.1/tagged", "-o", "file", "-C"]);
    let notes = text(&output.stderr);
    assert!(
        output.status.success() && notes.contains("has changed: restarting the transfer"),
        "{notes}"
    );
    assert!(world.read("file") == data());
    assert_eq!(world.names(), ["file"]);
    // One server ignores If-Range, and the other does not identify its file.
    for name in ["careless", "file"] {
        leave(name);
        let url = format!("http://10.0.0.1/{name}");
        let refused = world.refused("get", &[&url, "-o", "file", "-C"]);
        assert!(
            refused.contains("a part of another file, or does not identify it")
                && refused.contains("remove /")
                && refused.ends_with("/file.part"),
            "{refused}"
        );
        assert_eq!((world.read("file"), world.read(part)), (b"old".into(), b"nonsense".into()));
    }
}

#[test]
fn a_failed_download_is_one_line_and_loses_nothing() {
    let Some(world) = World::new() else { return };
    fs::write(world.directory.path().join("file"), "old").unwrap();
    for (url, why) in [
        ("http://10.0.0.1/nothing", "404 Not Found: there is none"),
        ("http://10.0.0.1/away", "no TLS"),
        ("http://10.0.0.1/round", "more than 10 redirections"),
        ("http://10.0.0.1:81/file", "connection refused"),
        ("http://127.0.0.1/file", "not by loopback"),
    ] {
        let line = world.refused("get", &[url, "-o", "file"]);
        assert!(line.contains(why), "{line}");
        let address = line.matches("127.0.0.1:80").count();
        assert!(address <= 1, "it is said twice: {line}");
        assert_eq!(world.names(), ["file"], "{line}");
    }
    let broken = world.refused("get", &["http://10.0.0.1/broken", "-o", "file"]);
    assert!(
        broken.contains("was interrupted") && broken.contains("file.part has 1.4 MiB"),
        "{broken}"
    );
    assert_eq!(world.read("file"), b"old");
    assert!(world.read("file.part") == data()[..LENGTH / 2]);
}

#[test]
fn a_file_goes_out_and_is_what_was_sent() {
    let Some(world) = World::new() else { return };
    fs::write(world.directory.path().join("file"), data()).unwrap();
    for (url, target) in [("http://10.0.0.1/a", "/a"), ("http://10.0.0.1/moved", "/there")] {
        let report = world.report("put", &["file", url]);
        assert_eq!((&report["status"], &report["bytes"]), (&201.into(), &LENGTH.into()));
        assert_eq!(report["sha256"], sha256(&data()));
        let info = &report["info"];
        let [sent, again, acked] =
            ["bytes_sent", "bytes_retrans", "bytes_acked"].map(|name| info[name].as_u64().unwrap());
        assert!(acked == sent - again && acked > LENGTH as u64, "{report}");
        assert!(world.site.kept(target).unwrap() == data());
    }
    // The client follows the server's redirection unchanged.
    let heads = world.site.heads();
    assert!(heads.last().unwrap().starts_with("PUT /there?upload HTTP/1.1\r\n"), "{heads:?}");
    let refused = world.refused("put", &["file", "http://10.0.0.1/full"]);
    assert!(refused.contains("507") && refused.contains("no room"), "{refused}");
    for _ in 0..10 {
        let refused = world.refused("put", &["file", "http://10.0.0.1/shut"]);
        assert!(refused.contains("413") && refused.contains("less of it"), "{refused}");
    }
    let refused = world.refused("put", &["/dev/null", "http://10.0.0.1/a"]);
    assert!(refused.contains("/dev/null is not a regular file"), "{refused}");
}

/// The stack's own server on another device, with the kernel as a router between the two stacks.
#[test]
fn two_stacks_talk_through_a_kernel_that_forwards() {
    let Some(world) = World::new() else { return };
    let served = tempfile::tempdir().unwrap();
    let http = format!("http:80:{}", served.path().display());
    let socket = world.directory.path().join("serve.sock").display().to_string();
    let line = "--tun tun1 --address 10.1.0.2/24 --gateway 10.1.0.1 --control";
    let line: Vec<_> = line.split(' ').chain([socket.as_str(), &http]).collect();
    let serve = Running::serve(&world.namespace, &line);
    fs::write(world.directory.path().join("file"), data()).unwrap();
    world.namespace.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
    let url = "http://10.1.0.2/new";
    let sender = ["--strategies", "le/westwood-plus/hack", url];
    let put = world.report("put", &[&["file"], &sender[..]].concat());
    assert_eq!(put["info"]["combination"], "le/westwood-plus", "{put}");
    assert!(fs::read(served.path().join("new")).unwrap() == data());
    let get = world.report("get", &[url, "-o", "back"]);
    assert_eq!((&get["sha256"], &get["length"]), (&put["sha256"], &put["length"]));
    assert!(world.read("back") == data());
    // The answer arrives while the whole file is still being sent.
    for _ in 0..10 {
        let refused = world.refused("put", &["file", "http://10.1.0.2/"]);
        assert!(refused.contains("409") && refused.contains("a file needs a name"), "{refused}");
    }
    serve.signal("INT");
    assert_eq!(serve.end().0, Some(0));
}

#[test]
fn stdin_goes_to_the_peer_and_its_answer_to_stdout() {
    let Some(world) = World::new() else { return };
    let server = world.namespace.serve("0.0.0.0:7".parse().unwrap(), Service::Echo, None).unwrap();
    let line = "connect --tun tun0 --address 10.0.0.2/24 --json 10.0.0.1:7";
    let mut command = airtcp(&line.split(' ').collect::<Vec<_>>());
    command.stdin(Stdio::piped());
    let mut child = world.namespace.spawn_child(command).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writing = thread::spawn(move || stdin.write_all(&data()));
    let mut echoed = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut echoed).unwrap();
    writing.join().unwrap().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(echoed == data());
    let report: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(
        (&report["bytes_sent"], &report["bytes_received"]),
        (&LENGTH.into(), &LENGTH.into())
    );
    assert_eq!(report["error"], Value::Null);
    drop(server);
    let refused = world.refused("connect", &["10.0.0.1:9"]);
    assert!(refused.contains("10.0.0.1:9: connection refused"), "{refused}");
}

#[test]
fn a_reader_of_stdout_that_goes_away_has_seen_enough() {
    let Some(world) = World::new() else { return };
    let _server =
        world.namespace.serve("0.0.0.0:19".parse().unwrap(), Service::Source, None).unwrap();
    let line = "connect --tun tun0 --address 10.0.0.2/24 10.0.0.1:19";
    let mut command = airtcp(&line.split(' ').collect::<Vec<_>>());
    // The end of stdin would close the connection, and the server could stop before it has sent
    // anything.
    command.stdin(Stdio::piped());
    let mut child = world.namespace.spawn_child(command).unwrap();
    let _stdin = child.stdin.take();
    child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn an_icmp_error_ends_a_connect_with_its_reason() {
    let Some(world) = World::new() else { return };
    // The kernel forwards, has no route, and sends an ICMP error.
    world.namespace.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
    let output = world.client("get", &["http://10.9.9.9/file", "-o", "file"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with("note: 10.9.9.9:80: network unreachable"), "{said}");
    assert!(lines[1].starts_with("error: 10.9.9.9:80: network unreachable"), "{said}");
    assert!(!said.contains("return route"), "{said}");
    assert!(world.names().is_empty());
}

#[test]
fn a_device_that_is_down_is_left_alone_and_what_to_type_is_said() {
    let Some(world) = World::new() else { return };
    let mut command = std::process::Command::new("ip");
    command.args(["tuntap", "add", "dev", "tun0", "mode", "tun"]);
    assert!(world.namespace.spawn_child(command).unwrap().wait().unwrap().success());
    let refused = world.refused("get", &["http://10.0.0.1/file", "-o", "file"]);
    assert!(
        refused.contains("tun0 existed already and is down; type: ip addr add 10.0.0.1/24"),
        "{refused}"
    );
    assert!(world.names().is_empty());
}
