//! Changes by `--set`, and its errors.

use super::*;

#[test]
fn settings_take_the_place_of_what_the_file_says() {
    let scenario = read_with(
        SMALL,
        &[
            "duration=60s",
            "seed = 7",
            "flow.0.congestion=cubic",
            "flow.0.congestion=fixed:7",
            "flow.0.sack=false",
            "flow.0.name='5'",
            "bottleneck.back=rate 1mbit delay 5ms",
            "access.forth=\"delay 1ms\"",
            "flow.0.bulk.size=3MB",
        ],
    )
    .unwrap();
    assert_eq!((scenario.duration, scenario.seed), (Duration::from_secs(60), 7));
    let flow = &scenario.flows[0];
    assert_eq!(flow.sender.to_string(), "rack/fixed:7");
    assert_eq!((flow.sack, flow.name.as_str(), flow.count), (false, "5", 2));
    assert_eq!(flow.app, App::Bulk { size: Some(ByteCount(3_000_000)) });
    let Topology::Dumbbell { access, bottleneck } = &scenario.topology else {
        panic!("that is a dumbbell")
    };
    assert_eq!(bottleneck.back, spec("rate 1mbit delay 5ms"));
    assert_eq!(access.forth, spec("delay 1ms"));
}

#[test]
fn a_setting_that_leads_nowhere_says_what_is_there() {
    assert_eq!(
        set_error(&["flow.0.sack=true", "flow.0.congestin=reno"]).split(", expected").next(),
        Some("`flow.0.congestin=reno`: unknown field `congestin`")
    );
    assert!(
        set_error(&["flwo.0.sack=true"]).contains("unknown field `flwo`, expected one of `name`")
    );
    assert_eq!(
        set_error(&["flow.1.congestion=reno"]),
        "`flow.1.congestion=reno`: `flow.1` does not exist: the only element is `flow.0`"
    );
    assert_eq!(
        set_error(&["flow.sack=true"]),
        "`flow.sack=true`: `flow.sack` does not exist: the only element is `flow.0`"
    );
    assert_eq!(
        set_error(&["duration.x=1"]),
        "`duration.x=1`: `duration` has no keys: it is a string"
    );
    assert_eq!(
        set_error(&["bottleneck.forth=rate 10mbps"]),
        "`bottleneck.forth=rate 10mbps`: `10mbps`: expected a rate with its unit (gbit, mbit, kbit or bit), such as `10mbit`"
    );
    assert_eq!(
        set_error(&["warm_up=5s"]),
        "`warm_up=5s`: the warm-up must be shorter than the duration, 2s"
    );
    assert!(set_error(&["duration=60"]).contains("invalid type: integer `60`, expected a time"));
    assert!(set_error(&["flow.0=x"]).contains("expected a table: `[[flow]]`"));
    assert!(set_error(&["bottleneck=3"]).contains("or a table with `forth`"));
    assert!(
        set_error(&["bottleneck=weak-5g"])
            .starts_with("`bottleneck=weak-5g`: `weak-5g`: expected a link (edge, ")
    );
}

fn bottleneck(text: &str, settings: &[&str]) -> crate::Wire {
    match read_with(text, settings).unwrap().topology {
        Topology::Dumbbell { bottleneck, .. } | Topology::Wireless { bottleneck, .. } => bottleneck,
        Topology::Chain { wires } => wires[0].clone(),
    }
}

#[test]
fn one_text_is_a_link_both_ways() {
    let (forth, back) = named::find("weak-4g").unwrap().specs();
    let named = crate::Wire { forth, back };
    for settings in [
        &["bottleneck=weak-4g"][..],
        &["bottleneck.forth=weak-4g", "bottleneck.back=weak-4g"],
        &["bottleneck.back=delay 1ms", "bottleneck=weak-4g"],
    ] {
        assert_eq!(bottleneck(EXAMPLE, settings), named, "{settings:?}");
    }
    assert_eq!(bottleneck("bottleneck = \"weak-4g\"\n[[flow]]", &[]), named);
    assert_eq!(bottleneck("wire = [\"weak-4g\"]\n[[flow]]", &[]), named);
    assert_eq!(bottleneck("[[wire]]\nforth = \"edge\"\n[[flow]]", &["wire.0=weak-4g"]), named);
    let both = crate::Wire::both(spec("rate 1mbit delay 5ms"));
    assert_eq!(bottleneck(EXAMPLE, &["bottleneck=rate 1mbit delay 5ms"]), both);
    let lossy = bottleneck("bottleneck = \"lte loss 1%\"\n[[flow]]", &[]);
    let (down, up) = airtcp_link::parse_pair("lte loss 1%").unwrap();
    assert_eq!(lossy, crate::Wire { forth: down, back: up });
    let twice = error("bottleneck = \"lte rate 1mbit\"\n[[flow]]");
    assert!(
        twice.starts_with("s.toml:1:19: `rate`: expected a part that the named link does not have")
    );
}

#[test]
fn a_name_for_one_way_alone_is_refused_where_the_other_would_stay() {
    let error = read_with(EXAMPLE, &["bottleneck.forth=weak-4g"]).unwrap_err();
    assert_eq!(
        one_line(error),
        "`bottleneck.forth=weak-4g`: `bottleneck.back` would keep the value of the file: write `bottleneck=weak-4g` for \
         both directions of weak-4g, or set `bottleneck.back`, too"
    );
    // Without `back` in the file no value stays, and a description for one direction is accepted.
    assert_eq!(
        bottleneck(SMALL, &["bottleneck.forth=lte"]),
        bottleneck(SMALL, &["bottleneck=lte"])
    );
    assert_eq!(
        bottleneck(EXAMPLE, &["bottleneck.forth=delay 9ms"]).back,
        spec("rate 10mbit delay 10ms")
    );
}

#[test]
fn strategies_that_are_set_take_the_place_of_all_parts() {
    let set = |settings: &[&str]| {
        read_with(EXAMPLE, settings).map(|scenario| scenario.flows[0].sender.to_string())
    };
    assert_eq!(set(&["flow.0.strategies=rack/cubic/hack"]), Ok("rack/cubic/hack".to_owned()));
    let error = set(&["flow.0.strategies=rack/cubic", "flow.0.congestion=reno"]).unwrap_err();
    assert!(one_line(error).contains("--set flow.0.strategies=rack/reno"));
}

#[test]
fn detection_and_congestion_have_another_name() {
    let of =
        |text: &str, settings: &[&str]| read_with(text, settings).unwrap().flows[0].clone().sender;
    for (name, other, value, sender) in
        [("detection", "recovery", "le", "le/"), ("congestion", "control", "vegas", "/vegas")]
    {
        let text = EXAMPLE.replace(&format!("{name} = "), &format!("{other} = "));
        assert!(text != EXAMPLE);
        assert_eq!(of(&text, &[]), of(EXAMPLE, &[]));
        for key in [name, other] {
            let setting = &*format!("flow.0.{key}={value}");
            let changed = of(EXAMPLE, &[setting]);
            assert_eq!(of(&text, &[setting]), changed, "{setting}");
            assert!(changed.to_string().contains(sender), "{setting}: {changed}");
        }
        let whole = of(&text, &["flow.0.strategies=rack/cubic"]);
        assert_eq!(whole.to_string(), "rack/cubic", "{other}");
    }
}

#[test]
fn a_setting_is_a_path_and_a_value() {
    for bad in ["duration", "=5", "a..b=1", ".a=1", ""] {
        let error = bad.parse::<Setting>().unwrap_err().to_string();
        assert!(error.contains("flow.0.congestion=reno"), "{error}");
    }
    assert_eq!("a.b=c=d".parse::<Setting>().unwrap().to_string(), "a.b=c=d");
}
