use super::*;
use crate::registry::{controls, detections};

#[test]
fn one_part_is_exchanged_and_the_others_stay() {
    let combination: Combination = "le/westwood/dcr:timer".parse().unwrap();
    let with = |detection, control, judge| {
        combination.with_parts(detection, control, judge).unwrap().to_string()
    };
    assert_eq!(with(Some("sack"), None, None), "sack/westwood/dcr:timer");
    assert_eq!(with(None, Some("fixed:4"), None), "le/fixed:4/dcr:timer");
    assert_eq!(with(None, None, Some("rr:3+hack")), "le/westwood/hack+rr:3");
    assert_eq!(with(None, None, Some("")), "le/westwood");
    assert!(combination.with_parts(None, None, Some("hack+hack")).is_err());
}

#[test]
fn the_judge_of_the_default_goes_with_its_control() {
    let parts = |detection, control, judge| {
        Combination::from_parts(detection, control, judge).unwrap().to_string()
    };
    assert_eq!(parts(None, None, None), "rack/bbr3/spike");
    assert_eq!(parts(Some("le"), None, None), "le/bbr3/spike");
    assert_eq!(parts(None, Some("cubic"), None), "rack/cubic");
    assert_eq!(parts(None, Some("bbr3"), None), "rack/bbr3");
    assert_eq!(parts(None, None, Some("hack")), "rack/bbr3/hack");
    assert_eq!(parts(None, None, Some("")), "rack/bbr3");
    for empty in [(Some(""), None), (None, Some(" "))] {
        let error = Combination::from_parts(empty.0, empty.1, None).unwrap_err().to_string();
        assert!(error.contains(" ``: use one of "), "{error}");
    }
    let cubic = Choice::plain(&crate::control::CUBIC).unwrap();
    let with_cubic =
        |text: &str| text.parse::<Combination>().unwrap().with_control(cubic.clone()).to_string();
    assert_eq!(with_cubic("le/bbr3/spike"), "le/cubic");
    assert_eq!(with_cubic("le/reno/spike"), "le/cubic/spike");
    let mut combination = Combination::default();
    let mut exchange = |detection, control| {
        combination = combination.with_parts(detection, control, None).unwrap();
        combination.to_string()
    };
    assert_eq!(exchange(Some("le"), None), "le/bbr3/spike");
    assert_eq!(exchange(None, Some("bbr3")), "le/bbr3/spike");
    assert_eq!(exchange(None, Some("cubic")), "le/cubic");
    assert_eq!(exchange(None, Some("bbr3")), "le/bbr3");
}

#[test]
fn what_is_written_is_what_is_shown() {
    for text in ["sack/cubic", "newreno:slow/fixed:7", "reno/reno"] {
        assert_eq!(text.parse::<Combination>().unwrap().to_string(), text);
    }
    assert_eq!("reno".parse::<Combination>().unwrap().to_string(), "reno/bbr3/spike");
}

#[test]
fn errors_name_the_value_and_what_is_allowed() {
    let error = |text: &str| text.parse::<Combination>().unwrap_err().to_string();
    assert_eq!(
        error("sack/illinois"),
        "no congestion control `illinois`: use one of reno, cubic[:rfc], fixed:N, westwood, westwood-plus, vegas, veno, bbr, bbr3"
    );
    for (text, name) in [
        ("sakc/reno", "sack"),
        ("rack/cubci:rfc", "cubic"),
        ("rack/bbr4", "bbr3"),
        ("rack/reno/hakc", "hack"),
        ("Rack/Bbr3", "rack"),
        ("rack/Bbr3", "bbr3"),
        ("RACK", "rack"),
    ] {
        let error = error(text);
        assert!(error.ends_with(&format!("; did you mean `{name}`?")), "{error}");
    }
    assert_eq!(
        error("cubic"),
        "no detection `cubic`: it is a congestion control: write rack/cubic"
    );
    assert_eq!(error("BBR3"), "no detection `BBR3`: it is a congestion control: write rack/bbr3");
    for (text, kind, name, written) in [
        ("spike", "detection", "spike", "rack/bbr3/spike"),
        ("rack/spike", "congestion control", "spike", "rack/bbr3/spike"),
        ("le/rr", "congestion control", "rr", "le/bbr3/rr"),
        ("sack/dcr:timer:2/reno", "congestion control", "dcr:timer:2", "sack/reno/dcr:timer:2"),
        ("sack/rr/fixed:32", "congestion control", "rr", "sack/fixed:32/rr"),
        ("sack/rr/hack", "congestion control", "rr", "sack/bbr3/rr"),
    ] {
        assert_eq!(error(text), format!("no {kind} `{name}`: it is a judge: write {written}"));
        assert!(written.parse::<Combination>().is_ok(), "{written}");
    }
    assert!(error("rakc/rr").starts_with("no detection `rakc`: use one of "));
    assert!(error("cubic/reno").starts_with("no detection `cubic`: use one of reno, "));
    assert!(error("sack/fixed").contains("as in `fixed:32`"));
    assert!(error("sack/fixed:0").contains("1 to 65535"));
    assert!(error("sack:3/reno").contains("no parameter"));
    for text in ["a/b/c/d", "", "/reno", "rack/", "rack//hack", "rack/cubic/"] {
        assert!(error(text).contains(&format!("`{text}` is not a combination")), "{text}");
    }
    assert!(
        error("sack/reno/dcr")
            .contains("no judge `dcr`: use one of hack, rr[:K], spike, dcr:timer")
    );
}

#[test]
fn judges_are_asked_by_rank_and_left_out_where_the_wire_lacks_what_they_need() {
    let combination: Combination = "sack/westwood+/dcr:timer+hack".parse().unwrap();
    assert_eq!(combination.to_string(), "sack/westwood-plus/hack+dcr:timer");
    assert!(combination.needs().hack && combination.needs().sack);
    let granted = WireNeeds { sack: true, ..WireNeeds::NONE };
    assert_eq!(combination.granted(granted).to_string(), "sack/westwood-plus/dcr:timer");
    let echo: Combination = "le:echo/cubic".parse().unwrap();
    assert_eq!(echo.granted(granted).to_string(), "le/cubic");
    assert_eq!(echo.granted(WireNeeds::NONE).to_string(), "newreno/cubic");
}

#[test]
fn a_judge_is_named_once() {
    for (text, first) in [
        ("hack+hack", "hack"),
        ("rr:2+hack+rr:3", "rr:2"),
        ("dcr:count+hack+dcr:timer", "dcr:timer"),
    ] {
        let error = format!("sack/reno/{text}").parse::<Combination>().unwrap_err();
        assert_eq!(error, CombinationError::Twice { first: first.to_owned() });
        let shown = error.to_string();
        assert!(shown.ends_with(&format!("as in `sack/cubic/{first}`")), "{shown}");
    }
}

#[test]
fn a_list_is_separated_by_commas() {
    let list = Combination::parse_list("sack/cubic, reno/reno").unwrap();
    assert_eq!(
        list.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["sack/cubic", "reno/reno"]
    );
}

#[test]
fn without_sack_the_detection_falls_back() {
    let combination: Combination = "sack/cubic".parse().unwrap();
    assert_eq!(combination.granted(WireNeeds::default()).to_string(), "newreno/cubic");
    let granted = WireNeeds { sack: true, ..WireNeeds::NONE };
    assert_eq!(combination.granted(granted), combination);
}

#[test]
fn all_combinations_parse_back() {
    let all = Combination::all();
    assert_eq!(all.len(), detections().len() * controls().len());
    for combination in all {
        assert_eq!(combination.to_string().parse::<Combination>().unwrap(), combination);
    }
}
