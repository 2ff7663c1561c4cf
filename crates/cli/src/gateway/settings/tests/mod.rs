use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use airtcp_gateway::datagram::Filtering;
use airtcp_tunnel::PrivateKey;
use clap::Parser;
use serde::de::DeserializeOwned;

mod mistakes;
mod split;

use super::*;
use crate::args::parse;
use crate::example;
use crate::gateway::peer::{KeyPeer, PeerSpec};
use crate::settings::Merge;

fn key() -> String {
    PrivateKey::generate().public_key().to_string()
}

fn file<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    settings::read(file.path())
}

#[derive(Parser)]
struct FarLine {
    #[command(flatten)]
    settings: FarSettings,
}

#[derive(Parser)]
struct NearLine {
    #[command(flatten)]
    settings: NearSettings,
}

fn far(line: &str) -> FarSettings {
    FarLine::try_parse_from(format!("far {line}").split_whitespace()).unwrap().settings
}

fn near(line: &str) -> NearSettings {
    NearLine::try_parse_from(format!("near {line}").split_whitespace()).unwrap().settings
}

fn why<T: std::fmt::Debug>(plan: Result<T, Mistake>) -> String {
    plan.unwrap_err().to_string()
}

fn in_tunnel(carrier: &FarCarrier) -> (Option<&str>, &[(KeyPeer, IpAddr)], u16, u16) {
    match carrier {
        FarCarrier::Wireguard { key, peers, listen_port, mtu } => {
            (key.to_str(), peers, *listen_port, *mtu)
        }
        FarCarrier::Tun { .. } => panic!("{carrier:?}"),
    }
}

#[test]
fn a_password_that_is_no_text_is_not_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("near.toml");
    std::fs::write(&path, "login = alice:secret\n").unwrap();
    let error = crate::settings::read::<NearSettings>(&path).unwrap_err().to_string();
    assert!(error.contains("near.toml") && !error.contains("secret"), "{error}");
}

#[test]
fn a_far_gateways_file_has_the_keys_of_its_flags() {
    let (one, two) = (key(), key());
    let text = format!(
        r#"
        key = "far.key"
        peers = ["{one}", "{two},address=10.9.0.7,preshared-key=two.psk"]
        listen-port = 4500
        address = "10.9.0.1/16"
        allow = ["127.0.0.1:8080"]
        deny = ["10.0.0.0/8"]
        permit-listen = ["127.0.0.1:8000-8999"]
        udp-filtering = "address-dependent"
        redundancy = 10
        strategies = "rack/cubic"
        mtu = 1300
        metrics = "127.0.0.1:9466"
        live = "[::1]:8080"
        json = true
        "#
    );
    let plan = file::<FarSettings>(&text).unwrap().plan().unwrap();
    let (key, known, listen_port, mtu) = in_tunnel(&plan.carrier);
    assert_eq!((key, listen_port, mtu), (Some("far.key"), 4500, 1300));
    assert_eq!(plan.far.listen, "10.9.0.1:7077".parse().unwrap());
    assert_eq!(plan.strategies.unwrap().to_string(), "rack/cubic");
    let peers: Vec<_> = known.iter().map(|(peer, ip)| (peer.key.to_string(), *ip)).collect();
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(peers, [(one, address("10.9.0.2")), (two, address("10.9.0.7"))]);
    assert_eq!(known[1].0.preshared_key.as_deref(), Some("two.psk".as_ref()));
    let allows = |to: &str| plan.far.rules.allow(to.parse().unwrap());
    assert!(allows("127.0.0.1:8080") && !allows("127.0.0.1:80") && !allows("10.1.1.1:8080"));
    assert_eq!(plan.far.permit_listen[0].to_string(), "127.0.0.1/32:8000-8999");
    assert_eq!(plan.udp_filtering, Some(Filtering::AddressDependent));
    let Outlets { metrics, live, json, .. } = plan.outlets;
    assert!(json && metrics.is_some() && plan.redundancy == Some(10));
    assert_eq!(live, Some("[::1]:8080".parse().unwrap()));
}

#[test]
fn a_near_gateways_file_has_the_keys_of_its_flags() {
    let text = format!(
        r#"
        key = "near.key"
        peer = "{},address=10.9.0.1"
        endpoint = "gateway.example:51820"
        address = "10.9.0.3/16"
        socks5 = "127.0.0.1:1080"
        http-connect = "[::1]:8080"
        login = "alice:secret"
        forwards = ["2222:[fd00::7]:22", "*:80:intranet:80"]
        remote-forwards = ["8000:localhost:80"]
        clients = 10
        hold = 30
        redundancy = 0
        strategies = "le/westwood/dcr:timer"
        mtu = 1300
        metrics = "127.0.0.1:9466"
        live = "[::1]:8080"
        json = true
        "#,
        key()
    );
    let plan = file::<NearSettings>(&text).unwrap().plan().unwrap();
    let NearCarrier::Wireguard { key, endpoint, mtu, .. } = &plan.carrier else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (key.to_str(), endpoint.to_string()),
        (Some("near.key"), "gateway.example:51820".to_owned())
    );
    assert_eq!((plan.clients, *mtu), (10, Some(1300)));
    assert_eq!(
        (plan.address.to_string(), plan.far.to_string()),
        ("10.9.0.3/16".to_owned(), "10.9.0.1".to_owned())
    );
    assert_eq!((plan.socks5.unwrap().port(), plan.http_connect.unwrap().port()), (1080, 8080));
    assert_eq!(plan.login, Some("alice:secret".parse().unwrap()));
    assert!(!format!("{:?}", plan.login).contains("secret"));
    assert_eq!(plan.forwards[0].to_string(), "2222:[fd00::7]:22");
    assert_eq!(plan.remote_forwards[0].to_string(), "8000:localhost:80");
    assert_eq!(plan.forwards.len(), 2);
    assert_eq!((plan.hold, plan.redundancy), (Some(Duration::from_secs(30)), Some(0)));
    let Outlets { metrics, live, json, .. } = plan.outlets;
    assert!(json && metrics.is_some());
    assert_eq!(live, Some("[::1]:8080".parse().unwrap()));
}

#[test]
fn two_flags_and_a_key_are_enough_and_a_flag_goes_before_the_file() {
    let key = key();
    let plan = far(&format!("--key a --peer {key}")).plan().unwrap();
    let (_, known, listen_port, mtu) = in_tunnel(&plan.carrier);
    assert_eq!((listen_port, mtu), (51_820, 1440));
    assert_eq!(
        (plan.address.to_string(), known[0].1.to_string()),
        ("10.77.0.1/24".to_owned(), "10.77.0.2".to_owned())
    );
    let line = format!("--key a --peer {key} --endpoint h:1 --socks5 127.0.0.1:1");
    let plan = near(&line).plan().unwrap();
    assert_eq!(
        (plan.address.to_string(), plan.far.to_string()),
        ("10.77.0.2/24".to_owned(), "10.77.0.1".to_owned())
    );
    let kept = file("http-connect = \"127.0.0.1:2\"\nsocks5 = \"127.0.0.1:3\"").unwrap();
    let plan = near(&line).or(kept).plan().unwrap();
    assert_eq!((plan.socks5.unwrap().port(), plan.http_connect.unwrap().port()), (1, 2));
    let kept = file("listen-port = 7\nmtu = 1300").unwrap();
    let plan = far(&format!("--key a --peer {key} --mtu 1400")).or(kept).plan().unwrap();
    let (_, _, listen_port, mtu) = in_tunnel(&plan.carrier);
    assert_eq!((listen_port, mtu), (7, 1400));
}

#[test]
fn a_plain_carrier_names_peers_by_address_and_is_refused_unless_it_is_accepted() {
    let text = r#"
        carrier = "tun:tun7"
        insecure-carrier = true
        peers = ["10.9.0.2", "10.9.0.7"]
        address = "10.9.0.1/16"
        strategies = "le/westwood/hack"
        mtu = 1300
        "#;
    let plan = file::<FarSettings>(text).unwrap().plan().unwrap();
    let FarCarrier::Tun { plain, peers } = &plan.carrier else { panic!("{plan:?}") };
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(peers[..], [address("10.9.0.2"), address("10.9.0.7")]);
    assert_eq!((plain.device.as_str(), plain.mtu, plain.address), ("tun7", 1300, plan.address));
    let tun = "--carrier tun --insecure-carrier";
    let plan = near(&format!("{tun} --peer 10.77.0.1 -L 80:a:80 --dry-run")).plan().unwrap();
    let NearCarrier::Tun(plain) = &plan.carrier else { panic!("{plan:?}") };
    assert_eq!(
        (plain.device.as_str(), plain.mtu, plan.far),
        ("airtcp-near", 1500, address("10.77.0.1"))
    );

    let key = key();
    for (line, words) in [
        ("--carrier tun --peer 10.77.0.2".to_owned(), "type --insecure-carrier as well"),
        (format!("--insecure-carrier --key a --peer {key}"), "has no effect without --carrier tun"),
        (format!("{tun} --key a --peer 10.77.0.2"), "--key is for WireGuard"),
        (format!("{tun} --listen-port 9 --peer 10.77.0.2"), "--listen-port is for WireGuard"),
        (format!("{tun} --peer {key}"), "write the address of the other gateway alone"),
        ("--key a --peer 10.77.0.2".to_owned(), "write KEY,address=10.77.0.2"),
        (tun.to_owned(), "for example: airtcp gateway far --carrier tun --insecure-carrier"),
        (format!("{tun} --peer 10.77.0.1"), "not another address in the network"),
        (format!("{tun} --peer 10.78.0.2"), "not another address in the network"),
        (format!("{tun} --peer 10.77.0.2 --peer 10.77.0.2"), "is given twice"),
    ] {
        let why = why(far(&line).plan());
        assert!(why.contains(words), "{line}: {why}");
    }
    for (line, words) in [
        ("--carrier tun --peer 10.77.0.1".to_owned(), "type --insecure-carrier as well"),
        (format!("{tun} --endpoint h:1 --peer 10.77.0.1"), "--endpoint is for WireGuard"),
        (tun.to_owned(), "for example: airtcp gateway near --carrier tun --insecure-carrier"),
        (format!("{tun} --peer 10.77.0.2"), "is not another one in the network"),
        ("--key a --peer 10.77.0.1 --endpoint h:1".to_owned(), "write KEY,address=10.77.0.1"),
    ] {
        let why = why(near(&format!("{line} -L 80:a:80")).plan());
        assert!(why.contains(words), "{line}: {why}");
    }
    for example in [example::NEAR_TUN, example::FAR_TUN] {
        parse(example.split(' ')).unwrap();
    }
}

/// `text` with the settings in comments in force: `# mtu = 1500` becomes `mtu = 1500`.
fn uncommented(text: &str) -> String {
    let is_key = |key: &str| key.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase());
    let is_setting = |line: &&str| line.split_once(" = ").is_some_and(|(key, _)| is_key(key));
    let lines = text.lines().map(|line| line.strip_prefix("# ").filter(is_setting).unwrap_or(line));
    let settings = lines.collect::<Vec<_>>().join("\n");
    assert!(settings.contains("\nmtu = 1500\n"), "{settings}");
    settings
}

/// The command lines and files of the project's own units are valid, once the keys are filled in.
#[test]
fn the_units_commands_and_their_files_are_understood() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/");
    let read = |name: &str| std::fs::read_to_string(format!("{root}{name}")).unwrap();
    for side in ["near", "far", "split"] {
        let unit = read(&format!("airtcp-gateway-{side}.service"));
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        assert!(line.contains(&format!(" --config /etc/airtcp/gateway-{side}.toml")), "{line}");
        parse(line.split(' ')).unwrap();
        let has_key = line.ends_with(" --key %d/key") && unit.contains("LoadCredential=key:");
        assert_eq!(has_key, side != "split", "{unit}");
        let text = read(&format!("gateway-{side}.toml")).replace("PUBLIC_KEY", &key());
        let text = text.replace("# key = ", "key = ");
        match side {
            "near" => drop(file::<NearSettings>(&text).unwrap().plan().unwrap()),
            "far" => drop(file::<FarSettings>(&text).unwrap().plan().unwrap()),
            _ => drop(file::<SplitSettings>(&uncommented(&text)).unwrap().plan().unwrap()),
        }
    }
}
