//! Real programs at both ends: dnsmasq, iperf3, OpenSSH.

use std::io::{self, BufRead, BufReader, ErrorKind, Lines, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use airtcp_testbed::dumbbell::Dumbbell;
use airtcp_testbed::{Namespace, Service};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::intercept::network;
use super::{Network, Outcome, is_possible};

const PROXY: &str = "127.0.0.1:1080";
/// The addresses of the server, in both IP versions.
const ADDRESSES: [&str; 2] = ["192.0.2.2", "2001:db8::2"];
/// The pause before a retry.
const AGAIN: Duration = Duration::from_millis(50);

/// Whether namespaces and these programs are available; prints a message if the test is skipped.
fn has(programs: &[&str]) -> bool {
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
struct Server(Child);

impl Server {
    /// Starts a server, and waits until it listens for TCP at `at`.
    fn start(namespace: &Namespace, command: &str, at: SocketAddr) -> Outcome<Self> {
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

/// Encodes a DNS query for the addresses of `example.test` (RFC 1035 section 4.1): A or AAAA.
fn question(number: u8, is_ipv6: bool) -> Vec<u8> {
    let header = [0, number, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let kind = if is_ipv6 { 28 } else { 1 };
    [&header[..], b"\x07example\x04test\x00", &[0, kind, 0, 1]].concat()
}

/// The path of a resolver's datagrams and connections.
#[derive(Clone, Copy)]
enum Way {
    Intercepted,
    Proxy,
}

/// Encodes an address as in the SOCKS5 header of a datagram (RFC 1928 section 7) and in a request.
fn target(to: SocketAddr) -> Vec<u8> {
    let address = match to.ip() {
        std::net::IpAddr::V4(ip) => [&[1][..], &ip.octets()].concat(),
        std::net::IpAddr::V6(ip) => [&[4][..], &ip.octets()].concat(),
    };
    [&address[..], &to.port().to_be_bytes()].concat()
}

/// Sends a SOCKS5 request with `command`; returns the connection and the port of the reply.
async fn socks(command: u8, to: &[u8]) -> io::Result<(TcpStream, u16)> {
    let mut control = TcpStream::connect(PROXY).await?;
    control.write_all(&[&[5, 1, 0, 5, command, 0], to].concat()).await?;
    let mut reply = [0; 12];
    control.read_exact(&mut reply).await?;
    assert_eq!(reply[..4], [5, 0, 5, 0]);
    Ok((control, u16::from_be_bytes([reply[10], reply[11]])))
}

async fn ask_by_udp(way: Way, to: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let (server, header, _control) = match way {
        Way::Intercepted => (to, Vec::new(), None),
        Way::Proxy => {
            let (control, port) = socks(3, &[1, 0, 0, 0, 0, 0, 0]).await?;
            let relay = SocketAddr::from(([127, 0, 0, 1], port));
            (relay, [&[0, 0, 0][..], &target(to)].concat(), Some(control))
        }
    };
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let client = UdpSocket::bind(any).await?;
    client.connect(server).await?;
    // Retries as resolvers do: the link loses packets.
    for _ in 0..20 {
        client.send(&[&header, question].concat()).await?;
        let mut answer = vec![0; 2000];
        if let Ok(length) = timeout(Duration::from_secs(1), client.recv(&mut answer)).await {
            return Ok(answer[header.len()..length?].to_vec());
        }
    }
    Err(ErrorKind::TimedOut.into())
}

async fn ask_by_tcp(way: Way, to: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut server = match way {
        Way::Intercepted => TcpStream::connect(to).await?,
        Way::Proxy => socks(1, &target(to)).await?.0,
    };
    server.write_all(&[&(question.len() as u16).to_be_bytes(), question].concat()).await?;
    let mut answer = vec![0; server.read_u16().await?.into()];
    server.read_exact(&mut answer).await?;
    Ok(answer)
}

#[test]
fn names_are_asked_for_by_udp_and_by_tcp() -> Outcome {
    if !has(&["ip", "dnsmasq"]) {
        return Ok(());
    }
    let network = network()?;
    let command = "dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --pid-file= --user=root \
                   --listen-address=192.0.2.2 --listen-address=2001:db8::2 --bind-interfaces \
                   --address=/example.test/192.0.2.77 --address=/example.test/2001:db8::77";
    let _dns = Server::start(&network.servers, command, "192.0.2.2:53".parse()?)?;
    let _far = network.start_far(&[])?;
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    for way in [Way::Intercepted, Way::Proxy] {
        let flags: &[&str] = match way {
            Way::Intercepted => &["--intercept"],
            Way::Proxy => &["--socks5", PROXY],
        };
        let near = network.start_near(endpoint, flags)?;
        for server in ADDRESSES {
            let at = SocketAddr::new(server.parse()?, 53);
            for (number, is_ipv6) in [(1, false), (2, true)] {
                let asked = question(number, is_ipv6);
                let answers = network.near().block_on(async move {
                    let by_udp = ask_by_udp(way, at, &asked).await?;
                    Ok::<_, io::Error>([by_udp, ask_by_tcp(way, at, &asked).await?])
                })?;
                let found: &[u8] = match is_ipv6 {
                    true => &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x77],
                    false => &[192, 0, 2, 77],
                };
                for answer in answers {
                    assert_eq!(answer[..2], [0, number]);
                    assert!(answer.ends_with(found), "{answer:?}");
                }
            }
        }
        near.stop()?;
    }
    Ok(())
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

/// Sends data, and checks that the same data comes back.
async fn echoes(stream: &mut TcpStream, count: usize) -> io::Result<()> {
    let sent: Vec<u8> = (0..count).map(|n| (n % 251) as u8).collect();
    let mut heard = vec![0; count];
    let (mut read, mut write) = stream.split();
    tokio::try_join!(write.write_all(&sent), read.read_exact(&mut heard))?;
    assert!(heard == sent);
    Ok(())
}

#[test]
fn a_stopping_far_gateway_lets_connections_end() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = Network::new()?;
    let mut far = network.start_far(&[])?;
    let echo = network.servers.serve("192.0.2.2:0".parse()?, Service::Echo, None)?;
    let forward = format!("2222:{}", echo.address());
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    // If a reset is lost, the end of the hold resets the connection.
    let _near = network.start_near(endpoint, &["-L", &forward, "--hold", "5"])?;
    let open = || {
        network.near().block_on(async {
            let mut stream = TcpStream::connect("127.0.0.1:2222").await?;
            echoes(&mut stream, 1000).await?;
            Ok::<_, io::Error>(stream)
        })
    };
    let (mut ends, mut stays) = (open()?, open()?);
    far.terminate()?;
    far.wait_for("stopping")?;
    let ended = network.near().block_on(async move {
        echoes(&mut ends, 1000).await?;
        ends.shutdown().await?;
        ends.read(&mut [0; 1]).await
    })?;
    assert_eq!(ended, 0, "more than was sent");
    let reset = network.near().block_on(async move { stays.read(&mut [0; 1]).await });
    assert_eq!(reset.err().ok_or("it goes on")?.kind(), ErrorKind::ConnectionReset);
    assert_eq!(far.child.wait()?.code(), Some(0));
    Ok(())
}

#[test]
fn a_port_of_the_far_machine_leads_to_the_near_one() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = Network::new()?;
    let _far = network.start_far(&["--permit-listen", "192.0.2.1:8000-8999"])?;
    let echo = network.near().serve("127.0.0.1:0".parse()?, Service::Echo, None)?;
    let forward = |port: u16| format!("192.0.2.1:{port}:{}", echo.address());
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    let ways = ["-R", &forward(8000), "-R", &forward(9000)];
    let mut near = network.launch_near(endpoint, &ways)?;
    near.wait_for("start it with --permit-listen 192.0.2.1:9000")?;
    network.servers.block_on(echoes_at("192.0.2.1:8000"))?;
    near.stop()?;
    let closed = network.servers.block_on(TcpStream::connect("192.0.2.1:9000"));
    assert_eq!(closed.err().ok_or("it listens")?.kind(), ErrorKind::ConnectionRefused);
    let _taken = network.far().serve("192.0.2.1:8001".parse()?, Service::Echo, None)?;
    let mut near = network.launch_near(endpoint, &["-R", &forward(8001)])?;
    near.wait_for("another program or near gateway listens on this port")
}

/// Connects to a port, retries until it is open, and checks the echo.
async fn echoes_at(to: &str) -> io::Result<()> {
    let mut stream = loop {
        match TcpStream::connect(to).await {
            Ok(stream) => break stream,
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    };
    echoes(&mut stream, 100_000).await
}

#[test]
fn what_a_remote_forward_dials_goes_around_interception() -> Outcome {
    if !has(&["ip"]) {
        return Ok(());
    }
    let network = network()?;
    // Strict filtering would look up the return path without the mark.
    network.near().set_sysctl("net.ipv4.conf.all.rp_filter", "2")?;
    let ports = "192.0.2.1:8000-8001";
    let _far = network.start_far(&["--permit-listen", ports])?;
    // The near machine reaches the servers by its default route. The far gateway may not dial them.
    let beyond = |is_ipv6| {
        let at = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, is_ipv6), 0);
        network.far().serve(at, Service::Echo, None)
    };
    let servers = [beyond(false)?, beyond(true)?];
    let [one, two] = [0, 1].map(|n| format!("192.0.2.1:{}:{}", 8000 + n, servers[n].address()));
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    let _near = network.start_near(endpoint, &["--intercept", "-R", &one, "-R", &two])?;
    for port in ["192.0.2.1:8000", "192.0.2.1:8001"] {
        network.servers.block_on(echoes_at(port))?;
    }
    Ok(())
}
