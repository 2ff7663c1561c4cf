//! The command line of `airtcp compare`.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use airtcp_recovery::registry::{controls, detections, judges};
use airtcp_recovery::{Choice, Combination};
use airtcp_sim::Sender;
use clap::Args;

use super::cubic;
use crate::value::{self, LinkPair, Several};

/// `airtcp compare`.
#[derive(Args, Debug)]
#[command(after_help = "\
--with usual: the default, every detection with cubic, every control but fixed
  with rack and with le, every judge but rr with rack/cubic
rrtp runs RRTP instead of TCP, with optional network parameters:
  rrtp:wireless-last-hop+rate=144kbit+rtt=150ms+loss=1%
--with all: these, every detection with every control, and every detection with
  every judge under reno")]
pub(crate) struct CompareArgs {
    /// Link: a description (see `airtcp link --help`) or a named link
    #[arg(value_name = "LINK", value_parser = value::link)]
    link: LinkPair,
    /// Link in the direction of the ACKs, if it differs from LINK: a description, or a named link
    /// (its uplink)
    #[arg(long, value_name = "LINK", value_parser = value::link)]
    back: Option<LinkPair>,
    /// Combinations, separated by commas; `usual` and `all` are lists
    #[arg(long, value_name = "A,B,C", value_parser = choice, default_value = USUAL)]
    pub(super) with: Several<Sender>,
    /// Number of seeds per combination, starting from 1; links without random elements run once
    #[arg(long, value_name = "N", default_value = "10", allow_negative_numbers = true, value_parser = value::seeds)]
    pub(super) seeds: u32,
    /// Simulated time per run; the first fifth is warm-up [default: 20, or longer to cover 150 RTTs
    /// of the idle link, or 10 with a full queue]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = value::seconds)]
    pub(super) seconds: Option<Duration>,
    /// Number of flows of a combination that share the link
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true,
          value_parser = value::whole(1_u32, 10_000, "--flows 4"))]
    pub(super) flows: u32,
    /// Pace all flows, even if the congestion control sets no pacing rate
    #[arg(long)]
    pub(super) pacing: bool,
    /// Number of threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value::threads)]
    pub(super) threads: Option<NonZero<usize>>,
    /// Write the results as JSON and the picture to this directory, for `airtcp report DIR`
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Draw goodput, round-trip time and the goodput of rack/cubic beside it to this file
    #[arg(long, value_name = "FILE.svg", value_parser = picture)]
    pub(super) picture: Option<PathBuf>,
    /// Print the results as JSON instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

impl CompareArgs {
    /// Returns both directions of the link.
    pub(super) fn link(&self) -> LinkPair {
        self.link.with_back(self.back.as_ref())
    }
}

fn choice(text: &str) -> Result<Several<Sender>, String> {
    let mut list = Several(Vec::new());
    for one in text.split(',').map(str::trim) {
        match one {
            USUAL => list.extend(usual()),
            "all" => list.extend(all()),
            one => list.extend(value::several(one)?.0),
        }
    }
    Ok(list)
}

/// The name of the usual combinations in `--with`.
const USUAL: &str = "usual";

/// Returns the combinations of `--with all`.
pub(super) fn all() -> Vec<Sender> {
    let mut list = Several(usual());
    let others = [Combination::all(), Combination::all_judged()].concat();
    list.extend(others.into_iter().map(Sender::from));
    list.0
}

fn picture(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_svg = path.extension().is_some_and(|extension| extension == "svg");
    is_svg.then_some(path).ok_or_else(|| {
        "the name of a picture must end in .svg; for example --picture compare.svg, and for a PNG of it: \
         rsvg-convert -o compare.png compare.svg"
            .to_owned()
    })
}

/// Returns the combinations of `--with usual`. It leaves out controls that need a parameter, and
/// the judge `rr`, which ignores a full queue.
pub(super) fn usual() -> Vec<Sender> {
    let mut list = vec![Combination::default()];
    for detection in detections().iter().filter_map(|detection| Choice::plain(detection).ok()) {
        // These two detect lost retransmissions with any receiver, so that differences are due to
        // the control.
        let is_able = ["rack", "le"].contains(&detection.entry().name);
        for control in controls().iter().filter(|control| is_able || control.name == "cubic") {
            if let Ok(control) = Choice::new(control, None) {
                list.push(cubic().with_detection(detection.clone()).with_control(control));
            }
        }
    }
    for judge in judges().iter().filter(|judge| judge.name != "rr") {
        if let Ok(judge) = Choice::plain(judge) {
            list.push(cubic().with_judges(vec![judge]));
        }
    }
    list.into_iter().map(Sender::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        choice(text).unwrap().0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_usual_has_every_detection_and_nothing_that_takes_a_number() {
        let usual = names("usual");
        assert_eq!(usual.first(), Some(&Combination::default().to_string()));
        for detection in detections() {
            assert!(usual.contains(&format!("{}/cubic", detection.name)), "{usual:?}");
        }
        for control in ["reno", "cubic", "westwood", "westwood-plus"] {
            assert!(usual.contains(&format!("le/{control}")), "{usual:?}");
        }
        for judge in judges().iter().filter(|judge| judge.name != "rr") {
            assert!(usual.contains(&format!("rack/cubic/{}", judge.name)), "{usual:?}");
        }
        assert!(usual.contains(&"rack/westwood".to_owned()), "{usual:?}");
        assert!(usual.iter().all(|name| !name.contains("fixed") && !name.ends_with("/rr")));
        let all = names("all");
        assert!(all.starts_with(&usual) && all.contains(&"le/reno/hack".to_owned()));
        assert_eq!(names("usual,rack/fixed:9").last().unwrap(), "rack/fixed:9");
        assert_eq!(names("rack/cubic,all").len(), all.len());
    }

    #[test]
    fn a_list_is_in_its_order_without_doubles_and_mistakes_are_named() {
        assert_eq!(names("sack/reno, rack/cubic,sack/reno"), ["sack/reno", "rack/cubic"]);
        let kinds = ["rrtp:wireless-last-hop+rate=2mbit", "rack/cubic", "rrtp"];
        assert_eq!(names(&kinds.join(",")), kinds);
        let error = |text: &str| choice(text).unwrap_err();
        assert!(error("sack/vega").contains("use one of reno, cubic"), "{}", error("sack/vega"));
        for text in ["sack/reno,,", "", "rack//hack", "rack/cubic/", "rrtp:lan"] {
            assert!(error(text).contains("for example --with"), "{}", error(text));
        }
        let png = picture("a.png").unwrap_err();
        assert!(png.contains(".svg") && png.contains("rsvg-convert"), "{png}");
    }
}
