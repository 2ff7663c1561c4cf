//! `--carrier tun`: unencrypted packets between the gateways, routed by the kernels to the link.

use std::process::{Command, Output, Stdio};

use airtcp_link::Way;
use serde_json::Value;

use super::{BYTES, LINK, Network, Outcome, Running, airtcp, is_possible};

const TUN: [&str; 3] = ["--carrier", "tun", "--insecure-carrier"];
/// Addresses of the near gateway, the far gateway, and a stranger, for each IP version.
const ADDRESSES: [[&str; 3]; 2] =
    [["10.77.0.2", "10.77.0.1", "10.77.0.3"], ["fd77::2", "fd77::1", "fd77::3"]];
const WAYS: [&str; 3] = ["--socks5", "127.0.0.1:1080", "--json"];

/// A network whose kernels forward between the link and the gateways.
fn network(link: &str) -> Outcome<Network> {
    let network = Network::over(link)?;
    for namespace in [network.near(), network.far()] {
        namespace.set_sysctl("net.ipv4.ip_forward", "1")?;
        namespace.set_sysctl("net.ipv6.conf.all.forwarding", "1")?;
    }
    for ([near, far, stranger], whole) in ADDRESSES.into_iter().zip([32, 128]) {
        network.near().add_route("link0", format!("{far}/{whole}").parse()?, None)?;
        for address in [near, stranger] {
            network.far().add_route("link0", format!("{address}/{whole}").parse()?, None)?;
        }
    }
    Ok(network)
}

fn with_prefix(address: &str) -> String {
    format!("{address}/{}", if address.contains(':') { 64 } else { 24 })
}

fn start_far(network: &Network, [near, far, _]: [&str; 3], more: &[&str]) -> Outcome<Running> {
    let own = with_prefix(far);
    let carrier = [&TUN[..], &["--address", &own, "--peer", near, "--json"]].concat();
    network.start_far_with(&carrier, more)
}

fn near(command: &str, own: &str, far: &str, more: &[&str]) -> Command {
    let own = with_prefix(own);
    let line = ["gateway", command, "--address", &own, "--peer", far];
    airtcp(&[&line[..], &TUN, &WAYS, more].concat())
}

fn start_near(network: &Network, own: &str, far: &str, more: &[&str]) -> Outcome<Running> {
    let mut running = Running::of(network.near(), near("near", own, far, more))?;
    running.wait_for("ready")?;
    Ok(running)
}

fn output(network: &Network, mut command: Command) -> Outcome<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(network.near().spawn_child(command)?.wait_with_output()?)
}

fn fetch(network: &Network, from: &str) -> Outcome {
    network.fetch(&["--socks5", "127.0.0.1:1080", &format!("http://{from}/")])
}

#[test]
fn programs_are_carried_in_plain_packets_over_both_families() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = network(LINK)?;
    let web = Network::serve(&network.servers, "192.0.2.2:0")?.to_string();
    for addresses @ [own, far, _] in ADDRESSES {
        let running = start_far(&network, addresses, &[])?;
        let control = network.path("near.sock");
        let mut near = start_near(&network, own, far, &["--control", &control])?;
        near.wait_for(&format!("the far gateway at {far} answers"))?;
        fetch(&network, &web)?;
        let asked = airtcp(&["gateway", "ctl", "status", "--control", &control]).output()?;
        let status = String::from_utf8(asked.stdout)?;
        assert!(status.contains(&format!("peer {far}: last packet ")), "{status}");
        for (stdout, peer) in [(near.stop()?.0, far), (running.stop()?.0, own)] {
            let status: Value = serde_json::from_str(&stdout)?;
            assert_eq!((&status["carrier"], &status["key"]), (&"tun".into(), &Value::Null));
            assert_eq!(status["peers"][0]["addresses"][0], peer, "{status}");
            let bytes = |way: &str| status["peers"][0][way].as_u64().unwrap_or(0);
            assert!(bytes("received_bytes").max(bytes("sent_bytes")) > BYTES as u64, "{status}");
        }
    }
    Ok(())
}

#[test]
fn a_source_that_is_no_peer_is_not_served() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = network(LINK)?;
    let addresses @ [_, far, stranger] = ADDRESSES[0];
    let running = start_far(&network, addresses, &[])?;
    let near = start_near(&network, stranger, far, &["--http-connect", "127.0.0.1:8080"])?;
    let url = "http://192.0.2.2/";
    network.refused(&["--proxytunnel", "--proxy", "http://127.0.0.1:8080", url], 56, "503")?;
    near.stop()?;
    let status: Value = serde_json::from_str(&running.stop()?.0)?;
    assert!(status["refused_packets"].as_u64() > Some(0), "{status}");
    assert_eq!(status["peers"][0]["received_bytes"], 0, "{status}");
    assert_eq!(status["far"]["nears"], 0, "{status}");
    Ok(())
}

/// A network card or WireGuard would drop damaged packets; a TUN device does not.
#[test]
fn hack_repairs_what_the_link_has_damaged() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = network("rate 50mbit delay 10ms corrupt 3% header 5% limit 200 seed 7")?;
    let web = Network::serve(&network.servers, "192.0.2.2:0")?.to_string();
    let addresses @ [own, far, _] = ADDRESSES[0];
    let strategies = ["--strategies", "rack/bbr3/hack"];
    let running = start_far(&network, addresses, &strategies)?;
    let mut near = start_near(&network, own, far, &strategies)?;
    near.wait_for("answers")?;
    fetch(&network, &web)?;
    let counters = |stdout: &str| -> Outcome<Value> {
        let mut status: Value = serde_json::from_str(stdout)?;
        Ok(status["counters"].take())
    };
    let (near, far) = (counters(&near.stop()?.0)?, counters(&running.stop()?.0)?);
    let of = |counters: &Value, name: &str| counters[name].as_u64().unwrap_or(0);
    assert!(network.dumbbell.counters(Way::Back).corrupted > 10);
    // The far gateway sends the body, and the near gateway reports the damaged packets.
    assert!(of(&near, "TcpExtHackAcksSent") > 5, "{near}");
    let believed = of(&far, "TcpExtHackAcksRecv") - of(&far, "TcpExtHackAcksIgnored");
    assert!(believed > 5, "{far}");
    Ok(())
}

#[test]
fn a_link_is_looked_at_unless_a_near_gateway_has_the_device_and_a_dry_run_makes_none() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = network(LINK)?;
    let addresses @ [own, far, _] = ADDRESSES[0];
    let _far = start_far(&network, addresses, &[])?;
    let dry = output(&network, near("near", own, far, &["--dry-run"]))?;
    let commands = String::from_utf8(dry.stdout)?;
    assert!(commands.contains("ip route add 10.77.0.2 dev airtcp-near"), "{commands}");
    let devices = |network: &Network| -> Outcome<Vec<String>> {
        Ok(network.near().interfaces()?.into_iter().map(|one| one.name).collect())
    };
    assert!(!devices(&network)?.contains(&"airtcp-near".to_owned()));
    let found = output(&network, near("check", own, far, &[]))?;
    let stderr = String::from_utf8_lossy(&found.stderr).into_owned();
    let found: Value =
        serde_json::from_slice(&found.stdout).map_err(|error| format!("{error}: {stderr}"))?;
    assert_eq!((&found["endpoint"], &found["mtu"]), (&far.into(), &1500.into()), "{found}");
    let running = start_near(&network, own, far, &[])?;
    let refused = output(&network, near("check", own, far, &[]))?;
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("airtcp gateway ctl status"), "{stderr}");
    running.stop()?;
    assert!(!devices(&network)?.contains(&"airtcp-near".to_owned()));
    Ok(())
}
