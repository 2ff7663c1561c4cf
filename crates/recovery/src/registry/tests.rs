use std::collections::BTreeSet;

use super::*;
use crate::Combination;

/// Returns the text of each entry as a user would type it, after checks of the fields that are
/// listed.
fn listed<T: ?Sized>(entries: &[&'static Entry<T>], needs_fallback: bool) -> Vec<String> {
    for (index, entry) in entries.iter().enumerate() {
        assert_eq!(check("strategy", &entries[..index], entry, needs_fallback), Ok(()));
        assert!(Choice::new(entry, Some("nonsense")).is_err(), "{entry:?}");
    }
    let names: BTreeSet<_> = entries.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), entries.len(), "no name twice");
    entries.iter().map(|entry| Choice::plain(entry).unwrap().to_string()).collect()
}

#[test]
fn listed_names_are_parsed_and_no_others() {
    for detection in listed(detections(), true) {
        for control in listed(controls(), true) {
            let text = format!("{detection}/{control}");
            assert_eq!(text.parse::<Combination>().unwrap().to_string(), text);
        }
    }
    for judge in listed(judges(), false) {
        assert!(format!("sack/cubic/{judge}").parse::<Combination>().is_ok(), "{judge}");
    }
    let Err(error) = "sack/nothing".parse::<Combination>() else { panic!("it parses") };
    for control in controls() {
        let shown = format!("{}{}", control.name, control.parameter);
        assert!(error.to_string().contains(&shown), "{error}");
    }
}

#[test]
fn strategies_fall_back_on_those_that_need_less() {
    for detection in detections() {
        let combination = Combination::default().with_detection(Choice::plain(detection).unwrap());
        let granted = combination.granted(WireNeeds::NONE);
        assert_eq!(granted.detection().entry().needs, WireNeeds::NONE, "{detection:?}");
        assert_eq!(combination.granted(WireNeeds::ALL), combination, "{detection:?}");
    }
}

const OWN: Entry<dyn CongestionControl> =
    Entry { name: "own", summary: "as reno", source: "this test", ..control::RENO };

fn added(entry: Entry<dyn CongestionControl>) -> Result<Registry, RegistryError> {
    Registry::new().with_control(Box::leak(Box::new(entry)))
}

#[test]
fn an_added_strategy_is_the_last_of_its_kind() {
    let registry = added(OWN).unwrap();
    let names: Vec<_> = registry.controls().iter().map(|entry| entry.name).collect();
    assert_eq!(
        names.split_last(),
        Some((&"own", &*CONTROLS.iter().map(|e| e.name).collect::<Vec<_>>()))
    );
    static BY_ECHO: Entry<dyn LossDetection> =
        Entry { name: "own", fallback: Some("le:echo"), ..detection::LE_ECHO };
    static FIRST: Entry<dyn LossJudge> = Entry { name: "own", ..judge::HACK };
    // Each kind has its own names.
    let registry = registry.with_detection(&BY_ECHO).unwrap().with_judge(&FIRST).unwrap();
    assert_eq!(registry.detections().last().unwrap().name, "own");
    assert_eq!(registry.judges().last().unwrap().name, "own");
}

#[test]
fn a_name_that_cannot_be_typed_is_refused() {
    for name in ["", "Own", "o wn", "a/b", "a+b", "a,b", ":a", "a:", "a::b", "-a", "rrtp", "all:x"]
    {
        let error = added(Entry { name, ..OWN }).unwrap_err();
        assert_eq!(error, RegistryError::Name { kind: "control", name });
        assert!(error.to_string().starts_with(&format!("`{name}` cannot be the name")), "{error}");
    }
    for name in ["own:variant", "own-2", "3"] {
        assert!(added(Entry { name, ..OWN }).is_ok(), "{name}");
    }
}

#[test]
fn a_name_that_means_another_strategy_is_refused() {
    // The last two are a name with a parameter.
    for name in ["cubic", "fixed", "westwood-plus", "cubic:rfc", "fixed:7"] {
        let error = added(Entry { name, ..OWN }).unwrap_err();
        assert_eq!(error, RegistryError::Taken { kind: "control", name });
    }
    static OWN_TWICE: Entry<dyn CongestionControl> = OWN;
    let error = added(OWN).unwrap().with_control(&OWN_TWICE).unwrap_err();
    assert_eq!(error.to_string(), "a control `own` already exists: use another name");
}

#[test]
fn an_entry_that_does_not_describe_its_strategy_is_refused() {
    let sack = WireNeeds { sack: true, ..WireNeeds::NONE };
    for (entry, why) in [
        (Entry { summary: "", ..OWN }, "summary and source"),
        (Entry { source: "two\nlines", ..OWN }, "summary and source"),
        (Entry { parameter: ":N", ..OWN }, "`parameter` and `example`"),
        (Entry { parameter: ":N", example: Some("7"), ..OWN }, "does not accept the parameter `7`"),
        (Entry { fallback: Some("nothing"), ..OWN }, "fallback `nothing` is not"),
        (Entry { needs: sack, ..OWN }, "has no fallback"),
        (Entry { make: |_, _| Err("not today".to_owned()), ..OWN }, "not today"),
        (
            Entry { name: "own", summary: "as reno", source: "RFC 5681", ..Entry::BLANK },
            "has no `make`",
        ),
    ] {
        let error = added(entry).unwrap_err().to_string();
        assert!(error.starts_with("the control `own` cannot be registered: "), "{error}");
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_registry_that_was_read_stays() {
    let before = Registry::installed().controls().len();
    assert_eq!(added(OWN).unwrap().install(), Err(RegistryError::InUse));
    assert_eq!(Registry::installed().controls().len(), before);
}
