//! Runs packetdrill's own scripts if packetdrill is installed. `PACKETDRILL` names the program, and
//! `PACKETDRILL_SCRIPTS` lists more folders of scripts, separated by colons. Each script gets its
//! own namespace and limited time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use airtcp_testbed::Namespace;

/// Scripts that fail, by folder and name, each with the reason.
const EXPECTED: &str = include_str!("expected_failures.txt");
/// The groups of scripts by what they require of a stack, by folder and name.
const GROUPS: &str = include_str!("groups.txt");
/// The most real time that a script may take (s); virtual time costs none.
const LIMIT: &str = "60";
/// Sets the stack without the limit on how much one ACK counts in slow start (RFC 9406 section
/// 4.3), because Linux has none.
const FLAGS: &str = "--so_flags=detection=rack,congestion=cubic,byte_counting_limit=65536";
const ARGUMENTS: [&str; 10] = [
    "--send_omit_free",
    "--ip_version=ipv4",
    "--local_ip=192.168.0.1",
    "--gateway_ip=192.168.0.1",
    "--netmask_ip=255.255.0.0",
    "--remote_ip=192.0.2.1",
    "-DTFO_COOKIE=3021b9d889017eeb",
    "-DCODE=host_unreachable",
    "-DCMSG_LEVEL_IP=SOL_IP",
    "-DCMSG_TYPE_RECVERR=IP_RECVERR",
];

struct Runner {
    program: PathBuf,
    library: PathBuf,
}

impl Runner {
    /// Returns `None` and prints a note without packetdrill.
    fn new() -> Option<Self> {
        let Some(program) = std::env::var_os("PACKETDRILL") else {
            eprintln!("skipped: PACKETDRILL names no packetdrill");
            return None;
        };
        Some(Self { program: program.into(), library: build() })
    }

    /// Runs a script, and returns its error message if it fails.
    fn run(&self, script: &Path) -> Result<(), String> {
        let namespace = Namespace::new().unwrap();
        let log = tempfile::NamedTempFile::new().unwrap();
        let out = || Stdio::from(log.reopen().unwrap());
        // Google's scripts start with a command that needs the device which packetdrill makes for
        // the kernel's TCP.
        let device = "ip tuntap add tun0 mode tun && ip link set lo up && exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", device, "sh", "timeout", "--signal=KILL", LIMIT]).arg(&self.program);
        command.arg(format!("--so_filename={}", self.library.display()));
        // The command line would override a script's own flags.
        if !fs::read_to_string(script).unwrap().contains("--so_flags=") {
            command.arg(FLAGS);
        }
        command.args(ARGUMENTS);
        command.arg(script.file_name().unwrap()).current_dir(script.parent().unwrap());
        command.env("LD_PRELOAD", &self.library).stdin(Stdio::null()).stdout(out()).stderr(out());
        let status = namespace.spawn_child(command).unwrap().wait().unwrap();
        let text = fs::read_to_string(log.path()).unwrap();
        if status.success() { Ok(()) } else { Err(complaint(&text).unwrap_or(status.to_string())) }
    }
}

/// The line with the error message, packetdrill's or an assertion's.
fn complaint(log: &str) -> Option<String> {
    let reported = |line: &&str| line.contains(".pkt:") && !line.contains("error in Python code");
    let asserted = |line: &&str| line.starts_with("AssertionError") || line.contains("    assert ");
    let line =
        log.lines().find(reported).or_else(|| log.lines().find(asserted)).or(log.lines().last());
    line.map(|line| line.trim().to_owned())
}

/// Builds the library with the feature that packetdrill's assertions need, in a separate directory:
/// nothing under test may link it.
fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packetdrill");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", "airtcp-packetdrill", "--features", "preload"]);
    cargo.arg("--target-dir").arg(&target).current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(cargo.status().unwrap().success(), "the library does not build");
    target.join("debug/libairtcp_packetdrill.so")
}

fn ours() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packetdrill/scripts")
}

/// Finds all scripts under `folder`, sorted.
fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        // Of the scripts for one version of IP, only those for IPv4 run.
        let is_script = path.extension().is_some_and(|extension| extension == "pkt")
            && !path.to_string_lossy().ends_with("v6.pkt");
        // TCP Fast Open is not supported.
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("fastopen")) {
            continue;
        }
        if path.is_dir() {
            find(&path, found);
        } else if is_script {
            found.push(path);
        }
    }
}

/// Splits each line that is not a comment in two.
fn pairs(
    text: &'static str,
    between: &'static str,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(move |line| line.split_once(between).unwrap_or_else(|| panic!("`{line}`")))
}

/// How many scripts passed of how many.
#[derive(Default)]
struct Table(BTreeMap<String, (u32, u32)>);

impl Table {
    fn add(&mut self, row: String, passed: bool) {
        let (sum, all) = self.0.entry(row).or_default();
        *sum += u32::from(passed);
        *all += 1;
    }

    fn print(&self) {
        self.0.iter().for_each(|(row, (passed, all))| println!("{row}: {passed} of {all}"));
    }
}

#[test]
fn every_script_passes_but_those_with_a_reason() {
    let Some(runner) = Runner::new() else { return };
    let mut scripts = Vec::new();
    find(&ours(), &mut scripts);
    let folders = std::env::var_os("PACKETDRILL_SCRIPTS").unwrap_or_default();
    for folder in std::env::split_paths(&folders).filter(|path| !path.as_os_str().is_empty()) {
        find(&folder.canonicalize().unwrap_or(folder), &mut scripts);
    }
    let reasons: BTreeMap<_, _> = pairs(EXPECTED, ": ").collect();
    let groups: BTreeMap<_, _> = pairs(GROUPS, " ").map(|(group, name)| (name, group)).collect();
    let (mut by_folder, mut by_group, mut wrong) = (Table::default(), Table::default(), Vec::new());
    for script in scripts {
        let folder = script.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let name = format!("{folder}/{}", script.file_name().unwrap().to_string_lossy());
        let reason = reasons.get(name.as_str());
        let group = if folder == "scripts" { "ours" } else { "Linux itself" };
        let result = runner.run(&script);
        by_folder.add(folder, result.is_ok());
        by_group.add(groups.get(name.as_str()).unwrap_or(&group).to_string(), result.is_ok());
        match result {
            Ok(()) => {
                wrong.extend(reason.map(|_| format!("{name} passes, and is expected to fail")));
            }
            Err(complaint) => {
                println!("{name}: {complaint}\n    {}", reason.unwrap_or(&"no reason is known"));
                wrong.extend(reason.is_none().then_some(name));
            }
        }
    }
    by_folder.print();
    by_group.print();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Errors in a script are detected; otherwise passing scripts would prove nothing.
#[test]
fn a_script_that_is_wrong_fails() {
    let Some(runner) = Runner::new() else { return };
    let good = fs::read_to_string(ours().join("rto_backoff.pkt")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("control.pkt");
    let judged = |text: &str| {
        fs::write(&script, text).unwrap();
        runner.run(&script)
    };
    assert_eq!(judged(&good), Ok(()));
    let ack = "+0 > . 1001:1001(0) ack 101";
    for (what, from, to, why) in [
        ("a wrong ACK number", ack, "+0 > . 1001:1001(0) ack 102", "tcp_ack_seq"),
        (
            "20 ms too late",
            "+0 > P. 1:1001(1000) ack 1",
            "+.02 > P. 1:1001(1000) ack 1",
            "timing error",
        ),
        ("a packet too many", ack, &format!("{ack}\n{ack}"), "0 bytes"),
        ("a false assertion", "tcpi_unacked == 0", "tcpi_unacked == 1", "returned non-zero status"),
    ] {
        assert!(good.contains(from), "{what}");
        let complaint = judged(&good.replace(from, to)).expect_err(what);
        println!("{what}: {complaint}");
        assert!(complaint.contains(why), "{what}: {complaint}");
    }
}
