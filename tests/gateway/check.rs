//! `airtcp gateway check`.

use std::net::SocketAddr;
use std::process::{Output, Stdio};

use airtcp_testbed::dumbbell::Dumbbell;

use super::{Network, Outcome, airtcp, is_possible, keys};

fn check(network: &Network, key: &str, more: &[&str]) -> Outcome<Output> {
    let endpoint = SocketAddr::new(Dumbbell::address(Dumbbell::RIGHT, false), 51_820).to_string();
    let key = network.path(key);
    let line = ["gateway", "check", "--key", &key, "--peer", &network.public[1]];
    let mut command = airtcp(&line);
    command.args(["--endpoint", &endpoint, "--socks5", "127.0.0.1:1080"]).args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(network.near().spawn_child(command)?.wait_with_output()?)
}

#[test]
fn a_link_is_checked_and_a_silent_far_end_is_reported_with_what_to_check() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = Network::new()?;
    let _far = network.start_far(&[])?;
    let output = check(&network, "near.key", &[])?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let found = String::from_utf8(output.stdout)?;
    for words in [" answers: handshake", "lost: ", "round trip: 2", "1440 bytes, as set"] {
        assert!(found.contains(words), "{found}");
    }
    let stranger = keys::generate(network.path("stranger.key").as_ref())?;
    let output = check(&network, "stranger.key", &[])?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("no answer from") && stderr.contains(&stranger), "{stderr}");
    Ok(())
}

#[test]
fn a_near_gateway_that_runs_keeps_its_session() -> Outcome {
    if !is_possible() {
        return Ok(());
    }
    let network = Network::new()?;
    let _far = network.start_far(&[])?;
    let control = network.path("near.sock");
    let control = ["--control", &control];
    let endpoint = Dumbbell::address(Dumbbell::RIGHT, false);
    let ways = [&["--socks5", "127.0.0.1:1080"], &control[..]].concat();
    let near = network.start_near(endpoint, &ways)?;
    // Without the control socket, as if run by another user.
    let output = check(&network, "near.key", &[])?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("a near gateway with this key") && stderr.contains("ctl status"),
        "{stderr}"
    );
    let mut other = network.launch_near(endpoint, &["--socks5", "127.0.0.1:1081"])?;
    other.wait_for("another near gateway with the key of this one")?;
    drop(other);
    near.stop()?;
    assert!(check(&network, "near.key", &[])?.status.success());
    Ok(())
}
