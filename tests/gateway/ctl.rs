//! `airtcp gateway ctl`.

use airtcp_testbed::dumbbell::Dumbbell;
use serde_json::Value;

use super::intercept::{has_ip, network};
use super::{Network, Outcome, airtcp};

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
