//! Tests against the kernel in a network namespace; `ip` shows the result.

use std::io::Read as _;
use std::process::{Command, Stdio};

use airtcp_device::TunFile;
use airtcp_testbed::{Namespace, or_skip, requirements};

use super::*;

mod left;

/// A namespace as it is before a gateway starts: a machine with a network and a default route.
fn machine() -> (Namespace, TunFile) {
    let namespace = Namespace::new().unwrap();
    let uplink = namespace.run(|| TunFile::open("up0")).unwrap();
    let own = ["192.0.2.2/24", "2001:db8::2/64"].map(|text| text.parse().unwrap());
    namespace.configure("up0", &own, None).unwrap();
    for (everything, router) in EVERYTHING.into_iter().zip(["192.0.2.1", "2001:db8::1"]) {
        namespace.add_route("up0", everything, Some(router.parse().unwrap())).unwrap();
    }
    (namespace, uplink)
}

/// Creates the device of a gateway in the namespace.
fn device(namespace: &Namespace) -> TunFile {
    let tun = namespace.run(|| TunFile::open("air0")).unwrap();
    let own = ["198.18.77.1/32", "fd41:6972:7463::1/128"].map(|text| text.parse().unwrap());
    namespace.configure("air0", &own, None).unwrap();
    tun
}

fn try_ip(namespace: &Namespace, words: &str) -> Result<String, String> {
    let mut command = Command::new("ip");
    command.args(words.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = namespace.spawn_child(command).expect("`ip` of iproute2");
    let (mut text, mut error) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    if child.wait().unwrap().success() { Ok(text) } else { Err(error) }
}

fn ip(namespace: &Namespace, words: &str) -> String {
    try_ip(namespace, words).unwrap_or_else(|error| panic!("ip {words}: {error}"))
}

/// The state that a gateway could have changed. Link-local addresses are random, so left out.
fn state(namespace: &Namespace) -> String {
    let shown = ["-4 rule", "-6 rule", "-4 route show table all", "-6 route show table all"];
    let shown = shown.map(|words| ip(namespace, words)).join("\n");
    let lines = shown.lines().filter(|line| !line.contains("fe80::") && !line.contains("ff00::"));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    for interface in namespace.interfaces().unwrap() {
        let own = interface.addresses.iter().map(ToString::to_string);
        let own: Vec<_> = own.filter(|own| !own.starts_with("fe80::")).collect();
        lines.push(format!("{} {} {own:?}", interface.name, interface.is_up));
    }
    lines.join("\n")
}

fn networks(texts: &[&str]) -> Vec<Cidr> {
    texts.iter().map(|text| network(text).unwrap()).collect()
}

fn everything_but(excluded: &[&str]) -> Routes {
    let endpoints = ["[::ffff:203.0.113.9]:51820".parse().unwrap()];
    Routes::new("air0", &EVERYTHING, &networks(excluded), &endpoints, Ipv6::On).unwrap()
}

fn add(namespace: &Namespace, routes: &Routes) -> anyhow::Result<()> {
    let routes = routes.clone();
    namespace.block_on(async move { routes.add().await })
}

fn way(namespace: &Namespace, to: &str) -> String {
    let text = try_ip(namespace, &format!("route get {to}")).unwrap_or_else(|error| error);
    let mut words = text.split_whitespace();
    match words.find(|word| *word == "dev") {
        Some(_) => words.next().unwrap().to_owned(),
        None => text.trim().to_owned(),
    }
}

#[test]
fn a_network_is_read_without_its_host_bits_and_an_address_is_one() {
    let read = |text: &str| network(text).map(|cidr| cidr.to_string());
    assert_eq!(read("10.1.2.3/8").as_deref(), Ok("10.0.0.0/8"));
    assert_eq!(read("0.0.0.0/0").as_deref(), Ok("0.0.0.0/0"));
    assert_eq!(read("10.1.2.3").as_deref(), Ok("10.1.2.3/32"));
    assert_eq!(read("2001:db8::7/32").as_deref(), Ok("2001:db8::/32"));
    assert_eq!(read("::1").as_deref(), Ok("::1/128"));
    for nonsense in ["", "10.0.0.0/33", "::/129", "example.org", "10.0.0.0:80"] {
        assert!(read(nonsense).unwrap_err().contains("for example 10.0.0.0/8"), "{nonsense}");
    }
}

#[test]
fn more_networks_than_there_are_priorities_for_are_refused() {
    let network = |last| Cidr { address: Ipv4Addr::new(10, 0, 0, last).into(), prefix: 32 };
    let routes = |count: usize| {
        let networks: Vec<_> = (0..=255).map(network).take(count).collect();
        Routes::new("air0", &networks, &[], &[], Ipv6::On)
    };
    assert!(routes(MOST).unwrap().rules.iter().all(|rule| rule.priority <= LAST));
    assert!(routes(MOST + 1).unwrap_err().to_string().contains("at most 40 networks"));
}

#[test]
fn everything_goes_into_the_device_but_the_tunnel_what_is_excluded_and_the_machines_own_networks() {
    if or_skip(requirements()).is_none() {
        return;
    }
    let (namespace, _uplink) = machine();
    let _tun = device(&namespace);
    add(&namespace, &everything_but(&["198.51.100.0/24", "2001:db8:5::/48"])).unwrap();
    for (to, device) in [
        ("1.1.1.1", "air0"),
        ("2001:db8:1::1", "air0"),
        // On the machine's network, and its router.
        ("192.0.2.77", "up0"),
        ("2001:db8::1", "up0"),
        ("127.0.0.1", "lo"),
        ("::1", "lo"),
        // Excluded.
        ("198.51.100.7", "up0"),
        ("2001:db8:5::7", "up0"),
        ("239.1.2.3", "up0"),
        // The tunnel, and other packets to the far gateway.
        ("1.1.1.1 mark 51877", "up0"),
        ("2001:db8:1::1 mark 51877", "up0"),
        ("203.0.113.9 ipproto udp dport 51820", "up0"),
        ("203.0.113.9 ipproto udp dport 53", "air0"),
        ("203.0.113.9 ipproto tcp dport 51820", "air0"),
    ] {
        assert_eq!(way(&namespace, to), device, "{to}");
    }
}

#[test]
fn only_some_networks_go_into_the_device_if_they_are_named() {
    if or_skip(requirements()).is_none() {
        return;
    }
    let (namespace, _uplink) = machine();
    let _tun = device(&namespace);
    namespace.add_route("up0", "10.0.0.0/8".parse().unwrap(), None).unwrap();
    namespace.add_route("up0", "10.1.2.0/24".parse().unwrap(), None).unwrap();
    let named = networks(&["10.1.0.0/16", "10.0.0.0/12", "2001:db8:1::/48"]);
    let excluded = networks(&["10.1.3.0/24"]);
    let routes = Routes::new("air0", &named, &excluded, &[], Ipv6::On).unwrap();
    add(&namespace, &routes).unwrap();
    for (to, device) in [
        // Named, where the machine has a shorter route, and where it has a longer one.
        ("10.1.0.1", "air0"),
        ("10.2.0.1", "air0"),
        ("10.1.2.1", "up0"),
        ("10.1.3.1", "up0"),
        ("2001:db8:1::1", "air0"),
        // Not named.
        ("10.200.0.1", "up0"),
        ("1.1.1.1", "up0"),
        ("2001:db8:2::1", "up0"),
    ] {
        assert_eq!(way(&namespace, to), device, "{to}");
    }
}

#[test]
fn the_commands_that_are_shown_do_the_same() {
    if or_skip(requirements()).is_none() {
        return;
    }
    let networks = networks(&["0.0.0.0/0", "10.1.0.0/16", "::/0"]);
    let excluded = super::tests::networks(&["198.51.100.0/24", "2001:db8:5::/48"]);
    let endpoints =
        ["203.0.113.9:51820".parse().unwrap(), "[2001:db8:9::9]:51820".parse().unwrap()];
    for ipv6 in [Ipv6::On, Ipv6::Blocked, Ipv6::Absent] {
        let routes = Routes::new("air0", &networks, &excluded, &endpoints, ipv6).unwrap();
        let [ours, theirs] = [true, false].map(|by_us| {
            let (namespace, _uplink) = machine();
            let _tun = device(&namespace);
            if by_us {
                add(&namespace, &routes).unwrap();
            } else {
                for line in routes.commands() {
                    ip(&namespace, line.strip_prefix("ip ").unwrap());
                }
            }
            state(&namespace)
        });
        assert_eq!(ours, theirs);
    }
}

#[test]
fn ipv6_that_is_switched_off_is_not_carried_and_does_not_go_around() {
    if or_skip(requirements()).is_none() {
        return;
    }
    let (namespace, _uplink) = machine();
    assert_eq!(namespace.run(Ipv6::of_this_machine), Ipv6::On);
    namespace.set_sysctl("net.ipv6.conf.default.disable_ipv6", "1").unwrap();
    assert_eq!(namespace.run(Ipv6::of_this_machine), Ipv6::Blocked);
    let _tun = namespace.run(|| TunFile::open("air0")).unwrap();
    let own = ["198.18.77.1/32"].map(|text| text.parse().unwrap());
    namespace.configure("air0", &own, None).unwrap();
    let routes = Routes::new("air0", &EVERYTHING, &[], &[], Ipv6::Blocked).unwrap();
    add(&namespace, &routes).unwrap();
    assert_eq!(way(&namespace, "1.1.1.1"), "air0");
    assert_eq!(way(&namespace, "2001:db8::77"), "up0");
    assert!(way(&namespace, "2001:db8:1::1").contains("No route to host"));
    namespace.block_on(remove()).unwrap();
    namespace.set_sysctl("net.ipv6.conf.all.disable_ipv6", "1").unwrap();
    assert_eq!(namespace.run(Ipv6::of_this_machine), Ipv6::Absent);
    add(&namespace, &Routes::new("air0", &EVERYTHING, &[], &[], Ipv6::Absent).unwrap()).unwrap();
    assert_eq!(ip(&namespace, "-6 rule").lines().count(), 2);
    namespace.block_on(remove()).unwrap();
    // One device has IPv6 all the same.
    namespace.set_sysctl("net.ipv6.conf.up0.disable_ipv6", "0").unwrap();
    namespace.configure("up0", &["2001:db8::2/64".parse().unwrap()], None).unwrap();
    namespace.add_route("up0", EVERYTHING[1], Some("2001:db8::1".parse().unwrap())).unwrap();
    assert_eq!(namespace.run(Ipv6::of_this_machine), Ipv6::Blocked);
    add(&namespace, &routes).unwrap();
    assert!(way(&namespace, "2001:db8:1::1").contains("No route to host"));
}
