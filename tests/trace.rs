//! Traces as other programs read them: tshark reads the capture without a complaint and shows the
//! fate of packets, tcptrace counts the same as the run, and both graphs have the same number of
//! marks.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use airtcp_testbed::{or_skip, requirements};
use serde_json::Value;

type Outcome = Result<(), Box<dyn Error>>;

/// Returns whether tshark and tcptrace are installed. If not, the test is skipped, or fails where
/// they are required.
fn have_readers() -> bool {
    ["tshark", "tcptrace"].into_iter().all(|program| {
        let found = Command::new(program).arg("-v").output().is_ok();
        if !found {
            let hint = format!("{program} is not installed: apt-get install tshark tcptrace");
            assert!(std::env::var_os("AIRTCP_REQUIRE_TOOLS").is_none(), "{hint}");
            eprintln!("SKIPPED: {hint}");
        }
        found
    })
}

/// A directory with a trace, and the report of the run.
struct Traced {
    dir: tempfile::TempDir,
    /// The JSON output of the command.
    report: Value,
}

impl Traced {
    /// Runs `airtcp ARGS --json --trace DIR` with `input` on its stdin.
    fn run(args: &[&str], input: &str) -> Result<Self, Box<dyn Error>> {
        let dir = tempfile::tempdir()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
        command.args(args).arg("--json").arg("--trace").arg(dir.path().join("t"));
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn()?;
        // The command may end without reading all of it.
        let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        let output = child.wait_with_output()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(Self { dir, report: serde_json::from_slice(&output.stdout)? })
    }

    /// The output of a program that runs in the trace's directory.
    fn read(&self, program: &str, args: &[&str]) -> Result<String, Box<dyn Error>> {
        let output = Command::new(program).current_dir(self.dir.path()).args(args).output()?;
        let complaints = String::from_utf8(output.stderr)?;
        assert!(output.status.success(), "{program} {args:?}: {complaints}");
        // As root, tshark warns that this is dangerous.
        let complaints: Vec<_> =
            complaints.lines().filter(|line| !line.contains("as user \"root\"")).collect();
        assert!(complaints.is_empty(), "{program} {args:?}: {complaints:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn tshark(&self, args: &[&str]) -> Result<String, Box<dyn Error>> {
        self.read("tshark", &[&["-r", "t/packets.pcapng"], args].concat())
    }

    /// The number of packets with each comment.
    fn comments(&self) -> Result<BTreeMap<String, u64>, Box<dyn Error>> {
        let mut comments = BTreeMap::new();
        for line in self.tshark(&["-T", "fields", "-e", "frame.comment"])?.lines() {
            *comments.entry(line.to_owned()).or_default() += 1;
        }
        comments.remove("");
        Ok(comments)
    }

    /// The number of dropped packets that take sequence numbers. The handshake's ACK and a reset
    /// take none, and may be dropped too.
    fn data_dropped(&self) -> Result<u64, Box<dyn Error>> {
        let dropped = "frame.comment contains \"dropped\" \
                       && (tcp.len > 0 || tcp.flags.syn == 1 || tcp.flags.fin == 1)";
        Ok(self.tshark(&["-Y", dropped])?.lines().count() as u64)
    }

    /// Asserts that no packet in the capture is malformed, and that no packet of the sender is
    /// missing. `kernel` is the address of a kernel: for a checksum of zero it writes 0xffff, which
    /// is valid but bad to tshark.
    fn assert_sound(&self, sender: &str, kernel: Option<&str>) -> Outcome {
        let mut bad = "tcp.checksum.status == Bad".to_owned();
        if let Some(address) = kernel {
            bad += &format!(" && !(ip.src == {address} && tcp.checksum == 0xffff)");
        }
        let broken = &format!("_ws.malformed || _ws.short || ip.checksum.status == Bad || ({bad})");
        let checked = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"];
        assert_eq!(self.tshark(&[&checked[..], &["-Y", broken]].concat())?, "");
        let only = format!("frame.interface_name == \"{sender}\"");
        self.tshark(&["-Y", &only, "-F", "pcap", "-w", "sender.pcap"])?;
        let holes = "tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment";
        assert_eq!(self.read("tshark", &["-r", "sender.pcap", "-Y", holes])?, "");
        Ok(())
    }

    /// tcptrace's values for the sender's half of the only connection, such as `unique bytes sent`.
    fn tcptrace(&self) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
        let text = self.read("tcptrace", &["-n", "-l", "sender.pcap"])?;
        let pairs = text.lines().filter_map(|line| line.trim().split_once(':'));
        Ok(pairs
            .map(|(name, value)| {
                let value = value.split("   ").map(str::trim).find(|part| !part.is_empty());
                (name.to_owned(), value.unwrap_or_default().to_owned())
            })
            .collect())
    }

    fn file(&self, ending: &str) -> Result<PathBuf, Box<dyn Error>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(self.dir.path().join("t"))? {
            paths.push(entry?.path());
        }
        paths.retain(|path| path.to_string_lossy().ends_with(ending));
        let [path] = &paths[..] else { panic!("not one file *{ending}: {paths:?}") };
        Ok(path.clone())
    }

    /// Asserts that this graph has the same marks as tcptrace's. Segments without data are arrows
    /// only in tcptrace's.
    fn assert_same_marks(&self) -> Outcome {
        self.read("tcptrace", &["-n", "-S", "sender.pcap"])?;
        let theirs = std::fs::read_to_string(self.dir.path().join("a2b_tsg.xpl"))?;
        let ours = std::fs::read_to_string(self.file("_tsg.xpl")?)?;
        let count = |xpl: &str, word: &str| xpl.lines().filter(|line| *line == word).count();
        for word in ["O", "SYN", "S"] {
            assert_eq!(count(&ours, word), count(&theirs, word), "{word}");
        }
        let count =
            |xpl: &str, word: &str| xpl.lines().filter(|line| line.starts_with(word)).count();
        for word in ["dtick", "utick", "htick"] {
            assert_eq!(count(&ours, word), count(&theirs, word), "{word}");
        }
        Ok(())
    }

    /// The number of lines of the graph that start with a word.
    fn marks(&self, word: &str) -> Result<u64, Box<dyn Error>> {
        let ours = std::fs::read_to_string(self.file("_tsg.xpl")?)?;
        // A command is followed by a position, a letter stands alone.
        let is_mark = |line: &&str| match line.strip_prefix(word) {
            Some("") => true,
            Some(rest) => {
                rest.starts_with(' ') && rest[1..].starts_with(|c: char| c.is_ascii_digit())
            }
            None => false,
        };
        Ok(ours.lines().filter(is_mark).count() as u64)
    }
}

fn number(summary: &BTreeMap<String, String>, name: &str) -> u64 {
    summary[name].parse().unwrap_or_else(|_| panic!("{name}: {}", summary[name]))
}

/// The second packet, which is dropped, is the handshake's ACK.
const LOSSY: &str = r#"duration = "20s"
[bottleneck]
forth = "rate 10mbit delay 10ms limit 30 loss 1% drop 2"
back = "rate 10mbit delay 10ms"

[[flow]]
bulk = { size = "1MB" }
"#;

#[test]
fn a_simulated_transfer_is_read_by_tshark_and_tcptrace() -> Outcome {
    if !have_readers() {
        return Ok(());
    }
    let traced = Traced::run(&["sim", "run", "-"], LOSSY)?;
    traced.assert_sound("left-1", None)?;
    assert_eq!(traced.tshark(&["-Y", "_ws.expert.severity == error"])?, "");
    let run = &traced.report["runs"][0];
    let drops: BTreeMap<String, u64> = serde_json::from_value(run["links"][0]["drops"].clone())?;
    assert!(drops.values().sum::<u64>() > 0, "a link that loses nothing");
    let commented = drops.iter().map(|(cause, count)| (format!("dropped: {cause}"), *count));
    assert_eq!(traced.comments()?, commented.collect());

    let summary = traced.tcptrace()?;
    assert!(summary["complete conn"].starts_with("yes"), "{summary:?}");
    assert_eq!(number(&summary, "unique bytes sent"), 1_000_000);
    let flow = &run["flows"][0];
    let of_flow = |name: &str| flow[name].as_u64().expect("a count");
    assert_eq!(number(&summary, "rexmt data pkts"), of_flow("retransmissions"));
    // The FIN is a segment of its own, and counts as sent.
    assert_eq!(number(&summary, "actual data pkts") + 1, of_flow("segments_sent"));
    traced.assert_same_marks()?;
    assert_eq!(traced.marks("darrow")? + 1, of_flow("segments_sent"));
    assert_eq!(traced.marks("R")?, of_flow("retransmissions"));
    assert_eq!(traced.marks("x")?, traced.data_dropped()?);
    assert_drawn(&traced.file(".svg")?)
}

#[test]
fn a_picture_without_a_name_replaces_no_other() -> Outcome {
    let traced = Traced::run(&["sim", "run", "-"], LOSSY)?;
    let plot = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
        let output = command.current_dir(traced.dir.path()).args(["plot", "t"]).output()?;
        let said = String::from_utf8(output.stderr)?;
        let name = said.trim_end().strip_prefix("wrote ").ok_or(said.clone())?.to_owned();
        Ok::<_, Box<dyn Error>>((std::fs::read_to_string(traced.dir.path().join(&name))?, name))
    };
    let ((first, name), (second, other)) = (plot()?, plot()?);
    assert_eq!(first, second);
    assert_eq!(
        Some(other.as_str()),
        name.strip_suffix(".svg").map(|stem| format!("{stem}-2.svg")).as_deref()
    );
    Ok(())
}

#[test]
fn real_packets_are_read_by_tshark_and_tcptrace() -> Outcome {
    let readers = have_readers();
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    if !readers {
        return Ok(());
    }
    let traced = Traced::run(&["demo", "--lossy", "--seconds", "1"], "")?;
    traced.assert_sound("sender", Some("10.80.0.2"))?;
    let row = &traced.report["senders"][0];
    let of_row = |name: &str| row[name].as_u64().expect("a count");
    let comments = traced.comments()?;
    let commented = |comment: &str| comments.get(comment).copied().unwrap_or(0);
    // The row's counts stop when the time is over; the trace continues until the connection is
    // reset.
    assert!(
        of_row("lost") > 0 && commented("dropped: random loss") >= of_row("lost"),
        "{comments:?}"
    );
    assert!(commented("dropped: queue full") >= of_row("queue_dropped"), "{comments:?}");
    let summary = traced.tcptrace()?;
    assert!(number(&summary, "rexmt data pkts") >= of_row("retransmissions"), "{summary:?}");
    traced.assert_same_marks()?;
    assert_eq!(traced.marks("darrow")?, number(&summary, "actual data pkts"));
    assert_eq!(traced.marks("x")?, traced.data_dropped()?);
    // The picture of all senders is beside that of the connection.
    let senders = traced.dir.path().join("t/senders.svg");
    assert!(std::fs::read_to_string(&senders)?.contains("cubic"));
    std::fs::remove_file(senders)?;
    assert_drawn(&traced.file(".svg")?)
}

/// Asserts that the picture has its three panels and is small enough for a browser.
fn assert_drawn(path: &Path) -> Outcome {
    let svg = std::fs::read_to_string(path)?;
    for words in ["sequence number", "dropped by the link", "cwnd", "ssthresh", "RTT sample"] {
        assert!(svg.contains(words), "{words}");
    }
    assert!(svg.len() < 3 << 20 && svg.trim_end().ends_with("</svg>"));
    Ok(())
}
