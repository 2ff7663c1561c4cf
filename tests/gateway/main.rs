//! `airtcp gateway` with kernel programs at both ends: two namespaces with a lossy link between
//! them, and servers in a third namespace behind the far gateway.

mod check;
mod intercept;
mod keys;
mod plain;
mod programs;
mod split;

use std::error::Error;
use std::io::{BufRead, BufReader, Lines, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use airtcp_link::{Link, Way};
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{Namespace, Service, or_skip, peer, requirements};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const LINK: &str = "rate 50mbit delay 10ms loss 2% limit 200 seed 7";
const BYTES: usize = 1 << 20;

fn airtcp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    command.args(arguments).env_remove("RUST_LOG");
    command
}

fn body() -> Vec<u8> {
    (0..BYTES).map(|n| (n % 251) as u8).collect()
}

/// A running gateway.
struct Running {
    child: Child,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn start(namespace: &Namespace, arguments: &[&str]) -> Outcome<Self> {
        let mut running = Self::of(namespace, airtcp(arguments))?;
        running.wait_for("ready")?;
        Ok(running)
    }

    fn of(namespace: &Namespace, mut command: Command) -> Outcome<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = namespace.spawn_child(command)?;
        let stderr = BufReader::new(child.stderr.take().ok_or("it is piped")?).lines();
        Ok(Self { child, stderr })
    }

    /// Waits for a line that contains `words`.
    fn wait_for(&mut self, words: &str) -> Outcome {
        let mut before = Vec::new();
        for line in self.stderr.by_ref() {
            let line = line?;
            if line.contains(words) {
                return Ok(());
            }
            before.push(line);
        }
        Err(format!("it ended without `{words}`: {before:?}").into())
    }

    fn terminate(&self) -> Outcome {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status()?.success());
        Ok(())
    }

    /// Stops the gateway with SIGTERM; returns its stdout and stderr.
    fn stop(mut self) -> Outcome<(String, String)> {
        self.terminate()?;
        let mut stdout = String::new();
        self.child.stdout.take().ok_or("it is piped")?.read_to_string(&mut stdout)?;
        let stderr = self.stderr.by_ref().collect::<Result<Vec<_>, _>>()?.join("\n");
        assert_eq!(self.child.wait()?.code(), Some(0), "{stderr}");
        Ok((stdout, stderr))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two machines with keys, a link between them, and servers behind the far machine.
struct Network {
    dumbbell: Dumbbell,
    servers: Namespace,
    directory: TempDir,
    public: [String; 2],
}

impl Network {
    fn new() -> Outcome<Self> {
        Self::over(LINK)
    }

    fn over(link: &str) -> Outcome<Self> {
        let spec = link.parse()?;
        let dumbbell =
            Dumbbell::build(Plan::new(Host::Kernel, Link::new(&spec, &spec)?, Host::Kernel))?;
        let servers = Namespace::new()?;
        let far = dumbbell.right().namespace();
        far.connect("lan0", &servers, "lan0")?;
        for (namespace, host) in [(far, 1), (&servers, 2)] {
            let addresses = [format!("192.0.2.{host}/24"), format!("2001:db8::{host}/64")];
            let addresses = addresses
                .map(|address| address.parse())
                .into_iter()
                .collect::<Result<Vec<_>, _>>()?;
            namespace.configure("lan0", &addresses, None)?;
        }
        let directory = tempfile::tempdir()?;
        let near = keys::generate(&directory.path().join("near.key"))?;
        let far = keys::generate(&directory.path().join("far.key"))?;
        Ok(Self { dumbbell, servers, directory, public: [near, far] })
    }

    fn near(&self) -> &Namespace {
        self.dumbbell.left().namespace()
    }

    fn far(&self) -> &Namespace {
        self.dumbbell.right().namespace()
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Starts the far gateway, which may dial the servers behind it and its own loopback address.
    fn start_far(&self, more: &[&str]) -> Outcome<Running> {
        let (key, [near, _]) = (self.path("far.key"), &self.public);
        self.start_far_with(&["--key", &key, "--peer", near], more)
    }

    fn start_far_with(&self, carrier: &[&str], more: &[&str]) -> Outcome<Running> {
        let own = [
            "--allow",
            "127.0.0.1",
            "--allow",
            "::1",
            "--allow",
            "192.0.2.0/24",
            "--allow",
            "2001:db8::/32",
        ];
        Running::start(self.far(), &[&["gateway", "far"], carrier, &own[..], more].concat())
    }

    /// Starts a near gateway, and waits until the far gateway answers.
    fn start_near(&self, endpoint: IpAddr, more: &[&str]) -> Outcome<Running> {
        let mut near = self.launch_near(endpoint, more)?;
        near.wait_for("ready")?;
        near.wait_for("answers")?;
        Ok(near)
    }

    fn launch_near(&self, endpoint: IpAddr, more: &[&str]) -> Outcome<Running> {
        let (key, [_, far]) = (self.path("near.key"), &self.public);
        let endpoint = SocketAddr::new(endpoint, 51_820).to_string();
        let line = ["gateway", "near", "--key", &key, "--peer", far, "--endpoint", &endpoint];
        Running::of(self.near(), airtcp(&[&line, more].concat()))
    }

    /// Starts an HTTP server with one body.
    fn serve(namespace: &Namespace, at: &str) -> Outcome<SocketAddr> {
        let at = at.to_owned();
        let listener = namespace.block_on(async move { TcpListener::bind(at).await })?;
        let address = listener.local_addr()?;
        namespace.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        request.push(stream.read_u8().await?);
                    }
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {BYTES}\r\nconnection: close\r\n\r\n"
                    );
                    stream.write_all(head.as_bytes()).await?;
                    stream.write_all(&body()).await
                });
            }
        });
        Ok(address)
    }

    /// Runs curl at the near side.
    fn curl(&self, arguments: &[&str]) -> Outcome<Output> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "60"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(self.near().spawn_child(command)?.wait_with_output()?)
    }

    fn fetch(&self, arguments: &[&str]) -> Outcome {
        let output = self.curl(arguments)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && output.stdout == body(), "{arguments:?}: {stderr}");
        Ok(())
    }

    fn refused(&self, arguments: &[&str], code: i32, words: &str) -> Outcome {
        let output = self.curl(arguments)?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
        Ok(())
    }
}

/// Whether namespaces and curl are available; prints a message if the test is skipped.
fn is_possible() -> bool {
    let has_curl = Command::new("curl").arg("--version").output().is_ok();
    if !has_curl {
        assert!(std::env::var_os("AIRTCP_REQUIRE_TOOLS").is_none(), "curl is not installed");
        println!("skipped: curl is not installed");
    }
    has_curl && or_skip(requirements()).is_some()
}

#[test]
fn programs_of_the_kernel_talk_to_servers_of_the_kernel_over_both_families() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = Network::new()?;
    let web = [
        Network::serve(&network.servers, "192.0.2.2:0")?.to_string(),
        Network::serve(&network.servers, "[2001:db8::2]:0")?.to_string(),
        format!("localhost:{}", Network::serve(network.far(), "127.0.0.1:0")?.port()),
    ];
    let echo = network.servers.serve("[2001:db8::2]:0".parse()?, Service::Echo, None)?;
    let far = network.start_far(&["--json"])?;
    for is_ipv6 in [false, true] {
        let endpoint = Dumbbell::address(Dumbbell::RIGHT, is_ipv6);
        let forward = format!("2222:{}", echo.address());
        let ways = [
            "--socks5",
            "127.0.0.1:1080",
            "--http-connect",
            "[::1]:8080",
            "-L",
            &forward,
            "--json",
        ];
        let near = network.start_near(endpoint, &ways)?;
        for host in &web {
            let url = format!("http://{host}/");
            network.fetch(&["--socks5-hostname", "127.0.0.1:1080", &url])?;
            network.fetch(&["--proxy", "http://[::1]:8080", "--proxytunnel", &url])?;
        }
        let echoed = network.near().block_on(async {
            let stream = peer::connect("127.0.0.1:2222".parse().expect("an address"), None).await?;
            peer::echo(stream, 3, BYTES as u64).await
        })?;
        assert_eq!(echoed, BYTES as u64);
        let (stdout, _) = near.stop()?;
        let status: Value = serde_json::from_str(&stdout)?;
        assert_eq!(status["near"]["connected"], true, "{status}");
        assert_eq!(status["near"]["opened"], 7, "{status}");
        assert!(status["near"]["received"].as_u64() > Some(7 * BYTES as u64), "{status}");
        assert_eq!(status["peers"][0]["key"], network.public[1], "{status}");
    }
    let (stdout, _) = far.stop()?;
    let status: Value = serde_json::from_str(&stdout)?;
    assert_eq!(status["peers"][0]["addresses"][0], "10.77.0.2/32", "{status}");
    for way in Way::BOTH {
        assert!(network.dumbbell.counters(way).channel_lost > 0);
    }
    network.dumbbell.stop()?;
    Ok(())
}

#[test]
fn datagrams_of_a_program_reach_a_server_and_come_back() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = Network::new()?;
    let _far = network.start_far(&[])?;
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    let _near = network.start_near(endpoint, &["--socks5", "127.0.0.1:1080"])?;
    let server = network.servers.block_on(UdpSocket::bind("192.0.2.2:53"))?;
    network.servers.spawn(async move {
        let mut data = [0; 2000];
        while let Ok((length, from)) = server.recv_from(&mut data).await {
            let _ = server.send_to(&data[..length], from).await;
        }
    });
    let answered = network.near().block_on(async {
        let mut control = tokio::net::TcpStream::connect("127.0.0.1:1080").await?;
        control.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        let mut reply = [0; 12];
        control.read_exact(&mut reply).await?;
        assert_eq!(reply[..10], [5, 0, 5, 0, 0, 1, 127, 0, 0, 1]);
        let client = UdpSocket::bind("127.0.0.1:0").await?;
        client.connect(("127.0.0.1", u16::from_be_bytes([reply[10], reply[11]]))).await?;
        let mut answered = 0;
        for number in 0..50_u8 {
            client.send(&[0, 0, 0, 1, 192, 0, 2, 2, 0, 53, number]).await?;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        // The link loses some of the datagrams.
        let mut data = [0; 2000];
        let patience = std::time::Duration::from_secs(2);
        while let Ok(length) = tokio::time::timeout(patience, client.recv(&mut data)).await {
            assert_eq!(length?, 11);
            answered += 1;
        }
        Ok::<_, std::io::Error>(answered)
    })?;
    assert!((30..=50).contains(&answered), "{answered}");
    Ok(())
}

#[test]
fn a_refused_program_gets_the_reason() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = Network::new()?;
    let _far = network.start_far(&["--deny", "192.0.2.9"])?;
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    let ways = ["--socks5", "127.0.0.1:1080", "--http-connect", "127.0.0.1:8080"];
    let near = network.start_near(endpoint, &[&ways[..], &["--login", "alice:secret"]].concat())?;
    let socks = ["--proxy", "socks5h://alice:secret@127.0.0.1:1080"];
    let connect = ["--proxytunnel", "--proxy", "http://alice:secret@127.0.0.1:8080"];
    for (to, reply, status) in [
        ("192.0.2.2:9", "(5)", "502"),
        ("192.0.2.9:80", "(2)", "403"),
        ("no-host.invalid:80", "(4)", "502"),
    ] {
        let url = format!("http://{to}/");
        network.refused(&[&socks[..], &[&url]].concat(), 97, reply)?;
        network.refused(&[&connect[..], &[&url]].concat(), 56, status)?;
    }
    network.refused(&["--proxy", "socks5h://127.0.0.1:1080", "http://192.0.2.2/"], 97, "")?;
    network.refused(
        &["--proxytunnel", "--proxy", "http://127.0.0.1:8080", "http://192.0.2.2/"],
        56,
        "407",
    )?;
    let (_, stderr) = near.stop()?;
    assert!(stderr.contains("carried 0 connections, refused 6"), "{stderr}");
    Ok(())
}

/// A far gateway ignores hosts that have no peer's key.
#[test]
fn a_stranger_is_not_answered() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = Network::new()?;
    let _far = network.start_far(&[])?;
    let stranger = network.path("stranger.key");
    keys::generate(Path::new(&stranger))?;
    let endpoint = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, false), 51_820).to_string();
    let line = [
        "gateway",
        "near",
        "--key",
        &stranger,
        "--peer",
        &network.public[1],
        "--endpoint",
        &endpoint,
    ];
    let ways = ["--http-connect", "127.0.0.1:8080", "--json"];
    let near = Running::start(network.near(), &[&line[..], &ways].concat())?;
    network.refused(
        &["--proxytunnel", "--proxy", "http://127.0.0.1:8080", "http://192.0.2.2/"],
        56,
        "503",
    )?;
    let (stdout, _) = near.stop()?;
    let status: Value = serde_json::from_str(&stdout)?;
    assert_eq!(status["near"]["connected"], false, "{status}");
    assert_eq!(status["peers"][0]["seconds_since_handshake"], Value::Null, "{status}");
    Ok(())
}

#[test]
fn as_many_files_may_be_open_as_the_hard_limit_says() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = Network::new()?;
    let under = |limit: &str| -> Outcome<Running> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]);
        command.arg(env!("CARGO_BIN_EXE_airtcp")).env_remove("RUST_LOG");
        let key = network.path("far.key");
        command.args(["gateway", "far", "--key", &key, "--peer", &network.public[0]]);
        Running::of(network.far(), command)
    };
    let mut far = under("-Sn 64")?;
    far.wait_for("ready")?;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", far.child.id()))?;
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let files: Vec<&str> = files.ok_or("a line of it")?.split_whitespace().collect();
    assert!(files[0] == files[1] && files[0] != "64", "{files:?}");
    far.stop()?;
    let mut far = under("-n 100")?;
    far.wait_for("may open 100 files")?;
    far.wait_for("ready")
}
