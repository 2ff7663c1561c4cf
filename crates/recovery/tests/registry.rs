//! A program that adds a strategy of its own to the registry. It is a separate process, because a
//! process has one registry.

use airtcp_recovery::registry::{self, Entry};
use airtcp_recovery::{
    AckView, Choice, Combination, CongestionControl, ControlState, Notice, Registry, RegistryError,
};
use airtcp_types::ByteCount;

#[derive(Debug)]
struct Constant(ByteCount);

impl CongestionControl for Constant {
    fn on_ack(&mut self, _: &AckView<'_>) {}

    fn on_notice(&mut self, _: &Notice) {}

    fn window(&self) -> ByteCount {
        self.0
    }

    fn state(&self) -> ControlState {
        ControlState { ssthresh: None, mode: "constant" }
    }
}

static CONSTANT: Entry<dyn CongestionControl> = Entry {
    name: "constant",
    summary: "the initial window, always",
    source: "this test",
    make: |parameter, params| match parameter {
        None => Ok(Box::new(Constant(params.initial_window))),
        Some(_) => Err("it takes no parameter".to_owned()),
    },
    ..Entry::BLANK
};

#[test]
fn an_added_strategy_is_listed_parsed_and_meant() {
    Registry::new().with_control(&CONSTANT).unwrap().install().unwrap();
    assert_eq!(registry::controls().last().unwrap().name, "constant");

    let combination: Combination = "sack/constant/hack".parse().unwrap();
    assert_eq!(combination.to_string(), "sack/constant/hack");
    assert_eq!(combination.control().entry().source, "this test");
    let all = Combination::all();
    assert_eq!(all.len(), registry::detections().len() * registry::controls().len());
    assert!(all.contains(&"rack/constant".parse().unwrap()));
    let parts = Combination::from_parts(Some("le"), Some("constant"), None).unwrap();
    assert_eq!(parts.control(), &Choice::plain(&CONSTANT).unwrap());

    let error = |text: &str| text.parse::<Combination>().unwrap_err().to_string();
    assert!(error("rack/constnat").ends_with("bbr3, constant; did you mean `constant`?"));
    assert!(error("constant").ends_with("it is a congestion control: write rack/constant"));
    assert!(error("rack/constant:7").contains("no parameter"));

    // The registry has been read, and does not change.
    assert_eq!(Registry::new().install(), Err(RegistryError::InUse));
    assert_eq!(registry::controls().last().unwrap().name, "constant");
}
