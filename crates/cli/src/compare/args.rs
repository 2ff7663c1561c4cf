//! What `airtcp compare` takes.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use airtcp_recovery::registry::{CONTROLS, DETECTIONS, JUDGES};
use airtcp_recovery::{Choice, Combination};
use clap::Args;

use crate::value::{self, Combinations, LinkPair};

/// `airtcp compare`.
#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Words of `airtcp link --help`, or a link by name
    #[arg(value_name = "LINK", value_parser = value::link)]
    pub(super) link: LinkPair,
    /// Combinations with commas between them, or `all` [default: every detection with cubic and with reno, the
    /// other controls with the default detection, the judges with the default combination]
    #[arg(long, value_name = "A,B,C", value_parser = choice, default_value = "", hide_default_value = true)]
    pub(super) with: Combinations,
    /// How many seeds, counted from 1, each combination runs with
    #[arg(long, value_name = "N", default_value = "10", allow_negative_numbers = true, value_parser = value::seeds)]
    pub(super) seeds: u32,
    /// How long each run is, in virtual time; a fifth of it passes before bytes count
    #[arg(long, value_name = "SECONDS", default_value = "20", allow_negative_numbers = true, value_parser = value::seconds)]
    pub(super) seconds: Duration,
    /// How many flows of a combination share the link
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) flows: u32,
    /// How many threads run seeds; the results are the same [default: one for each core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::threads)]
    pub(super) threads: Option<NonZero<usize>>,
    /// Draw goodput over round-trip time into this file
    #[arg(long, value_name = "FILE.svg", value_parser = picture)]
    pub(super) picture: Option<PathBuf>,
    /// The results as JSON instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

fn choice(text: &str) -> Result<Combinations, String> {
    match text {
        "" => Ok(Combinations(usual())),
        "all" => Ok(Combinations([Combination::all(), Combination::all_judged()].concat())),
        text => value::combinations(text),
    }
}

fn picture(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_svg = path.extension().is_some_and(|extension| extension == "svg");
    is_svg.then_some(path).ok_or_else(|| {
        "a picture is a file whose name ends in .svg; for example --picture compare.svg".to_owned()
    })
}

/// What is compared if nothing is asked for. A control that needs a parameter, or a judge that has one, is for
/// those who know which.
fn usual() -> Vec<Combination> {
    let mut list = Vec::new();
    let mut add = |combination: Combination| {
        if !list.contains(&combination) {
            list.push(combination);
        }
    };
    let controls: Vec<_> =
        CONTROLS.iter().filter_map(|control| Choice::new(control, None).ok()).collect();
    let (loss_based, others): (Vec<_>, Vec<_>) =
        controls.into_iter().partition(|control| ["cubic", "reno"].contains(&control.entry().name));
    for detection in DETECTIONS.iter().filter_map(|detection| Choice::plain(detection).ok()) {
        for control in &loss_based {
            let combination = Combination::default().with_recovery(detection.clone());
            add(combination.with_congestion(control.clone()));
        }
    }
    for control in others {
        add(Combination::default().with_congestion(control));
    }
    for judge in JUDGES.iter().filter(|judge| judge.parameter.is_empty()) {
        if let Ok(judge) = Choice::plain(judge) {
            add(Combination::default().with_judges(vec![judge]));
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        choice(text).unwrap().0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_usual_has_every_detection_and_nothing_that_takes_a_number() {
        let usual = names("");
        for detection in DETECTIONS {
            for control in ["cubic", "reno"] {
                assert!(usual.contains(&format!("{}/{control}", detection.name)), "{usual:?}");
            }
        }
        for judge in JUDGES.iter().filter(|judge| judge.name != "rr") {
            assert!(usual.contains(&format!("rack/cubic/{}", judge.name)), "{usual:?}");
        }
        assert!(usual.contains(&"rack/westwood".to_owned()), "{usual:?}");
        assert!(usual.iter().all(|name| !name.contains("fixed") && !name.ends_with("/rr")));
        assert!(names("all").len() > usual.len());
    }

    #[test]
    fn a_list_is_in_its_order_without_doubles_and_mistakes_are_named() {
        assert_eq!(names("sack/reno, rack/cubic,sack/reno"), ["sack/reno", "rack/cubic"]);
        let error = |text: &str| choice(text).unwrap_err();
        assert!(error("sack/vega").contains("use one of reno, cubic"), "{}", error("sack/vega"));
        assert!(error("sack/reno,,").contains("for example --with"));
        assert!(picture("a.png").unwrap_err().contains(".svg"));
    }
}
