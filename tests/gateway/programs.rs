//! Real programs at both ends: ping, iperf3, OpenSSH.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use airtcp_testbed::Namespace;
use airtcp_testbed::dumbbell::Dumbbell;
use serde_json::Value;
use tokio::net::TcpStream;

use super::intercept::network;
use super::{Network, Outcome, is_possible};

/// The addresses of the server, in both IP versions.
pub(super) const ADDRESSES: [&str; 2] = ["192.0.2.2", "2001:db8::2"];
/// The pause before a retry.
pub(super) const AGAIN: Duration = Duration::from_millis(50);

/// Whether namespaces and these programs are available; prints a message if the test is skipped.
pub(super) fn has(programs: &[&str]) -> bool {
    let directories = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let is_there =
        |program: &str| directories.iter().any(|at| Path::new(at).join(program).exists());
    let missing = programs.iter().find(|program| !is_there(program));
    if let Some(missing) = missing {
        assert!(std::env::var_os("AIRTCP_REQUIRE_TOOLS").is_none(), "{missing} is not installed");
        println!("skipped: {missing} is not installed");
    }
    missing.is_none() && is_possible()
}

/// A server process that ends with the test.
pub(super) struct Server(Child);

impl Server {
    /// Starts a server, and waits until it listens for TCP at `at`.
    pub(super) fn start(namespace: &Namespace, command: &str, at: SocketAddr) -> Outcome<Self> {
        let mut words = command.split_whitespace();
        let mut started = Command::new(words.next().ok_or("a program")?);
        started.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self(namespace.spawn_child(started)?);
        loop {
            let connected = namespace.block_on(async move { TcpStream::connect(at).await });
            if connected.is_ok() {
                return Ok(server);
            }
            if let Some(status) = server.0.try_wait()? {
                return Err(format!("{command}: {status}").into());
            }
            std::thread::sleep(AGAIN);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program at the near side.
fn run(network: &Network, program: &str, arguments: &[&str], input: &[u8]) -> Outcome<Output> {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("SSH_AUTH_SOCK");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = network.near().spawn_child(command)?;
    let (mut stdin, input) = (child.stdin.take().ok_or("it is piped")?, input.to_vec());
    // Written in a thread while the output is read: no pipe holds all of the data.
    let writing = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output()?;
    // A program that has failed stops reading.
    let _ = writing.join();
    Ok(output)
}

#[test]
fn a_ping_is_answered_by_its_destination() -> Outcome {
    if !has(&["ip", "ping"]) {
        return Ok(());
    }
    let network = network()?;
    network.far().set_sysctl("net.ipv4.ping_group_range", "0 0")?;
    let _far = network.start_far(&["--deny", "192.0.2.1"])?;
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    let _near = network.start_near(endpoint, &["--intercept"])?;
    let ping = |to| run(&network, "ping", &["-c", "5", "-i", "0.2", "-W", "2", to], b"");
    for server in ADDRESSES {
        let output = ping(server)?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && stdout.contains("time="), "{stdout}");
    }
    for silent in ["192.0.2.9", "192.0.2.1"] {
        assert_eq!(ping(silent)?.status.code(), Some(1), "{silent}");
    }
    // A ping of the device's MTU, which does not fit into one frame, and one that exceeds the MTU.
    let long = |size| {
        let line = ["-M", "do", "-c", "5", "-i", "0.2", "-W", "2", "-s", size, ADDRESSES[0]];
        run(&network, "ping", &line, b"")
    };
    let output = long("1404")?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let output = long("1405")?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(printed.contains("too long, mtu") && printed.contains("1432"), "{printed}");
    // The kernel sends fragments, and the gateway refuses them.
    for (server, words) in ADDRESSES.into_iter().zip(["filtered", "prohibited"]) {
        let line = ["-M", "dont", "-c", "1", "-W", "2", "-s", "3000", server];
        let output = run(&network, "ping", &line, b"")?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(printed.contains(words), "{printed}");
    }
    Ok(())
}

/// An iperf3 server. It serves one client at a time, and prints when it listens for the next.
struct Iperf3 {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Iperf3 {
    fn start(namespace: &Namespace) -> Outcome<Self> {
        let mut command = Command::new("iperf3");
        command.args(["--server", "--forceflush"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = namespace.spawn_child(command)?;
        let stdout = BufReader::new(child.stdout.take().ok_or("it is piped")?).lines();
        Ok(Self { child, stdout })
    }

    /// Runs a client for two seconds; returns the sums of its report.
    fn measure(&mut self, network: &Network, arguments: &[&str]) -> Outcome<Value> {
        let mut said = self.stdout.by_ref().map_while(Result::ok);
        said.find(|line| line.contains("Server listening")).ok_or("the server has ended")?;
        let line = [&["--json", "--time", "2", "--connect-timeout", "10000"], arguments].concat();
        let output = run(network, "iperf3", &line, b"")?;
        let report: Value = serde_json::from_slice(&output.stdout)?;
        match report["error"].as_str() {
            None => Ok(report["end"].clone()),
            Some(error) => Err(format!("{arguments:?}: {error}").into()),
        }
    }

    /// Like [`measure`](Self::measure), over UDP. iperf3 sends its first datagram once, and the link
    /// may lose it.
    fn measure_udp(&mut self, network: &Network, arguments: &[&str]) -> Outcome<Value> {
        match self.measure(network, arguments) {
            Err(error) if error.to_string().contains("unable to read from stream") => {
                self.measure(network, arguments)
            }
            measured => measured,
        }
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn iperf3_measures_tcp_in_both_directions_and_udp() -> Outcome {
    if !has(&["ip", "iperf3"]) {
        return Ok(());
    }
    let network = network()?;
    let mut iperf3 = Iperf3::start(&network.servers)?;
    let _far = network.start_far(&[])?;
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    for server in ADDRESSES {
        let forward = format!("5201:{}", SocketAddr::new(server.parse()?, 5201));
        let near = network.start_near(endpoint, &["--intercept", "-L", &forward])?;
        for client in [server, "127.0.0.1"] {
            for more in [&[][..], &["--reverse"], &["--parallel", "8"]] {
                let end = iperf3.measure(&network, &[&["--client", client], more].concat())?;
                let received = end["sum_received"]["bytes"].as_u64();
                assert!(received > Some(100_000), "{client} {more:?}: {end}");
            }
        }
        for more in [&[][..], &["--reverse"]] {
            let line = ["--client", server, "--udp", "--bitrate", "2M", "--length", "1200"];
            let end = iperf3.measure_udp(&network, &[&line, more].concat())?;
            let (lost, packets) = (&end["sum"]["lost_packets"], &end["sum"]["packets"]);
            // The link loses 2 %, and repairs start after the first report.
            assert!(packets.as_u64() > Some(200), "{server} {more:?}: {end}");
            assert!(lost.as_f64() < packets.as_f64().map(|all| all * 0.1), "{server}: {end}");
        }
        near.stop()?;
    }
    Ok(())
}

#[test]
fn ssh_is_carried() -> Outcome {
    if !has(&["ip", "sshd", "ssh", "ssh-keygen"]) {
        return Ok(());
    }
    if !is_root_everywhere()? {
        assert!(std::env::var_os("AIRTCP_REQUIRE_NETNS").is_none(), "CI has to run as root");
        println!("skipped: sshd changes its user, which only root outside of a user namespace can");
        return Ok(());
    }
    let network = network()?;
    let (host, user) = (network.path("host"), network.path("user"));
    for key in [&host, &user] {
        let line = ["-q", "-t", "ed25519", "-N", "", "-f", key];
        assert!(Command::new("ssh-keygen").args(line).status()?.success());
    }
    // sshd requires this directory.
    std::fs::create_dir_all("/run/sshd")?;
    let command = format!(
        "/usr/sbin/sshd -D -f /dev/null -h {host} -o Port=2222 -o PidFile=none -o UsePAM=no -o StrictModes=no \
         -o PermitRootLogin=prohibit-password -o AuthorizedKeysFile={user}.pub"
    );
    let _sshd = Server::start(&network.servers, &command, "192.0.2.2:2222".parse()?)?;
    let _far = network.start_far(&[])?;
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, true);
    let ways = ["--intercept", "-L", "2022:[2001:db8::2]:2222"];
    let _near = network.start_near(endpoint, &ways)?;
    for (server, port) in [("192.0.2.2", "2222"), ("2001:db8::2", "2222"), ("127.0.0.1", "2022")] {
        let to = format!("root@{server}");
        let known = network.path("known");
        let line = [
            "-F",
            "/dev/null",
            "-i",
            &user,
            "-p",
            port,
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=accept-new",
            "-o",
            &format!("UserKnownHostsFile={known}"),
            &to,
            "cat",
        ];
        let sent = super::body();
        let output = run(&network, "ssh", &line, &sent)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && output.stdout == sent, "{server}: {stderr}");
    }
    Ok(())
}

/// Whether this process may switch to any user.
fn is_root_everywhere() -> Outcome<bool> {
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    let all = map.split_whitespace().last() == Some("4294967295");
    Ok(all && std::fs::metadata("/proc/self")?.uid() == 0)
}
