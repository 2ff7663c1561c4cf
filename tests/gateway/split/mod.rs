//! `airtcp gateway split`: a kernel client, the gateway on its router, a lossy link, and a kernel
//! server.

mod service;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use airtcp_link::{Link, Way};
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{Namespace, Service, peer};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::intercept::{exchange, has_ip, ip};
use super::{BYTES, LINK, Network, Outcome, Running, body};

/// The addresses of the client and of its router, in both IP versions.
const CLIENT: [&str; 2] = ["192.0.2.2", "2001:db8::2"];
const ROUTER: [&str; 2] = ["192.0.2.1", "2001:db8::1"];

/// A link without loss: a lost RST is not sent again.
const CLEAN: &str = "rate 50mbit delay 10ms limit 200";
const PATIENCE: Duration = Duration::from_secs(60);

/// The commands of the manual, for a router with the devices `lan0` and `link0`.
const ROUTES: [&str; 8] = [
    "-4 route add default dev split0 table 101",
    "-6 route add default dev split0 table 101",
    "-4 route add default dev split1 table 102",
    "-6 route add default dev split1 table 102",
    "-4 rule add iif lan0 lookup 101",
    "-6 rule add iif lan0 lookup 101",
    "-4 rule add iif link0 lookup 102",
    "-6 rule add iif link0 lookup 102",
];

struct Path {
    dumbbell: Dumbbell,
    client: Namespace,
}

impl Path {
    fn new(link: &str) -> Outcome<Self> {
        let spec = link.parse()?;
        let dumbbell =
            Dumbbell::build(Plan::new(Host::Kernel, Link::new(&spec, &spec)?, Host::Kernel))?;
        let client = Namespace::new()?;
        let path = Self { dumbbell, client };
        let (router, server) = (path.router(), path.server());
        path.client.connect("eth0", router, "lan0")?;
        for (namespace, device, own) in [(router, "lan0", ROUTER), (&path.client, "eth0", CLIENT)] {
            let own = [format!("{}/24", own[0]).parse()?, format!("{}/64", own[1]).parse()?];
            namespace.configure(device, &own, None)?;
        }
        for key in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
            router.set_sysctl(key, "1")?;
            server.set_sysctl(key, "1")?;
        }
        router.set_sysctl("net.ipv4.conf.all.rp_filter", "1")?;
        for (is_ipv6, everything, network) in
            [(false, "0.0.0.0/0", "192.0.2.0/24"), (true, "::/0", "2001:db8::/64")]
        {
            let by = ROUTER[usize::from(is_ipv6)].parse()?;
            path.client.add_route("eth0", everything.parse()?, Some(by))?;
            let by = Dumbbell::address(Dumbbell::LEFT, is_ipv6);
            server.add_route("link0", network.parse()?, Some(by))?;
        }
        Ok(path)
    }

    fn router(&self) -> &Namespace {
        self.dumbbell.left().namespace()
    }

    fn server(&self) -> &Namespace {
        self.dumbbell.right().namespace()
    }

    /// Starts the gateway, and adds routes into its devices.
    fn start(&self, more: &[&str]) -> Outcome<Running> {
        let running = Running::start(self.router(), &[&["gateway", "split"][..], more].concat())?;
        for words in ROUTES {
            ip(self.router(), words)?;
        }
        Ok(running)
    }

    fn curl(&self, server: SocketAddr) -> Outcome {
        let url = format!("http://{server}/");
        let words = ["--silent", "--show-error", "--max-time", "60", "--noproxy", "*", &url];
        let output = run(&self.client, "curl", &words)?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout == body(), "{url}: {stderr}");
        Ok(())
    }

    /// Connects from the client.
    fn connect(&self, at: SocketAddr) -> io::Result<TcpStream> {
        self.client.block_on(async move { peer::connect(at, None).await })
    }
}

fn run(namespace: &Namespace, program: &str, words: &[&str]) -> Outcome<Output> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(namespace.spawn_child(command)?.wait_with_output()?)
}

fn server_at(is_ipv6: bool) -> SocketAddr {
    SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, is_ipv6), 0)
}

fn client_at(is_ipv6: bool) -> Outcome<IpAddr> {
    Ok(CLIENT[usize::from(is_ipv6)].parse()?)
}

/// A connection as a server sees it: its peer, and the data that was read.
type Seen = (IpAddr, io::Result<Vec<u8>>);

/// Starts a server that reads all that its client sends, and then answers with the same number of
/// bytes. A client that sends `r` is reset.
fn serve(namespace: &Namespace, at: SocketAddr) -> Outcome<(SocketAddr, Receiver<Seen>)> {
    let listener = namespace.block_on(async move { TcpListener::bind(at).await })?;
    let address = listener.local_addr()?;
    let (sender, receiver) = channel();
    namespace.spawn(async move {
        while let Ok((mut stream, from)) = listener.accept().await {
            let mut read = Vec::new();
            let first = stream.read_u8().await;
            if first.as_ref().is_ok_and(|first| *first == b'r') {
                let _ = stream.set_zero_linger();
                continue;
            }
            let ended = match first {
                Ok(_) => stream.read_to_end(&mut read).await.map(|_| read.clone()),
                Err(error) => Err(error),
            };
            let _ = sender.send((from.ip(), ended));
            let _ = stream.write_all(&read).await;
        }
    });
    Ok((address, receiver))
}

#[test]
fn connections_are_split_and_both_ends_see_each_other() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let path = Path::new(LINK)?;
    let gateway = path.start(&["--json"])?;
    for is_ipv6 in [false, true] {
        path.curl(Network::serve(path.server(), &server_at(is_ipv6).to_string())?)?;
        // Echoes in both directions, opened from either side.
        let inside = SocketAddr::new(client_at(is_ipv6)?, 0);
        for (from, to, at) in [
            (&path.client, path.server(), server_at(is_ipv6)),
            (path.server(), &path.client, inside),
        ] {
            let echo = to.serve(at, Service::Echo, None)?;
            let at = echo.address();
            let echoed = from.block_on(async move {
                peer::echo(peer::connect(at, None).await?, 3, BYTES as u64).await
            })?;
            assert_eq!(echoed, BYTES as u64);
        }
        // The server answers after the client's FIN.
        let (at, seen) = serve(path.server(), server_at(is_ipv6))?;
        let mut stream = path.connect(at)?;
        let answer = path.client.block_on(async move {
            stream.write_all(b"a question").await?;
            stream.shutdown().await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            io::Result::Ok(answer)
        })?;
        assert_eq!(answer, b" question");
        let (from, read) = seen.recv_timeout(PATIENCE)?;
        assert_eq!((from, read?), (client_at(is_ipv6)?, b" question".to_vec()));
    }
    let (stdout, _) = gateway.stop()?;
    let status: Value = serde_json::from_str(&stdout)?;
    assert_eq!((&status["split"]["opened"], &status["split"]["open"]), (&8.into(), &0.into()));
    assert_eq!(status["split"]["refused"], serde_json::json!({}), "{status}");
    assert!(status["split"]["sent"].as_u64() > Some(4 * BYTES as u64), "{status}");
    for way in Way::BOTH {
        assert!(path.dumbbell.counters(way).channel_lost > 0);
    }
    // The routes are gone with the devices, so packets go directly.
    path.curl(Network::serve(path.server(), &server_at(false).to_string())?)
}

#[test]
fn a_refusal_a_reset_and_an_unreachable_host_are_what_they_are_without_a_gateway() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let path = Path::new(CLEAN)?;
    for (version, network, is_ipv6) in
        [("-4", "198.51.100.0/24", false), ("-6", "2001:db8:5::/48", true)]
    {
        ip(path.server(), &format!("{version} route add unreachable {network}"))?;
        let by = Dumbbell::address(Dumbbell::RIGHT, is_ipv6);
        ip(path.router(), &format!("{version} route add {network} via {by} dev link0"))?;
    }
    let gateway = path.start(&["--json", "--strategies", "rack/cubic"])?;
    for (is_ipv6, nowhere, why) in [
        (false, "198.51.100.7:80", ErrorKind::HostUnreachable),
        (true, "[2001:db8:5::7]:80", ErrorKind::NetworkUnreachable),
    ] {
        let kind = |connected: io::Result<TcpStream>| connected.err().map(|error| error.kind());
        let closed = SocketAddr::new(server_at(is_ipv6).ip(), 9);
        assert_eq!(kind(path.connect(closed)), Some(ErrorKind::ConnectionRefused));
        assert_eq!(kind(path.connect(nowhere.parse()?)), Some(why));
        let (at, seen) = serve(path.server(), server_at(is_ipv6))?;
        let mut stream = path.connect(at)?;
        let read = path.client.block_on(async move {
            stream.write_all(b"r").await?;
            stream.read_u8().await
        });
        assert_eq!(read.err().map(|error| error.kind()), Some(ErrorKind::ConnectionReset));
        let mut stream = path.connect(at)?;
        path.client.block_on(async move {
            stream.write_all(b"something").await?;
            stream.set_zero_linger()
        })?;
        let (_, read) = seen.recv_timeout(PATIENCE)?;
        assert_eq!(read.err().map(|error| error.kind()), Some(ErrorKind::ConnectionReset));
    }
    let (stdout, _) = gateway.stop()?;
    let status: Value = serde_json::from_str(&stdout)?;
    let refused = &status["split"]["refused"];
    // The unreachable host of IPv4, and the unreachable network of IPv6.
    assert_eq!((&refused["refused"], &refused["host_unreachable"]), (&2.into(), &1.into()));
    assert_eq!(refused["network_unreachable"], 1, "{status}");
    Ok(())
}

#[test]
fn what_is_not_tcp_passes_unchanged() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let path = Path::new(CLEAN)?;
    let _gateway = path.start(&[])?;
    for is_ipv6 in [false, true] {
        // The server answers with the source address that it sees.
        let at = SocketAddr::new(server_at(is_ipv6).ip(), 53);
        let server = path.server().block_on(UdpSocket::bind(at))?;
        path.server().spawn(async move {
            while let Ok((_, from)) = server.recv_from(&mut [0; 64]).await {
                let _ = server.send_to(from.ip().to_string().as_bytes(), from).await;
            }
        });
        let answered = path.client.block_on(exchange(at, b"who am I"))??;
        assert_eq!(String::from_utf8(answered)?, client_at(is_ipv6)?.to_string());
        let closed = SocketAddr::new(at.ip(), 9);
        let refused = path.client.block_on(exchange(closed, b"x"))?;
        assert_eq!(refused.err().map(|error| error.kind()), Some(ErrorKind::ConnectionRefused));
        // The second ping has several fragments in each direction. One answer suffices.
        for size in ["56", "3000"] {
            let at = at.ip().to_string();
            let words = ["-c", "10", "-i", "0.05", "-W", "2", "-s", size, &at];
            let output = run(&path.client, "ping", &words)?;
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
    Ok(())
}

#[test]
fn connections_that_are_open_at_the_end_are_reset() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let path = Path::new(CLEAN)?;
    let gateway = path.start(&[])?;
    let (at, seen) = serve(path.server(), server_at(false))?;
    let mut stream = path.connect(at)?;
    let _stream = path.client.block_on(async move {
        stream.write_all(b"something").await?;
        io::Result::Ok(stream)
    })?;
    let (_, stderr) = gateway.stop()?;
    assert!(stderr.contains("carried 1 connections, refused 0"), "{stderr}");
    let (_, read) = seen.recv_timeout(PATIENCE)?;
    assert_eq!(read.err().map(|error| error.kind()), Some(ErrorKind::ConnectionReset));
    Ok(())
}
