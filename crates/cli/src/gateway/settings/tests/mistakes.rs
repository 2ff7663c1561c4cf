//! Mistakes are explained, with their place and an example.

use super::*;

#[test]
fn missing_and_contradicting_keys_are_reported_with_an_example() {
    let key = key();
    let missing = why(far("--key a").plan());
    assert!(missing.contains("for example: airtcp gateway far --key far.key --peer"), "{missing}");
    let missing = why(near(&format!("--key a --peer {key}")).plan());
    assert!(missing.contains("--endpoint gateway.example:51820"), "{missing}");
    let idle = why(near(&format!("--key a --peer {key} --endpoint h:1")).plan());
    assert!(idle.contains("add --socks5 127.0.0.1:1080"), "{idle}");
    let login = format!("--key a --peer {key} --endpoint h:1 -L 80:a:80 --login a:b");
    assert!(why(near(&login).plan()).contains("--login has no effect without --socks5"));
    let line = format!("--key a --endpoint h:1 -L 80:a:80 --address 10.77.0.1/24 --peer {key}");
    let same = why(near(&line).plan());
    assert!(same.contains("far gateway's address 10.77.0.1 is not another"), "{same}");
    for (one, two) in
        [("80:a:80", "80:b:80"), ("80:a:80", "*:80:a:80"), ("[::]:80:a:80", "[::1]:80:a:80")]
    {
        let line = format!("--key a --endpoint h:1 --peer {key} -R 81:a:80 -R {one} -R {two}");
        let same = why(near(&line).plan());
        assert!(same.contains(&format!("-R {one} and -R {two} have the same port")), "{same}");
    }
    let apart = format!("--key a --endpoint h:1 --peer {key} -R 80:a:80 -R [::1]:80:a:80");
    near(&apart).plan().unwrap();
    let hack = why(far(&format!("--key a --peer {key} --strategies rack/cubic/hack")).plan());
    assert!(hack.contains("which WireGuard drops"), "{hack}");
    let twice = why(far(&format!("--key a --peer {key} --peer {key}")).plan());
    assert!(twice.contains("is given twice"), "{twice}");
    let other = self::key();
    let two = format!("--key a --peer {key} --peer {other},address=10.77.0.2");
    assert!(why(far(&two).plan()).contains("two peers have the address 10.77.0.2"));
    let outside = why(far(&format!("--key a --peer {key},address=10.78.0.2")).plan());
    assert!(outside.contains("no address of its own in the network"), "{outside}");
}

#[test]
fn a_key_of_interception_outside_of_its_table_is_reported_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.toml");
    let wrong = |text: &str, is_near: bool| {
        std::fs::write(&path, text).unwrap();
        match is_near {
            true => crate::gateway::of_near_file(Some(&path)).unwrap_err().to_string(),
            false => settings::read::<FarSettings>(&path).unwrap_err().to_string(),
        }
    };
    let route = "route = [\"10.0.0.0/8\"]";
    assert!(wrong(route, true).ends_with("; write `route` below a line [intercept]"));
    for (text, is_near) in [("routes = []", true), (route, false)] {
        let text = wrong(text, is_near);
        assert!(text.contains("unknown key") && !text.contains("below a line"), "{text}");
    }
}

#[test]
fn a_wrong_value_is_reported_with_its_place() {
    let wrong = |text: &str| file::<NearSettings>(text).unwrap_err().to_string();
    let misspelt = wrong("sock5 = \"127.0.0.1:1080\"");
    assert!(misspelt.contains(":1:1: unknown key `sock5`, expected one of "), "{misspelt}");
    assert!(misspelt.ends_with("; did you mean `socks5`?"), "{misspelt}");
    let below = wrong("[intercept]\nexlude = []");
    assert!(below.contains(":2:1: unknown key `exlude`"), "{below}");
    assert!(below.ends_with("; did you mean `exclude`?"), "{below}");
    assert!(wrong("\nsocks5 = 1080").contains(":2:10: "));
    let number = wrong("clients = \"many\"");
    assert!(number.contains("this is string \"many\", expected a whole number"), "{number}");
    assert!(wrong("intercept = true").contains("this is boolean `true`, expected a table"));
    let list = wrong("peer = [\"a\"]");
    assert!(list.contains("this is a list, expected a text in quotes"), "{list}");
    assert!(wrong("peer = \"abc\"").contains("public key that `airtcp gateway keygen"));
    assert!(wrong("endpoint = \"gateway.example\"").contains("has no port"));
    assert!(wrong("forwards = [\"80:80\"]").contains("for example 8080:intranet:80"));
    assert!(wrong("login = \"alice\"").contains("for example alice:secret"));
    assert!(wrong("endpoint = \"h:70000\"").contains("no port from 1 to 65535"));
    assert!(wrong("mtu = 10").contains("from 576 to 65535; for example --mtu 1400"));
    assert!(wrong("clients = 0").contains("for example --clients 4096"));
    for port in ["1080", "127.0.0.1:0", "127.0.0.1:70000"] {
        let text = wrong(&format!("socks5 = \"{port}\""));
        assert!(text.contains("a port from 1 to 65535; for example 127.0.0.1:1080"), "{text}");
    }
    assert!(wrong("redundancy = 101").contains("from 0 to 100; for example --redundancy 22"));
    let of_peer = |more: &str| format!("{},{more}", key()).parse::<PeerSpec>().unwrap_err();
    assert!(of_peer("address=here").contains("`here` is no address"));
    assert!(of_peer("psk=a").contains("`psk=a` is not understood"));
    let rule = file::<FarSettings>("allow = [\"all\"]").unwrap_err().to_string();
    assert!(rule.contains("\"all\" is not a rule"), "{rule}");
    let port = file::<FarSettings>("listen-port = 70000").unwrap_err().to_string();
    assert!(port.contains("a port from 1 to 65535; for example --listen-port 51820"), "{port}");
}
