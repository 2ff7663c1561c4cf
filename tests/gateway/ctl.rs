//! `airtcp gateway ctl`.

use std::process::Command;

use airtcp_testbed::dumbbell::Dumbbell;
use serde_json::Value;

use super::intercept::{has_ip, network};
use super::{Network, Outcome, airtcp, is_possible};

/// Queries the gateway at `socket`; returns the output.
pub(super) fn ctl(socket: &str, words: &[&str]) -> Outcome<String> {
    let output = airtcp(&[&["gateway", "ctl", "--control", socket], words].concat()).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn a_running_gateway_answers_and_obeys_ctl() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let network = network()?;
    let (near_socket, far_socket) = (network.path("near.sock"), network.path("far.sock"));
    let _far = network.start_far(&["--control", &far_socket])?;
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    let near = network.start_near(endpoint, &["--intercept", "--control", &near_socket])?;
    let server = Network::serve(&network.servers, "192.0.2.2:0")?;
    network.fetch(&["--noproxy", "*", &format!("http://{server}/")])?;
    let status = ctl(&near_socket, &["status"])?;
    assert!(status.contains("the far gateway at 10.77.0.1:7077 answers"), "{status}");
    assert!(status.contains("1 carried"), "{status}");
    for socket in [&near_socket, &far_socket] {
        let changed = ctl(socket, &["set", "strategies", "rack/cubic"])?;
        assert!(changed.starts_with("rack/cubic"), "{changed}");
        assert!(ctl(socket, &["ss"])?.contains("cubic"), "{changed}");
        let listed: Value = serde_json::from_str(&ctl(socket, &["ss", "--json"])?)?;
        assert!(listed[0]["connections"][0]["info"].is_object(), "{listed}");
    }
    let status: Value = serde_json::from_str(&ctl(&far_socket, &["status", "--json"])?)?;
    assert_eq!(status["far"]["opened"], 1, "{status}");
    near.stop()?;
    let gone = airtcp(&["gateway", "ctl", "--control", &near_socket, "status"]).output()?;
    let stderr = String::from_utf8_lossy(&gone.stderr);
    assert!(gone.status.code() == Some(1) && stderr.contains("no gateway listens on"), "{stderr}");
    Ok(())
}

/// Where `airtcp gateway ctl` looks, and where temporary files lie.
#[test]
fn a_demo_with_gateways_leaves_no_socket_and_no_file() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let files = tempfile::tempdir()?;
    // A mount namespace of its own, in which nobody else's sockets are in /run.
    let script = "mount -t tmpfs none /run && \"$0\" demo --gateway --seconds 0.2 --json >&2 && find /run -type s";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_airtcp")]);
    let output = command.env("TMPDIR", files.path()).env_remove("RUST_LOG").output()?;
    let said = String::from_utf8(output.stderr)?;
    assert!(output.status.success() && said.contains("gateway, rack/bbr3/spike"), "{said}");
    assert_eq!(String::from_utf8(output.stdout)?, "");
    assert_eq!(std::fs::read_dir(files.path())?.count(), 0);
    Ok(())
}
