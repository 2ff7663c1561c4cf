//! The commands as a user types them: their output and exit codes.

use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use airtcp_testbed::{Namespace, or_skip, peer, requirements};
use serde_json::Value;

type Outcome = Result<(), Box<dyn Error>>;

/// A test fails if its command takes longer.
const LIMIT: Duration = Duration::from_secs(120);

fn airtcp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    command.args(arguments);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn names_lists_every_kind() -> Outcome {
    let output = airtcp(&["names", "--json"]).output()?;
    assert!(output.status.success());
    let names: Value = serde_json::from_slice(&output.stdout)?;
    let of = |kind: &str| -> Vec<&str> {
        let list = names[kind].as_array().expect("a list");
        assert!(list.iter().all(|entry| entry["source"].is_string()), "{list:?}");
        list.iter().filter_map(|entry| entry["name"].as_str()).collect()
    };
    assert!(["reno", "newreno", "sack"].iter().all(|name| of("detection").contains(name)));
    assert!(["reno", "cubic", "fixed"].iter().all(|name| of("congestion").contains(name)));
    of("judge");
    Ok(())
}

#[test]
fn a_mistake_is_one_line_and_exit_code_two() -> Outcome {
    let lines: [&[&str]; 11] = [
        &["get", "--tun", "tun0", "--address", "10.0.0.2/24", "https://a/", "-o", "x"],
        &["get", "--tun", "tun0", "--address", "10.0.0.2/24", "http://a/", "-o", "-", "-C"],
        &["put", "--tun", "tun0", "--address", "10.0.0.2/24", "x", "a/b"],
        &["connect", "--tun", "tun0", "--address", "10.0.0.2/24", "a.example"],
        &["connect", "--tun", "t", "--address", "10.0.0.2/24", "--gateway", "fd00::1", "a:7"],
        &["serve", "--tun", "tun0", "--address", "10.0.0.2/33", "echo:7"],
        &["serve", "--tun", "tun0", "--address", "10.0.0.2/24", "echo:0"],
        &["serve", "--tun", "tun0", "--address", "10.0.0.2/24"],
        &["demo", "--size", "lots"],
        &["demo", "--congestion", "fixed:0"],
        &["demo", "--radio", "--arq", "some"],
    ];
    for line in lines {
        let output = airtcp(line).output()?;
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{line:?}: {text}");
        assert!(text.starts_with("error: "), "{text}");
        assert!(text.contains("for example") || text.contains("as in"), "{text}");
        assert!(output.stdout.is_empty());
    }
    Ok(())
}

/// Sends the signal, waits for the end, and returns the exit code as a shell reports it.
fn end(mut child: Child, signal: &str) -> Result<Option<i32>, Box<dyn Error>> {
    let begin = Instant::now();
    // Before the program runs, the signal would reach this test's fork or `env`, which may ignore it.
    let name = format!("/proc/{}/comm", child.id());
    while std::fs::read_to_string(&name)?.trim() != "airtcp" && begin.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status()?.success());
    while child.try_wait()?.is_none() {
        if begin.elapsed() > LIMIT {
            child.kill()?;
            return Err(format!("{signal} does not end it").into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = child.wait()?;
    Ok(status.code().or(status.signal().map(|signal| 128 + signal)))
}

#[test]
fn a_run_that_a_signal_ends_prints_nothing_and_has_the_code_of_the_signal() -> Outcome {
    let directory = tempfile::tempdir()?;
    let endless = directory.path().join("endless.toml");
    let link = "rate 10gbit delay 1ms";
    let bottleneck = format!("[bottleneck]\nforth = \"{link}\"");
    let flow = "[[flow]]\ncongestion = \"reno\"";
    let text = format!("duration = \"100000s\"\n{bottleneck}\n{flow}\n");
    std::fs::write(&endless, text)?;
    let endless = endless.to_str().ok_or("a path in UTF-8")?;
    let lines: [&[&str]; 3] = [
        &["sim", "run", endless],
        &["compare", link, "--seconds", "100000", "--with", "rack/cubic"],
        &["lab", "run", "self/mathis", "--seeds", "100000"],
    ];
    for line in lines {
        for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
            // A script's background process ignores SIGINT, so reset it.
            let mut command = Command::new("env");
            command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_airtcp")]).args(line);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
            let mut stdout = child.stdout.take().expect("it is piped");
            assert_eq!(end(child, signal)?, Some(code), "{line:?} {signal}");
            let mut printed = String::new();
            stdout.read_to_string(&mut printed)?;
            assert_eq!(printed, "", "{line:?}");
        }
    }
    Ok(())
}

#[test]
fn an_interrupted_comparison_leaves_no_picture() -> Outcome {
    let directory = tempfile::tempdir()?;
    let link = "rate 10gbit delay 1ms loss 1%";
    let long = ["--seconds", "100000", "--with", "rack/cubic", "--seeds", "2", "--threads", "2"];
    let mut command = airtcp(&["compare", link, "--picture", "a.svg"]);
    command.args(long).current_dir(&directory).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    // Its threads start after the picture's name has been checked.
    let tasks = format!("/proc/{}/task", child.id());
    let begin = Instant::now();
    while std::fs::read_dir(&tasks)?.count() < 2 {
        assert!(child.try_wait()?.is_none() && begin.elapsed() < LIMIT, "it does not run");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(end(child, "-TERM")?, Some(143));
    assert!(std::fs::read_dir(&directory)?.next().is_none());
    Ok(())
}

#[test]
fn a_message_says_what_is_wrong_and_what_to_type() -> Outcome {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("a.csv"), "a,b\n")?;
    std::fs::create_dir(directory.path().join("dir"))?;
    let tun = ["--tun", "tun0", "--address", "10.0.0.2/24"];
    let url = "http://10.0.0.1/f";
    let cases: [(&[&str], i32, &str); 42] = [
        (&["serv"], 2, "'serv'; a similar subcommand exists: 'serve'; for example: "),
        (&["--color", "maybe", "names"], 2, "for example: airtcp names --json"),
        (&["demo", "--link", "lte"], 2, "airtcp demo --lossy --link "),
        (&["lab", "run", "self/loss", "--resume"], 2, "--out results"),
        (&["lab", "run", "self/los"], 2, "did you mean `self/loss`?"),
        (&["lab", "run", "fig4"], 2, "did you mean `dcr/fig4` or `le/fig4`?"),
        (&["compare", "lte", "--with", "BBR3"], 2, "write rack/bbr3; for example --with "),
        (
            &["gateway", "ctl", "set", "strategies"],
            2,
            "for example: airtcp gateway ctl set strategies rack/cubic",
        ),
        (&["lab", "results"], 2, "airtcp lab results results"),
        (&["lab", "results", "a.csv"], 1, "a.csv: Not a directory; specify a directory"),
        (&["lab", "run", "self/loss", "--out", "a.csv"], 1, "--out a.csv: "),
        (&["sim", "run", "a.toml", "--every", "1"], 2, "--state states.jsonl"),
        (&["sim", "run", "dir"], 1, "reading dir: Is a directory; specify a file"),
        (&["plot", "a.pcap", "--json"], 2, "airtcp plot capture.pcapng --list"),
        (&["plot", "a.pcap", "--list", "-o", "a.svg"], 2, "cannot be used with '--output"),
        (&["plot", "dir"], 1, "specify a directory written by --trace, its events.sqlog"),
        (&["man", "--out", "a.csv"], 1, "--out a.csv: File exists; choose another name"),
        (&["compare", "lte", "--seconds", "20s"], 2, "from 0.001 to 10000000, without a unit"),
        (
            &["compare", "lte", "--picture", "no/a.svg"],
            1,
            "the directory no does not exist: create",
        ),
        (&["compare", "trace no.up"], 1, "no.up: No such file or directory; give a mahimahi trace"),
        (
            &["compare", "trace /x rate 5mbit"],
            2,
            "expected either rate or trace, not both: remove one",
        ),
        (&["compare", "rate 0mbit"], 2, "expected a rate above zero, such as `10mbit`"),
        (
            &["plot", "a.csv"],
            1,
            "specify a directory written by --trace, its events.sqlog, or a .pcap",
        ),
        (&["plot", "no"], 1, "no: No such file or directory; specify a directory written by"),
        (
            &["sweep", "no.toml", "--out", "d"],
            1,
            "give an experiment file, such as examples/sweep.toml",
        ),
        (&["sweep", "merge", "no.toml", "--out", "d"], 1, "give an experiment file, such as"),
        (
            &["report", "no"],
            1,
            "give a directory with results or a trace, or a single file of them",
        ),
        (&["gateway", "near", "--config", "no"], 1, "give --config a TOML file, whose keys are"),
        (&["gateway", "check"], 2, "for example: airtcp gateway check --key near.key --peer"),
        (&["gateway", "far", "--no"], 2, "for example: airtcp gateway far --key far.key --peer"),
        (&["frobnicate"], 2, "commands: demo, compare, names, link, sim, sweep, serve, get, put,"),
        (&["help", "basestation"], 2, "the base station is a separate program: type "),
        (
            &["ctl", "status"],
            2,
            "type airtcp gateway ctl status for a gateway, or basestation ctl status",
        ),
        (
            &["quickserve", "a.csv", "--listen", "tcp://127.0.0.1:1"],
            2,
            "is not a directory: create",
        ),
        (
            &["quickserve", "dir", "--listen", "rrtp://127.0.0.1:0"],
            2,
            "for example rrtp://127.0.0.1:8000/",
        ),
        (&["quickserve", "dir", "--listen", "tcp://a:1"], 2, "write an IP address of this machine"),
        (&["quickserve", "dir", "--listen", "tcp://127.0.0.1:1/b"], 2, "remove the path"),
        (&["quickserve", "dir", "--listen", "airtcp://10.0.0.2"], 2, "requires --tun"),
        (&["quickget", "airtcp://10.0.0.1/f", "-o", "f"], 2, "requires --tun and --address"),
        (&["quickget", "tcp://a/f", "-o", "f", "--tun", "t"], 2, "are only for airtcp://: remove"),
        (&["quickget", "tcp://127.0.0.1:1/f", "-o", "no/f"], 1, "the directory no does not exist"),
        (&["demo", "--congestion", ""], 2, "no congestion control ``: use one of reno"),
    ];
    for (line, code, what) in cases {
        let output = airtcp(line).current_dir(&directory).output()?;
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{line:?}: {text}");
        assert!(text.lines().count() == 1 && text.contains(what), "{line:?}: {text}");
    }
    for (url, what) in [
        ("http://10.0.0.1:0/f", "the port must be a number from 1 to 65535"),
        ("http://[fd00::1/f", "an IPv6 address in brackets"),
        ("http:///f", "the host is missing"),
    ] {
        let output = airtcp(&["get", url, "-o", "f"]).args(tun).output()?;
        assert!(stderr(&output).contains(what), "{url}: {}", stderr(&output));
    }
    let ss = airtcp(&["ss", "--help"]).output()?;
    assert!(String::from_utf8(ss.stdout)?.contains("running servers and gateways"));
    let port = airtcp(&["connect", "10.0.0.1:0"]).args(tun).output()?;
    assert!(stderr(&port).contains("with a port from 1 to 65535"), "{}", stderr(&port));
    let put = airtcp(&["put", "dir", url]).args(tun).current_dir(&directory).output()?;
    assert!(stderr(&put).contains("specify a file of known length"), "{}", stderr(&put));
    Ok(())
}

#[test]
fn a_full_disk_is_reported_with_the_path() -> Outcome {
    for line in [&["names"][..], &["lab", "list"], &["man"], &["--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full")?;
        let output = airtcp(line).stdout(full).output()?;
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{line:?}: {text}");
        assert!(text.starts_with("error: writing to stdout: No space left"), "{line:?}: {text}");
    }
    Ok(())
}

#[test]
fn a_transfer_that_a_signal_ends_has_the_code_of_the_signal() -> Outcome {
    let directory = tempfile::tempdir()?;
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("tcp://{}/file", silent.local_addr()?);
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        // Under nohup, a program ignores SIGHUP.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_airtcp")]);
        command.args(["quickget", &url, "-o", "file"]);
        command.current_dir(&directory).env_remove("RUST_LOG");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut stderr = child.stderr.take().expect("it is piped");
        // The client sends a request, which is never answered.
        let (mut asked, _) = silent.accept()?;
        assert!(asked.read(&mut [0; 1])? > 0);
        assert_eq!(end(child, signal)?, Some(code));
        let mut said = String::new();
        stderr.read_to_string(&mut said)?;
        assert_eq!(said, "error: interrupted\n");
        assert!(std::fs::read_dir(&directory)?.next().is_none());
    }
    Ok(())
}

#[test]
fn colours_are_where_they_are_asked_for() -> Outcome {
    const COLOUR: &str = "\u{1b}[";
    for (flag, is_coloured) in [("--color=always", true), ("--color=never", false), ("-v", false)] {
        let help = airtcp(&["names", "--help", flag]).output()?;
        assert_eq!(String::from_utf8(help.stdout)?.contains(COLOUR), is_coloured, "{flag}");
        let mistake = stderr(&airtcp(&[flag, "names", "--nothing"]).output()?);
        assert_eq!(mistake.starts_with(COLOUR), is_coloured, "{mistake}");
        assert!(mistake.contains("unexpected argument '--nothing'"), "{mistake}");
    }
    Ok(())
}

#[test]
fn a_quiet_command_prints_its_result_and_errors() -> Outcome {
    let directory = tempfile::tempdir()?;
    let picture = directory.path().join("a.svg").display().to_string();
    let run = |picture: &str, flags: &[&str]| {
        let link = ["compare", "rate 4mbit delay 10ms limit 20", "--seconds", "1"];
        let more = ["--with", "rack/cubic", "--picture", picture];
        airtcp(&[&link[..], &more, flags].concat()).output()
    };
    let (usual, quiet) = (run(&picture, &[])?, run(&picture, &["--quiet"])?);
    assert!(usual.status.success() && quiet.status.success(), "{}", stderr(&quiet));
    assert_eq!((stderr(&usual), stderr(&quiet)), (format!("wrote {picture}\n"), String::new()));
    assert_eq!(usual.stdout, quiet.stdout);
    let nowhere = directory.path().join("nowhere/a.svg").display().to_string();
    assert!(stderr(&run(&nowhere, &["-q"])?).starts_with("error: "));
    Ok(())
}

#[test]
fn the_demo_arrives_intact_with_the_kernel_as_its_peer() -> Outcome {
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    let output =
        airtcp(&["demo", "--json", "--size", "300kB", "--detection", "newreno"]).output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(report["device"], "tun");
    let transfers = report["transfers"].as_array().expect("a list");
    assert_eq!(transfers.len(), 8);
    for transfer in transfers {
        assert_eq!(transfer["intact"], true, "{transfer}");
        assert_eq!(transfer["bytes"], 300_000, "{transfer}");
        assert_eq!(transfer["sha256"], report["sha256"], "{transfer}");
    }
    let ours = transfers.iter().filter(|transfer| transfer["strategy"] == "newreno/bbr3/spike");
    assert_eq!(ours.count(), 4);
    Ok(())
}

#[test]
fn the_demo_with_a_radio_has_a_line_for_each_policy_and_a_picture() -> Outcome {
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let trace = directory.path().to_str().ok_or("a path in UTF-8")?;
    let short = ["demo", "--radio", "--seconds", "1.5", "--away", "1", "--json", "--trace", trace];
    let output = airtcp(&short).output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let policies = report["policies"].as_array().expect("a list");
    let names: Vec<_> = policies.iter().map(|policy| policy["policy"].as_str()).collect();
    assert_eq!(names, ["plain", "snoop", "tcp-ecn"].map(Some));
    for policy in policies {
        assert_eq!(policy["sender"], "kernel cubic", "{policy}");
        assert!(policy["goodput"].as_u64() > Some(0), "{policy}");
    }
    // Only the last policy freezes senders.
    let senders = |policy: &Value| policy["frozen"].as_u64().zip(policy["made"].as_u64());
    assert_eq!(senders(&policies[0]), Some((0, 0)));
    assert!(senders(&policies[2]).is_some_and(|(frozen, made)| frozen > 0 && made > 0));
    for file in ["arrivals.svg", "packets.pcapng", "events.sqlog"] {
        assert!(directory.path().join(file).metadata()?.len() > 0, "{file}");
    }
    // A policy whose requirements are missing is reported, and the others run.
    let off = ["demo", "--radio", "error 0%", "--arq", "off", "--seconds", "0.5", "--away", "0.1"];
    let output = airtcp(&off).current_dir(&directory).output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("note: left out: policy tcp-ecn"), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout)?;
    assert!(text.contains("\nplain ") && !text.contains("\ntcp-ecn "), "{text}");
    // The picture is in the current directory.
    assert!(text.ends_with("\npicture: airtcp-demo/arrivals.svg\n"), "{text}");
    assert!(directory.path().join("airtcp-demo/arrivals.svg").exists());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    Ok(())
}

#[test]
fn serve_answers_the_kernel_and_sums_up_at_the_end() -> Outcome {
    const BYTES: u64 = 100_000;
    let Some(()) = or_skip(requirements()) else { return Ok(()) };
    let namespace = Namespace::new()?;
    let directory = tempfile::tempdir()?;
    let control = directory.path().join("serve.sock");
    let mut command = airtcp(&[
        "serve",
        "--tun",
        "tun0",
        "--address",
        "10.0.0.2/24",
        "--address",
        "fd00::2/64",
        "--strategies",
        "rack/cubic/hack",
        "--json",
        "echo:7",
        "sink:9",
        "--control",
        control.to_str().ok_or("a path in UTF-8")?,
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut serve = namespace.spawn_child(command)?;
    let mut notes = BufReader::new(serve.stderr.take().expect("it is piped")).lines();
    let mut note = String::new();
    while note != "ready" {
        note = notes.next().expect("it ended before it was ready")?;
    }
    // The link is down until here.
    namespace.configure("tun0", &["10.0.0.1/24".parse()?, "fd00::1/64".parse()?], None)?;
    for server in ["10.0.0.2:7", "[fd00::2]:7"] {
        let server: SocketAddr = server.parse()?;
        let echoed = namespace.block_on(async move {
            peer::echo(peer::connect(server, None).await?, 1, BYTES).await
        })?;
        assert_eq!(echoed, BYTES);
    }
    // The kernel does not support HACK; this is reported at once, and only once.
    let note = notes.next().expect("a note")?;
    assert!(note.starts_with("note: 10.0.0.1:") && note.ends_with("run with rack/cubic"), "{note}");
    let counted = namespace.block_on(async {
        let server = SocketAddr::from(([10, 0, 0, 2], 9));
        peer::upload(peer::connect(server, None).await?, 1, BYTES).await
    })?;
    assert_eq!(counted, BYTES);

    let killed = Command::new("kill").args(["-INT", &serve.id().to_string()]).status()?;
    assert!(killed.success());
    let rest: Vec<_> = notes.collect::<Result<_, _>>()?;
    assert!(
        matches!(&rest[..], [end] if end.contains("3 connections ran with rack/cubic")),
        "{rest:?}"
    );
    let mut text = String::new();
    serve.stdout.take().expect("it is piped").read_to_string(&mut text)?;
    assert!(serve.wait()?.success());
    let report: Value = serde_json::from_str(&text)?;
    assert_eq!(report["connections_total"], 3);
    assert_eq!(report["counters"]["TcpPassiveOpens"], 3);
    let mut services: Vec<_> = report["connections"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|connection| {
            assert_eq!(connection["info"]["bytes_received"], BYTES, "{connection}");
            connection["service"].as_str().unwrap_or_default().to_owned()
        })
        .collect();
    services.sort_unstable();
    assert_eq!(services, ["echo", "echo", "sink"]);
    // The device that the command created is removed with it.
    assert!(namespace.interfaces()?.iter().all(|interface| interface.name != "tun0"));
    Ok(())
}
