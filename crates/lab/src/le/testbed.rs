//! The claims of LE 5.2 about its testbed at 10 % loss, in virtual time and with real packets.

use airtcp_sim::Interval;

use crate::theory::{self, Bound};

pub(super) const FIXED: &str = "le/fixed:10";
pub(super) const FACK_RR: &str = "fack/reno/rr";
pub(super) const LE_RR: &str = "le/reno/rr";

/// Returns a link with the testbed's round-trip time of 20 ms, without loss.
pub(super) fn link(mbit: &str) -> String {
    format!("rate {mbit}mbit delay 10ms limit 100")
}

/// A statement about a sender's goodput in Mbit/s, or about its ratio to that of another.
pub(super) struct Stated {
    own: String,
    over: Option<String>,
    pub(super) claimed: &'static str,
    pub(super) bound: Bound,
}

impl Stated {
    pub(super) fn what(&self) -> String {
        match &self.over {
            None => format!("{}, Mbit/s", self.own),
            Some(over) => format!("{} over {over}", self.own),
        }
    }

    /// Returns the figure from the senders' goodputs in Mbit/s, if they were measured.
    pub(super) fn figure(&self, goodput: impl Fn(&str) -> Option<Interval>) -> Option<Interval> {
        let own = goodput(&self.own)?;
        match &self.over {
            None => Some(own),
            Some(over) => Some(theory::ratio(&own, &goodput(over)?)),
        }
    }
}

const fn tenth(of: f64) -> Bound {
    Bound::Within(of * 0.9, of * 1.1)
}

/// Returns the statements of LE 5.2.1 about this form of Westwood.
pub(super) fn with_westwood(form: &str) -> [Stated; 5] {
    let [sack, fack, le] = ["sack", "fack", "le"].map(|detection| format!("{detection}/{form}"));
    let goodput =
        |own: &str, claimed, bound| Stated { own: own.to_owned(), over: None, claimed, bound };
    [
        goodput(&le, "over 4", Bound::Above(4.0)),
        goodput(&fack, "about 3.5", tenth(3.5)),
        goodput(&sack, "about 3.5", tenth(3.5)),
        Stated { over: Some(fack), ..goodput(&le, "over 1", Bound::Above(1.0)) },
        Stated { over: Some(FIXED.to_owned()), ..goodput(&le, "almost 0.8", tenth(0.8)) },
    ]
}

/// Returns the statement of LE 5.2.2 about RR. The other one, 6 Mbit/s of LE with RR, selects the
/// rate of the link, which the paper does not state.
pub(super) fn with_rr() -> Stated {
    let (own, over) = (LE_RR.to_owned(), Some(FACK_RR.to_owned()));
    Stated { own, over, claimed: "1.5", bound: tenth(1.5) }
}
