//! The base station between two kernels, each in its own namespace.

mod foreign_agent;
mod gateway;
mod handoff;
mod home_agent;
mod radio;
mod transfer;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use airtcp_device::TunFile;
use airtcp_testbed::{Namespace, Service, or_skip, peer, requirements};
use serde_json::Value;
use transfer::Transfer;

const BYTES: u64 = 4 << 20;

/// Configures a TUN device in each namespace: the wired host is .1, the wireless one .2.
fn configure(wired: &Namespace, wireless: &Namespace) {
    for (namespace, device, host) in [(wired, "tun0", 1), (wireless, "tun1", 2)] {
        let addresses = [format!("10.7.0.{host}/24"), format!("fd07::{host}/64")];
        let addresses = addresses.map(|address| address.parse().unwrap());
        namespace.configure(device, &addresses, Some(1400)).unwrap();
    }
}

/// Echoes data over TCP with both IP versions.
fn exchange(wired: &Namespace, wireless: &Namespace, bytes: u64) {
    for address in ["10.7.0.2:0", "[fd07::2]:0"] {
        let server = wireless.serve(address.parse().unwrap(), Service::Echo, None).unwrap();
        let server_address = server.address();
        let echoed = wired.block_on(async move {
            peer::echo(peer::connect(server_address, None).await?, 7, bytes).await
        });
        assert_eq!(echoed.unwrap(), bytes, "{address}");
    }
}

/// Sends one datagram, which is not retransmitted.
fn send_datagram(wired: &Namespace, wireless: &Namespace) {
    let answerer = wireless.run(|| UdpSocket::bind("10.7.0.2:0")).unwrap();
    let asker = wired.run(|| UdpSocket::bind("10.7.0.1:0")).unwrap();
    for socket in [&answerer, &asker] {
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    }
    asker.send_to(b"ping", answerer.local_addr().unwrap()).unwrap();
    let mut datagram = [0; 16];
    let (length, from) = answerer.recv_from(&mut datagram).unwrap();
    assert_eq!((&datagram[..length], from), (&b"ping"[..], asker.local_addr().unwrap()));
}

/// Reads the metrics of `--metrics 127.0.0.1:9465` in the namespace.
fn scrape(namespace: &Namespace) -> String {
    let read = || {
        let mut stream = TcpStream::connect("127.0.0.1:9465")?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    namespace.run(read).unwrap()
}

/// The running command and the lines of its stderr.
struct BaseStation {
    child: Child,
    stderr: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl BaseStation {
    fn start(namespace: &Namespace, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_basestation"));
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env_remove("RUST_LOG");
        let mut child = namespace.spawn_child(command).unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, stderr }
    }

    /// Starts the command and waits until it is ready.
    fn ready(namespace: &Namespace, arguments: &[&str]) -> Self {
        let mut station = Self::start(namespace, arguments);
        assert_eq!(station.stderr.next().unwrap().unwrap(), "ready");
        station
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        // `kill` is built into every POSIX shell.
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for BaseStation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_kernels_talk_through_the_command() {
    let Some(()) = or_skip(requirements()) else { return };
    let plain = two_kernels_talk(&["--no-offload"]);
    let offloading = two_kernels_talk(&[]);
    assert!(offloading < plain, "{offloading} packets received with offload, {plain} without");
}

/// Returns the number of packets that the station received from the wired device.
fn two_kernels_talk(more: &[&str]) -> u64 {
    let (wired, wireless) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    let devices = ["--wired", "tun0", "--wireless", "tun1", "--json"];
    let mut station = BaseStation::ready(&wired, &[&devices, more].concat());
    wired.hand_over("tun1", &wireless).unwrap();
    configure(&wired, &wireless);
    exchange(&wired, &wireless, BYTES);
    send_datagram(&wired, &wireless);

    // The station prints a line of counters on SIGUSR1, and another when it ends.
    let mut stdout = BufReader::new(station.child.stdout.take().unwrap());
    station.signal("USR1");
    let mut asked = String::new();
    stdout.read_line(&mut asked).unwrap();
    // Setting a bridged link down is no error.
    wireless.set_up("tun1", false).unwrap();
    station.signal("TERM");
    let mut last = String::new();
    stdout.read_to_string(&mut last).unwrap();
    assert!(station.child.wait().unwrap().success());
    let mut received = 0;
    for line in [asked, last] {
        let report: Value = serde_json::from_str(&line).unwrap();
        for (side, device) in [("wired", "tun0"), ("wireless", "tun1")] {
            assert_eq!(report[side]["device"], device);
            for bytes in ["received_bytes", "sent_bytes"] {
                assert!(report[side][bytes].as_u64().unwrap() > 2 * BYTES, "{report}");
            }
            assert_eq!(report[side]["dropped_not_ip"], 0, "{report}");
        }
        received = report["wired"]["received_packets"].as_u64().unwrap();
    }
    // The device that the station created is removed with it.
    assert!(wired.interfaces().unwrap().iter().all(|interface| interface.name != "tun0"));
    received
}

#[test]
fn a_device_that_cannot_be_had_is_one_line_that_says_what_to_type() {
    let Some(()) = or_skip(requirements()) else { return };
    let wired = Namespace::new().unwrap();
    let taken = wired.run(|| TunFile::open("tun0")).unwrap();
    let mut station = BaseStation::start(&wired, &["--wired", "tun0", "--wireless", "tun1"]);
    let line = station.stderr.next().unwrap().unwrap();
    assert!(line.contains("tun0") && line.contains("choose another name"), "{line}");
    assert!(station.stderr.next().is_none());
    assert_eq!(station.child.wait().unwrap().code(), Some(1));
    drop(taken);
}

/// Returns the output of `basestation ctl`, or its error output if it fails.
fn ctl(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_basestation"));
    let output = command.arg("ctl").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}
