//! Settings of a gateway in the path.

use super::*;

#[derive(Parser)]
struct SplitLine {
    #[command(flatten)]
    settings: SplitSettings,
}

fn split(line: &str) -> SplitSettings {
    SplitLine::try_parse_from(format!("split {line}").split_whitespace()).unwrap().settings
}

#[test]
fn a_file_has_the_keys_of_the_flags_and_flags_go_before_it() {
    let text = r#"
        local-tun = "lan7"
        link-tun = "wan7"
        mtu = 1400
        strategies = "rack/cubic"
        local-strategies = "le/westwood"
        clients = 10
        control = "split.sock"
        metrics = "127.0.0.1:9466"
        json = true
        "#;
    let plan = file::<SplitSettings>(text).unwrap().plan().unwrap();
    assert_eq!((plan.local_tun.as_str(), plan.link_tun.as_str()), ("lan7", "wan7"));
    assert_eq!((plan.mtu, plan.clients, plan.json), (1400, 10, true));
    let strategies = [plan.strategies, plan.local_strategies].map(|one| one.unwrap().to_string());
    assert_eq!(strategies, ["rack/cubic", "le/westwood"]);
    assert_eq!(plan.control.as_deref(), Some("split.sock".as_ref()));
    assert_eq!(plan.metrics, Some("127.0.0.1:9466".parse().unwrap()));

    let line = "--link-tun wan8 --mtu 1300 --clients 11";
    let plan = split(line).or(file(text).unwrap()).plan().unwrap();
    assert_eq!((plan.local_tun.as_str(), plan.link_tun.as_str()), ("lan7", "wan8"));
    assert_eq!((plan.mtu, plan.clients), (1300, 11));

    let plan = split("").plan().unwrap();
    assert_eq!((plan.local_tun.as_str(), plan.link_tun.as_str()), ("split0", "split1"));
    assert_eq!((plan.mtu, plan.clients, plan.json), (1500, 4096, false));
    assert!(plan.strategies.is_none() && plan.local_strategies.is_none());
}

#[test]
fn each_side_has_a_device_and_no_sender_needs_damaged_packets() {
    for (line, words) in [
        ("--local-tun split1", "each side needs a device of its own"),
        ("--strategies le/westwood/hack", "omit the judge hack"),
        ("--local-strategies le/westwood/hack", "omit the judge hack"),
    ] {
        let why = why(split(line).plan());
        assert!(why.contains(words), "{line}: {why}");
    }
}

#[test]
fn a_wrong_value_is_reported_with_its_place() {
    let wrong = |text: &str| file::<SplitSettings>(text).unwrap_err().to_string();
    assert!(wrong("peer = \"a\"").contains(":1:1: unknown key `peer`"));
    assert!(wrong("\nmtu = 1279").contains("from 1280 to 65535; for example --mtu 1500"));
    assert!(wrong("clients = 0").contains("for example --clients 4096"));
    assert!(wrong("local-tun = \"a b\"").contains(":1:13: "));
    assert!(wrong("metrics = \"9466\"").contains("for example 127.0.0.1:1080"));
}
