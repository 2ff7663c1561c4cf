//! `--intercept`: programs without any proxy setting, and the state left behind on the machine.

mod dry_run;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use airtcp_testbed::dumbbell::Dumbbell;
use airtcp_testbed::{Namespace, Service, peer};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::{BYTES, Network, Outcome, airtcp, is_possible};

fn endpoint() -> IpAddr {
    Dumbbell::address(Dumbbell::RIGHT, false)
}

pub(super) fn ip(namespace: &Namespace, words: &str) -> Outcome<String> {
    let mut command = Command::new("ip");
    command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = namespace.spawn_child(command)?.wait_with_output()?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "ip {words}: {stderr}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The state that a gateway could have changed.
fn state(namespace: &Namespace) -> Outcome<String> {
    let shown =
        ["-4 rule", "-6 rule", "-4 route show table all", "-6 route show table all", "-o address"];
    let shown = shown.iter().map(|words| ip(namespace, words)).collect::<Outcome<Vec<_>>>()?;
    let rp_filter =
        namespace.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter"))?;
    Ok(format!("{}\n{rp_filter}", shown.join("\n")))
}

pub(super) fn has_ip() -> bool {
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    if !has_ip {
        println!("skipped: ip is not installed");
    }
    has_ip && is_possible()
}

/// A network in which the near machine reaches everything, including the far gateway, by a default
/// route, and filters by reverse path.
pub(super) fn network() -> Outcome<Network> {
    let network = Network::new()?;
    let near = network.near();
    let interfaces = near.interfaces()?;
    let uplink = interfaces.iter().find(|interface| interface.name != "lo").ok_or("no device")?;
    for (version, is_ipv6) in [("-4", false), ("-6", true)] {
        let own = uplink.addresses.iter().filter(|own| own.address.is_ipv6() == is_ipv6);
        for own in own.filter(|own| !own.to_string().starts_with("fe80")) {
            let whole = format!("{}/{}", own.address, if is_ipv6 { 128 } else { 32 });
            let name = &uplink.name;
            ip(near, &format!("{version} address delete {own} dev {name}"))?;
            ip(
                near,
                &format!(
                    "{version} address add {whole} dev {name}{}",
                    if is_ipv6 { " nodad" } else { "" }
                ),
            )?;
        }
        ip(near, &format!("{version} route add default dev {}", uplink.name))?;
    }
    near.set_sysctl("net.ipv4.conf.all.rp_filter", "1")?;
    Ok(network)
}

fn get(network: &Network, server: SocketAddr) -> Outcome {
    network.fetch(&["--noproxy", "*", &format!("http://{server}/")])
}

/// Checks that a kernel program cannot connect, with the error `why`.
fn refused(network: &Network, server: &str, why: ErrorKind) -> Outcome {
    let at: SocketAddr = server.parse()?;
    let connected = network.near().block_on(async move { peer::connect(at, None).await });
    let error = connected.err().ok_or_else(|| format!("{server} is connected"))?;
    assert_eq!(error.kind(), why, "{server}: {error}");
    Ok(())
}

#[test]
fn programs_without_any_setting_are_carried_and_nothing_is_left_behind() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let network = network()?;
    let _far = network.start_far(&["--deny", "192.0.2.9", "--deny", "2001:db8::9"])?;
    let web = ["192.0.2.2:0", "[2001:db8::2]:0"].map(|at| Network::serve(&network.servers, at));
    let [web4, web6] = web;
    let (web4, web6) = (web4?, web6?);
    let before = state(network.near())?;
    for is_ipv6 in [false, true] {
        let endpoint = Dumbbell::address(Dumbbell::RIGHT, is_ipv6);
        let near = network.start_near(endpoint, &["--intercept", "--json"])?;
        get(&network, web4)?;
        get(&network, web6)?;
        refused(&network, "192.0.2.2:9", ErrorKind::ConnectionRefused)?;
        refused(&network, "[2001:db8::2]:9", ErrorKind::ConnectionRefused)?;
        // The kernel's error for a filter differs between IPv4 and IPv6.
        refused(&network, "192.0.2.9:80", ErrorKind::HostUnreachable)?;
        refused(&network, "[2001:db8::9]:80", ErrorKind::PermissionDenied)?;
        let (stdout, _) = near.stop()?;
        let status: Value = serde_json::from_str(&stdout)?;
        assert_eq!(status["near"]["opened"], 2, "{status}");
        assert_eq!(status["near"]["refused"]["refused"], 2, "{status}");
        assert_eq!(status["near"]["refused"]["not_allowed"], 2, "{status}");
        assert!(status["near"]["received"].as_u64() > Some(2 * BYTES as u64), "{status}");
        assert_eq!(state(network.near())?, before);
    }
    Ok(())
}

/// Sends a datagram until there is an answer or an error, as resolvers do: the link loses packets.
pub(super) async fn exchange(
    at: SocketAddr,
    datagram: &[u8],
) -> std::io::Result<std::io::Result<Vec<u8>>> {
    let any = if at.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let client = UdpSocket::bind(any).await?;
    client.connect(at).await?;
    for _ in 0..20 {
        client.send(datagram).await?;
        let mut answer = [0; 512];
        let received = timeout(Duration::from_secs(1), client.recv(&mut answer)).await;
        if let Ok(received) = received {
            return Ok(received.map(|length| answer[..length].to_vec()));
        }
    }
    Err(ErrorKind::TimedOut.into())
}

#[test]
fn a_name_is_asked_for_over_udp() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let network = network()?;
    let _far = network.start_far(&[])?;
    let _near = network.start_near(endpoint(), &["--intercept"])?;
    for address in ["192.0.2.2", "2001:db8::2"] {
        let at = SocketAddr::new(address.parse()?, 53);
        let server = network.servers.block_on(UdpSocket::bind(at))?;
        network.servers.spawn(async move {
            let mut query = [0; 512];
            while let Ok((length, from)) = server.recv_from(&mut query).await {
                // The QR bit of the header marks an answer (RFC 1035 section 4.1.1).
                query[2] |= 0x80;
                let _ = server.send_to(&query[..length], from).await;
            }
        });
        let query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01";
        let answered = network.near().block_on(exchange(at, query))??;
        assert_eq!(answered[..4], [0x12, 0x34, 0x81, 0x00]);
    }
    Ok(())
}

#[test]
fn a_closed_port_of_udp_is_closed_for_the_program() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let network = network()?;
    let _far = network.start_far(&[])?;
    let _near = network.start_near(endpoint(), &["--intercept"])?;
    for address in ["192.0.2.2", "2001:db8::2"] {
        let at = SocketAddr::new(address.parse()?, 9);
        // `exchange` retries, because the kernels limit the rate of ICMP errors.
        let refused = network.near().block_on(exchange(at, b"x"))?.map_err(|error| error.kind());
        assert_eq!(refused, Err(ErrorKind::ConnectionRefused), "{at}");
    }
    Ok(())
}

#[test]
fn after_a_kill_nothing_leaves_in_clear_and_the_next_start_cleans_up() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let network = network()?;
    let _far = network.start_far(&[])?;
    let web = Network::serve(&network.servers, "192.0.2.2:0")?;
    let before = state(network.near())?;
    let mut near = network.start_near(endpoint(), &["--intercept", "--exclude", "10.0.0.0/8"])?;
    let meanwhile = state(network.near())?;
    let stderr = failure(&network, &["--intercept", "--tun", "other0"])?;
    assert!(stderr.contains("another gateway of this machine intercepts already"), "{stderr}");
    assert_eq!(state(network.near())?, meanwhile);
    get(&network, web)?;
    near.child.kill()?;
    near.child.wait()?;
    assert_ne!(state(network.near())?, before);
    refused(&network, &web.to_string(), ErrorKind::HostUnreachable)?;
    let near = network.start_near(endpoint(), &["--intercept"])?;
    get(&network, web)?;
    near.stop()?;
    assert_eq!(state(network.near())?, before);
    Ok(())
}

/// Starts a near gateway that fails; returns its error output.
fn failure(network: &Network, more: &[&str]) -> Outcome<String> {
    let mut command = airtcp(&["gateway", "near", "--key", &network.path("near.key")]);
    command.args(["--peer", &network.public[1], "--endpoint", &format!("{}:51820", endpoint())]);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = network.near().spawn_child(command)?.wait_with_output()?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    Ok(stderr)
}

#[test]
fn without_a_far_gateway_connections_fail_at_once() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let network = network()?;
    let far = network.start_far(&[])?;
    let mut near = network.start_near(endpoint(), &["--intercept"])?;
    drop(far);
    near.wait_for("does not answer")?;
    refused(&network, "192.0.2.2:9", ErrorKind::NetworkUnreachable)?;
    refused(&network, "[2001:db8::2]:9", ErrorKind::NetworkUnreachable)?;
    Ok(())
}

#[test]
fn connections_that_are_open_at_the_end_are_reset() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let network = network()?;
    let _far = network.start_far(&[])?;
    let before = state(network.near())?;
    let near = network.start_near(endpoint(), &["--intercept"])?;
    let echo = network.servers.serve("192.0.2.2:0".parse()?, Service::Echo, None)?;
    let at = echo.address();
    let mut stream = network.near().block_on(async move { peer::connect(at, None).await })?;
    near.stop()?;
    let error = network.near().block_on(async move { stream.read_u8().await });
    assert_eq!(error.err().ok_or("it goes on")?.kind(), ErrorKind::ConnectionReset);
    assert_eq!(state(network.near())?, before);
    Ok(())
}

#[test]
fn programs_can_be_answered_before_their_destination_is_connected() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let network = network()?;
    let _far = network.start_far(&[])?;
    let _near = network.start_near(endpoint(), &["--intercept", "--answer-early"])?;
    get(&network, Network::serve(&network.servers, "[2001:db8::2]:0")?)?;
    let closed: SocketAddr = "192.0.2.2:9".parse()?;
    let read = network.near().block_on(async move {
        let mut stream = peer::connect(closed, None).await?;
        stream.read_u8().await
    });
    let error = read.err().ok_or("a closed port answers")?;
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    Ok(())
}
