//! A station with a radio between two kernels, and its control socket.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use super::*;

/// A lossy radio that is fast enough for a test.
const RADIO: &str = "rate 200mbit control 54mbit preamble short error 20% seed 1";

/// Bytes of a transfer: a radio's frames take longer than a bridge's packets.
const BYTES: u64 = 256 << 10;

struct World {
    // The first field, so that the station ends before the namespaces do.
    station: BaseStation,
    wired: Namespace,
    wireless: Namespace,
    directory: tempfile::TempDir,
}

impl World {
    fn new(more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (wired, wireless) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        let socket = directory.path().join("control");
        let devices = ["--wired", "tun0", "--wireless", "tun1", "--json"];
        let radio = ["--radio", RADIO, "--control", socket.to_str().unwrap()];
        let station = BaseStation::ready(&wired, &[&devices[..], &radio, more].concat());
        wired.hand_over("tun1", &wireless).unwrap();
        configure(&wired, &wireless);
        Self { station, wired, wireless, directory }
    }

    fn ctl(&self, command: &str) -> Value {
        serde_json::from_str(&self.answer(&[command, "--json"]).unwrap()).unwrap()
    }

    /// Returns the output of `basestation ctl`, or its error output if it fails.
    fn answer(&self, words: &[&str]) -> Result<String, String> {
        let socket = self.directory.path().join("control");
        ctl(&[words, &["--control", socket.to_str().unwrap()]].concat())
    }

    /// Starts a transfer, and returns it with its server once data has come back.
    fn transfer(&self) -> (Transfer, airtcp_testbed::Server) {
        let server =
            self.wireless.serve("10.7.0.2:0".parse().unwrap(), Service::Echo, None).unwrap();
        let mut transfer = Transfer::start(&self.wired, server.address(), 7, u64::MAX);
        transfer.wait_for_begin();
        (transfer, server)
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..500 {
            if is_so(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{what} did not come: {}", self.ctl("status"));
    }

    /// Ends the station and returns its last output.
    fn end(&mut self) -> Value {
        self.station.signal("TERM");
        let mut stdout = self.station.child.stdout.take().unwrap();
        let mut last = String::new();
        stdout.read_to_string(&mut last).unwrap();
        assert!(self.station.child.wait().unwrap().success());
        serde_json::from_str(&last).unwrap()
    }
}

#[test]
fn every_policy_and_arq_brings_all_bytes_over_a_radio_that_loses_frames() {
    let Some(()) = or_skip(requirements()) else { return };
    for (policy, arq) in [
        ("plain", "mac"),
        ("tcp-ecn", "mac+link"),
        ("snoop", "off"),
        ("tcp-ecn", "head"),
        ("delayed-dupack", "head"),
    ] {
        let mut world = World::new(&["--policy", policy, "--arq", arq]);
        exchange(&world.wired, &world.wireless, BYTES);
        let report = world.end();
        let station = &report["station"];
        assert_eq!(station["policy"], policy, "{report}");
        let (tries, radio) =
            (&station["air"]["to_mobile"]["tries"], &station["radio"]["to_mobile"]);
        let (tries, arrived) = (tries.as_u64().unwrap(), radio["forwarded"].as_u64().unwrap());
        // A fifth of the frames is damaged.
        assert!(tries > arrived + arrived / 8, "{policy} {arq}: {report}");
        assert_eq!(station["counters"]["not_ip"], 0, "{report}");
    }
}

#[test]
fn the_control_socket_shows_flows_and_takes_the_mobile_away_and_back() {
    let Some(()) = or_skip(requirements()) else { return };
    let mut world = World::new(&["--policy", "tcp-ecn", "--metrics", "127.0.0.1:9465"]);
    let socket = world.directory.path().join("control");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o660);
    assert_eq!(world.ctl("status")["station"]["reach"], "there");
    assert_eq!(world.ctl("flows"), serde_json::json!([]));

    let (transfer, _server) = world.transfer();
    let flow = &world.ctl("flows")[0];
    assert!(flow["mobile"].as_str().unwrap().starts_with("10.7.0.2:"), "{flow}");
    assert_eq!(world.ctl("freeze")["station"]["reach"], "leaving");
    assert_eq!(world.ctl("disconnect")["station"]["reach"], "gone");
    // The sender's next packet is answered with a closed window and held.
    world.wait_until("a sender stopped", |world| {
        world.ctl("flows").as_array().unwrap().iter().any(|flow| flow["is_frozen"] == true)
    });
    let scraped = scrape(&world.wired);
    let frozen = &world.ctl("status")["station"]["frozen"];
    for line in [
        "airtcp_basestation_info{wired=\"tun0\",wireless=\"tun1\",policy=\"tcp-ecn\"} 1",
        "airtcp_basestation_reach{reach=\"gone\"} 1",
        &format!("airtcp_basestation_flows{{state=\"frozen\"}} {frozen}"),
    ] {
        assert!(scraped.lines().any(|one| one == line), "{line}: {scraped}");
    }
    assert_eq!(world.ctl("reconnect")["station"]["reach"], "there");
    transfer.assert_enough();
    transfer.end();
    let report = world.end();
    assert!(report["station"]["counters"]["made"].as_u64().unwrap() > 0, "{report}");
    assert!(!socket.exists());
}

#[test]
fn a_mobile_with_a_name_leaves_and_returns_alone() {
    let Some(()) = or_skip(requirements()) else { return };
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[[mobile]]\nname = \"m1\"\naddresses = [\"10.7.0.2\"]\n").unwrap();
    let config = file.path().to_str().unwrap();
    let mut world = World::new(&["--policy", "tcp-ecn", "--config", config]);
    let (transfer, _server) = world.transfer();
    let left = world.answer(&["leave", "m1"]).unwrap();
    assert!(left.starts_with("the mobile m1 is gone; flows with a closed window: "), "{left}");
    // The first mobile is m1, and the last one stands for all others.
    world.wait_until("a sender stopped", |world| {
        world.ctl("status")["mobiles"][0]["frozen"].as_u64() > Some(0)
    });
    let status = world.ctl("status");
    let [m1, others] = [0, 1].map(|at| &status["mobiles"][at]);
    assert!(m1["name"] == "m1" && m1["reach"] == "gone" && m1["origin"] == "named", "{status}");
    assert!(others["name"] == "others" && others["reach"] == "there", "{status}");
    let text = world.answer(&["status"]).unwrap();
    assert!(text.lines().any(|line| line.starts_with("m1 ") && line.contains(" gone ")), "{text}");
    let unknown = world.answer(&["leave", "m2"]).unwrap_err();
    assert!(unknown.contains("no mobile has the name `m2`"), "{unknown}");
    let nameless = world.answer(&["leave"]).unwrap_err();
    assert!(nameless.contains("leave and join need the name of a mobile"), "{nameless}");
    let joined = world.answer(&["join", "m1"]).unwrap();
    assert!(joined.starts_with("the mobile m1 is there"), "{joined}");
    transfer.assert_enough();
    transfer.end();
    let report = world.end();
    assert_eq!(report["mobiles"][0]["departures"], 1, "{report}");
}

#[test]
fn an_invalid_request_gets_an_error_and_disturbs_no_other() {
    use std::os::unix::net::UnixStream;

    let Some(()) = or_skip(requirements()) else { return };
    let world = World::new(&[]);
    let socket = world.directory.path().join("control");
    for (line, answer) in [
        ("what?\n".to_owned(), Some("a request is such as")),
        ("{\"command\": \"stop\"}\n".to_owned(), Some("unknown variant `stop`")),
        (format!("\"{}\n", "x".repeat(10_000)), None),
        ("{\"comm".to_owned(), None),
    ] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let _ = stream.write_all(line.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        if let Some(answer) = answer {
            assert!(text.starts_with("{\"error\":") && text.contains(answer), "{text}");
        }
        assert!(text.lines().count() <= 1, "{text}");
    }
    // Open connections that send nothing.
    let silent: Vec<_> = (0..64).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    assert_eq!(world.ctl("status")["wired"]["device"], "tun0");
    drop(silent);

    let path = socket.to_str().unwrap();
    let second = ["--wired", "tun2", "--wireless", "tun3", "--radio", "", "--control", path];
    let mut second = BaseStation::start(&world.wired, &second);
    let line = second.stderr.next().unwrap().unwrap();
    assert!(line.contains("is in use by another process"), "{line}");
    let freeze = ctl(&["freeze", "--control", path]).unwrap_err();
    assert!(
        freeze.contains("needs the policy tcp-ecn, and the base station has plain"),
        "{freeze}"
    );
    let nobody = ctl(&["status", "--control", "/no/such/socket"]).unwrap_err();
    assert!(nobody.contains("no base station listens on /no/such/socket"), "{nobody}");
}

#[test]
fn a_trace_has_an_interface_for_each_side_and_says_what_was_done() {
    let Some(()) = or_skip(requirements()) else { return };
    let trace = tempfile::tempdir().unwrap();
    let path = trace.path().to_str().unwrap();
    let mut world = World::new(&["--policy", "tcp-ecn", "--trace", path]);
    exchange(&world.wired, &world.wireless, BYTES);
    let (transfer, _server) = world.transfer();
    world.ctl("disconnect");
    world.wait_until("a segment held", |world| {
        world.ctl("status")["station"]["held"].as_u64() > Some(0)
    });
    world.ctl("reconnect");
    transfer.assert_enough();
    transfer.end();
    world.end();
    let pcap = trace.path().join("packets.pcapng");
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.comment"];
    let tshark = Command::new("tshark").arg("-r").arg(&pcap).args(fields).output();
    let Ok(Output { stdout, .. }) = tshark else {
        assert!(std::env::var_os("AIRTCP_REQUIRE_TOOLS").is_none(), "tshark is not installed");
        eprintln!("SKIPPED in part: tshark is not installed");
        return;
    };
    let text = String::from_utf8(stdout).unwrap();
    let count = |line: &str| text.lines().filter(|other| other.starts_with(line)).count();
    assert!(count("tun0\t") > 1000 && count("tun1\t") > 1000, "{text}");
    assert!(count("station\theld") > 0, "{text}");
}

#[test]
fn a_failed_start_leaves_no_device() {
    let Some(()) = or_skip(requirements()) else { return };
    let namespace = Namespace::new().unwrap();
    let taken = namespace.run(|| TunFile::open("tun1")).unwrap();
    let words = ["--wired", "tun0", "--wireless", "tun1", "--radio", "", "--persist"];
    let mut station = BaseStation::start(&namespace, &words);
    assert_eq!(station.child.wait().unwrap().code(), Some(1));
    drop(taken);
    let interfaces = namespace.interfaces().unwrap();
    assert!(
        interfaces.iter().all(|interface| !interface.name.starts_with("tun")),
        "{interfaces:?}"
    );
}
