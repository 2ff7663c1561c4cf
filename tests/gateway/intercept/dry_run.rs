//! `--intercept --dry-run`.

use super::*;

#[test]
fn a_dry_run_shows_the_commands_and_changes_nothing() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let network = network()?;
    let before = state(network.near())?;
    let mut command = airtcp(&[
        "gateway",
        "near",
        "--key",
        &network.path("near.key"),
        "--peer",
        &network.public[1],
    ]);
    command.args(["--endpoint", &format!("{}:51820", endpoint()), "--intercept", "--dry-run"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = network.near().spawn_child(command)?.wait_with_output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(state(network.near())?, before);
    let commands = String::from_utf8(output.stdout)?;
    for line in commands.lines() {
        ip(network.near(), line.strip_prefix("ip ").ok_or("a command of ip")?)?;
    }
    let after = state(network.near())?;
    ip(network.near(), "link delete airtcp0")?;
    ip(network.near(), "route flush table 51877")?;
    ip(network.near(), "-6 route flush table 51877")?;
    ip(network.near(), "rule flush protocol 177")?;
    ip(network.near(), "-6 rule flush protocol 177")?;
    assert_eq!(state(network.near())?, before);
    let _far = network.start_far(&[])?;
    let _near = network.start_near(endpoint(), &["--intercept"])?;
    assert_eq!(without_numbers(&state(network.near())?), without_numbers(&after));
    Ok(())
}

/// Removes the numbers of interfaces, and entries that the kernel adds to a device only while a
/// process holds it: link-local addresses, and routes to IPv6 addresses.
fn without_numbers(state: &str) -> String {
    let added = ["fe80", "ff00::/8", "fd41"];
    let lines = state.lines().filter(|line| !added.iter().any(|word| line.contains(word)));
    let lines = lines.map(|line| {
        let words = line.split_whitespace().filter(|word| *word != "linkdown");
        let words = words.skip_while(|word| word.ends_with(':') && word.len() < 4);
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}
