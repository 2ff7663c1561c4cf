//! `airtcp gateway` with kernel programs at both ends: two namespaces with a lossy link between
//! them, and servers in a third namespace behind the far gateway.

mod check;
mod ctl;
mod intercept;
mod keys;
mod names;
mod network;
mod plain;
mod programs;
mod remote;
mod split;

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use airtcp_link::Way;
use airtcp_testbed::dumbbell::Dumbbell;
use airtcp_testbed::{Service, peer};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use network::{Network, Running, is_possible};

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
        let mut control = TcpStream::connect("127.0.0.1:1080").await?;
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
